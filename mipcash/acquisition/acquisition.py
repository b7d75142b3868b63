"""What the searches know of a function that they minimise: the contract of every acquisition function.

Notation
    Points    B of them: levels (B, G), units (B, D);   z (n_z,) binaries of one;   what is better is lower

An :class:`Acquisition` owns whatever models it is made of: one posterior or several, samples of a minimum, multipliers.
The mixed search asks it for values over points and for its sections, and for nothing else. Where a function is quadratic
in the binaries besides, as posterior means and samples are, it is a :class:`mipcash.surrogates.protocols.MixedFunction`, which
a MIP can take.
"""

from __future__ import annotations

from typing import Protocol

from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Sectioned


class Acquisition(Sectioned, Protocol):
    """A function over points that the mixed search minimises."""

    def values(self, points: Points) -> Vector:
        """Values at a batch: shape (B,)."""
