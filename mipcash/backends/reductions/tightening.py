"""Bounds of numerical parameters that the rules imply, and big-M constants no larger than these bounds need.

Notation
    row     sum_c a_c v_c <= b   (other rows are brought into this form);   inf, sup  the minimum and maximum of some terms.
    s       the sum of a group's levels that have one coefficient a in a row: 0 or 1

    bounds      a_c v_c <= b - inf(rest of the row), repeated while ranges shrink.
    a < 0       if sup(rest) + a < b, the row is redundant at s = 1:       a <- b - sup(rest).
    a > 0       if sup(rest) < b, it is redundant at s = 0:                a <- a - (b - sup(rest)),  b <- sup(rest).

    latent      range of the latent value of a conditional numerical parameter <- range that the rules leave to the parameter,
                since the two are equal if the parameter is active

(Savelsbergh 1994). Every point that is legal within its slack stays legal. Smaller constants matter since a solver's tolerance on a
binary is multiplied by its constant.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mipcash.backends.reductions.reduction import ProgramReduction
from mipcash.backends.task import Task
from mipcash.program.forms import Booleans, Indices, Vector
from mipcash.program.program import BinaryProgram
from mipcash.program.rewriting import with_bounds, with_coefficients

ROUNDS = 4
WORTH = 0.9
"""A range is replaced if it shrinks to at most this share."""
LEAST = 1e-12
"""A range keeps at least this share of its width."""
SMALL = 1e-3
"""A latent range is replaced if it shrinks to at most this share."""
CANCELLED = 1e-6
"""Smallest constant that may result from a subtraction, relative to its operands."""
ROOM = 1e-9
"""Margin of implied bounds, as a share of the numbers involved."""


class Tightening(ProgramReduction):
    """Tightens bounds and constants of programs with numerical parameters."""

    def rewritten(self, program: BinaryProgram) -> BinaryProgram:
        """See ``tightened``."""
        return tightened(program)


class LatentRanges(ProgramReduction):
    """Narrows the latent range of a conditional numerical parameter to the range that rules leave to it, if that is small.

    Big-M rows link the parameter to its latent value, with constants as large as the latent range: beside a constant of 1e6, a
    solver's tolerance hides a value of 1e-3. The latent value of an inactive parameter is arbitrary, so the reduction accepts only
    tasks that do not use latent values, and have no cuts and no start.
    """

    def accepts(self, task: Task) -> bool:
        latents = [n.latent for n in task.program.numbers if n.latent != n.column]
        asked = np.isin(latents, [*task.fixed, *np.flatnonzero(task.form.linear), *task.form.rows, *task.form.cols])
        return bool(latents) and not np.any(asked) and not task.cuts and task.start is None

    def rewritten(self, program: BinaryProgram) -> BinaryProgram:
        implied, low, high = tightened(program), program.low.copy(), program.high.copy()
        for number in program.numbers:
            c, latent = number.column, number.latent
            below, above = max(low[latent], implied.low[c]), min(high[latent], implied.high[c])
            if c != latent and below <= above and above - below <= SMALL * (high[latent] - low[latent]):
                low[latent], high[latent] = below, above
        same = np.array_equal(low, program.low) and np.array_equal(high, program.high)
        return program if same else with_bounds(program, low, high)


def tightened(program: BinaryProgram) -> BinaryProgram:
    """Return the program with tighter bounds of its continuous columns and smaller constants, and the same legal points."""
    numbers = (program.integer == 0) & (program.high > program.low)
    for product in program.products:
        if product.key[1] >= 0:
            numbers[product.start : product.start + product.size] = False
    if not np.any(numbers):
        return program
    low, high = program.low.copy(), program.high.copy()
    for _ in range(ROUNDS):
        if not _propagate(program, numbers, low, high):
            break
    if np.any(low > high):
        return program  # infeasible; the solver proves it
    _keep_units(program, low, high)
    return _with_smaller_constants(with_bounds(program, low, high), numbers)


def _keep_units(program: BinaryProgram, low: Vector, high: Vector) -> None:
    """Widen ranges in place so that tightening does not reduce a column's largest absolute value below 1.

    If it was below 1 before, it is kept. Columns are scaled by their largest absolute value, and the slack of a rule is computed
    from the same values, capped at 1 (``mipcash.modelling.rules``). After scaling by a smaller value, a solver's tolerance would be
    stricter than the slack of the rule.
    """
    below, above = np.maximum(program.low, -1.0), np.minimum(program.high, 1.0)
    small = np.maximum(np.abs(low), np.abs(high)) < np.maximum(np.abs(below), np.abs(above))
    up = small & (np.abs(above) >= np.abs(below))
    high[up] = np.maximum(high, above)[up]
    low[small & ~up] = np.minimum(low, below)[small & ~up]


def _propagate(program: BinaryProgram, numbers: Booleans, low: Vector, high: Vector) -> bool:
    """Tighten bounds by one round over all rows, in place; return True if some range shrank enough for another round."""
    matrix = sparse.csr_array(program.matrix)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    columns, values = matrix.indices, matrix.data
    ends = np.stack([values * low[columns], values * high[columns]])
    least, most = ends.min(axis=0), ends.max(axis=0)
    inf, sup = np.bincount(rows, least, matrix.shape[0]), np.bincount(rows, most, matrix.shape[0])
    size = np.bincount(rows, np.abs(ends).max(axis=0), matrix.shape[0])
    at = np.flatnonzero(numbers[columns] & (values != 0))
    r, c, a = rows[at], columns[at], values[at]
    room = program.row_slack[r] + ROOM * (
        size[r] + np.where(np.isfinite(program.row_high[r]), np.abs(program.row_high[r]), 0.0)
    )
    upper = (program.row_high[r] - (inf[r] - least[at]) + room) / a
    lower = (program.row_low[r] - (sup[r] - most[at]) - room) / a
    below, above = np.where(a > 0, lower, upper), np.where(a > 0, upper, lower)
    new_low, new_high = low.copy(), high.copy()
    np.maximum.at(new_low, c, np.where(np.isfinite(below), below, -np.inf))
    np.minimum.at(new_high, c, np.where(np.isfinite(above), above, np.inf))
    lacking = np.maximum(0.0, LEAST * (program.high - program.low) - (new_high - new_low))
    new_low, new_high = np.maximum(low, new_low - lacking), np.minimum(high, new_high + lacking)
    shrunk = numbers & (new_high - new_low <= WORTH * (high - low))
    low[shrunk], high[shrunk] = new_low[shrunk], new_high[shrunk]
    return bool(np.any(shrunk))


def _with_smaller_constants(program: BinaryProgram, numbers: Booleans) -> BinaryProgram:
    matrix = sparse.csr_array(program.matrix.copy())
    row_low, row_high = program.row_low.copy(), program.row_high.copy()
    binary = (program.integer > 0) & (program.low == 0) & (program.high == 1)
    for r in range(matrix.shape[0]):
        one_sided = np.isfinite(row_low[r]) != np.isfinite(row_high[r])
        span = slice(matrix.indptr[r], matrix.indptr[r + 1])
        columns = matrix.indices[span]
        if not one_sided or not np.any(numbers[columns]) or not np.any(binary[columns]):
            continue
        sign = 1.0 if np.isfinite(row_high[r]) else -1.0
        values, bound = sign * matrix.data[span], float(row_high[r] if sign > 0 else -row_low[r])
        bound = _shrink(program, columns, values, bound, binary)
        matrix.data[span] = sign * values
        if sign > 0:
            row_high[r] = bound
        else:
            row_low[r] = -bound
    return with_coefficients(program, matrix, row_low, row_high)


def _shrink(program: BinaryProgram, columns: Indices, values: Vector, bound: float, binary: Booleans) -> float:
    """Make the constants of one row ``values . v[columns] <= bound`` smaller, in place; return its new bound."""
    for chosen in _switches(program, columns, values, binary):
        ends = np.stack([values * program.low[columns], values * program.high[columns]]).max(axis=0)
        ends[chosen] = 0.0
        rest, a = _most(program, columns, ends), float(values[chosen[0]])
        spare = bound - rest
        if a < 0 and a < spare < 0 and _distinct(spare, bound, rest):
            values[chosen] = spare
        elif a > 0 and 0 < spare < a and _distinct(rest + (a - bound), a, bound):
            values[chosen], bound = rest + (a - bound), rest
    return bound


def _distinct(new: float, first: float, second: float) -> bool:
    """Return True if a difference of two numbers is well above their rounding error, or has none."""
    return first == second or not first * second or abs(new) >= CANCELLED * max(abs(first), abs(second))


def _switches(program: BinaryProgram, columns: Indices, values: Vector, binary: Booleans) -> list[Indices]:
    """Return positions in a row that act as one binary: levels of a group with the same coefficient, or a single binary."""
    found: dict[tuple[int, float], list[int]] = {}
    for k, (c, v) in enumerate(zip(columns.tolist(), values.tolist(), strict=True)):
        if binary[c] and v:
            found.setdefault((int(program.group_of[c]) if c < program.n_z else -1 - c, v), []).append(k)
    return [np.array(places) for places in found.values()]


def _most(program: BinaryProgram, columns: Indices, ends: Vector) -> float:
    """Return the maximum of the sum of a row's terms, with one level of each group."""
    levels = columns < program.n_z
    total = float(ends[~levels].sum())
    if np.any(levels):
        groups = program.group_of[columns[levels]]
        most = np.zeros(len(program.groups))
        np.maximum.at(most, groups, ends[levels])
        total += float(most.sum())
    return total
