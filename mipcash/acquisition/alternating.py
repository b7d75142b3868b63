"""Alternating minimisation of a function over a mixed space (daxberger2019, Sec. 3.3).

Notation
    z (n_z,), s (G,)    binaries and levels;   u (D,) numerical parameters on the unit scale;   f(z, u) a surrogate sample

From each start, alternate

    s <- argmin_z f(z, u)    the MIP, at fixed numerical values, started from local search
    u <- argmin_u f(z, u)    the continuous step (``mipcash.acquisition.continuous_step``)

until f stops falling. In each step the variables of the other step are constant, and the start is legal. Integers are rounded and
legality is checked before a step is taken, so f decreases along legal points only.

If legality can be checked without a solver, local search replaces the MIP until the alternation stops. The best start then
continues with the MIP, until the MIP proves that its levels are optimal at its numerical values. The end point is a fixed point of
the alternation above in both cases, but the proof is made once instead of in every round of every start.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mipcash.acquisition.continuous_step import ContinuousStep
from mipcash.backends.task import FEASIBLE, Answer, SolverSettings
from mipcash.deadline import Clock
from mipcash.errors import check_settings
from mipcash.program.forms import Indices
from mipcash.program.points import Point, Points
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Exclusion
from mipcash.surrogates.protocols import MixedFunction


@dataclass(frozen=True)
class AlternatingSettings:
    """Limits of the alternation between a MIP over the levels and a continuous step over the numerical parameters.

    The time limit of a proposal also limits the total time.

    Args:
        rounds: alternations per start.
        tolerance: relative decrease of f below which the alternation stops; also that of the continuous step without rules.
        continuous_starts: random starts of the continuous step besides the current point (without rules on numerical parameters).
        restarts: local search descents per round.
        solver: limits of each MIP.

    Examples:
        >>> import mipcash as mc
        >>> alternation = mc.settings.AlternatingSettings(rounds=2, restarts=4)
        >>> mc.settings.HybridSettings(alternation=alternation).alternation.rounds
        2
    """

    rounds: int = 8
    tolerance: float = 1e-6
    continuous_starts: int = 2
    restarts: int = 8
    solver: SolverSettings = field(default_factory=lambda: SolverSettings(time_limit=20.0, gap=1e-4, node_limit=20_000))

    def __post_init__(self) -> None:
        check_settings(self, rounds=1, tolerance=0, continuous_starts=0, restarts=1)


@dataclass(frozen=True)
class Minimum:
    """The end point of a search of one function.

    Attributes:
        point: a legal point.
        value: f there.
        answer: the solver's answer at the point's numerical values u, with value and bound of f(., u).
    """

    point: Point
    value: float
    answer: Answer

    @classmethod
    def unproven(cls, domain: Domain, point: Point, value: float) -> Minimum:
        """Return a minimum found without a solver, with the lower bound -inf."""
        return cls(point, value, Answer(FEASIBLE, domain.columns(point), value, -math.inf, 0.0))


class Alternation:
    """Alternating minimisation over one domain until its deadline; the best point found by then is returned."""

    def __init__(self, domain: Domain, settings: AlternatingSettings) -> None:
        self.domain, self.settings = domain, settings
        self.step = ContinuousStep(domain, settings.continuous_starts, settings.tolerance)

    def minimise(
        self,
        f: MixedFunction,
        starts: Points,
        excluded: Sequence[Exclusion],
        rng: np.random.Generator,
        clock: Clock,
        known: Sequence[Indices] = (),
    ) -> Minimum | None:
        """Return the best minimum from several starts.

        Args:
            f: the function.
            starts: legal starting points, at least one.
            excluded: levels that may not be proposed.
            known: further legal levels from which each local search may start.

        Returns:
            The minimum; None if nothing is left to propose, or nothing was found before the deadline.
        """
        if not self.decides_levels(starts[0]):
            found = [self.proven(f, start, known, excluded, rng, clock) for start in starts]
            minima = [m for m in found if m is not None]
            return min(minima, key=lambda m: m.value, default=None)
        descents = []
        for start in starts:
            descents.append(self.descend(f, start, known, excluded, rng, clock))
            if self.domain.deadline.passed:
                break
        best, value = min(descents, key=lambda d: d[1])
        if self.domain.deadline.passed:  # no time left for a proof
            return Minimum.unproven(self.domain, best, value) if math.isfinite(value) else None
        return self.proven(f, best, known, excluded, rng, clock)

    def decides_levels(self, point: Point) -> bool:
        """Return True if the legality of levels at a point's numerical values can be checked without a solver."""
        return self.domain.legality(point.units) is not None

    def descend(
        self,
        f: MixedFunction,
        start: Point,
        known: Sequence[Indices],
        excluded: Sequence[Exclusion],
        rng: np.random.Generator,
        clock: Clock,
    ) -> tuple[Point, float]:
        """Alternate with local search instead of the MIP. Return the end point and f there, or inf if nothing was found."""
        here, best = start, math.inf
        for k in range(self.settings.rounds):
            if self.domain.deadline.passed:
                break
            began = time.perf_counter()
            starts = [here.levels, start.levels, *known]
            form = f.form_at(here.units)
            found = self.domain.incumbent(form, here.units, excluded, starts, rng, self.settings.restarts, 0)
            clock.add("search", began)
            if found is None or found[1] > best - self._tolerance(best):
                break
            here, best = Point(found[0], here.units), found[1]
            if not len(self.domain.scale):
                break
            began = time.perf_counter()
            # Other levels hardly move the minimum over the numerical values, so later rounds start where the first one ended.
            here = Point(here.levels, self.step.minimise(f, here, rng, None if k == 0 else 0))
            clock.add("continuous", began)
            best = f.value(here.one_hot(self.domain.program), here.units)
        return here, best

    def proven(
        self,
        f: MixedFunction,
        start: Point,
        known: Sequence[Indices],
        excluded: Sequence[Exclusion],
        rng: np.random.Generator,
        clock: Clock,
    ) -> Minimum | None:
        """Alternate with the MIP until it confirms the levels at the final numerical values. Return None if it found nothing."""
        best: Minimum | None = None
        here = start
        for _ in range(self.settings.rounds):
            if self.domain.deadline.passed:
                break
            began = time.perf_counter()
            answer = self.domain.minimise(
                f.form_at(here.units),
                self.settings.solver,
                units=here.units,
                excluded=excluded,
                starts=[here.levels, start.levels, *known],
                rng=rng,
                restarts=2 * self.settings.restarts,
            )
            clock.add("mip", began)
            if answer.columns is None:
                return best
            levels = self.domain.program.levels_of(answer.columns)
            settled = best is not None and np.array_equal(levels, here.levels)
            best = Minimum(Point(levels, here.units), answer.value, answer)
            if settled or not len(self.domain.scale):
                break
            began = time.perf_counter()
            here = Point(levels, self.step.minimise(f, best.point, rng, columns=answer.columns))
            clock.add("continuous", began)
            value = f.value(here.one_hot(self.domain.program), here.units)
            if value > best.value - self._tolerance(best.value):
                break
            best = Minimum.unproven(self.domain, here, value)
        return best

    def _tolerance(self, value: float) -> float:
        return self.settings.tolerance * max(1.0, abs(value))
