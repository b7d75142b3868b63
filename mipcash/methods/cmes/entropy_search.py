"""Constrained max-value entropy search (Perrone et al. 2019): information on the constrained minimum per unit of cost.

Notation (one point)
    y                      the loss, N(mu_y, sd_y^2);   c_i (i = 1..m) constrained outputs, N(mu_i, sd_i^2).
    y_*                    the least feasible loss, K draws of it; inf if a draw has no feasible point.
    gamma_y                (y_* - mu_y) / sd_y;   a, b the ends of a constraint likewise (an upper end delta: b = gamma_c, a =
        -inf).
    E, U                   outputs that are evaluated, and those that are not, the loss among either.
    Z_y = Phi(gamma_y), Z_i = Phi(b) - Phi(a)           L = log Z_y + sum_i log Z_i,   Z = 1 - e^L.
    T_y = gamma_y phi(gamma_y) / Z_y, T_i = (b phi(b) - a phi(a)) / Z_i
    log U = sum of log Z over U

With kappa = 1 - [outputs of E are feasible and below y_*] U, which combines A.1 (all outputs are evaluated) and A.5 of the
supplement for any number of outputs,

    H[E] - H[E | y_*] = -log Z - S / (2 (e^-L - 1))
    S = sum of T over E + 2 G,     G = (1 - U) (-log(1 - U)) / U

where gamma h(-gamma) of the paper is T. With noise of variance 1 / alpha on an output its deviation is multiplied by rho = sd /
sqrt(sd^2 + 1 / alpha) in gamma alone (A.2). The logarithm is used, so that there is a slope far from promising points:

    log value = L + log(q - S / (2 Z)),   q = -log(1 - e^L) / e^L

The bracket tends to 1 - S / 2 as L falls, and S is then negative and large. It may be negative if many constraints hold by less
than a deviation each (from five on at gamma = 0.8), or for a single output: the distribution given y_* is then wider than the one
before. It is kept above FLOOR q, a share of the first term -log Z, which bounds the information removed by the truncation.

If a violated constraint hides the loss (A.6), the information is p times that with the loss plus 1 - p times that without it. Here
p is the probability that the constraints which hide it are satisfied. Options are compared by information per unit of cost.

Derivatives with respect to the moments of the posteriors are central differences of the closed form: all 4 (1 + m) in one batch.
The derivatives of the moments themselves are exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import log_ndtr

from mipcash.acquisition.acquisition import rounded
from mipcash.acquisition.constrained import Limited, Truncation, log_less
from mipcash.program.forms import Indices, Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Posterior, Section

SURE = 21.0
"""Largest gamma of the loss: there log Z_y and T_y are 1e-97, above LEAST, and no difference remains."""
LEAST = 1e-100
"""Smallest -L: it is never certain that all constraints hold."""
FLOOR = 1e-3
"""Share of -log Z that is always counted."""
STEP = 1e-4
"""Step of central differences, in deviations."""
FAINT = -40.0
"""log U below which -log(1 - U) is U to the last digit."""
NEVER = -1e-12
"""Largest log probability that a loss is seen, if a constraint may hide it."""


def log_gain(log: Vector, spread: Vector) -> Vector:
    """Return the logarithm of the information, elementwise.

    Args:
        log: L <= 0.
        spread: S.
    """
    log = np.minimum(log, -LEAST)
    x, z = np.exp(log), -np.expm1(log)
    small = x < 1e-8
    q = np.where(small, 1.0 + 0.5 * x, -np.log(z) / np.where(small, 1.0, x))
    return np.asarray(log + np.log(np.maximum(q - spread / (2.0 * z), FLOOR * q)))


def noisy(sd: Vector, noise: float) -> Vector:
    """Return sd rho, the deviation of A.2 for outputs with a noise of this variance."""
    return np.asarray(sd**2 / np.sqrt(sd**2 + noise) if noise else sd)


def complement_entropy(log_u: Vector) -> Vector:
    """Return G, shape of log U."""
    log_u = np.minimum(log_u, -LEAST)
    left = log_less(log_u)  # log(1 - U)
    small = log_u < FAINT
    log_left = np.where(small, log_u, np.log(-np.where(small, -1.0, left)))  # log(-log(1 - U))
    return np.asarray(np.exp(left + log_left - log_u))


@dataclass(frozen=True)
class Option:
    """Outputs that may be evaluated together.

    Attributes:
        outputs: names of constrained outputs.
        loss: whether the loss is evaluated too.
        log_cost: logarithm of the cost.
        together: whether these are all outputs.
    """

    outputs: frozenset[str]
    loss: bool = True
    log_cost: float = 0.0
    together: bool = False


@dataclass(frozen=True)
class EntropySearch:
    """Minus the logarithm of the best option's information on the constrained minimum per unit of cost, averaged over its draws.

    Attributes:
        loss: the posterior of y.
        minima: y_*, shape (K,).
        limits: the constrained outputs by name.
        options: outputs that may be evaluated, at least one option.
        hiding: constrained outputs that hide the loss where they violate their constraint.
        noise: whether an observation of an output is its value with the fitted noise (A.2), or the value itself (A.1).
    """

    loss: Posterior
    minima: Vector
    limits: Mapping[str, Limited]
    options: Sequence[Option]
    hiding: frozenset[str] = field(default_factory=frozenset)
    noise: bool = False

    def values(self, points: Points) -> Vector:
        """Return the values at a batch: shape (B,)."""
        return np.asarray(self.scores(points).min(axis=0))

    def scores(self, points: Points) -> Vector:
        """Return the score of every option, lower is better: shape (O, B)."""
        return self._scores(*self._moments(points))

    def ranked(self, points: Points) -> Indices:
        """Return the options at one point, the best first."""
        return np.argsort(rounded(self.scores(points)[:, 0]), kind="stable")

    def section(self, z: Vector) -> Section:
        """Return the acquisition at fixed binaries, (n_z,), as a function of the numerical parameters with its gradient."""
        sections = [p.section(z) for p in self._posteriors]
        n = len(sections)

        def at(u: Vector) -> tuple[float, Vector]:
            found = [moments(u) for moments in sections]
            mu, sd = np.array([f[0] for f in found]), np.array([f[1] for f in found])
            h = STEP * sd
            mus, sds = np.repeat(mu[:, None], 4 * n + 1, axis=1), np.repeat(sd[:, None], 4 * n + 1, axis=1)
            for k in range(n):
                mus[k, [1 + k, 1 + n + k]] += [h[k], -h[k]]
                sds[k, [1 + 2 * n + k, 1 + 3 * n + k]] += [h[k], -h[k]]
            scores = self._scores(mus, sds)
            best = scores[int(np.argmin(rounded(scores[:, 0])))]
            ends = best[1:].reshape(4, n)
            by_mu, by_sd = (ends[0] - ends[1]) / (2.0 * h), (ends[2] - ends[3]) / (2.0 * h)
            gradient = sum(a * f[2] + b * f[3] for a, b, f in zip(by_mu.tolist(), by_sd.tolist(), found, strict=True))
            return float(best[0]), np.asarray(gradient)

        return at

    # -- the closed form over moments ---------------------------------------------------------------------------

    @property
    def _posteriors(self) -> list[Posterior]:
        return [self.loss, *(limit.posterior for limit in self.limits.values())]

    def _moments(self, points: Points) -> tuple[Vector, Vector]:
        """Return means and deviations of the loss and of every constrained output: (1 + m, B) each."""
        found = [p.predict(points) for p in self._posteriors]
        return np.array([f[0] for f in found]), np.array([f[1] for f in found])

    def _scores(self, mu: Vector, sd: Vector) -> Vector:
        """Return the scores from the moments: (1 + m, B), (1 + m, B) -> (O, B)."""
        parts = _Parts(self, mu, sd)
        return np.array([option.log_cost - self._information(parts, option) for option in self.options])

    def _information(self, parts: _Parts, option: Option) -> Vector:
        """Return the logarithm of an option's information: (B,)."""
        full = parts.gain(option)
        if not (self.hiding and option.loss):
            return full
        without = parts.gain(Option(option.outputs, loss=False)) if option.outputs else np.full_like(full, -np.inf)
        seen = np.minimum(parts.log_seen, NEVER)
        return np.logaddexp(seen + full, log_less(seen) + without)


