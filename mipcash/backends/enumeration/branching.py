"""Branch and bound over a pairwise network, thousands of partial solutions at a time.

Notation
    b       a batch of N partial solutions that give states to the first k variables of an order.
    spent   (N,) their cost so far;   ahead (S', N) the cost that each state of the later variables would add.
    bound   spent + sum over the later variables of their least ``ahead``: pairs of later variables count as zero, which
            bounds them from below (``mipcash.backends.enumeration.bounds`` moves their cost into theta beforehand)

The search is depth first by batches, the best bounds first. If the search of a network progresses too slowly, the network is split:
one variable takes each of its states in turn, costs are moved again in the rest, and so on. A node's share is its part of the whole
tree: a parent's share is divided equally among the children that its bound does not prune. The closed shares therefore measure how
much of the tree is done.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from mipcash.backends.enumeration.bounds import Potentials
from mipcash.program.forms import Indices, Vector

BATCH = 1024
SLICE = 20_000
"""Nodes after which a search decides whether it continues or is split."""
WHOLE = 40
"""Slices that a search may be expected to need in all if it continues."""
ROWS, HEAVY = 400, 80
"""Linear rows up to which a partial solution counts as one node; beyond them, rows that cost as much as one node."""
SWEEPS = 4
SPLITTABLE = 6
"""Number of variables from which on a network is split."""


@dataclass
class Effort:
    """Limits of a proof, and what it has used so far.

    Attributes:
        nodes: partial solutions that may be visited in any case.
        most: after ``nodes``, the search continues while ``spent / done``, the expected size of the whole proof, is below this.
        deadline: of ``time.perf_counter``.
        spent: nodes so far.
        done: share of the tree that is closed.
        left: least bound of the nodes not visited when the effort ended; inf before.
    """

    nodes: float
    most: float
    deadline: float
    spent: int = 0
    done: float = 0.0
    left: float = math.inf

    @property
    def over(self) -> bool:
        hopeless = self.spent >= self.nodes and self.spent > self.most * self.done
        return hopeless or time.perf_counter() >= self.deadline


@dataclass
class Best:
    """The best solution so far.

    Attributes:
        value: its cost, at most the potentials' ceiling; the search ignores solutions at ``value - tolerance`` and above.
        states: one per variable, in the network's numbers, unordered; None if no solution is known.
    """

    value: float
    tolerance: float
    states: Indices | None = None

    @property
    def upper(self) -> float:
        return self.value - self.tolerance


@dataclass
class _Batch:
    depth: int
    spent: Vector
    ahead: Vector
    path: Indices
    body: Vector
    share: Vector


@dataclass
class _Pending:
    """Children not built yet: state and parent of each, their bounds and shares."""

    batch: _Batch
    state: Indices
    parent: Indices
    bound: Vector
    share: Vector


def prove(potentials: Potentials, best: Best, effort: Effort, chosen: tuple[int, ...] = (), share: float = 1.0) -> bool:
    """Search for solutions better than ``best`` and store the best one in it; return False if the effort ran out first."""
    if potentials.tighten(best.upper, SWEEPS):
        effort.done += share
        return True
    if effort.over:
        effort.left = min(effort.left, potentials.lower)
        return False
    order = _order(potentials)
    search = _Search(potentials.ordered(order), best, effort, chosen, share)
    finished = search.run(potentials.n_variables >= SPLITTABLE)
    if finished is not None:
        return finished
    span = potentials.span(int(order[0]))
    states = np.arange(span.start, span.stop)[np.argsort(potentials.theta[span], kind="stable")]
    for k, s in enumerate(states.tolist()):
        if not prove(potentials.given(s), best, effort, (*chosen, int(potentials.states[s])), share / len(states)):
            later = potentials.lower + potentials.theta[states[k + 1 :]].min(initial=math.inf)
            effort.left = min(effort.left, float(later))
            return False
    return True


def _order(potentials: Potentials) -> Indices:
    """Return the branching order of the variables: strongly coupled to earlier ones and with few states first."""
    first, sizes = potentials.starts[:-1], potentials.sizes
    pairs = np.where(potentials.pairs < potentials.ceiling, potentials.pairs, 0.0)
    total = np.add.reduceat(np.add.reduceat(pairs, first, axis=0), first, axis=1)
    mean = total / np.outer(sizes, sizes)
    to_come, to_past = mean.sum(axis=1), np.zeros(len(sizes))
    order: list[int] = []
    for _ in range(len(sizes)):
        score = (to_past + 0.3 * to_come + 1e-12) / np.log1p(sizes)
        score[order] = -np.inf
        order.append(int(np.argmax(score)))
        to_past += mean[order[-1]]
        to_come -= mean[order[-1]]
    return np.array(order)


class _Search:
    """Depth-first search by batches over one network in its branching order."""

    def __init__(
        self, potentials: Potentials, best: Best, effort: Effort, chosen: tuple[int, ...], share: float
    ) -> None:
        self.potentials, self.best, self.effort, self.chosen, self.share = potentials, best, effort, chosen, share
        self.stack: list[_Pending] = []
        p, m = potentials, len(potentials.low)
        self._weight = 1 if m < 2 * ROWS else m // HEAVY
        # a batch stores a value per row and partial solution
        self._batch = max(1, BATCH * ROWS // max(m, ROWS))
        parts = [p.weights[:, p.span(i)] for i in range(p.n_variables)]
        last = [(part.min(axis=1), part.max(axis=1)) for part in parts]
        # minimum and maximum that the variables from k on can add to each row, (V + 1, 2, m)
        self._rest = np.concatenate([np.cumsum(np.array(last)[::-1], axis=0)[::-1], np.zeros((1, 2, m))])

    def run(self, splittable: bool) -> bool | None:
        """Return True if the search is complete, False if the effort ran out, and None if the network should be split."""
        p, began = self.potentials, self.effort.spent
        path, body = np.zeros((0, 1), dtype=np.int64), np.zeros((len(p.low), 1))
        root = _Batch(0, np.array([p.lower]), p.theta[:, None], path, body, np.array([self.share]))
        done = self.effort.done
        self._branch(root)
        checked = began
        while self.stack:
            if self.effort.over:
                self.effort.left = min(self.effort.left, *(float(e.bound.min()) for e in self.stack))
                return False
            if self.effort.spent - checked > SLICE:
                checked = self.effort.spent
                finished = 1.0 - sum(float(e.share.sum()) for e in self.stack) / self.share
                self.effort.done = done + finished * self.share
                if splittable and finished * WHOLE * SLICE < checked - began:
                    self.effort.done = done
                    return None
            self._step(self.stack.pop())
        self.effort.done = done + self.share
        return True

    def _step(self, entry: _Pending) -> None:
        """Build the children of an entry and branch on them."""
        promising = entry.bound < self.best.upper
        x, parent = entry.state[promising], entry.parent[promising]
        if not len(x):
            return
        p, batch = self.potentials, entry.batch
        self.effort.spent += len(x) * self._weight
        depth, span = batch.depth + 1, p.span(batch.depth)
        s = span.start + x
        body = batch.body[:, parent] + p.weights[:, s]
        spent = batch.spent[parent] + batch.ahead[x, parent]
        path = np.concatenate([batch.path[:, parent], s[None]])
        share = entry.share[promising]
        if len(body):
            low, high = self._rest[depth][:, :, None]
            holds = np.all((body + high >= p.low[:, None]) & (body + low <= p.high[:, None]), axis=0)
            x, parent, s, path = (v[..., holds] for v in (x, parent, s, path))
            body, spent, share = (v[..., holds] for v in (body, spent, share))
            if not len(x):
                return
        if depth == p.n_variables:
            k = int(np.argmin(spent))
            if spent[k] < self.best.upper:
                self.best.value = float(spent[k])
                self.best.states = np.concatenate([np.array(self.chosen, dtype=np.int64), p.states[path[:, k]]])
            return
        ahead = batch.ahead[span.stop - span.start :].take(parent, axis=1)
        ahead += p.pairs[span.stop :, span].take(x, axis=1)
        self._branch(_Batch(depth, spent, ahead, path, body, share))

    def _branch(self, batch: _Batch) -> None:
        """Push the children that may improve on the best solution onto the stack, the best on top."""
        p, k = self.potentials, batch.depth
        offset = p.starts - p.starts[k]
        bound = batch.spent.copy()
        for j in range(k + 1, p.n_variables):
            bound += batch.ahead[offset[j] : offset[j + 1]].min(axis=0)
        child = batch.ahead[: offset[k + 1]] + bound
        x, parent = np.nonzero(child < self.best.upper)
        if not len(x):
            return
        value = child[x, parent]
        share = batch.share[parent] / np.bincount(parent, minlength=len(bound))[parent]
        order = np.argsort(value, kind="stable")
        parts = [order[a : a + self._batch] for a in range(0, len(order), self._batch)]
        self.stack += [_Pending(batch, x[at], parent[at], value[at], share[at]) for at in parts[::-1]]
