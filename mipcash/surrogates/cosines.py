"""Sums of cosines, which random and quadrature Fourier features and the samples made of them have in common.

Notation
    phi_m(u) = amplitude_m cos(omega_m . u[dims] + phase_m),   dphi_m / du = -amplitude_m sin(..) omega_m
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipcash.program.forms import Indices, Vector


def cosine_gradient(omega: Vector, phase: Vector, amplitude: Vector, u: Vector) -> Vector:
    """Derivatives at one point: (M, D), (M,), (M,), (D,) -> (M, D)."""
    slope: Vector = -(amplitude * np.sin(omega @ u + phase))[:, None] * omega
    return slope


@dataclass(frozen=True)
class CosineSum:
    """``constant + sum_m amplitude_m cos(omega_m . u + phase_m)``.

    Attributes:
        omega: shape (M, D).
        phase, amplitude: shape (M,).
    """

    omega: Vector
    phase: Vector
    amplitude: Vector
    constant: float

    def __call__(self, u: Vector) -> tuple[float, Vector]:
        """Value and gradient: (D,) -> scalar, (D,)."""
        angle = self.omega @ u + self.phase
        return float(self.constant + self.amplitude @ np.cos(angle)), -(self.amplitude * np.sin(angle)) @ self.omega


def embed(omega: Vector, dims: Indices, n_numbers: int) -> Vector:
    """Return frequencies over all numerical parameters, zero where the features do not depend on them: (M, D') -> (M, D)."""
    whole = np.zeros((len(omega), n_numbers))
    whole[:, dims] = omega
    return whole
