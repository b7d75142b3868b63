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
from dataclasses import dataclass, field

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
    layer, exact = _Layer.first(sizes, tables, rows), True
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
        layer, layers, left = _Layer.first(sizes, tables, rows), list[tuple[Indices, Indices, Indices, Vector]](), edges
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


@dataclass
class _TableResidues:
    """Residues of a table: per step, the sub-table that follows a sub-table and a state; -1 if it has no legal state."""

    steps: list[NDArray[np.int32]]
    next: int = 0

    @classmethod
    def of(cls, table: RuleTable, place: Sequence[int]) -> _TableResidues:
        legal = np.transpose(table.legal, np.argsort([place[i] for i in table.scope]))
        rest, steps = legal.reshape(1, -1), list[NDArray[np.int32]]()
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
            steps.append(follows.reshape(known, size))
            if not len(alive):
                rest = rest[:1]
        return cls(steps)


@dataclass
class _RowResidues:
    """Residues of a linear row: per step, the weights, and the least and the most that later steps add."""

    weights: list[Vector]
    least: list[float]
    most: list[float]
    low: float
    high: float
    unit: float
    next: int = 0

    @classmethod
    def of(cls, row: LinearRow, place: Sequence[int]) -> _RowResidues:
        weights = [row.weights[k] for k in np.argsort([place[i] for i in row.scope])]
        least = np.cumsum([0.0, *(w.min() for w in weights[::-1])])[::-1]
        most = np.cumsum([0.0, *(w.max() for w in weights[::-1])])[::-1]
        return cls(weights, least.tolist()[1:], most.tolist()[1:], row.low, row.high, SAME * row.slack)

    def added(self, sums: Vector, state: int) -> tuple[Vector, Booleans]:
        """Return the sums after a state (inf if the row holds for all completions), and True where the row can still hold."""
        after = sums + self.weights[self.next][state]
        lowest, highest = after + self.least[self.next], after + self.most[self.next]
        kept = np.isinf(after) | ((lowest >= self.low) & (highest <= self.high))
        return np.where(kept, np.inf, after), kept | ((highest >= self.low) & (lowest <= self.high))


