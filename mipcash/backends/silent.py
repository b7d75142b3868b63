"""HiGHS without output."""

from __future__ import annotations

from typing import Any, Self

import highspy
import numpy as np

from mipcash.errors import SolverError
from mipcash.program.forms import Booleans, Vector

SMALLEST = 1e-12
"""Coefficients below this are dropped. The default, 1e-9, would drop a coefficient that matters over a range of 1e9."""


class SilentHighs(highspy.Highs):  # type: ignore[misc]
    """An instance of HiGHS that prints nothing.

    HiGHS prints a banner at the first call that may log. highspy makes such a call, ``enableCallbacks``, while it constructs
    the object, so that ``output_flag`` must be set before it.
    """

    def enableCallbacks(self) -> None:
        """Switch the output off first."""
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()

    @classmethod
    def of(cls, rows: Any, within: tuple[Vector, Vector], columns: tuple[Vector, Vector], integer: Booleans) -> Self:
        """Return an instance that holds a program without an objective.

        Args:
            rows: sparse, by row, shape (rows, columns).
            within: lower and upper bounds of the rows.
            columns: lower and upper bounds of the columns.
            integer: of the columns.

        Raises:
            SolverError: HiGHS rejects the program.
        """
        lp, kinds = highspy.HighsLp(), highspy.HighsVarType
        lp.num_row_, lp.num_col_ = rows.shape
        lp.col_cost_ = np.zeros(lp.num_col_)
        lp.col_lower_, lp.col_upper_ = columns
        lp.row_lower_, lp.row_upper_ = within
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.num_row_, lp.a_matrix_.num_col_ = rows.shape
        lp.a_matrix_.start_ = rows.indptr.astype(np.int32)
        lp.a_matrix_.index_ = rows.indices.astype(np.int32)
        lp.a_matrix_.value_ = rows.data
        lp.integrality_ = [kinds.kInteger if i else kinds.kContinuous for i in integer]
        highs = cls()
        highs.setOptionValue("small_matrix_value", SMALLEST)
        if highs.passModel(lp) == highspy.HighsStatus.kError:
            raise SolverError(f"HiGHS rejects the program ({lp.num_col_} columns, {lp.num_row_} rows)")
        return highs
