"""A program as a solver sees it: columns of numbers scaled to their size, rows to their largest coefficient.

Notation
    c (n_columns,)  factor of each column: v = c v';  a power of two near its largest value where it is continuous, else 1
    r (m,)          factor of each row, a power of two:  A' = r A c,  row bounds r times the given ones

A solver's tolerances are absolute. Beside a conditional number in [0, 1e6], ``x <= 1e6 on`` lets x = 1 pass with on = 1e-6,
which rounds to 0; after scaling it is ``x' <= on``. Powers of two leave every digit as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from mipcash.program.forms import QuadraticForm, Vector
from mipcash.program.program import BinaryProgram


@dataclass(frozen=True)
class Scaling:
    """See the module's notation.

    Attributes:
        program: the scaled program; only its rows, bounds and integrality are meant to be used.
        columns: c.
    """

    program: BinaryProgram
    columns: Vector

    @classmethod
    def of(cls, program: BinaryProgram) -> Scaling:
        size = np.maximum(np.abs(program.low), np.abs(program.high))
        columns = np.where((program.integer > 0) | (size == 0), 1.0, _power(size))
        matrix = sparse.csr_array(program.matrix @ sparse.diags_array(columns))
        largest = np.zeros(matrix.shape[0])
        if matrix.nnz:
            largest = abs(matrix).max(axis=1).toarray().ravel()
        rows = np.where(largest > 0, 1.0 / _power(largest), 1.0)
        scaled = replace(
            program,
            matrix=sparse.csr_array(sparse.diags_array(rows) @ matrix),
            row_low=program.row_low * rows,
            row_high=program.row_high * rows,
            low=program.low / columns,
            high=program.high / columns,
        )
        return cls(scaled, columns)

    def form(self, form: QuadraticForm) -> QuadraticForm:
        """A form over the base columns as one over the scaled ones."""
        c = self.columns
        return replace(form, linear=form.linear * c[: form.n], values=form.values * c[form.rows] * c[form.cols])


def _power(size: Vector) -> Vector:
    """The nearest power of two, 1 for 0."""
    return np.asarray(2.0 ** np.round(np.log2(np.where(size > 0, size, 1.0))))
