"""Projection of linear rules onto the numerical parameters: continuous auxiliary variables are eliminated exactly.

Notation
    low <= a . x + b . t <= high    a row over the numbers x (k,) and the auxiliary variables t (q,), with c = (a, b)

A variable in an equation is substituted. Otherwise every upper bound of it is paired with every lower bound (Fourier-Motzkin):
some value of t satisfies the rows exactly if each pair leaves room. Tolerances add up with the same factors as the rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mipcash.program.forms import Vector

MOST = 200
"""Largest number of rows."""
ZERO = 1e-12
"""Coefficients up to this share of the largest one in their row are rounding errors of a substitution."""


@dataclass(frozen=True)
class Row:
    """A row (see the module's notation).

    Attributes:
        slack: tolerance.
        size: magnitude of the terms moved into the bounds.
        name: of the rule.
    """

    c: Vector
    low: float
    high: float
    slack: float
    size: float
    name: str

    def plus(self, factor: float, other: Row) -> Row:
        """Return this row plus a multiple of an equation."""
        c = self.c + factor * other.c
        c[np.abs(c) <= ZERO * np.abs(c).max(initial=0.0)] = 0.0
        moved = factor * other.low
        size = self.size + abs(factor) * (abs(other.low) + other.size)
        return Row(c, self.low + moved, self.high + moved, self.slack + abs(factor) * other.slack, size, self.name)

    def bound(self, k: int, sign: float) -> Row | None:
        """Return the row as an upper bound of ``sign`` times variable k; None if it is none."""
        scale = sign / self.c[k]
        high = (self.high if scale > 0 else self.low) * scale
        if not math.isfinite(high):
            return None
        return Row(self.c * scale, -math.inf, high, self.slack * abs(scale), self.size * abs(scale), self.name)


def projected(rows: Sequence[Row], k: int) -> list[Row] | None:
    """Return rows over the first k variables that hold exactly if some values of the others satisfy the given rows.

    The variables in equations come first, then those that make the fewest rows.

    Returns:
        None if there would be more than MOST rows.
    """
    rows = _merged(rows)
    while columns := sorted({int(c) for r in rows for c in np.flatnonzero(r.c[k:]) + k}):
        rows = _merged(_eliminated(rows, min(columns, key=lambda c: _growth(rows, c))))
        if len(rows) > MOST:
            return None
    return rows


def _growth(rows: Sequence[Row], column: int) -> int:
    """Return the number of rows that the elimination of a variable makes; 0 if an equation has it."""
    there = [r for r in rows if r.c[column]]
    if any(r.low == r.high for r in there):
        return 0
    above, below = (sum(r.bound(column, sign) is not None for r in there) for sign in (1.0, -1.0))
    return above * below


def _eliminated(rows: Sequence[Row], column: int) -> list[Row]:
    """Return rows without a variable, which is substituted by an equation or else by pairs of its bounds."""
    there, rest = [r for r in rows if r.c[column]], [r for r in rows if not r.c[column]]
    pivots = [r for r in there if r.low == r.high]
    if pivots:
        pivot = max(pivots, key=lambda r: abs(r.c[column]) / np.abs(r.c).max())
        left = [r.plus(-r.c[column] / pivot.c[column], pivot) for r in there if r is not pivot]
    else:
        above, below = ([r for each in there if (r := each.bound(column, sign))] for sign in (1.0, -1.0))
        left = [_pair(upper, lower, column) for upper in above for lower in below]
    return [*rest, *left]


def _merged(rows: Sequence[Row]) -> list[Row]:
    """Return the rows, those with the same coefficients up to a factor as one; rows without variables only if they fail."""
    found: dict[tuple[float, ...], Row] = {}
    for row in rows:
        if not row.c.any():
            if _fails(row):
                return [row]
            continue
        scale = 1.0 / float(row.c[np.flatnonzero(row.c)[0]])
        lower, upper = sorted((row.low * scale, row.high * scale))
        c, slack, size = row.c * scale, row.slack * abs(scale), row.size * abs(scale)
        other = found.get(tuple(c.tolist()))
        if other is None:
            found[tuple(c.tolist())] = Row(c, lower, upper, slack, size, row.name)
            continue
        low, high = max(lower, other.low), min(upper, other.high)
        slack, size = max(slack, other.slack), max(size, other.size)
        if low > high + slack:
            return [Row(np.zeros(len(c)), low - high, math.inf, slack, size, row.name)]
        found[tuple(c.tolist())] = Row(c, min(low, high), high, slack, size, other.name or row.name)
    return list(found.values())


def is_possible(rows: Sequence[Row]) -> bool:
    """Return True if no row without variables fails."""
    return not any(not r.c.any() and _fails(r) for r in rows)


def _fails(row: Row) -> bool:
    """Return True if a row without variables does not hold."""
    return not row.low - row.slack <= 0.0 <= row.high + row.slack


def _pair(upper: Row, lower: Row, column: int) -> Row:
    """Return the row that leaves room for a variable between an upper bound of it and one of its negative."""
    c = upper.c + lower.c
    c[column] = 0.0
    size = upper.size + lower.size + abs(upper.high) + abs(lower.high)
    return Row(c, -math.inf, upper.high + lower.high, upper.slack + lower.slack, size, upper.name or lower.name)
