"""A backend for any solver that Pyomo supports, described by its profile.

A program becomes one Pyomo model: its columns, its rows, and an objective that is replaced at every solve. The products of an
objective are either the program's product columns with their RLT rows ("linear") or left to the solver ("quadratic"); the products
of rules are always columns with rows. The profile gives the default form.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression

from mipcash.backends.certificate import certified
from mipcash.backends.highs import HighsBackend
from mipcash.backends.profiles import (
    LINEAR,
    QUADRATIC,
    Form,
    OptionValue,
    PyomoProfile,
    Setting,
    SolverProfile,
    option_value,
)
from mipcash.backends.pyomo.interfaces import Edits, Interface, Report, make_interface
from mipcash.backends.reductions.large_steps import LargeSteps
from mipcash.backends.reductions.product_columns import ProductColumns, missing_products
from mipcash.backends.reductions.reduction import Reduction, reduced
from mipcash.backends.reductions.scaling import ScaledTask, Scaling
from mipcash.backends.reductions.tightening import LatentRanges, Tightening
from mipcash.backends.task import INFEASIBLE, OPTIMAL, SOLVED, Answer, Cut, SolverSettings, Task
from mipcash.errors import SolverError
from mipcash.program.products import Bilinear
from mipcash.program.program import BinaryProgram
from mipcash.program.rewriting import with_coefficients

KEPT_INSTANCES = 4
PROBE_SECONDS = 10.0
SHORTEST = 1e-2
"""Shortest time limit in seconds: some solvers treat a shorter one as no limit."""
LONGEST = 1e9
"""Time limit in seconds of a solve without a limit: not every solver accepts infinity."""


@dataclass
class _Instance:
    """A model in a solver. The program is referenced so that its id is not reused."""

    program: BinaryProgram
    model: Any
    columns: list[Any]
    interface: Interface
    fixed: tuple[int, ...] = ()
    cuts: tuple[Any, ...] = ()


NATIVE = 1e8
"""Largest product that a solver gets natively: its tolerances are relative to the product's size, those of rules are not."""
NARROW = 1e-2
"""Range of a factor, relative to its ends, below which a solver gets only the relaxation of a product: beside the tangents of a
square of range w, a tolerance t cuts off t / w at an end."""


