"""Acquisition functions by name, each made from the models and samples of a proposal, its acquisition inputs.

    log-ei      Expected improvement. Under outcome constraints it is multiplied by the probability of feasibility, which is used
                alone while no observation is feasible (``mipcash.acquisition.constrained``).
    thompson    A sample of the posterior. Under outcome constraints, SCBO's selection by one joint draw
                (``mipcash.acquisition.feasible_first``).

A subclass of ``hybrid`` may use another function by overriding ``acquisition_of``.

With pending evaluations, expected improvement is averaged over their possible outcomes (``mipcash.optimizers.pending``).

A batch of B points costs O(B t) of the kernel for t observations. With many observations, the function by the posteriors given the
NEAR observations on which a variance is conditioned (``mipcash.surrogates.structured.posterior``) ranks it, O(B NEAR), and only the
KEPT most promising points have their exact values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mipcash.acquisition.acquisition import Acquisition, SumAcquisition, compared
from mipcash.acquisition.analytic import AnalyticAcquisition, LogEI
from mipcash.acquisition.constrained import Limited, LogFeasibility
from mipcash.acquisition.feasible_first import FeasibleFirst
from mipcash.program.forms import Vector
from mipcash.program.points import Point, Points
from mipcash.surrogates.protocols import Section
from mipcash.surrogates.structured.functions.surface import Surface
from mipcash.surrogates.structured.posterior import StructuredPosterior


@dataclass(frozen=True)
class Drawn:
    """A posterior sample of the loss, and its minimum over the legal points.

    Attributes:
        sample: the function.
        point: the minimiser that was found.
        value: the sample's value there.
    """

    sample: Surface
    point: Point
    value: float


@dataclass(frozen=True)
class AcquisitionInputs:
    """Acquisition inputs of a proposal.

    Attributes:
        loss: posterior of the loss, conditioned on the means of pending evaluations.
        best: lowest mean of the loss at a feasible observation; inf if there is none. While no constrained output is known, every
            observation counts.
        limited: constrained outputs and the failure model, by name.
        drawn: samples of the posterior of the loss.
        joint: for each of these, a sample of every output of ``limited``, by name; empty unless the function needs it.
        improvement: expected improvement averaged over draws of pending evaluations; None if nothing is pending.
    """

    loss: StructuredPosterior
    best: float
    limited: Mapping[str, Limited] = field(default_factory=dict)
    drawn: Sequence[Drawn] = ()
    joint: Sequence[Mapping[str, Surface]] = ()
    improvement: Acquisition | None = None


def log_ei(given: AcquisitionInputs) -> Acquisition:
    """Return expected improvement; with pending evaluations, its mean over their possible outcomes.

    Under outcome constraints it is multiplied by the probability of feasibility, which is used alone while no feasible observation
    is known. While no constrained output has been observed, the expected improvement of the loss is returned.
    """
    improvement = given.improvement or AnalyticAcquisition(given.loss, LogEI(given.best))
    if not given.limited:
        return improvement
    feasibility = LogFeasibility([*given.limited.values()])
    return SumAcquisition(improvement, feasibility) if math.isfinite(given.best) else feasibility


def thompson(given: AcquisitionInputs) -> Acquisition:
    """Return the sample with the lowest minimum; at least one sample must have been drawn.

    Under outcome constraints the first sample is used, minimised where the joint draws of the constrained outputs are feasible.
    """
    if given.limited:
        return FeasibleFirst.sampled(given.drawn[0].sample, given.joint[0], given.limited)
    return min(given.drawn, key=lambda d: d.value).sample


ACQUISITIONS: Mapping[str, Callable[[AcquisitionInputs], Acquisition]] = {"log-ei": log_ei, "thompson": thompson}
"""Makers of acquisition functions by name."""


KEPT = 64
"""Number of points of a batch whose values are exact."""


@dataclass(frozen=True)
class Screened:
    """An acquisition function whose large batches are screened.

    Attributes:
        exact: the function.
        rough: an approximation that is cheaper for a batch.
    """

    exact: Acquisition
    rough: Acquisition

    def values(self, points: Points) -> Vector:
        """Return the acquisition at the most promising points of a batch, and inf at the others: shape (B,)."""
        if len(points) <= KEPT:
            return self.exact.values(points)
        rows = np.argsort(compared(self.rough, points), kind="stable")[:KEPT]
        values = np.full(len(points), np.inf)
        values[rows] = self.exact.values(points[rows])
        return values

    def section(self, z: Vector) -> Section:
        """Return the acquisition at fixed binaries, (n_z,)."""
        return self.exact.section(z)


def rough(inputs: AcquisitionInputs) -> AcquisitionInputs | None:
    """Return the inputs of an approximation; None if it would not be cheaper. Draws of pending outcomes are left out."""
    if inputs.loss.near_part is inputs.loss:
        return None
    limited = {name: replace(l, posterior=l.posterior.near_part) for name, l in inputs.limited.items()}
    return replace(inputs, loss=inputs.loss.near_part, limited=limited, improvement=None)
