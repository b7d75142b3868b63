"""Certification of answers: every answer is checked against the rows, and repaired or excluded, before its backend returns it.

A solver works within tolerances, also on integers: an indicator of 1e-7 rounds to 0, yet in its big-M row it lets an inactive
numerical parameter be nonzero. An answer is therefore rounded and checked against the rows with their own slack
(``mipcash.modelling.rules``). An answer that violates a row is solved again with

    1. its integers fixed: a linear program over the numerical columns, at the tightest tolerance
    2. its levels fixed, if it has further integers

If both are infeasible, the levels are proven illegal: a cut excludes them and the task is solved again. Levels are also excluded if
step 1 proves their best objective value but the solver's bound still lies below it. The task is then solved again because a solver
may overlook better levels: beside a term of 1e6 its tolerance hides an improvement of 1e-3.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from scipy import sparse

from mipcash.backends.polytope import Polytope
from mipcash.backends.spatial import ImpreciseError, resolved, solve_spatially, split_integers
from mipcash.backends.task import (
    CUT_SLACK,
    FEASIBLE,
    INFEASIBLE,
    OPTIMAL,
    Answer,
    Cut,
    SolverSettings,
    Task,
    relative_gap,
)
from mipcash.errors import UndecidedError
from mipcash.program.forms import Indices, Vector
from mipcash.program.program import BinaryProgram

ATTEMPTS = 50
"""Level vectors that one solve excludes, one at a time."""
WITHIN = 1e-9
"""Largest distance of a column from its bounds, relative to them, at which it is moved onto them."""
TIGHT_GAP = 1e-9
"""Relative gap that a repaired answer may have beyond the requested one; it stems from the solver's tolerance."""

CLOSED = 1e-7
"""The same allowance for an answer that the solver returned itself."""

Solve = Callable[[Task, SolverSettings], Answer]


def closes(value: float, bound: float, settings: SolverSettings) -> bool:
    """Return True if the solver's own bound closes the requested gap, up to ``CLOSED``."""
    return relative_gap(value, bound) <= settings.gap + CLOSED


def certified(
    task: Task,
    settings: SolverSettings,
    solve: Solve,
    name: str,
    second: Solve | None = None,
    exact: bool = False,
    products: bool = False,
) -> Answer:
    """Return the answer of ``solve`` after certification: its columns, if any, satisfy every row.

    A program with products of reals is solved by spatial branch and bound. So is a program with integers that are so large, or
    for which the solver's tolerances turn out to be so coarse, that rounding errors matter: they are relaxed and split.

    Args:
        name: name of the solver, for messages.
        second: fallback call of the solver, used once an answer of ``solve`` can be neither repaired nor excluded.
        exact: whether the solver's bounds account for its precision.
        products: whether the solver accepts products of reals natively.

    Raises:
        SolverError: the solver's answers violate rows and can be neither repaired nor excluded.
    """

    def each(node: Task, limits: SolverSettings) -> Answer:
        return _certified(node, limits, solve, name, second, exact)

    if not task.program.bilinear and (exact or resolved(task.program)):
        try:
            return each(task, settings)
        except ImpreciseError:
            if not len(split_integers(task.program)):
                raise
    native = solve if products and task.program.bilinear else None
    return solve_spatially(task, settings, each, lambda columns: kept(task, columns), native)


