"""Acquisition functions by name, each made from what was fitted and drawn for a proposal.

Under limits (``Ingredients.limited``), for comparison with the default's, which is log constrained EI:

    log-ei                 constrained EI: expected improvement times the probability that limits are kept; that probability alone
                           while nothing keeps them (:mod:`mipcash.acquisition.constrained`)
    ucb                    CONFIG: the lower confidence bound, where limits hold at kappa deviations to the better side
    thompson               SCBO's selection by one joint draw (both: :mod:`mipcash.acquisition.feasible_first`)
    augmented-lagrangian   :mod:`mipcash.acquisition.augmented_lagrangian`
    adaptive-percentile, penalty    expected improvement of one output with the limits in it (``optimizers.one_output``)
    mes                    takes none: constrained max-value entropy search is an optimizer of its own

Without limits ``augmented-lagrangian``, ``adaptive-percentile`` and ``penalty`` are expected improvement.
"""

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
from mipcash.acquisition.augmented_lagrangian import lagrangian_ei
from mipcash.acquisition.base import Acquisition
from mipcash.acquisition.constrained import LogConstrainedEI, LogFeasibility
from mipcash.acquisition.fantasies import FantasisedEI
from mipcash.acquisition.feasible_first import FeasibleFirst
from mipcash.acquisition.ingredients import Ingredients

NOISES = 5.0
"""Standard deviations of the noise by which a sampled minimum lies below the observations at least (Wang and Jegelka 2017)."""


@dataclass(frozen=True)
class Entry:
    """An acquisition function that has a name.

    Attributes:
        make: from what was fitted and drawn.
        takes_limits: whether it looks at ``Ingredients.limited``, or at losses that hold the limits.
    """

    make: Callable[[Ingredients], Acquisition]
    takes_limits: bool = False


def log_ei(given: Ingredients) -> Acquisition:
    """Expected improvement; beside pending evaluations its mean over what they may come to.

    Under limits times the probability that they are kept; that alone, as long as nothing is known that keeps them. As long as
    no output with a limit is known, that of the loss.
    """
    unlearned = not given.limited and math.isinf(given.best)
    best = float(np.min(given.loss.fitted)) if unlearned else given.best
    improvement: Acquisition = AnalyticAcquisition(given.loss, LogEI(best))
    if given.fantasies is not None:
        improvement = FantasisedEI(given.fantasies.outcomes, given.fantasies.best)
    if not given.limited:
        return improvement
    feasibility = LogFeasibility.of(list(given.limited.values()))
    return LogConstrainedEI(improvement, feasibility) if math.isfinite(given.best) else feasibility


def ucb(given: Ingredients) -> Acquisition:
    """The lower confidence bound; under limits where these hold by bounds of as many deviations."""
    bound = AnalyticAcquisition(given.loss, ConfidenceBound(given.kappa))
    return FeasibleFirst.optimistic(bound, given.limited, given.kappa) if given.limited else bound


def mes(given: Ingredients) -> Acquisition:
    """The entropy of the minimum."""
    # samples are without the residual: their least values may lie above what was observed, the minimum cannot
    least = given.best - NOISES * math.sqrt(given.loss.fitted_noise)
    minima = [min(least, d.value) for d in given.drawn]
    return AnalyticAcquisition(given.loss, MaxValueEntropy(np.array(minima or [least])))


def thompson(given: Ingredients) -> Acquisition:
    """The sample of the least minimum itself; at least one must have been drawn.

    Under limits the first sample, where its joint draws of the outputs keep them.
    """
    if given.limited:
        return FeasibleFirst.sampled(given.drawn[0].sample, given.joint[0], given.limited)
    return SampleAcquisition(min(given.drawn, key=lambda d: d.value).sample)


def augmented_lagrangian(given: Ingredients) -> Acquisition:
    """Expected improvement of the augmented Lagrangian; beside pending evaluations at their means."""
    if not given.limited or given.observed is None:
        return log_ei(given)
    return lagrangian_ei(given.loss, list(given.limited.values()), given.observed)


ACQUISITIONS: Mapping[str, Entry] = {
    "log-ei": Entry(log_ei, takes_limits=True),
    "ucb": Entry(ucb, takes_limits=True),
    "mes": Entry(mes),
    "thompson": Entry(thompson, takes_limits=True),
    "augmented-lagrangian": Entry(augmented_lagrangian, takes_limits=True),
    "adaptive-percentile": Entry(log_ei, takes_limits=True),
    "penalty": Entry(log_ei, takes_limits=True),
}
