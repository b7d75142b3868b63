"""Designs, and what is left: configurations that were not proposed before, or the proof that there are none.

A configuration without an active number is told by its levels: a no-good cut keeps the solver away from it. Beside active
numbers levels may come again with other numbers (:mod:`mipcash.space.other_numbers`), until it is proven that there are none.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from mipcash.backends.base import INFEASIBLE, Answer
from mipcash.errors import InfeasibleSpaceError, SpaceExhaustedError, UndecidedError
from mipcash.modelling.declared import Number
from mipcash.modelling.domains import Configuration
from mipcash.program.forms import Vector
from mipcash.space.compiled import QUESTION, CompiledSpace
from mipcash.space.exclusion import Apart, Exclusion
from mipcash.space.explanation import explained
from mipcash.space.minimiser import Minimiser
from mipcash.space.novelty import exclusions, repeats
from mipcash.space.other_numbers import other_numbers
from mipcash.space.sampling import cover, farthest_units, finished
from mipcash.space.solution import Solution, as_solution

DESIGN_GAP = 1e-6
"""Relative gap of a point of an initial design: an unseen level must count beside a structure that is worth ten thousand."""


COVERAGE = "negated coverage of values"
"""What the value of a solution of the initial design is (:func:`mipcash.space.sampling.cover`)."""


def design(
    space: CompiledSpace,
    minimiser: Minimiser,
    n: int,
    rng: np.random.Generator,
    before: Sequence[Configuration] = (),
    apart: Apart | None = None,
) -> list[tuple[Configuration, Solution]]:
    """n further points of an initial design, each with the solution that made it; small structures are shown as often as large.

    Args:
        before: earlier configurations, whose values count as covered; none is made again.
        apart: configurations to keep a distance from.

    Raises:
        InfeasibleSpaceError: the space is empty.
        SpaceExhaustedError: ``before`` holds every legal configuration.
        SolverError: a limit was reached before anything was found or proven.
    """
    configs, found = list(before), list[tuple[Configuration, Solution]]()
    for _ in range(n):
        found.append(_further(space, minimiser, configs, rng, apart))
        configs.append(found[-1][0])
    return found


def _further(
    space: CompiledSpace,
    minimiser: Minimiser,
    before: Sequence[Configuration],
    rng: np.random.Generator,
    apart: Apart | None,
) -> tuple[Configuration, Solution]:
    """The next point of a design; levels that admit no other numbers are closed one by one."""
    program, settings = space.program, replace(QUESTION, gap=DESIGN_GAP)
    shown, seen = [program.encode(c) for c in before], _units(before, space.tuned)
    excluded = exclusions(space, before, apart)
    while True:
        began = time.perf_counter()
        answer = cover(minimiser, shown, settings, rng, excluded)
        if answer.columns is None:
            _nothing_left(space, minimiser, answer, bool(excluded), apart)
        levels, columns = program.levels_of(answer.columns), answer.columns if program.numbers else None
        units = farthest_units(seen, len(space.tuned), rng)
        config = finished(space, levels, columns, units, rng, seen)
        if repeats(space, config, before):
            other = other_numbers(space, config, levels, columns, before, rng)
            if other is None:
                excluded.append(Exclusion(levels))
                continue
            config = other
        return config, as_solution(config, answer, 1.0, began, minimiser.backend.name, COVERAGE)


def _units(configs: Sequence[Configuration], tuned: Sequence[Number]) -> Vector:
    """Unit values of t configurations' numbers, nan where inactive: shape (t, D)."""
    values = [[x.domain.to_unit(c[x.label]) if x.label in c else np.nan for x in tuned] for c in configs]
    return np.array(values, dtype=float).reshape(len(configs), len(tuned))


def _nothing_left(
    space: CompiledSpace, minimiser: Minimiser, answer: Answer, excluded: bool, apart: Apart | None
) -> NoReturn:
    """Say why there is no further configuration.

    Raises:
        SpaceExhaustedError: all have been proposed, or none is far enough from the others.
        InfeasibleSpaceError: there never was one.
        UndecidedError: nothing is proven.
    """
    if answer.status != INFEASIBLE:
        raise UndecidedError(
            f"the solver found no further configuration of space {space.name!r} in the time it was given, nor "
            "proved that there is none; give it more time, or try another solver"
        )
    if apart is not None and apart.configs and apart.distance > 1:
        raise SpaceExhaustedError(
            f"no legal configuration of space {space.name!r} differs from {len(apart.configs)} others in at least "
            f"{apart.distance} discrete parameters; ask for fewer at a time or for a smaller distance"
        )
    if not excluded:
        raise InfeasibleSpaceError(explained(space, minimiser.backend, empty=True))
    raise SpaceExhaustedError(f"every legal configuration of space {space.name!r} has been proposed")
