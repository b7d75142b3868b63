"""Exact products by the reformulation-linearisation technique (RLT).

Two one-hot groups g (columns a) and h (columns b), y[a, b] continuous in [0, 1]:

    sum_b y[a, b] = z[a]   for all a,          sum_a y[a, b] = z[b]   for all b.

At a binary point the rows force y[a, b] = z[a] z[b]: rows a with z[a] = 0 vanish, and the one with z[a] = 1 equals h.
The relaxation is the convex hull of the pair, which the usual ``y <= a, y <= b, y >= a + b - 1`` is not.

A one-hot group g and a number v in [low, high], w[a] continuous:

    sum_a w[a] = v,        low z[a] <= w[a] <= high z[a]   for all a,

so that w[a] = z[a] v for every v, integer or not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipcash.program.forms import Indices, Vector


@dataclass(frozen=True)
class Bilinear:
    """A base column that is the product of two other base columns: ``column = scale * first * second``.

    No row enforces it: solvers relax it (``mipcash.backends.spatial``), and a point is checked with the product itself.
    """

    column: int
    first: int
    second: int
    scale: float = 1.0


@dataclass(frozen=True)
class Product:
    """Columns of one product: ``start .. start + size - 1``, row-major over (a, b).

    Attributes:
        key: (g, h) with g < h for two groups, (g, -1 - column) for a group and a number.
    """

    key: tuple[int, int]
    start: int
    size: int


@dataclass(frozen=True)
class ProductBlock:
    """A product with the rows that define it, as triplets (``rows`` counted from 0)."""

    product: Product
    rows: Indices
    cols: Indices
    values: Vector
    row_low: Vector
    row_high: Vector
    low: Vector
    high: Vector

    @property
    def n_rows(self) -> int:
        return len(self.row_low)


def rlt_pair(left: slice, right: slice, start: int, key: tuple[int, int]) -> ProductBlock:
    """Return y[a, b] = z[a] z[b] for the groups with columns ``left`` and ``right``; y starts at column ``start``."""
    n_a, n_b = left.stop - left.start, right.stop - right.start
    y = start + np.arange(n_a * n_b).reshape(n_a, n_b)
    rows = np.concatenate(
        [np.repeat(np.arange(n_a), n_b), np.arange(n_a), np.tile(np.arange(n_b), n_a) + n_a, np.arange(n_b) + n_a]
    )
    cols = np.concatenate([y.ravel(), np.arange(left.start, left.stop), y.ravel(), np.arange(right.start, right.stop)])
    values = np.concatenate([np.ones(n_a * n_b), -np.ones(n_a), np.ones(n_a * n_b), -np.ones(n_b)])
    zero = np.zeros(n_a + n_b)
    return ProductBlock(
        Product(key, start, n_a * n_b), rows, cols, values, zero, zero, np.zeros(n_a * n_b), np.ones(n_a * n_b)
    )


def rlt_number(
    group: slice, column: int, bounds: tuple[float, float], start: int, key: tuple[int, int]
) -> ProductBlock:
    """Return w[a] = z[a] v for the group's columns and the number in ``column``; w starts at column ``start``."""
    size, (low, high) = group.stop - group.start, bounds
    a = np.arange(size)
    z, w = group.start + a, start + a
    rows = np.concatenate([np.zeros(size + 1), 1 + a, 1 + a, 1 + size + a, 1 + size + a]).astype(np.int64)
    cols = np.concatenate([w, [column], w, z, w, z])
    values = np.concatenate(
        [np.ones(size), [-1.0], np.ones(size), -low * np.ones(size), np.ones(size), -high * np.ones(size)]
    )
    infinite = np.full(size, np.inf)
    return ProductBlock(
        Product(key, start, size),
        rows,
        cols,
        values,
        np.concatenate([[0.0], np.zeros(size), -infinite]),
        np.concatenate([[0.0], infinite, np.zeros(size)]),
        np.full(size, min(0.0, low)),
        np.full(size, max(0.0, high)),
    )
