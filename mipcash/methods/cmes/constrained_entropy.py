"""Constrained max-value entropy search (Perrone et al. 2019): information of one evaluation on the constrained minimum.

Notation
    y                      the loss at a point, N(mu_y, sd_y^2);   c_i (i = 1..m) constrained outputs, N(mu_i, sd_i^2).
    y_*                    the least feasible loss, K draws of it; inf if a draw has no feasible point.
    gamma_y                (y_* - mu_y) / sd_y;   a, b the ends of a constraint likewise (an upper end delta: b = gamma_c, a =
        -inf).
    Z_y = Phi(gamma_y), Z_i = Phi(b) - Phi(a)           L = log Z_y + sum_i log Z_i,   Z = 1 - e^L.
    T_y = gamma_y phi(gamma_y) / Z_y, T_i = (b phi(b) - a phi(a)) / Z_i,   S = T_y + sum_i T_i

The information on y_* in (y, c) at a point is (supplement A.1; for several constraints, and for two ends, by the same steps):

    H[P(y, c)] - H[P(y, c | y_*)] = -log Z - S / (2 (e^-L - 1))

where gamma h(-gamma) of the paper is T. With noise of variance 1 / alpha on an output its deviation is multiplied by rho = sd /
sqrt(sd^2 + 1 / alpha) in gamma alone (A.2). The logarithm is used, so that there is a slope far from promising points:

    log value = L + log(q - S / (2 Z)),   q = -log(1 - e^L) / e^L

The bracket tends to 1 - S / 2 as L falls, and S is then negative and large. It may be negative if many constraints hold by less
than a deviation each (from five on at gamma = 0.8): the distribution given y_* is then wider than the one before. It is kept above
FLOOR q, a share of the first term -log Z, which bounds the information removed by the truncation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from mipcash.acquisition.constrained import Limited, Truncation
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Posterior, Section

SURE = 21.0
"""Largest gamma of the loss: there log Z_y and T_y are 1e-97, above LEAST, and no difference remains."""
LEAST = 1e-100
"""Smallest -L: it is never certain that all constraints hold."""
FLOOR = 1e-3
"""Share of -log Z that is always counted."""


def log_gain(log: Vector, spread: Vector) -> tuple[Vector, Vector, Vector]:
    """Return the logarithm of the information, and its derivatives with respect to L and S; all elementwise.

    Args:
        log: L <= 0.
        spread: S.
    """
    log = np.minimum(log, -LEAST)
    x, z = np.exp(log), -np.expm1(log)
    small = x < 1e-8
    q = np.where(small, 1.0 + 0.5 * x, -np.log(z) / np.where(small, 1.0, x))
    full, least = q - spread / (2.0 * z), FLOOR * q
    by_q = 1.0 / z - q  # dq / dL
    cut = full < least
    bracket = np.where(cut, least, full)
    by_log = np.where(cut, by_q / q, (by_q - spread * x / (2.0 * z * z)) / bracket)
    return log + np.log(bracket), 1.0 + by_log, np.where(cut, 0.0, -1.0 / (2.0 * z * bracket))


class Share(NamedTuple):
    """Contribution of one output to L and S, and its derivatives with respect to the output's mean and deviation; elementwise."""

    log: Vector
    log_by_mu: Vector
    log_by_sd: Vector
    spread: Vector
    spread_by_mu: Vector
    spread_by_sd: Vector

    @classmethod
    def of(cls, t: Truncation, sd: Vector, by: Vector) -> Share:
        """Make the contribution from log Z and T.

        Args:
            t: the output's truncation, which depends on mean and deviation by (end - mean) / sd.
            sd: that deviation.
            by: derivative of ``sd`` with respect to the posterior's deviation; 1 without noise.
        """
        low, high = t.at_low, t.at_high
        spread = t.b * high - t.a * low
        along_mu = (1.0 - t.b**2) * high - (1.0 - t.a**2) * low - spread * (high - low)
        along_sd = t.b * (1.0 - t.b**2) * high - t.a * (1.0 - t.a**2) * low - spread**2
        return cls(t.log, (low - high) / sd, -spread / sd * by, spread, -along_mu / sd, -along_sd / sd * by)


