"""Bayesian linear model in weight space, sampled in the dual.

Notation
    t           observations;  y (t,) standardised losses;  s2 the fitted noise variance, v (t,) further variances of each.
    f(z, u) = sum_b D_b(z)' W_b C_b(u)  as in ``mipcash.methods.mivabo.functions``,   W_b[i, j] ~ N(0, V_b[i]).
    D_b (t, p_b), C_b (t, q_b)    the blocks' features at the observations

Conditioning costs O(t^3 + t^2 sum_b (p_b + q_b)), a posterior sample by Matheron's rule (wilson2020) O(t^2 + t M) after that, with
M = sum_b p_b q_b features. No M x M matrix is factored:

    W = W0 + V Phi' S^-1 (y - Phi w0 - e),   W0 ~ prior,   e ~ N(0, s2 I + diag(v)).
    S = K + s2 I + diag(v),   K = sum_b (D_b V_b D_b') o (C_b C_b').
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from mipcash.methods.mivabo.functions import Block, WeightSample
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.program.program import BinaryProgram
from mipcash.surrogates.covariance import cholesky, standardisation
from mipcash.surrogates.protocols import Noise

LEAST = 1e-10
"""Variance of f below which rounding dominates."""


@dataclass(frozen=True)
class LinearPosterior:
    """The posterior of the model given t observations.

    Attributes:
        blocks: feature blocks.
        left, right: D_b and C_b at the observations.
        y: standardised losses, shape (t,).
        fitted_noise: s2.
        shift, scale: of the standardisation.
        program: the space compiled.
        n_numbers: D.
        factor: Cholesky factor of S = K + s2 I + diag(v).
        noise: v, variances beside s2 on the scale of y: a number, or shape (t,).
    """

    blocks: tuple[Block, ...]
    left: tuple[Vector, ...]
    right: tuple[Vector, ...]
    y: Vector
    fitted_noise: float
    shift: float
    scale: float
    program: BinaryProgram
    n_numbers: int
    factor: tuple[Vector, bool]
    noise: Noise = 0.0

    @classmethod
    def fit(
        cls,
        blocks: Sequence[Block],
        program: BinaryProgram,
        points: Points,
        losses: Vector,
        fitted_noise: float,
        noise: Noise = 0.0,
    ) -> LinearPosterior:
        """Condition on observations.

        Args:
            points: t of them, with losses (t,).
            fitted_noise: s2, losses standardised.
            noise: v, likewise.
        """
        z, u = points.one_hot(program), points.units
        shift, scale = standardisation(losses)
        left, right = tuple(b.left(z) for b in blocks), tuple(b.right(u) for b in blocks)
        factor = cholesky(_covariance(blocks, left, right, fitted_noise), noise)
        y = (losses - shift) / scale
        return cls(tuple(blocks), left, right, y, fitted_noise, shift, scale, program, u.shape[1], factor, noise)

    def given(self, points: Points, values: Vector, noise: Noise = 0.0) -> LinearPosterior:
        """Condition on further observations at the same prior variances and features; S is factored again.

        Args:
            points: B of them.
            values: on the scale of predictions, shape (B,).
            noise: v of the new ones, a number or shape (B,), in addition to s2.
        """
        z, u = points.one_hot(self.program), points.units
        left = tuple(np.concatenate([d, b.left(z)]) for b, d in zip(self.blocks, self.left, strict=True))
        right = tuple(np.concatenate([c, b.right(u)]) for b, c in zip(self.blocks, self.right, strict=True))
        both = np.concatenate([np.broadcast_to(self.noise, len(self.y)), np.broadcast_to(noise, len(points))])
        factor = cholesky(_covariance(self.blocks, left, right, self.fitted_noise), both)
        y = np.concatenate([self.y, values])
        return replace(self, left=left, right=right, y=y, noise=both, factor=factor)

    @property
    def n_features(self) -> int:
        """Number of features M."""
        return sum(d.shape[1] * c.shape[1] for d, c in zip(self.left, self.right, strict=True))

    @cached_property
    def alpha(self) -> Vector:
        """S^-1 y, shape (t,)."""
        return np.asarray(cho_solve(self.factor, self.y))

    @cached_property
    def inverse(self) -> Vector:
        """Inverse of the Cholesky factor of S; a prediction then needs a product instead of a solve."""
        return np.asarray(solve_triangular(self.factor[0], np.eye(len(self.y)), lower=True))

    def predict(self, points: Points) -> tuple[Vector, Vector]:
        """Return mean and standard deviation of f (noise excluded), losses standardised: (B,), (B,)."""
        z, u = points.one_hot(self.program), points.units
        cross, variance = np.zeros((len(points), len(self.y))), np.zeros(len(points))
        for block, d, c in zip(self.blocks, self.left, self.right, strict=True):
            dz, cu = block.left(z), block.right(u)
            cross += ((dz * block.variances) @ d.T) * (cu @ c.T)
            variance += (dz**2 @ block.variances) * np.sum(cu**2, axis=1)
        variance -= np.sum((cross @ self.inverse.T) ** 2, axis=1)
        return cross @ self.alpha, np.sqrt(np.maximum(variance, LEAST))

    def mean(self) -> WeightSample:
        """Return the posterior mean, a function like any sample (daxberger2019 App. C: m)."""
        return self._pathwise(
            [np.zeros((len(b.variances), c.shape[1])) for b, c in self._shapes()], np.zeros(len(self.y))
        )

    def sample(self, rng: np.random.Generator, inflation: float = 1.0) -> WeightSample:
        """Draw a posterior sample; ``inflation`` multiplies the posterior covariance (Proposition 1, assumption 3)."""
        prior = [
            rng.normal(size=(len(b.variances), c.shape[1])) * np.sqrt(b.variances)[:, None] for b, c in self._shapes()
        ]
        drawn = self._pathwise(prior, rng.normal(size=len(self.y)) * np.sqrt(self.fitted_noise + self.noise))
        if inflation == 1.0:
            return drawn
        mean, root = self.mean(), np.sqrt(inflation)
        weights = tuple(m + root * (w - m) for m, w in zip(mean.weights, drawn.weights, strict=True))
        return replace(drawn, weights=weights)

    def _shapes(self) -> list[tuple[Block, Vector]]:
        return list(zip(self.blocks, self.right, strict=True))

    def _pathwise(self, prior: Sequence[Vector], error: Vector) -> WeightSample:
        residual = self.y - error
        for w, d, c in zip(prior, self.left, self.right, strict=True):
            residual = residual - np.einsum("tp,pq,tq->t", d, w, c, optimize=True)
        alpha = cho_solve(self.factor, residual)
        weights = tuple(
            w + b.variances[:, None] * ((d * alpha[:, None]).T @ c)
            for w, b, d, c in zip(prior, self.blocks, self.left, self.right, strict=True)
        )
        return WeightSample(self.blocks, weights, self.shift, self.scale, self.program, self.n_numbers)


def _covariance(
    blocks: Sequence[Block], left: Sequence[Vector], right: Sequence[Vector], fitted_noise: float
) -> Vector:
    """Return K + s2 I at t observations: (t, t)."""
    k = fitted_noise * np.eye(len(left[0]))
    for block, d, c in zip(blocks, left, right, strict=True):
        k += ((d * block.variances) @ d.T) * (c @ c.T)
    return k
