"""The tightest range or set of values of each parameter under the rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mipcash.backends.task import (
    ABSOLUTE_GAP,
    FEASIBLE,
    INFEASIBLE,
    OPTIMAL,
    Answer,
    Backend,
    Task,
)
from mipcash.errors import InfeasibleSpaceError
from mipcash.modelling.domains import Integer, Permutation, Real, Value
from mipcash.modelling.wording import shortened
from mipcash.program.forms import Booleans, QuadraticForm, Vector
from mipcash.program.legality import legality_at
from mipcash.program.program import BinaryProgram, NumberColumn
from mipcash.space.compiled import QUESTION, CompiledSpace
from mipcash.space.conflict import emptiness
from mipcash.space.explanation import explained
from mipcash.space.forced import with_activity

TRIED = 1000
"""Largest number of one-hot columns for which all neighbours of a legal configuration (one level changed) are tried."""

TIGHT = 1e-9
"""Share of a range up to which the best value that a solver found is the end."""
CLOSED = 1e-6
"""Largest gap of an end of a range, relative to the range."""
SHOWN = 12
"""Largest number of values that the text of an extent lists in full."""


@dataclass(frozen=True)
class Extent:
    """The values that a parameter can take under the rules.

    They include every legal value. If ``proven``, they include no other value (of a numerical parameter: both ends are attained).

    Attributes:
        low, high: least and greatest legal value of a numerical or ordered parameter; None for categories and orderings.
        values: the legal values of a discrete parameter (of an ordering: positions by module); None for a numerical one.
        always: True if the parameter is proven to be active in every legal configuration.
        proven: True if every value, or both ends, are attained by legal configurations. If a solver limit was reached before this
            was known, ``values``, ``low`` and ``high`` contain everything that had not been excluded by then.
    """

    low: Value
    high: Value
    values: tuple[Value, ...] | None
    always: bool
    proven: bool = True

    def __repr__(self) -> str:
        return f"<extent {shortened(str(self))}>"

    def __str__(self) -> str:
        what = f"[{self.low}, {self.high}]" if self.values is None else _listed(self.values)
        what = what if self.proven else f"within {what}"
        return what if self.always else f"{what} (or inactive)"


def _listed(values: Sequence[Value]) -> str:
    """Return ``1, 2, 3``, or only the first and last of many values: ``8, 16, 24, ..., 512 (64 values)``."""
    if len(values) <= SHOWN:
        return ", ".join(map(str, values))
    return f"{', '.join(map(str, values[:3]))}, ..., {values[-1]} ({len(values):,} values)"


def extents(space: CompiledSpace, backend: Backend) -> dict[str, Extent]:
    """Return the extent of each parameter that can be active; an extent may be too wide if the backend reaches a limit.

    Raises:
        InfeasibleSpaceError: the space is empty.
    """
    in_rules = {n.label for n in space.program.numbers}
    # an activity that is not a single indicator of levels has a column only if its numerical parameter has columns
    loose = {x.label for x in space.tuned if len(x.columns()) > 1} - in_rules
    program = space.wider(in_rules | loose).program if loose else space.program
    some = emptiness(program, backend)
    if some.status == INFEASIBLE:
        raise InfeasibleSpaceError(explained(space, backend, empty=True))
    seen, complete = attainable(program, backend, some.columns)
    left_alone = _left_alone(program)
    found: dict[str, Extent] = {}
    for label, parameter in space.declaration.parameters.items():
        groups = [g for g in program.groups if g.parameter == label]
        proven = complete or all(seen[g.span].all() for g in groups)
        left = seen if proven else left_alone
        if isinstance(parameter.domain, Permutation):
            places = tuple(
                (g.label[len(label) + 1 :], tuple(t for k, t in enumerate(g.values) if left[g.start + k]))
                for g in groups
            )
            found[label] = Extent(None, None, places, True, proven)
        elif groups:
            group = groups[0]
            values = tuple(v for k, v in enumerate(group.values) if left[group.start + k])
            ordered = group.kind in ("integer", "ordinal")
            if values:
                always = not (group.conditional and left[group.stop - 1])
                low, high = (values[0], values[-1]) if ordered else (None, None)
                found[label] = Extent(low, high, values, always, proven)
        else:
            assert isinstance(parameter.domain, (Real, Integer))
            number = _number_extent(label, parameter.domain, program, backend)
            if number is not None:
                found[label] = number
    return found


def _left_alone(program: BinaryProgram) -> Booleans:
    """Return which one-hot columns may be 1 under the bounds and the rows over a single group, shape (n_z,); no solver is used."""
    left: Booleans = program.high[: program.n_z] > 0.5
    for row in program.base_rows:
        used = np.flatnonzero(row.form.linear)
        if len(row.form.rows) or not len(used) or used[-1] >= program.n_z:
            continue
        group = program.groups[int(program.group_of[used[0]])]
        if used[-1] < group.stop:  # columns are ordered by group, so all of them belong to this group
            left[group.span] &= row.holds(row.form.linear[group.span])
    return left


def _number_extent(label: str, domain: Real | Integer, program: BinaryProgram, backend: Backend) -> Extent | None:
    """Return the extent of a numerical parameter, or None if it is proven to be never active."""
    fixed_on = with_activity(program, label, True) if label in program.conditions else program
    if any(n.label == label for n in program.numbers):
        least, most = (_end(fixed_on, label, domain, sign, backend) for sign in (1.0, -1.0))
        infeasible = INFEASIBLE in (least.status, most.status)
        if infeasible and any(n.label == label and n.conditions for n in program.numbers):
            return None
        if (
            infeasible
        ):  # legal configurations exist and all include this parameter, so the solver's tolerances are too coarse
            return Extent(domain.low, domain.high, None, True, False)
        ends = [max(float(domain.low), least.value), min(float(domain.high), -most.value)]
        low, high = (domain.nearest(e if domain.step is not None else _short(e)) for e in ends)
        low, high = min(low, high), max(low, high)
        proven = least.status == OPTIMAL and most.status == OPTIMAL
        return Extent(low, high, None, always_on(program, label, backend), proven)
    on = backend.solve(Task(fixed_on, QuadraticForm.zero(program.n)), QUESTION)
    if on.status == INFEASIBLE:
        return None
    return Extent(domain.low, domain.high, None, always_on(program, label, backend), on.columns is not None)


def attainable(program: BinaryProgram, backend: Backend, some: Vector | None) -> tuple[Booleans, bool]:
    """Return the one-hot columns that are 1 in some legal configuration, shape (n_z,), and True if no others can be.

    Each solve maximises the number of columns not yet seen. The first solve that finds none proves that there are no more. If a
    limit stops the search, the columns seen so far are returned.

    Args:
        some: base columns of a legal configuration, if one is known, shape (n,).
    """
    seen = np.zeros(program.n_z, dtype=bool)
    if some is not None:
        seen |= some[: program.n_z] > 0.5
        seen |= _beside(program, some)
    while not seen.all():
        linear = np.zeros(program.n)
        linear[: program.n_z] = -(~seen).astype(float)
        answer = backend.solve(Task(program, replace(QuadraticForm.zero(program.n), linear=linear)), QUESTION)
        if answer.columns is None or answer.value > -0.5:
            return seen, answer.status == INFEASIBLE or answer.bound > -0.5
        seen |= answer.columns[: program.n_z] > 0.5
        seen |= _beside(program, answer.columns)
    return seen, True


def _beside(program: BinaryProgram, columns: Vector) -> Booleans:
    """Return the one-hot columns that are 1 in a legal configuration with one level changed, shape (n_z,)."""
    seen = np.zeros(program.n_z, dtype=bool)
    if program.n_z > TRIED or not program.has_base_rows or any(_narrowed(program, n) for n in program.numbers):
        return seen
    legality = legality_at(program, {n.label: float(columns[n.latent]) for n in program.numbers})
    if not legality.complete:
        return seen
    levels = np.array([int(np.argmax(columns[g.start : g.stop])) for g in program.groups], dtype=np.int64)
    tried = np.repeat(levels[None], program.n_z, axis=0)
    tried[np.arange(program.n_z), program.group_of] = np.arange(program.n_z) - program.starts[program.group_of]
    tried = legality.effective(tried)
    z = program.one_hot(tried)
    within = np.all((z >= program.low[: program.n_z]) & (z <= program.high[: program.n_z]), axis=1)
    legal = within & legality.check(tried)
    return np.asarray(np.any(z[legal] > 0.5, axis=0))


def _narrowed(program: BinaryProgram, number: NumberColumn) -> bool:
    """Return True if a conditional number's column has tighter bounds than its latent value, so switching it on may be illegal."""
    column, latent = number.column, number.latent
    low, high = min(0.0, float(program.low[latent])), max(0.0, float(program.high[latent]))
    return column != latent and bool(program.low[column] > low or program.high[column] < high)


