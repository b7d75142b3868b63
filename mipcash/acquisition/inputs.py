"""Acquisition inputs: the models and samples of a proposal from which an acquisition function is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mipcash.acquisition.acquisition import Acquisition
from mipcash.acquisition.constrained import Limited
from mipcash.program.points import Point
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
