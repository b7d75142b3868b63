"""Acquisition inputs: the models and samples of a proposal from which an acquisition function is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mipcash.program.forms import Vector
from mipcash.program.points import Point
from mipcash.surrogates.protocols import MixedFunction, Outcomes, Posterior


@dataclass(frozen=True)
class Limited:
    """A constrained output, with the bounds that it should satisfy.

    Attributes:
        posterior: the posterior of the output.
        low, high: bounds on the posterior's scale; may be infinite.
    """

    posterior: Posterior
    low: float
    high: float


@dataclass(frozen=True)
class Drawn:
    """A posterior sample of the loss, and its minimum over the legal points.

    Attributes:
        sample: the function.
        point: the minimiser that was found.
        value: the sample's value there.
    """

    sample: MixedFunction
    point: Point
    value: float


@dataclass(frozen=True)
class Fantasies:
    """K draws of the outcomes of pending evaluations of the loss.

    Attributes:
        outcomes: the posteriors of the loss given each draw.
        best: ``AcquisitionInputs.best`` given each draw, shape (K,).
    """

    outcomes: Outcomes
    best: Vector


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
        fantasies: draws of pending evaluations; None if nothing is pending.
    """

    loss: Posterior
    best: float
    limited: Mapping[str, Limited] = field(default_factory=dict)
    drawn: Sequence[Drawn] = ()
    joint: Sequence[Mapping[str, MixedFunction]] = ()
    fantasies: Fantasies | None = None
