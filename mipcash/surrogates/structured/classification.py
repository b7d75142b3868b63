"""The structured model of what is told as yes or no: expectation propagation with a logistic likelihood.

Notation
    z_i (i = 1..t)     answers: +1 where a limit is broken, -1 where it is kept
    f ~ N(0, K + R)    as in :mod:`mipcash.surrogates.structured.posterior`;   c = slope f the latent,  P(z | x) = sigma(z c(x))
    tau_i, nu_i        sites: exp(-tau_i f_i^2 / 2 + nu_i f_i) in the place of sigma(z_i slope f_i)
    S = K + R + diag(1 / tau),   y_i = nu_i / tau_i:   the posterior is that of regression on y with these noise variances

Sites are found together, each against the others' cavity (minka2001; rasmussen2006, Section 3.6), by DAMPING of every step. Moments
of a site times its cavity are integrals over NODES of Gauss and Legendre on either side of 0. The hyperparameters are those of
regression on the answers, whose evidence has gradients; the slope, how sharp the border is, has the highest evidence of expectation
propagation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import log_expit, logsumexp

from mipcash.deadline import NEVER, Deadline
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.base import Noise, State
from mipcash.surrogates.structured.evidence import JITTER
from mipcash.surrogates.structured.kernel import Kernel
from mipcash.surrogates.structured.posterior import StructuredPosterior
from mipcash.surrogates.structured.surrogate import StructuredSurrogate
from mipcash.surrogates.structured.tables import Tables
from mipcash.surrogates.structured.warping import Warp

SLOPES = (2.0, 8.0)
"""Of which the one with the highest evidence is taken."""
SWEEPS, DAMPING, SETTLED = 25, 0.9, 1e-2
"""Rounds over all sites at most, the share of each step that is taken, and the relative change that ends them."""
LEAST = 1e-6
"""tau at least: an answer that says nothing."""
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
REACH = 6.0
"""Deviations of the cavity over which moments are integrated."""


@dataclass(frozen=True)
class Sites:
    """What expectation propagation came to.

    Attributes:
        tau, nu: shape (t,).
        evidence: its log evidence.
    """

    tau: Vector
    nu: Vector
    evidence: float

    @classmethod
    def of(cls, covariance: Vector, answers: Vector, slope: float) -> Sites:
        """Of answers z, (t,), at points of a covariance (t, t)."""
        tau, nu = np.full(len(answers), LEAST), np.zeros(len(answers))
        for _ in range(SWEEPS):
            mean, sigma, _ = _posterior(covariance, tau, nu)
            cavity, shift = _cavity(mean, sigma, tau, nu)
            _, m, v = moments(shift / cavity, 1.0 / cavity, answers, slope)
            to = np.maximum(1.0 / v - cavity, LEAST)
            step, before = DAMPING * (to - tau), tau
            nu = nu + DAMPING * (m * (to + cavity) - shift - nu)
            tau = tau + step
            if np.all(np.abs(step) <= SETTLED * before):
                break
        return cls(tau, nu, _evidence(covariance, answers, slope, tau, nu))


def _posterior(covariance: Vector, tau: Vector, nu: Vector) -> tuple[Vector, Vector, float]:
    """Means (t,), covariance (t, t), and log det(I + T^1/2 K T^1/2) given the sites."""
    root = np.sqrt(tau)
    lower = np.linalg.cholesky(np.eye(len(tau)) + root[:, None] * covariance * root)
    half = solve_triangular(lower, root[:, None] * covariance, lower=True)
    sigma = covariance - half.T @ half
    return sigma @ nu, sigma, 2.0 * float(np.sum(np.log(np.diag(lower))))


def _cavity(mean: Vector, sigma: Vector, tau: Vector, nu: Vector) -> tuple[Vector, Vector]:
    """Precision, and precision times mean, of each marginal without its site: (t,), (t,)."""
    precision = 1.0 / np.maximum(np.diag(sigma), JITTER)
    return np.maximum(precision - tau, LEAST), mean * precision - nu


def moments(mean: Vector, variance: Vector, answers: Vector, slope: float) -> tuple[Vector, Vector, Vector]:
    """log of the norm, mean and variance of sigma(z slope f) N(f; mean, variance): each (t,)."""
    sd = np.sqrt(variance)
    step = np.clip(-mean / sd, -REACH, REACH)[:, None]  # nodes lie close on both sides of where sigma rises
    low, high = 0.5 * (step + REACH), 0.5 * (REACH - step)
    n = np.concatenate([step - low * (1.0 + NODES), step + high * (1.0 + NODES)], axis=1)
    weights = np.concatenate([low * WEIGHTS, high * WEIGHTS], axis=1)
    f = mean[:, None] + sd[:, None] * n
    with np.errstate(divide="ignore"):  # a side may be empty
        log = log_expit(answers[:, None] * slope * f) - 0.5 * n**2 + np.log(weights / math.sqrt(2.0 * math.pi))
    norm = logsumexp(log, axis=1)
    weight = np.exp(log - norm[:, None])
    m = np.sum(weight * f, axis=1)
    return norm, m, np.sum(weight * (f - m[:, None]) ** 2, axis=1)


def _evidence(covariance: Vector, answers: Vector, slope: float, tau: Vector, nu: Vector) -> float:
    """log Z of expectation propagation (rasmussen2006, Eq. 3.65, in the sites' natural parameters)."""
    mean, sigma, log_det = _posterior(covariance, tau, nu)
    cavity, shift = _cavity(mean, sigma, tau, nu)
    norm, _, _ = moments(shift / cavity, 1.0 / cavity, answers, slope)
    own = norm + 0.5 * np.log1p(tau / cavity) - 0.5 * (shift + nu) ** 2 / (cavity + tau) + 0.5 * shift**2 / cavity
    return float(np.sum(own)) - 0.5 * log_det + 0.5 * float(nu @ mean)


@dataclass(frozen=True)
class LatentPosterior(StructuredPosterior):
    """The posterior of f given answers.

    Attributes:
        slope: c = slope f.
    """

    slope: float = 1.0

    def scaled(self, values: Vector) -> Vector:
        """Values of c on the scale of f: shape of ``values``."""
        return np.asarray(values / self.slope)


@dataclass(frozen=True)
class BinarySurrogate:
    """A :class:`mipcash.surrogates.base.Surrogate` of an output that is +1 or -1; its posterior is of the latent.

    Attributes:
        regression: whose hyperparameters it takes.
    """

    regression: StructuredSurrogate
    slopes: tuple[float, ...] = field(default=SLOPES)

    def prepare(self, points: Points) -> Tables:
        """See :meth:`mipcash.surrogates.base.Surrogate.prepare`."""
        return self.regression.prepare(points)

    def fit(
        self,
        prepared: Tables,
        values: Vector,
        state: State,
        rng: np.random.Generator | None = None,
        noise: Noise = 0.0,
        deadline: Deadline = NEVER,
    ) -> tuple[LatentPosterior, dict[str, Any]]:
        """See :meth:`mipcash.surrogates.base.Surrogate.fit`; nothing is drawn. Noise is the likelihood's alone."""
        _, after = self.regression.fit(prepared, values, state, rng, noise, deadline)
        kernel = Kernel(self.regression.structure, np.array(after["theta"]))
        x, same = prepared.x, Warp(0.0, 1.0, 0.0, 0.0, 1.0)
        covariance = kernel.whole(x, x)
        covariance[np.diag_indices_from(covariance)] += JITTER
        found = [(Sites.of(covariance, values, slope), slope) for slope in self.slopes]
        sites, slope = max(found, key=lambda each: each[0].evidence)
        spread = 1.0 / sites.tau - kernel.noise  # the fitted noise of the regression is no part of the latent
        posterior = LatentPosterior.fit(kernel, x, sites.nu / sites.tau, same, spread)
        return LatentPosterior(**(vars(posterior) | {"slope": slope})), after
