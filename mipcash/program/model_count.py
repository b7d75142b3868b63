"""Number of joint states of finite variables that satisfy all constraints: a decision diagram, built layer by layer.

Only one layer is kept in memory at a time.

Notation
    i           a variable, with d_i states; the variables take their states one after the other
    residue     what a constraint still requires of the remaining variables. Partial assignments with the same residues of all
                constraints have the same completions, so they are one node of the diagram and are counted together
    N           nodes of a layer: the residues that occur, each with the number of partial assignments that lead there
    open        describes a constraint while some, but not all, of its variables have taken their states

Residues are, by kind of constraint:

    table over two      the states that it leaves the later variable, a mask that all such tables share
    table over more     the index of the remaining sub-table among the distinct sub-tables
    linear row          its sum so far, or that it holds for all completions

For an ordering these are the subsets of taken positions, so that precedences are counted by dynamic programming over
subsets (Held and Karp 1962). For rules between neighbours only the frontier counts (frontier-based search, Sekine,
Imai and Tani 1995). A layer with too many nodes is reduced to a few, and the count is a lower bound from then on.

A diagram whose edges are kept gives uniform draws of joint states, from the last layer to the first one: the edge into a node is
drawn in proportion to the number of partial assignments that lead to its source.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from mipcash.deadline import NEVER, Deadline
from mipcash.program.forms import Booleans, Indices, Vector
from mipcash.program.rule_tables import RuleTable

EXPANDED = 1 << 20
"""Largest number of successors of a layer (nodes times states of the next variable) up to which a count is exact."""
CELLS = 1 << 24
"""Largest number of residues of all these successors up to which a count is exact."""
KEPT_NODES = 1 << 11
"""Number of nodes that are kept of a layer once the count is not exact."""
MASKED = 63
"""Largest number of states of a variable that fits into a mask."""
SAME = 1e-3
"""Sums of a row that differ by less than this fraction of the row's slack count as equal."""
EDGES = 1 << 21
"""Largest number of edges of a diagram that is kept."""
WHOLE = 1 << 62
"""Number of joint states from which on 64-bit counts are too small."""

MASK, TABLE, ROW = 0, 1, 2
Key = tuple[int, int]
"""Kind of a column of residues, and its variable (of a mask) or constraint."""
Residues = NDArray[Any]


@dataclass(frozen=True)
class StateCount:
    """A number of joint states; a lower bound if not ``exact``."""

    number: int
    exact: bool


@dataclass(frozen=True)
class LinearRow:
    """``low <= sum_i weights[i][s_i] <= high`` over the variables of a scope.

    Attributes:
        scope: the variables.
        weights: one array per variable, shape (d_i,).
        low, high: bounds, with the slack included.
        slack: the rule's tolerance.
    """

    scope: tuple[int, ...]
    weights: tuple[Vector, ...]
    low: float
    high: float
    slack: float


def order_of(n: int, scopes: Sequence[Sequence[int]]) -> list[int]:
    """Return an order of n variables in which the variables of a constraint are near one another (Cuthill and McKee 1969)."""
    at = [(k, i) for k, scope in enumerate(scopes) for i in scope]
    if not at:
        return list(range(n))
    held = sparse.csr_array((np.ones(len(at)), np.array(at).T), shape=(len(scopes), n))
    order: list[int] = reverse_cuthill_mckee(sparse.csr_array(held.T @ held), symmetric_mode=True).tolist()
    return order


def count_states(
    sizes: Sequence[int],
    tables: Sequence[RuleTable],
    rows: Sequence[LinearRow] = (),
    deadline: Deadline = NEVER,
) -> StateCount:
    """Count the joint states that satisfy all constraints.

    Args:
        sizes: d_i.
        tables, rows: the constraints; their scopes name variables.
        deadline: after it, only a few nodes of each layer are kept, and the count is a lower bound.
    """
    if any(not t.scope and not bool(t.legal) for t in tables) or not all(sizes):
        return StateCount(0, True)
    layer, exact = _Layer(sizes, tables, rows), True
    for i in layer.order:
        most = layer.most(i)
        if deadline.passed or not exact:
            most = KEPT_NODES
        if len(layer.counts) > most:
            layer.cut(min(most, KEPT_NODES))
            exact = False
        layer.take(i)
        if not len(layer.counts):
            return StateCount(0, exact)
    return StateCount(int(sum(layer.counts.tolist())), exact)


