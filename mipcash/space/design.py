"""Designs, and what is left: configurations that were not proposed before, or the proof that there are none.

A configuration without an active number is told by its levels: a no-good cut keeps the solver away from it. Beside active
numbers levels may come again with other numbers. Levels are closed only once it is proven that no other numbers go with
them: a program over the numbers in which every earlier configuration must differ in one of them has no solution,

    sum_d (a_td + b_td) >= 1,     a_td = 1:  x_d >= v_td + e_d,     b_td = 1:  x_d <= v_td - e_d

for each earlier configuration t with the same levels and each number d of value v_td that is not pinned there; e_d is the step
of an integer, and a small share of the range that a real has at these levels.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from mipcash.backends.base import Answer, Backend, SolverSettings, Task
from mipcash.backends.registry import make_backend
from mipcash.backends.solution import INFEASIBLE, Solution
from mipcash.errors import InfeasibleSpaceError, SolverError, SpaceExhaustedError
from mipcash.modelling.declared import Number
from mipcash.modelling.domains import Configuration, Integer, same_value
from mipcash.program.compile import compile_space
from mipcash.program.forms import QuadraticForm
from mipcash.program.program import BinaryProgram
from mipcash.program.rewriting import with_columns, with_rows
from mipcash.space.compiled import QUESTION_SECONDS
from mipcash.space.conflict import told
from mipcash.space.exclusion import Apart, Exclusion
from mipcash.space.minimiser import Point, as_solution
from mipcash.space.optimum import SpaceOptimum
from mipcash.space.sampling import cover, farthest_units

DESIGN_GAP = 1e-6
"""Relative gap of a point of an initial design: an unseen level must count beside a structure that is worth ten thousand."""
REPEAT_TOLERANCE = 1e-6
"""Difference on the unit scale up to which two numbers count as the same proposal."""
APART = 1e-5
"""Share of the range that rules leave a number at some levels, by which it must differ to be another one."""
PINNED = 1e-8
"""Share of its size within which a number is pinned."""
FAR = 1e-3
"""The same share for a draw to be taken without asking a program."""
TRIES = 8
"""Draws of other numbers beside the same levels before a program is asked for them."""


class SpaceDesign(SpaceOptimum):
    """A space that makes designs and knows when nothing is left."""

    def design(
        self,
        n: int,
        rng: np.random.Generator,
        solver: str | Backend = "auto",
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
            found.append(self._further(configs, rng, solver, apart))
            configs.append(found[-1][0])
        return found

    def _further(
        self, before: Sequence[Configuration], rng: np.random.Generator, solver: str | Backend, apart: Apart | None
    ) -> tuple[Configuration, Solution]:
        """The next point of a design; levels that admit no other numbers are closed one by one."""
        oracle, program = self.oracle(solver), self.program
        tuned = [x for x in self.numbers if x.tuned]
        settings = SolverSettings(time_limit=QUESTION_SECONDS, gap=DESIGN_GAP)
        shown, seen = [program.encode(c) for c in before], self._units(before, tuned)
        excluded = self.exclusions(before, apart)
        while True:
            began = time.perf_counter()
            point = cover(oracle, shown, settings, rng, excluded)
            if point is None:
                self._nothing_left(oracle.last, bool(excluded), apart, solver)
            units = farthest_units(seen, len(tuned), rng)
            made = point if program.numbers else None
            config = self._finish(point.levels, made, units, rng, seen)
            if self.repeats(config, before):
                other = self._other_numbers(config, point, before, rng)
                if other is None:
                    excluded.append(Exclusion(point.levels))
                    continue
                config = other
            return config, as_solution(config, point.answer, 1.0, began, oracle.backend.name)

    def exclusions(self, configs: Iterable[Configuration], apart: Apart | None = None) -> list[Exclusion]:
        """What a new proposal must differ from: earlier configurations without an active number (their levels say it all),
        and, at a distance, those it must keep apart from."""
        numbers, program = {x.label for x in self.numbers if x.tuned}, self._latest().program
        closed = {l.tobytes(): l for c in configs if not numbers & c.keys() for l in (program.encode(c),)}
        found = [Exclusion(levels) for levels in closed.values()]
        if apart is not None and apart.distance > 0:
            found += [Exclusion(program.encode(c), apart.distance) for c in apart.configs]
        return found

    def repeats(
        self, config: Configuration, before: Iterable[Configuration], tolerance: float = REPEAT_TOLERANCE
    ) -> bool:
        """Whether a configuration is one of ``before``: the same but for numbers within a tolerance on the unit scale."""
        tuned = {x.label: x.domain for x in self.numbers if x.tuned}

        def close(label: str, a: Any, b: Any) -> bool:
            domain = tuned[label]
            if isinstance(domain, Integer):
                return bool(a == b)
            return abs(domain.to_unit(a) - domain.to_unit(b)) <= tolerance

        def same(other: Configuration) -> bool:
            return config.keys() == other.keys() and all(
                close(k, v, other[k]) if k in tuned else same_value(v, other[k]) for k, v in config.items()
            )

        return any(map(same, before))

    @staticmethod
    def _units(configs: Sequence[Configuration], tuned: Sequence[Number]) -> np.ndarray[Any, Any]:
        values = [[x.domain.to_unit(c[x.label]) if x.label in c else np.nan for x in tuned] for c in configs]
        return np.array(values, dtype=float).reshape(len(configs), len(tuned))

    def _nothing_left(self, answer: Answer, excluded: bool, apart: Apart | None, solver: str | Backend) -> NoReturn:
        """Say why there is no further configuration.

        Raises:
            SpaceExhaustedError: all have been proposed, or none is far enough from the others.
            InfeasibleSpaceError: there never was one.
            SolverError: nothing is proven.
        """
        if answer.status != INFEASIBLE:
            raise SolverError(
                f"the solver found no further configuration of space {self.name!r} within {QUESTION_SECONDS:.0f} s, nor proved "
                "that there is none; try again, or another solver"
            )
        if apart is not None and apart.configs and apart.distance > 1:
            raise SpaceExhaustedError(
                f"no legal configuration of space {self.name!r} differs from {len(apart.configs)} others in at least "
                f"{apart.distance} discrete parameters; ask for fewer at a time or for a smaller distance"
            )
        if not excluded:
            raise InfeasibleSpaceError(self.why_empty(solver))
        margin = self._latest().program.margin
        if margin:
            raise SpaceExhaustedError(
                f"no configuration of space {self.name!r} is left but what rules {', '.join(map(repr, margin))} may have on "
                "their border, which multiply two reals and are kept within a margin",
                proven=False,
            )
        raise SpaceExhaustedError(f"every legal configuration of space {self.name!r} has been proposed")

    # -- other numbers beside the same levels -------------------------------------------------------------------

    def _other_numbers(
        self, config: Configuration, point: Point, before: Sequence[Configuration], rng: np.random.Generator
    ) -> Configuration | None:
        """A legal configuration with the same levels that is new; None where it is proven that there is none.

        Raises:
            SolverError: the solver could not tell within its limit.
        """
        numbers = [x for x in self.numbers if x.tuned and x.label in config]
        if not numbers:
            return None
        tuned = [x for x in self.numbers if x.tuned]
        made, draws = point if self.program.numbers else None, list[Configuration]()
        for _ in range(TRIES):
            draws.append(self._finish(point.levels, made, rng.random(len(tuned)), rng))
            if not self.repeats(draws[-1], before):
                return draws[-1]
        labels = {x.label for x in numbers}
        others = [(k, v) for k, v in config.items() if k not in labels]
        same = [c for c in before if c.keys() == config.keys() and all(same_value(c[k], v) for k, v in others)]
        return _farthest_of(draws, same, numbers) or self._by_program(config, numbers, same)

    def _by_program(
        self, config: Configuration, numbers: Sequence[Number], same: Sequence[Configuration]
    ) -> Configuration | None:
        """As :meth:`_other_numbers`, by the program of the module's description."""
        own = self._current()
        program = compile_space(self, {x.label for x in numbers}, own.algebra)
        levels = program.encode(config)
        fixed = dict.fromkeys((program.starts + levels).tolist(), 1.0)
        steps = {x.label: _step(program, x, config, fixed) for x in numbers}
        lifted = _different(program, [x for x in numbers if steps[x.label] > 0], same, steps)
        form = QuadraticForm.zero(lifted.n)
        answer = make_backend("auto").solve(Task(lifted, form, fixed), SolverSettings(time_limit=QUESTION_SECONDS))
        if answer.status == INFEASIBLE:
            return None
        if answer.columns is None:
            raise SolverError(
                f"the solver could not tell within {QUESTION_SECONDS:.0f} s whether there are other numbers beside {config} in "
                f"space {self.name!r}; try again"
            )
        at = {x.label: x.column for x in program.numbers}
        values = {x.label: float(answer.columns[at[x.label]]) for x in numbers}
        # the point is of the larger program; helpers have other columns in the space's own
        point = Point(levels, np.full(own.program.n, np.nan), answer)
        found = self._decoded(point, values)
        if any(all(abs(found[l] - c[l]) <= steps[l] / 3 for l in steps) for c in same):
            raise SolverError(
                f"the numbers beside {config} in space {self.name!r} are too close to each other for the solver's tolerance; "
                "widen their ranges or fix them"
            )
        return found


