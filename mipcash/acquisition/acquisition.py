"""The protocol of acquisition functions, which the searches minimise.

Notation
    Points    B points: levels (B, G), unit values (B, D);   z (n_z,) binaries of one point;   lower values are better

An ``Acquisition`` owns the models it is made of: one or several posteriors, samples of a minimum, multipliers. The mixed
search uses only its values over points and its sections. An acquisition function that is quadratic in the binaries, as posterior
means and samples are, is a ``mipcash.surrogates.protocols.MixedFunction``, which a MIP can minimise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Section, Sectioned


class Acquisition(Sectioned, Protocol):
    """A function over points, minimised by the mixed search."""

    def values(self, points: Points) -> Vector:
        """Return the values at a batch: shape (B,)."""


DIGITS = 7
"""Digits by which values are compared. Processors and versions of numpy differ in the last ones of their sixteen."""
PLACES = 6
"""Decimal places of unit values that are projected. Where several points are equally near, the last digits decide between them."""


def compared(function: Acquisition, points: Points) -> Vector:
    """Return the values at a batch, rounded by ``rounded``: shape (B,)."""
    return rounded(function.values(points))


def rounded(values: Vector) -> Vector:
    """Return values to DIGITS significant digits, so that the same points tie on every processor."""
    digits, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.round(digits, DIGITS), exponent))


@dataclass(frozen=True)
class SumAcquisition:
    """Sum of two functions, such as the negative logarithms of an expected improvement and of a probability of feasibility."""

    one: Acquisition
    other: Acquisition

    def values(self, points: Points) -> Vector:
        """Return the sum at a batch: shape (B,)."""
        return self.one.values(points) + self.other.values(points)

    def section(self, z: Vector) -> Section:
        """Return the sum at fixed binaries, (n_z,)."""
        one, other = self.one.section(z), self.other.section(z)

        def at(u: Vector) -> tuple[float, Vector]:
            (a, by_a), (b, by_b) = one(u), other(u)
            return a + b, by_a + by_b

        return at