def _certified(
    task: Task, settings: SolverSettings, solve: Solve, name: str, second: Solve | None, exact: bool
) -> Answer:
    """Certify answers for a program in which bilinear columns are treated as ordinary columns."""
    began = time.perf_counter()
    if any(not len(cut.columns) and not cut.low <= 0.0 <= cut.high for cut in task.cuts):
        # solvers differ in their treatment of a row without columns
        return Answer(INFEASIBLE, None, np.nan, np.inf, time.perf_counter() - began, name)
    given, left = task, settings
    best: Answer | None = None
    integral = _exact(task)
    for _ in range(ATTEMPTS):
        answer = solve(given, left)
        if answer.columns is None:
            return replace(_best_of(best, answer), seconds=time.perf_counter() - began)
        columns = answer.columns
        found = kept(given, columns)
        if found is columns and best is None:
            answer = _improved(given, answer, columns) if _with_numbers(given) else answer
            sure = answer if exact else _gap_checked(given, answer, settings)
            if sure.status == answer.status or not integral:
                return replace(sure, seconds=time.perf_counter() - began)
        left = replace(settings, time_limit=max(0.0, settings.time_limit - (time.perf_counter() - began)))
        proven, moved = False, None
        if found is None:
            moved, proven = _repaired(given, columns, left, solve)
        elif integral:
            moved, proven = _with_integers(given, found)
        found = found if moved is None else moved
        if found is not None:
            # if all integers are binaries, the linear program finds the best numerical values: the levels need no second solve
            known = integral and moved is not None and proven
            best = _better(best, _at(answer, found, task), settings)
            if best.status == OPTIMAL or answer.status != OPTIMAL or not known or left.time_limit <= 0.0:
                return replace(best, seconds=time.perf_counter() - began)
        elif not proven or not _with_levels(task.program, columns):  # not proven illegal, or no levels
            if second is None:
                break
            solve, second = second, None
            continue
        if not task.program.n_z and not len(_switches(task)):
            # there are no levels to exclude: the numerical part alone is infeasible
            return Answer(INFEASIBLE, None, np.nan, np.inf, time.perf_counter() - began, name) if best is None else best
        given = replace(given, cuts=[*given.cuts, _no_good(task, columns)], start=None)
    if best is not None:
        return replace(best, seconds=time.perf_counter() - began)
    raise (UndecidedError if left.time_limit <= 0.0 else ImpreciseError)(
        f"solver {name!r} returns points that violate rows of the program ({_worst(given, answer)}), and no point near them "
        "satisfies all rows: its tolerances are too coarse for this space. Narrow the ranges of the numerical parameters in that "
        "rule, or use another solver"
    )


def _gap_checked(task: Task, answer: Answer, settings: SolverSettings) -> Answer:
    """Return the answer, with status ``FEASIBLE`` instead of ``OPTIMAL`` if its bound does not close the gap.

    The bound is first raised to the least value of the objective over the column ranges, if that is higher. The solver's own
    status is not enough: beside costs of 1e9, a solver ignores a difference of 1e-3.
    """
    if answer.value > answer.bound:
        answer = replace(answer, bound=min(answer.value, max(answer.bound, _least(task))))
    unclosed = answer.status == OPTIMAL and not closes(answer.value, answer.bound, settings)
    return replace(answer, status=FEASIBLE) if unclosed else answer


def _least(task: Task) -> float:
    """Return the least value of the objective over the ranges of its columns, up to rounding."""
    linear, products = task.form.least(*_bounds(task.program, task.fixed))
    return task.form.constant + math.fsum([*linear, *products])


def _with_numbers(task: Task) -> bool:
    """Return True if the objective depends on free numerical columns, which a solver returns only to within its tolerance."""
    program, form = task.program, task.form
    free = (program.integer[: program.n] == 0) & (program.low[: program.n] < program.high[: program.n])
    free[list(task.fixed)] = False
    return bool(np.any(free) and (np.any(form.linear[free]) or np.any(free[form.rows]) or np.any(free[form.cols])))


def _improved(task: Task, answer: Answer, columns: Vector) -> Answer:
    """Return the answer with the best numerical values for its integers if they are better; its bound is at most its value."""
    better, _ = _with_integers(task, columns)
    return answer if better is None or not task.form.value(better) < answer.value else _at(answer, better, task)


def _with_levels(program: BinaryProgram, columns: Vector) -> bool:
    """Return True if a point has one level per group, as a no-good cut requires; a solver may return all zeros."""
    z = columns[: program.n_z]
    return bool(np.all(np.round(z) == program.one_hot(program.levels_of(columns))))


def _no_good(task: Task, columns: Vector) -> Cut:
    """Return a cut that excludes the levels of a point together with the values of its other binaries."""
    program, others = task.program, _switches(task)
    ones = program.starts + program.levels_of(columns)
    on = columns[others] > 0.5
    return Cut(
        np.concatenate([ones, others]),
        np.concatenate([np.ones(len(ones)), np.where(on, 1.0, -1.0)]),
        -np.inf,
        float(len(ones) + np.count_nonzero(on) - 1),
    )


