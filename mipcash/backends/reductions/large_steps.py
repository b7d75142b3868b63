"""Rows in which integers move in steps much larger than all other terms, rewritten without the large coefficients.

Notation
    row     g q + r <= b    (other rows are brought into this form).
    q       a sum of integers with whole coefficients;  g > 0 their common step, the least of the large coefficients.
    r       the other terms, within [least, most], where  most - least < g.
    Q       floor((b - least) / g), the largest q with which some r is legal

``q <= Q`` is implied, and below Q every r is legal, since  g (Q - 1) + most < g Q + least <= b.  The row is therefore

    q <= Q     and, where  d = most - (b - g Q) > 0,     r + d q <= b - g Q + d Q

with coefficients as small as those of r (the tightening of Savelsbergh 1994 for a general integer). A solver would let r exceed b
by 1e-9 g, which is 1e5 if g is 1e14. An integer ``w = low + step k`` is written in k first.
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
"""Largest distance of the ratio of two large coefficients from a whole number, relative to the ratio."""

Terms = tuple[Indices, Vector]


class LargeSteps(ProgramReduction):
    """Rewrites rows with coefficients of very different sizes into rows with coefficients of one size."""

    def rewritten(self, program: BinaryProgram) -> BinaryProgram:
        sizes = np.abs(program.matrix.data[program.matrix.data != 0.0])
        if not len(sizes) or sizes.max() < LARGE * sizes.min():
            return program
        program = _in_places(tightened(program))  # rows split only if the ranges of the other terms are narrow
        found = {r: rows for r in range(program.matrix.shape[0]) if (rows := _split(program, r)) is not None}
        if not found:
            return program
        # replaced rows stay, without bounds, so that data stored by row stays aligned
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
    """Return the program with k in place of each unconditional integer ``w = low + step k``, except in the row that defines w."""
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
    """Return the rows that replace a row, or None if the row stays."""
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
    """Return the rows that replace ``values . v[columns] <= bound``, or None if its terms do not split into two sizes."""
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
    bound += 0.5 * slack  # the new rows have smaller coefficients, hence smaller slacks
    last = math.floor((bound - least) / step)
    left = bound - step * last
    found = [_Row(columns[:cut], weights, float(last))]
    change = largest - left
    if change > slack:
        found.append(_Row(columns, np.concatenate([change * weights, values[cut:]]), left + change * last))
    return found


def _rounded(value: float, step: float, rest: float, bound: float) -> tuple[float, float]:
    """Return a binary's coefficient rounded to a multiple of the step, and the bound; both unchanged if rounding is not valid.

    Rounding is valid if the row is redundant at one value of the binary.

    Args:
        rest: the maximum of the other terms.
    """
    if value > 0.0 and rest <= bound:  # the row is redundant at 0
        moved = step * math.ceil(value / step) - value
        return value + moved, bound + moved
    if value < 0.0 and rest + value <= bound:  # the row is redundant at 1
        return step * math.floor(value / step), bound
    return value, bound
