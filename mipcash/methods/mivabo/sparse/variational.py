"""The Laplace prior by variational inference, the paper's way (daxberger2019, App. A.1: Seeger and Nickisch 2011).

Notation of :mod:`mipcash.methods.mivabo.sparse.mixture`, with gamma_u = tau^2 lambda_u^2.

Each unit's prior is bounded from below by Gaussians (super-Gaussian bounding),

    tau^-m exp(-r / tau) = max_gamma tau^-m exp(-r^2 / (2 gamma) - gamma / (2 tau^2)),    r^2 = S_u,

so that the evidence is bounded by that of Gaussian models, maximal where, with E over the Gaussian posterior,

    gamma_u = tau sqrt(E[S_u]),   E[S_u] = S_u(mean) + z_u,   z_u = sum of the posterior variances of W_b[i, j] / sqrt(V_b[i]),
    tau = sum_u sqrt(E[S_u]) / sum_u m_u.

The double loop of the reference: z and tau in the outer loop, a penalised least-squares problem for the mean, by
reweighting, in the inner one. s2 maximises the evidence of the Gaussian model. Each step costs one O(t^3 + t^2 sum_b p_b).
The result is one setting of the scales: of the posterior's several modes it keeps one, and its variances are too small.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.linalg import cho_solve
from scipy.optimize import minimize_scalar

from mipcash.methods.mivabo.posterior import LinearPosterior
from mipcash.methods.mivabo.sparse.mixture import Mixture, Scales, SparseSettings
from mipcash.program.forms import Vector

OUTER, INNER = 30, 3
TOLERANCE = 1e-4
"""Largest change of log gamma at which the outer loop stops."""
FLOOR = 1e-12


def run(mixture: Mixture, settings: SparseSettings) -> tuple[tuple[Scales, ...], tuple[Vector, ...]]:
    """The bound's maximum from gamma = tau = 1: scales and mean weights, as of ``gibbs.run``."""
    at = mixture.start()
    if not len(at.local):
        return (at,), mixture.given(at).mean().weights
    tau = 1.0
    for _ in range(OUTER):
        before = at.glob * at.local
        at = _noise(mixture, settings, at)
        z = spread(mixture, mixture.given(at), at)
        for _ in range(INNER):
            expected = np.sqrt(mixture.squares(mixture.given(at).mean().weights) + z)
            at = replace(at, glob=tau**2, local=np.maximum(expected / tau, FLOOR))
        tau = max(FLOOR, float(np.sum(expected) / np.sum(mixture.units.sizes)))
        at = replace(at, glob=tau**2, local=np.maximum(expected / tau, FLOOR))
        if np.max(np.abs(np.log(at.glob * at.local / before))) < TOLERANCE:
            break
    return (at,), mixture.given(at).mean().weights


def spread(mixture: Mixture, given: LinearPosterior, at: Scales) -> Vector:
    """z: posterior variances of the weights over V, summed over each unit; shape (U,)."""
    inverse = cho_solve(given.factor, np.eye(len(given.y)))
    rows = []
    scales = mixture.units.over_rows(at.glob * at.local, 1.0)
    for block, d, c, cc, s in zip(given.blocks, given.left, given.right, mixture.continuous, scales, strict=True):
        # variance of W[i, j] is v - v^2 (d_i o c_j)' K^-1 (d_i o c_j), v = V s; over V, summed over j
        explained = np.einsum("ti,ts,si->i", d, inverse * cc, d, optimize=True)
        rows.append(np.maximum(s * (c.shape[1] - block.variances * explained), 0.0))
    return mixture.units.total(rows)


def _noise(mixture: Mixture, settings: SparseSettings, at: Scales) -> Scales:
    if settings.noise_sd == 0.0:
        return at
    k = mixture.covariance(at.glob * at.local, 1.0)
    median = math.log(settings.noise)

    def objective(x: float) -> float:
        return 0.5 * ((x - median) / settings.noise_sd) ** 2 - mixture.log_evidence(k, math.exp(x))

    reach = 4.0 * settings.noise_sd
    found = minimize_scalar(objective, bounds=(median - reach, median + reach), method="bounded")
    return replace(at, noise=math.exp(float(found.x)))
