"""Alternating minimisation of a function over a mixed space (daxberger2019, Sec. 3.3).

Notation
    z (n_z,), s (G,)    binaries and levels;   u (D,) numbers on the unit scale;   f(z, u) a surrogate sample

From each start, alternate

    s <- argmin_z f(z, u)    the MIP, at fixed numbers, started from local search
    u <- argmin_u f(z, u)    the continuous step (:mod:`mipcash.acquisition.continuous_step`)

until f stops falling. Each block sees the other as constants; a start is legal in both. Numbers are rounded (integers)
and re-checked before a step is taken, so that f falls along legal points only.

Where legality can be checked without a solver, local search takes the place of the MIP until the alternation stops;
the best start then goes on with the MIP, until the MIP proves that its levels are optimal at its numbers. The end point
is a fixed point of the alternation above either way; the proof is paid for once instead of at every round of every start.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mipcash.acquisition.continuous_step import ContinuousStep
from mipcash.backends.base import SolverSettings
from mipcash.errors import at_least
from mipcash.program.forms import Indices, Vector
from mipcash.program.unit_scale import UnitScale
from mipcash.space.exclusion import Exclusion
from mipcash.space.minimiser import Oracle, Point
from mipcash.space.space import Space
from mipcash.surrogates.base import MixedFunction


@dataclass(frozen=True)
class AlternatingSettings:
    """Limits of the alternation.

    Attributes:
        rounds: alternations per start.
        tolerance: relative fall of f below which it stops, and the continuous step where no rule binds it.
        continuous_starts: random starts of the continuous step besides the current point (no rules on numbers).
        restarts: descents of local search per round.
        solver: limits of each MIP.
    """

    rounds: int = 8
    tolerance: float = 1e-6
    continuous_starts: int = 2
    restarts: int = 8
    solver: SolverSettings = field(default_factory=lambda: SolverSettings(time_limit=20.0, gap=1e-4, node_limit=20_000))

    def __post_init__(self) -> None:
        at_least(self, rounds=1, tolerance=0, continuous_starts=0, restarts=1)


@dataclass
class Clock:
    """Seconds spent by part."""

    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, part: str, began: float) -> None:
        self.seconds[part] = self.seconds.get(part, 0.0) + time.perf_counter() - began


@dataclass(frozen=True)
class Minimiser:
    """The best point that alternation found.

    Attributes:
        point: the MIP's answer at the final numbers; its value and bound are those of f(., u).
        units: u, shape (D,).
        value: f(z, u).
    """

    point: Point
    units: Vector
    value: float


class Alternation:
    """Alternating minimisation over one space."""

    def __init__(self, space: Space, oracle: Oracle, scale: UnitScale, settings: AlternatingSettings) -> None:
        self.oracle, self.scale, self.settings = oracle, scale, settings
        self.step = ContinuousStep(space, oracle, scale, settings.continuous_starts, settings.tolerance)

    def minimise(
        self,
        f: MixedFunction,
        starts: Sequence[tuple[Indices, Vector]],
        excluded: Sequence[Exclusion],
        rng: np.random.Generator,
        clock: Clock,
        known: Sequence[Indices] = (),
    ) -> Minimiser | None:
        """The best of several starts.

        Args:
            f: the function.
            starts: legal levels and unit values to start from.
            excluded: what may not be proposed.
            known: further legal levels, from which each local search may start too.

        Returns:
            None where nothing is left to propose.
        """
        if not self.oracle.separable or self.oracle.search(self.scale.natural(starts[0][1])) is None:
            found = [self._with_proof(f, [levels, *known], u, excluded, rng, clock) for levels, u in starts]
            proven = [m for m in found if m is not None]
            return min(proven, key=lambda m: m.value, default=None)
        descents = [self.descend(f, [levels, *known], u, excluded, rng, clock) for levels, u in starts]
        levels, u, _ = min(descents, key=lambda d: d[2])
        return self._with_proof(f, [levels, *known], u, excluded, rng, clock)

    def descend(
        self,
        f: MixedFunction,
        known: Sequence[Indices],
        u: Vector,
        excluded: Sequence[Exclusion],
        rng: np.random.Generator,
        clock: Clock,
    ) -> tuple[Indices, Vector, float]:
        """Alternate with local search in the place of the MIP: levels, numbers and value where it stops."""
        program, levels = self.oracle.program, known[0]
        best = math.inf
        for k in range(self.settings.rounds):
            began = time.perf_counter()
            numbers = self.scale.natural(u)
            found = self.oracle.incumbent(
                program.folded(f.form_at(u)), numbers, excluded, [levels, *known], rng, self.settings.restarts, 0
            )
            clock.add("search", began)
            if found is None or found[1] > best - self._tolerance(best):
                break
            levels, best = found
            if not len(self.scale):
                break
            began = time.perf_counter()
            # other levels move the minimum little: later rounds go on from where the first one ended
            again = None if k == 0 else 0
            u = self.step.minimise(f, self.oracle.unproven(levels, numbers, best), u, rng, again)
            clock.add("continuous", began)
            best = f.value(program.one_hot(levels), u)
        return levels, u, best

    def _with_proof(
        self,
        f: MixedFunction,
        known: Sequence[Indices],
        u: Vector,
        excluded: Sequence[Exclusion],
        rng: np.random.Generator,
        clock: Clock,
    ) -> Minimiser | None:
        """Alternate with the MIP until it confirms the levels at the final numbers."""
        best: Minimiser | None = None
        levels = known[0]
        for _ in range(self.settings.rounds):
            began = time.perf_counter()
            point = self.oracle.minimise(
                f.form_at(u),
                self.settings.solver,
                numbers=self.scale.natural(u),
                excluded=excluded,
                starts=[levels, *known],
                rng=rng,
                restarts=2 * self.settings.restarts,
            )
            clock.add("mip", began)
            if point is None:
                return best
            settled = best is not None and np.array_equal(point.levels, levels)
            levels = point.levels
            best = Minimiser(point, u, point.answer.value)
            if settled or not len(self.scale):
                break
            began = time.perf_counter()
            moved = self.step.minimise(f, point, u, rng)
            clock.add("continuous", began)
            value = f.value(self.oracle.program.one_hot(levels), moved)
            if value > best.value - self._tolerance(best.value):
                break
            u = moved
        return best

    def _tolerance(self, value: float) -> float:
        return self.settings.tolerance * max(1.0, abs(value))
