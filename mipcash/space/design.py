"""Initial designs and further configurations: points not proposed before, or the proof that none are left.

A configuration without an active numerical parameter is identified by its levels, and a no-good cut excludes it. With active
numerical parameters, the same levels may be proposed again with other numerical values, until no other values are legal.

Levels are excluded only once it is proven that no other numerical values are legal with them. The proof is that the following
program has no solution. A solution differs from every earlier configuration in at least one numerical parameter:

    sum_d (a_td + b_td) >= 1,     a_td = 1:  x_d >= v_td + e_d,     b_td = 1:  x_d <= v_td - e_d

for each earlier configuration t with the same levels and each numerical parameter d, of value v_td, that can vary there. Here e_d
is the step of an integer or half the step of a real that has one. For any other real it is a small share of its range at these
levels.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np
from scipy import sparse

from mipcash.backends.spatial import ImpreciseError
from mipcash.backends.task import INFEASIBLE, Answer, Backend, Task
from mipcash.errors import InfeasibleSpaceError, SolverError, SpaceExhaustedError, UndecidedError
from mipcash.modelling.declared import Number
from mipcash.modelling.domains import Configuration, Integer, same_value
from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.program import BinaryProgram
from mipcash.program.rewriting import with_columns, with_rows
from mipcash.space.compiled import QUESTION, CompiledSpace
from mipcash.space.conflict import decided
from mipcash.space.exclusion import Exclusion, MinimumDistance
from mipcash.space.explanation import explained
from mipcash.space.minimiser import Minimiser
from mipcash.space.novelty import exclusions, repeats
from mipcash.space.sampling import cover, farthest_units, finished
from mipcash.space.solution import Solution, as_solution

APART = 1e-5
"""Least difference between two distinct values of a number, as a fraction of its legal range at these levels."""
PINNED = 1e-8
"""Width relative to its size up to which a number's range counts as a single value. The size of the number, at most 1, counts as
well: the tolerance of rules (``mipcash.modelling.rules``) leaves about 1e-9 of it."""
FAR = 1e-3
"""Least difference on the same scale at which a random draw is accepted without solving a program."""
TRIES = 8
"""Number of random draws of other numerical values at the same levels before a program is solved for them."""


class TooCloseError(Exception):
    """The legal numerical values left at some levels are too close to earlier ones for the solver's tolerance."""


def other_values(
    space: CompiledSpace,
    config: Configuration,
    levels: Indices,
    columns: Vector | None,
    before: Sequence[Configuration],
    rng: np.random.Generator,
) -> Configuration | None:
    """Return a new legal configuration with the levels of ``config``, or None if it is proven that there is none.

    Args:
        levels, columns: of ``config``, as in ``mipcash.space.sampling.finished``.
        before: earlier configurations, including ``config``.

    Raises:
        TooCloseError: the legal numerical values left are too close to earlier ones for the solver's tolerance.
        SolverError: the solver could not decide within its limit.
    """
    numbers = [x for x in space.tuned if x.label in config]
    if not numbers:
        return None
    draws = list[Configuration]()
    for _ in range(TRIES):
        draws.append(finished(space, levels, columns, rng.random(len(space.tuned)), rng))
        if not repeats(space, draws[-1], before):
            return draws[-1]
    labels = {x.label for x in numbers}
    others = [(k, v) for k, v in config.items() if k not in labels]
    same = [c for c in before if c.keys() == config.keys() and all(same_value(c[k], v) for k, v in others)]
    return _farthest_of(draws, same, numbers) or _by_program(space, config, numbers, same)


def _by_program(
    space: CompiledSpace, config: Configuration, numbers: Sequence[Number], same: Sequence[Configuration]
) -> Configuration | None:
    """Find the configuration of ``other_values`` by the program in the module's description."""
    program = space.wider({x.label for x in numbers}).program
    levels = program.encode(config)
    held = dict.fromkeys((program.starts + levels).tolist(), 1.0)
    steps = {x.label: _step(program, x, config, held, space.backend) for x in numbers}
    lifted = _different(program, [x for x in numbers if steps[x.label] > 0], same, steps)
    answer = space.backend.solve(Task(lifted, QuadraticForm.zero(lifted.n), held), QUESTION)
    if answer.status == INFEASIBLE:
        return None
    if answer.columns is None:
        raise UndecidedError(
            f"the solver could not tell in the time it was given whether there are other numerical values for {config} "
            f"in space {space.name!r}; give it more time"
        )
    at = {x.label: x.column for x in program.numbers}
    values = {x.label: float(answer.columns[at[x.label]]) for x in numbers}
    # the solution's columns are those of the wider program, so auxiliary columns of the space's own program are unknown
    found = space.decoded(levels, np.full(space.program.n, np.nan), values)
    if any(all(abs(found[l] - c[l]) <= steps[l] / 3 for l in steps) for c in same):
        raise TooCloseError(
            f"the numerical values for {config} in space {space.name!r} are too close to each other for the solver's tolerance; "
            "widen their ranges or fix them"
        )
    return found


