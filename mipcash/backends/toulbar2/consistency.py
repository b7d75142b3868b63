"""Consistency of a cost function network: remove states without support in a table or linear row, and variables with one state.

Every table is made arc consistent and every linear row bounds consistent, repeatedly until nothing changes. The solver gets the
rest: toulbar2 does not accept variables with one state (contradictions found while it is given a problem with such variables crash
it).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mipcash.backends.toulbar2.cost_network import CostNetwork, LinearRow
from mipcash.program.forms import Booleans, Vector

Functions = tuple[float, dict[int, Vector], dict[tuple[int, int], Vector]]
"""A constant, functions of one variable, functions of two (i < j)."""


@dataclass(frozen=True)
class Consistent:
    """A network without unsupported states.

    Attributes:
        states: of every variable, the remaining states.
        live: variables with at least two states, ascending.
        tables: scope of live variables -> legal tuples of their remaining states; at least one tuple is illegal.
        left_of: each row of the network over the live variables, None if it always holds.
    """

    states: list[NDArray[np.int64]]
    live: list[int]
    tables: dict[tuple[int, ...], Booleans]
    left_of: list[LinearRow | None]

    @cached_property
    def rows(self) -> list[LinearRow]:
        """Rows over live variables, weights by remaining state, without rows that always hold."""
        return [row for row in self.left_of if row is not None]

    def functions(self, functions: Functions) -> Functions:
        """Convert functions of the network's variables to functions of the remaining states of the live variables."""
        constant, given, given_pairs = functions
        unary: dict[int, Vector] = {}
        pairs: dict[tuple[int, int], Vector] = {}
        singles = [(i, f[self.states[i]]) for i, f in given.items()]
        for (i, j), f in given_pairs.items():
            whole = f.shape == (len(self.states[i]), len(self.states[j]))
            left = f if whole else f[np.ix_(self.states[i], self.states[j])]
            if left.shape[0] == 1:
                singles.append((j, left[0]))
            elif left.shape[1] == 1:
                singles.append((i, left[:, 0]))
            else:
                pairs[i, j] = left
        for i, f in singles:
            if len(f) == 1:
                constant += float(f[0])
            else:
                unary[i] = unary[i] + f if i in unary else f
        return constant, unary, pairs


def made_consistent(network: CostNetwork) -> Consistent | None:
    """Return the network without unsupported states, or None if it is infeasible."""
    return None if network.empty else _settled(network, [np.arange(size) for size in network.sizes])


def extended(smaller: CostNetwork, consistent: Consistent, network: CostNetwork) -> Consistent | None:
    """Extend a consistent network by the additions of a larger one; the result equals that of starting anew.

    The rows of the smaller network come first. Rows whose variables lost no further states are reused. Return None if the larger
    network is infeasible.
    """
    if network.empty:
        return None
    before = consistent.states
    grown = [np.arange(size) for size in network.sizes[len(before) :]]
    return _settled(network, [*before, *grown], (smaller, consistent))


def _settled(
    network: CostNetwork, states: list[NDArray[np.int64]], known: tuple[CostNetwork, Consistent] | None = None
) -> Consistent | None:
    """Remove unsupported states, beginning from given ones; return None if some variable has none left.

    Args:
        known: a smaller network and its consistent form, whose states are the given ones.
    """
    tables, rows = network.tables, network.rows
    if known is not None:
        smaller = known[0]
        tables = {scope: table for scope, table in tables.items() if smaller.tables.get(scope) is not table}
        rows = rows[len(smaller.rows) :]
    before, changed = list(states), set(range(len(states)))
    while changed:
        touched, changed = changed, set()
        for scope, table in tables.items():
            if touched.isdisjoint(scope):
                continue
            legal = table.legal[np.ix_(*(states[i] for i in scope))]
            for axis, i in enumerate(scope):
                others = tuple(k for k in range(len(scope)) if k != axis)
                _keep(states, i, np.asarray(legal.any(axis=others)), changed)
                legal = table.legal[np.ix_(*(states[k] for k in scope))]
        for row in rows:
            if not touched.isdisjoint(row.scope):
                _bounds(states, row, changed)
        if any(not len(left) for left in states):
            return None
        tables, rows = network.tables, network.rows
    live = [i for i, left in enumerate(states) if len(left) > 1]
    lost = {i for i, left in enumerate(states) if left is not before[i]}
    left_of = [] if known is None else known[1].left_of
    restricted = [
        left_of[r] if r < len(left_of) and lost.isdisjoint(row.scope) else _restricted(row, states)
        for r, row in enumerate(network.rows)
    ]
    return Consistent(states, live, _tables(network, states), restricted)


def _keep(states: list[NDArray[np.int64]], i: int, supported: Booleans, changed: set[int]) -> None:
    if not supported.all():
        states[i] = states[i][supported]
        changed.add(i)


def _bounds(states: list[NDArray[np.int64]], row: LinearRow, changed: set[int]) -> None:
    """Remove states with which a row can no longer hold."""
    left = [w[states[i]] for i, w in zip(row.scope, row.weights, strict=True)]
    if any(not len(w) for w in left):
        return
    flat, starts = np.concatenate(left), np.cumsum([0, *map(len, left[:-1])])
    lowest, highest = np.minimum.reduceat(flat, starts), np.maximum.reduceat(flat, starts)
    least, most, widest = sum(lowest.tolist()), sum(highest.tolist()), int((highest - lowest).max())
    if (row.low is None or most - widest >= row.low) and (row.high is None or least + widest <= row.high):
        return
    for i, w in zip(row.scope, left, strict=True):
        supported = np.ones(len(w), dtype=bool)
        if row.low is not None:
            supported &= w + (most - int(w.max())) >= row.low
        if row.high is not None:
            supported &= w + (least - int(w.min())) <= row.high
        _keep(states, i, supported, changed)


def _tables(network: CostNetwork, states: list[NDArray[np.int64]]) -> dict[tuple[int, ...], Booleans]:
    found: dict[tuple[int, ...], Booleans] = {}
    for scope, table in network.tables.items():
        legal = np.squeeze(table.legal[np.ix_(*(states[i] for i in scope))])
        if not legal.all():
            alive = tuple(i for i in scope if len(states[i]) > 1)
            found[alive] = found[alive] & legal if alive in found else legal
    return found


def _restricted(row: LinearRow, states: list[NDArray[np.int64]]) -> LinearRow | None:
    """Return a row over the live variables, or None if it always holds."""
    settled = sum(int(w[states[i][0]]) for i, w in zip(row.scope, row.weights, strict=True) if len(states[i]) == 1)
    alive = [(i, w[states[i]]) for i, w in zip(row.scope, row.weights, strict=True) if len(states[i]) > 1]
    least, most = (sum(int(end(w)) for _, w in alive) for end in (np.min, np.max))
    low = None if row.low is None or row.low - settled <= least else row.low - settled
    high = None if row.high is None or row.high - settled >= most else row.high - settled
    if low is None and high is None:
        return None
    return LinearRow(tuple(i for i, _ in alive), [w for _, w in alive], low, high)