def _switches(task: Task) -> Indices:
    """Return the free binaries that are not levels: indicators of disjuncts, bits."""
    program = task.program
    at = np.arange(program.n_z, program.n)
    low, high = program.low[at], program.high[at]
    binary = (program.integer[at] > 0) & (low == 0.0) & (high == 1.0)
    binary &= ~np.isin(at, list(task.fixed))
    return np.asarray(at[binary])


def _at(answer: Answer, columns: Vector, task: Task) -> Answer:
    """Return the answer with other columns and their value; the status remains that of the solver."""
    value = task.form.value(columns)
    return replace(answer, columns=columns, value=value, bound=min(answer.bound, value))


def _better(best: Answer | None, answer: Answer, settings: SolverSettings) -> Answer:
    """Return the better of two answers, with the bound of the later one, which holds for all levels that are not excluded."""
    if best is not None and best.value <= answer.value:
        answer = replace(best, bound=min(best.value, answer.bound))
    close = relative_gap(answer.value, answer.bound) <= settings.gap + TIGHT_GAP
    return replace(answer, status=OPTIMAL if close else FEASIBLE)


def _best_of(best: Answer | None, last: Answer) -> Answer:
    """Return the final answer once the solver finds no point outside the excluded levels; ``last`` is its last answer."""
    if best is None:
        return last
    bound = best.value if last.status == INFEASIBLE else min(best.value, max(best.bound, last.bound))
    return replace(best, status=OPTIMAL if last.status == INFEASIBLE else FEASIBLE, bound=bound)


def _exact(task: Task) -> bool:
    """Return True if all free integers are binaries, so that one no-good cut excludes their values."""
    program = task.program
    low, high = program.low, program.high
    free = [c for c in range(program.n_z, program.n) if program.integer[c] and low[c] < high[c] and c not in task.fixed]
    return len(free) == len(_switches(task))


def kept(task: Task, columns: Vector) -> Vector | None:
    """Return the columns, moved onto nearby bounds, if they satisfy bounds, fixings, cuts and rows; else None. (n,) -> (n,)"""
    program = task.program
    if not np.all(np.isfinite(columns)):
        return None
    columns = _switched_off(program, columns)
    low, high = _bounds(program, task.fixed)
    room = WITHIN * np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))
    if np.any(columns < low - room) or np.any(columns > high + room):
        return None
    inside = np.clip(columns, low, high)
    if np.any(inside != columns):
        columns = inside
    for cut in task.cuts:
        body = float(cut.values @ columns[cut.columns])
        if not cut.low - CUT_SLACK <= body <= cut.high + CUT_SLACK:
            return None
    return None if np.any(_missed(program, columns) > 0.0) else columns


def _switched_off(program: BinaryProgram, columns: Vector) -> Vector:
    """Return the columns with inactive numerical parameters set to exactly zero; within tolerances, big-M rows allow more."""
    z, changed = columns[: program.n_z], columns
    for number in program.numbers:
        if columns[number.column] and not all(bool(c.holds(z)) for c in number.conditions):
            changed = columns.copy() if changed is columns else changed
            changed[number.column] = 0.0
    return changed


def _missed(program: BinaryProgram, columns: Vector) -> Vector:
    """Return the violation of each row beyond its slack, shape (m,); it is negative where the row has room."""
    body = program.matrix @ program.lifted(columns)
    missed: Vector = np.maximum(program.row_low - body, body - program.row_high) - program.row_slack
    return missed


def _worst(task: Task, answer: Answer) -> str:
    if answer.columns is None:
        return "all that it found were ruled out"
    missed = _missed(task.program, answer.columns)
    rule = task.program.row_rule[int(np.argmax(missed))] if len(missed) else ""
    return f"rule {rule!r} by {missed.max():.3g}" if rule else "the structure of the space or a bound"


def _bounds(program: BinaryProgram, fixed: Mapping[int, float]) -> tuple[Vector, Vector]:
    low, high = program.low[: program.n].copy(), program.high[: program.n].copy()
    for column, value in fixed.items():
        low[column] = high[column] = value
    return low, high