def _farthest_of(
    draws: Sequence[Configuration], same: Sequence[Configuration], numbers: Sequence[Number]
) -> Configuration | None:
    """Return the draw farthest from earlier configurations, relative to the spread of the values; None if every draw is too close.

    The spread is used because rules may leave a range far below the tolerance for repeats, which is relative to the declared range.
    """
    values = np.array([[float(c[x.label]) for x in numbers] for c in (*draws, *same)])
    width, size = np.ptp(values, axis=0), np.abs(values).max(axis=0)
    free = width > PINNED * size
    if not np.any(free):
        return None
    scaled = values[:, free] / width[free]
    apart = np.abs(scaled[: len(draws), None] - scaled[None, len(draws) :]).max(axis=2).min(axis=1)
    best = int(np.argmax(apart))
    return draws[best] if apart[best] > FAR else None


def _step(
    program: BinaryProgram, number: Number, config: Configuration, held: Mapping[int, float], backend: Backend
) -> float:
    """Return the least difference between distinct values of a numerical parameter at these levels; 0 if it has only one value.

    Raises:
        SolverError: its range could not be found.
    """
    if isinstance(number.domain, Integer):
        return float(number.domain.step)
    if number.domain.step is not None:
        return (
            0.5 * number.domain.step
        )  # half a step: neighbouring values may be closer than a step, or beyond a bound, by a rounding error
    (column,) = [x.column for x in program.numbers if x.label == number.label]
    ends = []
    for sign in (1.0, -1.0):
        linear = np.zeros(program.n)
        linear[column] = sign
        form = replace(QuadraticForm.zero(program.n), linear=linear)
        answer = decided(backend.solve(Task(program, form, held), QUESTION))
        ends.append(sign * answer.bound if answer.columns is not None else float(config[number.label]))
    width = ends[1] - ends[0]
    size = max(min(1.0, max(abs(number.domain.low), abs(number.domain.high))), *map(abs, ends))
    return APART * width if width > PINNED * size else 0.0


def _different(
    program: BinaryProgram, numbers: Sequence[Number], same: Sequence[Configuration], steps: Mapping[str, float]
) -> BinaryProgram:
    """Return the program of the module's description: a solution differs from every earlier one in a numerical parameter."""
    at = {x.label: x.column for x in program.numbers}
    entries: list[tuple[int, int, float]] = []  # row, column, value
    low: list[float] = []
    high: list[float] = []
    k = 0
    for config in same:
        chosen = []
        for number in numbers:
            column, value = at[number.label], config[number.label]
            below, above = float(value) - steps[number.label], float(value) + steps[number.label]
            # v >= above - (above - low)(1 - a)   and   v <= below + (high - below)(1 - b)
            for bound, end, sign in ((above, program.low[column], 1.0), (below, program.high[column], -1.0)):
                if (bound > program.high[column]) if sign > 0 else (bound < program.low[column]):
                    continue  # no value on this side is within the bounds
                row = len(low)
                entries += [(row, column, sign), (row, program.n + k, -sign * (bound - end))]
                low.append(sign * end)
                high.append(np.inf)
                chosen.append(program.n + k)
                k += 1
        entries += [(len(low), c, 1.0) for c in chosen]
        low.append(1.0)
        high.append(np.inf)
    names = [f"different {j}" for j in range(k)]
    wide = with_columns(program, names, np.zeros(k), np.ones(k), integer=True)
    rows, columns, values = (np.array(part) for part in zip(*entries, strict=True)) if entries else ([], [], [])
    added = sparse.csr_array((values, (rows, columns)), shape=(len(low), wide.n_columns))
    return with_rows(wide, added, low, high)