def _farthest_of(
    draws: Sequence[Configuration], same: Sequence[Configuration], numbers: Sequence[Number]
) -> Configuration | None:
    """Of some draws, the farthest from earlier configurations in shares of what the numbers vary by; None if none is far at all.

    A range that rules leave may be far below what counts as a repeat on the scale of the declared one.
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


def _step(program: BinaryProgram, number: Number, config: Configuration, fixed: Mapping[int, float]) -> float:
    """By how much a number must differ at these levels to be another one; 0 where it is pinned.

    Raises:
        SolverError: its range could not be found.
    """
    if isinstance(number.domain, Integer):
        return float(number.domain.step)
    (column,) = [x.column for x in program.numbers if x.label == number.label]
    ends, settings = [], SolverSettings(time_limit=QUESTION_SECONDS)
    for sign in (1.0, -1.0):
        linear = np.zeros(program.n)
        linear[column] = sign
        form = replace(QuadraticForm.zero(program.n), linear=linear)
        answer = told(make_backend("auto").solve(Task(program, form, fixed), settings), settings)
        ends.append(sign * answer.bound if answer.columns is not None else float(config[number.label]))
    width = ends[1] - ends[0]
    return APART * width if width > PINNED * max(map(abs, ends)) else 0.0


def _different(
    program: BinaryProgram, numbers: Sequence[Number], same: Sequence[Configuration], steps: Mapping[str, float]
) -> BinaryProgram:
    """The program in which every earlier configuration differs in some number by its step (see the module's description)."""
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
                    continue  # there is no such number
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
