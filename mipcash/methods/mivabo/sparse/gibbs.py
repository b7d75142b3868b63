"""Sparse priors by Gibbs sampling over a scale mixture of normals.

Notation of ``mipcash.methods.mivabo.sparse.mixture``.

    laplace     lambda_u^2 ~ Gamma((m_u + 1) / 2, rate 1/2), so that p(W_u) ~ exp(-sqrt(S_u) / tau). This is the Bayesian lasso
                (Park and Casella 2008; over units of several weights Kyung et al. 2010), the paper's sparse prior (Sec. 3.2).
    horseshoe   lambda_u ~ C+(0, 1) through auxiliary inverse gammas (Makalic and Schmidt 2016), as in BOCS (Baptista and
                Poloczek 2018)
    both        tau ~ C+(0, 1),  log s2 ~ N(log of its median, sd^2)

One sweep draws tau and s2 with the weights integrated out, by slices on K. The weights alone determine tau up to 1 / sqrt(M), so a
chain that conditions on them hardly moves (Johndrow, Orenstein and Bhattacharya 2020). Then W is drawn given the scales, and lambda
given W, the only step in which the priors differ. W is drawn by Matheron's rule, which is the sampler of Bhattacharya, Chakraborty
and Mallick (2016): O(t^3 + t^2 sum_b p_b + t M).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mipcash.deadline import NEVER, Deadline
from mipcash.methods.mivabo.sparse.mixture import Mixture, Scales, SparseSettings
from mipcash.program.forms import Vector

LIMITS = (1e-14, 1e14)
"""Range of the scales; values beyond it change nothing but overflow."""
SLICE_WIDTH = 1.5
SLICE_STEPS = 6


def horseshoe_update(at: Scales, s: Vector, sizes: Vector, rng: np.random.Generator) -> tuple[Vector, Vector]:
    """Draw lambda^2 and nu given S: inverse gammas (Makalic and Schmidt 2016, Sec. II, for units of m_u weights)."""
    local = _inverse_gamma((sizes + 1.0) / 2.0, 1.0 / at.mixing + s / (2.0 * at.glob), rng)
    return local, _inverse_gamma(np.ones(len(s)), 1.0 + 1.0 / local, rng)


def laplace_update(at: Scales, s: Vector, sizes: Vector, rng: np.random.Generator) -> tuple[Vector, Vector]:
    """Draw lambda^2 given S: 1 / lambda^2 is inverse Gaussian, mean tau / sqrt(S), shape 1 (Park and Casella 2008, Sec. 2)."""
    mean = np.sqrt(at.glob / np.maximum(s, 1e-12 * at.glob))
    return 1.0 / np.maximum(rng.wald(mean, 1.0), 1e-12), at.mixing


UPDATES = {"horseshoe": horseshoe_update, "laplace": laplace_update}


def _inverse_gamma(shape: Vector, rate: Vector, rng: np.random.Generator) -> Vector:
    drawn: Vector = np.clip(rate / rng.gamma(shape), *LIMITS)
    return drawn


def collapsed(
    mixture: Mixture, settings: SparseSettings, at: Scales, outside: Vector, inside: Vector, rng: np.random.Generator
) -> Scales:
    """Draw tau and s2 given lambda (in B, ``inside``), the weights integrated out: a slice on the log of each."""

    def of_tau(x: float) -> float:
        # the density of log tau is tau p(tau), with p the half-Cauchy's
        glob = math.exp(2.0 * x)
        return mixture.log_evidence(outside + glob * inside, at.noise) + x - math.log1p(glob)

    if len(at.local):
        at = replace(at, glob=math.exp(2.0 * slice_step(of_tau, 0.5 * math.log(at.glob), rng)))
    if settings.noise_sd == 0.0:
        return at
    k = outside + at.glob * inside

    def of_noise(x: float) -> float:
        return mixture.log_evidence(k, math.exp(x)) - 0.5 * ((x - math.log(settings.noise)) / settings.noise_sd) ** 2

    return replace(at, noise=math.exp(slice_step(of_noise, math.log(at.noise), rng)))


def run(
    mixture: Mixture, settings: SparseSettings, rng: np.random.Generator, deadline: Deadline = NEVER
) -> tuple[tuple[Scales, ...], tuple[Vector, ...]]:
    """Run the chain from lambda = tau = 1; at the deadline its latest state is kept if no other is yet.

    Returns:
        The kept scales, and the average of the weights' means given each of them, shapes (p_b, q_b).
    """
    at = mixture.start()
    update = UPDATES[settings.prior]
    outside = mixture.covariance(np.zeros(len(at.local)), 1.0)
    kept: list[Scales] = []
    total = [np.zeros((d.shape[1], c.shape[1])) for d, c in zip(mixture.base.left, mixture.base.right, strict=True)]
    for sweep in range(settings.burn_in + settings.draws):
        inside = mixture.covariance(at.local, 0.0)
        at = collapsed(mixture, settings, at, outside, inside, rng)
        drawn, mean = mixture.weights(at, outside + at.glob * inside, rng)
        over = deadline.passed
        if sweep >= settings.burn_in or (over and not kept):
            kept.append(at)
            for sum_, w in zip(total, mean, strict=True):
                sum_ += w
        if len(at.local):
            local, mixing = update(at, mixture.squares(drawn), mixture.units.sizes, rng)
            at = replace(at, local=local, mixing=mixing)
        if over:
            break
    return tuple(kept), tuple(w / len(kept) for w in total)


def slice_step(log_density: Callable[[float], float], x: float, rng: np.random.Generator) -> float:
    """Make one step of slice sampling with stepping out and shrinkage (Neal 2003, Sec. 4)."""
    height = log_density(x) - float(rng.exponential())
    low = x - SLICE_WIDTH * float(rng.random())
    high = low + SLICE_WIDTH
    for _ in range(SLICE_STEPS):
        if log_density(low) <= height:
            break
        low -= SLICE_WIDTH
    for _ in range(SLICE_STEPS):
        if log_density(high) <= height:
            break
        high += SLICE_WIDTH
    while high - low > 1e-9:
        trial = low + (high - low) * float(rng.random())
        if log_density(trial) > height:
            return trial
        low, high = (trial, high) if trial < x else (low, trial)
    return x
