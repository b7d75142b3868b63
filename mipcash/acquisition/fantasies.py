"""Expected improvement beside pending evaluations: its mean over what they may come to.

Notation
    K sets of outcomes of the pending evaluations, drawn from their joint posterior ("fantasies")
    mu (K, B) means given each, sd (B,) the one deviation, best (K,) what is least then;   t = (best - mu) / sd

    EI = (1/K) sum_k sd h(t_k),   log EI = log sd + log sum_k exp(log h(t_k)) - log K

with h as in :mod:`mipcash.acquisition.analytic`. One point after the other chosen so is q-expected improvement, greedily
(ginsbourger2010, snoek2012, wilson2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, logsumexp

from mipcash.acquisition.analytic import log_h
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
