"""Small linear programs over numerical columns: one feasible set and many objectives, for vertices, centres, corrections.

Notation
    x (k,)      low <= x <= high,  row_low <= A x <= row_high,  A of shape (m, k)

Columns are scaled to their ranges and rows to their largest coefficient, since the tolerances of HiGHS are absolute. The smallest
tolerance that HiGHS accepts is still 1e-4 beside ranges of 1e6, so the remaining violations are magnified and solved again
(iterative refinement, Gleixner, Steffy and Wolter 2016). If there are very many rows, HiGHS gets only those that some vertex has
violated so far. The other rows are checked by a matrix-vector product.
"""

from __future__ import annotations

from functools import cached_property

import highspy
import numpy as np
from scipy import sparse

from mipcash.backends.silent import SilentHighs
from mipcash.program.forms import Booleans, Vector

TIGHTEST = 1e-10
"""The smallest feasibility tolerance of HiGHS."""
MANY = 400
"""Number of rows from which on they are added lazily, once violated: nearly all of so many are slack at any vertex."""
TAKEN = 2
"""Violated rows that are added at a time, per numerical parameter."""
REFINEMENTS = 3
ROUNDING = 1e-17
"""Violations below this are not refined."""
TRUSTED = 2e-14
"""Violations above this that cannot be repaired are certain."""
SMALL = 1e-8
"""Reduced cost relative to the largest cost up to which HiGHS may take it for zero; its tolerance is 1e-9."""
NOISE = 1e-14
"""Rounding error of a reduced cost relative to its terms."""
ITERATIONS = 1000
"""Limit on the iterations with magnified costs; beyond it, the point without them is taken."""
NO_LIMIT = 2**31 - 1
"""The default of HiGHS for its limit on iterations."""
SMALLEST = 1e-10
"""Smallest entry of a scaled row, relative to its largest; HiGHS drops entries of 1e-12."""
LARGEST = 1e14
"""Largest magnification."""
NEAR = 1e4
"""Largest step of a refinement, magnified."""


