"""Hyperparameters of the structured kernel: maximum a posteriori, with analytic gradients (docs/model.md, 2.5).

Notation
    K, R, theta, A_v, P, E  as in ``mipcash.surrogates.structured.kernel``;   y (t,) standardised losses
    n = t (t + 1) / 2       pairs i >= j of observations: half of each matrix, as all are symmetric
    S = K + R + s2 I + diag(v)   with v known noise variances of the observations, in addition to the fitted s2

    log posterior = -y'S^-1 y / 2 - log det S / 2 + sum_i log N(theta_i; mu_i, sd_i)
    its gradient:  tr(W dS/dtheta_i) / 2 - (theta_i - mu_i) / sd_i^2,   W = r r' - S^-1,  r = S^-1 y

No derivative matrix of K is formed. Only its sum with W is computed (``mipcash.surrogates.structured.pair_sums``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotri

from mipcash.deadline import NEVER, Deadline
from mipcash.program.forms import Indices, Vector
from mipcash.surrogates.maximum import maximum
from mipcash.surrogates.protocols import Noise
from mipcash.surrogates.structured.kernel import Kernel
from mipcash.surrogates.structured.pair_sums import PairSums
from mipcash.surrogates.structured.training_tables import Tables

JITTER = 1e-8
FITTED = 160
"""Largest number of observations used in a fit: the best half, and an even spread of the rest."""
FITTED_WIDE = 80
"""The same number for a wide space, where every pair of observations has hundreds of terms."""


def chosen_part(y: Vector, limit: int) -> Indices:
    """Return at most ``limit`` observations, (t,) -> (n,): one half are the best ones, the other an even spread of the rest."""
    if len(y) <= limit:
        return np.arange(len(y))
    order = np.argsort(y, kind="stable")
    best, rest = order[: limit // 2], order[limit // 2 :]
    spread = rest[np.linspace(0, len(rest) - 1, limit - len(best)).astype(np.int64)]
    return np.sort(np.concatenate([best, spread]))


def taken(noise: Noise, rows: Indices) -> Noise:
    """Return the noise variances of some observations: (t,) -> (n,), or the scalar that is common to all."""
    return np.asarray(noise)[rows] if np.ndim(noise) else noise


class Evidence:
    """Log posterior of theta given observations. Terms that do not depend on theta are computed once.

    Attributes:
        tables: tables over the pairs of the t observed points.
        y: standardised losses, shape (t,).
        noise: known noise variance of each observation in addition to s2, on the scale of y: a number, or shape (t,).
        held: theta whose length-scales lo are held fixed, which saves half of the time; None to fit lo too.
    """

    def __init__(self, tables: Tables, y: Vector, noise: Noise = 0.0, held: Vector | None = None) -> None:
        """Take all observations, or FITTED (wide: FITTED_WIDE) of them."""
        keep = chosen_part(y, FITTED_WIDE if tables.structure.wide else FITTED)
        self.tables, self.y, self.noise, self.held = tables.part(keep), y[keep], taken(noise, keep), held
        self.structure = tables.structure

    def __call__(self, theta: Vector) -> tuple[float, Vector]:
        """Return the negative log posterior and its gradient: scalar, (n_theta,)."""
        s, tables = self.structure, self.tables
        if self.held is not None:
            theta = theta.copy()
            theta[s.slices["lo"]] = self.held[s.slices["lo"]]
        kernel, at = Kernel(s, theta), s.slices
        c1, c2, sc, cm, cq = kernel.factors
        sums = PairSums(kernel, self._grams(kernel), tables.numbers)
        joint = kernel.joint_product(tables.joint_squares)
        bracket = sc + cm * sums.total + cq * sums.discrete
        rest = kernel.residual_product(tables.distances, tables.squares)
        k = 1.0 + c1 * (sums.total + sums.extra) + c2 * sums.pairs + joint * bracket + rest
        lower, alpha, w, trace_w = self._solved(k, kernel.noise)
        mean, sd = s.prior
        value = 0.5 * self.y @ alpha + np.sum(np.log(np.diag(lower))) + 0.5 * np.sum(((theta - mean) / sd) ** 2)
        weighted = w * joint
        sums.weigh(w, weighted, (c1, c2, cm, cq))
        trace = self._trace(kernel, sums)
        trace[at["l"]] = tables.joint_squares @ (weighted * bracket) / kernel.joint_length**2
        trace[at["s1"]] = c1 * (w @ (sums.total + sums.extra))
        trace[at["s2"]] = c2 * (w @ sums.pairs)
        trace[at["sc"]] = sc * np.sum(weighted)
        trace[at["sm"]] = cm * (weighted @ sums.total)
        trace[at["sq"]] = cq * (weighted @ sums.discrete)
        rest *= w
        trace[at["w"]] = -kernel.w * (tables.distances @ rest)
        trace[at["r"]] = tables.squares @ rest / kernel.r**2
        trace[at["sr"]] = np.sum(rest)
        trace[at["noise"]] = kernel.noise * trace_w
        gradient = -0.5 * trace + (theta - mean) / sd**2
        if self.held is not None:
            gradient[at["lo"]] = 0.0
        return float(value), gradient

    def _solved(self, k: Vector, noise: float) -> tuple[Vector, Vector, Vector, float]:
        """Return the Cholesky factor of S, r, W at the pairs (doubled off the diagonal) and tr W, from K + R at the pairs (n,).

        Raises:
            numpy.linalg.LinAlgError: the covariance is numerically singular.
        """
        tables, n = self.tables, len(self.y)
        matrix = np.zeros(n * n)
        matrix[tables.places] = k
        matrix[:: n + 1] += noise + JITTER + self.noise
        # The upper triangle is not read.
        lower, _ = cho_factor(matrix.reshape(n, n), lower=True, check_finite=False)
        alpha = cho_solve((lower, True), self.y, check_finite=False)
        inverse, _ = dpotri(lower, lower=1)
        w = (np.outer(alpha, alpha) - inverse).ravel().take(tables.places)
        w *= tables.twice
        return lower, alpha, w, float(alpha @ alpha - np.trace(inverse))

    def _trace(self, kernel: Kernel, sums: PairSums) -> Vector:
        """Return tr(W dK) for a, b, m and lo; entries of other hyperparameters are 0."""
        s, at = self.structure, self.structure.slices
        trace = np.zeros(at["noise"].stop)
        trace[at["a"]] = sums.groups()
        trace[at["b"]], lengths = sums.numbers()
        trace[at["m"]] = lengths / kernel.m**2
        if self.held is None:
            blocks, summed = kernel.blocks, self.tables.summed
            trace[at["lo"]] = [kernel.a[g] * summed(g, sums.slope(g), blocks[g]) for g in s.ordered]
        return trace

    def _grams(self, kernel: Kernel) -> tuple[Vector, Vector]:
        """Return k_g at the pairs, and its squares. Only the groups whose length-scale is being fitted are recomputed."""
        s = self.structure
        if self.held is not None:
            return self.tables.grams_at(self.held[s.slices["lo"]])
        grams = self.tables.grams_at(s.prior[0][s.slices["lo"]])[0].copy()
        for g in s.ordered:
            grams[g] = self.tables.gram(g, kernel.blocks[g])
        return grams, grams**2


def fit(
    evidence: Evidence, starts: Sequence[Vector], iterations: int = 25, deadline: Deadline = NEVER
) -> tuple[Vector, float]:
    """Return the MAP hyperparameters: the best of L-BFGS-B from several starts, or the prior's medians if all of them fail.

    Returns:
        theta and its negative log posterior.
    """
    best, best_value = maximum(evidence, evidence.structure.prior, starts, iterations, deadline)
    if evidence.held is not None:
        best = best.copy()
        best[evidence.structure.slices["lo"]] = evidence.held[evidence.structure.slices["lo"]]
    return best, best_value
