"""Features of numerical parameters that are cosines, and sums of them.

Notation
    u (B, D)        unit values;   dims (D',)   the numerical parameters that the features depend on;   length (D',)   length-scales
    phi_m(u) = amplitude_m cos(omega_m . u[dims] + phase_m),   dphi_m / du = -amplitude_m sin(..) omega_m

Random Fourier features of the squared-exponential kernel (rahimi2008) are

    phi_m(u) = sqrt(2 / M) cos(omega_m . (u / length) + phase_m),   omega_m ~ N(0, I), phase_m ~ U[0, 2 pi]

so that E[phi(u) . phi(u')] = exp(-|| (u - u') / length ||^2 / 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mipcash.program.forms import Indices, Vector


@dataclass(frozen=True)
class CosineFeatures:
    """Features of some of the numerical parameters (see the module's notation).

    Attributes:
        dims: shape (D',).
        omega: frequencies already divided by the length-scales, shape (M, D').
        phase, amplitude: shape (M,).
    """

    dims: Indices
    omega: Vector
    phase: Vector
    amplitude: Vector

    @classmethod
    def fourier(cls, dims: Indices, length: Vector, n_features: int, rng: np.random.Generator) -> CosineFeatures:
        """Draw M = n_features random Fourier features with length-scales of shape (D',)."""
        omega = rng.normal(size=(n_features, len(dims))) / length
        phase = rng.uniform(0.0, 2.0 * np.pi, n_features)
        return cls(np.asarray(dims, dtype=np.int64), omega, phase, np.full(n_features, np.sqrt(2.0 / n_features)))

    @property
    def size(self) -> int:
        return len(self.phase)

    def __call__(self, u: Vector) -> Vector:
        """Features: (B, D) -> (B, M)."""
        values: Vector = self.amplitude * np.cos(u[:, self.dims] @ self.omega.T + self.phase)
        return values

    def embedded(self, n_numbers: int) -> Vector:
        """Return the frequencies over all numerical parameters, zero where the features do not depend on them: (M, D)."""
        whole = np.zeros((self.size, n_numbers))
        whole[:, self.dims] = self.omega
        return whole


class CosineSum:
    """``constant + sum_m amplitude_m cos(omega_m . u + phase_m)``.

    Attributes:
        omega: shape (M, D).
        phase, amplitude: shape (M,).
    """

    def __init__(self, constant: float, weighted: Sequence[tuple[CosineFeatures, Vector]], n_numbers: int) -> None:
        """Add features, each with its weights (M,), over D = n_numbers numerical parameters, to a constant."""
        pieces, self.constant = [(f, weights) for f, weights in weighted if np.any(weights)], constant
        self.omega = np.concatenate([np.zeros((0, n_numbers)), *(f.embedded(n_numbers) for f, _ in pieces)])
        self.phase = np.concatenate([np.zeros(0), *(f.phase for f, _ in pieces)])
        self.amplitude = np.concatenate([np.zeros(0), *(w * f.amplitude for f, w in pieces)])

    def __call__(self, u: Vector) -> tuple[float, Vector]:
        """Value and gradient: (D,) -> scalar, (D,)."""
        angle = self.omega @ u + self.phase
        return float(self.constant + self.amplitude @ np.cos(angle)), -(self.amplitude * np.sin(angle)) @ self.omega
