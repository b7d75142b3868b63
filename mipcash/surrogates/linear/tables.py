"""What a fit of the linear model needs of a set of points, whatever was observed there."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mipcash.program.forms import Indices, Vector
from mipcash.program.points import Points
from mipcash.program.program import BinaryProgram
from mipcash.program.unit_scale import UnitScale
from mipcash.surrogates.interactions import Interactions
from mipcash.surrogates.linear.evidence import Grams
from mipcash.surrogates.linear.features.discrete import DiscreteFeatures


@dataclass(frozen=True)
class Tables:
    """t points and what is known of them, each made when it is first asked for.

    Attributes:
        program, scale: the space.
        declared: pairs that may interact; None: all.
        points: t of them.
    """

    program: BinaryProgram
    scale: UnitScale
    declared: Interactions | None
    points: Points
    _parts: dict[bytes, Tables] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.points)

    def part(self, rows: Indices) -> Tables:
        """The tables of some of the points, increasing rows; whoever asks for the same ones gets the same tables."""
        key = np.asarray(rows, dtype=np.int64).tobytes()
        if key not in self._parts:
            self._parts[key] = Tables(self.program, self.scale, self.declared, self.points[rows])
        return self._parts[key]

    @cached_property
    def z(self) -> Vector:
        """Binaries, shape (t, n_z)."""
        return self.points.one_hot(self.program)

    @cached_property
    def grams(self) -> Grams:
        """Everything in the fitted kernel that no hyperparameter changes."""
        return Grams.of(self.program, self.scale, self.z, self.points.units, self.declared)

    @cached_property
    def context(self) -> Vector:
        """One-hot features without products, which a neural map learns beside: shape (t, p)."""
        return DiscreteFeatures.one_hot(self.program, ())(self.z)
