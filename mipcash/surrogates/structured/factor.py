"""The Cholesky factor of the covariance of the observations, extended row by row between searches of the hyperparameters.

    S = L L' = K + R + s2 I + diag(v)       L_+ = [[L, 0], [h', c]],   L h = (K + R)(X, x),   c^2 = S(x, x) - h'h

The factor is that of the observations of the last search, extended by one observation after another, O(t^2) each. A fit that
continues a cached factor therefore has the same bits as one that computes all of it, and a resumed run equals an unbroken one.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, solve_triangular

from mipcash.program.forms import Vector
from mipcash.surrogates.protocols import Noise
from mipcash.surrogates.structured.encoded import Encoded
from mipcash.surrogates.structured.evidence import JITTER
from mipcash.surrogates.structured.kernel import Kernel

BLOCK = 256
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
        k[first:last, :last] = kernel.whole(x[first:last], x[:last])
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
        return _whole(kernel, x, noise)
    cached, key = kernel.structure.factors, (base, kernel.theta.tobytes())
    before: Encoded
    lower: Vector
    before, lower = cached.pop(key, (x[:0], np.zeros((0, 0))))
    n = len(before)
    if not (base <= n <= t and _same(before, x[:n])):
        n, lower = base, _whole(kernel, x[:base])
    for k in range(n, t):
        lower = _extended(kernel, x[: k + 1], lower)
    cached[key] = (x, lower)
    while len(cached) > 1 and sum(held.size for _, held in cached.values()) > CACHED:
        del cached[next(iter(cached))]
    return lower


def _same(a: Encoded, b: Encoded) -> bool:
    return np.array_equal(a.levels, b.levels) and np.array_equal(a.u, b.u)


def _whole(kernel: Kernel, x: Encoded, noise: Noise = 0.0) -> Vector:
    lower, _ = cho_factor(covariance(kernel, x, noise), lower=True, overwrite_a=True, check_finite=False)
    return np.tril(lower)


def _extended(kernel: Kernel, x: Encoded, lower: Vector) -> Vector:
    """Return the factor at t points from that of the first t - 1."""
    t = len(x)
    k = kernel.whole(x[t - 1 :], x)[0]
    h = solve_triangular(lower, k[:-1], lower=True, check_finite=False)
    square = k[-1] + kernel.noise + JITTER - h @ h
    if square <= 0.0:
        return _whole(kernel, x)
    found = np.zeros((t, t))
    found[:-1, :-1], found[-1, :-1], found[-1, -1] = lower, h, np.sqrt(square)
    return found
