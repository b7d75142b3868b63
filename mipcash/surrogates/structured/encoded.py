"""Points in the arrays that the structured kernel uses.

Notation
    B points of G groups and J numbers (numerical parameters);   u_j unit values;   on_j activities in the kernel K (`kernel.py`)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from mipcash.program.forms import Indices, Vector
from mipcash.program.points import Points
from mipcash.program.unit_scale import INACTIVE
from mipcash.surrogates.structured.structure import Structure

SPARSE = 5
"""A table is multiplied row by row if the levels that are on are fewer than the binaries by this factor."""


def distinct_rows(rows: Vector) -> tuple[Vector, Indices]:
    """Return the distinct rows of a matrix (B, J), and the index of each row among them: (U, J), (B,).

    Rows are sorted by a scalar hash. They are compared in full only if two different rows have the same hash.
    """
    key = rows @ np.cos(np.arange(1.0, 1.0 + rows.shape[1]))
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    if np.array_equal(rows[first][inverse], rows):
        return rows[first], inverse
    unique, inverse = np.unique(rows, axis=0, return_inverse=True)
    return unique, inverse


@dataclass(frozen=True)
class Encoded:
    """A batch of points, encoded for the kernel.

    Attributes:
        structure: the space.
        levels: shape (B, G).
        u: unit values, shape (B, J).
        on: on_j of K, shape (B, J).
        active: 1 for active numbers, else 0, shape (B, J).
    """

    structure: Structure
    levels: Indices
    u: Vector
    on: Vector
    active: Vector

    @classmethod
    def of(cls, structure: Structure, points: Points) -> Encoded:
        active = structure.activity(points.levels)
        return cls(structure, points.levels, points.units, structure.on(active), active)

    @classmethod
    def at(cls, structure: Structure, z: Vector, u: Vector) -> Encoded:
        """Return one point, z (n_z,) and u (J,)."""
        return cls.of(structure, Points(structure.program.levels_at(z)[None], u[None]))

    def everywhere(self, u: Vector) -> Encoded:
        """Return one point at u (J,) with every number on, for terms without on_j(z)."""
        ones = np.ones((1, len(u)))
        return Encoded(self.structure, self.levels[:1], u[None], ones, ones)

    @cached_property
    def z(self) -> Vector:
        """Binaries, shape (B, n_z)."""
        return self.structure.program.one_hot(self.levels)

    @cached_property
    def lit(self) -> Vector | sparse.csr_array:
        """Binaries without those of off levels, shape (B, n_z); a sparse matrix if few are on."""
        program = self.structure.program
        on = self.levels != program.off_levels
        count = on.sum(axis=1)
        if SPARSE * count.sum() >= len(self) * program.n_z:
            return self.z * program.active_columns
        ends = np.concatenate([[0], np.cumsum(count)])
        return sparse.csr_array((np.ones(ends[-1]), self.columns[on], ends), shape=(len(self), program.n_z))

    @cached_property
    def columns(self) -> Indices:
        """Columns of the binaries that are one, shape (B, G)."""
        return self.structure.program.starts + self.levels

    @cached_property
    def shown(self) -> Vector:
        """Unit values as in configurations, where an inactive number is in the middle of its range. Shape (B, J)."""
        return np.where(self.active > 0, self.u, INACTIVE)

    @cached_property
    def distinct_shown(self) -> tuple[Vector, Indices | None]:
        """``shown`` and None; or, if points share rows, its distinct rows and the index of each point's row."""
        if len(self) < 2 or 2 * len(self.distinct[0]) > len(self):
            return self.shown, None
        return distinct_rows(self.shown)

    @cached_property
    def distinct(self) -> tuple[Vector, Indices]:
        """Distinct rows of u, shape (U, J), and the index of each point's row, shape (B,)."""
        return distinct_rows(self.u)

    def __len__(self) -> int:
        return len(self.levels)

    def __getitem__(self, rows: Indices | slice) -> Encoded:
        return Encoded(self.structure, self.levels[rows], self.u[rows], self.on[rows], self.active[rows])

    def joined(self, other: Encoded) -> Encoded:
        """Return these points followed by the points of ``other``."""
        levels = np.concatenate([self.levels, other.levels])
        pairs = ((self.u, other.u), (self.on, other.on), (self.active, other.active))
        return Encoded(self.structure, levels, *(np.concatenate(pair) for pair in pairs))
