"""The tightest extent of each parameter under the rules."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from mipcash.backends.base import CUT_SLACK, OPTIMAL, Backend, SolverSettings, Task
from mipcash.errors import InfeasibleSpaceError, SolverError
from mipcash.modelling.domains import Integer, Permutation, Real, Value
from mipcash.program.forms import QuadraticForm, Vector
from mipcash.program.program import BaseRow, BinaryProgram
from mipcash.program.rewriting import with_rows, without_margins
from mipcash.space.compiled import QUESTION, CompiledSpace
from mipcash.space.conflict import emptiness, told
from mipcash.space.explanation import explained


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


def extents(space: CompiledSpace, backend: Backend) -> dict[str, Extent]:
    """The extent of each parameter that can be active.

    Raises:
        InfeasibleSpaceError: the space is empty.
        SolverError: a limit came before an extent was known.
    """
    program, settings = space.program, QUESTION
    if told(emptiness(program, backend, settings), settings).columns is None:
        raise InfeasibleSpaceError(explained(space, backend))
    if program.margin:
        program = without_margins(program)  # a legal value may lie where the margins of products of reals leave it out
    seen = attainable(program, backend, settings)
    found: dict[str, Extent] = {}
    for label, parameter in space.declaration.parameters.items():
        groups = [g for g in program.groups if g.parameter == label]
        if isinstance(parameter.domain, Permutation):
            places = tuple(
                (g.label[len(label) + 1 :], tuple(t for k, t in enumerate(g.values) if seen[g.start + k]))
                for g in groups
            )
            found[label] = Extent(None, None, places, True)
        elif groups:
            group = groups[0]
            values = tuple(v for k, v in enumerate(group.values) if seen[group.start + k])
            ordered = group.kind in ("integer", "ordinal")
            if values:
                always = not (group.conditional and seen[group.stop - 1])
                found[label] = Extent(values[0] if ordered else None, values[-1] if ordered else None, values, always)
        else:
            assert isinstance(parameter.domain, (Real, Integer))
            number = _number_extent(label, parameter.domain, program, backend, settings)
            if number is not None:
                found[label] = number
    return found


def _number_extent(
    label: str, domain: Real | Integer, program: BinaryProgram, backend: Backend, settings: SolverSettings
) -> Extent | None:
    if any(n.label == label for n in program.numbers):
        ends = number_range(program, label, backend, settings)
        if ends is None:
            return None
        low, high = (
            domain.nearest(e) if isinstance(domain, Integer) else domain.canonical(_short(e)) for e in ends[:2]
        )
        low, high = min(low, high), max(low, high)
        return Extent(low, high, None, ends[2])
    if not can_be_on(program, label, backend, settings):
        return None
    return Extent(domain.low, domain.high, None, always_on(program, label, backend, settings))


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


def _short(value: float) -> float:
    """A value without the last digits, which are rounding."""
    return float(f"{value:.14g}")
