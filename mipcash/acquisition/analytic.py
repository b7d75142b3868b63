"""Acquisition functions of one posterior in closed form, to be minimised: lower is better.

Notation
    mu, sd (B,)     posterior mean and standard deviation of f, which is minimised;   best: the incumbent value
    t = (best - mu) / sd,   EI = sd h(t),   h(t) = phi(t) + t Phi(t)     (Jones, Schonlau and Welch 1998)

log h has four formulas. Direct evaluation loses all digits once phi(t) and t Phi(t) cancel. For t < -1 it is replaced by

    log h(t) = -t^2/2 - log(2 pi)/2 + log(1 - |t| sqrt(pi/2) erfcx(|t| / sqrt 2)),

in which the bracket cancels like 1/t^2. For t < -1e2 the bracket is replaced by three terms of its series in 1/t^2, and for t <
-1e5 by the first term, log h = -t^2/2 - log(2 pi)/2 - 2 log |t| (Ament et al. 2023). The derivative is d log h / dt = Phi / h,
computed from log Phi and log h. For t < -1e2 both are near t^2/2 and their difference loses its digits, so it is the ratio of the
two series, |t| (1 - 1/t^2 + 3/t^4) / (1 - 3/t^2 + 15/t^4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Moments, Section

LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
DIRECT = -1.0
"""t above which h is evaluated directly."""
SERIES = -1e2
"""t below which the bracket is replaced by its series, as the difference has lost half its digits."""
ASYMPTOTIC = -1e5
"""t below which the bracket has no digits left."""


def _direct(t: Vector | np.float64) -> Vector:
    return np.asarray(np.log(np.exp(-0.5 * t**2 - LOG_ROOT_2PI) + t * ndtr(t)))


def _between(t: Vector | np.float64) -> Vector:
    s = -t
    bracket = 1.0 - s * math.sqrt(math.pi / 2.0) * erfcx(s / math.sqrt(2.0))
    series = 1.0 / s**2 - 3.0 / s**4 + 15.0 / s**6
    return np.asarray(-0.5 * s**2 - LOG_ROOT_2PI + np.log(np.where(t < SERIES, series, bracket)))


def _far(t: Vector | np.float64) -> Vector:
    return np.asarray(-0.5 * t**2 - LOG_ROOT_2PI - 2.0 * np.log(-t))


def log_h(t: Vector) -> Vector:
    """Return log(phi(t) + t Phi(t)), stable for every t: shape of ``t``."""
    t = np.asarray(t, dtype=float)
    direct, far = t > DIRECT, t < ASYMPTOTIC
    result = np.empty_like(t)
    for where, branch in [(direct, _direct), (far, _far), (~direct & ~far, _between)]:
        result[where] = branch(t[where])
    return result


def log_h_at(t: float) -> tuple[float, float]:
    """Return log h and its derivative Phi / h at a single t, without the overhead of arrays."""
    branch = _direct if t > DIRECT else _far if t < ASYMPTOTIC else _between
    log = float(branch(np.float64(t)))
    return log, math.exp(float(log_ndtr(t)) - log) if t >= SERIES else _series(-t)


def log_h_slope(t: Vector, log: Vector) -> Vector:
    """Return d log h / dt where log h is known: shape of ``t``."""
    near = t >= SERIES
    exact = np.exp(np.where(near, log_ndtr(t) - log, 0.0))
    return np.asarray(np.where(near, exact, _series(-np.minimum(t, SERIES))))


def _series(s: Any) -> Any:
    w = 1.0 / s / s
    return s * (1.0 - w + 3.0 * w * w) / (1.0 - 3.0 * w + 15.0 * w * w)


class ClosedForm(Protocol):
    """A function of mean and deviation; lower is better."""

    def __call__(self, mu: Vector, sd: Vector) -> Vector:
        """Return the values: (B,), (B,) -> (B,)."""

    def slope(self, mu: float, sd: float) -> tuple[float, float, float]:
        """Return the value at one point, and its derivatives with respect to mu and sd."""


@dataclass(frozen=True)
class LogEI:
    """Negative logarithm of the expected improvement on ``best``."""

    best: float

    def __call__(self, mu: Vector, sd: Vector) -> Vector:
        return np.asarray(-(np.log(sd) + log_h((self.best - mu) / sd)))

    def slope(self, mu: float, sd: float) -> tuple[float, float, float]:
        t = (self.best - mu) / sd
        log, slope = log_h_at(t)
        return -(math.log(sd) + log), slope / sd, -(1.0 - t * slope) / sd


@dataclass(frozen=True)
class AnalyticAcquisition:
    """A closed form of the mean and deviation of one posterior, as an ``mipcash.acquisition.acquisition.Acquisition``.

    Attributes:
        posterior: the model, or moments derived from a model.
        form: the function of mean and deviation.
    """

    posterior: Moments
    form: ClosedForm

    def values(self, points: Points) -> Vector:
        """Return the acquisition at a batch: shape (B,)."""
        return self.form(*self.posterior.predict(points))

    def section(self, z: Vector) -> Section:
        """Return the acquisition at fixed binaries, (n_z,)."""
        moments = self.posterior.section(z)

        def at(u: Vector) -> tuple[float, Vector]:
            mean, deviation, by_mean, by_deviation = moments(u)
            value, first, second = self.form.slope(mean, deviation)
            return value, first * by_mean + second * by_deviation

        return at
