"""Tighter RLT relaxations: rules multiplied by levels, where the products are columns already.

A row over one-hot groups, sum_c r_c z_c <= high (or ==), times a level z_a >= 0 of a coupled group is the valid row

    sum_{c of other groups} r_c y[a, c] + (r_a - high) z_a <= 0   (== 0).

Their sum over the levels of a's group is the row itself, so the relaxation only becomes tighter. The rows that are multiplied are
equations (cardinality, the positions of an ordering, activity) and inequalities whose coefficients are all alike (at most k of
them, one excludes the other). Rows with large and small coefficients gain nothing and cost time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mipcash.backends.reductions.reduction import ProgramReduction
from mipcash.backends.task import Task
from mipcash.program.forms import Vector
from mipcash.program.program import BinaryProgram
from mipcash.program.rewriting import with_rows

ALIKE = 1e-12


@dataclass(frozen=True)
class _Row:
    """``low <= body . z <= high``; body, (n_z,), is shifted within each group so that its most frequent coefficient is 0."""

    body: Vector
    low: float
    high: float


class RltRows(ProgramReduction):
    """Adds rows multiplied by levels if their products are columns; the new rows are in the matrix, not among the base rows."""

    def accepts(self, task: Task) -> bool:
        """Return True if the program has product columns."""
        return bool(task.program.products)

    def rewritten(self, program: BinaryProgram) -> BinaryProgram:
        found = [product for row in _rows(program) for product in _products(program, row)]
        if not found:
            return program
        ends = np.cumsum([0, *(len(columns) for columns, _, _, _ in found)])
        added = sparse.csr_array(
            (np.concatenate([v for _, v, _, _ in found]), np.concatenate([c for c, _, _, _ in found]), ends),
            shape=(len(found), program.n_columns),
        )
        return with_rows(program, added, [low for _, _, low, _ in found], [high for _, _, _, high in found])


def _rows(program: BinaryProgram) -> Iterator[_Row]:
    """Yield the rows over levels of several groups that are worth multiplying."""
    matrix = sparse.csr_array(program.matrix)
    for k in range(matrix.shape[0]):
        at = slice(matrix.indptr[k], matrix.indptr[k + 1])
        columns = matrix.indices[at]
        if not len(columns) or columns.max() >= program.n_z:
            continue
        groups = np.unique(program.group_of[columns])
        if len(groups) < 2:
            continue
        body = np.zeros(program.n_z)
        np.add.at(body, columns, matrix.data[at])
        shift = 0.0
        for g in groups:
            span = slice(program.groups[g].start, program.groups[g].stop)
            values, counts = np.unique(body[span], return_counts=True)
            common = values[np.argmax(counts)]
            body[span] -= common
            shift += common
        low, high = float(program.row_low[k]) - shift, float(program.row_high[k]) - shift
        others = body[body != 0.0]
        if len(others) and (low == high or np.ptp(others) <= ALIKE):
            yield _Row(body, low, high)


def _products(program: BinaryProgram, row: _Row) -> Iterator[tuple[np.ndarray, np.ndarray, float, float]]:
    """Yield columns, values and bounds of the row times each level of each group whose products with the row are columns."""
    in_row = np.flatnonzero(row.body)
    groups = np.unique(program.group_of[in_row])
    for g, group in enumerate(program.groups):
        others = groups[groups != g]
        keys = [(min(g, int(h)), max(g, int(h))) for h in others]
        if not keys or any(key not in program.product_index for key in keys):
            continue
        columns = in_row[program.group_of[in_row] != g]
        y = np.stack([_product_columns(program, g, int(c)) for c in columns], axis=1)
        most = sum(max(0.0, float(row.body[columns][program.group_of[columns] == h].max())) for h in others)
        least = sum(min(0.0, float(row.body[columns][program.group_of[columns] == h].min())) for h in others)
        for a in range(group.size):
            z = group.start + a
            for bound, low, high in ((row.low, 0.0, np.inf), (row.high, -np.inf, 0.0)):
                rest = float(row.body[z]) - bound
                if row.low == row.high:
                    low = high = 0.0
                elif not np.isfinite(bound) or (most + rest <= ALIKE if high == 0.0 else least + rest >= -ALIKE):
                    continue  # the row is redundant
                yield np.append(y[a], z), np.append(row.body[columns], rest), low, high
                if row.low == row.high:
                    break


def _product_columns(program: BinaryProgram, g: int, column: int) -> np.ndarray:
    """Return the columns of z[a] z[column] for all levels a of g."""
    h = int(program.group_of[column])
    c = column - program.groups[h].start
    if g < h:
        return program.product_index[g, h].start + np.arange(program.groups[g].size) * program.groups[h].size + c
    return program.product_index[h, g].start + c * program.groups[g].size + np.arange(program.groups[g].size)
