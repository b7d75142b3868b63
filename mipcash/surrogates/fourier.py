"""Random Fourier features of the squared-exponential kernel (Rahimi and Recht 2008).

Notation
    u (B, D)        unit values;   length (D,)   length-scales
    phi_m(u) = sqrt(2 / M) cos(omega_m . (u / length) + phase_m),   omega_m ~ N(0, I), phase_m ~ U[0, 2 pi]

so that E[phi(u) . phi(u')] = exp(-|| (u - u') / length ||^2 / 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipcash.program.forms import Indices, Vector
from mipcash.surrogates.cosines import cosine_gradient, embed


@dataclass(frozen=True)
class FourierFeatures:
    """Random Fourier features over some of the numerical parameters.

    Attributes:
        dims: the numerical parameters that the features depend on, shape (D',).
        omega: frequencies already divided by the length-scales, shape (M, D').
        phase: shape (M,).
    """

    dims: Indices
    omega: Vector
    phase: Vector

    @classmethod
    def draw(cls, dims: Indices, length: Vector, n_features: int, rng: np.random.Generator) -> FourierFeatures:
        """Draw M = n_features features with length-scales of shape (D',)."""
        omega = rng.normal(size=(n_features, len(dims))) / length
        return cls(np.asarray(dims, dtype=np.int64), omega, rng.uniform(0.0, 2.0 * np.pi, n_features))

    @property
    def size(self) -> int:
        return len(self.phase)

    @property
    def amplitude(self) -> Vector:
        """sqrt(2 / M) for every feature, shape (M,)."""
        return np.full(self.size, np.sqrt(2.0 / self.size))

    @property
    def ceiling(self) -> Vector:
        """Bounds of the absolute values of the features, shape (M,)."""
        return self.amplitude

    def __call__(self, u: Vector) -> Vector:
        """Features: (B, D) -> (B, M)."""
        values: Vector = np.sqrt(2.0 / self.size) * np.cos(u[:, self.dims] @ self.omega.T + self.phase)
        return values

    def gradient(self, u: Vector) -> Vector:
        """Derivatives at one point: (D,) -> (M, D)."""
        return cosine_gradient(self.embedded(len(u)), self.phase, self.amplitude, u)

    def embedded(self, n_numbers: int) -> Vector:
        """Return the frequencies over all numerical parameters, zero where the features do not depend on them: (M, D)."""
        return embed(self.omega, self.dims, n_numbers)
