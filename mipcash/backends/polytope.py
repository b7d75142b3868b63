"""Small linear programs over numbers alone, one set and many objectives: vertices, centres, corrections.

Notation
    x (k,)      low <= x <= high,  row_low <= A x <= row_high,  A of shape (m, k)

Columns are scaled to their ranges and rows to their largest coefficient before HiGHS sees them, whose tolerances are
absolute and set to the least that it takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import highspy
import numpy as np
from scipy import sparse

from mipcash.program.forms import Vector

TIGHTEST = 1e-10
"""The least feasibility tolerance of HiGHS."""


@dataclass(frozen=True)
class Polytope:
    """See the module's notation; every bound on x is finite."""

    low: Vector
    high: Vector
    matrix: Vector
    row_low: Vector
    row_high: Vector

    def minimise(self, cost: Vector) -> Vector | None:
        """A vertex of least ``cost . x``, shape (k,); None where the set is empty."""
        if not len(self.low):
            empty = bool(np.any(self.row_low > 0.0) or np.any(self.row_high < 0.0))
            return None if empty else np.zeros(0)
        highs = self._highs
        scaled = cost * self._scale
        largest = float(np.abs(scaled).max(initial=0.0))
        columns = np.arange(len(cost), dtype=np.int32)
        highs.changeColsCost(len(cost), columns, scaled / largest if largest > 0 else scaled)
        if highs.run() == highspy.HighsStatus.kError:
            # HiGHS refuses another number of threads than the process began with, until its scheduler is reset
            highs.resetGlobalScheduler(True)
            highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        found: Vector = self.low + np.array(highs.getSolution().col_value) * self._scale
        return np.clip(found, self.low, self.high)

    @cached_property
    def _scale(self) -> Vector:
        """Width of each column's range; 1 where it is a point."""
        width = self.high - self.low
        return np.where(width > 0.0, width, 1.0)

    @cached_property
    def _highs(self) -> Any:
        matrix = self.matrix * self._scale
        largest = np.abs(matrix).max(axis=1, initial=0.0)
        rows = np.where(largest > 0.0, largest, 1.0)
        shift = self.matrix @ self.low
        table = sparse.csr_array(matrix / rows[:, None])
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.low), len(self.row_low)
        lp.col_cost_ = np.zeros(len(self.low))
        lp.col_lower_, lp.col_upper_ = np.zeros(len(self.low)), (self.high - self.low) / self._scale
        lp.row_lower_, lp.row_upper_ = (self.row_low - shift) / rows, (self.row_high - shift) / rows
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = lp.num_col_, lp.num_row_
        lp.a_matrix_.start_ = table.indptr.astype(np.int32)
        lp.a_matrix_.index_ = table.indices.astype(np.int32)
        lp.a_matrix_.value_ = table.data
        highs = highspy.Highs()
        for option, value in (
            ("output_flag", False),
            ("threads", 1),
            ("presolve", "off"),
            ("primal_feasibility_tolerance", TIGHTEST),
            ("dual_feasibility_tolerance", 1e-9),
        ):
            highs.setOptionValue(option, value)
        highs.passModel(lp)
        return highs
