"""Sums over the kernel terms of numerical parameters ("numbers") between two batches of points.

Notation
    x (B points), y (B' points);   on_j 1 where number j is on, else 0;   A_j = b_j on_j on'_j exp(-(u_j - u'_j)^2 / (2 m_j^2))

Numbers that are on in most points are processed one after the other, as matrices. A hyperparameter of one algorithm among many is
on in few points of either batch. The pairs of these points are listed, and the lists of all such numbers are processed at once.
"""

from __future__ import annotations

import numpy as np

from mipcash.program.forms import Indices, Vector
from mipcash.surrogates.structured.encoded import Encoded

TOGETHER = 1 << 16
"""Number of terms computed at a time."""
SPARSE = 0.5
"""Largest share of the pairs of points for which a number is listed."""
LISTED = 1 << 18
"""Largest number of entries of all lists together."""


def number_sums(switched: list[Indices], b: Vector, m: Vector, x: Encoded, y: Encoded) -> tuple[Vector, Vector]:
    """Return sum_j A_j and sum_j A_j^2: (B, B') each.

    Args:
        switched: sets of numbers that are on at the same points; numbers in no set are left out.
        b, m: shape (J,).
    """
    total, squares = np.zeros((len(x.u), len(y.u))), np.zeros((len(x.u), len(y.u)))
    first = np.array([together[0] for together in switched], dtype=np.int64)
    pairs = x.on[:, first].sum(axis=0) * y.on[:, first].sum(axis=0)
    few = pairs <= SPARSE * total.size
    if float(pairs[few] @ np.array([len(together) for together in switched])[few]) > LISTED:
        few[:] = False
    if few.any():
        _add_listed(total, squares, np.concatenate([t for t, f in zip(switched, few, strict=True) if f]), b, m, x, y)
    for together in (t for t, f in zip(switched, few, strict=True) if not f):
        _add_whole(total, squares, together, b, m, x, y)
    return total, squares


def _add_whole(total: Vector, squares: Vector, together: Indices, b: Vector, m: Vector, x: Encoded, y: Encoded) -> None:
    """Add the terms of numbers that are on at the same points to the sums, in place."""
    rows, cols = np.flatnonzero(x.on[:, together[0]]), np.flatnonzero(y.on[:, together[0]])
    if not len(rows) or not len(cols):
        return
    at = np.ix_(rows, cols) if len(rows) * len(cols) < total.size else ...
    share = max(1, TOGETHER // (len(rows) * len(cols)))
    for j in (together[k : k + share, None, None] for k in range(0, len(together), share)):
        term = x.u.T[j, rows[:, None]] - y.u.T[j, cols]
        term *= term
        term *= -0.5 / m[j] ** 2
        np.exp(term, out=term)
        term *= b[j]
        total[at] += term.sum(axis=0)
        term *= term
        squares[at] += term.sum(axis=0)


def _add_listed(total: Vector, squares: Vector, numbers: Indices, b: Vector, m: Vector, x: Encoded, y: Encoded) -> None:
    """Add the terms of numbers that are on in few points to the sums, in place."""
    here, row = np.nonzero(x.on.T[numbers] > 0)
    there, col = np.nonzero(y.on.T[numbers] > 0)
    count = np.bincount(there, minlength=len(numbers))
    repeats = count[here]  # Each point of x is paired with the points of y in which the number is on.
    ends = np.cumsum(repeats)
    if not len(ends) or not ends[-1]:
        return
    before = np.cumsum(count) - count
    mate = np.arange(ends[-1]) + np.repeat(before[here] - (ends - repeats), repeats)
    j = np.repeat(numbers[here], repeats)
    term = np.repeat(x.u[row, numbers[here]], repeats) - y.u[col, numbers[there]][mate]
    term *= term
    term *= (-0.5 / m**2)[j]
    np.exp(term, out=term)
    term *= b[j]
    at = np.repeat(row * total.shape[1], repeats) + col[mate]
    total += np.bincount(at, term, total.size).reshape(total.shape)
    squares += np.bincount(at, term**2, total.size).reshape(total.shape)
