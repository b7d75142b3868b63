"""Minimisation of an acquisition function that a MIP cannot represent, by legal moves from a pool of good points.

Posterior variance is quartic in the one-hot binaries, so there is no exact program for expected improvement, confidence bounds and
entropies. The pool holds minimisers of the posterior mean and of samples, which exact programs can find, the best observations,
and random legal walks from both. The best points of the pool are improved by

    level moves             best-improvement single moves, all points of the pool in one batch; pair moves once no single move
                            improves
    numerical parameters    L-BFGS-B on the analytic gradient; SLSQP if rules contain active numerical parameters

Every intermediate point is legal, so the search can stop at any time. It stops at the deadline of the domain.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from mipcash.acquisition.acquisition import Acquisition, compared
from mipcash.acquisition.continuous_step import NEARER, ContinuousStep
from mipcash.acquisition.neighbourhood import Neighbourhood
from mipcash.errors import SolverError, check_settings
from mipcash.modelling.domains import Configuration
from mipcash.program.forms import Indices, Vector
from mipcash.program.legality import Legality
from mipcash.program.points import Point, Points

ROUGH, WORTH = 1e-3, 1e-4
"""Tolerance of the first round, and the relative gain of a round below which no further round follows."""
HURRY, POOLED, PART = 0.5, 0.4, 64
"""Seconds below which the pool is evaluated in parts, its share of the time, and the number of points of a part."""
LENGTHS = (2, 4, 8, 24)
"""Numbers of steps of the random walks over levels; each is used for a quarter of the walks."""
ALIKE = 0.02
"""Largest difference on the unit scale of points that are near duplicates."""
NEARBY = 6
"""Number of starts near which the solver looks for legal points."""
DISTINCT, SAMPLES = 0.25, 16
"""Share of distinct walks below which legal samples are added, and their number."""
LEAST_GAIN = 1e-12
"""Least improvement by a move over the levels."""


@dataclass(frozen=True)
class LocalSearchSettings:
    """Limits of the local search for the best point of an acquisition function.

    Args:
        walks: random legal points in the pool.
        survivors: points of the pool that are improved.
        moved: points that remain after the level moves of a round; their numerical parameters are then optimised.
        finalists: points that continue after the first round.
        rounds: rounds of level moves followed by the optimisation of numerical parameters.
        sweeps: maximum number of single moves of each point per round.
        pairs: random pair moves tried once no single move improves.
        tolerance: relative decrease at which the optimisation of numerical parameters stops; larger in the first round, which
            selects the finalists.
        exchanges: from the second round on, number of single moves of the best point that are tried with its numerical parameters
            optimised afterwards.
        forbidden: restrict exchanges to moves that the rules forbid at the current numerical values.

    Examples:
        >>> import mipcash as mc
        >>> search = mc.settings.LocalSearchSettings(walks=40, rounds=2)
        >>> mc.settings.HybridSettings(local_search=search).local_search.walks
        40
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
        check_settings(
            self, walks=0, survivors=1, moved=1, finalists=1, rounds=1, sweeps=0, pairs=0, tolerance=0, exchanges=0
        )


@dataclass(frozen=True)
class Pool:
    """Current points of the search, and their values of the acquisition function.

    Attributes:
        points: R points.
        values: shape (R,); inf at points that may not be proposed.
    """

    points: Points
    values: Vector

    def best(self, count: int) -> Pool:
        """Return the best ``count`` points, without near duplicates: equal levels and nearly equal numerical values."""
        levels, units = self.points.levels, self.points.units
        chosen: list[int] = []
        for k in np.argsort(self.values, kind="stable").tolist():
            if len(chosen) == count or not np.isfinite(self.values[k]):
                break
            alike = (levels[chosen] == levels[k]).all(axis=1) & (np.abs(units[chosen] - units[k]) <= ALIKE).all(axis=1)
            if not alike.any():
                chosen.append(k)
        return Pool(self.points[chosen], self.values[chosen])

    def moved(self, rows: Indices, to: Points, values: Vector) -> Pool:
        """Return the pool with some of its points, rows (k,), replaced."""
        levels, units, at = self.points.levels.copy(), self.points.units.copy(), self.values.copy()
        levels[rows], units[rows], at[rows] = to.levels, to.units, values
        return Pool(Points(levels, units), at)


