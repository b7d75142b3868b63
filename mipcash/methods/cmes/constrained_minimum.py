"""Draws of the constrained minimum y_*, which is what max-value entropy search learns (Perrone et al. 2019, Section 3 and A.4).

Notation
    M points, all of them legal under the rules;   K draws
    y (K, M)    draws of the loss;   l (K, M)    whether all limits hold in the same draw
    y_*         min over x of y(x) where l(x); inf in a draw in which no point keeps the limits

*Joint* draws are of the posteriors over all M points at once. *Marginal* ones take the points for independent of each other, as
Wang and Jegelka (2017) do, so that y_* falls without end as M grows:

    P(y_* > t) = prod_x (1 - P_x Phi((t - mu_x) / sd_x)),   P_x the probability that the limits hold at x

from which y_* is drawn by inversion.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from mipcash.program.forms import Booleans, Indices, Vector

REACH = 12.0
"""Deviations about the means within which a marginal draw is looked for."""
HALVINGS = 60


def least(losses: Vector, legal: Booleans) -> tuple[Vector, Indices]:
    """y_* of each draw, (K,), and the point where it is, -1 where there is none: (K, M), (K, M) -> (K,), (K,)."""
    allowed = np.where(legal, losses, np.inf)
    at = np.argmin(allowed, axis=1)
    values = allowed[np.arange(len(allowed)), at]
    return values, np.where(np.isfinite(values), at, -1)


def marginal(mean: Vector, sd: Vector, log_kept: Vector, count: int, rng: np.random.Generator) -> Vector:
    """Draws of y_* that take points for independent: (M,), (M,), log P_x (M,) -> (count,)."""

    def survival(t: Vector) -> Vector:
        """log P(y_* > t): (count,) -> (count,)."""
        inside = log_kept + log_ndtr((t[:, None] - mean) / sd)
        return np.asarray(np.sum(np.log1p(-np.exp(np.minimum(inside, -1e-16))), axis=1))

    log_u = np.log(rng.random(count))
    low = np.full(count, float(np.min(mean - REACH * sd)))
    high = np.full(count, float(np.max(mean + REACH * sd)))
    none = survival(high) > log_u  # with that much probability no point keeps the limits
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        above = survival(middle) > log_u
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(none, np.inf, 0.5 * (low + high))
