"""Random linear function of quadratic, Fourier and mixed features, with or without a cardinality rule.

Appendix A.1 (no rule) and A.2 (``cardinality=2``) of Daxberger et al., "Mixed-variable Bayesian optimization".

    f(b, x) = w' [phi_d, phi_c, phi_m],  to be minimised
    phi_d = [1, b_i, b_i b_j (i < j)]            M_d = 1 + 8 + 28 = 37       (Section 3.1)
    phi_c = sqrt(2 / M_c) cos(V x + u)           M_c = 16,  V ~ N(0, I / sigma^2),  u ~ U(0, 2 pi),  sigma = 1
    phi_m = [phi_d_i phi_c_j]                    M_m = 37 * 16 = 592         so M = 645

Here x is in [-1, 1]^8, in which f has several local minima along x; the paper scales its box to [0, 1]^8 (Sec. 2).
Neither does it give its weights: they follow from ``seed``. The true minimum is not known to the paper either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mipcash as mc
from mipcash.models._options import choice, whole

BITS = REALS = 8
FREQUENCIES = 16
SIGMA = 1.0
LAPLACE_SCALE = 10.0
"""1 / alpha with the paper's *inverse* scale alpha = 0.1 (its formula, read literally, would prune every weight)."""
PRUNE = 10.0
"""Laplace weights smaller than this in absolute value become zero (A.1): exp(-1), 37 %, of them remain."""

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Function:
    """A draw of the random function.

    Attributes:
        weights: w, shape (M,).
        frequencies: V, shape (M_c, D_c).
        phases: u, shape (M_c,).
    """

    weights: Vector
    frequencies: Vector
    phases: Vector

    def features(self, bits: Vector, reals: Vector) -> Vector:
        """phi of Section 3.1, shape (M,): discrete, continuous, mixed."""
        i, j = np.triu_indices(len(bits), k=1)
        discrete = np.concatenate([[1.0], bits, bits[i] * bits[j]])
        continuous = np.sqrt(2 / len(self.phases)) * np.cos(self.frequencies @ reals + self.phases)
        return np.concatenate([discrete, continuous, np.outer(discrete, continuous).ravel()])

    def __call__(self, config: Mapping[str, Any]) -> float:
        bits = np.array([config[f"b{i}"] for i in range(1, BITS + 1)], dtype=float)
        reals = np.array([config[f"x{j}"] for j in range(1, REALS + 1)], dtype=float)
        return float(self.weights @ self.features(bits, reals))


def draw(rng: np.random.Generator, weights: str = "gaussian") -> Function:
    """Draw frequencies, phases and weights.

    Args:
        weights: ``gaussian``, N(0, 1), or ``laplace``, pruned to a sparse vector (the two settings of A.1).
    """
    frequencies = rng.normal(0.0, 1 / SIGMA, size=(FREQUENCIES, REALS))
    phases = rng.uniform(0.0, 2 * np.pi, size=FREQUENCIES)
    discrete = 1 + BITS + BITS * (BITS - 1) // 2
    size = discrete + FREQUENCIES + discrete * FREQUENCIES
    if weights == "gaussian":
        return Function(rng.normal(size=size), frequencies, phases)
    dense = rng.laplace(0.0, LAPLACE_SCALE, size=size)
    return Function(np.where(np.abs(dense) < PRUNE, 0.0, dense), frequencies, phases)


def build(
    *, seed: int | str = 0, cardinality: int | str | None = None, weights: str = "gaussian"
) -> tuple[mc.Space, Callable[[Mapping[str, Any]], float]]:
    """The space and one draw of the function.

    Args:
        seed: of the weights.
        cardinality: at most so many bits are 1 (A.2 takes 2); None: no rule (A.1).
        weights: ``gaussian`` or ``laplace``.
    """
    space = mc.Space("synthetic")
    bits = [space.integer(f"b{i}", 0, 1) for i in range(1, BITS + 1)]
    for j in range(1, REALS + 1):
        space.real(f"x{j}", -1.0, 1.0)
    if cardinality is not None and str(cardinality).lower() != "none":
        k = whole("cardinality", cardinality)
        space.rule("A.2: cardinality", sum(bits) <= k)
    rng = np.random.default_rng(whole("seed", seed))
    return space, draw(rng, choice("weights", weights, ["gaussian", "laplace"]))


space, objective = build()