@dataclass(frozen=True)
class Diagram:
    """A decision diagram of the joint states that satisfy all constraints, for uniform draws.

    Attributes:
        order: the variables in the order of the layers.
        layers: of each variable, its edges sorted by target: first edge of each target, with the number of edges at the end; source
            and state of each edge; and the cumulative share of each edge in the partial assignments that lead to its target. The
            shares of a target add up to 1.
    """

    order: Sequence[int]
    layers: Sequence[tuple[Indices, Indices, Indices, Vector]]

    @classmethod
    def of(
        cls,
        sizes: Sequence[int],
        tables: Sequence[RuleTable],
        rows: Sequence[LinearRow],
        deadline: Deadline = NEVER,
        edges: int = EDGES,
    ) -> Diagram | None:
        """Return the diagram of the constraints of ``count_states``; None if it is empty, too wide, or the deadline passes.

        Args:
            edges: largest number of its edges, with those that lead to no legal state.
        """
        if any(not t.scope and not bool(t.legal) for t in tables) or not all(sizes):
            return None
        layer, layers, left = _Layer(sizes, tables, rows), list[tuple[Indices, Indices, Indices, Vector]](), edges
        for i in layer.order:
            left -= len(layer.counts) * sizes[i]
            if left < 0 or len(layer.counts) > layer.most(i) or deadline.passed:
                return None
            before = layer.counts
            sources, states, targets = layer.take(i)
            if not len(sources):
                return None
            at = np.argsort(targets, kind="stable")
            starts = np.searchsorted(targets[at], np.arange(len(layer.counts) + 1))
            shares = np.asarray(before[sources[at]] / layer.counts[targets[at]], dtype=float)
            layers.append((starts, sources[at], states[at], np.cumsum(shares)))
        return cls(layer.order, layers)

    def drawn(self, n: int, rng: np.random.Generator) -> Indices:
        """Return n joint states, independent and uniform: shape (n, variables)."""
        found, node = np.zeros((n, len(self.order)), dtype=np.int64), np.zeros(n, dtype=np.int64)
        for i, (starts, sources, states, shares) in zip(self.order[::-1], self.layers[::-1], strict=True):
            edge = np.searchsorted(shares, node + rng.random(n), side="right")
            edge = np.clip(edge, starts[node], starts[node + 1] - 1)  # shares are rounded
            found[:, i], node = states[edge], sources[edge]
        return found


class _TableResidues:
    """Residues of a table: per step, the sub-table that follows a sub-table and a state; -1 if it has no legal state."""

    def __init__(self, scope: Sequence[int], legal: Booleans, place: Sequence[int]) -> None:
        legal = np.transpose(legal, np.argsort([place[i] for i in scope]))
        rest, self.next, self.steps = legal.reshape(1, -1), 0, list[NDArray[np.int32]]()
        for size in legal.shape:
            known, rest = len(rest), rest.reshape(len(rest) * size, -1)
            alive = np.flatnonzero(rest.any(axis=1))
            follows = np.full(len(rest), -1, dtype=np.int32)
            if len(alive):
                _, first, which = np.unique(
                    np.packbits(rest[alive], axis=1), axis=0, return_index=True, return_inverse=True
                )
                follows[alive] = which.reshape(-1)
                rest = rest[alive[first]]
            self.steps.append(follows.reshape(known, size))
            if not len(alive):
                rest = rest[:1]

    def after(self, classes: Residues, state: int) -> tuple[Residues, Booleans]:
        """Return the sub-tables after a state, and True where they have a legal state."""
        follows = self.steps[self.next][:, state][classes]
        return follows, follows >= 0


class _RowResidues:
    """Residues of a linear row: per step, the weights, and the least and the most that later steps add."""

    def __init__(self, row: LinearRow, place: Sequence[int]) -> None:
        self.steps, self.next = [row.weights[k] for k in np.argsort([place[i] for i in row.scope])], 0
        self.least = np.cumsum([0.0, *(w.min() for w in self.steps[::-1])])[::-1].tolist()[1:]
        self.most = np.cumsum([0.0, *(w.max() for w in self.steps[::-1])])[::-1].tolist()[1:]
        self.low, self.high, self.unit = row.low, row.high, SAME * row.slack

    def after(self, sums: Residues, state: int) -> tuple[Residues, Booleans]:
        """Return the sums after a state (inf if the row holds for all completions), and True where the row can still hold."""
        after = sums + self.steps[self.next][state]
        lowest, highest = after + self.least[self.next], after + self.most[self.next]
        kept = np.isinf(after) | ((lowest >= self.low) & (highest <= self.high))
        return np.where(kept, np.inf, after), kept | ((highest >= self.low) & (lowest <= self.high))


