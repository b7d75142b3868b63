"""What the evidence needs of a set of points, whatever was observed there and at whatever hyperparameters.

Notation
    t points;   n = t (t + 1) / 2 pairs i >= j of them: all matrices are symmetric, so that half of each is enough
    G groups, J numbers, d_g distances of levels, u_j unit values

Several outputs that are observed at the same points share one :class:`Tables`; so do the fits under several warps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mipcash.program.forms import Indices, Vector
from mipcash.program.points import Points
from mipcash.surrogates.level_kernels import LevelDistance, LevelKernel
from mipcash.surrogates.structured.kernel import Encoded
from mipcash.surrogates.structured.structure import Structure


@dataclass(frozen=True)
class Tables:
    """Tables over the pairs of t points, each made when it is first asked for.

    Attributes:
        structure: the space.
        x: the points.
    """

    structure: Structure
    x: Encoded
    _parts: dict[bytes, Tables] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, structure: Structure, points: Points) -> Tables:
        return cls(structure, Encoded.of(structure, points))

    def __len__(self) -> int:
        return len(self.x)

    def part(self, rows: Indices) -> Tables:
        """The tables of some of the points, increasing rows; whoever asks for the same ones gets the same tables."""
        if len(rows) == len(self):
            return self
        key = np.asarray(rows, dtype=np.int64).tobytes()
        if key not in self._parts:
            self._parts[key] = Tables(self.structure, self.x[rows])
        return self._parts[key]

    @cached_property
    def pairs(self) -> tuple[Indices, Indices]:
        """Pairs i >= j of points: (n,), (n,)."""
        return np.tril_indices(len(self))

    @cached_property
    def entries(self) -> list[Indices]:
        """Which entry of a matrix over its levels each pair reads, row by row, per group: G arrays of shape (n,)."""
        rows, cols = self.pairs
        groups = zip(self.x.levels.T, self.structure.groups, strict=True)
        return [at[rows] * group.size + at[cols] for at, group in groups]

    def gram(self, g: int, k: LevelKernel | LevelDistance) -> Vector:
        """A matrix over the levels of group g, at the pairs: (n,)."""
        return (
            np.asarray(k.matrix.ravel()[self.entries[g]])
            if k.small
            else k.at(*np.divmod(self.entries[g], k.group.size))
        )

    def summed(self, g: int, weights: Vector, k: LevelKernel) -> float:
        """The derivative of k by log lo at the pairs, weighed (n,): by entry first where its matrix is formed."""
        if not k.small:
            return float(weights @ k.slope_at(*np.divmod(self.entries[g], k.group.size)))
        slope = k.dense[1]
        return float(np.bincount(self.entries[g], weights, minlength=slope.size) @ slope.ravel())

    def grams(self, blocks: Sequence[LevelKernel | LevelDistance]) -> Vector:
        """One matrix per group, at the pairs: shape (G, n)."""
        layers = [self.gram(g, k) for g, k in enumerate(blocks)]
        return np.array(layers).reshape(len(layers), len(self.pairs[0]))

    @cached_property
    def median_grams(self) -> Vector:
        """k_g at the medians of the length-scales lo, shape (G, n)."""
        return self.grams(self.structure.fixed_blocks)

    @cached_property
    def distances(self) -> Vector:
        """d_g at the pairs, shape (G, n)."""
        return self.grams(self.structure.distances)

    @cached_property
    def squares(self) -> Vector:
        """(u_j - u'_j)^2 at the pairs, shape (J, n)."""
        rows, cols = self.pairs
        return np.asarray((self.x.shown[rows] - self.x.shown[cols]).T ** 2)

    @cached_property
    def active_squares(self) -> list[tuple[Indices | slice, Vector]]:
        """Per number: the pairs in which it is on at both points, and (u_j - u'_j)^2 there."""
        rows, cols = self.pairs
        found: list[tuple[Indices | slice, Vector]] = []
        for active, squares in zip(self.x.on.T > 0, self.squares, strict=True):
            both = np.flatnonzero(active[rows] & active[cols])
            on = slice(None) if len(both) == len(rows) else both
            found.append((on, squares[on]))
        return found