DESIGN_GAP = 1e-6
"""Relative gap of a point of an initial design. An unseen level must count next to a structure that is worth ten thousand."""


COVERAGE = "negated coverage of values"
"""Meaning of the value of a solution of the initial design (``mipcash.space.sampling.cover``)."""


def design(
    space: CompiledSpace,
    minimiser: Minimiser,
    rng: np.random.Generator,
    before: Sequence[Configuration] = (),
    min_distance: MinimumDistance | None = None,
) -> tuple[Configuration, Solution]:
    """Return the next point of an initial design with its solution; see ``mipcash.space.sampling.cover``.

    Levels that admit no other numerical values are excluded one by one.

    Args:
        before: earlier configurations, whose values count as covered; none of them is returned again.
        min_distance: configurations to keep a distance from.

    Raises:
        InfeasibleSpaceError: the space is empty.
        SpaceExhaustedError: ``before`` holds every legal configuration.
        SolverError: a limit was reached before anything was found or proven.
    """
    program, settings = space.program, replace(QUESTION, gap=DESIGN_GAP)
    shown, seen = [program.encode(c) for c in before], _units(before, space.tuned)
    excluded, indistinct = exclusions(space, program.encode, before, min_distance), ""
    while True:
        began = time.perf_counter()
        try:
            answer = cover(minimiser, shown, settings, rng, excluded)
        except ImpreciseError as error:
            if not before:
                raise
            raise UndecidedError(str(error)) from error
        if answer.columns is None:
            _nothing_left(space, minimiser, answer, before, bool(excluded), min_distance, indistinct)
        levels, columns = program.levels_of(answer.columns), answer.columns if program.numbers else None
        units = farthest_units(seen, len(space.tuned), rng)
        config = finished(space, levels, columns, units, rng, seen)
        if repeats(space, config, before):
            other = None
            try:
                other = other_values(space, config, levels, columns, before, rng)
            except TooCloseError as error:
                indistinct = str(error)
            if other is None:
                excluded.append(Exclusion(levels))
                continue
            config = other
        return config, as_solution(config, answer, 1.0, began, minimiser.backend.name, COVERAGE)


def _units(configs: Sequence[Configuration], tuned: Sequence[Number]) -> Vector:
    """Return the unit values of the numerical parameters of t configurations, shape (t, D); nan if inactive."""
    values = [[x.domain.to_unit(c[x.label]) if x.label in c else np.nan for x in tuned] for c in configs]
    return np.array(values, dtype=float).reshape(len(configs), len(tuned))


def _nothing_left(
    space: CompiledSpace,
    minimiser: Minimiser,
    answer: Answer,
    before: Sequence[Configuration],
    excluded: bool,
    min_distance: MinimumDistance | None,
    indistinct: str,
) -> NoReturn:
    """Raise the error that explains why there is no further configuration.

    Args:
        indistinct: message of an ``TooCloseError`` that occurred at some levels, else empty.

    Raises:
        SpaceExhaustedError: all have been proposed, or none is far enough from the configurations of ``min_distance``.
        InfeasibleSpaceError: the space is empty.
        UndecidedError: nothing is proven.
        SolverError: the solver claims that the space is empty, and a legal configuration is known.
    """
    if answer.status != INFEASIBLE:
        raise UndecidedError(
            f"the solver found no further configuration of space {space.name!r} in the time it was given, nor "
            "proved that there is none; give it more time, or try another solver"
        )
    if min_distance is not None and min_distance.configs and min_distance.distance > 1:
        raise SpaceExhaustedError(
            f"no legal configuration of space {space.name!r}{space.held(' with ')} differs from "
            f"{len(min_distance.configs)} others in at least {min_distance.distance} discrete parameters; ask for fewer at a "
            "time or for a smaller distance"
        )
    if not excluded and any(space.is_legal(c) for c in before):
        raise SolverError(
            f"solver {answer.prover!r} claims that space {space.name!r}{space.held(' with ')} is empty, and a legal configuration "
            "of it is known; check the solver, or take another one"
        )
    if not excluded:
        raise InfeasibleSpaceError(explained(space, minimiser.backend, empty=True))
    exhausted = SpaceExhaustedError(
        indistinct or f"every legal configuration of space {space.name!r}{space.held(' with ')} has been proposed"
    )
    exhausted.proven = not indistinct
    raise exhausted
