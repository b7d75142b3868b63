"""HiGHS through highspy: the program is passed once, then only the cost vector changes.

Programs reach it without the levels that others replace at no cost (:mod:`mipcash.backends.reductions.dominated_levels`), and with
tighter rows where rules allow them (:mod:`mipcash.backends.reductions.rlt_rows`). A quadratic objective is linear in the
program's product columns; programs are extended by the products that an objective couples, and the instance of each extension
is kept (least recently used ones are dropped).
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import highspy
import numpy as np

from mipcash.backends.base import Answer, SolverSettings, Task
from mipcash.backends.certificate import CLOSED, certified
from mipcash.backends.reductions.dominated_levels import DeadEnds, dead_ends
from mipcash.backends.reductions.rlt_rows import with_row_products
from mipcash.backends.reductions.scaling import Scaling, objective_unit
from mipcash.backends.solution import FEASIBLE, INFEASIBLE, OPTIMAL, SOLVED, UNKNOWN, relative_gap
from mipcash.errors import SolverError
from mipcash.program.forms import Vector
from mipcash.program.program import BinaryProgram
from mipcash.program.rewriting import with_products

KEPT_INSTANCES = 8
SWITCHES = ("dead_ends", "row_products")
STARTED: Mapping[str, float | str] = {
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_feasibility_jump": "off",
    "mip_heuristic_run_rins": "off",
    "mip_heuristic_run_rens": "off",
    "mip_heuristic_run_root_reduced_cost": "off",
    "mip_allow_restart": "off",
}
"""Options where a start is given, which is local search's: the search for one is not repeated; with a good incumbent at the
root, a restart costs more than the columns that it drops are worth."""


FEASIBILITY: Mapping[str, float | str] = {
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
    "mip_feasibility_tolerance": 1e-9,
    "presolve": "choose",
}
"""That of rules (:mod:`mipcash.modelling.rules`), on rows that are scaled to their largest coefficient."""
WIDER: Mapping[str, float | str] = {
    "primal_feasibility_tolerance": 1e-6,
    "mip_feasibility_tolerance": 1e-6,
    "presolve": "off",
}
"""Options of a second run: without presolve and at a wider tolerance HiGHS has to say once more that there is no solution, or what
is optimal where its bound was for a point that it did not return. What it finds is checked like everything else."""
SMALLEST = 1e-12
"""Coefficients below this are dropped; by default those below 1e-9 are, one beside a range of 1e9."""


IMPOSSIBLE = (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible)


class HighsBackend:
    """Solves tasks with HiGHS; keeps the instances of recent programs.

    Args:
        options: HiGHS' own options by name, as text; they override the limits of a solve. Besides them, each ``on`` or
            ``off``: ``dead_ends``, ``row_products``.

    Raises:
        SolverError: an option that HiGHS does not take.
    """

    name = "highs"

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._given = dict(options or {})
        self._dead_ends, self._row_products = (_switch(self._given, name) for name in SWITCHES)
        _set_options(highspy.Highs(), self._given)
        self._instances: OrderedDict[tuple[int, frozenset[tuple[int, int]]], _Instance] = OrderedDict()

    def solve(self, task: Task, settings: SolverSettings) -> Answer:
        """See :meth:`mipcash.backends.base.Backend.solve`."""
        return certified(task, settings, self._solve, self.name, self._widely)

    def _widely(self, task: Task, settings: SolverSettings) -> Answer:
        """As in a second run, from the beginning."""
        return self._solve(task, settings, WIDER)

    def _solve(self, task: Task, settings: SolverSettings, first: Mapping[str, float | str] | None = None) -> Answer:
        """Run HiGHS, and once more where its answer is doubtful.

        Args:
            first: options of the first run.
        """
        began = time.perf_counter()
        instance = self._instance(task)
        if instance.scaling.contradictory:
            return Answer(INFEASIBLE, None, math.nan, math.inf, time.perf_counter() - began, self.name)
        program, highs, c = instance.program, instance.highs, instance.scaling.columns
        columns = np.arange(program.n_columns, dtype=np.int32)
        cost = program.cost(task.form) * c
        unit = objective_unit(cost)
        highs.changeColsCost(program.n_columns, columns, cost / unit)
        highs.changeObjectiveOffset(task.form.constant / unit)
        ends = dead_ends(task) if self._dead_ends else DeadEnds(())
        bounds = {**task.fixed, **{closed: 0.0 for closed, _ in ends.replaced}}
        fixed = np.fromiter(bounds, dtype=np.int32, count=len(bounds))
        values = np.fromiter(bounds.values(), dtype=float, count=len(bounds)) / c[fixed]
        if len(fixed):
            highs.changeColsBounds(len(fixed), fixed, values, values)
        first_cut = highs.getNumRow()
        for cut in task.cuts:
            weights = np.asarray(cut.values, dtype=float) * c[cut.columns]
            highs.addRow(cut.low, cut.high, len(cut.columns), cut.columns.astype(np.int32), weights)
        start = ends.start(task.start)
        usual: Mapping[str, float | str] = {**({} if start is None else STARTED), **(first or {})}
        try:
            answer = None
            for options in (usual, {**usual, **WIDER}):
                left = settings.time_limit - (time.perf_counter() - began)
                self._options(highs, replace(settings, time_limit=max(1e-3, left)), options)
                if start is not None:
                    _warm_start(highs, instance, start)
                _run(highs)
                answer = self._answer(highs, instance, task, unit, settings.gap, time.perf_counter() - began)
                if (answer is not None and not self._doubtful(answer, instance, settings)) or left <= 0.0:
                    break
            if answer is None:
                raise SolverError(
                    f"HiGHS stopped with status {highs.modelStatusToString(highs.getModelStatus())!r} on a program of "
                    f"{task.program.n} columns; try another solver"
                )
            return answer
        finally:
            if task.cuts:
                highs.deleteRows(len(task.cuts), np.arange(first_cut, first_cut + len(task.cuts), dtype=np.int32))
            if len(fixed):
                scaled = instance.scaling.program
                highs.changeColsBounds(len(fixed), fixed, scaled.low[fixed], scaled.high[fixed])

    @staticmethod
    def _doubtful(answer: Answer, instance: _Instance, settings: SolverSettings) -> bool:
        """Whether rounding may stand behind an answer: no solution where a tolerance decides, or a bound for another point."""
        if answer.status == INFEASIBLE:
            return instance.scaling.delicate
        return answer.status == OPTIMAL and relative_gap(answer.value, answer.bound) > settings.gap + CLOSED

    def _instance(self, task: Task) -> _Instance:
        couplings = task.program.couplings(task.form) - task.program.product_index.keys()
        key = (id(task.program), frozenset(couplings))
        if key in self._instances:
            self._instances.move_to_end(key)
        else:
            extended = with_products(task.program, couplings)
            if self._row_products:
                extended = with_row_products(extended)
            scaling = Scaling.of(extended)
            self._instances[key] = _Instance(task.program, extended, scaling, _load(scaling.program))
            if len(self._instances) > KEPT_INSTANCES:
                self._instances.popitem(last=False)
        return self._instances[key]

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
        _set_options(highs, {**limits, **defaults, **self._given})

    def _answer(
        self, highs: Any, instance: _Instance, task: Task, unit: float, gap: float, seconds: float
    ) -> Answer | None:
        """What HiGHS says; None where it failed."""
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
        bound = float(info.mip_dual_bound) * unit
        if not has_incumbent:
            return Answer(found, None, math.nan, bound if math.isfinite(bound) else -math.inf, seconds, self.name)
        n = task.program.n
        columns: Vector = np.array(highs.getSolution().col_value[:n]) * instance.scaling.columns[:n]
        columns = np.where(task.program.integer[: task.program.n] > 0, np.round(columns), columns)
        value = task.form.value(columns)
        own = float(info.objective_function_value) * unit
        if status == kinds.kModelEmpty:
            bound = value
        elif not np.any(task.program.integer):  # a linear program has no dual bound of a search
            bound = own if found == OPTIMAL else -math.inf
        elif found == OPTIMAL:
            # with a whole objective HiGHS ends before its bound is there; what it calls optimal is within its gap
            bound = max(bound, own - max(gap * abs(own), SOLVED * unit))
        return Answer(found, columns, value, min(bound, value), seconds, self.name)


@dataclass(frozen=True)
class _Instance:
    """A program in HiGHS.

    Attributes:
        source: the task's program, kept so that its id cannot be taken over by another object.
        program: with the products of the objective.
        scaling: of that, as HiGHS has it.
    """

    source: BinaryProgram
    program: BinaryProgram
    scaling: Scaling
    highs: Any


def _run(highs: Any) -> None:
    if highs.run() == highspy.HighsStatus.kError:
        # HiGHS refuses another number of threads than the process began with, until its scheduler is reset
        highs.resetGlobalScheduler(True)
        highs.run()


def _switch(options: dict[str, str], name: str) -> bool:
    """Take an option of the backend's own out of ``options``; on where it is not given."""
    value = options.pop(name, "on")
    if value not in ("on", "off"):
        raise SolverError(f"option {name}={value!r} of HiGHS' backend is either 'on' or 'off'")
    return value == "on"


