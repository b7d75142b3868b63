"""Minimise an acquisition function that no MIP can take, by legal moves from a pool of good points.

Posterior variance is quartic in the one-hot binaries, so that expected improvement, confidence bounds and entropies have
no exact program. The pool holds minimisers of the posterior mean and of samples, which exact programs describe, the best
observations, and random legal walks from both; the best of the pool go on by

    levels     best-improvement single moves, all points of the pool in one batch; pair moves where single ones end
    numbers    L-BFGS-B on the analytic gradient; SLSQP where rules bind active numbers

Every point on the way is legal, so that the search may end at any time: the deadline of the domain ends it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipcash.acquisition.acquisition import Acquisition
from mipcash.acquisition.continuous_step import ContinuousStep
from mipcash.acquisition.neighbourhood import Neighbourhood
from mipcash.errors import at_least
from mipcash.program.forms import Indices, Vector
from mipcash.program.legality import Legality
from mipcash.program.points import Point, Points

ROUGH, WORTH = 1e-3, 1e-4
"""Tolerance of the first round, and the relative gain of a round after which another one follows."""
LENGTHS = (2, 4, 8, 24)
"""Steps of the random walks over levels, a quarter of them each."""
LEAST_GAIN = 1e-12
"""Of a move over the levels."""


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
        exchanges: single moves of the best point, from the second round on, each with its numbers moved besides.
        forbidden: of those only what rules forbid beside the numbers as they are.
    """

    walks: int = 160
    survivors: int = 6
    moved: int = 3
    finalists: int = 2
    rounds: int = 4
    sweeps: int = 30
    pairs: int = 400
    tolerance: float = 1e-6
    exchanges: int = 0
    forbidden: bool = False

    def __post_init__(self) -> None:
        at_least(
            self, walks=0, survivors=1, moved=1, finalists=1, rounds=1, sweeps=0, pairs=0, tolerance=0, exchanges=0
        )


@dataclass(frozen=True)
class Pool:
    """Points under way, and what the acquisition function says of them.

    Attributes:
        points: R of them.
        values: shape (R,); inf where a point may not be proposed.
    """

    points: Points
    values: Vector

    def best(self, count: int) -> Pool:
        """The best points, no two with the same levels and nearly the same numbers."""
        levels, units = self.points.levels, self.points.units
        chosen: list[int] = []
        for k in np.argsort(self.values, kind="stable").tolist():
            if len(chosen) == count or not np.isfinite(self.values[k]):
                break
            if not any(
                np.array_equal(levels[k], levels[c]) and np.allclose(units[k], units[c], atol=0.02) for c in chosen
            ):
                chosen.append(k)
        return Pool(self.points[chosen], self.values[chosen])

    def moved(self, rows: Indices, to: Points, values: Vector) -> Pool:
        """The pool with some of its points (k,) elsewhere."""
        levels, units, at = self.points.levels.copy(), self.points.units.copy(), self.values.copy()
        levels[rows], units[rows], at[rows] = to.levels, to.units, values
        return Pool(Points(levels, units), at)


