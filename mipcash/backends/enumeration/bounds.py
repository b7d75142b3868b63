"""Lower bounds of a pairwise network by soft arc consistency, which moves costs without changing the objective.

Notation
    q(s) = lower + sum_i theta[s_i] + sum_{i < j} M[s_i, s_j],   theta >= 0, M >= 0

so that ``lower`` bounds q. Moving cost between M and theta leaves q unchanged:

    collect     theta[s] += min_t M[s, t],  M[s, t] -= that          for every neighbour j of i, t in j
    raise       lower += min_s theta[s],    theta[s] -= that
    hand on     M[s, t] += w theta[s],      theta[s] -= that         for every later neighbour j of i

Halving moves half of the row minimum of every M[s, t] to each end and makes all costs non-negative at once. A sweep applies the
three operations to the variables in order (sequential tree-reweighted message passing, kolmogorov2006). Sweeps in both directions
approach the bound of the linear relaxation with RLT rows (``mipcash.program.products``). A state is dropped if its ``lower +
theta[s]``, after collecting, is not below ``upper``: it is in no better solution.

A forbidden pair costs more than the largest difference between legal solutions. ``ceiling`` lies between: every legal solution
costs less, every solution with a forbidden pair costs at least as much. A search below ``ceiling`` therefore finds only legal
solutions, however cost was moved; a network without one is empty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mipcash.backends.enumeration.network import PairwiseNetwork
from mipcash.program.forms import Indices, Vector

FORBIDDEN = 8.0
"""Cost of a forbidden pair, in units of the largest difference between solutions; the larger, the larger its rounding error."""
FEW = 20_000.0
"""Number of combinations of states up to which enumerating them is faster than another sweep."""
STALLED = 0.02
"""Sweeps end once a sweep closes less than this share of the gap."""


@dataclass
class Potentials:
    """Costs of a pairwise network while they are moved (see the module's notation).

    Attributes:
        lower: the bound.
        theta: shape (S,).
        pairs: M, shape (S, S), symmetric, zero within a variable.
        starts: first state of each variable and S, shape (V + 1,).
        states: the states' numbers in the network, shape (S,).
        ceiling: more than any legal solution costs.
        weights, low, high: linear rows, as in ``mipcash.backends.enumeration.network.PairwiseNetwork``.
        empty: whether some variable has no state left, so that no solution is better than ``upper``.
    """

    lower: float
    theta: Vector
    pairs: Vector
    starts: Indices
    states: Indices
    ceiling: float
    weights: Vector
    low: Vector
    high: Vector
    empty: bool = False

    @property
    def n_variables(self) -> int:
        return len(self.starts) - 1

    @property
    def sizes(self) -> Indices:
        return np.diff(self.starts)

    @property
    def combinations(self) -> float:
        """Number of combinations of states."""
        return float(np.prod(self.sizes.astype(float)))

    def span(self, i: int) -> slice:
        return slice(int(self.starts[i]), int(self.starts[i + 1]))

    def tighten(self, upper: float, sweeps: int) -> bool:
        """Sweep in both directions and drop states that cannot improve on ``upper``; return True if no solution can."""
        self._drop(self._halve(), upper)
        for _ in range(sweeps):
            if self.empty or self.lower >= upper or self.combinations <= FEW:
                break
            before = self.lower
            for direction in (1, -1):
                self._drop(self._sweep(direction), upper)
                if self.empty or self.lower >= upper:
                    return True
            if self.lower - before < STALLED * (upper - self.lower):
                break
        return self.empty or self.lower >= upper

    def given(self, s: int) -> Potentials:
        """Return the potentials of the other variables once a variable takes its state ``s``."""
        i = int(np.searchsorted(self.starts, s, side="right")) - 1
        rest, used = self.ordered(np.delete(np.arange(self.n_variables), i)), self.weights[:, s]
        rest.lower, rest.theta = self.lower + float(self.theta[s]), rest.theta + np.delete(self.pairs[s], self.span(i))
        rest.low, rest.high = self.low - used, self.high - used
        return rest

    def ordered(self, order: Indices) -> Potentials:
        """Return the potentials of some variables, at least one, in a given order."""
        at = np.concatenate([np.arange(self.starts[i], self.starts[i + 1]) for i in order])
        return replace(
            self,
            theta=self.theta[at],
            pairs=self.pairs[at][:, at],
            starts=np.concatenate([[0], np.cumsum(self.sizes[order])]),
            states=self.states[at],
            weights=self.weights[:, at],
        )

    # -- internals ----------------------------------------------------------------------------------------------

    def _halve(self) -> Vector:
        """Move half of each pair's minimum to each end; return lower bounds of q for each state, shape (S,)."""
        least = np.stack([self.pairs[self.span(i)].min(axis=0) for i in range(self.n_variables)])
        self.theta += least.sum(axis=0) / 2
        given = np.repeat(least, self.sizes, axis=0)
        self.pairs -= (given + given.T) / 2
        low = np.minimum.reduceat(self.theta, self.starts[:-1])
        self.lower += float(low.sum())
        self.theta -= np.repeat(low, self.sizes)
        return self.lower + self.theta

    def _sweep(self, direction: int) -> Vector:
        """Sweep once over the variables, forward (1) or backward (-1); return lower bounds of q for each state, shape (S,)."""
        coupled, sizes, first = self._coupled(), self.sizes, self.starts[:-1]
        bound = np.empty(len(self.theta))
        for i in range(self.n_variables)[::direction]:
            span, neighbours = self.span(i), coupled[i]
            later = neighbours.copy()
            later[: i + 1] &= direction < 0
            later[i:] &= direction > 0
            ahead, degree = int(np.count_nonzero(later)), int(np.count_nonzero(neighbours))
            rows = self.pairs[span]
            least = np.minimum.reduceat(rows, first, axis=1)
            theta = self.theta[span] + least.sum(axis=1)
            low = float(theta.min())
            self.lower += low
            theta -= low
            bound[span] = self.lower + theta
            share = theta / max(ahead, degree - ahead, 1)
            rows = rows + np.repeat(share[:, None] * later - least, sizes, axis=1)
            self.pairs[span] = rows
            self.pairs[:, span] = rows.T
            self.theta[span] = theta - ahead * share
        return bound

    def _coupled(self) -> np.ndarray:
        """Return a mask of the pairs of variables that share a cost, (V, V)."""
        first = self.starts[:-1]
        return np.asarray(np.logical_or.reduceat(np.logical_or.reduceat(self.pairs != 0, first, axis=0), first, axis=1))

    def _drop(self, bound: Vector, upper: float) -> None:
        """Keep the states whose bound is below ``upper``."""
        keep = bound < upper
        if keep.all():
            return
        left = np.add.reduceat(keep.astype(np.int64), self.starts[:-1])
        if not left.all():
            self.empty = True
            return
        self.theta, self.states, self.weights = self.theta[keep], self.states[keep], self.weights[:, keep]
        # twice as fast as one selection of both axes
        at = np.flatnonzero(keep)
        self.pairs = self.pairs[at][:, at]
        self.starts = np.concatenate([[0], np.cumsum(left)])


def make_potentials(network: PairwiseNetwork, theta: Vector, pairs: Vector) -> Potentials:
    """Make the potentials of a network with at least one variable and the given costs."""
    n, largest, first = len(network.variables), float(np.abs(pairs).max(initial=0.0)), network.starts[:-1]
    most, least = np.maximum.reduceat(theta, first), np.minimum.reduceat(theta, first)
    within = n * (n - 1) / 2 * largest
    spread = float((most - least).sum()) + 2.0 * within + 1.0
    ceiling = float(most.sum()) + within + spread
    # a solution with a forbidden pair costs at least forbidden - spread more than the least other solution
    forbidden = FORBIDDEN * spread
    return Potentials(
        0.0,
        theta.copy(),
        np.where(network.forbidden, forbidden, pairs),
        network.starts,
        np.arange(len(theta)),
        ceiling,
        network.weights,
        network.low,
        network.high,
    )