@dataclass
class _Layer:
    """The nodes of a layer: a column of residues per open constraint, and the number of partial assignments per node."""

    sizes: Sequence[int]
    tables: Sequence[RuleTable]
    rows: Sequence[LinearRow]
    order: Sequence[int]
    counts: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        place = [0] * len(self.sizes)
        for k, i in enumerate(self.order):
            place[i] = k
        self.counts = np.ones(1, dtype=np.int64 if math.prod(self.sizes) < WHOLE else object)
        self._masks: dict[int, Indices] = {}
        self._classes: dict[int, NDArray[np.int32]] = {}
        self._sums: dict[int, Vector] = {}
        self._pairs: dict[int, list[tuple[int, Indices]]] = {}
        """Variable -> later variables, with the mask that each of its states leaves them."""
        self._table_of: dict[int, list[int]] = {}
        self._row_of: dict[int, list[int]] = {}
        self._allowed: dict[int, Booleans] = {}
        merged: dict[tuple[int, ...], Booleans] = {}
        for table in self.tables:
            at = np.argsort(table.scope, kind="stable")
            scope = tuple(table.scope[k] for k in at)
            legal = np.transpose(table.legal, at)
            merged[scope] = merged[scope] & legal if scope in merged else legal
        residues = list[_TableResidues]()
        for scope, legal in merged.items():
            if len(scope) == 1:
                self._allowed[scope[0]] = legal
            elif len(scope) == 2 and self.sizes[max(scope, key=lambda i: place[i])] <= MASKED:
                first, second = sorted(scope, key=lambda i: place[i])
                left = legal if scope[0] == first else legal.T
                masks = left.astype(np.int64) @ (1 << np.arange(left.shape[1], dtype=np.int64))
                self._pairs.setdefault(first, []).append((second, masks))
            else:
                for i in scope:
                    self._table_of.setdefault(i, []).append(len(residues))
                residues.append(_TableResidues.of(RuleTable(scope, legal), place))
        self._table_residues = residues
        self._row_residues = [_RowResidues.of(row, place) for row in self.rows]
        for k, row in enumerate(self.rows):
            for i in row.scope:
                self._row_of.setdefault(i, []).append(k)

    @classmethod
    def first(cls, sizes: Sequence[int], tables: Sequence[RuleTable], rows: Sequence[LinearRow]) -> _Layer:
        """Return the layer before the first variable: one node."""
        scoped = [t for t in tables if t.scope]
        return cls(sizes, scoped, rows, order_of(len(sizes), [*(t.scope for t in scoped), *(r.scope for r in rows)]))

    def most(self, i: int) -> int:
        """Return the number of nodes up to which the step over variable i is exact."""
        return min(EXPANDED, CELLS // max(1, self.width)) // self.sizes[i]

    @property
    def width(self) -> int:
        """Number of open constraints: columns of residues."""
        return len(self._masks) + len(self._classes) + len(self._sums)

    def cut(self, most: int) -> None:
        """Keep the nodes with the most partial assignments."""
        self._select(np.sort(np.argpartition(-self.counts, most)[:most]))

    def take(self, i: int) -> tuple[Indices, Indices, Indices]:
        """Move to the next layer: extend every node by every state of variable i that its residues allow.

        Returns:
            Source, state and target of each edge: (E,), (E,), (E,).
        """
        nodes = len(self.counts)
        for h, _ in self._pairs.get(i, ()):
            self._masks.setdefault(h, np.full(nodes, (1 << self.sizes[h]) - 1, dtype=np.int64))
        for k in self._table_of.get(i, ()):
            self._classes.setdefault(k, np.zeros(nodes, dtype=np.int32))
        for k in self._row_of.get(i, ()):
            self._sums.setdefault(k, np.zeros(nodes))
        own = self._masks.pop(i, None)
        allowed = self._allowed.get(i, np.ones(self.sizes[i], dtype=bool))
        possible = np.flatnonzero(allowed)
        parts = [self._after(i, s, own) for s in possible.tolist()]
        self._close(i)
        self._join(parts)
        sources = np.concatenate([np.zeros(0, dtype=np.int64), *(p.at for p in parts)])
        return sources, np.repeat(possible, [len(p.at) for p in parts]), self._merge()

    def _after(self, i: int, state: int, own: Indices | None) -> _Part:
        """Return the nodes that one state extends, with their residues that change."""
        alive = np.ones(len(self.counts), dtype=bool) if own is None else (own >> state) & 1 == 1
        masks, classes, sums = dict[int, Indices](), dict[int, NDArray[np.int32]](), dict[int, Vector]()
        for h, left in self._pairs.get(i, ()):
            masks[h] = self._masks[h] & left[state]
            alive &= masks[h] != 0
        for k in self._table_of.get(i, ()):
            residues = self._table_residues[k]
            classes[k] = residues.steps[residues.next][:, state][self._classes[k]]
            alive &= classes[k] >= 0
        for k in self._row_of.get(i, ()):
            sums[k], possible = self._row_residues[k].added(self._sums[k], state)
            alive &= possible
        at = np.flatnonzero(alive)
        return _Part(
            at,
            {h: m[at] for h, m in masks.items()},
            {k: c[at] for k, c in classes.items()},
            {k: s[at] for k, s in sums.items()},
        )

    def _close(self, i: int) -> None:
        """Advance the constraints over a variable, and drop those for which it was the last variable."""
        for k in self._table_of.get(i, ()):
            table = self._table_residues[k]
            table.next += 1
            if table.next == len(table.steps):
                del self._classes[k]
        for k in self._row_of.get(i, ()):
            row = self._row_residues[k]
            row.next += 1
            if row.next == len(row.weights):
                del self._sums[k]

    def _join(self, parts: Sequence[_Part]) -> None:
        at = np.concatenate([np.zeros(0, dtype=np.int64), *(p.at for p in parts)])
        self.counts = self.counts[at]
        for h in self._masks:
            changed = parts and h in parts[0].masks
            self._masks[h] = np.concatenate([p.masks[h] for p in parts]) if changed else self._masks[h][at]
        for k in self._classes:
            changed = parts and k in parts[0].classes
            self._classes[k] = np.concatenate([p.classes[k] for p in parts]) if changed else self._classes[k][at]
        for k in self._sums:
            changed = parts and k in parts[0].sums
            self._sums[k] = np.concatenate([p.sums[k] for p in parts]) if changed else self._sums[k][at]

    def _select(self, at: Indices) -> None:
        self.counts = self.counts[at]
        self._masks = {h: m[at] for h, m in self._masks.items()}
        self._classes = {k: c[at] for k, c in self._classes.items()}
        self._sums = {k: s[at] for k, s in self._sums.items()}

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
        """Yield each column of residues, encoded as integers from 0."""
        yield from self._masks.values()
        for classes in self._classes.values():
            yield classes.astype(np.int64)
        for k, sums in self._sums.items():
            unit = self._row_residues[k].unit
            rounded = np.round(sums / unit) if unit > 0 else sums
            yield np.unique(rounded, return_inverse=True)[1]


@dataclass(frozen=True)
class _Part:
    """The nodes of a layer that one state of a variable extends.

    Attributes:
        at: the nodes, shape (k,).
        masks, classes, sums: their residues that change, by variable or constraint, shape (k,).
    """

    at: Indices
    masks: dict[int, Indices]
    classes: dict[int, NDArray[np.int32]]
    sums: dict[int, Vector]
