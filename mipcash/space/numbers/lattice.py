"""Moves of integers that preserve linear equations, for walks over the legal values of numbers.

Notation
    A x = b     equations over the numbers x (k,), A (m, k)
    s_i         step of an integer i, so that x_i = low_i + s_i n_i with whole n_i

    single      n_i + 1, with the reals moved so that A x stays the same, where that is possible
    exchange    two integers of an equation with a_i s_i / (a_j s_j) = p / q in lowest terms:  n_i + q,  n_j - p
    joint       a basis of the null space of the equations over integers alone, by elimination in fractions, in whole numbers.
                Several equations may hold every pair, as in a table of integers with fixed sums of rows and columns.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mipcash.program.forms import Vector

RATIO = 10_000
"""Largest denominator of a ratio of coefficients that counts as rational."""
MOST = 64
"""Largest number of integers whose joint moves are computed."""


def directions_of(rows: Vector, integer: NDArray[np.bool_], step: Vector) -> Vector:
    """Return the moves, (d, k), that preserve equations.

    Args:
        rows: A.
        integer: True for numbers that move in steps, (k,).
        step: s, (k,).
    """
    found: list[Vector] = []
    for i in np.flatnonzero(integer):
        one = np.zeros(rows.shape[1])
        one[i] = step[i]
        found.append(one)
        for j in np.flatnonzero(integer & (np.arange(rows.shape[1]) > i)):
            if np.any(rows[:, i] * rows[:, j]):
                found += _exchanges(rows, int(i), int(j), step)
    real, kept = ~integer, list[Vector]()
    inverse = np.linalg.pinv(rows[:, real]) if len(rows) and np.any(real) else None
    for direction in found:
        rest = rows @ direction
        if inverse is not None:
            direction[real] -= inverse @ rest
            rest = rows @ direction
        if np.all(np.abs(rest) <= 1e-9 * np.abs(rows).max(axis=1, initial=0.0)):
            kept.append(direction)
    kept += _joint(rows[~np.any(rows[:, real], axis=1)], step)
    return np.array(kept).reshape(len(kept), rows.shape[1])


def _exchanges(rows: Vector, i: int, j: int, step: Vector) -> list[Vector]:
    """Return the exchange of integers i and j in each equation with a rational ratio of their coefficients."""
    found = []
    for row in rows[(rows[:, i] != 0) & (rows[:, j] != 0)]:
        a, b = row[i] * step[i], row[j] * step[j]
        ratio = Fraction(a / b).limit_denominator(RATIO)
        if abs(float(ratio) - a / b) <= 1e-12 * abs(a / b):
            direction = np.zeros(rows.shape[1])
            direction[i], direction[j] = step[i] * ratio.denominator, -step[j] * ratio.numerator
            found.append(direction)
    return found


def _joint(rows: Vector, step: Vector) -> list[Vector]:
    """Return the joint moves under several equations over integers; none if their coefficients are not rational."""
    whole = np.flatnonzero(np.any(rows, axis=0))
    if len(rows) < 2 or len(whole) > MOST:
        return []
    scaled = rows[:, whole] * step[whole]
    exact = [[Fraction(v).limit_denominator(RATIO) for v in row] for row in scaled.tolist()]
    if np.any(np.abs(np.array(exact, dtype=float) - scaled) > 1e-12 * np.abs(scaled)):
        return []
    import sympy  # takes half a second

    found = []
    for vector in sympy.Matrix(exact).nullspace():
        scale = math.lcm(*(int(v.q) for v in vector))
        direction = np.zeros(rows.shape[1])
        direction[whole] = [float(v * scale) for v in vector] * step[whole]
        found.append(direction)
    return found