def _end(program: BinaryProgram, label: str, domain: Real | Integer, sign: float, backend: Backend) -> Answer:
    """Minimise ``sign`` times a numerical parameter. Without a proof of optimality, the answer's value is the lower bound.

    The gap of the solver is relative to the value. If it is wide beside the range, the parameter is minimised again with a smaller
    one.
    """
    number = next(n for n in program.numbers if n.label == label)
    linear = np.zeros(program.n)
    linear[number.column] = sign
    room = 0.5 * domain.step if domain.step else CLOSED * (float(domain.high) - float(domain.low))
    task = Task(program, replace(QuadraticForm.zero(program.n), linear=linear))
    answer = backend.solve(task, QUESTION)
    if answer.status == OPTIMAL and answer.value - answer.bound > room:
        answer = backend.solve(task, replace(QUESTION, gap=0.5 * room / max(abs(answer.value), ABSOLUTE_GAP)))
    if answer.status == OPTIMAL and answer.value - answer.bound <= room:
        if domain.step or answer.value - answer.bound <= TIGHT * (float(domain.high) - float(domain.low)):
            return answer
        end = min(answer.value, float(domain.low) if sign > 0 else -float(domain.high))
        return replace(
            answer, value=max(answer.bound, end)
        )  # the incumbent is inside, and the range includes every legal value
    return replace(answer, value=answer.bound, status=FEASIBLE if answer.status == OPTIMAL else answer.status)


def always_on(program: BinaryProgram, label: str, backend: Backend) -> bool:
    """Return True if a parameter is proven to be active in every legal configuration."""
    if label not in program.conditions:
        return True
    switch, linear = program.switch(label), np.zeros(program.n)
    np.add.at(linear, switch.columns, switch.coefficients)
    answer = backend.solve(Task(program, replace(QuadraticForm.zero(program.n), linear=linear)), QUESTION)
    return answer.status == INFEASIBLE or answer.bound + switch.constant >= 0.5


def _short(value: float) -> float:
    """Return a value to 14 significant digits, without rounding noise."""
    return float(f"{value:.14g}")
