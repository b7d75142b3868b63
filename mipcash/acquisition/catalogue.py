"""Acquisition functions by name, each made from what was fitted and drawn for a proposal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mipcash.acquisition.analytic import (
    AnalyticAcquisition,
    ConfidenceBound,
    LogEI,
    MaxValueEntropy,
    SampleAcquisition,
)
from mipcash.acquisition.base import Acquisition
from mipcash.program.points import Point
from mipcash.surrogates.base import MixedFunction, Posterior

NOISES = 5.0
"""Standard deviations of the noise by which a sampled minimum lies below the observations at least (Wang and Jegelka 2017)."""


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
class Ingredients:
    """What an acquisition function may be made of.

    Attributes:
        loss: the posterior of the loss.
        best: the least mean of the loss at an observation that keeps all limits; inf where none does.
        limited: the other outputs that count, by name.
        drawn: samples of the loss' posterior.
        kappa: deviations of a confidence bound.
    """

    loss: Posterior
    best: float
    limited: Mapping[str, Limited] = field(default_factory=dict)
    drawn: Sequence[Drawn] = ()
    kappa: float = 2.0


def log_ei(given: Ingredients) -> Acquisition:
    """Expected improvement."""
    return AnalyticAcquisition(given.loss, LogEI(given.best))


def ucb(given: Ingredients) -> Acquisition:
    """The lower confidence bound."""
    return AnalyticAcquisition(given.loss, ConfidenceBound(given.kappa))


def mes(given: Ingredients) -> Acquisition:
    """The entropy of the minimum."""
    # samples are without the residual: their least values may lie above what was observed, the minimum cannot
    least = given.best - NOISES * math.sqrt(given.loss.fitted_noise)
    minima = [min(least, d.value) for d in given.drawn]
    return AnalyticAcquisition(given.loss, MaxValueEntropy(np.array(minima or [least])))


def thompson(given: Ingredients) -> Acquisition:
    """The sample of the least minimum itself; at least one must have been drawn."""
    return SampleAcquisition(min(given.drawn, key=lambda d: d.value).sample)


ACQUISITIONS: Mapping[str, Callable[[Ingredients], Acquisition]] = {
    "log-ei": log_ei,
    "ucb": ucb,
    "mes": mes,
    "thompson": thompson,
}
