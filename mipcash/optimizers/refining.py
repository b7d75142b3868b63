"""A search that stalls: the incumbent is refined now and then, a refinement promises a least gain, and visits are no copies.

Predicted deviations grow while the incumbent stays, so that nearly all stalled proposals explore, and the last steps of a
refinement come late; without that growth the same small promise beside the incumbent is found again and again. So

    turns       after ``refine`` evaluations without a better one, after twice as many, four times and so on, the incumbent is
                refined by what is predicted without that growth: downhill from points beside it, as far as that leads
    least gain  a refinement that promises less expected improvement than ``min_gain`` gives way to the best point that is none
    copies      a visit of another plain category does not copy the incumbent's numbers
    categories  after every ``refine`` evaluations of a stall, and LATER ones, another category is visited with numbers of its own,
                all inside of their ranges: in turn the least tried one, and the one of the best observation, for as long as that
                becomes better

Gains are in standard deviations of the losses (their warp included), so that all of it is for ``log-ei`` without limits. Figures:
docs/decisions/061-turns-of-a-stalled-search.md.

Where a stalled search goes in vain: small steps about the incumbent, and copies of its numbers beside another category.

Notation
    s (R, G)    levels;   u (R, D) unit values;   s*, u* those of the incumbent

    refinement  the incumbent's levels and numbers, those that have an order moved by NEAR of their range at most
    copy        another plain category, the same modules, and every number that both have is the incumbent's (within COPIED) or at
                an end of its range

A region of such points is left out of a search by infinite values (:class:`Outside`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mipcash.acquisition.acquisition import Acquisition
from mipcash.acquisition.blocks import ORDERED, Block, BlockMoves
from mipcash.acquisition.catalogue import log_ei
from mipcash.acquisition.inputs import AcquisitionInputs
from mipcash.acquisition.mixed_search import MixedSearch
from mipcash.optimizers.model_based import Step
from mipcash.optimizers.turns import PATIENCE
from mipcash.program.forms import Booleans, Indices, Vector
from mipcash.program.points import Point, Points
from mipcash.program.program import BinaryProgram
from mipcash.program.unit_scale import UnitScale
from mipcash.surrogates.protocols import Section
from mipcash.surrogates.structured.posterior import StructuredPosterior

NEAR, COPIED = 0.05, 0.01
"""Of the range of a number."""


class Region(Protocol):
    """A set of points."""

    def holds(self, points: Points) -> Booleans:
        """Which points are in it: shape (B,)."""


@dataclass(frozen=True)
class Refinements:
    """Those of one point.

    Attributes:
        program: whose levels they are.
        centre: the incumbent.
        radius: share of the range of a number.
    """

    program: BinaryProgram
    centre: Point
    radius: float = NEAR

    def holds(self, points: Points) -> Booleans:
        """See :class:`Region`."""
        there = _on(self.program, points.levels) & _on(self.program, self.centre.levels)
        top = np.where(_ordered(self.program) & there, self.program.n_levels - 1, 0)
        steps = np.abs(points.levels - self.centre.levels) <= self.radius * top
        numbers = np.abs(points.units - self.centre.units) <= self.radius
        return np.asarray(steps.all(axis=1) & numbers.all(axis=1), dtype=bool)


@dataclass(frozen=True)
class Copies:
    """Those of one point.

    Attributes:
        program, scale: of the points.
        blocks: of the space; modules are not to be another one, as swaps of them keep the other numbers on purpose.
        centre: the incumbent.
    """

    program: BinaryProgram
    scale: UnitScale
    blocks: Sequence[Block]
    centre: Point

    def holds(self, points: Points) -> Booleans:
        """See :class:`Region`."""
        counted, copied = self.compared(points)
        return self.visits(points) & counted.any(axis=1) & (copied | ~counted).all(axis=1)

    def visits(self, points: Points) -> Booleans:
        """Which points have another plain category beside the same modules: shape (B,)."""
        plain, modules = (
            np.array([b.group for b in self.blocks if b.module is m], dtype=np.int64) for m in (False, True)
        )
        other = points.levels != self.centre.levels
        return np.asarray(other[:, plain].any(axis=1) & ~other[:, modules].any(axis=1), dtype=bool)

    def compared(self, points: Points) -> tuple[Booleans, Booleans]:
        """Which ordered groups and numbers both have, and which of all are copied or at an end: (B, G + D) each."""
        levels, at, units = points.levels, self.centre.levels, points.units
        shared = _ordered(self.program) & _on(self.program, levels) & _on(self.program, at)
        on = self.scale.active_at(self.program, np.vstack([levels, at])) > 0
        same = (levels == at) | (levels == 0) | (levels == self.program.n_levels - 1)
        close = (np.abs(units - self.centre.units) <= COPIED) | (units <= COPIED) | (units >= 1.0 - COPIED)
        return np.hstack([shared, on[:-1] & on[-1]]), np.hstack([same, close])


@dataclass(frozen=True)
class Fresh:
    """Visits of one category with no number of the incumbent's, and none at an end.

    Attributes:
        copies: those of the incumbent.
        group, level: the category.
    """

    copies: Copies
    group: int
    level: int

    def holds(self, points: Points) -> Booleans:
        """See :class:`Region`."""
        counted, copied = self.copies.compared(points)
        there = self.copies.visits(points) & (points.levels[:, self.group] == self.level)
        return np.asarray(there & ~(counted & copied).any(axis=1), dtype=bool)


@dataclass(frozen=True)
class Inside:
    """An acquisition function that is infinite outside of a region."""

    acquisition: Acquisition
    region: Region

    def values(self, points: Points) -> Vector:
        """At a batch: shape (B,)."""
        return np.where(self.region.holds(points), self.acquisition.values(points), np.inf)

    def section(self, z: Vector) -> Section:
        """The acquisition at fixed binaries, (n_z,)."""
        return self.acquisition.section(z)


@dataclass(frozen=True)
class Outside:
    """An acquisition function that is infinite inside a region.

    A descent may go through the region; where it ends is looked at by the values.
    """

    acquisition: Acquisition
    region: Region

    def values(self, points: Points) -> Vector:
        """At a batch: shape (B,)."""
        return np.where(self.region.holds(points), np.inf, self.acquisition.values(points))

    def section(self, z: Vector) -> Section:
        """The acquisition at fixed binaries, (n_z,)."""
        return self.acquisition.section(z)


def _on(program: BinaryProgram, levels: Indices) -> Booleans:
    return np.asarray(levels != program.off_levels, dtype=bool)


def _ordered(program: BinaryProgram) -> Booleans:
    return np.array([g.kind in ORDERED for g in program.groups], dtype=bool)


FINALISTS = 2
"""Refinements whose numbers go downhill."""
LATER = 3
"""Evaluations after the turn of a refinement that a category has its."""
Found = tuple[Acquisition, Point]
"""A point, and what it is the best of: infinite where proposals are not to be."""


def calm_gain(fitted: AcquisitionInputs, step: Step) -> Acquisition | None:
    """Expected improvement where deviations do not grow; None: the acquisition is another, or has more in it."""
    alone = not fitted.limited and not step.request.costs and math.isfinite(fitted.best)
    if not alone or not isinstance(fitted.loss, StructuredPosterior):
        return None
    return log_ei(replace(fitted, loss=replace(fitted.loss, inflation=1.0)))


@dataclass(frozen=True)
class Refining:
    """How one proposal treats the neighbourhood of the incumbent.

    Attributes:
        search: over the legal points.
        moves: of the same observations.
        step: the ask.
        first, least: ``refine`` and ``min_gain`` of the module's description; 0: not.
    """

    search: MixedSearch
    moves: BlockMoves
    step: Step
    first: int
    least: float

    def minimise(self, acquisition: Acquisition, pool: Points, calm: Acquisition | None) -> Found | None:
        """What has its turn, or else what the search finds; while it stalls, outside of what is refused.

        Args:
            calm: expected improvement by what is predicted without growth; None: the acquisition is no expected improvement, and
                nothing here is for it.
        """
        turns = calm if self._alone else None
        if turns is not None and self._times(0).bit_count() == 1 and (refined := self._refined(turns)) is not None:
            return refined
        further = self.moves.points(self.step.rng)
        if turns is not None and (fresh := self._fresh()) is not None:
            inside = Inside(acquisition, fresh)
            visit = self.search.minimise(inside, pool, self.step.rng, further)
            if visit is not None:
                return inside, visit
        found = self.search.minimise(acquisition, pool, self.step.rng, further)
        region = None if found is None or calm is None else self._refused(acquisition, found)
        if found is None or region is None:
            return None if found is None else (acquisition, found)
        outside = Outside(acquisition, region)
        other = self.search.minimise(outside, pool, self.step.rng, further)
        return (acquisition, found) if other is None else (outside, other)

    @property
    def _alone(self) -> bool:
        """Whether there are plain categories and no modules, which have moves and turns of their own."""
        groups = self.search.near.program.groups
        plain = [not b.module and not groups[b.group].conditions for b in self.moves.blocks]
        return bool(plain) and all(plain)

    def _times(self, later: int) -> int:
        """How many times ``first`` the evaluations since the incumbent are, less some; 0: not a multiple."""
        since = self.step.data.stalled() + len(self.step.request.pending) - later
        times, rest = divmod(since, self.first or 1)
        return times if self.first > 0 and since > 0 and not rest else 0

    def _refined(self, calm: Acquisition) -> Found | None:
        """Downhill from beside the incumbent; None where that was proposed before, or promises too little."""
        domain, incumbent = self.search.near.domain, self.moves.observed[:1]
        near = Points.joined(incumbent, self.moves.about(self.step.rng))
        best = np.argsort(calm.values(near), kind="stable")[:FINALISTS]
        numbers = np.array([self.search.step.minimise(calm, near[int(k)], self.step.rng, 0) for k in best])
        ends = Points(near.levels[best], numbers)
        values = np.where(self.search.near.admitted(ends.levels), calm.values(ends), np.inf)
        found = ends[int(np.argmin(values))]
        worth = np.exp(-values.min()) >= max(self.least, np.finfo(float).tiny)
        if not worth or domain.repeats(domain.decode(found), self.step.before):
            return None
        return Inside(calm, Refinements(domain.program, incumbent[0])), found

    def _fresh(self) -> Fresh | None:
        """The category that has its turn; None: none has."""
        data, program, of = self.step.data, self.search.near.program, self.moves.observed
        plain = [(b.group, program.groups[b.group].n_levels) for b in self.moves.blocks]
        others = [(g, level) for g, n in plain for level in range(n) if level != of.levels[0, g]]
        if not others or not self._stalled or not self.first:
            return None
        memories = [np.flatnonzero(of.levels[:, g] == level) for g, level in others]
        places = [(int(rows[0]) if len(rows) else len(of), self.step.rng.random()) for rows in memories]
        best, times = places.index(min(places)), self._times(LATER)
        if not times % 2:
            became_better = len(memories[best]) and data.order[memories[best][0]] == len(data.points) - 1
            return Fresh(self._copies, *others[best]) if times or became_better else None
        tried = [(int(np.sum(data.points.levels[:, g] == level)), self.step.rng.random()) for g, level in others]
        return Fresh(self._copies, *others[tried.index(min(tried))])

    @property
    def _stalled(self) -> bool:
        return self.step.data.stalled() >= PATIENCE

    @property
    def _copies(self) -> Copies:
        domain = self.search.near.domain
        return Copies(domain.program, domain.scale, self.moves.blocks, self.moves.observed[0])

    def _refused(self, acquisition: Acquisition, found: Point) -> Region | None:
        """What a point of a stalled search is to leave; None: nothing."""
        if not self._stalled:
            return None
        one = Points(found.levels[None], found.units[None])
        if self.first and self._alone and self._copies.holds(one)[0]:
            return self._copies
        refinements = Refinements(self.search.near.program, self.moves.observed[0])
        gain = np.exp(-acquisition.values(one)[0])
        return refinements if gain < self.least and refinements.holds(one)[0] else None
