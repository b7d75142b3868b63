"""HiGHS through highspy: each program is loaded once, then only the cost vector changes.

Tasks pass through reductions first (``mipcash.backends.reductions``): products of the objective become columns, and rows are
tightened where rules allow it. The HiGHS instance of each reduced program is kept (least recently used ones are dropped).
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import highspy
import numpy as np

from mipcash.backends.certificate import certified, closes
from mipcash.backends.reductions.large_steps import LargeSteps
from mipcash.backends.reductions.product_columns import ProductColumns
from mipcash.backends.reductions.reduction import KEPT_PROGRAMS, Reduction, reduced
from mipcash.backends.reductions.scaling import ScaledTask, Scaling
from mipcash.backends.reductions.tightening import LatentRanges, Tightening
from mipcash.backends.silent import SMALLEST, SilentHighs
from mipcash.backends.spatial import ImpreciseError
from mipcash.backends.task import (
    FEASIBLE,
    INFEASIBLE,
    OPTIMAL,
    SOLVED,
    UNKNOWN,
    Answer,
    SolverSettings,
    Task,
)
from mipcash.errors import SolverError
from mipcash.program.forms import Vector
from mipcash.program.program import BinaryProgram
from mipcash.program.recent import Recent

STARTED: Mapping[str, float | str] = {
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_feasibility_jump": "off",
    "mip_heuristic_run_rins": "off",
    "mip_heuristic_run_rens": "off",
    "mip_heuristic_run_root_reduced_cost": "off",
    "mip_allow_restart": "off",
}
"""Options if a start is given. It comes from local search, so HiGHS does not search for one again. With a good incumbent at the
root, a restart costs more than the columns that it removes are worth."""


FEASIBILITY: Mapping[str, float | str] = {
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
    "mip_feasibility_tolerance": 1e-9,
    "presolve": "choose",
    "presolve_rule_off": 1 << 16,
}
"""The tolerance of rules (``mipcash.modelling.rules``), on rows that are scaled to their largest coefficient.