class PyomoBackend:
    """Solves tasks with one solver through Pyomo; keeps the models of recent programs.

    Args:
        profile: the solver's profile.
        options: the solver's own options by name, and ``form`` (``linear`` or ``quadratic``) of the objective; without
            it the profile's form, or the other one if only that fits the licence.

    Raises:
        SolverError: a form that the solver does not accept.
    """

    def __init__(self, profile: SolverProfile, options: Mapping[str, str] | None = None) -> None:
        assert profile.pyomo is not None
        given = dict(options or {})
        form = given.pop("form", profile.pyomo.form)
        if form not in (LINEAR, QUADRATIC) or (form == QUADRATIC and not _takes_quadratic(profile)):
            raise SolverError(
                f"solver {profile.name!r} does not take the objective form {form!r}; "
                f"it takes {LINEAR!r}" + (f" and {QUADRATIC!r}" if _takes_quadratic(profile) else "")
            )
        self.profile = replace(profile, pyomo=replace(profile.pyomo, form=cast(Form, form)))
        self._strict = "form" in (options or {})
        self._given: dict[str, OptionValue] = {key: option_value(value) for key, value in given.items()}
        smaller: list[Reduction] = [LatentRanges(), LargeSteps(), Tightening()]
        self._reductions: dict[str, list[Reduction]] = {
            LINEAR: [ProductColumns(), *smaller],
            QUADRATIC: smaller,
        }
        self._scalings = {LINEAR: Scaling(), QUADRATIC: Scaling(linear=False)}
        self._instances: OrderedDict[tuple[int, str], _Instance] = OrderedDict()
        self._full_licence: bool | None = None
        self._highs = HighsBackend()

    @property
    def name(self) -> str:
        """Name of the solver."""
        return self.profile.name

    def solve(self, task: Task, settings: SolverSettings) -> Answer:
        """See ``mipcash.backends.task.Backend.solve``; a program that exceeds the licence is refused before the solve."""
        products = self._pyomo.takes_products
        if task.program.bilinear and not (products and _moderate(task.program)):
            # spatial branch and bound: hundreds of relaxations with checked answers, each a matter of milliseconds for HiGHS
            return self._highs.solve(task, settings)
        answer = certified(task, settings, self._unchecked, self.name, self._highs.solve, products=products)
        left = settings.time_limit - answer.seconds
        if not task.program.bilinear or answer.status in (OPTIMAL, INFEASIBLE) or left <= 0.0:
            return answer
        second = self._highs.solve(task, replace(settings, time_limit=left))
        return answer.joined(second, answer.seconds + second.seconds)

    def _unchecked(self, task: Task, settings: SolverSettings) -> Answer:
        try:
            answer = self._solve(task, settings)
        except SolverError:
            if not self.profile.second:
                raise
            answer = self._solve(task, settings, self.profile.second)
        left = settings.time_limit - answer.seconds
        if left > 0.0 and answer.status == OPTIMAL and self._tiny(task):
            # beside coefficients of 1e-9 every solver may report a suboptimal point as optimal
            second = self._highs.solve(task, replace(settings, time_limit=left))
            if second.columns is not None and second.value < answer.value:
                return replace(second, seconds=answer.seconds + second.seconds)
        if answer.status != INFEASIBLE or left <= 0.0 or not self._delicate(task):
            return answer
        # a tolerance may have decided: HiGHS has to confirm the answer with options that check such cases
        second = self._highs.solve(task, replace(settings, time_limit=left))
        return replace(answer if second.status == INFEASIBLE else second, seconds=answer.seconds + second.seconds)

    def _solve(self, task: Task, settings: SolverSettings, second: Mapping[str, OptionValue] | None = None) -> Answer:
        began = time.perf_counter()
        if _contradictory(task.program):
            return Answer(INFEASIBLE, None, math.nan, math.inf, time.perf_counter() - began, self.name)
        if not task.program.n_columns:
            value = task.form.constant
            return Answer(OPTIMAL, np.zeros(0), value, value, time.perf_counter() - began, self.name)
        form = self._form(task)
        scaled = self._reduced(task, form)
        if scaled.scaled.contradictory:
            return Answer(INFEASIBLE, None, math.nan, math.inf, time.perf_counter() - began, self.name)
        key, instance = self._instance(scaled.task.program, form)
        try:
            edits = _edit(instance, scaled.task)
            _set_objective(instance, scaled)
            warm = _set_start(instance, scaled, self._pyomo.start)
            report = instance.interface.solve(edits, {**self._options(settings, form), **(second or {})}, warm)
            report = replace(report, bound=scaled.bound(report.bound))
        except SolverError:
            del self._instances[key]
            raise
        except Exception as error:
            # the state of the solver's model is unknown now
            del self._instances[key]
            raise self._translated(error, task) from error
        return replace(_answer(report, task, scaled, settings, time.perf_counter() - began), prover=self.name)

    def _reduced(self, task: Task, form: str) -> ScaledTask:
        return self._scalings[form].apply(reduced(task, self._reductions[form]).task)

    def _delicate(self, task: Task) -> bool:
        """Return True if a tolerance may have decided that there is no solution."""
        if _contradictory(task.program) or not task.program.n_columns:
            return False
        return self._reduced(task, self._form(task)).scaled.delicate

    def _tiny(self, task: Task) -> bool:
        """See ``mipcash.backends.reductions.scaling.ScaledTask.tiny``."""
        return bool(task.program.n_columns) and self._reduced(task, self._form(task)).tiny

    # -- form and size ------------------------------------------------------------------------------------------

    @property
    def _pyomo(self) -> PyomoProfile:
        assert self.profile.pyomo is not None
        return self.profile.pyomo

    def _form(self, task: Task) -> str:
        """Return the preferred form, or the other one if only that fits the licence.

        Raises:
            SolverError: neither fits.
        """
        preferred = self._pyomo.form
        forms = [preferred, *(f for f in (LINEAR, QUADRATIC) if f != preferred)]
        if self._strict or not _takes_quadratic(self.profile):
            forms = [preferred]
        missing = missing_products(task)
        if not missing:
            forms = [LINEAR]
        problems = [self._exceeded(task, form, missing) for form in forms]
        if not problems[0] or self._has_full_licence():
            return str(forms[0])
        fitting = [form for form, problem in zip(forms, problems, strict=True) if not problem]
        if not fitting:
            raise self._too_large(problems[0])
        return str(fitting[0])

    def _exceeded(self, task: Task, form: str, missing: set[tuple[int, int]]) -> str:
        program = task.program
        variables, rows = program.n_columns, program.matrix.shape[0] + len(task.cuts)
        # some interfaces split a row with two different ends into two
        rows += int(np.sum((program.row_low < program.row_high) & np.isfinite(program.row_high - program.row_low)))
        if form == LINEAR:
            for g, h in missing:
                a, b = program.groups[g].size, program.groups[h].size if h >= 0 else 1
                variables += a * b
                rows += a + b if h >= 0 else 1 + 2 * a
        return self.profile.size.exceeded(variables, rows, form == QUADRATIC)

    def _has_full_licence(self) -> bool:
        """Return True if the solver accepts a model one variable larger than the free licence allows (tested once)."""
        if self._full_licence is None:
            size = self.profile.size
            n = 1 + max(k or 0 for k in (size.variables, size.quadratic_variables))
            model, columns = pyo.ConcreteModel(), []
            model.v = pyo.Var(range(n), domain=pyo.Binary)
            columns = list(model.v.values())
            model.rows = pyo.Constraint(expr=pyo.quicksum(columns) >= 1)
            model.cost = pyo.Objective(expr=pyo.quicksum(columns))
            try:
                interface = make_interface(self._pyomo, self.name, model, columns)
                options = self._options(SolverSettings(time_limit=PROBE_SECONDS), LINEAR)
                self._full_licence = interface.solve(Edits(), options, False).status == OPTIMAL
            except Exception:
                # whatever the reason, a larger model is not solved
                self._full_licence = False
        return self._full_licence

    def _too_large(self, problem: str) -> SolverError:
        return SolverError(
            f"the free licence of solver {self.name!r} ends at {problem}; "
            f"get a full licence ({self.profile.install}), or use solver='highs', which has no limit"
        )

    def _translated(self, error: Exception, task: Task) -> SolverError:
        words = str(error)
        if any(w in words.lower() for w in ("size-limited", "too large", "1016", "promotional", "community edition")):
            program = task.program
            return self._too_large(f"less than this program ({program.n_columns:,} columns; it says: {words})")
        return SolverError(f"solver {self.name!r} failed on a program of {task.program.n_columns} columns: {words}")

    # -- options and instances ----------------------------------------------------------------------------------

    def _options(self, settings: SolverSettings, form: str) -> dict[str, OptionValue]:
        unlimited = self.profile.unlimited.get("node_limit")
        values: dict[Setting, OptionValue | None] = {
            "time_limit": min(max(SHORTEST, float(settings.time_limit)), LONGEST),
            "threads": int(settings.threads),
            "gap": float(settings.gap),
            "absolute_gap": SOLVED,
            "seed": int(settings.seed) % 2**30,
            "node_limit": unlimited if settings.node_limit is None else int(settings.node_limit),
        }
        names = self.profile.options
        options = {names[key]: v for key, v in values.items() if key in names and v is not None}
        native = self.profile.fixed_quadratic if form == QUADRATIC else {}
        return {**self.profile.fixed, **native, **options, **self._given}

    def _instance(self, program: BinaryProgram, form: str) -> tuple[tuple[int, str], _Instance]:
        key = (id(program), form)
        if key in self._instances:
            self._instances.move_to_end(key)
        else:
            # Pyomo rejects rows whose bounds cross; such a program is never solved
            low = np.minimum(program.row_low, program.row_high)
            products = [p for p in program.bilinear if self._pyomo.takes_products and not _narrow(program, p)]
            model, columns = _model(with_coefficients(program, program.matrix, low, program.row_high), products)
            interface = make_interface(self._pyomo, self.name, model, columns)
            self._instances[key] = _Instance(program, model, columns, interface)
            if len(self._instances) > KEPT_INSTANCES:
                self._instances.popitem(last=False)
        return key, self._instances[key]


