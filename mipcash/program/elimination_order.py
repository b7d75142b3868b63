"""Order of finite variables that keeps the layers of ``mipcash.program.model_count`` small.

A constraint is open while some, but not all, of its variables have been ordered. The size of a layer is estimated by the product of
the number of joint states of the ordered variables in open tables and the number of possible sums of open rows. The order is
greedy: the next variable is the one after which the estimate is smallest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mipcash.program.forms import Vector

STARTS = 4
"""Number of first variables with the fewest constraints that are tried, besides the one with the most."""
WIDE = 200
"""Number of variables above which only one first variable is tried."""


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


def elimination_order(
    sizes: Sequence[int], scopes: Sequence[Sequence[int]], rows: Sequence[LinearRow] = ()
) -> list[int]:
    """Return the best greedy order over several first variables: the one with the smallest estimate of its largest layer."""
    frontier = _Frontier(sizes, scopes, rows)
    n = len(sizes)
    by_degree = sorted(range(n), key=lambda i: (len(frontier.neighbours[i]), i))
    starts = sorted({*by_degree[:STARTS], *by_degree[-1:]}) if n <= WIDE else by_degree[:1]
    tried = [frontier.greedy(start) for start in starts]
    return min(tried, key=lambda t: t[1])[0] if tried else []


class _Frontier:
    """Estimates of layer sizes while an order is made."""

    def __init__(self, sizes: Sequence[int], scopes: Sequence[Sequence[int]], rows: Sequence[LinearRow]) -> None:
        self._log = [math.log(max(1, d)) for d in sizes]
        self._scopes = [set(scope) for scope in {tuple(sorted(s)) for s in scopes} if len(scope) > 1]
        self._rows = [(set(row.scope), _sum_count(row)) for row in rows]
        n = len(sizes)
        self.neighbours: list[set[int]] = [set() for _ in range(n)]
        for scope in [*self._scopes, *(s for s, _ in self._rows)]:
            for i in scope:
                self.neighbours[i] |= scope
        self._tables_of = _listed(n, self._scopes)
        self._rows_of = _listed(n, [s for s, _ in self._rows])

    def greedy(self, start: int) -> tuple[list[int], float]:
        """Return the greedy order from a first variable, and the logarithm of the estimated size of its largest layer."""
        n = len(self._log)
        left = [len(s) for s in self._scopes]
        waiting = [len(self._tables_of[i]) for i in range(n)]  # number of open tables that contain each variable
        row_left = [len(s) for s, _ in self._rows]
        taken, order, worst = [False] * n, list[int](), 0.0
        open_now, reached = 0.0, {start}
        while len(order) < n:
            candidates = reached or {next(i for i in range(n) if not taken[i])}
            scored = [(self._change(i, taken, left, waiting, row_left), i) for i in sorted(candidates)]
            change, i = min(scored)
            worst = max(worst, open_now + self._log[i])
            open_now += change
            taken[i] = True
            order.append(i)
            for k in self._tables_of[i]:
                left[k] -= 1
                if not left[k]:
                    for j in self._scopes[k]:
                        waiting[j] -= 1
            for k in self._rows_of[i]:
                row_left[k] -= 1
            reached = {j for j in (reached | self.neighbours[i]) if not taken[j]}
        return order, worst

    def _change(
        self, i: int, taken: Sequence[bool], left: Sequence[int], waiting: Sequence[int], row_left: Sequence[int]
    ) -> float:
        """Return the change of the logarithm of the layer's estimated size if variable i comes next."""
        closed: dict[int, int] = {}
        for k in self._tables_of[i]:
            if left[k] == 1:
                for j in self._scopes[k]:
                    closed[j] = closed.get(j, 0) + 1
        change = self._log[i] if waiting[i] > closed.get(i, 0) else 0.0
        change -= sum(self._log[j] for j, c in closed.items() if j != i and taken[j] and waiting[j] == c)
        for k in self._rows_of[i]:
            scope, sums = self._rows[k]
            seen = len(scope) - row_left[k]
            before = _row_cost(seen, len(scope), sums)
            change += _row_cost(seen + 1, len(scope), sums) - before
        return change


def _listed(n: int, scopes: Sequence[set[int]]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(n)]
    for k, scope in enumerate(scopes):
        for i in scope:
            found[i].append(k)
    return found


def _sum_count(row: LinearRow) -> float:
    """Return the logarithm of an upper bound on the number of different sums of a row."""
    joint = sum(math.log(len(np.unique(w))) for w in row.weights)
    values = np.abs(np.concatenate([w - w.min() for w in row.weights]))
    unit = float(values[values > 0].min(initial=math.inf))
    if math.isinf(unit) or not np.allclose(values / unit, np.round(values / unit)):
        return joint
    span = sum(float(np.ptp(w)) for w in row.weights)
    return min(joint, math.log1p(span / unit))


def _row_cost(seen: int, of: int, sums: float) -> float:
    """Return the logarithm of the estimated number of sums of a row after ``seen`` of its ``of`` variables; 0 if it is not open.

    Args:
        sums: logarithm of the number of sums over all its variables.
    """
    return 0.0 if seen in (0, of) else math.log1p(math.expm1(sums) * seen / of) if sums < 50 else sums * seen / of
