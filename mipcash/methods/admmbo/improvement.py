"""Expected improvement of the two kinds of subproblems, by the logarithm; to be minimised: what is better is lower.

Notation
    mu, sd          posterior of one output at a point
    OPT  (eq. 10)   u = f + q,   q = sum_i rho/2 ||x - z_i + y_i/rho||^2 known:  u ~ N(mu + q, sd^2)
        EI = sd h(t),   t = (u+ - mu - q) / sd                               ariafar2019, eq. 11
    FEAS (eq. 12)   h_i = 1(c_i > 0) + q,   q = rho/(2M) ||x - z + y_i/rho||^2,   theta = p(c_i > 0)
        EI = max(0, a - 1) theta + max(0, a) (1 - theta),   a = h+ - q       eq. 13
           = 0 for a <= 0,  a (1 - theta) for 0 < a <= 1,  a - theta for a > 1       eq. 14

u+ and h+ are the least values of u and h_i at observations. Eq. 11 as printed has m - u+ in the place of u+ - m.

Where EI is 0 its logarithm has no slope. There log a is continued by log b - log(1 + (b - a) / b) with b = BELOW h+, once
differentiable: it leads towards the least q, as far as 1 - theta lets it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipcash.acquisition.analytic import AnalyticAcquisition, LogEI
from mipcash.acquisition.constrained import Interval
from mipcash.methods.admmbo.coordinates import Quadratic
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import MomentSection, Posterior, Section

BELOW, LEAST = 1e-6, 1e-15
"""b in units of h+, and b at least."""


@dataclass(frozen=True)
class Augmented:
    """Moments of u: a posterior and a known function added to it.

    Attributes:
        posterior: of f.
        known: q, on the posterior's scale.
    """

    posterior: Posterior
    known: Quadratic

    def predict(self, points: Points) -> tuple[Vector, Vector]:
        """Means and standard deviations: (B,), (B,)."""
        mean, deviation = self.posterior.predict(points)
        return mean + self.known.values(points), deviation

    def section(self, z: Vector) -> MomentSection:
        """At fixed binaries, (n_z,)."""
        inner, known = self.posterior.section(z), self.known.section(z)

        def at(u: Vector) -> tuple[float, float, Vector, Vector]:
            mean, deviation, by_mean, by_deviation = inner(u)
            value, slope = known(u)
            return mean + value, deviation, by_mean + slope, by_deviation

        return at


def augmented_ei(moments: Augmented, best: float) -> AnalyticAcquisition:
    """Minus the logarithm of eq. 11, over u+ = ``best``."""
    return AnalyticAcquisition(moments, LogEI(best))


@dataclass(frozen=True)
class FeasibilityEI:
    """Minus the logarithm of eq. 13 and 14, as an :class:`mipcash.acquisition.acquisition.Acquisition`.

    Attributes:
        posterior: of the limited output.
        interval: what keeps the limit, on the posterior's scale: 1 - theta is its probability.
        known: q.
        best: h+.
    """

    posterior: Posterior
    interval: Interval
    known: Quadratic
    best: float

    def values(self, points: Points) -> Vector:
        """At a batch: shape (B,)."""
        kept = self.interval.log_probability(*self.posterior.predict(points))
        return -self.logarithm(self.best - self.known.values(points), kept)[0]

    def section(self, z: Vector) -> Section:
        """At fixed binaries, (n_z,)."""
        inner, known = self.posterior.section(z), self.known.section(z)

        def at(u: Vector) -> tuple[float, Vector]:
            mean, deviation, by_mean, by_deviation = inner(u)
            kept, first, second = self.interval.slope(mean, deviation)
            q, by_q = known(u)
            log, by_a, by_kept = (float(v) for v in self.logarithm(np.array(self.best - q), np.array(kept)))
            return -log, by_a * by_q - by_kept * (first * by_mean + second * by_deviation)

        return at

    def improves(self, points: Points) -> bool:
        """Whether the expected improvement is above 0 at any of a batch."""
        return bool(np.any(self.known.values(points) < self.best))

    def logarithm(self, a: Vector, kept: Vector) -> tuple[Vector, Vector, Vector]:
        """log EI of a = h+ - q and log(1 - theta), and its derivatives by both: shape of ``a`` each."""
        b = max(BELOW * self.best, LEAST)
        inside, over = np.maximum(a, b), np.maximum(a - 1.0, 0.0)
        beyond = np.maximum(b - a, 0.0) / b
        small = np.log(inside) - np.log1p(beyond) + kept
        by_small = np.where(a > b, 1.0 / inside, 1.0 / (b * (1.0 + beyond)))
        with np.errstate(divide="ignore"):
            large = np.logaddexp(np.log(over), kept)  # log((a - 1) + (1 - theta)) = log(a - theta)
        far = a > 1.0
        log = np.where(far, large, small)
        bounded = np.where(far, log, 0.0)
        by_a = np.where(far, np.exp(-bounded), by_small)
        by_kept = np.where(far, np.exp(np.where(far, kept, 0.0) - bounded), 1.0)
        return log, by_a, by_kept