class _Layer:
    """The nodes of a layer: a column of residues per open constraint, and the number of partial assignments per node."""

    def __init__(self, sizes: Sequence[int], tables: Sequence[RuleTable], rows: Sequence[LinearRow]) -> None:
        """Begin before the first variable: one node."""
        self.sizes, self.counts = sizes, np.ones(1, dtype=np.int64 if math.prod(sizes) < WHOLE else object)
        self.order = order_of(len(sizes), [*(t.scope for t in tables if t.scope), *(r.scope for r in rows)])
        self._open: dict[Key, Residues] = {}
        self._pairs: dict[int, list[tuple[int, Indices]]] = {}
        """Variable -> later variables, with the mask that each of its states leaves them."""
        self._of: dict[int, list[Key]] = {}
        self._allowed: dict[int, Booleans] = {}
        self._constraints: dict[Key, _TableResidues | _RowResidues] = {}
        place, merged = np.argsort(self.order).tolist(), dict[tuple[int, ...], Booleans]()
        for table in tables:
            at = np.argsort(table.scope, kind="stable")
            scope, legal = tuple(table.scope[k] for k in at), np.transpose(table.legal, at)
            merged[scope] = merged[scope] & legal if scope in merged else legal
        for scope, legal in merged.items():
            if len(scope) == 1:
                self._allowed[scope[0]] = legal
            elif len(scope) == 2 and self.sizes[max(scope, key=lambda i: place[i])] <= MASKED:
                first, second = sorted(scope, key=lambda i: place[i])
                left = legal if scope[0] == first else legal.T
                masks = left.astype(np.int64) @ (1 << np.arange(left.shape[1], dtype=np.int64))
                self._pairs.setdefault(first, []).append((second, masks))
            elif scope:
                self._add((TABLE, len(self._constraints)), scope, _TableResidues(scope, legal, place))
        for row in rows:
            self._add((ROW, len(self._constraints)), row.scope, _RowResidues(row, place))

    def _add(self, key: Key, scope: Sequence[int], constraint: _TableResidues | _RowResidues) -> None:
        self._constraints[key] = constraint
        for i in scope:
            self._of.setdefault(i, []).append(key)

    def most(self, i: int) -> int:
        """Return the number of nodes up to which the step over variable i is exact."""
        return min(EXPANDED, CELLS // max(1, len(self._open))) // self.sizes[i]

    def cut(self, most: int) -> None:
        """Keep the nodes with the most partial assignments."""
        self._select(np.sort(np.argpartition(-self.counts, most)[:most]))

    def take(self, i: int) -> tuple[Indices, Indices, Indices]:
        """Move to the next layer: extend every node by every state of variable i that its residues allow.

        Returns:
            Source, state and target of each edge: (E,), (E,), (E,).
        """
        nodes, mine = len(self.counts), self._of.get(i, ())
        for h, _ in self._pairs.get(i, ()):
            self._open.setdefault((MASK, h), np.full(nodes, (1 << self.sizes[h]) - 1, dtype=np.int64))
        for key in mine:
            self._open.setdefault(key, np.zeros(nodes, dtype=np.int32))
        own = self._open.pop((MASK, i), None)
        possible = np.flatnonzero(self._allowed.get(i, np.ones(self.sizes[i], dtype=bool)))
        parts = [self._after(i, s, own) for s in possible.tolist()]
        for key in mine:
            self._constraints[key].next += 1
            if self._constraints[key].next == len(self._constraints[key].steps):
                del self._open[key]
        at = np.concatenate([np.zeros(0, dtype=np.int64), *(at for at, _ in parts)])
        self.counts, changed = self.counts[at], parts[0][1] if parts else {}
        for key, column in self._open.items():
            self._open[key] = np.concatenate([part[key] for _, part in parts]) if key in changed else column[at]
        return at, np.repeat(possible, [len(at) for at, _ in parts]), self._merge()

    def _after(self, i: int, state: int, own: Indices | None) -> tuple[Indices, dict[Key, Residues]]:
        """Return the nodes that one state extends, (k,), and their residues that change, (k,) each."""
        alive = np.ones(len(self.counts), dtype=bool) if own is None else (own >> state) & 1 == 1
        changed = dict[Key, Residues]()
        for h, left in self._pairs.get(i, ()):
            changed[MASK, h] = self._open[MASK, h] & left[state]
            alive &= changed[MASK, h] != 0
        for key in self._of.get(i, ()):
            changed[key], possible = self._constraints[key].after(self._open[key], state)
            alive &= possible
        at = np.flatnonzero(alive)
        return at, {key: column[at] for key, column in changed.items()}

    def _select(self, at: Indices) -> None:
        self.counts = self.counts[at]
        self._open = {key: column[at] for key, column in self._open.items()}

    def _merge(self) -> Indices:
        """Merge nodes with the same residues. Return the new index of each node."""
        if len(self.counts) < 2:
            return np.zeros(len(self.counts), dtype=np.int64)
        key, top = np.zeros(len(self.counts), dtype=np.int64), 1
        for ids in self._columns():
            n = int(ids.max()) + 1
            if top * n >= WHOLE:
                _, key = np.unique(key, return_inverse=True)
                top = int(key.max()) + 1
                if top * n >= WHOLE:
                    _, ids = np.unique(ids, return_inverse=True)
                    n = int(ids.max()) + 1
            key, top = key * n + ids, top * n
        order = np.argsort(key, kind="stable")
        differs = np.diff(key[order], prepend=-1) != 0
        first, merged = np.flatnonzero(differs), np.empty(len(order), dtype=np.int64)
        merged[order] = np.cumsum(differs) - 1
        total = np.add.reduceat(self.counts[order], first)
        self._select(order[first])
        self.counts = total
        return merged

    def _columns(self) -> Iterator[Indices]:
        """Yield each column of residues, by kind, encoded as integers from 0."""
        for key in sorted(self._open, key=lambda key: key[0]):
            constraint, column = self._constraints.get(key), self._open[key]
            if not isinstance(constraint, _RowResidues):
                yield column.astype(np.int64)
            else:
                rounded = np.round(column / constraint.unit) if constraint.unit > 0 else column
                yield np.unique(rounded, return_inverse=True)[1]