Without presolve's enumeration of solutions: it may fix all binaries but one of an equality, whose row is then lost, so that HiGHS
1.13 to 1.16 may report a suboptimal point as optimal (https://github.com/ERGO-Code/HiGHS/issues/3216).
"""
WIDER: Mapping[str, float | str] = {
    "primal_feasibility_tolerance": 1e-6,
    "mip_feasibility_tolerance": 1e-6,
    "presolve": "off",
}
"""Options of a second run, without presolve and at a wider tolerance. HiGHS has to confirm that there is no solution, or find the
optimum if its bound belonged to a point that it did not return. The result is checked like every other answer."""
UNREDUCED: Mapping[str, float | str] = {"presolve": "off"}
"""Options of a second run for tiny coefficients. Beside 1e-9, HiGHS 1.16 may report a suboptimal point as optimal with presolve,
and a feasible program as infeasible without it."""
DROPPED = 1e-9
"""Largest value of a term that may be dropped, in units of its scaled row."""


IMPOSSIBLE = (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible)


class HighsBackend:
    """Solves tasks with HiGHS; keeps the instances of recent programs.

    Args:
        options: HiGHS options by name, as text; they override the limits of a solve.

    Raises:
        SolverError: HiGHS rejects an option.
    """

    name = "highs"

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._given = dict(options or {})
        _set_options(SilentHighs(), self._given)
        self._reductions: list[Reduction] = [
            ProductColumns(),
            LatentRanges(),
            LargeSteps(),
            Tightening(),
        ]
        self._scaling = Scaling()
        # the program is kept beside its id, so that the id cannot be taken over by another object
        self._instances: Recent[tuple[BinaryProgram, Any]] = Recent(KEPT_PROGRAMS)

    def solve(self, task: Task, settings: SolverSettings) -> Answer:
        """See ``mipcash.backends.task.Backend.solve``."""
        return certified(task, settings, self._solve, self.name, self._widely)

    def _widely(self, task: Task, settings: SolverSettings) -> Answer:
        """Solve with the options of the second run already in the first one."""
        return self._solve(task, settings, WIDER)

    def _solve(self, task: Task, settings: SolverSettings, first: Mapping[str, float | str] | None = None) -> Answer:
        """Run HiGHS, and run it once more if its answer is doubtful.

        Args:
            first: options of the first run.

        Raises:
            SolverError: HiGHS returned no answer, or would drop coefficients.
        """
        began = time.perf_counter()
        easier = reduced(task, self._reductions)
        scaled = self._scaling.apply(easier.task)
        if scaled.scaled.contradictory:
            return Answer(INFEASIBLE, None, math.nan, math.inf, time.perf_counter() - began, self.name)
        program = scaled.task.program
        _, highs = self._instances.get(id(program), lambda: (program, _load(_undropped(program))))
        usual: Mapping[str, float | str] = {**({} if scaled.start is None else STARTED), **(first or {})}
        tiny = scaled.scaled.tiny  # in rows; tiny costs are handled by the unit of the objective
        with _posed(highs, scaled):
            answer = None
            for options in (usual, {**usual, **(UNREDUCED if tiny else WIDER)}):
                left = settings.time_limit - (time.perf_counter() - began)
                self._options(highs, replace(settings, time_limit=max(1e-3, left)), options)
                if scaled.start is not None:
                    _warm_start(highs, scaled.start, program)
                _run(highs)
                later = self._answer(highs, task, scaled, settings.gap, time.perf_counter() - began)
                answer = _better_of(answer, later) if tiny else later
                if (answer is not None and not tiny and not _doubtful(answer, scaled, settings)) or left <= 0.0:
                    break
            if answer is None:
                raise SolverError(
                    f"HiGHS stopped with status {highs.modelStatusToString(highs.getModelStatus())!r} on a program of "
                    f"{task.program.n} columns; try another solver"
                )
            if answer.columns is None:
                return replace(answer, bound=easier.bound(answer.bound))
            return replace(answer, columns=easier.columns(answer.columns), bound=easier.bound(answer.bound))

    def _options(self, highs: Any, settings: SolverSettings, defaults: Mapping[str, float | str]) -> None:
        highs.clearSolver()
        limits: dict[str, int | float | str] = {
            "time_limit": float(max(1e-3, settings.time_limit)),
            "mip_rel_gap": float(settings.gap),
            "mip_abs_gap": SOLVED,
            "threads": int(settings.threads),
            "random_seed": int(settings.seed) % 2**31,
            "mip_max_nodes": 2**31 - 1 if settings.node_limit is None else int(settings.node_limit),
            **FEASIBILITY,
        }
        logs = {"output_flag": True, "log_to_console": False} if "log_file" in self._given else {}
        _set_options(highs, {**limits, **defaults, **logs, **self._given})

    def _answer(self, highs: Any, task: Task, scaled: ScaledTask, gap: float, seconds: float) -> Answer | None:
        """Return the answer of HiGHS, or None if it failed."""
        status, info = highs.getModelStatus(), highs.getInfo()
        kinds = highspy.HighsModelStatus
        if status in IMPOSSIBLE:
            return Answer(INFEASIBLE, None, math.nan, math.inf, seconds, self.name)
        has_incumbent = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        if status == kinds.kOptimal:
            found = OPTIMAL
        elif status in (
            kinds.kTimeLimit,
            kinds.kSolutionLimit,
            kinds.kIterationLimit,
            kinds.kInterrupt,
            kinds.kObjectiveBound,
        ):
            found = FEASIBLE if has_incumbent else UNKNOWN
        elif status == kinds.kModelEmpty:
            found, has_incumbent = OPTIMAL, True
        else:
            return None
        bound = scaled.bound(float(info.mip_dual_bound))
        if not has_incumbent:
            return Answer(found, None, math.nan, bound if math.isfinite(bound) else -math.inf, seconds, self.name)
        columns = scaled.columns(np.array(highs.getSolution().col_value[: task.program.n]))
        columns = np.where(task.program.integer[: task.program.n] > 0, np.round(columns), columns)
        value = task.form.value(columns)
        own = scaled.bound(float(info.objective_function_value))
        if status == kinds.kModelEmpty:
            bound = value
        elif not np.any(task.program.integer):  # a linear program has no dual bound of branch and bound
            bound = own if found == OPTIMAL else -math.inf
        elif found == OPTIMAL:
            # with an integral objective HiGHS stops before its bound reaches the value; its optimum is within its gap
            bound = max(bound, own - max(gap * abs(own), SOLVED * scaled.unit))
        return Answer(found, columns, value, min(bound, value) - scaled.neglected, seconds, self.name)


def _better_of(first: Answer | None, second: Answer | None) -> Answer | None:
    """Return the answer that has columns; if both have, the one with the lower value."""
    if first is None or second is None:
        return first or second
    if first.columns is None or second.columns is None:
        return second if first.columns is None else first
    return first if first.value <= second.value else second


def _doubtful(answer: Answer, scaled: ScaledTask, settings: SolverSettings) -> bool:
    """Return True if rounding may have decided the answer: infeasible within a tolerance, or optimal with an open gap."""
    if answer.status == INFEASIBLE:
        return scaled.scaled.delicate
    return answer.status == OPTIMAL and not closes(answer.value, answer.bound, settings)


@contextmanager
def _posed(highs: Any, scaled: ScaledTask) -> Iterator[None]:
    """Set a task's objective, fixings and cuts in a HiGHS instance; fixings and cuts are removed on exit."""
    task, program, cost = scaled.task, scaled.task.program, scaled.cost
    assert cost is not None
    highs.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)
    highs.changeObjectiveOffset(task.form.constant)
    fixed = np.fromiter(task.fixed, dtype=np.int32, count=len(task.fixed))
    values = np.fromiter(task.fixed.values(), dtype=float, count=len(task.fixed))
    if len(fixed):
        highs.changeColsBounds(len(fixed), fixed, values, values)
    first = highs.getNumRow()
    for cut in task.cuts:
        highs.addRow(cut.low, cut.high, len(cut.columns), cut.columns.astype(np.int32), cut.values)
    try:
        yield
    finally:
        if task.cuts:
            highs.deleteRows(len(task.cuts), np.arange(first, first + len(task.cuts), dtype=np.int32))
        if len(fixed):
            highs.changeColsBounds(len(fixed), fixed, program.low[fixed], program.high[fixed])


