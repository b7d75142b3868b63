"""Pareto fronts and their hypervolume.

Notation
    n points;   m objectives, all to be minimised;   F (n, m) their values, finite
    a dominates b: a <= b in every objective and a < b in one;   the front: points that no point dominates
    r (m,) the reference point;   the hypervolume: volume dominated by the points and bounded by r (Zitzler and Thiele 1998)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SLOPE = 0.05
Values = NDArray[np.float64]


def on_front(values: Values) -> NDArray[np.bool_]:
    """Return True for rows of F that no row dominates, for equal rows only the first: shape (n,)."""
    kept = np.zeros(len(values), dtype=bool)
    left = np.lexsort(values.T[::-1])  # a point that dominates or equals another comes before it
    while len(left):
        first, left = left[0], left[1:]
        kept[first] = True
        left = left[~(values[first] <= values[left]).all(axis=1)]
    return kept


def hypervolume(values: Values, reference: Values) -> float:
    """Return the exact hypervolume of F with respect to r, as a sum of exclusive volumes (While, Bradstreet and Barone 2012)."""
    inside = values[(values < reference).all(axis=1)]
    return _volume(inside[on_front(inside)], reference) if len(inside) else 0.0


def _volume(front: Values, reference: Values) -> float:
    """Return the hypervolume of points of which none dominates another.

    Points are added from the best value of the last objective to the worst. What a point shares with those before it ends at its
    own value of the last objective, so that it is a problem with one objective less.
    """
    if front.shape[1] == 1:
        return float(reference[0] - front.min())
    total = 0.0
    front = front[np.argsort(front[:, -1], kind="stable")]
    for k, point in enumerate(front):
        shared = np.maximum(front[:k, :-1], point[:-1])
        own = float(np.prod(reference[:-1] - point[:-1]))
        if k:
            own -= _volume(shared[on_front(shared)], reference[:-1])
        total += own * float(reference[-1] - point[-1])
    return total


def unit_values(values: Values, by: Values) -> Values:
    """Return F scaled per objective to 0 at the best and 1 at the worst value of a front, (n, m).

    Args:
        by: points that define the front, shape (k, m), k > 0. If the front has a single value, the worst of all ``by`` is used.
    """
    front = by[on_front(by)]
    low, high = front.min(axis=0), front.max(axis=0)
    width = np.where(high > low, high - low, by.max(axis=0) - low)
    return np.asarray((values - low) / np.where(width > 0.0, width, 1.0))


def tchebycheff(values: Values, weights: Values) -> Values:
    """Return the augmented Tchebycheff scalarisation, max_j w_j F_j + SLOPE sum_j w_j F_j, shape (n,) (Knowles 2006, equation 2).

    Every point of the front minimises it for some weights, even if the front is not convex. The sum breaks ties of the maximum.
    """
    weighted = values * weights
    return np.asarray(weighted.max(axis=1) + SLOPE * weighted.sum(axis=1))
