"""Alternating minimisation of a function over a mixed space (daxberger2019, Sec. 3.3).

Notation
    z (n_z,), s (G,)    binaries and levels;   u (D,) numbers on the unit scale;   f(z, u) a surrogate sample

From each start, alternate

    s <- argmin_z f(z, u)    the MIP, at fixed numbers, started from local search
    u <- argmin_u f(z, u)    L-BFGS-B; SLSQP where rules bind active numbers

until f stops falling. Each block sees the other as constants; a start is legal in both. Numbers are rounded (integers)
and re-checked before a step is taken, so that f falls along legal points only.

Where legality can be checked without a solver, local search takes the place of the MIP until the alternation stops;
the best start then goes on with the MIP, until the MIP proves that its levels are optimal at its numbers. The end point
is a fixed point of the alternation above either way; the proof is paid for once instead of at every round of every start.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy.optimize import minimize

from mipcash.backends.base import SolverSettings
from mipcash.errors import at_least
from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.unit_scale import INACTIVE, UnitScale
from mipcash.space.exclusion import Exclusion
from mipcash.space.minimiser import Oracle, Point
from mipcash.space.numbers.part import NumberRules
from mipcash.space.space import Space

BACKTRACKS = 25
WALK_STEPS = 6
"""Hit-and-run steps of :meth:`Alternation.wander`."""

Section = Callable[[Vector], tuple[float, Vector]]
"""A function of the numbers alone, with its gradient: (D,) -> scalar, (D,)."""


class Sectioned(Protocol):
    """What the continuous step needs of a function."""

    def section(self, z: Vector) -> Section:
        """f(z, .) at fixed binaries."""


class MixedFunction(Sectioned, Protocol):
    """A function over a mixed space that is quadratic in the binaries: a posterior sample or mean."""

    def value(self, z: Vector, u: Vector) -> float:
        """f at one point."""

    def form_at(self, u: Vector) -> QuadraticForm:
        """f(., u) over the base columns."""


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
        self.space, self.oracle, self.scale, self.settings = space, oracle, scale, settings

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
            restarts = None if k == 0 else 0
            u = self.continuous_step(f, self.oracle.unproven(levels, numbers, best), u, rng, restarts)
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
            moved = self.continuous_step(f, point, u, rng)
            clock.add("continuous", began)
            value = f.value(self.oracle.program.one_hot(levels), moved)
            if value > best.value - self._tolerance(best.value):
                break
            u = moved
        return best

    def _tolerance(self, value: float) -> float:
        return self.settings.tolerance * max(1.0, abs(value))

    # -- the continuous step ------------------------------------------------------------------------------------

    def continuous_step(
        self,
        f: Sectioned,
        point: Point,
        u: Vector,
        rng: np.random.Generator,
        restarts: int | None = None,
        tolerance: float | None = None,
    ) -> Vector:
        """Minimise f(z, .) over the active numbers under the rules that bind them; never worse than ``u``, always legal.

        Args:
            restarts: random starts besides ``u``; None: as set.
            tolerance: relative fall of f below which it stops where no rule binds the numbers; None: as set.
        """
        z = self.oracle.program.one_hot(point.levels)
        active = np.flatnonzero(self.scale.active(z[None])[0] > 0)
        current = u.copy()
        current[np.setdiff1d(np.arange(len(u)), active)] = INACTIVE
        if not len(active):
            return current
        section = f.section(z)
        legal = self.space.legal_numbers(point) if self.oracle.program.numbers else None
        natural = self.scale.natural(u)
        here = None if legal is None else legal.part_at(np.array([natural[label] for label in legal.labels]))
        if here is not None and len(here.row_low):
            return self._bound_step(section, here, current, active)
        if here is None and self.oracle.program.numbers:
            # rules that only the program knows: those numbers stay where the MIP put them
            held = {n.label for n in self.oracle.program.numbers}
            active = np.array([d for d in active if self.scale.labels[d] not in held], dtype=np.int64)
            if not len(active):
                return current
        starts = self.settings.continuous_starts if restarts is None else restarts
        tolerance = self.settings.tolerance if tolerance is None else tolerance
        return self._free_step(
            section, current, active, [current[active], *rng.random((starts, len(active)))], tolerance
        )

    def wander(self, levels: Indices, u: Vector, rng: np.random.Generator) -> Vector:
        """Other legal numbers beside the same levels: those in rules by hit-and-run, the others by a normal step."""
        point = self.oracle.unproven(levels, self.scale.natural(u), 0.0)
        moved = np.clip(u + 0.15 * rng.normal(size=len(u)), 0.0, 1.0)
        held = {n.label: self.scale.labels.index(n.label) for n in self.oracle.program.numbers}
        moved[list(held.values())] = u[list(held.values())]
        rules = self.space.legal_numbers(point)
        if rules is not None and rules.labels:
            natural = self.scale.natural(u)
            walked = rules.walk(np.array([natural[label] for label in rules.labels]), WALK_STEPS, rng)
            for label, value in zip(rules.labels, walked.tolist(), strict=True):
                moved[held[label]] = self.scale.domains[held[label]].to_unit(value)
        return self.scale.rounded(moved)

    def _free_step(
        self, section: Section, current: Vector, active: Indices, starts: Sequence[Vector], tolerance: float
    ) -> Vector:
        """The best of L-BFGS-B from several starts, (n_active,) each, and of ``current``."""

        def objective(x: Vector) -> tuple[float, Vector]:
            value, gradient = section(self._whole(current, active, x))
            return value, gradient[active]

        best, best_value = current, section(self.scale.rounded(current))[0]
        for start in starts:
            found = minimize(
                objective,
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, 1.0)] * len(active),
                options={"ftol": tolerance},
            )
            trial = self.scale.rounded(self._whole(current, active, np.clip(found.x, 0.0, 1.0)))
            value = section(trial)[0]
            if value < best_value:
                best, best_value = trial, value
        return best

    def _bound_step(self, section: Section, rules: NumberRules, current: Vector, active: Indices) -> Vector:
        """SLSQP under the rules; its end point is pulled back towards the legal start until it is legal."""
        where = {label: d for d, label in enumerate(self.scale.labels)}
        bound = np.array([where[label] for label in rules.labels], dtype=np.int64)

        def natural(x: Vector) -> Vector:
            return np.array(
                [
                    self.scale.domains[d].from_unit(v)
                    for d, v in zip(bound, self._whole(current, active, x)[bound], strict=True)
                ]
            )

        def relaxed(x: Vector) -> tuple[Vector, Vector]:
            """Natural values without rounding, and their slopes."""
            units = self._whole(current, active, x)[bound]
            values = np.array([_relaxed_natural(self.scale.domains[d], v) for d, v in zip(bound, units, strict=True)])
            return values, np.array([self.scale.slope(int(d), v) for d, v in zip(bound, values, strict=True)])

        def gradient_rows(x: Vector) -> Vector:
            values, slopes = relaxed(x)
            jacobian = np.zeros((len(rules.row_low), len(active)))
            position = {int(d): k for k, d in enumerate(active)}
            columns = [position[int(d)] for d in bound]
            jacobian[:, columns] = rules.gradient(values) * slopes
            return jacobian

        equal = rules.row_low == rules.row_high
        low, high = np.isfinite(rules.row_low) & ~equal, np.isfinite(rules.row_high) & ~equal
        constraints: list[Mapping[str, object]] = []
        if np.any(equal):
            constraints.append(
                {
                    "type": "eq",
                    "fun": lambda x: (rules.body(relaxed(x)[0]) - rules.row_low)[equal],
                    "jac": lambda x: gradient_rows(x)[equal],
                }
            )
        if np.any(low | high):
            constraints.append(
                {
                    "type": "ineq",
                    "fun": lambda x: np.concatenate(
                        [
                            (rules.body(relaxed(x)[0]) - rules.row_low)[low],
                            (rules.row_high - rules.body(relaxed(x)[0]))[high],
                        ]
                    ),
                    "jac": lambda x: np.concatenate([gradient_rows(x)[low], -gradient_rows(x)[high]]),
                }
            )

        def objective(x: Vector) -> tuple[float, Vector]:
            value, gradient = section(self._whole(current, active, x))
            return value, gradient[active]

        start = current[active]
        found = minimize(
            objective,
            start,
            jac=True,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * len(active),
            constraints=constraints,
            options={"maxiter": 60},
        )
        end = np.clip(found.x, 0.0, 1.0) if np.all(np.isfinite(found.x)) else start
        value_at_start = section(current)[0]
        step = 1.0
        for _ in range(BACKTRACKS):
            trial = self.scale.rounded(self._whole(current, active, start + step * (end - start)))
            x = trial[active]
            if rules.legal(natural(x), tolerance=0.5) and section(trial)[0] <= value_at_start:
                return trial
            step *= 0.5
        return current

    @staticmethod
    def _whole(current: Vector, active: Indices, x: Vector) -> Vector:
        trial = current.copy()
        trial[active] = x
        return trial


def _relaxed_natural(domain: object, u: float) -> float:
    low, high = float(domain.low), float(domain.high)  # type: ignore[attr-defined]
    if domain.log:  # type: ignore[attr-defined]
        return float(np.exp(np.log(low) + u * (np.log(high) - np.log(low))))
    return low + u * (high - low)