def _repaired(task: Task, columns: Vector, settings: SolverSettings, solve: Solve) -> tuple[Vector | None, bool]:
    """Return columns near the given ones that satisfy every row, or None, with a proof flag as in ``_with_integers``.

    All integers are kept if possible, else only the levels.
    """
    moved, proven = _with_integers(task, columns)
    if moved is not None or _exact(task):
        return moved, proven
    n_z = task.program.n_z
    levels = dict(zip(range(n_z), np.round(columns[:n_z]).tolist(), strict=True))
    answer = solve(replace(task, fixed={**task.fixed, **levels}, start=None), settings)
    if answer.columns is None:
        return None, answer.status == INFEASIBLE
    found = kept(task, answer.columns)
    return (_with_integers(task, answer.columns)[0] if found is None else found), False


def _with_integers(task: Task, columns: Vector) -> tuple[Vector | None, bool]:
    """Find the best numerical values for the integers of ``columns`` by a linear program.

    Returns:
        The columns and whether they are proven to be the best; or None and whether it is proven that there are none.
    """
    program = task.program
    low, high = _bounds(program, task.fixed)
    free: Indices = np.flatnonzero(program.integer[: program.n] == 0)
    base = np.clip(np.where(program.integer[: program.n] > 0, np.round(columns), 0.0), low, high)
    base[free] = 0.0
    constant, slope = _affine(program, base, free)
    matrix = sparse.csr_array(program.matrix)
    body = matrix @ constant
    rows = (matrix @ slope).toarray() if len(free) else np.zeros((matrix.shape[0], 0))
    cuts = np.array([cut.weights(program.n) for cut in task.cuts]).reshape(len(task.cuts), program.n)
    for share in (0.0, 0.5):
        # rows over integers alone get their whole slack; the other rows get none at first, then half of it
        slack = np.where(np.any(rows, axis=1), share, 1.0) * program.row_slack
        numbers = _bounded(
            Polytope(
                low[free],
                high[free],
                np.concatenate([rows, cuts[:, free]]),
                np.concatenate([program.row_low - slack - body, [c.low - CUT_SLACK for c in task.cuts] - cuts @ base]),
                np.concatenate(
                    [program.row_high + slack - body, [c.high + CUT_SLACK for c in task.cuts] - cuts @ base]
                ),
            )
        )
        if numbers is None:
            continue
        gradient = _gradient(task, base)[free]
        best = found = numbers.minimise(gradient)
        if best is None and np.any(gradient):
            # with a huge range, HiGHS may fail with this objective although it finds a feasible point without one
            found = numbers.minimise(np.zeros(len(free)))
        if found is not None:
            base[free] = found
            inside = kept(task, base)
            return inside, inside is not None and best is not None
    return None, True


def _bounded(numbers: Polytope) -> Polytope | None:
    """Return the polytope with single-column rows turned into bounds, so that the range of an inactive parameter is a point.

    Return None if bounds cross.
    """
    low, high = numbers.tightened
    gap = 1e-15 * np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))
    if np.any(low > high + gap):
        return None
    rest = ~numbers.single
    return Polytope(np.minimum(low, high), high, numbers.matrix[rest], numbers.row_low[rest], numbers.row_high[rest])


def _affine(program: BinaryProgram, base: Vector, free: Indices) -> tuple[Vector, sparse.csr_array]:
    """Return all columns as ``constant + slope x`` of the free ones, (n_columns,) and (n_columns, k).

    Each product contains at most one free column, and its other factor is a binary.
    """
    constant = program.lifted(base)
    rows, cols, values = [free], [np.arange(len(free), dtype=np.int64)], [np.ones(len(free))]
    position = {int(c): k for k, c in enumerate(free)}
    for product in program.products:
        g, h = product.key
        if h < 0 and (-1 - h) in position:
            group = program.groups[g]
            rows.append(product.start + np.arange(product.size))
            cols.append(np.full(product.size, position[-1 - h]))
            values.append(base[group.start : group.stop])
    shape = (program.n_columns, len(free))
    return constant, sparse.csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(cols))), shape=shape
    )


def _gradient(task: Task, base: Vector) -> Vector:
    """Return the gradient of the objective at given integers, shape (n,); no product has two numerical factors."""
    form = task.form
    slope = form.linear.copy()
    np.add.at(slope, form.rows, form.values * base[form.cols])
    np.add.at(slope, form.cols, form.values * base[form.rows])
    return slope