def _moderate(program: BinaryProgram) -> bool:
    """Return True if all products of reals are small enough for a solver's tolerances to match those of rules."""
    ends = [p.column for p in program.bilinear]
    return float(np.abs([program.low[ends], program.high[ends]]).max(initial=0.0)) <= NATIVE


def _narrow(program: BinaryProgram, product: Bilinear) -> bool:
    """Return True if the range of a factor is below ``NARROW``."""
    factors = [product.first, product.second]
    low, high = program.low[factors], program.high[factors]
    return bool(np.any(high - low < NARROW * np.maximum(np.abs(low), np.abs(high))))


def _takes_quadratic(profile: SolverProfile) -> bool:
    return profile.pyomo is not None and profile.pyomo.takes_quadratic


def _contradictory(program: BinaryProgram) -> bool:
    """Return True if a row without columns is violated (Pyomo accepts no constraint without variables)."""
    empty = np.diff(program.matrix.indptr) == 0
    return bool(np.any(empty & ((program.row_low > 1e-9) | (program.row_high < -1e-9))))


def _model(program: BinaryProgram, products: Sequence[Bilinear]) -> tuple[Any, list[Any]]:
    model: Any = pyo.ConcreteModel()
    model.v = pyo.Var(range(program.n_columns), domain=pyo.Reals)
    columns = list(model.v.values())
    for k, variable in enumerate(columns):
        if program.integer[k] > 0:
            variable.domain = pyo.Binary if program.low[k] >= 0 and program.high[k] <= 1 else pyo.Integers
        variable.setlb(float(program.low[k]))
        variable.setub(float(program.high[k]))
    matrix = program.matrix
    model.rows = pyo.Constraint(pyo.Any)
    for r in range(matrix.shape[0]):
        at = slice(matrix.indptr[r], matrix.indptr[r + 1])
        low, high = float(program.row_low[r]), float(program.row_high[r])
        if at.start < at.stop and (math.isfinite(low) or math.isfinite(high)):
            model.rows[r] = _relation(columns, matrix.indices[at], matrix.data[at], low, high)
    model.products = pyo.Constraint(range(len(products)))
    for k, p in enumerate(products):
        model.products[k] = columns[p.column] == p.scale * columns[p.first] * columns[p.second]
    model.cuts = pyo.Constraint(pyo.Any)
    model.cost = pyo.Objective(expr=0.0 * columns[0])
    return model, columns


