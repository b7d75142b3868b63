"""Acquisition functions by name, each made from what was fitted and drawn for a proposal.

    log-ei      expected improvement; under outcome constraints times the probability that they are satisfied, and that probability
                alone while no observation satisfies them (:mod:`mipcash.acquisition.constrained`)
    thompson    a sample of the posterior; under outcome constraints SCBO's selection by one joint draw
                (:mod:`mipcash.acquisition.feasible_first`)
    mes         max-value entropy; takes no outcome constraints: for these there is the optimizer ``cmes``

A subclass of ``hybrid`` may have another one: it overrides ``acquisition_of``.

Expected improvement beside pending evaluations: its mean over what they may come to.

Notation
    K sets of outcomes of the pending evaluations, drawn from their joint posterior ("fantasies")
    mu (K, B) means given each, sd (B,) the one deviation, best (K,) what is least then;   t = (best - mu) / sd

    EI = (1/K) sum_k sd h(t_k),   log EI = log sd + log sum_k exp(log h(t_k)) - log K

with h as in :mod:`mipcash.acquisition.analytic`. One point after the other chosen so is q-expected improvement, greedily
(ginsbourger2010, snoek2012, wilson2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, logsumexp

from mipcash.acquisition.acquisition import Acquisition
from mipcash.acquisition.analytic import (
    AnalyticAcquisition,
    LogEI,
    MaxValueEntropy,
    SampleAcquisition,
    log_h,
)
from mipcash.acquisition.constrained import LogConstrainedEI, LogFeasibility
from mipcash.acquisition.feasible_first import FeasibleFirst
from mipcash.acquisition.ingredients import Ingredients
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Outcomes, OutcomeSection


@dataclass(frozen=True)
class FantasisedEI:
    """Minus the logarithm of expected improvement, as an :class:`mipcash.acquisition.acquisition.Acquisition`.

    Attributes:
        outcomes: the posteriors.
        best: shape (K,).
    """

    outcomes: Outcomes
    best: Vector

    def values(self, points: Points) -> Vector:
        """At a batch: shape (B,)."""
        means, deviation = self.outcomes.predict(points)
        logs = log_h((self.best[:, None] - means) / deviation)
        return np.asarray(-(np.log(deviation) + logsumexp(logs, axis=0) - math.log(len(logs))))

    def section(self, z: Vector) -> FantasisedSection:
        """The acquisition at fixed binaries, (n_z,)."""
        return FantasisedSection(self.outcomes.section(z), self.best)


@dataclass(frozen=True)
class FantasisedSection:
    """The same as a function of the numbers, with its gradient."""

    moments: OutcomeSection
    best: Vector

    def __call__(self, u: Vector) -> tuple[float, Vector]:
        """(D,) -> scalar, (D,)."""
        means, deviation, by_means, by_deviation = self.moments(u)
        t = (self.best - means) / deviation
        logs = log_h(t)
        total = float(logsumexp(logs))
        shares, slopes = np.exp(logs - total), np.exp(log_ndtr(t) - logs)
        value = -(math.log(deviation) + total - math.log(len(logs)))
        first, second = shares * slopes / deviation, -float(shares @ (1.0 - t * slopes)) / deviation
        return value, np.asarray(first @ by_means + second * by_deviation)


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


ACQUISITIONS: Mapping[str, Entry] = {
    "log-ei": Entry(log_ei, takes_limits=True),
    "mes": Entry(mes),
    "thompson": Entry(thompson, takes_limits=True),
}
