"""Rows in which integers move in steps much larger than all other terms, without the large coefficients.

Notation
    row     g q + r <= b    (other rows are turned into this form)
    q       a sum of integers with whole coefficients;  g > 0 their common step, the least of the large coefficients
    r       the other terms, within [least, most], where  most - least < g
    Q       floor((b - least) / g), the largest q with which some r is legal

``q <= Q`` is implied, and below Q every r is legal, since  g (Q - 1) + most < g Q + least <= b.  The row is therefore

    q <= Q     and, where  d = most - (b - g Q) > 0,     r + d q <= b - g Q + d Q

with coefficients as small as those of r (the tightening of Savelsbergh 1994 for a general integer). A solver would let r pass b by
1e-9 g, which is 1e5 where g is 1e14. An integer ``w = low + step k`` is written in k first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mipcash.backends.reductions.reduction import ProgramReduction
from mipcash.backends.reductions.tightening import tightened
from mipcash.program.forms import Indices, Vector
from mipcash.program.program import BinaryProgram
from mipcash.program.rewriting import with_coefficients, with_rows
from mipcash.program.unit_scale import stepped_integers

LARGE = 1e6
"""Ratio of a coefficient to a smaller one of its row from which on the larger one is replaced."""
EXACT = 1e-12
"""How far the ratio of two large coefficients may be from a whole number, relative to it."""

Terms = tuple[Indices, Vector]


class LargeSteps(ProgramReduction):
    """Writes rows with coefficients of very different sizes as rows with coefficients of one size."""

    def rewritten(self, program: BinaryProgram) -> BinaryProgram:
        sizes = np.abs(program.matrix.data[program.matrix.data != 0.0])
        if not len(sizes) or sizes.max() < LARGE * sizes.min():
            return program
        program = _in_places(tightened(program))  # with wide ranges of the other terms there is no row to split
        found = {r: rows for r in range(program.matrix.shape[0]) if (rows := _split(program, r)) is not None}
        if not found:
            return program
        # the rows that are replaced stay, without bounds: what is kept for each row stays in its place
        low, high = program.row_low.copy(), program.row_high.copy()
        low[list(found)], high[list(found)] = -math.inf, math.inf
        bare = with_coefficients(program, program.matrix, low, high)
        replaced = [(r, row) for r, parts in found.items() for row in parts]
        if not replaced:
            return bare
        ends = np.cumsum([0, *(len(row.columns) for _, row in replaced)])
        values, columns = (
            np.concatenate(each) for each in zip(*((r.values, r.columns) for _, r in replaced), strict=True)
        )
        added = sparse.csr_array((values, columns, ends), shape=(len(replaced), program.n_columns))
        names, highs = [program.row_rule[r] for r, _ in replaced], [row.high for _, row in replaced]
        return with_rows(bare, added, np.full(len(replaced), -math.inf), highs, names)


@dataclass(frozen=True)
class _Row:
    """``values . v[columns] <= high``."""

    columns: Indices
    values: Vector
    high: float


def _in_places(program: BinaryProgram) -> BinaryProgram:
    """Return the program with k in the place of each unconditional integer ``w = low + step k``, but in the row that says so."""
    matrix = sparse.lil_array(program.matrix)
    low, high = program.row_low.copy(), program.row_high.copy()
    changed = False
    for number, domain in stepped_integers(program):
        if number.latent != number.column:
            continue
        column = np.asarray(matrix[:, [number.column]].todense()).ravel()
        for r in np.flatnonzero(column):
            if matrix[r, number.place] == 0.0:
                matrix[r, number.place] = column[r] * domain.step
                matrix[r, number.column] = 0.0
                low[r], high[r] = low[r] - column[r] * domain.low, high[r] - column[r] * domain.low
                changed = True
    return with_coefficients(program, sparse.csr_array(matrix), low, high) if changed else program


def _split(program: BinaryProgram, r: int) -> list[_Row] | None:
    """Return what stands in place of a row; None: the row itself."""
    span = slice(program.matrix.indptr[r], program.matrix.indptr[r + 1])
    columns, values = program.matrix.indices[span], program.matrix.data[span]
    columns, values = columns[values != 0.0], values[values != 0.0]
    sizes = np.abs(values)
    if not len(values) or sizes.max() < LARGE * sizes.min():
        return None
    found: list[_Row] = []
    for sign, bound in ((1.0, program.row_high[r]), (-1.0, -program.row_low[r])):
        if math.isfinite(bound):
            rows = _one_sided(program, columns, sign * values, float(bound), float(program.row_slack[r]))
            if rows is None:
                return None
            found += rows
    return found


def _one_sided(
    program: BinaryProgram, columns: Indices, values: Vector, bound: float, slack: float
) -> list[_Row] | None:
    """Return the rows of ``values . v[columns] <= bound``; None where its terms are not of two sizes."""
    order = np.argsort(-np.abs(values))
    columns, values = columns[order], values[order]
    sizes = np.abs(values)
    # the largest coefficients are those before the widest gap
    cut = 1 + int(np.argmax(sizes[:-1] / sizes[1:]))
    if not np.all(program.integer[columns[:cut]] > 0):
        return None
    low, high = program.low[columns], program.high[columns]
    switch = (low[:cut] == 0.0) & (high[:cut] == 1.0)
    steps = sizes[:cut][~switch] if not np.all(switch) else sizes[:cut]
    step = float(steps.min())
    most = np.maximum(values * low, values * high)
    for k in np.flatnonzero(switch):
        values[k], bound = _rounded(float(values[k]), step, float(most.sum() - most[k]), bound)
    weights = np.round(values[:cut] / step)
    if np.any(np.abs(values[:cut] / step - weights) > EXACT * np.abs(weights)) or not np.all(weights):
        return None
    ends = np.stack([values[cut:] * low[cut:], values[cut:] * high[cut:]])
    least, largest = float(ends.min(axis=0).sum()), float(ends.max(axis=0).sum())
    if not largest - least < step:
        return None
    bound += 0.5 * slack  # the new rows are smaller, and so is what they may be missed by
    last = math.floor((bound - least) / step)
    left = bound - step * last
    found = [_Row(columns[:cut], weights, float(last))]
    change = largest - left
    if change > slack:
        found.append(_Row(columns, np.concatenate([change * weights, values[cut:]]), left + change * last))
    return found


def _rounded(value: float, step: float, rest: float, bound: float) -> tuple[float, float]:
    """Return a switch's coefficient as a multiple of the step, and the bound, where the row says nothing on one side of the switch.

    Args:
        rest: the most that the other terms come to.
    """
    if value > 0.0 and rest <= bound:  # off, the row says nothing
        moved = step * math.ceil(value / step) - value
        return value + moved, bound + moved
    if value < 0.0 and rest + value <= bound:  # the same, on
        return step * math.floor(value / step), bound
    return value, bound