def _relation(columns: Sequence[Any], at: Any, values: Any, low: float, high: float) -> Any:
    body = _linear(columns, at, values)
    if low == high:
        return body == low
    if not math.isfinite(low):
        return body <= high
    return body >= low if not math.isfinite(high) else pyo.inequality(low, body, high)


def _linear(columns: Sequence[Any], at: Any, values: Any) -> Any:
    chosen = [columns[k] for k in np.asarray(at).tolist()]
    return LinearExpression(constant=0, linear_coefs=np.asarray(values, dtype=float).tolist(), linear_vars=chosen)


def _edit(instance: _Instance, task: Task) -> Edits:
    """Set bounds and cuts of the model for this task, and remove those of the last task."""
    program, columns = instance.program, instance.columns
    changed = {*instance.fixed, *task.fixed}
    for k in instance.fixed:
        columns[k].setlb(float(program.low[k]))
        columns[k].setub(float(program.high[k]))
    for k, value in task.fixed.items():
        columns[k].setlb(float(value))
        columns[k].setub(float(value))
    removed = instance.cuts
    for constraint in removed:
        del instance.model.cuts[constraint.index()]
    added = tuple(_add_cut(instance, k, cut) for k, cut in enumerate(task.cuts))
    instance.fixed, instance.cuts = tuple(task.fixed), added
    return Edits([columns[k] for k in sorted(changed)], added, removed)


def _add_cut(instance: _Instance, k: int, cut: Cut) -> Any:
    instance.model.cuts[k] = _relation(instance.columns, cut.columns, cut.values, float(cut.low), float(cut.high))
    return instance.model.cuts[k]


def _set_objective(instance: _Instance, scaled: ScaledTask) -> None:
    """Set the objective without its constant, which some solvers leave out of their bound."""
    columns, form = instance.columns, scaled.task.form
    linear = form.linear if scaled.cost is None else scaled.cost
    at = np.flatnonzero(linear)
    body = _linear(columns, at, linear[at])
    if scaled.cost is None:
        terms = zip(form.rows.tolist(), form.cols.tolist(), form.values.tolist(), strict=True)
        body = body + pyo.quicksum([v * columns[i] * columns[j] for i, j, v in terms])
    elif not len(at):
        body = 0.0 * columns[0]
    instance.model.del_component("cost")
    instance.model.cost = pyo.Objective(expr=body)


def _set_start(instance: _Instance, scaled: ScaledTask, kind: str) -> bool:
    """Set the variables' values to the start; return False if there is no start that the interface accepts."""
    known = np.full(instance.program.n_columns, np.nan)
    if scaled.start is not None and kind != "none":
        known = scaled.start
    for variable, value in zip(instance.columns, known.tolist(), strict=True):
        variable.set_value(None if math.isnan(value) else value, skip_validation=True)
    whole = np.isfinite(known[instance.program.integer > 0])
    return bool(np.any(whole)) if kind == "partial" else bool(len(whole) and np.all(whole)) and kind == "complete"


def _answer(report: Report, task: Task, scaled: ScaledTask, settings: SolverSettings, seconds: float) -> Answer:
    bound = report.bound + task.form.constant
    if report.status == INFEASIBLE:
        return Answer(INFEASIBLE, None, math.nan, math.inf, seconds)
    if report.values is None:
        return Answer(report.status, None, math.nan, bound, seconds)
    n, program = task.program.n, task.program
    columns = scaled.columns(report.values[:n])
    # a column in no row and without a cost never reaches the solver: any value within its bounds will do
    missing = np.isnan(columns)
    columns = np.where(missing, program.low[:n], columns)
    for k, value in task.fixed.items():
        columns[k] = value
    columns = np.where(program.integer[:n] > 0, np.round(columns), columns)
    value = task.form.value(columns)
    if report.status == OPTIMAL:
        # CPLEX does not update its bound when it closes the last node; its optimum is within its gap
        within = max(settings.gap * abs(value - task.form.constant), SOLVED * scaled.unit)
        bound = max(bound, value - within)
    return Answer(report.status, columns, value, min(bound, value) - scaled.neglected, seconds)
