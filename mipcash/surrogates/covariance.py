"""Numerical parts that several surrogates share: standardisation of losses, and a Cholesky factorisation with minimal jitter."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor

from mipcash.program.forms import Vector
from mipcash.surrogates.protocols import Noise


def standardisation(losses: Vector) -> tuple[float, float]:
    """Return the shift and scale to zero mean and unit standard deviation; the scale is 1 if all losses are equal."""
    largest = float(np.max(np.abs(losses)))
    if largest == 0.0:
        return 0.0, 1.0
    scaled = losses / largest  # squares of losses near 1e300 would overflow
    scale = float(np.std(scaled)) * largest
    return float(np.mean(scaled)) * largest, scale if scale > 1e-12 * largest else 1.0


def cholesky(k: Vector, noise: Noise = 0.0) -> tuple[Vector, bool]:
    """Return the Cholesky factor of k (t, t) plus noise on its diagonal, and scipy's flag ``lower``.

    The least jitter that works is added. It is relative to k alone, since the noise may be very large for observations that should
    carry no weight.

    Raises:
        FloatingPointError: the matrix is not positive definite even with the largest jitter.
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
