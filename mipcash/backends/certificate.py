"""Every answer is checked before it leaves its backend: what breaks a row is mended or ruled out, never returned.

A solver works within tolerances, on integers too: a big-M row lets a number in that its indicator, 1e-7 and rounded to 0,
switches off. An answer is therefore rounded and held against the rows at their own slack (:mod:`mipcash.space.rules`).
One that fails is solved again with

    1. its integers fixed: a linear program over the numbers, at the tightest tolerance
    2. its levels fixed, where it has further integers

and where that has no solution the levels are illegal for certain: they are excluded by a cut and the task is solved again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from scipy import sparse

from mipcash.backends.base import CUT_SLACK, Answer, Cut, SolverSettings, Task
from mipcash.backends.polytope import Polytope
from mipcash.backends.solution import FEASIBLE, INFEASIBLE, OPTIMAL, relative_gap
from mipcash.errors import SolverError
from mipcash.program.forms import Indices, Vector
from mipcash.program.program import BinaryProgram

ATTEMPTS = 50
"""Level vectors that are ruled out one by one in a solve."""
WITHIN = 1e-9
"""How far outside its bounds a column may be, relative to them; it is moved onto them."""
TIGHT_GAP = 1e-9
"""Relative gap that a mended answer may have beyond the one asked for: it is where the solver's tolerance was."""

Solve = Callable[[Task, SolverSettings], Answer]


def certified(task: Task, settings: SolverSettings, solve: Solve, name: str) -> Answer:
    """An answer of ``solve`` that keeps every row.

    Args:
        name: of the solver, for messages.

    Raises:
        SolverError: the solver's answers keep breaking rows, and what is wrong with them cannot be told.
    """
    began = time.perf_counter()
    if any(not len(cut.columns) and not cut.low <= 0.0 <= cut.high for cut in task.cuts):
        # solvers differ in what they make of a row without columns
        return Answer(INFEASIBLE, None, np.nan, np.inf, time.perf_counter() - began, name)
    given, left = task, settings
    for _ in range(ATTEMPTS):
        answer = solve(given, left)
        if answer.columns is None:
            return replace(answer, seconds=time.perf_counter() - began)
        found = kept(given, answer.columns)
        if found is not None:
            same = found is answer.columns
            return replace(answer if same else _at(answer, found, task, settings), seconds=time.perf_counter() - began)
        left = replace(settings, time_limit=max(0.0, settings.time_limit - (time.perf_counter() - began)))
        mended, hopeless = _mended(given, answer.columns, left, solve)
        if mended is not None:
            return replace(_at(answer, mended, task, settings), seconds=time.perf_counter() - began)
        if not hopeless or not task.program.n_z:
            break
        program = task.program
        columns = program.starts + program.levels_of(answer.columns)
        ruled_out = Cut(columns, np.ones(len(columns)), -np.inf, len(columns) - 1.0)
        given = replace(given, cuts=[*given.cuts, ruled_out], start=None)
    raise SolverError(
        f"solver {name!r} returns points that break the program's rows ({_worst(given, answer)}), and none near them keeps "
        "them: its tolerances are too coarse for this space. Narrow the ranges of the numbers in that rule, or use another solver"
    )


def _at(answer: Answer, columns: Vector, task: Task, settings: SolverSettings) -> Answer:
    """The answer with other columns; optimal only if its bound still says so."""
    value = task.form.value(columns)
    bound = min(answer.bound, value)
    close = relative_gap(value, bound) <= settings.gap + TIGHT_GAP
    status = OPTIMAL if answer.status == OPTIMAL and close else FEASIBLE
    return replace(answer, status=status, columns=columns, value=value, bound=bound)


def kept(task: Task, columns: Vector) -> Vector | None:
    """The columns, those at a bound exactly there, if they keep bounds, fixings, cuts and rows; else None. (n,) -> (n,)"""
    program = task.program
    if not np.all(np.isfinite(columns)):
        return None
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


def _missed(program: BinaryProgram, columns: Vector) -> Vector:
    """By how much each row is missed beyond its slack, shape (m,)."""
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


def _mended(task: Task, columns: Vector, settings: SolverSettings, solve: Solve) -> tuple[Vector | None, bool]:
    """Columns near the given ones that keep every row, and otherwise whether their levels are proven illegal."""
    moved = _with_integers(task, columns)
    if moved is not None:
        return moved, False
    program = task.program
    n_z, n = program.n_z, program.n
    free = [c for c in range(n_z, n) if program.integer[c] and c not in task.fixed]
    if not free:
        return None, True
    levels = dict(zip(range(n_z), np.round(columns[:n_z]).tolist(), strict=True))
    answer = solve(replace(task, fixed={**task.fixed, **levels}, start=None), settings)
    if answer.columns is None:
        return None, answer.status == INFEASIBLE
    found = kept(task, answer.columns)
    return (_with_integers(task, answer.columns) if found is None else found), False


def _with_integers(task: Task, columns: Vector) -> Vector | None:
    """The best numbers beside the integers of ``columns``, by a linear program; None where there are none."""
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
    set_ = Polytope(
        low[free],
        high[free],
        np.concatenate([rows, cuts[:, free]]),
        np.concatenate([program.row_low - body, [c.low for c in task.cuts] - cuts @ base]),
        np.concatenate([program.row_high - body, [c.high for c in task.cuts] - cuts @ base]),
    )
    found = set_.minimise(_gradient(task, base)[free])
    if found is None:
        return None
    base[free] = found
    return kept(task, base)


def _affine(program: BinaryProgram, base: Vector, free: Indices) -> tuple[Vector, sparse.csr_array]:
    """All columns as ``constant + slope x`` of the free ones: (n_columns,), (n_columns, k); each multiplies binaries only."""
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
    """Slopes of the objective at the integers, shape (n,); it multiplies no two numbers."""
    form = task.form
    slope = form.linear.copy()
    np.add.at(slope, form.rows, form.values * base[form.cols])
    np.add.at(slope, form.cols, form.values * base[form.rows])
    return slope
