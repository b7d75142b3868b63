"""What an acquisition function may be made of: what was fitted and drawn for a proposal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mipcash.program.forms import Vector
from mipcash.program.points import Point
from mipcash.surrogates.protocols import MixedFunction, Outcomes, Posterior


@dataclass(frozen=True)
class Limited:
    """An output beside the loss that is to stay between two ends.

    Attributes:
        posterior: of the output.
        low, high: on the posterior's scale; infinite where there is no such end.
    """

    posterior: Posterior
    low: float
    high: float


@dataclass(frozen=True)
class Drawn:
    """A posterior sample of the loss, and its least value over the legal points.

    Attributes:
        sample: the function.
        point: where the least value was found.
        value: that value.
    """

    sample: MixedFunction
    point: Point
    value: float


@dataclass(frozen=True)
class Fantasies:
    """What pending evaluations of the loss may come to, drawn K times.

    Attributes:
        outcomes: the posteriors of the loss given each draw.
        best: ``Ingredients.best`` given each, shape (K,).
    """

    outcomes: Outcomes
    best: Vector


@dataclass(frozen=True)
class Ingredients:
    """What an acquisition function may be made of.

    Attributes:
        loss: the posterior of the loss; where evaluations are pending, given their means.
        best: the least mean of the loss at an observation that keeps all limits; inf where none does.
        limited: the other outputs that count, by name.
        drawn: samples of the loss' posterior.
        joint: to each of these, a sample of every output of ``limited``, by name; only for what asks for them.
        fantasies: of what is pending; None: nothing is.
    """

    loss: Posterior
    best: float
    limited: Mapping[str, Limited] = field(default_factory=dict)
    drawn: Sequence[Drawn] = ()
    joint: Sequence[Mapping[str, MixedFunction]] = ()
    fantasies: Fantasies | None = None
