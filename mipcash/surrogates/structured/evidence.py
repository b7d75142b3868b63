"""Hyperparameters of the structured kernel: maximum a posteriori, with analytic gradients (docs/model.md, 2.5).

Notation
    K, R, theta, A_v, P, E  as in ``mipcash.surrogates.structured.kernel``;   y (t,) standardised losses
    n = t (t + 1) / 2       pairs i >= j of observations: half of each matrix, as all are symmetric
    S = K + R + s2 I + diag(v)   with v known noise variances of the observations, in addition to the fitted s2

    log posterior = -y'S^-1 y / 2 - log det S / 2 + sum_i log N(theta_i; mu_i, sd_i)
    its gradient:  tr(W dS/dtheta_i) / 2 - (theta_i - mu_i) / sd_i^2,   W = r r' - S^-1,  r = S^-1 y

No derivative matrix of K is formed. Only its sum with W is computed, by ``PairSums``.

Sums over pairs of variables, and their contributions to the gradient:

Notation
    A_v (n,)        terms of the V variables, groups first, at n pairs of observations;   E (V, V) pairs, D the groups
    A_g = a_g D_g   of a group, with D_g (n,) the covariances of its levels, which do not change while length-scales are held
    S, S_D          sums of A_v over all variables, and over the groups
    F, O, T         sums over the numbers with no, one and two conditions;   E has every pair with at most two conditions
                    together, a group counting as one
    pairs = sum_E A_v A_w,   discrete = sum_{E_D} A_g A_h
    T_v = sum_w E_vw A_w,    T^D_g = sum_h E_gh A_h
    slope_v = W (c1 + c2 T_v) + [v in D] WP (cm + cq T^D_v)      what A_v is multiplied by in tr(W dK), elementwise

T_v is S - A_v for a number without conditions, S - T - A_v for a group and a number with one, and F for a number with two. So a few
vectors (n,) suffice for all variables: slope_v = M - A_v N, with M = W (c1 + c2 S) and N = c2 W for the first kind, and so on. The
terms of groups are not formed: all sums over them are products of D and of its squares with vectors.
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
from mipcash.surrogates.structured.kernel import Kernel, number_product
from mipcash.surrogates.structured.number_pairs import NumberPairs
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


class PairSums:
    """Sums over one set of terms (see the module's notation).

    Args:
        kernel: hyperparameters of the terms.
        grams: covariances of the groups' levels at the pairs, D, and their squares: (G, n) each.
        pairs: the pairs in which numbers are on at both points.
    """

    def __init__(self, kernel: Kernel, grams: tuple[Vector, Vector], pairs: NumberPairs) -> None:
        a, b, m = kernel.a, kernel.b, kernel.m
        self._a, (self._grams, self._squares), self._pairs = a, grams, pairs
        self._whole = number_product(pairs.throughout, b[pairs.always, None], m[pairs.always, None])
        """Terms of the numbers that are on at every point, shape (K, n)."""
        self._listed = number_product(pairs.squares, b[pairs.owner], m[pairs.owner])
        """Listed entries of the remaining numbers, shape (N,)."""
        self.total = a @ self._grams
        groups = a**2 @ self._squares
        self.extra, squares = self._sums()
        self.discrete = 0.5 * (self.total**2 - groups)
        self.pairs = 0.5 * ((self.total + self.extra) ** 2 - groups - squares)
        self._two = np.any(pairs.conditions == 2)
        if self._two:
            self._free, (two, two_squares) = self._sums(0)[0], self._sums(2)
            self._most = self.total + self.extra - two  # S - T
            self.pairs -= two * (self._most - self._free) + 0.5 * (two**2 - two_squares)

    def weigh(self, w: Vector, weighted: Vector, factors: tuple[float, float, float, float]) -> None:
        """Set W and WP (n,) and (c1, c2, cm, cq); call it before the methods below."""
        c1, c2, cm, cq = factors
        every = w * (c1 + c2 * (self.total + self.extra))
        self._first, self._second = every[None], c2 * w[None]
        if self._two:
            self._first = np.stack([every, w * (c1 + c2 * self._most), w * (c1 + c2 * self._free)])
            self._second = np.stack([c2 * w, c2 * w, np.zeros(len(w))])
        self._group_first = self._first[min(1, len(self._first) - 1)] + weighted * (cm + cq * self.total)
        self._group_second = c2 * w + cq * weighted

    def slope(self, g: int) -> Vector:
        """Return slope_g of a group: (n,)."""
        return np.asarray(self._group_first - self._a[g] * self._grams[g] * self._group_second)

    def groups(self) -> Vector:
        """Return the sum of slope_g A_g for every group: (G,)."""
        first = self._grams @ self._group_first
        return np.asarray(self._a * (first - self._a * (self._squares @ self._group_second)))

    def numbers(self) -> tuple[Vector, Vector]:
        """Return the sums of slope_j A_j and of slope_j A_j (u_j - u'_j)^2 for every number: (J,), (J,)."""
        pairs, count, first, second = self._pairs, self._pairs.shape[0], self._first, self._second
        relevance, lengths = np.zeros(count), np.zeros(count)
        kind = pairs.conditions if self._two else np.zeros(count, dtype=np.int64)
        if len(pairs.at):
            row = kind[pairs.owner]
            entry = self._listed * (first[row, pairs.at] - self._listed * second[row, pairs.at])
            relevance += np.bincount(pairs.owner, entry, count)
            lengths += np.bincount(pairs.owner, entry * pairs.squares, count)
        rows = kind[pairs.always] if self._two else slice(None)
        weights = self._whole * (first[rows] - self._whole * second[rows])
        relevance[pairs.always] = weights.sum(axis=1)
        lengths[pairs.always] = np.einsum("kn,kn->k", weights, pairs.throughout)
        return relevance, lengths

    def _sums(self, conditions: int | None = None) -> tuple[Vector, Vector]:
        """Return sum_j A_j and sum_j A_j^2 over all numbers, or over those with so many conditions: (n,), (n,)."""
        pairs, n = self._pairs, self._pairs.shape[1]
        whole, listed, at = self._whole, self._listed, pairs.at
        if conditions is not None:
            kept = pairs.conditions[pairs.owner] == conditions
            whole, listed, at = whole[pairs.conditions[pairs.always] == conditions], listed[kept], at[kept]
        total, squares = whole.sum(axis=0), np.einsum("kn,kn->n", whole, whole)
        if len(at):
            total += np.bincount(at, listed, n)
            squares += np.bincount(at, listed**2, n)
        return total, squares


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