def noisy(sd: Vector, noise: float) -> tuple[Vector, Vector]:
    """Return sd rho, the deviation of A.2 for outputs with a noise of this variance, and its derivative with respect to sd."""
    if not noise:
        return sd, np.ones_like(sd)
    total = np.sqrt(sd**2 + noise)
    return sd**2 / total, 2.0 * sd / total - (sd / total) ** 3


@dataclass(frozen=True)
class ConstrainedEntropy:
    """Minus the logarithm of the information on the constrained minimum, averaged over its draws.

    Attributes:
        loss: the posterior of y.
        minima: y_*, shape (K,).
        limits: the posteriors of the constrained outputs, with their constraints.
        noise: whether an observation of an output is its value with the fitted noise (A.2), or the value itself (A.1).
    """

    loss: Posterior
    minima: Vector
    limits: Sequence[Limited] = ()
    noise: bool = False

    def values(self, points: Points) -> Vector:
        """Return the values at a batch: shape (B,)."""
        loss = self._loss_share(*self.loss.predict(points))
        shares = [self._share(kept, *kept.posterior.predict(points)) for kept in self.limits]
        log = loss.log + sum(s.log for s in shares)  # (K, B)
        gains, _, _ = log_gain(log, loss.spread + sum(s.spread for s in shares))
        return np.asarray(math.log(len(self.minima)) - logsumexp(gains, axis=0))

    def section(self, z: Vector) -> Section:
        """Return the acquisition at fixed binaries, (n_z,), as a function of the numerical parameters with its gradient."""
        loss, limits = self.loss.section(z), [kept.posterior.section(z) for kept in self.limits]

        def at(u: Vector) -> tuple[float, Vector]:
            mean, deviation, loss_by_mean, loss_by_deviation = loss(u)
            first = self._loss_share(np.array([mean]), np.array([deviation]))
            log, spread = first.log, first.spread
            others = []
            for kept, moments in zip(self.limits, limits, strict=True):
                m, d, by_mean, by_deviation = moments(u)
                share = self._share(kept, np.array([m]), np.array([d]))
                log, spread = log + share.log, spread + share.spread
                others.append((share, by_mean, by_deviation))
            gains, by_log, by_spread = log_gain(log, spread)
            total = float(logsumexp(gains))
            weight = np.exp(gains - total)  # (K, 1)
            by_log, by_spread = weight * by_log, weight * by_spread
            by_mu = np.sum(by_log * first.log_by_mu + by_spread * first.spread_by_mu)
            by_sd = np.sum(by_log * first.log_by_sd + by_spread * first.spread_by_sd)
            gradient = by_mu * loss_by_mean + by_sd * loss_by_deviation
            for share, by_mean, by_deviation in others:
                by_mu = np.sum(by_log) * share.log_by_mu[0] + np.sum(by_spread) * share.spread_by_mu[0]
                by_sd = np.sum(by_log) * share.log_by_sd[0] + np.sum(by_spread) * share.spread_by_sd[0]
                gradient = gradient + by_mu * by_mean + by_sd * by_deviation
            return math.log(len(self.minima)) - total, -gradient

        return at

    def _loss_share(self, mu: Vector, sd: Vector) -> Share:
        """Return the contribution of the loss: (B,), (B,) -> arrays (K, B)."""
        deviation, by = noisy(sd, self.loss.fitted_noise if self.noise else 0.0)
        gamma = np.minimum((self.minima[:, None] - mu) / deviation, SURE)
        return Share.of(Truncation.below(gamma), deviation, by)

    def _share(self, kept: Limited, mu: Vector, sd: Vector) -> Share:
        """Return the contribution of a constrained output: (B,), (B,) -> arrays (B,)."""
        deviation, by = noisy(sd, kept.posterior.fitted_noise if self.noise else 0.0)
        return Share.of(kept.interval.truncation(mu, deviation), deviation, by)
