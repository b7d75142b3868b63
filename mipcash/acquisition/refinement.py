"""Where a stalled search goes in vain: small steps about the incumbent, and copies of its numbers beside another category.

Notation
    s (R, G)    levels;   u (R, D) unit values;   s*, u* those of the incumbent

    refinement  the incumbent's levels and numbers, those that have an order moved by NEAR of their range at most
    copy        another plain category, the same modules, and every number that both have is the incumbent's (within COPIED) or at
                an end of its range

A region of such points is left out of a search by infinite values (:class:`Outside`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mipcash.acquisition.acquisition import Acquisition
from mipcash.acquisition.blocks import ORDERED, Block
from mipcash.program.forms import Booleans, Indices, Vector
from mipcash.program.points import Point, Points
from mipcash.program.program import BinaryProgram
from mipcash.program.unit_scale import UnitScale
from mipcash.surrogates.protocols import Section

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
