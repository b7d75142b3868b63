"""The continuous side of a configuration: tuned numbers on the unit scale.

Notation
    u (B, D)    unit values of the D tuned numbers (reals and wide integers), declaration order; 0.5 where inactive
    on (B, D)   1 where the number is active

A wide integer takes the unit value of its rounded value, so that a surrogate is constant between integers
(Garrido-Merchan and Hernandez-Lobato 2020).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mipcash.modelling.declaration import Declaration
from mipcash.modelling.domains import Configuration, Integer, Real
from mipcash.program.forms import Indices, Vector
from mipcash.program.program import BinaryProgram, Indicator

INACTIVE = 0.5
RESOLVED = 2
"""Conditions of a number that a quadratic form can multiply."""


@dataclass(frozen=True)
class UnitScale:
    """Maps configurations to unit values and back.

    Attributes:
        labels: D names.
        domains: D domains.
        conditions: D tuples of indicators; () for a number that is always active.
    """

    labels: tuple[str, ...]
    domains: tuple[Real | Integer, ...]
    conditions: tuple[tuple[Indicator, ...], ...]

    @classmethod
    def of(cls, declaration: Declaration, program: BinaryProgram) -> UnitScale:
        tuned = [n for n in declaration.numbers if n.tuned]
        return cls(
            tuple(n.label for n in tuned),
            tuple(n.domain for n in tuned),
            tuple(program.conditions.get(n.label, ()) for n in tuned),
        )

    def __len__(self) -> int:
        return len(self.labels)

    def units(self, configs: Sequence[Configuration]) -> Vector:
        """Unit values, shape (B, D)."""
        u = np.full((len(configs), len(self)), INACTIVE)
        for b, config in enumerate(configs):
            for d, (label, domain) in enumerate(zip(self.labels, self.domains, strict=True)):
                if label in config:
                    u[b, d] = domain.to_unit(config[label])
        return u

    def active(self, z: Vector) -> Vector:
        """Activity of the numbers: (B, n_z) -> (B, D)."""
        return activity(self.conditions, z)

    def natural(self, u: Vector) -> dict[str, float]:
        """Natural values (integers rounded) of one point's unit values, shape (D,)."""
        return {l: float(d.from_unit(v)) for l, d, v in zip(self.labels, self.domains, u, strict=True)}

    def rounded(self, u: Vector) -> Vector:
        """Unit values with the integers at their rounded values: (D,) -> (D,)."""
        pairs = zip(self.domains, u, strict=True)
        return np.array([d.to_unit(d.from_unit(v)) if isinstance(d, Integer) else v for d, v in pairs])

    def relaxed(self, d: int, unit: float) -> float:
        """Natural value of number d, an integer not rounded."""
        low, high = float(self.domains[d].low), float(self.domains[d].high)
        if self.domains[d].log:
            return float(np.exp(np.log(low) + unit * (np.log(high) - np.log(low))))
        return low + unit * (high - low)

    def slope(self, d: int, natural: float) -> float:
        """Derivative of the relaxed value of number d with respect to its unit value, at a natural value."""
        domain = self.domains[d]
        if domain.log:
            return natural * (math.log(domain.high) - math.log(domain.low))
        return float(domain.high - domain.low)

    def to_unit(self, values: Mapping[str, float]) -> Vector:
        """Unit values of natural ones; 0.5 for a label that is absent. Shape (D,)."""
        pairs = zip(self.labels, self.domains, strict=True)
        return np.array([d.to_unit(values[l]) if l in values else INACTIVE for l, d in pairs])


def activity_product(conditions: Sequence[Indicator], n: int) -> tuple[float, Vector, tuple[Indices, Indices, Vector]]:
    """on(z) of at most RESOLVED conditions: constant, linear part (n,), and products as rows, columns and values."""
    empty = np.zeros(0, dtype=np.int64)
    linear = np.zeros(n)
    if not conditions:
        return 1.0, linear, (empty, empty, np.zeros(0))
    a = conditions[0]
    if len(conditions) == 1:
        np.add.at(linear, a.columns, a.coefficients)
        return a.constant, linear, (empty, empty, np.zeros(0))
    b = conditions[1]
    np.add.at(linear, a.columns, a.coefficients * b.constant)
    np.add.at(linear, b.columns, b.coefficients * a.constant)
    rows, cols = np.repeat(a.columns, len(b.columns)), np.tile(b.columns, len(a.columns))
    return a.constant * b.constant, linear, (rows, cols, np.outer(a.coefficients, b.coefficients).ravel())


def decoded(program: BinaryProgram, scale: UnitScale, levels: Indices, u: Vector) -> Configuration:
    """Effective levels (G,) and unit values (D,) as a configuration without its inactive numbers; it may be illegal."""
    on = scale.active(program.one_hot(levels)[None])[0] > 0
    natural = scale.natural(u)
    return program.decode(levels, {l: natural[l] for l, a in zip(scale.labels, on, strict=True) if a})


def activity(conditions: Sequence[Sequence[Indicator]], z: Vector) -> Vector:
    """Whether all conditions of each number hold: (B, n_z) -> (B, D)."""
    on = np.ones((len(z), len(conditions)))
    for d, indicators in enumerate(conditions):
        for indicator in indicators:
            on[:, d] *= indicator.holds(z)
    return on


def activity_at(program: BinaryProgram, conditions: Sequence[Sequence[Indicator]], levels: Indices) -> Vector:
    """The same of levels: (B, G) -> (B, D)."""
    on = np.ones((len(levels), len(conditions)))
    for d, indicators in enumerate(conditions):
        for indicator in indicators:
            on[:, d] *= indicator.holds_at(program, levels)
    return on


Selection = Indices
"""Indices of the numbers that a feature map sees."""
