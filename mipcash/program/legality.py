"""Vectorised legality of many level vectors at once, for local search.

Notation
    s (B, G)    a batch of level vectors, effective levels: off where a group is off
    z (B, n_z)  their one-hot binaries

Rows over z alone are evaluated directly. Rows with helper columns (auxiliaries, conjunctions) are gathered in clusters
that share helpers; a cluster asks whether *some* helper values satisfy its rows, and the answer for every combination
of the groups in its scope is tabulated once; where that table is too large, helpers are eliminated one by one from the tables of
single rules (:mod:`mipcash.program.elimination`). Tuned numbers are either held fixed, v = value * on(z), or make the check
incomplete. What is too large for either makes it incomplete too: then the caller must ask a solver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from mipcash.modelling.clusters import clusters
from mipcash.program.affine_rows import affine_block, affine_rows, columns_of
from mipcash.program.elimination import Elimination, make_elimination
from mipcash.program.forms import Booleans, Indices, Vector
from mipcash.program.group_activity import group_activity
from mipcash.program.program import BaseRow, BinaryProgram
from mipcash.program.recent import Recent
from mipcash.program.tables import DECIDING, RuleTable, States, entries

KEPT = 16
"""Settings of the numbers whose legality is kept."""
MANY, THIN = 300, 0.1
"""Rows from which on they may be sparse, and the share of their coefficients that is not zero up to which they are."""
CHECKED = 1 << 22
"""Binaries that are formed at a time."""
BLOCK_LIMIT = 1 << 17
"""Legal joint levels of a table up to which it is a block for local search."""


@dataclass(frozen=True)
class _Rows:
    """Rows over the binaries: bounds with their slack, shape (m,), linear part (m, n_z), products by row.

    The linear part is sparse where there are many rows of a few levels each.
    """

    linear: Vector | sparse.csr_array
    low: Vector
    high: Vector
    products: Sequence[tuple[int, Indices, Indices, Vector]]

    @classmethod
    def of(cls, rows: Sequence[BaseRow], n_z: int) -> _Rows:
        linear = np.array([r.form.linear[:n_z] for r in rows]).reshape(len(rows), n_z)
        thin = len(rows) > MANY and np.count_nonzero(linear) < THIN * linear.size
        return cls(
            sparse.csr_array(linear) if thin else linear,
            np.array([r.low - r.slack for r in rows]),
            np.array([r.high + r.slack for r in rows]),
            [(k, r.form.rows, r.form.cols, r.form.values) for k, r in enumerate(rows) if len(r.form.rows)],
        )

    def hold(self, z: Vector) -> Booleans:
        """Whether every row holds: (B, n_z) -> (B,)."""
        body = (self.linear @ z.T).T if sparse.issparse(self.linear) else z @ self.linear.T
        for k, rows, cols, values in self.products:
            body[:, k] += (z[:, rows] * z[:, cols]) @ values
        within: Booleans = np.all((body >= self.low) & (body <= self.high), axis=1)
        return within


class Legality:
    """Checks levels against the rows of a program.

    Args:
        program: the compiled space.
        numbers: label -> natural value of every tuned number with a column, or None to leave the rows with numbers out.
        tables: tables of clusters without numbers, shared between the checks of one program (filled and used).

    Attributes:
        undecided: the rows that it leaves to a solver; none where it is complete.
        eliminations: clusters of rules that are no tables; with each, its rows.
        numbers: as given.
    """

    def __init__(
        self,
        program: BinaryProgram,
        numbers: Mapping[str, float] | None = None,
        tables: dict[frozenset[int], RuleTable | Elimination | None] | None = None,
    ) -> None:
        self.program = program
        tables = {} if tables is None else tables
        declared = set(map(id, program.base_rows))
        self.undecided: list[BaseRow] = []
        direct: list[BaseRow] = []
        clustered: list[tuple[Set[int], BaseRow]] = []
        block = None if numbers is None else affine_block(program)
        together = set() if block is None else set(map(id, block.rows))
        for each in affine_rows(program):
            if each.latent or id(each) in together:
                continue
            if each.parts is None or (each.parts and numbers is None):
                self.undecided.append(each.row)
                continue
            row = each.at(numbers or {})
            if each.helpers:
                clustered.append((each.helpers, row))
            else:
                direct.append(row)
        if block is not None and numbers is not None:
            direct += block.at(numbers)
        self._blocks: list[tuple[Indices, Indices]] | None = None
        self._direct = [row for row in direct if not self._always_true(row)]
        self._rows = _Rows.of(self._direct, program.n_z)
        self._activity = group_activity(program)
        self.numbers = numbers
        self._declared = declared
        self._clusters = [(sorted(helpers), rows) for helpers, rows in clusters(clustered)]
        self._tables: list[RuleTable] = []
        self._tabulated: list[Sequence[BaseRow]] = []
        self.eliminations: list[tuple[Elimination, Sequence[BaseRow]]] = []
        for helpers, rows in self._clusters:
            key = frozenset(map(id, rows))
            if key in tables:
                table = tables[key]
            else:
                table = self._tabulate(helpers, rows) or make_elimination(program, helpers, rows)
                if key <= declared:
                    tables[key] = table
            if table is None:
                self.undecided += rows
            elif isinstance(table, Elimination):
                self.eliminations.append((table, rows))
            else:
                self._tables.append(table)
                self._tabulated.append(rows)

    @property
    def complete(self) -> bool:
        """Whether the check decides legality; otherwise it is necessary, not sufficient."""
        return not self.undecided

    def effective(self, latent: Indices) -> Indices:
        """Levels with every group off whose conditions fail: (B, G) latent levels -> (B, G)."""
        return self._activity.effective(latent)

    def check(self, levels: Indices, *, free: bool = True) -> Booleans:
        """Which effective level vectors are legal: (B, G) -> (B,).

        Args:
            free: also look at the rules that hold at any numbers; False where the levels are known to keep them.
        """
        tables, rows = (self._tables, self._rows) if free else self._with_numbers
        eliminations = [e for e, of in self.eliminations if free or not self._free(of)]
        legal = np.ones(len(levels), dtype=bool)
        for table in tables:
            legal &= table.legal[tuple(levels[:, list(table.scope)].T)]
        share = max(1, CHECKED // max(1, self.program.n_z))
        for a in range(0, len(levels) if len(rows.low) else 0, share):
            legal[a : a + share] &= rows.hold(self.program.one_hot(levels[a : a + share]))
        for elimination in eliminations:  # what is illegal already is not looked at again
            legal[legal] = elimination.check(levels[legal])
        return legal

    @cached_property
    def _with_numbers(self) -> tuple[list[RuleTable], _Rows]:
        """What depends on the numbers."""
        tables, rows = self.constraints()
        bound = _Rows.of([r for r, free in rows if not free], self.program.n_z)
        return [t for t, free in tables if not free], bound

    def blocks(self) -> list[tuple[Indices, Indices]]:
        """Groups that a table binds together, and their legal joint levels: [(groups (k,), levels (N, k))].

        Where a group and all that it depends on are in the same block, its levels agree with its activity.
        """
        if self._blocks is None:
            self._blocks = []
            for table in self._tables:
                if table.legal.sum() > BLOCK_LIMIT:
                    continue
                position = {g: k for k, g in enumerate(table.scope)}
                tuples = np.argwhere(table.legal)
                for a in self._activity.activities:
                    if a.group in position and not a.general and all(parent in position for parent, _ in a.lookups):
                        active = np.ones(len(tuples), dtype=bool)
                        for parent, truth in a.lookups:
                            active &= truth[tuples[:, position[parent]]]
                        tuples = tuples[active == (tuples[:, position[a.group]] != a.off)]
                self._blocks.append((np.array(table.scope, dtype=np.int64), tuples))
        return self._blocks

    def _free(self, rows: Sequence[BaseRow]) -> bool:
        """Whether some rows hold at any numbers."""
        return all(id(row) in self._declared for row in rows)

    def constraints(self) -> tuple[list[tuple[RuleTable, bool]], list[tuple[BaseRow, bool]]]:
        """What :meth:`check` demands but for ``eliminations``: tables and rows over the binaries, each with whether it holds at any
        numbers.
        """
        clusters = zip(self._tables, self._tabulated, strict=True)
        tables = [(table, self._free(rows)) for table, rows in clusters]
        return tables, [(row, id(row) in self._declared) for row in self._direct]

    def completed(self, levels: Indices) -> Vector:
        """Base columns of one legal level vector, helper columns such that every row holds: (G,) -> (n,)."""
        program = self.program
        base = np.array(program.low[: program.n])
        base[: program.n_z] = program.one_hot(levels)
        for number in program.numbers if self.numbers is not None else ():
            assert self.numbers is not None
            on = all(bool(c.holds(base[: program.n_z])) for c in number.conditions)
            base[number.latent] = self.numbers[number.label]
            base[number.column] = self.numbers[number.label] if on else 0.0
        for elimination, _ in self.eliminations:
            found = elimination.values(levels)
            base[list(found)] = list(found.values())
        eliminated = {c for elimination, _ in self.eliminations for c in elimination.order}
        for helpers, rows in self._clusters:
            if helpers[0] in eliminated:
                continue
            grid = np.meshgrid(*[np.arange(program.low[c], program.high[c] + 1) for c in helpers], indexing="ij")
            points = np.repeat(base[None], grid[0].size, axis=0)
            points[:, helpers] = np.stack([axis.ravel() for axis in grid], axis=1)
            holds = np.ones(len(points), dtype=bool)
            for row in rows:
                products = (points[:, row.form.rows] * points[:, row.form.cols]) @ row.form.values
                body = points @ row.form.linear + products
                holds &= row.holds(body)
            base = points[int(np.argmax(holds))]
        return base

    # -- construction -------------------------------------------------------------------------------------------

    def _always_true(self, row: BaseRow) -> bool:
        """Whether a row is a group's own ``sum z = 1``."""
        if row.low != 1.0 or row.high != 1.0 or len(row.form.rows) or row.rule:
            return False
        used = np.flatnonzero(row.form.linear)
        if not len(used) or used[-1] >= self.program.n_z or not np.all(row.form.linear[used] == 1.0):
            return False
        group = self.program.groups[self.program.group_of[used[0]]]
        return bool(len(used) == group.size and used[0] == group.start and used[-1] == group.stop - 1)

    def _tabulate(self, helpers: Sequence[int], rows: Sequence[BaseRow]) -> RuleTable | None:
        program = self.program
        used = sorted(set().union(*(columns_of(r.form) for r in rows)))
        groups = sorted({int(program.group_of[c]) for c in used if c < program.n_z})
        if not all(program.integer[c] for c in helpers):
            return None
        states = States.of_levels(program, groups, helpers)
        if entries(states.sizes) > DECIDING:
            return None
        legal = states.legal(rows)
        return RuleTable(tuple(groups), np.asarray(legal.any(axis=tuple(range(len(groups), legal.ndim)))))


def legality_at(program: BinaryProgram, numbers: Mapping[str, float] | None) -> Legality:
    """The legality of a program's levels at some numbers, kept with the program for the next one who asks."""
    kept: Recent[Legality] = program.derived.setdefault("legality", Recent(KEPT))
    tables = program.derived.setdefault("legal levels", {})
    key = None if numbers is None else tuple(float(numbers[n.label]) for n in program.numbers)
    return kept.get(key, lambda: Legality(program, numbers, tables))
