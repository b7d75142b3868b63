"""Quadratic forms over the base columns of a program, the common language of surrogates and solvers.

Notation
    n       number of base columns: the one-hot binaries first, then the numbers that occur in rules
    q(v) = constant + linear . v + sum_k values[k] v[rows[k]] v[cols[k]],   v of shape (n,)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Indices = NDArray[np.int64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class QuadraticForm:
    """A quadratic form (see the module's notation).

    Attributes:
        constant: scalar.
        linear: shape (n,).
        rows, cols: shape (k,), column indices of the products; ``rows[k] != cols[k]`` after ``folded``.
        values: shape (k,).
    """

    constant: float
    linear: Vector
    rows: Indices
    cols: Indices
    values: Vector

    @classmethod
    def zero(cls, n: int) -> QuadraticForm:
        empty = np.zeros(0, dtype=np.int64)
        return cls(0.0, np.zeros(n), empty, empty, np.zeros(0))

    @property
    def n(self) -> int:
        return len(self.linear)

    def value(self, v: Vector) -> float:
        """Return the value of the form at one point of shape (n,)."""
        return float(self.constant + self.linear @ v + np.sum(self.values * v[self.rows] * v[self.cols]))

    def least(self, low: Vector, high: Vector) -> tuple[Vector, Vector]:
        """Return the least value of each linear term, (n,), and of each product, (k,), within bounds of shape (n,)."""
        products = [self.values * a[self.rows] * b[self.cols] for a in (low, high) for b in (low, high)]
        return np.minimum(self.linear * low, self.linear * high), np.min(products, axis=0)

    def symmetric(self) -> Vector:
        """Return the dense symmetric Q of shape (n, n), zero diagonal, with ``q(v) = constant + linear.v + v'Qv / 2``."""
        dense = np.zeros((self.n, self.n))
        np.add.at(dense, (self.rows, self.cols), self.values)
        return dense + dense.T

    def scaled(self, factor: float) -> QuadraticForm:
        return QuadraticForm(self.constant * factor, self.linear * factor, self.rows, self.cols, self.values * factor)
