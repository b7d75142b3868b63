"""The space of ADMM's variables: legal points as vectors, such as x and every z_i, and distances between them.

Notation
    p (B, P)        coordinates. An ordered group has one, its level from 0 to 1. A category has one per level, one-hot over the
                    root of 2. A numerical parameter has one, its unit value times its width. The distance of two categories
                    equals that of the two ends of an ordered group.
    z (n_z,), u (D,)    one-hot binaries and unit values of a point, as everywhere.
    q(p) = sum_i (weight / 2) ||p - c_i||^2       a penalty towards centres c_i (N, P), separable by groups and numerical parameters

Inactive coordinates are 1/2 before scaling. The quadratic is linear in the binaries at fixed numerical values, so every search
supports it.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mipcash.methods.admmbo.settings import NATURAL
from mipcash.optimizers.unit_cube import level_table
from mipcash.program.forms import Indices, Vector
from mipcash.program.points import Points
from mipcash.program.program import BinaryProgram
from mipcash.program.unit_scale import INACTIVE, UnitScale
from mipcash.space.domain import Domain
from mipcash.surrogates.protocols import Section


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The map from points to coordinates (see the module's notation).

    Attributes:
        program, scale: of the space.
        tables: coordinates of every level of each group.
        widths: of the numerical parameters, shape (D,).
    """

    program: BinaryProgram
    scale: UnitScale
    tables: tuple[Vector, ...]
    widths: Vector

    @classmethod
    def of(cls, domain: Domain, kind: str) -> Coordinates:
        """Make the coordinates of a domain.

        Args:
            kind: ``unit`` or ``natural`` numerical parameters.
        """
        tables = [level_table(g) * (1.0 if g.ordered else math.sqrt(0.5)) for g in domain.program.groups]
        ends = [(float(d.low), float(d.high), d.log) for d in domain.scale.domains]
        spans = [math.log(high / low) if log else high - low for low, high, log in ends]
        widths = np.array(spans, dtype=float) if kind == NATURAL else np.ones(len(spans))
        return cls(domain.program, domain.scale, tuple(tables), widths)

    @property
    def size(self) -> int:
        """Number of coordinates P."""
        return int(self._spans[-1]) + len(self.widths)

    def __call__(self, points: Points) -> Vector:
        """Return the coordinates of points, (B, P)."""
        parts = [table[points.levels[:, g]] for g, table in enumerate(self.tables)]
        return np.concatenate([*parts, self.numbers(points) * self.widths], axis=1)

    def numbers(self, points: Points) -> Vector:
        """Return unit values, 1/2 where inactive: (B, D)."""
        active = self.scale.active_at(self.program, points.levels) > 0
        return np.where(active, points.units, INACTIVE)

    def parts(self, centre: Vector) -> tuple[list[Vector], Vector]:
        """Return the coordinates of each group, and of the numerical parameters, of a vector (P,)."""
        groups = [centre[a:b] for a, b in itertools.pairwise(self._spans)]
        return groups, centre[self._spans[-1] :]

    @cached_property
    def _spans(self) -> Indices:
        return np.cumsum([0, *(t.shape[1] for t in self.tables)])


@dataclass(frozen=True, eq=False)
class Quadratic:
    """q, as an ``mipcash.acquisition.acquisition.Acquisition`` (see the module's notation).

    Attributes:
        space: the coordinates.
        weight: rho, on the scale of the function that it is added to.
        centres: shape (N, P).
    """

    space: Coordinates
    weight: float
    centres: Vector

    def at(self, vectors: Vector) -> Vector:
        """Return q at coordinates, (B, P) -> (B,)."""
        apart = vectors - self.mean
        return np.asarray(0.5 * self.weight * (len(self.centres) * np.sum(apart**2, axis=1) + self.spread))

    def values(self, points: Points) -> Vector:
        """Return q at a batch: shape (B,)."""
        return self.at(self.space(points))

    def section(self, z: Vector) -> Section:
        """Return q at fixed binaries, (n_z,), as a function of the numerical parameters with its gradient."""
        scale, stiffness = self.space.scale, self.weight * len(self.centres)
        active = scale.active(z[None])[0] > 0
        constant = 0.5 * self.weight * self.spread + float(self.by_column @ z)
        centre, widths = self.space.parts(self.mean)[1], self.space.widths

        def at(u: Vector) -> tuple[float, Vector]:
            apart = np.where(active, u, INACTIVE) * widths - centre
            return constant + 0.5 * stiffness * float(apart @ apart), stiffness * apart * widths * active

        return at

    @cached_property
    def mean(self) -> Vector:
        """Mean of the centres, (P,); q is a quadratic about it, plus a constant."""
        return np.asarray(self.centres.mean(axis=0)) if len(self.centres) else np.zeros(self.space.size)

    @cached_property
    def spread(self) -> float:
        """sum_i ||c_i - mean||^2."""
        return float(np.sum((self.centres - self.mean) ** 2))

    @cached_property
    def by_column(self) -> Vector:
        """Contribution of each level to q: shape (n_z,)."""
        groups, _ = self.space.parts(self.mean)
        apart = [np.sum((t - c) ** 2, axis=1) for t, c in zip(self.space.tables, groups, strict=True)]
        return 0.5 * self.weight * len(self.centres) * np.concatenate([*apart, np.zeros(0)])
