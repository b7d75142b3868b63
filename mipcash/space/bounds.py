"""Tightest bounds of each parameter under the rules, and the legal configuration nearest to a given one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from mipcash.backends.base import CUT_SLACK, Answer, Backend, SolverSettings, Task
from mipcash.backends.solution import OPTIMAL
from mipcash.errors import SolverError
from mipcash.modelling.domains import Configuration, Value, same_value
from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.program import BaseRow, BinaryProgram
from mipcash.program.rewriting import with_columns, with_rows
from mipcash.space.conflict import told

ABSENT_COST = 1.0
"""Cost of switching a parameter on that the given configuration leaves out, or off that it has."""


Switch = tuple[float, Indices, Vector]
"""A 0/1 function of base columns: constant, columns and coefficients."""


@dataclass(frozen=True)
class Extent:
    """What a parameter can be under the rules.

    Attributes:
        low, high: least and greatest legal value of a number or an ordered parameter; None for categories and orderings.
        values: the legal values of a discrete parameter (of an ordering: positions by module); None for a number.
        always: whether the parameter is active in every legal configuration.
    """

    low: Value
    high: Value
    values: tuple[Value, ...] | None
    always: bool

    def __str__(self) -> str:
        what = f"[{self.low}, {self.high}]" if self.values is None else ", ".join(map(str, self.values))
        return what if self.always else f"{what} (or inactive)"


def attainable(program: BinaryProgram, backend: Backend, settings: SolverSettings) -> Vector:
    """Which one-hot columns are 1 in some legal configuration: shape (n_z,), booleans.

    Each solve maximises the number of columns not yet seen; the first that finds none proves that no more exist.
    """
    seen = np.zeros(program.n_z, dtype=bool)
    while not seen.all():
        linear = np.zeros(program.n)
        linear[: program.n_z] = -(~seen).astype(float)
        answer = backend.solve(Task(program, replace(QuadraticForm.zero(program.n), linear=linear)), settings)
        if told(answer, settings).columns is None:
            break
        if answer.value > -0.5:
            if answer.bound < -0.5:
                raise SolverError(
                    f"the solver could not tell within {settings.time_limit:.0f} s which levels can be taken"
                )
            break
        assert answer.columns is not None
        seen |= answer.columns[: program.n_z] > 0.5
    return seen


def number_range(
    program: BinaryProgram, label: str, backend: Backend, settings: SolverSettings
) -> tuple[float, float, bool] | None:
    """Least and greatest value of a number that occurs in rules, and whether it is always active; None if it never is."""
    number = next(n for n in program.numbers if n.label == label)
    fixed_on = _activity_cut(program, label)
    if fixed_on is None:
        return None
    ends = []
    for sign in (1.0, -1.0):
        linear = np.zeros(program.n)
        linear[number.column] = sign
        answer = backend.solve(Task(fixed_on, replace(QuadraticForm.zero(program.n), linear=linear)), settings)
        if told(answer, settings).columns is None:
            return None
        ends.append(sign * (answer.value if answer.status == OPTIMAL else answer.bound))
    return ends[0], ends[1], always_on(program, label, backend, settings)


def _activity_cut(program: BinaryProgram, label: str) -> BinaryProgram:
    """The program in which the conditions of a parameter hold."""
    rows, low, base = [], [], []
    for condition in program.conditions.get(label, ()):
        row = np.zeros(program.n_columns)
        np.add.at(row, condition.columns, condition.coefficients)
        rows.append(row)
        low.append(1.0 - condition.constant)
        form = replace(QuadraticForm.zero(program.n), linear=row[: program.n])
        base.append(BaseRow("", form, low[-1], np.inf, CUT_SLACK))
    if not rows:
        return program
    slack = np.full(len(low), CUT_SLACK)
    return with_rows(program, sparse.csr_array(np.array(rows)), low, np.full(len(low), np.inf), slack=slack, base=base)


def can_be_on(program: BinaryProgram, label: str, backend: Backend, settings: SolverSettings) -> bool:
    """Whether a parameter is active in some legal configuration."""
    active = _activity_cut(program, label)
    return told(backend.solve(Task(active, QuadraticForm.zero(program.n)), settings), settings).columns is not None


def always_on(program: BinaryProgram, label: str, backend: Backend, settings: SolverSettings) -> bool:
    """Whether a parameter is active in every legal configuration: no condition of it can fail."""
    for condition in program.conditions.get(label, ()):
        linear = np.zeros(program.n)
        np.add.at(linear, condition.columns, condition.coefficients)
        answer = backend.solve(Task(program, replace(QuadraticForm.zero(program.n), linear=linear)), settings)
        if told(answer, settings).columns is not None and answer.value + condition.constant < 0.5:
            return False
    return True


def nearest_point(
    program: BinaryProgram,
    config: Configuration,
    backend: Backend,
    settings: SolverSettings,
    switches: Mapping[str, Switch],
) -> Answer:
    """The legal point nearest to a configuration (which may be illegal, incomplete, or name unknown parameters).

    The distance adds, over parameters: 1 where a category, the position of a module in an order, or activity differs; of an
    ordered value the share of its levels that lie between, of a number the share of its natural range. A value that is none of
    an ordered parameter's levels is as far from each as their numbers are, in shares of the range of the levels.

    Args:
        program: with a column for every number.
        switches: label of a conditional number -> its activity.
    """
    linear, constant = np.zeros(program.n), 0.0
    for group in program.groups:
        linear[group.start : group.stop] = _group_costs(program, group, config)
    wanted: dict[int, float] = {}
    for number in program.numbers:
        given: Value = config.get(number.label)
        if _is_finite(given):
            # the latent column is free where the number is off: what counts then is that it is
            wanted[number.latent] = float(given)
        if number.label in switches:
            base, columns, values = switches[number.label]
            sign = -1.0 if number.label in config else 1.0
            constant += ABSENT_COST * (float(sign < 0) + sign * base)
            np.add.at(linear, columns, sign * ABSENT_COST * values)
    lifted = _with_distances(program, wanted)
    cost = np.concatenate([linear, [1.0 / max(1e-12, program.high[c] - program.low[c]) for c in wanted]])
    form = replace(QuadraticForm.zero(lifted.n), constant=constant, linear=cost)
    return backend.solve(Task(lifted, form), settings)


def _group_costs(program: BinaryProgram, group: object, config: Configuration) -> Vector:
    size = group.size  # type: ignore[attr-defined]
    values, label = group.values, group.parameter  # type: ignore[attr-defined]
    conditional, kind = group.conditional, group.kind  # type: ignore[attr-defined]
    cost = np.zeros(size)
    if label not in config:
        if conditional:
            cost[:-1] = ABSENT_COST
        return cost
    if conditional:
        cost[-1] = ABSENT_COST
    given = config[label]
    if kind == "ordering":
        member = group.label[len(label) + 1 :]  # type: ignore[attr-defined]
        order = list(given) if isinstance(given, (list, tuple)) else []
        if member in order:
            cost[: len(values)] = [float(t != order.index(member)) for t in range(len(values))]
        return cost
    ordered = kind in ("integer", "ordinal")
    at = next((l for l, v in enumerate(values) if same_value(v, given)), None)
    if at is not None and ordered:
        steps = np.abs(np.arange(len(values)) - at) / max(1, len(values) - 1)
        cost[: len(values)] = steps
    elif at is not None:
        cost[: len(values)] = np.arange(len(values)) != at
    elif ordered and _is_finite(given) and all(_is_finite(v) for v in values):
        natural = np.array([float(v) for v in values])
        span = max(1e-12, natural.max() - natural.min())
        cost[: len(values)] = np.minimum(np.abs(natural - float(given)) / span, 10.0)
    return cost


def _is_finite(value: object) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and math.isfinite(value)


def _with_distances(program: BinaryProgram, wanted: Mapping[int, float]) -> BinaryProgram:
    """A column d >= |v - target| for each wanted number."""
    if not wanted:
        return program
    k = len(wanted)
    span = np.array([program.high[c] - program.low[c] + abs(v) + abs(program.low[c]) + 1.0 for c, v in wanted.items()])
    names = tuple(f"|{program.names[c]} - {v!r}|" for c, v in wanted.items())
    wide = with_columns(program, names, np.zeros(k), span)
    rows = np.zeros((2 * k, wide.n_columns))
    low = np.zeros(2 * k)
    for j, (column, target) in enumerate(wanted.items()):
        rows[2 * j, [program.n + j, column]] = 1.0, -1.0  # d - v >= -target
        rows[2 * j + 1, [program.n + j, column]] = 1.0, 1.0  # d + v >= target
        low[2 * j : 2 * j + 2] = -target, target
    return with_rows(wide, sparse.csr_array(rows), low, np.full(2 * k, np.inf))