def _set_options(highs: Any, options: Mapping[str, int | float | str]) -> None:
    """Set options by name; HiGHS reads a text as whatever the option's type is."""
    highs.setOptionValue("output_flag", False)
    for option, value in options.items():
        if highs.setOptionValue(option, value) != highspy.HighsStatus.kOk:
            raise SolverError(f"HiGHS rejects option {option}={value!r}; see its list of options for names and ranges")


def _load(program: BinaryProgram) -> Any:
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = program.n_columns, program.matrix.shape[0]
    lp.col_cost_ = np.zeros(program.n_columns)
    lp.col_lower_, lp.col_upper_ = program.low, program.high
    lp.row_lower_, lp.row_upper_ = program.row_low, program.row_high
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = lp.num_col_, lp.num_row_
    lp.a_matrix_.start_ = program.matrix.indptr.astype(np.int32)
    lp.a_matrix_.index_ = program.matrix.indices.astype(np.int32)
    lp.a_matrix_.value_ = program.matrix.data
    kinds = highspy.HighsVarType
    lp.integrality_ = [kinds.kInteger if i else kinds.kContinuous for i in program.integer]
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("small_matrix_value", SMALLEST)
    if highs.passModel(lp) == highspy.HighsStatus.kError:
        raise SolverError(f"HiGHS rejects the program ({lp.num_col_} columns, {lp.num_row_} rows)")
    return highs


def write_program(program: BinaryProgram, path: Path, names: Sequence[str]) -> None:
    """Write a program without an objective in the format of the path's suffix (``.lp``, ``.mps``).

    Raises:
        SolverError: the file cannot be written.
    """
    highs = _load(program)
    for column, name in enumerate(names):
        highs.passColName(column, name)
    if highs.writeModel(str(path)) == highspy.HighsStatus.kError or not path.is_file():
        raise SolverError(f"the program cannot be written to {path}; check that the folder exists and is writable")


def _warm_start(highs: Any, instance: _Instance, start: Vector) -> None:
    """Hand over a legal point: all columns where they follow from it, else the known ones for HiGHS to complete."""
    program = instance.program
    columns = program.lifted(start) / instance.scaling.columns
    if np.all(np.isfinite(columns)):
        solution = highspy.HighsSolution()
        solution.col_value = columns.tolist()
        highs.setSolution(solution)
    else:
        known = np.flatnonzero(np.isfinite(columns) & (program.integer > 0)).astype(np.int32)
        highs.setSolution(len(known), known, columns[known])
