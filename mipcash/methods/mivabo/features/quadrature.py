"""Quadrature Fourier features of the squared-exponential kernel (Mutny and Krause 2018).

Notation
    u (B, D)    unit values;   length (D,)   length-scales;   m   nodes per dimension
    x_a, w_a    Gauss-Hermite nodes and weights:   int exp(-x^2) g(x) dx = sum_a w_a g(x_a), exact for degree 2m - 1

The kernel is the expectation of cos(omega . (u - u')) over omega ~ N(0, diag(1 / length^2)) (Bochner), so

    k(u, u') = sum_a (prod_d w_{a_d} / sqrt(pi)) cos(omega_a . (u - u')),   omega_a = sqrt(2) x_a / length,   a in {1..m}^D

and cos(omega . (u - u')) = cos cos' + sin sin' makes a cosine and a sine feature of each node. The nodes are symmetric, and
-omega makes the same two, so half the grid does: m^D features. The error falls like (e / (4 m length^2))^m (Theorem 1): none
to speak of once m > 3 / length^2, and useless far below. For many dimensions a grid for each of a few
numbers that interact keeps it small (additive kernels, Sec. 3.1 there).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipcash.errors import SpaceError
from mipcash.program.forms import Indices, Vector
from mipcash.surrogates.cosines import cosine_gradient, embed

LARGEST = 4096
"""Features of one grid, beyond which the posterior's cost has left that of random features far behind."""


@dataclass(frozen=True)
class QuadratureFeatures:
    """Quadrature Fourier features over some of the numbers.

    Attributes:
        dims: the numbers they see, shape (D',).
        omega: frequencies, shape (M, D').
        phase: 0 for a cosine, -pi/2 for a sine; shape (M,).
        amplitude: square roots of the nodes' weights, shape (M,).
    """

    dims: Indices
    omega: Vector
    phase: Vector
    amplitude: Vector

    @classmethod
    def tensor(cls, dims: Indices, length: Vector, nodes: int, largest: int = LARGEST) -> QuadratureFeatures:
        """The tensor grid over all of ``dims``: nodes^D' features.

        Raises:
            SpaceError: the grid would have more than ``largest`` features.
        """
        dims = np.asarray(dims, dtype=np.int64)
        size = nodes ** len(dims)
        if size > largest:
            raise SpaceError(
                f"quadrature features over {len(dims)} numbers at once with {nodes} nodes each are {nodes}^{len(dims)} = {size}"
                f" features, more than {largest}; take fewer nodes, an additive kernel (declare the interactions between"
                " numbers that matter), or Fourier features"
            )
        x, w = np.polynomial.hermite.hermgauss(nodes)
        grid = np.array(np.meshgrid(*[x] * len(dims), indexing="ij")).reshape(len(dims), -1).T
        weight = (
            np.array(np.meshgrid(*[w / np.sqrt(np.pi)] * len(dims), indexing="ij")).reshape(len(dims), -1).prod(axis=0)
        )
        # node k and node size - 1 - k are each other's negatives; an odd grid's middle one is zero and has no sine
        half = size // 2
        omega = np.sqrt(2.0) * grid / np.asarray(length)
        amplitude = np.sqrt(2.0 * weight[:half])
        middle = slice(half, half + size % 2)
        return cls(
            dims,
            np.concatenate([omega[:half], omega[:half], omega[middle]]),
            np.concatenate([np.zeros(half), np.full(half, -0.5 * np.pi), np.zeros(size % 2)]),
            np.concatenate([amplitude, amplitude, np.sqrt(weight[middle])]),
        )

    @property
    def size(self) -> int:
        return len(self.phase)

    @property
    def ceiling(self) -> Vector:
        """Bounds of the absolute values of the features, shape (M,)."""
        return self.amplitude

    def __call__(self, u: Vector) -> Vector:
        """Features: (B, D) -> (B, M)."""
        values: Vector = self.amplitude * np.cos(u[:, self.dims] @ self.omega.T + self.phase)
        return values

    def gradient(self, u: Vector) -> Vector:
        """Derivatives at one point: (D,) -> (M, D)."""
        return cosine_gradient(self.embedded(len(u)), self.phase, self.amplitude, u)

    def embedded(self, n_numbers: int) -> Vector:
        """Frequencies over all numbers, zero at those they do not see: (M, D)."""
        return embed(self.omega, self.dims, n_numbers)
