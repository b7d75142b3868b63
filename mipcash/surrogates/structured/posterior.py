"""The posterior of the structured model: predictions, conditioning, and its mean and samples as functions.

Notation
    x_i (i = 1..t) observations, y (t,) standardised losses, s2 the fitted noise variance, v known noise in addition to s2
    f = q + r,  q ~ K (the structured kernel),  r ~ R (the residual),  S = K + R + s2 I + diag(v) at the observations,  w = S^-1 y
    mean of f at x: (K + R)(x, X) w,    variance: (K + R)(x, x) - (K + R)(x, X) S^-1 (K + R)(X, x)
    mean of q: K(x, X) w,    a sample of q: q0(x) + K(x, X) S^-1 (y - q0(X) - r0(X) - e)      (Matheron's rule, wilson2020)

    S = L L',   L_+ = [[L, 0], [h', c]],   L h = (K + R)(X, x),   c^2 = S(x, x) - h'h      (L of one observation more)

L is that of the observations of the last search of the hyperparameters, extended by one observation after another, O(t^2) each. A
fit that continues a cached L therefore has the same bits as one that computes all of it, and a resumed run equals an unbroken one.

The kernel part is exact. q0 has exact discrete factors and random Fourier features of the numbers, r0(X) ~ N(0, R(X, X)).
Mean and samples of q are functions that a MIP can minimise (``mipcash.surrogates.structured.functions.surface``).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from mipcash.program.forms import Indices, Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Noise
from mipcash.surrogates.structured.encoded import Encoded
from mipcash.surrogates.structured.evidence import JITTER, chosen_part, taken
from mipcash.surrogates.structured.functions.prior_draw import PriorDraw
from mipcash.surrogates.structured.functions.sections import KernelSection, ResidualSection
from mipcash.surrogates.structured.functions.surface import Surface
from mipcash.surrogates.structured.kernel import Kernel
from mipcash.surrogates.structured.warping import Warp

BLOCK = 64
"""Number of rows of a covariance computed at a time; its factor needs no entries right of the diagonal."""
EXTENSIONS = 32
"""Largest number of rows by which a factor is extended; with more, it is computed anew."""
CACHED = 1 << 24
"""Largest number of entries of all cached factors of a space."""


def covariance(kernel: Kernel, x: Encoded, noise: Noise) -> Vector:
    """Return S between t points, up to BLOCK entries right of its diagonal, and zeros beyond: (t, t)."""
    k = np.zeros((len(x), len(x)))
    for first in range(0, len(x), BLOCK):
        last = min(first + BLOCK, len(x))
        k[first:last, :last] = kernel.covariance(x[first:last], x[:last])
    k[np.diag_indices_from(k)] += kernel.noise + JITTER + noise
    return k


def factor(kernel: Kernel, x: Encoded, noise: Noise, base: int = 0) -> Vector:
    """Return L: (t, t).

    Args:
        noise: v, a number or shape (t,).
        base: number of observations of the last search of the hyperparameters.

    Raises:
        numpy.linalg.LinAlgError: S is singular.
    """
    t = len(x)
    if not 0 < t - EXTENSIONS <= base <= t or np.any(noise):
        return _cholesky_factor(kernel, x, noise)
    cached, key = kernel.structure.factors, (base, kernel.theta.tobytes())
    before: Encoded
    lower: Vector
    before, lower = cached.pop(key, (x[:0], np.zeros((0, 0))))
    n = len(before)
    if not (base <= n <= t and _same(before, x[:n])):
        n, lower = base, _cholesky_factor(kernel, x[:base])
    for k in range(n, t):
        lower = _extended(kernel, x[: k + 1], lower)
    cached[key] = (x, lower)
    while len(cached) > 1 and sum(held.size for _, held in cached.values()) > CACHED:
        del cached[next(iter(cached))]
    return lower


def _same(a: Encoded, b: Encoded) -> bool:
    return np.array_equal(a.levels, b.levels) and np.array_equal(a.u, b.u)


def _cholesky_factor(kernel: Kernel, x: Encoded, noise: Noise = 0.0) -> Vector:
    lower, _ = cho_factor(covariance(kernel, x, noise), lower=True, overwrite_a=True, check_finite=False)
    return np.tril(lower)


def _extended(kernel: Kernel, x: Encoded, lower: Vector) -> Vector:
    """Return the factor at t points from that of the first t - 1."""
    t = len(x)
    k = kernel.covariance(x[t - 1 :], x)[0]
    h = solve_triangular(lower, k[:-1], lower=True, check_finite=False)
    square = k[-1] + kernel.noise + JITTER - h @ h
    if square <= 0.0:
        return _cholesky_factor(kernel, x)
    found = np.zeros((t, t))
    found[:-1, :-1], found[-1, :-1], found[-1, -1] = lower, h, np.sqrt(square)
    return found


LIFTS = (1e-10, 1e-8, 1e-6, 1e-4)
"""Shares of the mean variance that are added to the diagonal of a covariance of draws, tried in turn."""
NEAR = 256
"""Largest number of observations on which a predicted variance is conditioned, unless it is most of them."""
MOST = 2 / 3
"""Share of the observations from which on all of them are taken."""


class PosteriorSection:
    """Mean and standard deviation of f(z, .) at fixed binaries z (n_z,), and their gradients with respect to u."""

    def __init__(self, posterior: StructuredPosterior, z: Vector) -> None:
        kernel, x = posterior.kernel, posterior.x
        point = Encoded.at(kernel.structure, z, np.zeros(x.u.shape[1]))
        self.posterior = posterior
        self.kernel, self.residual = KernelSection(kernel, point, x), ResidualSection(kernel, point, x)
        self.prior_variance = float(kernel.diagonal(point)[0]) + kernel.residual_variance

    def __call__(self, u: Vector) -> tuple[float, float, Vector, Vector]:
        """Return mean and deviation with gradients: (J,) -> mean, deviation, (J,), (J,)."""
        k, dk, deviation, gradient = self.parts(u)
        return float(k @ self.posterior.weights), deviation, self.posterior.weights @ dk, gradient

    def parts(self, u: Vector) -> tuple[Vector, Vector, float, Vector]:
        """Return (K + R)(x, X) and its gradient, the deviation and its gradient: (J,) -> (t,), (t, J), scalar, (J,)."""
        k, dk = (a + b for a, b in zip(self.kernel(u), self.residual(u), strict=True))
        near, inverse = self.posterior.near, self.posterior.near_inverse
        everything = len(near) == len(k)
        half = inverse @ (k if everything else k[near])
        variance = float(self.prior_variance - half @ half)
        deviation = float(np.sqrt(max(variance, JITTER)))
        gradient = np.zeros(dk.shape[1])
        if variance > JITTER:
            gradient = -(half @ inverse @ (dk if everything else dk[near])) / deviation
        return k, dk, deviation, gradient


def _root(covariance: Vector) -> Vector:
    """Return a Cholesky factor of a covariance (B, B) that may be singular.

    The diagonal is raised by the shares in LIFTS until the factorisation works. If none works, the roots of the diagonal are
    returned.
    """
    scale = max(float(np.mean(np.diag(covariance))), JITTER)
    for lift in LIFTS:
        lifted = covariance + np.diag(np.full(len(covariance), max(lift * scale, JITTER)))
        with suppress(np.linalg.LinAlgError):
            return np.asarray(np.linalg.cholesky(lifted), dtype=np.float64)
    return np.diag(np.sqrt(np.maximum(np.diag(covariance), JITTER)))


@dataclass(frozen=True)
class Beside:
    """B further points beside t observations.

    Attributes:
        x: the points.
        cross: (K + R)(x, X), shape (B, t).
        half: L^-1 cross', shape (t, B).
        between: covariance of f at the points given the observations, shape (B, B).
    """

    x: Encoded
    cross: Vector
    half: Vector
    between: Vector


@dataclass(frozen=True)
class StructuredPosterior:
    """Posterior of f given t observations (see the module's notation).

    Attributes:
        kernel: K.
        x: the observations' points.
        y: warped losses, shape (t,).
        warp: transformation of losses to y.
        lower: Cholesky factor of S.
        noise: v, known noise variances in addition to s2 on the scale of y: a number, or shape (t,).
        further: number of observations, at the end, that were added by ``given``.
    """

    kernel: Kernel
    x: Encoded
    y: Vector
    warp: Warp
    lower: Vector
    noise: Noise = 0.0
    further: int = 0

    @classmethod
    def fit(
        cls,
        kernel: Kernel,
        x: Encoded,
        losses: Vector,
        warp: Warp | None = None,
        noise: Noise = 0.0,
        base: int = 0,
    ) -> StructuredPosterior:
        """Return the posterior given observations; without a warp the losses are standardised.

        Args:
            noise: v, on the scale of the warped losses.
            base: number of observations of the last search of the hyperparameters; see ``factor``.
        """
        warp = warp or Warp.of(losses)
        return cls(kernel, x, warp(losses), warp, factor(kernel, x, noise, base), noise)

    def beside(self, points: Points) -> Beside:
        """Return the covariances of f at further points, from which it is drawn and conditioned there."""
        x = Encoded.of(self.kernel.structure, points)
        cross = self.kernel.covariance(x, self.x)
        half = solve_triangular(self.lower, cross.T, lower=True)
        return Beside(x, cross, half, self.kernel.covariance(x, x) - half.T @ half)

    def given(self, points: Points | Beside, values: Vector | None = None, noise: Noise = 0.0) -> StructuredPosterior:
        """Return the posterior given further observations, such as guesses for pending ones, at the same hyperparameters and warp.

        The Cholesky factor grows by the new rows, O(t^2 B): [[L, 0], [H', C]] with L H = K(X, X') and C C' = S' - H'H.

        Args:
            points: B of them.
            values: on the scale of predictions, shape (B,); None: the means there.
            noise: v of the new observations, a number or shape (B,); s2 is added to it, so a negative v reduces s2.
        """
        new = points if isinstance(points, Beside) else self.beside(points)
        t, b = len(self.y), len(new.x)
        corner, _ = cho_factor(
            new.between + np.diag(np.broadcast_to(self.kernel.noise + JITTER + noise, b)), lower=True
        )
        lower = np.zeros((t + b, t + b))
        lower[:t, :t], lower[t:, :t], lower[t:, t:] = self.lower, new.half.T, np.tril(corner)
        return replace(
            self,
            x=self.x.joined(new.x),
            y=np.concatenate([self.y, new.cross @ self.weights if values is None else values]),
            lower=lower,
            noise=np.concatenate([np.broadcast_to(self.noise, t), np.broadcast_to(noise, b)]),
            further=self.further + b,
        )

    @property
    def fitted_noise(self) -> float:
        """s2."""
        return self.kernel.noise

    def scaled(self, values: Vector) -> Vector:
        """Return values of the output on the warped scale: shape of ``values``."""
        return self.warp(values)

    @cached_property
    def weights(self) -> Vector:
        """w = S^-1 y, shape (t,)."""
        # LAPACK works on columns: the transpose is a view, where the factor itself would be copied
        return np.asarray(cho_solve((self.lower.T, False), self.y, check_finite=False))

    @cached_property
    def fitted(self) -> Vector:
        """Means at the observations, shape (t,): y - (s2 + v) w, since S w = y."""
        return np.asarray(self.y - (self.kernel.noise + JITTER + self.noise) * self.weights)

    @cached_property
    def near(self) -> Indices:
        """Indices of the observations that variances are conditioned on: all, or NEAR of them, half of which are the best ones and
        the others an even spread of the rest.

        Observations added by ``given`` are always included, since pending points are there to lower variances. Conditioning on
        fewer observations never lowers a variance. Means always use all observations.
        """
        t = len(self.y) - self.further
        if NEAR + self.further > MOST * len(self.y):
            return np.arange(len(self.y))
        return np.concatenate([chosen_part(self.y[:t], NEAR), np.arange(t, len(self.y))])

    @cached_property
    def near_part(self) -> StructuredPosterior:
        """The posterior given the ``near`` observations only; this one if they are all."""
        if len(self.near) == len(self.y):
            return self
        x, noise = self.x[self.near], taken(self.noise, self.near)
        lower = factor(self.kernel, x, noise)
        return replace(self, x=x, y=self.y[self.near], lower=lower, noise=noise, further=len(self.near))

    @cached_property
    def near_inverse(self) -> Vector:
        """Inverse of the Cholesky factor for the ``near`` observations; a prediction then needs a product instead of a solve."""
        if self.near_part is not self:
            return self.near_part.near_inverse
        return np.asarray(solve_triangular(self.lower, np.eye(len(self.lower)), lower=True, check_finite=False))

    def predict(self, points: Points) -> tuple[Vector, Vector]:
        """Return mean and standard deviation of f (noise excluded): (B,), (B,)."""
        k, deviation = self.parts(points)
        return k @ self.weights, deviation

    def parts(self, points: Points) -> tuple[Vector, Vector]:
        """Return (K + R)(x, X) and the standard deviations of f: (B, t), (B,)."""
        x = Encoded.of(self.kernel.structure, points)
        k = self.kernel.covariance(x, self.x)
        half = (k if len(self.near) == len(self.y) else k[:, self.near]) @ self.near_inverse.T
        variance = self.kernel.diagonal(x) + self.kernel.residual_variance - np.einsum("bt,bt->b", half, half)
        return k, np.sqrt(np.maximum(variance, JITTER))

    def draws(self, points: Points | Beside, count: int, rng: np.random.Generator) -> Vector:
        """Return joint draws of f at B points, the residual included: (count, B). Costs O(B^3 + B^2 t)."""
        new = points if isinstance(points, Beside) else self.beside(points)
        spread = _root(new.between) @ rng.normal(size=(len(new.x), count))
        return np.asarray(new.cross @ self.weights + spread.T)

    def section(self, z: Vector) -> PosteriorSection:
        """Return the posterior at fixed binaries z (n_z,), as a function of the numbers."""
        return PosteriorSection(self, z)

    def mean(self) -> Surface:
        """Return the posterior mean of q."""
        return Surface(self.kernel, self.x, self.weights, None, self.warp)

    def sample(self, rng: np.random.Generator) -> Surface:
        """Return a sample of q."""
        draw = PriorDraw(self.kernel, rng)
        residual = self.kernel.residual(self.x, self.x)
        residual[np.diag_indices_from(residual)] += self.kernel.noise + JITTER + self.noise
        error = np.linalg.cholesky(residual) @ rng.normal(size=len(self.y))
        update = cho_solve((self.lower.T, False), draw.values(self.x) + error, check_finite=False)
        return Surface(self.kernel, self.x, self.weights - update, draw, self.warp)
