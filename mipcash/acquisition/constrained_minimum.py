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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from mipcash.acquisition.constrained import Interval
from mipcash.program.forms import Booleans, Indices, Vector
from mipcash.program.points import Points
from mipcash.surrogates.base import MixedFunction, Section

REACH = 12.0
"""Deviations about the means within which a marginal draw is looked for."""
HALVINGS = 60
PRICE = 10.0
"""Of a limit's violation, beside the loss; both on the scales of their posteriors."""


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


@dataclass(frozen=True)
class SampledProblem:
    """One draw of a loss and of its limits as functions: the loss, and PRICE for each unit by which a limit is broken.

    It is an :class:`mipcash.acquisition.base.Acquisition`: its minimiser by legal moves is where y_* of that draw may be.

    Attributes:
        loss: the sample.
        limits: samples of the limited outputs, with the ends on their scales.
    """

    loss: MixedFunction
    limits: Sequence[tuple[MixedFunction, Interval]]

    def values(self, points: Points) -> Vector:
        """At a batch: shape (B,)."""
        total = self.loss.values(points)
        for sample, ends in self.limits:
            v = sample.values(points)
            total = total + PRICE * np.maximum(0.0, np.maximum(ends.low - v, v - ends.high))
        return total

    def section(self, z: Vector) -> Section:
        """At fixed binaries, (n_z,)."""
        loss, limits = self.loss.section(z), [(sample.section(z), ends) for sample, ends in self.limits]

        def at(u: Vector) -> tuple[float, Vector]:
            value, gradient = loss(u)
            for section, ends in limits:
                v, by = section(u)
                if v > ends.high:
                    value, gradient = value + PRICE * (v - ends.high), gradient + PRICE * by
                elif v < ends.low:
                    value, gradient = value + PRICE * (ends.low - v), gradient - PRICE * by
            return value, gradient

        return at
