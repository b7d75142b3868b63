"""Tables over pairs of points for the evidence, independent of observed values and hyperparameters.

Notation
    t points;   n = t (t + 1) / 2 pairs i >= j of them: half of each matrix, as all are symmetric
    G groups, J numbers (numerical parameters), d_g distances of levels, u_j unit values

Several outputs observed at the same points share one ``Tables``, and so do fits with different warps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mipcash.program.forms import Indices, Vector
from mipcash.program.points import Points
from mipcash.program.recent import Recent
from mipcash.surrogates.level_kernels import LevelDistance, LevelKernel
from mipcash.surrogates.structured.encoded import Encoded
from mipcash.surrogates.structured.number_pairs import NumberPairs
from mipcash.surrogates.structured.structure import Structure

T = TypeVar("T", bound=np.generic)
HELD = 2
"""Number of settings of the length-scales whose level covariances are cached."""


@dataclass(frozen=True)
class Tables:
    """Tables over the pairs of t points, each computed on first use.

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
        """Return the tables of some of the points, with increasing rows. Equal rows return the same object."""
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
    def places(self) -> Indices:
        """Indices of the pairs in a flattened matrix over the points, row by row: (n,)."""
        rows, cols = self.pairs
        return np.asarray(rows * len(self) + cols)

    @cached_property
    def twice(self) -> Vector:
        """Multiplicity of each pair in a symmetric matrix: 1 on the diagonal, else 2. (n,)"""
        rows, cols = self.pairs
        return np.where(rows == cols, 1.0, 2.0)

    @cached_property
    def entries(self) -> Indices:
        """Index of each pair's entry in a flattened matrix over the levels, row by row, per group: shape (G, n)."""
        levels, sizes = self.x.levels.T, self.structure.program.sizes
        return self._at_pairs(levels[:, :, None] * sizes[:, None, None] + levels[:, None, :])

    def gram(self, g: int, k: LevelKernel | LevelDistance) -> Vector:
        """Return a matrix over the levels of group g, evaluated at the pairs: (n,)."""
        return k.matrix.ravel().take(self.entries[g]) if k.small else k.at(*np.divmod(self.entries[g], k.group.size))

    def summed(self, g: int, weights: Vector, k: LevelKernel) -> float:
        """Return the sum over pairs of weights (n,) times the derivative of k with respect to log lo."""
        if not k.small:
            return float(weights @ k.slope_at(*np.divmod(self.entries[g], k.group.size)))
        slope = k.slopes
        return float(np.bincount(self.entries[g], weights, minlength=slope.size) @ slope.ravel())

    def grams(self, blocks: Sequence[LevelKernel | LevelDistance]) -> Vector:
        """Return one matrix per group, evaluated at the pairs: shape (G, n)."""
        if not blocks:
            return np.zeros((0, len(self.places)))
        columns = [k.columns(at) for k, at in zip(blocks, self.x.levels.T, strict=True)]
        return self._at_pairs(np.concatenate(columns)[self.x.columns.T])

    def grams_at(self, lengths: Vector) -> tuple[Vector, Vector]:
        """Return k_g at the pairs, and its squares, for log length-scales lo of the ordered groups, (O,); cached."""

        def made() -> tuple[Vector, Vector]:
            grams = self.grams(self.structure.blocks_at(np.exp(lengths)))
            return grams, grams**2

        return self._grams.get(lengths.tobytes(), made)

    @cached_property
    def _grams(self) -> Recent[tuple[Vector, Vector]]:
        return Recent(HELD)

    @cached_property
    def distances(self) -> Vector:
        """d_g at the pairs, shape (G, n)."""
        return self.grams(self.structure.distances)

    @cached_property
    def squares(self) -> Vector:
        """(u_j - u'_j)^2 at the pairs, shape (J, n)."""
        shown = self.x.shown.T
        return self._at_pairs(shown[:, :, None] - shown[:, None, :]) ** 2

    @cached_property
    def joint_squares(self) -> Vector:
        """(u_j - u'_j)^2 of the joint numbers, shape (D, n)."""
        return np.asarray(self.squares[self.structure.joint])

    @cached_property
    def numbers(self) -> NumberPairs:
        """The pairs in which numbers are on at both points."""
        return NumberPairs(self.x.on, *self.pairs, self.squares, self.structure.degrees)

    def _at_pairs(self, matrices: NDArray[T]) -> NDArray[T]:
        """Return the entries at the pairs of matrices over the points: (k, t, t) -> (k, n)."""
        return matrices.reshape(len(matrices), len(self) ** 2).take(self.places, axis=1)
