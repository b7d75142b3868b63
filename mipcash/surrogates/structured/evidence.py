"""Hyperparameters of the structured kernel: maximum a posteriori, with analytic gradients (SURROGATE, item 3).

Notation
    K, R, theta, A_v, P, E  as in :mod:`mipcash.surrogates.structured.kernel`;   y (t,) standardised losses
    n = t (t + 1) / 2       pairs i >= j of observations: all matrices are symmetric, so that half of each is enough

    log posterior = -y'(K + R + s2 I)^-1 y / 2 - log det(K + R + s2 I) / 2 + sum_i log N(theta_i; mu_i, sd_i)
    its gradient:  tr(W dK/dtheta_i) / 2 - (theta_i - mu_i) / sd_i^2,   W = r r' - (K + R + s2 I)^-1,  r = (K + R + s2 I)^-1 y

No derivative matrix of K is formed: only its sum with W is taken (:mod:`mipcash.surrogates.structured.pair_sums`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotri

from mipcash.program.forms import Indices, Vector
from mipcash.surrogates.maximum import maximum
from mipcash.surrogates.structured.kernel import Kernel, Points, number_product
from mipcash.surrogates.structured.pair_sums import Complete, Graph, PairSums
from mipcash.surrogates.structured.structure import Structure

JITTER = 1e-8
FITTED = 160
"""Observations that the fit uses at most: the best half of them and an even spread of the rest."""


def chosen_part(y: Vector, limit: int) -> Indices:
    """At most ``limit`` observations: the best half of that number and an even spread of the others. (t,) -> (n,)"""
    if len(y) <= limit:
        return np.arange(len(y))
    order = np.argsort(y, kind="stable")
    best, rest = order[: limit // 2], order[limit // 2 :]
    spread = rest[np.linspace(0, len(rest) - 1, limit - len(best)).astype(np.int64)]
    return np.sort(np.concatenate([best, spread]))


@dataclass(frozen=True)
class Evidence:
    """The log posterior of theta given observations; what does not depend on theta is computed once.

    Attributes:
        structure: the space.
        x: the observations' points, t of them.
        y: standardised losses, shape (t,).
        held: theta whose length-scales lo are kept, which saves half of the time; None: they are fitted too.
    """

    structure: Structure
    x: Points
    y: Vector
    held: Vector | None = None

    @classmethod
    def of(
        cls, structure: Structure, x: Points, y: Vector, held: Vector | None = None, limit: int = FITTED
    ) -> Evidence:
        """From all observations; beyond ``limit`` only a part of them is used."""
        keep = chosen_part(y, limit)
        return cls(structure, x[keep], y[keep], held)

    def __call__(self, theta: Vector) -> tuple[float, Vector]:
        """Negative log posterior and its gradient: scalar, (n_theta,)."""
        s = self.structure
        if self.held is not None:
            theta = theta.copy()
            theta[s.slices["lo"]] = self.held[s.slices["lo"]]
        kernel, at = Kernel(s, theta), s.slices
        c1, c2, sc, cm, cq = kernel.factors
        terms = self._terms(kernel)
        sums: PairSums = Complete(terms, s.n_groups) if s.complete else Graph(terms, s.n_groups, s.pairs)
        joint = kernel.joint_product(self._squares)
        bracket = sc + cm * sums.total + cq * sums.discrete
        rest = kernel.residual_product(self._distances, self._squares)
        k = 1.0 + c1 * (sums.total + sums.extra) + c2 * sums.pairs + joint * bracket + rest
        lower, alpha, w, trace_w = self._solved(k, kernel.noise)
        mean, sd = s.prior
        value = 0.5 * self.y @ alpha + np.sum(np.log(np.diag(lower))) + 0.5 * np.sum(((theta - mean) / sd) ** 2)
        weighted = w * joint
        sums.weigh(w, weighted, (c1, c2, cm, cq))
        trace = self._trace(kernel, sums, terms)
        trace[at["l"]] = self._squares[s.joint] @ (weighted * bracket) / kernel.joint_length**2
        trace[at["s1"]] = c1 * (w @ (sums.total + sums.extra))
        trace[at["s2"]] = c2 * (w @ sums.pairs)
        trace[at["sc"]] = sc * np.sum(weighted)
        trace[at["sm"]] = cm * (weighted @ sums.total)
        trace[at["sq"]] = cq * (weighted @ sums.discrete)
        rest *= w
        trace[at["w"]] = -kernel.w * (self._distances @ rest)
        trace[at["r"]] = self._squares @ rest / kernel.r**2
        trace[at["sr"]] = np.sum(rest)
        trace[at["noise"]] = kernel.noise * trace_w
        gradient = -0.5 * trace + (theta - mean) / sd**2
        if self.held is not None:
            gradient[at["lo"]] = 0.0
        return float(value), gradient

    def _solved(self, k: Vector, noise: float) -> tuple[Vector, Vector, Vector, float]:
        """From K + R at the pairs (n,): the Cholesky factor, r, W at the pairs (twice off the diagonal), tr W.

        Raises:
            numpy.linalg.LinAlgError: the covariance is singular to the last digit.
        """
        rows, cols = self._pairs
        matrix = np.zeros((len(self.y),) * 2)
        matrix[rows, cols] = k
        matrix[np.diag_indices_from(matrix)] += noise + JITTER
        lower, _ = cho_factor(matrix, lower=True, check_finite=False)
        alpha = cho_solve((lower, True), self.y, check_finite=False)
        inverse, _ = dpotri(lower, lower=1)
        w = alpha[rows] * alpha[cols] - inverse[rows, cols]
        w[rows != cols] *= 2.0
        return lower, alpha, w, float(alpha @ alpha - np.trace(inverse))

    def _trace(self, kernel: Kernel, sums: PairSums, terms: Vector) -> Vector:
        """tr(W dK) for a, b, m and lo; 0 elsewhere."""
        s, at = self.structure, self.structure.slices
        trace = np.zeros(at["noise"].stop)
        relevance = sums.relevance()
        trace[at["a"]], trace[at["b"]] = relevance[: s.n_groups], relevance[s.n_groups :]
        for j, (on, squares) in enumerate(self._numbers):
            v = s.n_groups + j
            trace[at["m"]][j] = sums.slope(v)[on] @ (terms[v, on] * squares) / kernel.m[j] ** 2
        if self.held is None:
            trace[at["lo"]] = [kernel.a[g] * self._weighed(g, sums.slope(g), kernel.blocks[g][1]) for g in s.ordered]
        return trace

    @cached_property
    def _pairs(self) -> tuple[Indices, Indices]:
        """Pairs i >= j of observations: (n,), (n,)."""
        return np.tril_indices(len(self.y))

    @cached_property
    def _grams(self) -> Vector:
        """k_g at the pairs, at the held length-scales or the medians: shape (G, n)."""
        s = self.structure
        blocks = s.fixed_blocks if self.held is None else Kernel(s, self.held).blocks
        return self._stacked([self._gram(g, k) for g, (k, _) in enumerate(blocks)])

    @cached_property
    def _distances(self) -> Vector:
        """d_g at the pairs, shape (G, n)."""
        return self._stacked([self._gram(g, d) for g, d in enumerate(self.structure.distances)])

    def _stacked(self, layers: list[Vector]) -> Vector:
        return np.array(layers).reshape(len(layers), len(self._pairs[0]))

    @cached_property
    def _entries(self) -> list[Indices]:
        """Which entry of a matrix over its levels each pair reads, row by row, per group: G arrays of shape (n,)."""
        rows, cols = self._pairs
        levels = [np.argmax(self.x.z[:, g.start : g.stop], axis=1) for g in self.structure.groups]
        return [at[rows] * group.size + at[cols] for at, group in zip(levels, self.structure.groups, strict=True)]

    def _gram(self, g: int, k: Vector) -> Vector:
        """A matrix over the levels of group g, at the pairs: (n,)."""
        return np.asarray(k.ravel()[self._entries[g]])

    def _weighed(self, g: int, weights: Vector, k: Vector) -> float:
        """The weights (n,) times ``_gram(g, k)``, summed by entry first."""
        return float(np.bincount(self._entries[g], weights, minlength=k.size) @ k.ravel())

    def _terms(self, kernel: Kernel) -> Vector:
        """A_v at the pairs, shape (V, n): only groups with a length-scale under way are computed afresh."""
        n_groups = self.structure.n_groups
        terms = np.zeros((len(self.structure.pairs), len(self._pairs[0])))
        np.multiply(kernel.a[:, None], self._grams, out=terms[:n_groups])
        if self.held is None:
            for g in self.structure.ordered:
                np.multiply(kernel.a[g], self._gram(g, kernel.blocks[g][0]), out=terms[g])
        for term, b, m, (on, squares) in zip(terms[n_groups:], kernel.b, kernel.m, self._numbers, strict=True):
            term[on] = number_product(squares, b, m)
        return terms

    @cached_property
    def _squares(self) -> Vector:
        """(u_j - u'_j)^2 at the pairs, shape (J, n)."""
        rows, cols = self._pairs
        return np.asarray((self.x.shown[rows] - self.x.shown[cols]).T ** 2)

    @cached_property
    def _numbers(self) -> list[tuple[Indices | slice, Vector]]:
        """Per number: the pairs in which it is on at both points, and (u_j - u'_j)^2 there."""
        rows, cols = self._pairs
        found: list[tuple[Indices | slice, Vector]] = []
        for active, squares in zip(self.x.on.T > 0, self._squares, strict=True):
            both = np.flatnonzero(active[rows] & active[cols])
            on = slice(None) if len(both) == len(rows) else both
            found.append((on, squares[on]))
        return found


def fit(evidence: Evidence, starts: Sequence[Vector], iterations: int = 25) -> tuple[Vector, float]:
    """MAP hyperparameters: the best of L-BFGS-B from several starts; none: the prior's median.

    Returns:
        theta and its negative log posterior.
    """
    best, best_value = maximum(evidence, evidence.structure.prior, starts, iterations)
    if evidence.held is not None:
        best = best.copy()
        best[evidence.structure.slices["lo"]] = evidence.held[evidence.structure.slices["lo"]]
    return best, best_value
