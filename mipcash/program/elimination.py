"""Rules that share auxiliary variables, as tables of single rules: legality by eliminating one auxiliary variable at a time.

Notation
    s (B, G)    a batch of levels
    h_i         an auxiliary variable, an integer column with d_i values
    T_r         table of rule r: True for the joint levels of its groups and values of its auxiliary variables that satisfy it

The joint table of many rules that are chained by auxiliary variables (such as a width after each layer) is far too large, but
the table of each rule is small. At given levels each T_r is a table over its auxiliary variables alone. One of them is
eliminated by joining the tables that contain it and asking if any value of it is left (bucket elimination, Dechter 1999):

    T(others) = any_h  T_1(h, ...) and T_2(h, ...) and ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mipcash.program.affine_rows import columns_of
from mipcash.program.forms import Booleans, Indices
from mipcash.program.program import BaseRow, BinaryProgram
from mipcash.program.rule_tables import DECIDING, States, entries, sizes_of

JOINT = 1 << 14
"""Largest number of joint values of auxiliary variables in one step for one level vector."""
ENTRIES = 1 << 23
"""Largest number of table entries of one step for a batch: larger batches are split."""


@dataclass(frozen=True)
class _Factor:
    """A table at given levels: shape (B, d_i, ...) over its auxiliary variables, ascending."""

    auxiliaries: tuple[int, ...]
    legal: Booleans

    def over(self, scope: Sequence[int]) -> Booleans:
        """Return the table with an axis for each variable of a larger scope, of length 1 if the table does not depend on it."""
        sizes = dict(zip(self.auxiliaries, self.legal.shape[1:], strict=True))
        return self.legal.reshape((len(self.legal), *(sizes.get(h, 1) for h in scope)))


@dataclass(frozen=True)
class Elimination:
    """Rules over levels and auxiliary variables (see the module's notation).

    Attributes:
        tables: of each rule its groups, its auxiliary variables (columns), and T_r with an axis for each of them.
        order: order in which auxiliary variables are eliminated.
        low: least value of each auxiliary variable.
        width: number of joint values in the largest step.
    """

    tables: tuple[tuple[tuple[int, ...], tuple[int, ...], Booleans], ...]
    order: tuple[int, ...]
    low: dict[int, float]
    width: int

    def check(self, levels: Indices) -> Booleans:
        """Return which levels admit values of the auxiliary variables that satisfy every rule: (B, G) -> (B,)."""
        part = max(1, ENTRIES // self.width)
        found = [self._eliminated(levels[k : k + part])[0] for k in range(0, len(levels), part)]
        return np.concatenate([np.zeros(0, dtype=bool), *found])

    def values(self, levels: Indices) -> dict[int, float]:
        """Return auxiliary column -> value such that every rule holds at one legal level vector, (G,)."""
        _, steps = self._eliminated(levels[None])
        chosen: dict[int, int] = {}
        for auxiliary, joined in reversed(steps):
            at = tuple(chosen.get(h, slice(None)) for h in joined.auxiliaries)
            chosen[auxiliary] = int(np.argmax(joined.legal[(0, *at)]))
        return {h: self.low[h] + k for h, k in chosen.items()}

    def _eliminated(self, levels: Indices) -> tuple[Booleans, list[tuple[int, _Factor]]]:
        """Return which levels are legal, and the joined table of each eliminated variable."""
        factors = [
            _Factor(
                auxiliaries,
                table[tuple(levels[:, list(groups)].T)] if groups else np.repeat(table[None], len(levels), 0),
            )
            for groups, auxiliaries, table in self.tables
        ]
        steps = []
        for auxiliary in self.order:
            mine = [f for f in factors if auxiliary in f.auxiliaries]
            scope = sorted({h for f in mine for h in f.auxiliaries})
            joined = mine[0].over(scope)
            for f in mine[1:]:
                joined = joined & f.over(scope)
            steps.append((auxiliary, _Factor(tuple(scope), joined)))
            rest = _Factor(
                tuple(h for h in scope if h != auxiliary), np.asarray(joined.any(axis=1 + scope.index(auxiliary)))
            )
            factors = [f for f in factors if auxiliary not in f.auxiliaries] + [rest]
        legal = np.ones(len(levels), dtype=bool)
        for f in factors:
            legal &= f.legal
        return legal, steps


def make_elimination(program: BinaryProgram, auxiliaries: Sequence[int], rows: Sequence[BaseRow]) -> Elimination | None:
    """Return the elimination of one cluster of rules; None if a table or step is too large, or a variable is continuous.

    Args:
        auxiliaries: columns of the auxiliary variables that the rules share.
        rows: rows over the binaries and these columns.
    """
    if not all(program.integer[c] for c in auxiliaries):
        return None
    sizes = dict(zip(auxiliaries, sizes_of(program, (), auxiliaries), strict=True))
    scopes = []
    for row in rows:
        used = columns_of(row.form)
        groups = tuple(sorted({int(program.group_of[c]) for c in used if c < program.n_z}))
        mine = tuple(sorted(c for c in used if c in sizes))
        if entries(sizes_of(program, groups, mine)) > DECIDING:
            return None
        scopes.append((groups, mine))
    order, width = _order([set(mine) for _, mine in scopes], sizes)
    if width > JOINT:
        return None
    tables = [
        (groups, mine, States.of_levels(program, groups, mine).legal([row]))
        for row, (groups, mine) in zip(rows, scopes, strict=True)
    ]
    return Elimination(tuple(tables), order, {c: float(program.low[c]) for c in auxiliaries}, width)


def _order(scopes: list[set[int]], sizes: dict[int, int]) -> tuple[tuple[int, ...], int]:
    """Return a greedy order by smallest step, the first among equals, and the joint values of the largest step."""
    left, order, width = sorted(sizes), [], 1
    while left:
        joint = {h: set().union({h}, *(s for s in scopes if h in s)) for h in left}
        best = min(left, key=lambda h: entries(sizes[i] for i in joint[h]))
        width = max(width, entries(sizes[i] for i in joint[best]))
        scopes = [s for s in scopes if best not in s] + [joint[best] - {best}]
        left.remove(best)
        order.append(best)
    return tuple(order), width
