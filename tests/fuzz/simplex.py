"""Linear programs of a few reals in exact fractions: feasibility by a least-index dual rule, optima by Bland's rule.

Notation
    x (k,)   reals, low <= x <= high
    row      (a, lower, upper, scale): lower - t scale <= a . x <= upper + t scale; t is the tolerance
    dictionary   basic = value + matrix . nonbasic, all variables >= 0 (Chvatal 1983, Ch. 2)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

ZERO = Fraction(0)


@dataclass(frozen=True)
class Row:
    """``lower <= coefficients . x <= upper``; None: no bound. Tolerances are relative to ``scale``."""

    coefficients: tuple[Fraction, ...]
    lower: Fraction | None
    upper: Fraction | None
    scale: Fraction


@dataclass(frozen=True)
class System:
    """Bounds of k reals and rows over them."""

    low: tuple[Fraction, ...]
    high: tuple[Fraction, ...]
    rows: tuple[Row, ...]

    def inequalities(self, tolerance: Fraction) -> list[tuple[list[Fraction], Fraction]]:
        """Return the rows ``a . y <= b`` over ``y = x - low``, the upper bounds first."""
        k = len(self.low)
        listed = [
            ([Fraction(int(i == j)) for i in range(k)], h - l)
            for j, (l, h) in enumerate(zip(self.low, self.high, strict=True))
        ]
        for row in self.rows:
            shift = sum((a * l for a, l in zip(row.coefficients, self.low, strict=True)), ZERO)
            if row.upper is not None:
                listed.append((list(row.coefficients), row.upper + tolerance * row.scale - shift))
            if row.lower is not None:
                listed.append(([-a for a in row.coefficients], shift + tolerance * row.scale - row.lower))
        return listed


class Simplex:
    """Simplex dictionary of a system; it is feasible if the system is feasible.

    Attributes:
        feasible: whether some x satisfies all rows.
    """

    def __init__(self, system: System, tolerance: Fraction = ZERO) -> None:
        self._low = system.low
        self._k = len(system.low)
        listed = system.inequalities(tolerance)
        self._outside = list(range(self._k))
        self._basis = list(range(self._k, self._k + len(listed)))
        self._matrix = [[-c for c in a] for a, _ in listed]
        self._value = [b for _, b in listed]
        self.feasible = self._repair()

    def best(self, costs: Sequence[Fraction]) -> Fraction:
        """Return the greatest ``costs . x``; the system must be feasible."""
        constant = sum((c * l for c, l in zip(costs, self._low, strict=True)), ZERO)
        place = {v: s for s, v in enumerate(self._outside)}
        row = [ZERO] * self._k
        for j, cost in enumerate(costs):
            if not cost:
                continue
            if j in place:
                row[place[j]] += cost
            else:
                r = self._basis.index(j)
                constant += cost * self._value[r]
                row = [a + cost * b for a, b in zip(row, self._matrix[r], strict=True)]
        while True:
            entering = [(self._outside[s], s) for s in range(self._k) if row[s] > 0]
            if not entering:
                return constant
            s = min(entering)[1]
            r = self._leaving(s)
            step, slope = self._value[r], row[s]
            self._pivot(r, s)
            # the entering variable is now basic at r: substitute its row
            constant += slope * self._value[r]
            row[s] = ZERO
            row = [a + slope * b for a, b in zip(row, self._matrix[r], strict=True)]
            assert step >= 0

    def point(self) -> tuple[Fraction, ...]:
        """Return the x of the dictionary; after :meth:`best`, x is a maximiser."""
        y = dict(zip(self._basis, self._value, strict=True))
        return tuple(l + y.get(j, ZERO) for j, l in enumerate(self._low))

    def _repair(self) -> bool:
        """Pivot by least indices until no basic variable is negative; return False if there is no such dictionary."""
        while True:
            broken = [(self._basis[r], r) for r, v in enumerate(self._value) if v < 0]
            if not broken:
                return True
            r = min(broken)[1]
            helping = [(self._outside[s], s) for s in range(self._k) if self._matrix[r][s] > 0]
            if not helping:
                return False
            self._pivot(r, min(helping)[1])

    def _leaving(self, s: int) -> int:
        ratios = [(self._value[r] / -row[s], self._basis[r], r) for r, row in enumerate(self._matrix) if row[s] < 0]
        return min(ratios)[2]

    def _pivot(self, r: int, s: int) -> None:
        row, pivot = self._matrix[r], self._matrix[r][s]
        solved = [-c / pivot for c in row]
        solved[s] = 1 / pivot
        value = -self._value[r] / pivot
        for i, other in enumerate(self._matrix):
            slope = other[s]
            if i == r or not slope:
                continue
            self._value[i] += slope * value
            self._matrix[i] = [
                slope * b if j == s else a + slope * b if b else a
                for j, (a, b) in enumerate(zip(other, solved, strict=True))
            ]
        self._matrix[r], self._value[r] = solved, value
        self._basis[r], self._outside[s] = self._outside[s], self._basis[r]
