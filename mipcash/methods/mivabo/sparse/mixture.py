"""Scale mixtures of normals over the weights of the linear model, the common part of all sparse priors.

Notation, beyond ``mipcash.methods.mivabo.posterior``
    unit u      the weights of one pair of groups (or of one feature) in one block;  m_u of them, rows i of W_b;  U units.
    W_b[i, j] ~ N(0, tau^2 lambda_u^2 V_b[i]) in a unit, N(0, V_b[i]) outside;   S_u = sum_{i, j in u} W_b[i, j]^2 / V_b[i].
    A, B (t, t) covariance of the observations from rows outside and inside of the units;   K = s2 I + A + tau^2 B(lambda)

Given the scales the model is the Gaussian one. With fewer features than observations the data are first reduced to M sufficient
statistics, so that t above is min(t, M).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dpotrf, dtrtrs

from mipcash.errors import SpaceError, check_settings
from mipcash.methods.mivabo.discrete_features import DiscreteFeatures
from mipcash.methods.mivabo.functions import Block
from mipcash.methods.mivabo.posterior import LinearPosterior
from mipcash.program.forms import Indices, Vector
from mipcash.surrogates.covariance import cholesky
from mipcash.surrogates.protocols import Noise

PRIORS = ("laplace", "horseshoe")
JITTER = 1e-9
"""Added to s2, with losses standardised."""
TINY = 1e-300
Pair = tuple[int, int]


@dataclass(frozen=True)
class SparseSettings:
    """Settings of the sampler.

    Attributes:
        prior: ``laplace`` or ``horseshoe``.
        inference: ``gibbs``, or ``variational`` (Laplace only: a bound instead of a chain, about half as costly).
        burn_in: sweeps that are discarded first.
        draws: sweeps that are kept.
        by: ``pair``, one local scale per pair of groups and block, which does not depend on how levels are encoded; or
            ``feature``, one per discrete feature (the paper's Laplace prior on bits).
        noise, noise_sd: median of s2 and standard deviation of its log; ``noise_sd = 0`` keeps the posterior's own s2.
    """

    prior: str = "horseshoe"
    inference: str = "gibbs"
    burn_in: int = 100
    draws: int = 100
    by: str = "pair"
    noise: float = 1e-3
    noise_sd: float = 1.5

    def __post_init__(self) -> None:
        check_settings(
            self, choices={"prior": PRIORS, "inference": ("gibbs", "variational"), "by": ("pair", "feature")}
        )
        check_settings(self, above_0=("noise",), burn_in=0, draws=1, noise_sd=0)
        if self.inference == "variational" and self.prior != "laplace":
            raise SpaceError(
                f"the {self.prior} prior has no variational inference here; use 'gibbs', or prior='laplace'"
            )


@dataclass(frozen=True)
class Units:
    """Assignment of the rows of each block to local scales.

    Attributes:
        of_row: per block, shape (p_b,): the unit of each row, -1 where the prior is Gaussian.
        keys: per unit: (block, (g, h)); (block, (g, g)) for a linear term or for products within a group.
        sizes: m_u, shape (U,).
    """

    of_row: tuple[Indices, ...]
    keys: tuple[tuple[int, Pair], ...]
    sizes: Vector

    @classmethod
    def of(cls, blocks: tuple[Block, ...], right: tuple[Vector, ...], settings: SparseSettings) -> Units:
        """Make units of pairs in all blocks, and of linear terms in blocks of mixed products (in all blocks if so set)."""
        of_row: list[Indices] = []
        keys: list[tuple[int, Pair]] = []
        sizes: list[float] = []
        for b, (block, c) in enumerate(zip(blocks, right, strict=True)):
            unit = np.full(len(block.variances), -1, dtype=np.int64)
            for pair, rows in unit_rows(block, block.cosines is not None):
                for part in (
                    [rows] if settings.by == "pair" else [slice(i, i + 1) for i in range(rows.start, rows.stop)]
                ):
                    unit[part] = len(keys)
                    keys.append((b, pair))
                    sizes.append((part.stop - part.start) * c.shape[1])
            of_row.append(unit)
        return cls(tuple(of_row), tuple(keys), np.array(sizes, dtype=float))

    def over_rows(self, per_unit: Vector, outside: float) -> list[Vector]:
        """Return a value per unit as one per row of each block: (U,) -> [(p_b,)]."""
        padded = np.append(per_unit, outside)
        return [padded[unit] for unit in self.of_row]

    def total(self, per_row: list[Vector]) -> Vector:
        """Return sums over the rows of each unit: [(p_b,)] -> (U,)."""
        found = np.zeros(len(self.keys))
        for unit, value in zip(self.of_row, per_row, strict=True):
            np.add.at(found, unit[unit >= 0], value[unit >= 0])
        return found


def unit_rows(block: Block, linear: bool) -> list[tuple[Pair, slice]]:
    """Return pairs (g, h) and the rows of their products; linear terms as (g, g)."""
    if not isinstance(block.discrete, DiscreteFeatures):
        return []
    found = []
    if linear:
        found += [((g, g), slice(1 + s.start, 1 + s.stop)) for g, s in enumerate(block.discrete.spans)]
    return found + [((g, h), rows) for g, h, rows in block.discrete.pair_rows()]


@dataclass(frozen=True)
class Scales:
    """State of the chain.

    Attributes:
        local: lambda_u^2, shape (U,).
        mixing: the auxiliaries nu_u of the horseshoe, shape (U,).
        glob: tau^2.
        noise: s2.
    """

    local: Vector
    mixing: Vector
    glob: float
    noise: float


@dataclass(frozen=True)
class Mixture:
    """The model under its scales.

    Attributes:
        base: the Gaussian model whose prior variances the scales multiply, its data reduced if M < t.
        units: of its blocks.
        rest, rest_squares: number of observations that the reduction removed from K, and the sum of their squared residuals.
        continuous: C_b C_b', shapes (t, t).
    """

    base: LinearPosterior
    units: Units
    rest: int
    rest_squares: float
    continuous: tuple[Vector, ...]

    @classmethod
    def of(cls, base: LinearPosterior, settings: SparseSettings) -> Mixture:
        units = Units.of(base.blocks, base.right, settings)
        base, rest, squares = reduced(base)
        return cls(base, units, rest, squares, tuple(c @ c.T for c in base.right))

    def start(self) -> Scales:
        """Return the scales lambda = tau = 1."""
        one = np.ones(len(self.units.keys))
        return Scales(one, one, 1.0, self.base.fitted_noise)

    def covariance(self, per_unit: Vector, outside: float) -> Vector:
        """Return sum_b (D_b diag(V_b o scale) D_b') o (C_b C_b') for the scales of units and of everything else; (t, t)."""
        total = np.zeros((len(self.base.y),) * 2)
        scales = self.units.over_rows(per_unit, outside)
        for block, d, c, scale in zip(self.base.blocks, self.base.left, self.continuous, scales, strict=True):
            used = scale > 0.0
            if np.any(used):
                total += ((d[:, used] * (block.variances * scale)[used]) @ d[:, used].T) * c
        return total

    def log_evidence(self, k: Vector, noise: float) -> float:
        """Return log p(y | scales) up to a constant, from K without its noise; (t, t) -> scalar."""
        # K is symmetric, so its transpose is in the column order that LAPACK needs, without a copy
        lower, failed = dpotrf(_covered(k, noise + self.base.noise).T, lower=1, clean=0, overwrite_a=1)
        if failed:
            return -math.inf
        alpha, _ = dtrtrs(lower, self.base.y, lower=1)
        value = -0.5 * float(alpha @ alpha) - float(np.sum(np.log(np.diag(lower))))
        return value - 0.5 * (self.rest * math.log(noise) + self.rest_squares / noise)

    def given(self, at: Scales) -> LinearPosterior:
        """Return the Gaussian posterior of the weights given the scales."""
        scales = self.units.over_rows(at.glob * at.local, 1.0)
        blocks = [replace(b, variances=b.variances * s) for b, s in zip(self.base.blocks, scales, strict=True)]
        factor = cholesky(_covered(self.covariance(at.glob * at.local, 1.0), at.noise), self.base.noise)
        return replace(self.base, blocks=tuple(blocks), fitted_noise=at.noise, factor=factor)

    def weights(self, at: Scales, k: Vector, rng: np.random.Generator) -> tuple[list[Vector], list[Vector]]:
        """Return a draw and the mean of the weights given the scales, from K without its noise: [(p_b, q_b)] each.

        Equals the sample and the mean of ``given``, at half the cost and without its blocks.
        """
        y = self.base.y
        factor = cholesky(_covered(k, at.noise), self.base.noise)
        fitted = np.sqrt(at.noise + self.base.noise) * rng.normal(size=len(y))
        drawn, mean = [], []
        scales = self.units.over_rows(at.glob * at.local, 1.0)
        for block, d, c, s in zip(self.base.blocks, self.base.left, self.base.right, scales, strict=True):
            prior = rng.normal(size=(d.shape[1], c.shape[1])) * np.sqrt(block.variances * s)[:, None]
            fitted += np.sum((d @ prior) * c, axis=1)
            drawn.append(prior)
        alpha = cho_solve(factor, np.stack([y - fitted, y], axis=1))
        for b, (block, d, c, s) in enumerate(
            zip(self.base.blocks, self.base.left, self.base.right, scales, strict=True)
        ):
            variances = (block.variances * s)[:, None]
            drawn[b] += variances * (d.T @ (alpha[:, :1] * c))
            mean.append(variances * (d.T @ (alpha[:, 1:] * c)))
        return drawn, mean

    def squares(self, weights: Sequence[Vector]) -> Vector:
        """Return S_u of weights, shape (U,)."""
        pairs = zip(weights, self.base.blocks, strict=True)
        return self.units.total([np.sum(w**2, axis=1) / np.maximum(b.variances, TINY) for w, b in pairs])


def _covered(k: Vector, noise: Noise) -> Vector:
    """Return K with its noise on the diagonal."""
    covered = k.copy()
    covered.flat[:: len(k) + 1] += noise + JITTER
    return covered


def reduced(base: LinearPosterior) -> tuple[LinearPosterior, int, float]:
    """Reduce the data to M sufficient statistics, if M < t, no block has numerical parameters and no observation own noise.

    With Phi = Q R, Q' y and R replace y and Phi; the part of y orthogonal to Q depends on s2 alone.

    Returns:
        The model on the reduced data, the number of removed observations, and the sum of their squares.
    """
    t, m = len(base.y), base.n_features
    if m >= t or any(c.shape[1] != 1 for c in base.right) or np.any(base.noise):
        return base, 0, 0.0
    phi = np.concatenate([d * c for d, c in zip(base.left, base.right, strict=True)], axis=1)
    q, r = np.linalg.qr(phi)
    y = q.T @ base.y
    left = tuple(np.split(r, np.cumsum([d.shape[1] for d in base.left])[:-1], axis=1))
    squares = max(0.0, float(base.y @ base.y - y @ y))
    return replace(base, left=left, right=tuple(np.ones((m, 1)) for _ in left), y=y), t - m, squares
