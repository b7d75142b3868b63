"""Logarithm of constrained expected improvement, to be minimised: lower is better.

Notation
    f                    the loss;   g_i (i = 1..m) outputs with constraints low_i <= g_i <= high_i, independent given the data
    a, b = (low - mu) / sd, (high - mu) / sd     bounds of one constraint in deviations of its posterior
    P_i = Phi(b) - Phi(a)                        probability that constraint i is satisfied

    log constrained EI = log EI(best) + sum_i log P_i      (Schonlau et al. 1998; Gardner et al. 2014, Eq. 4)

``best`` is the loss of the incumbent among the feasible observations. While there is none, the improvement is undefined, and the
probability of feasibility is maximised alone (Gelbart et al. 2014, Section 3.2).

With one finite bound, log P is log Phi. With two, the interval is mirrored to the negative side, where the logarithms of Phi(b) >
Phi(a) > 0 are accurate, and log P = log Phi(b) + log(1 - e^d), d = log Phi(a) - log Phi(b). Slopes are ratios of phi and P:

    d log P / d mu = (phi(a) - phi(b)) / (P sd),    d log P / d sd = (a phi(a) - b phi(b)) / (P sd)

On the negative side phi / Phi is computed by erfcx, which stays accurate where both underflow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from mipcash.acquisition.analytic import LOG_ROOT_2PI
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Section
from mipcash.surrogates.structured.posterior import StructuredPosterior

FAR = -1e4
"""t below which differences of log Phi are replaced by those of its asymptote, phi(t) / -t."""
NARROW = 1e-3
"""Least width of an interval on the posterior's scale, for constraints with equal bounds."""


def hazard(t: Vector) -> Vector:
    """Return phi(t) / Phi(t), finite for every t: the hazard function at -t; shape of ``t``."""
    below = np.minimum(t, 0.0)
    above = np.exp(-0.5 * np.square(np.maximum(t, 0.0)) - LOG_ROOT_2PI) / ndtr(np.maximum(t, 0.0))
    return np.asarray(np.where(t < 0.0, math.sqrt(2.0 / math.pi) / erfcx(-below / math.sqrt(2.0)), above))


@dataclass(frozen=True)
class Truncation:
    """A standard normal variable between two bounds, elementwise, for log P and its derivatives.

    Attributes:
        log: log P.
        a, b: the bounds; 0 in place of an infinite one.
        at_low, at_high: phi(a) / P and phi(b) / P; 0 at an infinite bound.
    """

    log: Vector
    a: Vector
    b: Vector
    at_low: Vector
    at_high: Vector

    @classmethod
    def below(cls, b: Vector) -> Truncation:
        zero = np.zeros_like(b)
        return cls(log_ndtr(b), zero, b, zero, hazard(b))

    @classmethod
    def above(cls, a: Vector) -> Truncation:
        zero = np.zeros_like(a)
        return cls(log_ndtr(-a), a, zero, hazard(-a), zero)

    @classmethod
    def between(cls, a: Vector, b: Vector, width: Vector) -> Truncation:
        """Return the truncation to [a, b]. ``width`` is b - a, passed since the difference may have no digits left."""
        over = a + b > 0.0
        upper, lower = np.where(over, -a, b), np.where(over, -b, a)  # mirrored to the negative side
        d = _apart(upper, lower, width)
        less = log_less(d)
        at_upper, at_lower = hazard(upper) * np.exp(-less), hazard(lower) * np.exp(d - less)
        at_low, at_high = np.where(over, at_upper, at_lower), np.where(over, at_lower, at_upper)
        return cls(log_ndtr(upper) + less, a, b, at_low, at_high)


def _apart(upper: Vector, lower: Vector, width: Vector) -> Vector:
    """Return log Phi(lower) - log Phi(upper), with lower = upper - width."""
    near = log_ndtr(lower) - log_ndtr(upper)
    far = np.minimum(upper, FAR)
    return np.where(upper < FAR, width * far - 0.5 * width**2 - np.log1p(-width / far), near)


def log_less(d: Vector) -> Vector:
    """Return log(1 - e^d) for d < 0, by expm1 for small |d| and by log1p for small e^d."""
    near = d > -math.log(2.0)
    return np.where(near, np.log(-np.expm1(np.where(near, d, -1.0))), np.log1p(-np.exp(np.where(near, -1.0, d))))


@dataclass(frozen=True)
class Interval:
    """Probability of an outcome constraint as a function of the posterior's mean and deviation.

    Attributes:
        low, high: its bounds on the posterior's scale; may be infinite.
    """

    low: float
    high: float

    def truncation(self, mu: Vector, sd: Vector) -> Truncation:
        """Return the truncation of normal outputs with means and deviations (B,), (B,), in units of these deviations."""
        if math.isinf(self.low):
            return Truncation.below((self.high - mu) / sd)
        if math.isinf(self.high):
            return Truncation.above((self.low - mu) / sd)
        return Truncation.between((self.low - mu) / sd, (self.high - mu) / sd, (self.high - self.low) / sd)

    def log_probability(self, mu: Vector, sd: Vector) -> Vector:
        """Return log P: (B,), (B,) -> (B,)."""
        return self.truncation(mu, sd).log

    def slope(self, mu: float, sd: float) -> tuple[float, float, float]:
        """Return log P at one point, and its derivatives with respect to mu and sd."""
        t = self.truncation(np.asarray(mu), np.asarray(sd))
        return float(t.log), float(t.at_low - t.at_high) / sd, float(t.a * t.at_low - t.b * t.at_high) / sd


@dataclass(frozen=True)
class Limited:
    """A constrained output, with the bounds that it should satisfy.

    Attributes:
        posterior: of the output.
        low, high: bounds on the scale of the posterior.
    """

    posterior: StructuredPosterior
    low: float
    high: float

    @property
    def interval(self) -> Interval:
        """The bounds, widened to a distance of at least NARROW."""
        short = max(0.0, NARROW - (self.high - self.low)) / 2.0
        return Interval(self.low - short, self.high + short)


@dataclass(frozen=True)
class LogFeasibility:
    """Negative logarithm of the probability that all outcome constraints are satisfied.

    Attributes:
        limits: m constraints.
    """

    limits: Sequence[Limited]

    def values(self, points: Points) -> Vector:
        """Return the negative log probability at a batch: shape (B,)."""
        total = np.zeros(len(points))
        for kept in self.limits:
            total -= kept.interval.log_probability(*kept.posterior.predict(points))
        return total

    def section(self, z: Vector) -> Section:
        """Return the negative log probability at fixed binaries, (n_z,)."""
        sections = [(kept.posterior.section(z), kept.interval) for kept in self.limits]

        def at(u: Vector) -> tuple[float, Vector]:
            value, gradient = 0.0, np.zeros(len(u))
            for moments, interval in sections:
                mean, deviation, by_mean, by_deviation = moments(u)
                log, first, second = interval.slope(mean, deviation)
                value, gradient = value - log, gradient - first * by_mean - second * by_deviation
            return value, gradient

        return at
