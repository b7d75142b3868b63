"""A sample of the structured part with the mean of the residual, given what that sample leaves of the observations.

Notation
    q~(x) = q0(x) + K(x, X) w    the sample (:class:`mipcash.surrogates.structured.functions.surface.Surface`)
    f~(x) = q~(x) + R(x, X) w    near the observations it runs through them, which q~ alone need not

No MIP takes R. The residual of a point that is far from all observations stays at its mean, 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Section
from mipcash.surrogates.structured.encoded import Encoded
from mipcash.surrogates.structured.functions.sections import ResidualSection
from mipcash.surrogates.structured.functions.surface import Surface


@dataclass(frozen=True)
class WholeSample:
    """f~ as an :class:`mipcash.acquisition.acquisition.Acquisition`.

    Attributes:
        surface: q~.
    """

    surface: Surface

    def values(self, points: Points) -> Vector:
        """At a batch: shape (B,)."""
        s = self.surface
        residual = s.kernel.residual(Encoded.of(s.kernel.structure, points), s.x)
        return np.asarray(s.values(points) + residual @ s.weights)

    def section(self, z: Vector) -> Section:
        """At fixed binaries, (n_z,)."""
        s = self.surface
        point = Encoded.at(s.kernel.structure, z, np.zeros(s.x.u.shape[1]))
        structured, residual = s.section(z), ResidualSection.of(s.kernel, point, s.x)

        def at(u: Vector) -> tuple[float, Vector]:
            (value, gradient), (k, slope) = structured(u), residual(u)
            return value + float(k @ s.weights), gradient + s.weights @ slope

        return at
