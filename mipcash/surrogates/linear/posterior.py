"""Bayesian linear model in weight space, sampled in the dual.

Notation
    t           observations;  y (t,) standardised losses;  s2 noise variance
    blocks b    D_b (t, p_b) discrete part, C_b (t, q_b) continuous part, features = all products D_i C_j
                V_b (p_b,) prior variances of the weights by discrete feature (times 1 over the continuous ones)
    f(z, u) = sum_b D_b(z)' W_b C_b(u),   W_b (p_b, q_b),  W_b[i, j] ~ N(0, V_b[i])

This is daxberger2019 Eq. (2): one block with C = [1] holds phi_d, one with D = [1] phi_c, products phi_m. A block of its
own for a conditional number, D = [on(z)], keeps what is inactive out of f.

Conditioning costs O(t^3 + t^2 sum_b (p_b + q_b)), a posterior sample by Matheron's rule (wilson2020) O(t^2 + t M)
after that, with M = sum_b p_b q_b features; no M x M matrix is factored:

    W = W0 + V Phi' (K + s2 I)^-1 (y - Phi w0 - e),   K = sum_b (D_b V_b D_b') o (C_b C_b'),  W0 ~ prior, e ~ N(0, s2 I).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mipcash.program.forms import QuadraticForm, Vector
from mipcash.program.points import Points
from mipcash.program.program import BinaryProgram, Indicator
from mipcash.program.unit_scale import RESOLVED, activity_product
from mipcash.surrogates.cosines import Waves
from mipcash.surrogates.linear.features.discrete import DiscreteFeatures
from mipcash.surrogates.linear.features.maps import CosineMap, FeatureMap


@dataclass(frozen=True)
class Block:
    """One block of features (see the module's notation).

    Attributes:
        discrete: phi_d, or the indicators whose product is D = [on(z)]. A form has degree two, so only the first
            two indicators of a number are resolved; where a third fails its features stay at u = 0.5, a constant.
        fourier: C, any feature map; None: C = [1].
        variances: V_b, shape (p_b,).
    """

    discrete: DiscreteFeatures | tuple[Indicator, ...]
    fourier: FeatureMap | None
    variances: Vector

    def left(self, z: Vector) -> Vector:
        """D_b: (B, n_z) -> (B, p_b)."""
        if isinstance(self.discrete, DiscreteFeatures):
            return self.discrete(z)
        on = np.ones(len(z))
        for indicator in self.discrete[:RESOLVED]:
            on *= indicator.holds(z)
        return on[:, None]

    def right(self, u: Vector) -> Vector:
        """C_b: (B, D) -> (B, q_b)."""
        return np.ones((len(u), 1)) if self.fourier is None else self.fourier(u)


@dataclass(frozen=True)
class WeightSample:
    """A function f drawn from the posterior (or its mean): weights of every block.

    f is on the standardised scale, where solver tolerances mean something; :meth:`loss` goes back.

    Attributes:
        blocks: feature blocks.
        weights: W_b, shapes (p_b, q_b).
        shift, scale: loss = shift + scale * f.
        program: the space compiled.
        n_numbers: D.
    """

    blocks: tuple[Block, ...]
    weights: tuple[Vector, ...]
    shift: float
    scale: float
    program: BinaryProgram
    n_numbers: int

    def values(self, points: Points) -> Vector:
        """f at a batch: (B,)."""
        z, u = points.one_hot(self.program), points.units
        parts = zip(self.blocks, self.weights, strict=True)
        return sum((np.sum((b.left(z) @ w) * b.right(u), axis=1) for b, w in parts), np.zeros(len(points)))

    def value(self, z: Vector, u: Vector) -> float:
        """f at one point: (n_z,), (D,) -> scalar."""
        total = 0.0
        for block, w in zip(self.blocks, self.weights, strict=True):
            total += float((block.left(z[None]) @ w @ block.right(u[None]).T)[0, 0])
        return total

    def loss(self, value: float) -> float:
        """A value of f on the scale of the losses."""
        return self.shift + self.scale * value

    def form_at(self, u: Vector) -> QuadraticForm:
        """f(., u) as a quadratic form over the base columns; exact."""
        linear = np.zeros(self.program.n)
        constant, rows, cols, values = 0.0, [], [], []
        merged: dict[int, Vector] = {}
        features: dict[int, DiscreteFeatures] = {}
        for block, w in zip(self.blocks, self.weights, strict=True):
            weights = w @ block.right(u[None])[0]
            if isinstance(block.discrete, DiscreteFeatures):
                key = id(block.discrete)
                features[key] = block.discrete
                merged[key] = merged.get(key, 0.0) + weights
                continue
            c, l, (r, s, v) = activity_product(block.discrete[:RESOLVED], self.program.n)
            constant += c * weights[0]
            linear += l * weights[0]
            rows.append(r)
            cols.append(s)
            values.append(v * weights[0])
        for key, weights in merged.items():
            form = features[key].form(weights)
            constant, linear = constant + form.constant, linear + form.linear
            rows.append(form.rows)
            cols.append(form.cols)
            values.append(form.values)
        empty = np.zeros(0, dtype=np.int64)
        return QuadraticForm(
            constant,
            linear,
            np.concatenate([empty, *rows]),
            np.concatenate([empty, *cols]),
            np.concatenate([np.zeros(0), *values]),
        )

    def section(self, z: Vector) -> Section:
        """f(z, .) at fixed binaries, with its gradient."""
        constant, omega, phase, amplitude = 0.0, [], [], []
        others: list[tuple[FeatureMap, Vector]] = []
        for block, w in zip(self.blocks, self.weights, strict=True):
            weights = (block.left(z[None]) @ w)[0]
            if block.fourier is None:
                constant += float(weights[0])
            elif not np.any(weights):
                continue
            elif isinstance(block.fourier, CosineMap):
                omega.append(block.fourier.embedded(self.n_numbers))
                phase.append(block.fourier.phase)
                amplitude.append(weights * block.fourier.amplitude)
            else:
                others.append((block.fourier, weights))
        waves = Waves(
            np.concatenate([np.zeros((0, self.n_numbers)), *omega]),
            np.concatenate([np.zeros(0), *phase]),
            np.concatenate([np.zeros(0), *amplitude]),
            constant,
        )
        return Section(waves, tuple(others))


@dataclass(frozen=True)
class Section:
    """A function of the numbers alone: cosines, and other maps' parts.

    Attributes:
        waves: the constant and the cosines.
        others: maps that are no cosines, with their weights (q,).
    """

    waves: Waves
    others: tuple[tuple[FeatureMap, Vector], ...] = ()

    def __call__(self, u: Vector) -> tuple[float, Vector]:
        """Value and gradient: (D,) -> scalar, (D,)."""
        value, gradient = self.waves(u)
        for features, weights in self.others:
            value += float(features(u[None])[0] @ weights)
            gradient = gradient + weights @ features.gradient(u)
        return value, gradient


@dataclass(frozen=True)
class LinearPosterior:
    """The posterior of the model given t observations.

    Attributes:
        blocks: feature blocks.
        left, right: D_b and C_b at the observations.
        y: standardised losses, shape (t,).
        noise: s2.
        shift, scale: of the standardisation.
        program: the space compiled.
        n_numbers: D.
        factor: Cholesky factor of K + s2 I.
    """

    blocks: tuple[Block, ...]
    left: tuple[Vector, ...]
    right: tuple[Vector, ...]
    y: Vector
    noise: float
    shift: float
    scale: float
    program: BinaryProgram
    n_numbers: int
    factor: tuple[Vector, bool]

    @classmethod
    def fit(
        cls, blocks: Sequence[Block], z: Vector, u: Vector, losses: Vector, noise: float, program: BinaryProgram
    ) -> LinearPosterior:
        """Condition on observations z (t, n_z), u (t, D), losses (t,)."""
        shift, scale = standardisation(losses)
        y = (losses - shift) / scale
        left = tuple(b.left(z) for b in blocks)
        right = tuple(b.right(u) for b in blocks)
        k = noise * np.eye(len(y))
        for block, d, c in zip(blocks, left, right, strict=True):
            k += ((d * block.variances) @ d.T) * (c @ c.T)
        return cls(tuple(blocks), left, right, y, noise, shift, scale, program, u.shape[1], cholesky(k))

    @property
    def n_features(self) -> int:
        """M."""
        return sum(d.shape[1] * c.shape[1] for d, c in zip(self.left, self.right, strict=True))

    def mean(self) -> WeightSample:
        """The posterior mean, a function like any sample (daxberger2019 App. C: m)."""
        return self._pathwise(
            [np.zeros((len(b.variances), c.shape[1])) for b, c in self._shapes()], np.zeros(len(self.y))
        )

    def sample(self, rng: np.random.Generator, inflation: float = 1.0) -> WeightSample:
        """A posterior sample; ``inflation`` multiplies the posterior covariance (Proposition 1, assumption 3)."""
        prior = [
            rng.normal(size=(len(b.variances), c.shape[1])) * np.sqrt(b.variances)[:, None] for b, c in self._shapes()
        ]
        drawn = self._pathwise(prior, rng.normal(size=len(self.y)) * np.sqrt(self.noise))
        if inflation == 1.0:
            return drawn
        mean, root = self.mean(), np.sqrt(inflation)
        weights = tuple(m + root * (w - m) for m, w in zip(mean.weights, drawn.weights, strict=True))
        return WeightSample(self.blocks, weights, self.shift, self.scale, self.program, self.n_numbers)

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


def standardisation(losses: Vector) -> tuple[float, float]:
    """Shift and scale to zero mean and unit standard deviation (scale 1 where all losses agree)."""
    largest = float(np.max(np.abs(losses)))
    if largest == 0.0:
        return 0.0, 1.0
    scaled = losses / largest  # squares of losses near 1e300 would overflow
    scale = float(np.std(scaled)) * largest
    return float(np.mean(scaled)) * largest, scale if scale > 1e-12 * largest else 1.0


def cholesky(k: Vector) -> tuple[Vector, bool]:
    """Cholesky with as little jitter as works."""
    scale = float(np.mean(np.diag(k)))
    for exponent in range(-12, -2):
        try:
            lower, flag = cho_factor(k + scale * 10.0**exponent * np.eye(len(k)), lower=True)
            return lower, flag
        except np.linalg.LinAlgError:
            continue
    raise FloatingPointError(
        "the covariance of the observations is not positive definite; a loss or feature is not finite"
    )
