"""Exclusions: level vectors that may not be proposed, or that a proposal must keep a distance from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mipcash.backends.task import Cut
from mipcash.modelling.domains import Configuration
from mipcash.program.forms import Booleans, Indices
from mipcash.program.program import BinaryProgram

COMPARED = 1 << 24
"""Number of levels that are compared at a time."""
ANY = -1
"""Entry of an exclusion for a group that is not compared."""


@dataclass(frozen=True)
class Exclusion:
    """Levels that may not be proposed.

    Attributes:
        levels: shape (G,); ANY for a group that is not compared.
        distance: least number of compared groups in which a solution must differ (Hamming distance); 1: a no-good cut.
    """

    levels: Indices
    distance: int = 1

    def cut(self, program: BinaryProgram) -> Cut:
        """Return ``sum_g z[g, s_g] <= G - distance`` over the G compared groups."""
        columns = (program.starts + self.levels)[self.levels != ANY]
        return Cut(columns, np.ones(len(columns)), -math.inf, float(len(columns) - self.distance))

    def admits(self, levels: Indices) -> bool:
        """Return True if levels, (G,), differ from the excluded ones by at least the distance."""
        return bool(Exclusions.of([self]).admitted(levels[None])[0])


@dataclass(frozen=True)
class Exclusions:
    """Several exclusions at once.

    Attributes:
        levels: shape (E, G).
        distances: shape (E,).
    """

    levels: Indices
    distances: Indices

    @classmethod
    def of(cls, excluded: Sequence[Exclusion]) -> Exclusions:
        levels = np.array([e.levels for e in excluded]) if excluded else np.zeros((0, 1), dtype=np.int64)
        return cls(levels, np.array([e.distance for e in excluded], dtype=np.int64))

    def admitted(self, levels: Indices) -> Booleans:
        """Return which levels keep their distance from all exclusions: (R, G) -> (R,)."""
        admitted = np.ones(len(levels), dtype=bool)
        share = max(1, COMPARED // max(1, self.levels.size))
        near = np.arange(len(levels)) if self._keys is None else np.flatnonzero(np.isin(_hashed(levels), self._keys))
        for a in range(0, len(near), share):
            rows = near[a : a + share]
            differ = np.sum((levels[rows, None, :] != self.levels) & (self.levels != ANY), axis=2)
            admitted[rows] = np.all(differ >= self.distances, axis=1)
        return admitted

    @cached_property
    def _keys(self) -> Indices | None:
        """Keys of the exclusions, (E,), if each forbids one level vector only: levels with other keys need no comparison."""
        return None if np.any(self.levels == ANY) or np.any(self.distances != 1) else _hashed(self.levels)


def _hashed(levels: Indices) -> Indices:
    """Return numbers that are equal for equal levels, and rarely else: (R, G) -> (R,)."""
    return np.asarray(levels @ np.cumprod(np.full(levels.shape[1], 1_000_003)))


@dataclass(frozen=True)
class MinimumDistance:
    """Minimum distance between proposals that are evaluated at the same time.

    Attributes:
        configs: configurations to keep the distance from.
        distance: number of discrete parameters (one-hot groups) in which a proposal must differ from each of them.
    """

    configs: tuple[Configuration, ...]
    distance: int
