"""The models of ADMMBO: a surrogate per output, fitted when a subproblem needs it, and one-sided constraints.

Notation
    f the loss, g an output with an outcome constraint.   A constraint with two ends is two inequalities, c = low - g <= 0 and
    c = g - high <= 0 (ariafar2019, Section 6), which share the model of g.

The acquisition of the two kinds of subproblems is minus the logarithm of the expected improvement, to be minimised.

Notation
    mu, sd          posterior of one output at a point
    OPT  (eq. 10)   u = f + q,   q = sum_i rho/2 ||x - z_i + y_i/rho||^2 known:  u ~ N(mu + q, sd^2)
        EI = sd h(t),   t = (u+ - mu - q) / sd                               ariafar2019, eq. 11.
    FEAS (eq. 12)   h_i = 1(c_i > 0) + q,   q = rho/(2M) ||x - z + y_i/rho||^2,   theta = p(c_i > 0)
        EI = max(0, a - 1) theta + max(0, a) (1 - theta),   a = h+ - q       eq. 13.
           = 0 for a <= 0,  a (1 - theta) for 0 < a <= 1,  a - theta for a > 1       eq. 14

u+ and h+ are the least values of u and h_i at observations. Eq. 11 as printed has m - u+ instead of u+ - m.

Where EI is 0, its logarithm has no slope. There log a is continued by log b - log(1 + (b - a) / b) with b = BELOW h+, which is once
differentiable: it leads towards the least q, weighted by 1 - theta.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mipcash.acquisition.analytic import AnalyticAcquisition, LogEI
from mipcash.acquisition.constrained import Interval, Limited
from mipcash.deadline import Deadline
from mipcash.methods.admmbo.coordinates import Quadratic
from mipcash.optimizers.data import Data
from mipcash.optimizers.hybrid import FAILURE
from mipcash.optimizers.outcome import LOSS
from mipcash.optimizers.pending import EXACT, believed
from mipcash.program.forms import Booleans, Indices, Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import MomentSection, Noise, Posterior, Section
from mipcash.surrogates.structured.posterior import StructuredPosterior
from mipcash.surrogates.structured.surrogate import StructuredSurrogate

BELOW, LEAST = 1e-6, 1e-15
"""b in units of h+, and the least b."""


@dataclass(frozen=True)
class Augmented:
    """Moments of u: a posterior plus a known function.

    Attributes:
        posterior: of f.
        known: q, on the posterior's scale.
    """

    posterior: Posterior
    known: Quadratic

    def predict(self, points: Points) -> tuple[Vector, Vector]:
        """Return means and standard deviations: (B,), (B,)."""
        mean, deviation = self.posterior.predict(points)
        return mean + self.known.values(points), deviation

    def section(self, z: Vector) -> MomentSection:
        """Return the moments at fixed binaries, (n_z,), as functions of the numerical parameters with their gradients."""
        inner, known = self.posterior.section(z), self.known.section(z)

        def at(u: Vector) -> tuple[float, float, Vector, Vector]:
            mean, deviation, by_mean, by_deviation = inner(u)
            value, slope = known(u)
            return mean + value, deviation, by_mean + slope, by_deviation

        return at


def augmented_ei(moments: Augmented, best: float) -> AnalyticAcquisition:
    """Return minus the logarithm of eq. 11 as an acquisition, over u+ = ``best``."""
    return AnalyticAcquisition(moments, LogEI(best))


@dataclass(frozen=True)
class FeasibilityEI:
    """Minus the logarithm of eq. 13 and 14, as an ``mipcash.acquisition.acquisition.Acquisition``.

    Attributes:
        posterior: of the constrained output.
        interval: feasible values, on the posterior's scale: 1 - theta is its probability.
        known: q.
        best: h+.
    """

    posterior: Posterior
    interval: Interval
    known: Quadratic
    best: float

    def values(self, points: Points) -> Vector:
        """Return the values at a batch: shape (B,)."""
        kept = self.interval.log_probability(*self.posterior.predict(points))
        return -self.logarithm(self.best - self.known.values(points), kept)[0]

    def section(self, z: Vector) -> Section:
        """Return the acquisition at fixed binaries, (n_z,), as a function of the numerical parameters with its gradient."""
        inner, known = self.posterior.section(z), self.known.section(z)

        def at(u: Vector) -> tuple[float, Vector]:
            mean, deviation, by_mean, by_deviation = inner(u)
            kept, first, second = self.interval.slope(mean, deviation)
            q, by_q = known(u)
            log, by_a, by_kept = (float(v) for v in self.logarithm(np.array(self.best - q), np.array(kept)))
            return -log, by_a * by_q - by_kept * (first * by_mean + second * by_deviation)

        return at

    def improves(self, points: Points) -> bool:
        """Return True if the expected improvement is above 0 at any point of a batch."""
        return bool(np.any(self.known.values(points) < self.best))

    def logarithm(self, a: Vector, kept: Vector) -> tuple[Vector, Vector, Vector]:
        """Return log EI and its derivatives with respect to a = h+ - q and to log(1 - theta): shape of ``a`` each."""
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


@dataclass(frozen=True)
class OneSided:
    """One inequality on an output.

    Attributes:
        output: its name.
        low, high: one of them is finite.
    """

    output: str
    low: float
    high: float

    def kept(self, values: Vector) -> Booleans:
        """Return a mask of the feasible values: shape of ``values``."""
        return np.asarray((values >= self.low) & (values <= self.high))

    def __str__(self) -> str:
        return f"{self.output} <= {self.high:g}" if math.isfinite(self.high) else f"{self.output} >= {self.low:g}"


def one_sided(data: Data, equality: float) -> list[OneSided]:
    """Return the constraints as N inequalities.

    Args:
        equality: tolerance of an equality constraint, in units of the range of the output's values.
    """
    found = []
    for limit in data.limits:
        values = data.values(limit.output)[1]
        equal = limit.low == limit.high and len(values)
        slack = equality * float(np.ptp(values)) if equal else 0.0
        if math.isfinite(limit.low):
            found.append(OneSided(limit.output, limit.low - slack, math.inf))
        if math.isfinite(limit.high):
            found.append(OneSided(limit.output, -math.inf, limit.high + slack))
    return found


@dataclass
class Models:
    """Posteriors of one proposal, fitted at first use.

    Attributes:
        surrogate: of every output, without a warp.
        data: the observations.
        deadline: of the fits.
        states: of the hyperparameters by output; every fit stores its own.
    """

    surrogate: StructuredSurrogate
    data: Data
    deadline: Deadline
    states: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def known(self, output: str) -> tuple[Indices, Vector]:
        """Return the rows where an output is known, (k,), and its values there."""
        if output == LOSS:
            return self.data.known, self.data.losses[self.data.known]
        return self.data.values(output)

    def fitted(self, output: str, awaited: Points | None = None) -> StructuredPosterior:
        """Return the posterior of an output that is known somewhere; a constrained output is scaled about its constraint.

        Args:
            awaited: points under evaluation; they count at their means.
        """
        rows, values = self.known(output)
        if output in self.data.scales:
            values = self.data.scales[output](values)
        return self._fit(output, rows, values, awaited, self.data.noise(rows, output))

    def _fit(
        self, name: str, rows: Indices, values: Vector, awaited: Points | None, noise: Noise = 0.0
    ) -> StructuredPosterior:
        prepared = self.surrogate.prepare(self.data.points[rows])
        posterior, self.states[name] = self.surrogate.fit(
            prepared, values, self.states.get(name, {}), noise=noise, deadline=self.deadline
        )
        return posterior if awaited is None else believed(posterior, awaited, EXACT * posterior.fitted_noise)

    def limit(self, limit: OneSided, awaited: Points | None = None) -> Limited:
        """Return an inequality with the posterior of its output: 1 - theta is its probability."""
        posterior = self.fitted(limit.output, awaited)
        ends = self.data.scales[limit.output](np.array([limit.low, limit.high]))
        return self.scaled(posterior, *ends.tolist())

    def success(self) -> Limited | None:
        """Return the model that an evaluation succeeds, fitted to +-1; None if no evaluation has failed, or all have."""
        failed = self.data.failed
        if not failed.any() or failed.all():
            return None
        posterior = self._fit(FAILURE, np.arange(len(failed)), np.where(failed, 1.0, -1.0), None)
        return self.scaled(posterior, -math.inf, 0.0)

    @staticmethod
    def scaled(posterior: StructuredPosterior, low: float, high: float) -> Limited:
        """Return a posterior with the ends of a constraint on its scale."""
        low, high = (float(v) for v in posterior.scaled(np.array([low, high])))
        return Limited(posterior, low, high)


def slope(posterior: StructuredPosterior) -> float:
    """Return a loss of 1 on the scale of its posterior, which has no warp."""
    return float(posterior.warp.slope(np.zeros(1))[0])