class Polytope:
    """A bounded polyhedron in the module's notation; every bound on x is finite.

    Attributes:
        lazy: whether rows are added only once violated if there are MANY.
        single: True for rows with one coefficient, shape (m,).
    """

    def __init__(
        self, low: Vector, high: Vector, matrix: Vector, row_low: Vector, row_high: Vector, lazy: bool = True
    ) -> None:
        self.low, self.high, self.matrix, self.lazy = low, high, matrix, lazy
        self.row_low, self.row_high = row_low, row_high
        self.single: Booleans = np.count_nonzero(matrix, axis=1) == 1
        self._taken = np.flatnonzero(row_low == row_high)
        """The rows that HiGHS gets if they are added lazily, ascending; at first only the equations."""
        self._part: Polytope | None = None
        """The polytope of these rows."""

    @cached_property
    def _scaled(self) -> tuple[Vector, Vector, tuple[Vector, Vector], tuple[Vector, Vector]]:
        """Units of the columns, scaled rows (m, k), and the bounds of scaled columns and rows.

        A unit is the width of the range, or more if the scaled entries were so small that HiGHS drops them; 1 for a point.
        """
        width, entries = self.high - self.low, np.abs(self.matrix)
        least = SMALLEST * (entries * width).max(axis=1, initial=0.0)[:, None]
        wanted = np.divide(least, entries, out=np.zeros_like(entries), where=entries > 0.0).max(axis=0, initial=0.0)
        scale = np.where(width > 0.0, np.maximum(width, wanted), 1.0)
        largest = np.abs(self.matrix * scale).max(axis=1, initial=0.0)
        largest = np.where(largest > 0.0, largest, 1.0)
        shift = self.matrix @ self.low
        sides = (self.row_low - shift) / largest, (self.row_high - shift) / largest
        return scale, self.matrix * scale / largest[:, None], (np.zeros(len(width)), width / scale), sides

    @cached_property
    def tightened(self) -> tuple[Vector, Vector]:
        """The bounds under the rows with one coefficient, (k,) each; they cross if these rows contradict each other."""
        low, high = self.low.copy(), self.high.copy()
        for r in np.flatnonzero(self.single):
            (k,) = np.flatnonzero(self.matrix[r])
            ends = sorted((self.row_low[r] / self.matrix[r, k], self.row_high[r] / self.matrix[r, k]))
            low[k], high[k] = max(low[k], ends[0]), min(high[k], ends[1])
        return low, high

    def minimise(self, cost: Vector) -> Vector | None:
        """Return a vertex of least ``cost . x``, shape (k,), or None if the set is empty."""
        if not len(self.low):
            empty = bool(np.any(self.row_low > 0.0) or np.any(self.row_high < 0.0))
            return None if empty else np.zeros(0)
        if self.lazy and len(self.row_low) > MANY:
            return self._lazily(cost)
        # a column without rows is set to its better bound; its cost, which may be far larger, stays out of the program
        alone, (scale, _, ends, _) = ~np.any(self.matrix, axis=0), self._scaled
        scaled = np.where(alone, 0.0, cost * scale)
        largest = float(np.abs(scaled).max(initial=0.0))
        columns = np.arange(len(cost), dtype=np.int32)
        scaled = scaled / largest if largest > 0 else scaled
        self._highs.changeColsCost(len(cost), columns, scaled)
        v = self._solved(np.zeros(len(cost)), 1.0)
        v = None if v is None else self._by_small_costs(v, scaled)
        for _ in range(REFINEMENTS):
            if v is None or (missed := self._missed(v)) <= ROUNDING:
                break
            factor = min(1.0 / missed, LARGEST)
            step = self._solved(v, factor, NEAR)
            if step is None:
                # a column with tiny coefficients, whose range is far below another one, may need a larger step
                step = self._solved(v, factor)
            if step is None:
                if missed > TRUSTED and self._highs.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
                    return None  # the point satisfied the rows only within the tolerance
                break
            v = np.clip(v + step, *ends)
        if v is None:
            return None
        x = np.clip(self.low + v * scale, self.low, self.high)
        x[alone] = np.select([cost > 0.0, cost < 0.0], [self.low, self.high], x)[alone]
        return x

    def _lazily(self, cost: Vector) -> Vector | None:
        """Minimise with rows that are added once they are violated; they are kept for later objectives."""
        scale, scaled, _, (least, most) = self._scaled
        while True:
            rows = self._taken
            self._part = self._part or Polytope(
                self.low, self.high, self.matrix[rows], self.row_low[rows], self.row_high[rows], lazy=False
            )
            found = self._part.minimise(cost)
            if found is None:  # no point satisfies these rows, and none satisfies all rows
                return None
            body = scaled @ ((found - self.low) / scale)
            missed = np.maximum(least - body, body - most)
            missed[rows] = 0.0
            broken = np.flatnonzero(missed > ROUNDING)
            if not len(broken):
                return found
            worst = broken[np.argsort(-missed[broken], kind="stable")][: TAKEN * len(cost)]
            self._taken, self._part = np.sort(np.concatenate([rows, worst])), None

    def _missed(self, v: Vector) -> float:
        """Return the largest violation of the scaled rows."""
        _, rows, _, (least, most) = self._scaled
        body = rows @ v
        return float(np.max(np.maximum(least - body, body - most), initial=0.0))

    def _by_small_costs(self, v: Vector, cost: Vector) -> Vector:
        """Return the best point, by the small costs, of the face of optima for the large costs.

        Beside a cost of 1e10 the tolerance of HiGHS ignores a cost of 1. Columns with large reduced costs and rows with large dual
        prices are therefore fixed, and the remaining reduced costs are magnified.
        """
        _, scaled, (low, high), (least, most) = self._scaled
        body = scaled @ v
        prices = np.array(self._highs.getSolution().row_dual)
        reduced = cost - prices @ scaled
        noise = NOISE * (np.abs(cost) + np.abs(prices) @ np.abs(scaled))
        wrong = np.maximum(np.where(v > low, reduced, 0.0), np.where(v < high, -reduced, 0.0))
        at_low = np.abs(body - least) <= np.abs(body - most)
        against = np.where(least == most, 0.0, np.where(at_low, -prices, prices))
        if not (np.any((wrong > noise) & (wrong < SMALL)) or np.any((against > 0.0) & (against < SMALL))):
            return v
        tight = np.abs(prices) > SMALL
        reduced = cost - np.where(tight, prices, 0.0) @ scaled
        firm = np.abs(reduced) > SMALL
        small = np.where(firm | (np.abs(reduced) <= noise), 0.0, reduced)
        if not np.any(small):
            return v
        columns, rows = np.arange(len(v), dtype=np.int32), np.arange(len(body), dtype=np.int32)
        self._highs.changeColsCost(len(v), columns, small / np.abs(small).max())
        self._highs.changeColsBounds(len(v), columns, np.where(firm, v, low), np.where(firm, v, high))
        if len(rows):
            self._highs.changeRowsBounds(len(rows), rows, np.where(tight, body, least), np.where(tight, body, most))
        self._highs.setOptionValue("simplex_iteration_limit", ITERATIONS)
        found = self._run()
        self._highs.setOptionValue("simplex_iteration_limit", NO_LIMIT)
        self._highs.changeColsCost(len(v), columns, cost)
        return v if found is None else found

    def _solved(self, around: Vector, factor: float, reach: float = np.inf) -> Vector | None:
        """Return the best step from the point ``around``, in scaled units; None if HiGHS finds no optimum.

        HiGHS solves for the step times ``factor``, at most ``reach``, so that small violations exceed its tolerance.
        """
        highs, (_, scaled, (low, high), (least, most)) = self._highs, self._scaled
        columns, body = np.arange(len(low), dtype=np.int32), scaled @ around
        highs.changeColsBounds(
            len(low), columns, np.maximum((low - around) * factor, -reach), np.minimum((high - around) * factor, reach)
        )
        rows = np.arange(len(body), dtype=np.int32)
        if len(rows):
            highs.changeRowsBounds(len(rows), rows, (least - body) * factor, (most - body) * factor)
        found = self._run()
        return None if found is None else found / factor

    def _run(self) -> Vector | None:
        highs = self._highs
        if highs.run() == highspy.HighsStatus.kError:
            # HiGHS refuses to change the number of threads of a process until its scheduler is reset
            highs.resetGlobalScheduler(True)
            highs.run()
        optimal = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return np.array(highs.getSolution().col_value) if optimal else None

    @cached_property
    def _highs(self) -> SilentHighs:
        _, rows, ends, sides = self._scaled
        highs = SilentHighs.of(sparse.csr_array(rows), sides, ends, np.zeros(len(self.low), dtype=bool))
        for option, value in (
            ("threads", 1),
            ("presolve", "off"),
            ("primal_feasibility_tolerance", TIGHTEST),
            ("dual_feasibility_tolerance", 1e-9),
        ):
            highs.setOptionValue(option, value)
        return highs
