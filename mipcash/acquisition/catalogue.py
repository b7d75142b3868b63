"""Acquisition functions by name, each made from what was fitted and drawn for a proposal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from mipcash.acquisition.analytic import (
    AnalyticAcquisition,
    ConfidenceBound,
    LogEI,
    MaxValueEntropy,
    SampleAcquisition,
)
from mipcash.acquisition.base import Acquisition
from mipcash.acquisition.constrained import LogConstrainedEI, LogFeasibility
from mipcash.acquisition.fantasies import FantasisedEI
from mipcash.acquisition.ingredients import Ingredients

NOISES = 5.0
"""Standard deviations of the noise by which a sampled minimum lies below the observations at least (Wang and Jegelka 2017)."""


@dataclass(frozen=True)
class Entry:
    """An acquisition function that has a name.

    Attributes:
        make: from what was fitted and drawn.
        takes_limits: whether it looks at ``Ingredients.limited``.
    """

    make: Callable[[Ingredients], Acquisition]
    takes_limits: bool = False


def log_ei(given: Ingredients) -> Acquisition:
    """Expected improvement; beside pending evaluations its mean over what they may come to.

    Under limits times the probability that they are kept; that alone, as long as nothing is known that keeps them.
    """
    improvement: Acquisition = AnalyticAcquisition(given.loss, LogEI(given.best))
    if given.fantasies is not None:
        improvement = FantasisedEI(given.fantasies.outcomes, given.fantasies.best)
    if not given.limited:
        return improvement
    feasibility = LogFeasibility.of(list(given.limited.values()))
    return LogConstrainedEI(improvement, feasibility) if math.isfinite(given.best) else feasibility


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


ACQUISITIONS: Mapping[str, Entry] = {
    "log-ei": Entry(log_ei, takes_limits=True),
    "ucb": Entry(ucb),
    "mes": Entry(mes),
    "thompson": Entry(thompson),
}
