"""Minimise an acquisition function that no MIP can take, by legal moves from a pool of good points.

Posterior variance is quartic in the one-hot binaries, so that expected improvement, confidence bounds and entropies have
no exact program. The pool holds minimisers of the posterior mean and of samples, which exact programs describe, the best
observations, and random legal walks from both; the best of the pool go on by

    levels     best-improvement single moves, all points of the pool in one batch; pair moves where single ones end
    numbers    L-BFGS-B on the analytic gradient; SLSQP where rules bind active numbers

Every point on the way is legal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mipcash.acquisition.base import Acquisition
from mipcash.acquisition.continuous_step import ContinuousStep
from mipcash.acquisition.moves import Neighbourhood
from mipcash.backends.heuristics.local_search import LocalSearch
from mipcash.errors import at_least
from mipcash.program.forms import Indices, Vector
from mipcash.program.points import Points

ROUGH, WORTH = 1e-3, 1e-4
"""Tolerance of the first round, and the relative gain of a round after which another one follows."""
LevelsAndUnits = tuple[Indices, Vector]
"""A point: levels (G,) and unit values (D,)."""


@dataclass(frozen=True)
class PolishSettings:
    """Limits of the mixed search.

    Attributes:
        walks: random legal points in the pool.
        survivors: points of the pool that go on.
        moved: of those, the best after the first sweep, whose numbers are moved.
        finalists: of those, points that go on after the first round.
        rounds: rounds of levels, then numbers.
        sweeps: single moves per round.
        pairs: random pair moves tried where single moves end.
        tolerance: relative fall below which the numbers stop moving; ROUGH in the first round, which chooses the finalists.
    """

    walks: int = 160
    survivors: int = 6
    moved: int = 3
    finalists: int = 2
    rounds: int = 4
    sweeps: int = 30
    pairs: int = 400
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        at_least(self, walks=0, survivors=1, moved=1, finalists=1, rounds=1, sweeps=0, pairs=0, tolerance=0)


@dataclass
class _Pool:
    """Points under way: levels (R, G), units (R, J), values (R,)."""

    levels: Indices
    units: Vector
    values: Vector

    def best(self, count: int) -> _Pool:
        """The best points, no two with the same levels and nearly the same numbers."""
        chosen: list[int] = []
        for k in np.argsort(self.values, kind="stable").tolist():
            if len(chosen) == count or not np.isfinite(self.values[k]):
                break
            if not any(
                np.array_equal(self.levels[k], self.levels[c]) and np.allclose(self.units[k], self.units[c], atol=0.02)
                for c in chosen
            ):
                chosen.append(k)
        return _Pool(self.levels[chosen], self.units[chosen], self.values[chosen])


class MixedSearch:
    """Minimises acquisition functions over one space.

    Args:
        step: what moves the numbers.
        near: the moves over the levels.
        settings: limits.
    """

    def __init__(self, step: ContinuousStep, near: Neighbourhood, settings: PolishSettings) -> None:
        self.step, self.near, self.settings = step, near, settings
        self.program, self.scale = near.program, near.scale
        self._bound = bool(self.program.numbers)

    def minimise(
        self, acquisition: Acquisition, starts: Sequence[LevelsAndUnits], rng: np.random.Generator
    ) -> LevelsAndUnits | None:
        """The best point found; None where every start is excluded and has no legal move.

        Args:
            acquisition: what to minimise.
            starts: legal points, excluded ones allowed.
        """
        pool = self._pool(acquisition, starts, rng)
        for k in range(self.settings.rounds):
            pool = pool.best(self.settings.survivors if k == 0 else self.settings.finalists)
            if not len(pool.values):
                return None
            before = pool.values.min()
            self._sweep(acquisition, pool)
            if k > 0 or not len(self.scale):
                self._pair(acquisition, pool, rng)
            pool = pool.best(self.settings.moved)
            self._move_numbers(acquisition, pool, rng, ROUGH if k == 0 else self.settings.tolerance)
            if k > 0 and pool.values.min() > before - WORTH * max(1.0, abs(before)):
                break
        admitted = np.flatnonzero(self.near.admitted(pool.levels))
        if not len(admitted):
            return None
        best = admitted[int(np.argmin(pool.values[admitted]))]
        return pool.levels[best], pool.units[best]

    # -- parts --------------------------------------------------------------------------------------------------

    def _values(self, acquisition: Acquisition, levels: Indices, units: Vector) -> Vector:
        return acquisition.values(Points(levels, units))

    def _pool(self, acquisition: Acquisition, starts: Sequence[LevelsAndUnits], rng: np.random.Generator) -> _Pool:
        levels = np.array([s for s, _ in starts], dtype=np.int64).reshape(len(starts), len(self.program.groups))
        units = np.array([u for _, u in starts]).reshape(len(starts), len(self.scale))
        walked = self._walks(levels, units, rng)
        levels, units = np.concatenate([levels, walked[0]]), np.concatenate([units, walked[1]])
        values = self._values(acquisition, levels, units)
        values[~self.near.admitted(levels)] = np.inf
        if not np.isfinite(values).any():  # every point is excluded: start the moves from them all the same
            values = self._values(acquisition, levels, units) + 1e6
        return _Pool(levels, units, values)

    def _walks(self, levels: Indices, units: Vector, rng: np.random.Generator) -> tuple[Indices, Vector]:
        """Random legal points around the starts."""
        count = self.settings.walks
        if not count:
            return levels[:0], units[:0]
        if self._bound:
            return self._bound_walks(levels, units, rng)
        base = rng.integers(len(levels), size=count)
        moved = units[base]
        far, near = rng.random(moved.shape) < 0.3, rng.random(moved.shape) < 0.5
        moved = np.where(
            far, rng.random(moved.shape), np.where(near, moved + 0.1 * rng.normal(size=moved.shape), moved)
        )
        moved = np.array([self.scale.rounded(np.clip(u, 0.0, 1.0)) for u in moved]).reshape(count, len(self.scale))
        search = self.near.search_at(units[0])
        if search is None or not len(self.program.groups):
            return levels[base], moved
        walked = np.concatenate(
            [
                search.walk(part, steps, rng)
                for part, steps in zip(np.array_split(levels[base], 4), (2, 4, 8, 24), strict=True)
            ]
        )
        return search.legality.effective(walked), moved

    def _bound_walks(self, levels: Indices, units: Vector, rng: np.random.Generator) -> tuple[Indices, Vector]:
        """The same where rules bind numbers: numbers walk beside their levels, then levels beside the new numbers."""
        found_levels, found_units = [levels[:0]], [units[:0]]
        share = max(1, self.settings.walks // (2 * len(levels)))
        for s, u in zip(levels, units, strict=True):
            moved = self.step.wander(s, u, rng)
            search = self.near.search_at(moved)
            if search is None or not search.legality.check(s[None])[0]:
                found_levels.append(s[None])
            else:
                walked = search.walk(np.repeat(s[None], share, axis=0), int(rng.integers(1, 12)), rng)
                found_levels.append(search.legality.effective(walked))
            found_units.append(np.repeat(moved[None], len(found_levels[-1]), axis=0))
        return np.concatenate(found_levels), np.concatenate(found_units)

    def _sweep(self, acquisition: Acquisition, pool: _Pool) -> None:
        """Best-improvement single moves of every point until none improves, in place."""
        if not len(self.program.groups):
            return
        moving = np.arange(len(pool.values))
        shared = None if self._bound else self.near.search_at(pool.units[0])
        for _ in range(self.settings.sweeps):
            owner, latent = self.near.singles(pool.levels[moving])
            improved = self._take(acquisition, pool, moving[owner], latent, shared)
            moving = moving[np.isin(moving, improved)]
            if not len(moving):
                break

    def _pair(self, acquisition: Acquisition, pool: _Pool, rng: np.random.Generator) -> None:
        """One pair move of the best point, in place."""
        if len(self.program.groups) < 2:
            return
        best = int(np.argmin(pool.values))
        latent = self.near.pairs(pool.levels[best], self.settings.pairs, rng)
        shared = None if self._bound else self.near.search_at(pool.units[best])
        improved = self._take(acquisition, pool, np.full(len(latent), best), latent, shared)
        if len(improved):
            self._sweep(acquisition, pool)

    def _take(
        self, acquisition: Acquisition, pool: _Pool, owner: Indices, latent: Indices, shared: LocalSearch | None
    ) -> Indices:
        """Give every point the best legal move if it improves, in place; returns the points that moved."""
        if shared is not None and len(owner):
            levels = shared.legality.effective(latent)
            keep = shared.legality.check(levels) & self.near.admitted(levels)
            owner, levels = owner[keep], levels[keep]
            if not len(owner):
                return owner
            values = self._values(acquisition, levels, pool.units[owner])
            order = np.lexsort((values, owner))
            first = order[np.unique(owner[order], return_index=True)[1]]
            first = first[values[first] < pool.values[owner[first]] - 1e-12]
            pool.levels[owner[first]], pool.values[owner[first]] = levels[first], values[first]
            return owner[first]
        moved = []
        for r in np.unique(owner):
            mine = latent[owner == r]
            guess = self.near.oracle.free_legality.effective(mine)
            values = self._values(acquisition, guess, np.repeat(pool.units[r][None], len(guess), axis=0))
            order = np.argsort(values, kind="stable")
            order = order[values[order] < pool.values[r] - 1e-12]
            if not len(order):
                continue
            search = self.near.search_at(pool.units[r])
            levels, legal = self.near.legal(search, mine, pool.units[r], order)
            order = order[legal[order]]
            if len(order):
                pool.levels[r], pool.values[r] = levels[order[0]], values[order[0]]
                moved.append(int(r))
        return np.array(moved, dtype=np.int64)

    def _move_numbers(self, acquisition: Acquisition, pool: _Pool, rng: np.random.Generator, tolerance: float) -> None:
        """The continuous step of every point, in place."""
        if not len(self.scale):
            return
        for r in range(len(pool.values)):
            levels, u = pool.levels[r], pool.units[r]
            point = self.near.oracle.unproven(levels, self.scale.natural(u), float(pool.values[r]))
            moved = self.step.minimise(acquisition, point, u, rng, 0, tolerance)
            value = float(self._values(acquisition, levels[None], moved[None])[0])
            if value < pool.values[r]:
                pool.units[r], pool.values[r] = moved, value