class MixedSearch:
    """Minimises acquisition functions over the legal points of a domain.

    Args:
        step: moves over the numerical parameters.
        near: moves over the levels.
        settings: limits of the search.
    """

    def __init__(self, step: ContinuousStep, near: Neighbourhood, settings: LocalSearchSettings) -> None:
        self.step, self.near, self.settings = step, near, settings
        self.program, self.scale = near.domain.program, near.domain.scale
        self._bound = bool(self.program.numbers)
        held = {n.label for n in self.program.numbers}
        self._free = np.array([label not in held for label in self.scale.labels], dtype=bool)

    def minimise(self, acquisition: Acquisition, starts: Points, rng: np.random.Generator) -> Point | None:
        """Return the best point found; None if every start is excluded and has no legal move.

        Args:
            acquisition: the function to minimise.
            starts: legal points; they may be excluded from proposals.
        """
        pool, deadline = self._pool(acquisition, starts, rng), self.step.domain.deadline
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

    def _pool(self, acquisition: Acquisition, starts: Points, rng: np.random.Generator) -> Pool:
        points = Points.joined(starts, self.walks(starts, rng))
        values, admitted = np.full(len(points), np.inf), np.flatnonzero(self.near.admitted(points.levels))
        deadline, size = self.step.domain.deadline.share(POOLED), max(1, len(points))
        if deadline.left() < HURRY:  # the starts first, then walks as far as there is time
            walked = admitted[admitted >= len(starts)]
            admitted, size = np.concatenate([admitted[admitted < len(starts)], rng.permutation(walked)]), PART
        for first in range(0, len(admitted), size):
            rows = admitted[first : first + size]
            values[rows] = compared(acquisition, points[rows])
            if deadline.passed:
                break
        if not np.isfinite(values).any():  # every point is excluded, but the moves may still start there
            return Pool(points, compared(acquisition, points) + 1e6)
        return Pool(points, values)

    def walks(self, starts: Points, rng: np.random.Generator) -> Points:
        """Return random legal points around the starts, as many as the settings state."""
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
        """Return random points if rules contain numerical parameters: perturb these at fixed levels, then walk over the levels."""
        found = [starts[:0]]
        share = max(1, self.settings.walks // (2 * len(starts)))
        for start in starts:
            if self.step.domain.deadline.passed:
                break
            for moved in (self.step.perturbed(start, rng), self.step.beside(start, rng)):
                if moved is not None:
                    found.append(self._walks_at(moved, start.levels[None], share, rng))
        walked = Points.joined(*found, self._nearby(starts, rng) if self.step.domain.pinned else starts[:0])
        return walked if self.step.domain.wide else self._diverse(walked, starts, rng)

    def _diverse(self, walked: Points, starts: Points, rng: np.random.Generator) -> Points:
        """Return walks without copies, with legal samples and perturbed points in the place of these if most walks are copies.

        Walks over the levels go nowhere if rules forbid every move at the given numerical values.
        """
        rows = np.concatenate([walked.levels, np.round(walked.units, 3)], axis=1)
        _, first = np.unique(rows, axis=0, return_index=True)
        if len(first) >= DISTINCT * len(walked):
            return walked
        samples = self.step.domain.legal_samples(SAMPLES)
        found = [walked[np.sort(first)], samples]
        for point in [*starts, *samples]:
            if self.step.domain.deadline.passed:
                break
            found.append(Points(point.levels[None], self.step.perturbed(point, rng)[None]))
        return Points.joined(*found)

    def _walks_at(self, moved: Vector, levels: Indices, share: int, rng: np.random.Generator) -> Points:
        """Return the end points of ``share`` walks over the levels at unit values, (D,), other numbers being perturbed."""
        legality = self.near.legality_at(moved)
        if legality is not None and legality.check(levels)[0]:
            levels = self.near.walk(legality, np.repeat(levels, share, axis=0), int(rng.integers(1, 12)), rng)
        units = np.repeat(moved[None], len(levels), axis=0)
        units[:, self._free] = self._jittered(units, rng)[:, self._free]
        return Points(levels, units)

    def _nearby(self, starts: Points, rng: np.random.Generator) -> Points:
        """Return legal points nearest to random ones around the starts, by the solver, which moves auxiliary variables too."""
        domain, found = self.step.domain, list[Configuration]()
        for start in starts[:NEARBY]:
            far = 10.0 ** -rng.uniform(0.0, NEARER)
            units = np.clip(start.units + far * rng.normal(size=len(start.units)), 0.0, 1.0)
            if not domain.deadline.passed:
                with suppress(SolverError):
                    found.append(domain.nearest(domain.raw(Point(start.levels, self.scale.rounded(units)))))
        return domain.encode(found)

    def _jittered(self, units: Vector, rng: np.random.Generator) -> Vector:
        """Return unit values (R, D), of which each is drawn anew, perturbed or unchanged at random."""
        far, near = rng.random(units.shape) < 0.3, rng.random(units.shape) < 0.5
        moved = np.where(
            far, rng.random(units.shape), np.where(near, units + 0.1 * rng.normal(size=units.shape), units)
        )
        return self.scale.rounded(np.clip(moved, 0.0, 1.0))

    # -- moves --------------------------------------------------------------------------------------------------

    def _sweep(self, acquisition: Acquisition, pool: Pool) -> Pool:
        """Make best-improvement single moves of every point until none improves, and return the pool."""
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
        """Make one pair move of the best point, then single moves if it improved, and return the pool."""
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
        """Move every point by its best legal move if that improves it. Return the pool, and the rows of the points that moved.

        Args:
            owner: row of the point of each move, shape (N,).
            latent: the levels that each move leads to, shape (N, G).
            shared: legality common to all points; None if it depends on their numerical values.
        """
        if shared is None or not len(owner):
            return self._take_singly(acquisition, pool, owner, latent)
        levels = shared.effective(latent)
        keep = shared.check(levels) & self.near.admitted(levels)
        owner, to = owner[keep], Points(levels[keep], pool.points.units[owner[keep]])
        if not len(owner):
            return pool, owner
        values = compared(acquisition, to)
        order = np.lexsort((values, owner))
        first = order[np.unique(owner[order], return_index=True)[1]]
        first = first[values[first] < pool.values[owner[first]] - LEAST_GAIN]
        return pool.moved(owner[first], to[first], values[first]), owner[first]

    def _take_singly(
        self, acquisition: Acquisition, pool: Pool, owner: Indices, latent: Indices
    ) -> tuple[Pool, Indices]:
        """Move as ``_take`` does if legality depends on each point's numerical values: check promising moves point by point."""
        moved = []
        for r in np.unique(owner):
            if self.step.domain.deadline.passed:
                break
            mine, u = latent[owner == r], pool.points.units[r]
            guess = self.near.domain.free_legality.effective(mine)
            values = compared(acquisition, Points(guess, np.repeat(u[None], len(guess), axis=0)))
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
        """Try the most promising single moves of the best point, each followed by a continuous step, and return the pool.

        If a rule that ties numerical parameters to levels is active at a point, all moves at fixed numerical values may be illegal.
        """
        best = int(np.argmin(pool.values))
        units, free = pool.points.units[best], self.near.domain.free_legality
        levels = free.effective(self.near.singles(pool.points.levels[best][None])[1])
        levels = levels[free.check(levels) & self.near.admitted(levels)]
        beside = self.near.legality_at(units) if self.settings.forbidden else None
        if beside is not None:  # moves that are legal at the current numerical values have been tried
            levels = levels[~beside.check(levels)]
        if not len(levels):  # all neighbours are illegal or left out
            return pool
        guess = compared(acquisition, Points(levels, np.repeat(units[None], len(levels), axis=0)))
        for k in np.argsort(guess, kind="stable")[: self.settings.exchanges].tolist():
            if self.step.domain.deadline.passed:
                break
            moved = self.step.repaired(acquisition, Point(levels[k], units), rng, ROUGH)
            if moved is None:
                continue
            to = Points(levels[k][None], moved[None])
            value = compared(acquisition, to)
            better = value[0] < pool.values[best] - LEAST_GAIN
            if better and self.near.domain.is_legal(
                to[0]
            ):  # the declared rules are checked last, as that takes longest
                pool = pool.moved(np.array([best]), to, value)
        return pool

    def _move_numbers(self, acquisition: Acquisition, pool: Pool, rng: np.random.Generator, tolerance: float) -> Pool:
        """Apply the continuous step to every point, where it improves the value, and return the pool."""
        if not len(self.scale):
            return pool
        for r, point in enumerate(pool.points):
            if self.step.domain.deadline.passed:
                break
            units = self.step.minimise(acquisition, point, rng, 0, tolerance)
            if np.array_equal(units, point.units):
                continue
            to = Points(point.levels[None], units[None])
            value = compared(acquisition, to)
            if value[0] < pool.values[r]:
                pool = pool.moved(np.array([r]), to, value)
        return pool