class _Parts:
    """Quantities that the options share at B points: contributions of the outputs, and the probabilities that they are feasible."""

    def __init__(self, search: EntropySearch, mu: Vector, sd: Vector) -> None:
        self.search, self.count = search, len(search.minima)
        gamma = (search.minima[:, None] - mu[0]) / noisy(sd[0], search.loss.fitted_noise if search.noise else 0.0)
        self.loss = Truncation.below(np.minimum(gamma, SURE))
        self.log_below = log_ndtr(np.minimum((search.minima[:, None] - mu[0]) / sd[0], SURE))
        self.limits, self.log_kept = dict[str, Truncation](), dict[str, Vector]()
        self.log_seen = np.zeros(mu.shape[1])
        for (name, limit), m, d in zip(search.limits.items(), mu[1:], sd[1:], strict=True):
            deviation = noisy(d, limit.posterior.fitted_noise if search.noise else 0.0)
            self.limits[name] = limit.interval.truncation(m, deviation)
            self.log_kept[name] = limit.interval.log_probability(m, d)
            if name in search.hiding:
                self.log_seen = self.log_seen + self.log_kept[name]

    def gain(self, option: Option) -> Vector:
        """Return the logarithm of an option's information, averaged over the draws: (B,)."""
        asked = [limit for name, limit in self.limits.items() if name in option.outputs]
        log = self.loss.log if option.loss else self.log_below
        spread: Vector = _spread(self.loss) if option.loss else np.zeros_like(log)
        unseen: Vector = np.zeros(log.shape[1]) if option.loss else self.log_below
        for limit in asked:
            log, spread = log + limit.log, spread + _spread(limit)
        for name, kept in self.log_kept.items():
            if name not in option.outputs:
                log, unseen = log + kept, unseen + kept
        gains = log_gain(log, spread + 2.0 * complement_entropy(unseen))
        return np.asarray(np.logaddexp.reduce(gains, axis=0) - math.log(self.count))


def _spread(output: Truncation) -> Vector:
    """Return T of an output."""
    return np.asarray(output.b * output.at_high - output.a * output.at_low)
