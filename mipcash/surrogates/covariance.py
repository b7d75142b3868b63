"""Numerical parts that several surrogates share: standardised losses, and a Cholesky factor with as little jitter as works."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor

from mipcash.program.forms import Vector
from mipcash.surrogates.protocols import Noise


def standardisation(losses: Vector) -> tuple[float, float]:
    """Shift and scale to zero mean and unit standard deviation (scale 1 where all losses agree)."""
    largest = float(np.max(np.abs(losses)))
    if largest == 0.0:
        return 0.0, 1.0
    scaled = losses / largest  # squares of losses near 1e300 would overflow
    scale = float(np.std(scaled)) * largest
    return float(np.mean(scaled)) * largest, scale if scale > 1e-12 * largest else 1.0


def cholesky(k: Vector, noise: Noise = 0.0) -> tuple[Vector, bool]:
    """Cholesky of k (t, t) and further noise on its diagonal, with as little jitter as works.

    Jitter is relative to k alone: noise may be as large as what is to count for nothing.
    """
    scale = float(np.mean(np.diag(k)))
    for exponent in range(-12, -2):
        covered = k + scale * 10.0**exponent * np.eye(len(k))
        covered[np.diag_indices_from(covered)] += noise
        try:
            lower, flag = cho_factor(covered, lower=True)
            return lower, flag
        except np.linalg.LinAlgError:
            continue
    raise FloatingPointError(
        "the covariance of the observations is not positive definite; a loss or feature is not finite"
    )
