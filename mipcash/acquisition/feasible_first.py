"""The least of a function over what another says keeps the limits; where nothing does, what violates them by the least.

Notation
    a (B,)    what is minimised: a sample of the loss
    e_i       how far limit i is exceeded, by a sample of its output
    v = sum_i max(0, e_i)     violation, on the posteriors' scales, on which outputs have unit variance

    value = a + WEIGHT v      (exact penalty: its minimiser is that under the limits where their multipliers are below WEIGHT)

A sample runs through the observations: the mean of the residual is added to that of the structured part, and only what the residual
may be elsewhere is left out. With samples this is the selection of SCBO (Eriksson and Poloczek 2021, Section 3: the least sampled
loss of the candidates that are feasible by their samples, else the least total violation), minimised over the legal points
themselves in the place of a finite set of candidates, and without trust regions.

A sample of the structured part with the mean of the residual, given what that sample leaves of the observations.

Notation
    q~(x) = q0(x) + K(x, X) w    the sample (:class:`mipcash.surrogates.structured.functions.surface.Surface`)
    f~(x) = q~(x) + R(x, X) w    near the observations it runs through them, which q~ alone need not

No MIP takes R. The residual of a point that is far from all observations stays at its mean, 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mipcash.acquisition.acquisition import Acquisition
from mipcash.acquisition.analytic import SampleAcquisition
from mipcash.acquisition.ingredients import Limited
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import MixedFunction, Section
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


WEIGHT = 100.0
"""Of violation beside losses; both have unit variance on their scales."""


def whole(sample: MixedFunction) -> Acquisition:
    """A sample with the mean of its residual, where its model has one."""
    return WholeSample(sample) if isinstance(sample, Surface) else SampleAcquisition(sample)


@dataclass(frozen=True)
class Excess:
    """How far a function of the points lies beyond one end of a limit.

    Attributes:
        function: that of the output.
        sign: 1 for an upper end, -1 for a lower one.
        end: finite.
    """

    function: Acquisition
    sign: float
    end: float

    @classmethod
    def of(cls, limited: Limited, function: Callable[[float], Acquisition]) -> list[Excess]:
        """Of each finite end of a limit.

        Args:
            function: what is held against an end, of its sign.
        """
        ends = ((1.0, limited.high), (-1.0, limited.low))
        return [cls(function(sign), sign, end) for sign, end in ends if math.isfinite(end)]


@dataclass(frozen=True)
class FeasibleFirst:
    """See the module's description; an :class:`mipcash.acquisition.acquisition.Acquisition`.

    Attributes:
        function: a.
        limits: what gives e.
    """

    function: Acquisition
    limits: Sequence[Excess]

    @classmethod
    def sampled(
        cls, loss: MixedFunction, outputs: Mapping[str, MixedFunction], limited: Mapping[str, Limited]
    ) -> FeasibleFirst:
        """By one joint draw of the loss and of every limited output."""
        drawn = {name: whole(sample) for name, sample in outputs.items()}
        excess = [e for name, l in limited.items() for e in Excess.of(l, lambda _, f=drawn[name]: f)]  # type: ignore[misc]
        return cls(whole(loss), excess)

    def values(self, points: Points) -> Vector:
        """At a batch: shape (B,)."""
        return np.asarray(self.function.values(points) + WEIGHT * self.violation(points))

    def violation(self, points: Points) -> Vector:
        """v: shape (B,)."""
        total = np.zeros(len(points))
        for each in self.limits:
            total += np.maximum(0.0, each.sign * (each.function.values(points) - each.end))
        return total

    def section(self, z: Vector) -> Section:
        """At fixed binaries, (n_z,)."""
        return FeasibleFirstSection(
            self.function.section(z), [(each.function.section(z), each.sign, each.end) for each in self.limits]
        )


@dataclass(frozen=True)
class FeasibleFirstSection:
    """The same as a function of the numbers, with its gradient (of one side, where a limit is met exactly)."""

    function: Section
    limits: Sequence[tuple[Section, float, float]]

    def __call__(self, u: Vector) -> tuple[float, Vector]:
        """(D,) -> scalar, (D,)."""
        value, gradient = self.function(u)
        for section, sign, end in self.limits:
            output, slope = section(u)
            beyond = sign * (output - end)
            if beyond > 0.0:
                value, gradient = value + WEIGHT * beyond, gradient + WEIGHT * sign * slope
        return value, gradient