def _run(highs: Any) -> None:
    if highs.run() == highspy.HighsStatus.kError:
        # HiGHS refuses to change the number of threads of a process until its scheduler is reset
        highs.resetGlobalScheduler(True)
        highs.run()


def _set_options(highs: Any, options: Mapping[str, int | float | str]) -> None:
    """Set options by name; HiGHS converts text to the type of the option."""
    for option, value in options.items():
        if highs.setOptionValue(option, value) != highspy.HighsStatus.kOk:
            raise SolverError(f"HiGHS rejects option {option}={value!r}; see its list of options for names and ranges")


def _undropped(program: BinaryProgram) -> BinaryProgram:
    """Return the program.

    Raises:
        ImpreciseError: HiGHS would drop a coefficient that matters over the range of its integer; reals are scaled.
    """
    sizes, reach = np.abs(program.matrix.data), np.maximum(np.abs(program.low), np.abs(program.high))
    if np.any((sizes < SMALLEST) & (sizes * reach[program.matrix.indices] > DROPPED)):
        raise ImpreciseError(
            "HiGHS drops coefficients of this space, where an integer has 1e12 times the range of another term of its rule; "
            "narrow it"
        )
    return program


def _load(program: BinaryProgram) -> SilentHighs:
    within, columns = (program.row_low, program.row_high), (program.low, program.high)
    return SilentHighs.of(program.matrix, within, columns, program.integer > 0)


def program_text(program: BinaryProgram, names: Sequence[str], suffix: str) -> bytes:
    """Return a program without an objective in the format of a suffix, ``.lp`` or ``.mps``.

    HiGHS ends the process if it cannot open a file, so it writes into a temporary folder.

    Raises:
        SolverError: there is no temporary folder, or no space in it.
    """
    highs = _load(program)
    for column, name in enumerate(names):
        highs.passColName(column, name)
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"program{suffix}"
            file.touch()
            if highs.writeModel(str(file)) == highspy.HighsStatus.kError:
                raise OSError(f"HiGHS cannot write {file}")
            return file.read_bytes()
    except OSError as error:
        raise SolverError(
            f"the program cannot be written to a temporary folder: {error}; set TMPDIR to one with space"
        ) from error


def _warm_start(highs: Any, start: Vector, program: BinaryProgram) -> None:
    """Pass a legal start to HiGHS: all columns if they are known, else the known integers for HiGHS to complete."""
    if np.all(np.isfinite(start)):
        solution = highspy.HighsSolution()
        solution.col_value = start.tolist()
        highs.setSolution(solution)
    else:
        known = np.flatnonzero(np.isfinite(start) & (program.integer > 0)).astype(np.int32)
        highs.setSolution(len(known), known, start[known])
