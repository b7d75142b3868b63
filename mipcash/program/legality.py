"""Vectorised legality of many level vectors at once, for local search.

Notation
    s (B, G)    a batch of level vectors, effective levels: off if a group is inactive
    z (B, n_z)  their one-hot binaries
    latent (B, G)   a level of every group, which it takes when it is active

A move that changes the level of a group changes the activity of the groups that depend on it. Most groups have one condition, over
one other group. These are looked up in tables, layer by layer, starting with groups whose parents are always active.

Rows over z alone are evaluated directly. Rows with auxiliary columns (auxiliary variables, conjunctions) are gathered in
clusters that share such columns. For each cluster the question is if *some* auxiliary values satisfy its rows, and the answer
for every combination of the groups in its scope is tabulated once. If that table is too large, auxiliary variables are
eliminated one by one from the tables of single rules (``mipcash.program.elimination``). Numbers are either fixed,
v = value * on(z), or make the check incomplete. Clusters too large for both methods make it incomplete, too. The caller must
then ask a solver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mipcash.modelling.clusters import clusters
from mipcash.program.affine_rows import AffineRow, affine_block, affine_rows, columns_of
from mipcash.program.elimination import Elimination, make_elimination
from mipcash.program.forms import Booleans, Indices, QuadraticForm, Vector
from mipcash.program.program import BaseRow, BinaryProgram, NumberColumn
from mipcash.program.recent import Recent
from mipcash.program.rule_tables import DECIDING, RuleTable, States, entries, sizes_of
from mipcash.program.unit_scale import Activities


class GroupActivity:
    """The activities of all conditional groups of a program, by their depth: conditions refer to groups of smaller depth."""

    def __init__(self, program: BinaryProgram) -> None:
        depth, layers = list[int](), dict[int, list[int]]()
        for g, group in enumerate(program.groups):
            depth.append(1 + max(depth[h] for h in program.parents(group.conditions)) if group.conditions else 0)
            layers.setdefault(depth[g], []).append(g)
        self._layers = [
            (np.array(layers[d]), Activities(program, [program.groups[g].conditions for g in layers[d]]))
            for d in range(1, len(layers))
        ]
        self._off = program.off_levels

    def effective(self, latent: Indices) -> Indices:
        """Return levels with every group off whose conditions fail: (B, G) latent levels -> (B, G)."""
        levels = latent.copy()
        for groups, activities in self._layers:
            off = self._off[groups]
            levels[:, groups] = np.where(activities.at(levels) > 0, np.minimum(latent[:, groups], off - 1), off)
        return levels


def group_activity(program: BinaryProgram) -> GroupActivity:
    """Return the activities of a program, cached in it."""
    return program.once("group activity", lambda: GroupActivity(program))


KEPT = 16
"""Number of assignments of the numbers whose legality is cached."""
MANY, THIN = 300, 0.1
"""Number of rows above which they may be stored sparse, and the largest fraction of nonzero coefficients for that."""
CHECKED = 1 << 22
"""Number of binaries that are formed at a time."""


@dataclass(frozen=True)
class _Rows:
    """Rows over the binaries, each with one bound, its slack included: ``body <= high``. Shapes (m, n_z), (m,), products by row.

    The linear part is sparse if there are many rows of a few levels each. ``products`` has the row, the binaries (a,) and (b,)
    that are multiplied, and their coefficients (a, b), sparse if most are 0. Groups with many levels have far more products than
    binaries.
    """

    linear: Vector | sparse.csr_array
    high: Vector
    products: Sequence[tuple[int, Indices, Indices, Vector | sparse.csr_array]]

    @classmethod
    def of(cls, rows: Sequence[BaseRow], n_z: int) -> _Rows:
        """Convert rows with up to two bounds; a lower bound becomes an upper bound of the negated row."""
        bounds = [(1.0, r, r.high + r.slack) for r in rows if r.high < np.inf]
        bounds += [(-1.0, r, r.slack - r.low) for r in rows if r.low > -np.inf]
        linear = np.array([sign * r.form.linear[:n_z] for sign, r, _ in bounds]).reshape(len(bounds), n_z)
        thin = len(bounds) > MANY and np.count_nonzero(linear) < THIN * linear.size
        high = np.array([bound for *_, bound in bounds])
        products = [(k, *_products(sign, r.form)) for k, (sign, r, _) in enumerate(bounds) if len(r.form.rows)]
        return cls(sparse.csr_array(linear) if thin else linear, high, products)

    def and_also(self, others: _Rows) -> _Rows:
        """Return these rows and the other rows, both with a dense linear part."""
        if not len(others.high):
            return self
        m = len(self.high)
        return _Rows(
            np.concatenate([np.asarray(self.linear), np.asarray(others.linear)]),
            np.concatenate([self.high, others.high]),
            [*self.products, *((m + k, a, b, c) for k, a, b, c in others.products)],
        )

    def hold(self, z: Vector) -> Booleans:
        """Return which points satisfy every row: (B, n_z) -> (B,)."""
        body = (self.linear @ z.T).T if sparse.issparse(self.linear) else z @ self.linear.T
        for k, rows, cols, coefficients in self.products:
            body[:, k] += ((z[:, rows] @ coefficients) * z[:, cols]).sum(axis=1)
        return np.asarray((body <= self.high).all(axis=1))


def _products(sign: float, form: QuadraticForm) -> tuple[Indices, Indices, Vector | sparse.csr_array]:
    """Return the binaries that a form multiplies, (a,) and (b,), and their coefficients times the sign, (a, b)."""
    (rows, i), (cols, j) = (np.unique(part, return_inverse=True) for part in (form.rows, form.cols))
    shape = len(rows), len(cols)
    if len(form.values) < THIN * shape[0] * shape[1]:
        return rows, cols, sparse.csr_array((sign * form.values, (i, j)), shape)
    coefficients = np.zeros(shape)
    np.add.at(coefficients, (i, j), sign * form.values)
    return rows, cols, coefficients


@dataclass(frozen=True)
class _Plan:
    """The rows of a program that a check evaluates, in their order; rows over levels alone are prepared for evaluation.

    Attributes:
        rows: all rows to check; without the ``sum z = 1`` of each group.
        free: the rows over levels alone.
    """

    rows: Sequence[AffineRow]
    free: _Rows

    @classmethod
    def of(cls, program: BinaryProgram) -> _Plan:
        rows = [
            r for r in affine_rows(program) if not r.latent and not (_numberless(r) and _always_true(program, r.row))
        ]
        alone = [r.row for r in rows if _numberless(r) and not r.auxiliaries]
        return cls(rows, _Rows.of(alone, program.n_z))


def _numberless(row: AffineRow) -> bool:
    """Return True if a row contains no number."""
    return row.parts is not None and not row.parts


def _plan_of(program: BinaryProgram) -> _Plan:
    """Return the plan of a program, cached in it."""
    return program.once("checked rows", lambda: _Plan.of(program))


class Legality:
    """Check of levels against the rows of a program.

    Args:
        program: the compiled space.
        numbers: label -> natural value of every number with columns, or None to leave the rows with numbers out.
        tables: tables of clusters without numbers, shared between the checks of one program (used and extended).

    Attributes:
        undecided: the rows that need a solver; empty if the check is complete.
        eliminations: clusters that are checked by elimination instead of a table, each with its rows.
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
        plan, declared = _plan_of(program), set(map(id, program.base_rows))
        self.undecided: list[BaseRow] = []
        direct: list[BaseRow] = []
        clustered: list[tuple[Set[int], BaseRow]] = []
        block = None if numbers is None else affine_block(program)
        together = set() if block is None else set(map(id, block.rows))
        bound: list[BaseRow] = []
        for each in plan.rows:
            if id(each) in together:
                continue
            if each.parts is None or (each.parts and numbers is None):
                self.undecided.append(each.row)
                continue
            row = each.at(numbers or {})
            if each.auxiliaries:
                clustered.append((each.auxiliaries, row))
            elif not each.parts:
                direct.append(row)
            elif not _always_true(program, row):
                direct.append(row)
                bound.append(row)
        if block is not None and numbers is not None:
            direct += (further := block.at(numbers))
            bound += further
        self._direct = direct
        of_numbers = _Rows.of(bound, program.n_z)
        thin = sparse.issparse(plan.free.linear) or sparse.issparse(of_numbers.linear)
        self._rows = _Rows.of(direct, program.n_z) if thin else plan.free.and_also(of_numbers)
        self._activity = group_activity(program)
        self.numbers = numbers
        self._declared = declared
        self._clusters = [(sorted(auxiliaries), rows) for auxiliaries, rows in clusters(clustered)]
        self._tables: list[RuleTable] = []
        self._tabulated: list[Sequence[BaseRow]] = []
        self.eliminations: list[tuple[Elimination, Sequence[BaseRow]]] = []
        for auxiliaries, rows in self._clusters:
            key = frozenset(map(id, rows))
            if key in tables:
                table = tables[key]
            else:
                table = self._tabulate(auxiliaries, rows) or make_elimination(program, auxiliaries, rows)
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
        """True if the check decides legality; otherwise it is necessary, not sufficient."""
        return not self.undecided

    def effective(self, latent: Indices) -> Indices:
        """Return levels with every group off whose conditions fail: (B, G) latent levels -> (B, G)."""
        return self._activity.effective(latent)

    def check(self, levels: Indices) -> Booleans:
        """Return which effective level vectors are legal: (B, G) -> (B,)."""
        legal, rows = np.ones(len(levels), dtype=bool), self._rows
        for table in self._tables:
            legal &= table.legal[tuple(levels[:, list(table.scope)].T)]
        share = max(1, CHECKED // max(1, self.program.n_z))
        for a in range(0, len(levels) if len(rows.high) else 0, share):
            legal[a : a + share] &= rows.hold(self.program.one_hot(levels[a : a + share]))
        for elimination, _ in self.eliminations:  # vectors that are already illegal are not checked again
            legal[legal] = elimination.check(levels[legal])
        return legal

    def constraints(self) -> tuple[list[tuple[RuleTable, bool]], list[tuple[BaseRow, bool]]]:
        """Return the tables and rows over the binaries that ``check`` evaluates besides ``eliminations``.

        Each comes with True if it does not depend on the numbers.
        """
        tables = [
            (table, all(id(row) in self._declared for row in rows))
            for table, rows in zip(self._tables, self._tabulated, strict=True)
        ]
        return tables, [(row, id(row) in self._declared) for row in self._direct]

    def completed(self, levels: Indices) -> Vector:
        """Return base columns of one legal level vector, with auxiliary values that satisfy every row: (G,) -> (n,)."""
        program = self.program
        base = np.array(program.low[: program.n])
        base[: program.n_z] = program.one_hot(levels)
        for number in program.numbers if self.numbers is not None else ():
            assert self.numbers is not None
            on = all(bool(c.holds(base[: program.n_z])) for c in number.conditions)
            base[number.latent] = self.numbers[number.label]
            base[number.column] = self.numbers[number.label] if on else 0.0
            if number.place >= 0:
                base[number.place] = self._place(number)
        for p in program.bilinear if self.numbers is not None else ():
            base[p.column] = p.scale * base[p.first] * base[p.second]
        for elimination, _ in self.eliminations:
            found = elimination.values(levels)
            base[list(found)] = list(found.values())
        eliminated = {c for elimination, _ in self.eliminations for c in elimination.order}
        for auxiliaries, rows in self._clusters:
            if auxiliaries[0] in eliminated:
                continue
            known = set().union(*(columns_of(row.form) for row in rows)) - set(auxiliaries)
            states = replace(States.of_levels(program, (), auxiliaries), constants={c: float(base[c]) for c in known})
            at = np.unravel_index(int(np.argmax(states.legal(rows))), states.sizes)
            base[auxiliaries] = program.low[auxiliaries] + np.array(at)
        return base

    def _place(self, number: NumberColumn) -> int:
        """Return the integer k of a number ``low + k * step``."""
        assert self.numbers is not None
        domain: Any = self.program.domains[number.label]
        place: int = round((self.numbers[number.label] - domain.low) / domain.step)
        return place

    # -- construction -------------------------------------------------------------------------------------------

    def _tabulate(self, auxiliaries: Sequence[int], rows: Sequence[BaseRow]) -> RuleTable | None:
        program = self.program
        used = sorted(set().union(*(columns_of(r.form) for r in rows)))
        groups = sorted({int(program.group_of[c]) for c in used if c < program.n_z})
        if not all(program.integer[c] for c in auxiliaries):
            return None
        if entries(sizes_of(program, groups, auxiliaries)) > DECIDING:
            return None
        states = States.of_levels(program, groups, auxiliaries)
        legal = states.legal(rows)
        return RuleTable(tuple(groups), np.asarray(legal.any(axis=tuple(range(len(groups), legal.ndim)))))


def _always_true(program: BinaryProgram, row: BaseRow) -> bool:
    """Return True if a row is a group's own ``sum z = 1``."""
    if row.low != 1.0 or row.high != 1.0 or len(row.form.rows) or row.rule:
        return False
    used = np.flatnonzero(row.form.linear)
    if not len(used) or used[-1] >= program.n_z:
        return False
    group = program.groups[program.group_of[used[0]]]
    return np.array_equal(used, np.arange(group.start, group.stop)) and bool((row.form.linear[used] == 1.0).all())


def legality_at(program: BinaryProgram, numbers: Mapping[str, float] | None) -> Legality:
    """Return the legality of a program's levels at some numbers, cached in the program."""
    kept: Recent[Legality] = program.derived.setdefault("legality", Recent(KEPT))
    tables = program.derived.setdefault("legal levels", {})
    key = None if numbers is None else tuple(float(numbers[n.label]) for n in program.numbers)
    return kept.get(key, lambda: Legality(program, numbers, tables))
