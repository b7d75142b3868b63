"""Minimisation of a function under constraints given by other functions, by an exact penalty on the violation.

Notation
    a (B,)    the function to be minimised: a sample of the loss
    e_i       excess of an output over a bound of outcome constraint i, by a sample of the output
    v = sum_i max(0, e_i)     violation, on the posteriors' scales, on which outputs have unit variance

    value = a + WEIGHT v      (exact penalty: it has the constrained minimiser if the constraints' multipliers are below WEIGHT)

If no point is feasible, the points with the smallest violation have the lowest values.

With samples as a and e_i this is the selection of SCBO (Eriksson and Poloczek 2021, Section 3): the lowest sampled loss of the
candidates that are feasible by their samples, else the smallest total violation. Here it is minimised over all legal points
instead of a finite set of candidates, and without trust regions.

Samples of the structured part q~ do not interpolate the observations, so the conditional mean of the residual is added:

    q~(x) = q0(x) + K(x, X) w    the sample (``mipcash.surrogates.structured.functions.surface.Surface``)
    f~(x) = q~(x) + R(x, X) w    interpolates the observations

Only the residual's variation between observations is left out. R is not quadratic, so a MIP cannot minimise f~. Far from all
observations the residual is at its mean, 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mipcash.acquisition.acquisition import Acquisition
from mipcash.acquisition.constrained import Limited
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Section
from mipcash.surrogates.structured.encoded import Encoded
from mipcash.surrogates.structured.functions.sections import ResidualSection
from mipcash.surrogates.structured.functions.surface import Surface


@dataclass(frozen=True)
class ResidualSample:
    """The sample f~, an ``mipcash.acquisition.acquisition.Acquisition``.

    Attributes:
        surface: q~.
    """

    surface: Surface

    def values(self, points: Points) -> Vector:
        """Return f~ at a batch: shape (B,)."""
        s = self.surface
        residual = s.kernel.residual(Encoded.of(s.kernel.structure, points), s.x)
        return np.asarray(s.values(points) + residual @ s.weights)

    def section(self, z: Vector) -> Section:
        """Return f~ at fixed binaries, (n_z,)."""
        s = self.surface
        point = Encoded.at(s.kernel.structure, z, np.zeros(s.x.u.shape[1]))
        structured, residual = s.section(z), ResidualSection(s.kernel, point, s.x)

        def at(u: Vector) -> tuple[float, Vector]:
            (value, gradient), (k, slope) = structured(u), residual(u)
            return value + float(k @ s.weights), gradient + s.weights @ slope

        return at


WEIGHT = 100.0
"""Weight of the violation relative to the loss; both have unit variance on their scales."""


@dataclass(frozen=True)
class FeasibleFirst:
    """Penalised function of the module's description, an ``mipcash.acquisition.acquisition.Acquisition``.

    Attributes:
        function: a.
        limits: the outcome constraints, each with its output as a function of the points.
    """

    function: Acquisition
    limits: Sequence[tuple[Limited, Acquisition]]

    @classmethod
    def sampled(cls, loss: Surface, outputs: Mapping[str, Surface], limited: Mapping[str, Limited]) -> FeasibleFirst:
        """Return the function for one joint draw of the loss and every constrained output."""
        return cls(ResidualSample(loss), [(each, ResidualSample(outputs[name])) for name, each in limited.items()])

    def values(self, points: Points) -> Vector:
        """Return the penalised values at a batch: shape (B,)."""
        return np.asarray(self.function.values(points) + WEIGHT * self.violation(points))

    def violation(self, points: Points) -> Vector:
        """Return v: shape (B,)."""
        total = np.zeros(len(points))
        for limit, function in self.limits:
            output = function.values(points)
            total += np.maximum(0.0, np.maximum(output - limit.high, limit.low - output))
        return total

    def section(self, z: Vector) -> Section:
        """Return the function at fixed binaries, (n_z,); its gradient is one-sided at a bound."""
        function = self.function.section(z)
        limits = [(limit, output.section(z)) for limit, output in self.limits]

        def at(u: Vector) -> tuple[float, Vector]:
            value, gradient = function(u)
            for limit, section in limits:
                output, slope = section(u)
                beyond, sign = max((output - limit.high, 1.0), (limit.low - output, -1.0))
                if beyond > 0.0:
                    value, gradient = value + WEIGHT * beyond, gradient + WEIGHT * sign * slope
            return value, gradient

        return at
