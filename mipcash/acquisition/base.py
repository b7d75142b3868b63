"""What the searches know of a function that they minimise: the contract of every acquisition function.

Notation
    z (B, n_z)    binaries of B points;   u (B, D) their numbers on the unit scale;   what is better is lower

An :class:`Acquisition` owns whatever models it is made of: one posterior or several, samples of a minimum, multipliers.
The mixed search asks it for values over points and for its sections, and for nothing else. Where a function is quadratic
in the binaries besides, as posterior means and samples are, it is a :class:`MixedFunction`, which a MIP can take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from mipcash.program.forms import QuadraticForm, Vector

Section = Callable[[Vector], tuple[float, Vector]]
"""A function of the numbers alone, with its gradient: (D,) -> scalar, (D,)."""


class Sectioned(Protocol):
    """What the continuous step needs of a function."""

    def section(self, z: Vector) -> Section:
        """The function at fixed binaries, (n_z,)."""


class Acquisition(Sectioned, Protocol):
    """A function over points that the mixed search minimises."""

    def values(self, z: Vector, u: Vector) -> Vector:
        """Values at a batch: (B, n_z), (B, D) -> (B,)."""


class MixedFunction(Sectioned, Protocol):
    """A function over a mixed space that is quadratic in the binaries: a posterior sample or mean."""

    def value(self, z: Vector, u: Vector) -> float:
        """The function at one point, (n_z,) and (D,)."""

    def form_at(self, u: Vector) -> QuadraticForm:
        """The function at fixed numbers, over the base columns of the program."""
