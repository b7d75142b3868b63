"""Points of a compiled space: encoded configurations, which searches move and surrogates learn from.

Notation
    levels (B, G)   level of each of the G one-hot groups; its last column, "off", if a group is inactive
    units (B, D)    the D numbers on the unit scale (``mipcash.program.unit_scale``); 0.5 if inactive
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from mipcash.program.forms import Indices, Vector
from mipcash.program.program import BinaryProgram


@dataclass(frozen=True, eq=False)
class Point:
    """One row of ``Points``.

    Attributes:
        levels: shape (G,).
        units: shape (D,).
    """

    levels: Indices
    units: Vector

    def one_hot(self, program: BinaryProgram) -> Vector:
        """Return the binaries of the levels, shape (n_z,)."""
        return program.one_hot(self.levels)


@dataclass(frozen=True, eq=False)
class Points:
    """A batch of points (see the module's notation).

    Attributes:
        levels: shape (B, G).
        units: shape (B, D).

    Raises:
        ValueError: levels and units have different numbers of points.
    """

    levels: Indices
    units: Vector

    def __post_init__(self) -> None:
        if self.levels.ndim != 2 or self.units.ndim != 2 or len(self.levels) != len(self.units):
            raise ValueError(
                f"levels {self.levels.shape} and units {self.units.shape} do not go together: give (B, G) and (B, D)"
            )

    @classmethod
    def of(cls, points: Sequence[Point], groups: int, numbers: int) -> Points:
        """Return a batch of single points, possibly none.

        Args:
            groups, numbers: G and D.
        """
        levels = np.array([p.levels for p in points], dtype=np.int64).reshape(len(points), groups)
        units = np.array([p.units for p in points], dtype=float).reshape(len(points), numbers)
        return cls(levels, units)

    @classmethod
    def joined(cls, *parts: Points) -> Points:
        """Concatenate batches, at least one."""
        return cls(np.concatenate([p.levels for p in parts]), np.concatenate([p.units for p in parts]))

    def one_hot(self, program: BinaryProgram) -> Vector:
        """Return the binaries of the levels, shape (B, n_z)."""
        return program.one_hot(self.levels)

    def __len__(self) -> int:
        return len(self.levels)

    def __iter__(self) -> Iterator[Point]:
        return (Point(levels, units) for levels, units in zip(self.levels, self.units, strict=True))

    @overload
    def __getitem__(self, rows: int | np.integer) -> Point: ...

    @overload
    def __getitem__(self, rows: slice | Sequence[int] | Indices | NDArray[np.bool_]) -> Points: ...

    def __getitem__(
        self, rows: int | np.integer | slice | Sequence[int] | Indices | NDArray[np.bool_]
    ) -> Point | Points:
        """Return one point for an integer, otherwise the batch of these rows (with NumPy's indexing)."""
        if isinstance(rows, (int, np.integer)):
            return Point(self.levels[rows], self.units[rows])
        chosen = rows if isinstance(rows, (slice, np.ndarray)) else np.array(rows, dtype=np.int64)
        return Points(self.levels[chosen], self.units[chosen])