class MixedSearch:
    """Minimises acquisition functions over the legal points of a domain.

    Args:
        step: what moves the numbers.
        near: the moves over the levels.
        settings: limits.
    """

    def __init__(self, step: ContinuousStep, near: Neighbourhood, settings: PolishSettings) -> None:
        self.step, self.near, self.settings = step, near, settings
        self.program, self.scale = near.domain.program, near.domain.scale
        self._bound = bool(self.program.numbers)
        held = {n.label for n in self.program.numbers}
        self._free = np.array([label not in held for label in self.scale.labels], dtype=bool)

    def minimise(
        self, acquisition: Acquisition, starts: Points, rng: np.random.Generator, further: Points | None = None
    ) -> Point | None:
        """The best point found; None where every start is excluded and has no legal move.

        Args:
            acquisition: what to minimise.
            starts: legal points, excluded ones allowed.
            further: others, which no walk starts from.
        """
        pool, deadline = self._pool(acquisition, starts, rng, further), self.step.domain.deadline
        for k in range(self.settings.rounds):
            pool = pool.best(self.settings.survivors if k == 0 else self.settings.finalists)
            if not len(pool.points):
                return None
            before = pool.values.min()
            pool = self._sweep(acquisition, pool)
            if k > 0 or not len(self.scale):
                pool = self._pair(acquisition, pool, rng)
            if k > 0 and self.settings.exchanges and self.program.groups:
                pool = self._exchange(acquisition, pool, rng)
            pool = pool.best(self.settings.moved)
            pool = self._move_numbers(acquisition, pool, rng, ROUGH if k == 0 else self.settings.tolerance)
            if deadline.passed or (k > 0 and pool.values.min() > before - WORTH * max(1.0, abs(before))):
                break
        admitted = np.flatnonzero(self.near.admitted(pool.points.levels))
        if not len(admitted):
            return None
        return pool.points[int(admitted[np.argmin(pool.values[admitted])])]

    # -- the pool -----------------------------------------------------------------------------------------------

    def _pool(
        self, acquisition: Acquisition, starts: Points, rng: np.random.Generator, further: Points | None = None
    ) -> Pool:
        points = Points.joined(starts, self.walks(starts, rng), starts[:0] if further is None else further)
        values = acquisition.values(points)
        admitted = self.near.admitted(points.levels)
        if not np.isfinite(values[admitted]).any():  # every point is excluded: start the moves from them all the same
            return Pool(points, values + 1e6)
        return Pool(points, np.where(admitted, values, np.inf))

    def walks(self, starts: Points, rng: np.random.Generator) -> Points:
        """Random legal points around the starts, as many as the settings say."""
        count = self.settings.walks
        if not count:
            return starts[:0]
        if self._bound:
            return self._bound_walks(starts, rng)
        base = rng.integers(len(starts), size=count)
        levels, moved = starts.levels[base], starts.units[base]
        moved = self._jittered(moved, rng)
        legality = self.near.legality_at(starts.units[0])
        if legality is None or not len(self.program.groups):
            return Points(levels, moved)
        parts = zip(np.array_split(levels, len(LENGTHS)), LENGTHS, strict=True)
        return Points(np.concatenate([self.near.walk(legality, part, n, rng) for part, n in parts]), moved)

    def _bound_walks(self, starts: Points, rng: np.random.Generator) -> Points:
        """The same where rules bind numbers: numbers walk beside their levels, then levels beside the new numbers."""
        found = [starts[:0]]
        share = max(1, self.settings.walks // (2 * len(starts)))
        for start in starts:
            if self.step.domain.deadline.passed:
                break
            moved, levels = self.step.wander(start, rng), start.levels[None]
            legality = self.near.legality_at(moved)
            if legality is not None and legality.check(levels)[0]:
                levels = self.near.walk(legality, np.repeat(levels, share, axis=0), int(rng.integers(1, 12)), rng)
            units = np.repeat(moved[None], len(levels), axis=0)
            units[:, self._free] = self._jittered(units, rng)[:, self._free]
            found.append(Points(levels, units))
        return Points.joined(*found)

    def _jittered(self, units: Vector, rng: np.random.Generator) -> Vector:
        """Numbers (R, D) of which some are anywhere, some near where they were, and the others where they were."""
        far, near = rng.random(units.shape) < 0.3, rng.random(units.shape) < 0.5
        moved = np.where(
            far, rng.random(units.shape), np.where(near, units + 0.1 * rng.normal(size=units.shape), units)
        )
        return self.scale.rounded(np.clip(moved, 0.0, 1.0))

    # -- moves --------------------------------------------------------------------------------------------------

    def _sweep(self, acquisition: Acquisition, pool: Pool) -> Pool:
        """Best-improvement single moves of every point until none improves."""
        if not len(self.program.groups):
            return pool
        moving = np.arange(len(pool.points))
        shared = None if self._bound else self.near.legality_at(pool.points.units[0])
        for _ in range(self.settings.sweeps):
            owner, latent = self.near.singles(pool.points.levels[moving])
            pool, improved = self._take(acquisition, pool, moving[owner], latent, shared)
            moving = moving[np.isin(moving, improved)]
            if not len(moving) or self.step.domain.deadline.passed:
                break
        return pool

    def _pair(self, acquisition: Acquisition, pool: Pool, rng: np.random.Generator) -> Pool:
        """One pair move of the best point, and single moves from where it leads."""
        if len(self.program.groups) < 2:
            return pool
        best = pool.points[int(np.argmin(pool.values))]
        latent = self.near.pairs(best.levels, self.settings.pairs, rng)
        shared = None if self._bound else self.near.legality_at(best.units)
        owner = np.full(len(latent), int(np.argmin(pool.values)))
        pool, improved = self._take(acquisition, pool, owner, latent, shared)
        return self._sweep(acquisition, pool) if len(improved) else pool

    def _take(
        self, acquisition: Acquisition, pool: Pool, owner: Indices, latent: Indices, shared: Legality | None
    ) -> tuple[Pool, Indices]:
        """Give every point the best legal move if it improves; with the rows of the points that moved.

        Args:
            owner: row of the point of each move, shape (N,).
            latent: the levels that it leads to, shape (N, G).
            shared: legality beside the numbers of all points, where these have no say in it.
        """
        if shared is None or not len(owner):
            return self._take_singly(acquisition, pool, owner, latent)
        levels = shared.effective(latent)
        keep = shared.check(levels) & self.near.admitted(levels)
        owner, to = owner[keep], Points(levels[keep], pool.points.units[owner[keep]])
        if not len(owner):
            return pool, owner
        values = acquisition.values(to)
        order = np.lexsort((values, owner))
        first = order[np.unique(owner[order], return_index=True)[1]]
        first = first[values[first] < pool.values[owner[first]] - LEAST_GAIN]
        return pool.moved(owner[first], to[first], values[first]), owner[first]

    def _take_singly(
        self, acquisition: Acquisition, pool: Pool, owner: Indices, latent: Indices
    ) -> tuple[Pool, Indices]:
        """The same where legality depends on each point's numbers: promising moves are checked for each point apart."""
        moved = []
        for r in np.unique(owner):
            if self.step.domain.deadline.passed:
                break
            mine, u = latent[owner == r], pool.points.units[r]
            guess = self.near.domain.free_legality.effective(mine)
            values = acquisition.values(Points(guess, np.repeat(u[None], len(guess), axis=0)))
            order = np.argsort(values, kind="stable")
            order = order[values[order] < pool.values[r] - LEAST_GAIN]
            if not len(order):
                continue
            levels, legal = self.near.legal(mine, u, order)
            order = order[legal[order]]
            if len(order):
                pool = pool.moved(np.array([r]), Points(levels[order[:1]], u[None]), values[order[:1]])
                moved.append(int(r))
        return pool, np.array(moved, dtype=np.int64)

    def _exchange(self, acquisition: Acquisition, pool: Pool, rng: np.random.Generator) -> Pool:
        """The most promising single moves of the best point, each with its numbers moved besides, if one improves.

        A point at a rule that ties numbers to levels has no legal move whose numbers stay.
        """
        best = int(np.argmin(pool.values))
        units, free = pool.points.units[best], self.near.domain.free_legality
        levels = free.effective(self.near.singles(pool.points.levels[best][None])[1])
        levels = levels[free.check(levels) & self.near.admitted(levels)]
        beside = self.near.legality_at(units) if self.settings.forbidden else None
        if beside is not None:  # what is legal beside the numbers has been tried
            levels = levels[~beside.check(levels)]
        if not len(levels):  # all neighbours are illegal, or left out
            return pool
        guess = acquisition.values(Points(levels, np.repeat(units[None], len(levels), axis=0)))
        for k in np.argsort(guess, kind="stable")[: self.settings.exchanges].tolist():
            if self.step.domain.deadline.passed:
                break
            moved = self.step.mended(acquisition, Point(levels[k], units), rng, ROUGH)
            if moved is None:
                continue
            to = Points(levels[k][None], moved[None])
            value = acquisition.values(to)
            better = value[0] < pool.values[best] - LEAST_GAIN
            if better and self.near.domain.is_legal(
                to[0]
            ):  # the rules as declared are looked at last: that takes longest
                pool = pool.moved(np.array([best]), to, value)
        return pool

    def _move_numbers(self, acquisition: Acquisition, pool: Pool, rng: np.random.Generator, tolerance: float) -> Pool:
        """The continuous step of every point, where it improves."""
        if not len(self.scale):
            return pool
        for r, point in enumerate(pool.points):
            if self.step.domain.deadline.passed:
                break
            units = self.step.minimise(acquisition, point, rng, 0, tolerance)
            if np.array_equal(units, point.units):
                continue
            to = Points(point.levels[None], units[None])
            value = acquisition.values(to)
            if value[0] < pool.values[r]:
                pool = pool.moved(np.array([r]), to, value)
        return pool
