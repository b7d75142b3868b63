"""McCormick's relaxation of products of two reals over a box, and their linearisation at a point.

Notation
    w = s a b        a bilinear column of the program, its factors and its scale; a box is [la, ua] x [lb, ub].

    w >= s (la b + lb a - la lb),   w >= s (ua b + ub a - ua ub),
    w <= s (ua b + lb a - ua lb),   w <= s (la b + ub a - la ub)        (s > 0; exchanged for s < 0; McCormick 1976)

The relaxation contains every legal point of the box. It is exact where a factor is fixed, and at the corners of the box.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy import sparse

from mipcash.program.forms import Vector
from mipcash.program.products import Bilinear
from mipcash.program.program import BinaryProgram
from mipcash.program.rewriting import with_bounds, with_rows

ROUNDING = 1e-15
"""Rounding error of sums of products, relative to their terms."""


def relaxation(program: BinaryProgram, low: Vector, high: Vector, products: Iterable[Bilinear]) -> BinaryProgram:
    """Return the program over a box of its base columns, (n,) each, with McCormick's rows for its products."""
    rows, at, values, row_low, row_high = list[int](), list[int](), list[float](), list[float](), list[float]()
    for p in products:
        (la, ua), (lb, ub) = ((float(low[c]), float(high[c])) for c in (p.first, p.second))
        for a, b, below in ((la, lb, True), (ua, ub, True), (ua, lb, False), (la, ub, False)):
            below = below if p.scale > 0 else not below
            # w - s a b' - s b a' >= - s a b  (or <=)
            entries = {p.column: 1.0}
            for c, v in ((p.second, a), (p.first, b)):
                entries[c] = entries.get(c, 0.0) - p.scale * v
            rows += [len(row_low)] * len(entries)
            at += entries
            values += entries.values()
            end = -p.scale * a * b
            room = ROUNDING * abs(p.scale) * max(abs(la), abs(ua)) * max(abs(lb), abs(ub))
            row_low.append(end - room if below else -math.inf)
            row_high.append(math.inf if below else end + room)
    return _over(program, low, high, (rows, at, values), row_low, row_high)


def linearised(
    program: BinaryProgram, low: Vector, high: Vector, products: Iterable[Bilinear], at: Vector
) -> BinaryProgram:
    """Return the program over a box of its base columns, (n,) each, with its products linearised at a point, (n,)."""
    rows, columns, values, ends = list[int](), list[int](), list[float](), list[float]()
    for p in products:
        # w = s (b0 a + a0 b - a0 b0); entries of a square are summed
        a, b = float(at[p.first]), float(at[p.second])
        rows += [len(ends)] * 3
        columns += [p.column, p.first, p.second]
        values += [1.0, -p.scale * b, -p.scale * a]
        ends.append(-p.scale * a * b)
    return _over(program, low, high, (rows, columns, values), ends, ends)


def _over(
    program: BinaryProgram,
    low: Vector,
    high: Vector,
    entries: tuple[list[int], list[int], list[float]],
    row_low: list[float],
    row_high: list[float],
) -> BinaryProgram:
    """Return the program over a box with further rows, given by their positions, columns and coefficients."""
    rows, columns, values = entries
    matrix = sparse.csr_array((values, (rows, columns)), shape=(len(row_low), program.n_columns))
    matrix.eliminate_zeros()
    ends = np.concatenate([low, program.low[program.n :]]), np.concatenate([high, program.high[program.n :]])
    return with_rows(with_bounds(program, *ends), matrix, row_low, row_high)
