"""Other treatments of outcome constraints, and the lower confidence bound, with the surrogates and search of ``hybrid``.

ucb                   Lower confidence bound. With constraints: CONFIG (Xu, Jiang, Svetozarevic and Jones 2023).
                      It minimises the bound where the optimistic bounds of the constraints are feasible.
augmented-lagrangian  :mod:`benchmarks.rivals.augmented_lagrangian`.
adaptive-percentile   Expected improvement of one output that includes the constraints.
penalty               The same with a penalty; both are in :mod:`benchmarks.rivals.one_output`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmarks.rivals.augmented_lagrangian import lagrangian_ei
from benchmarks.rivals.one_output import at_percentile, penalised
from mipcash.acquisition.acquisition import Acquisition
from mipcash.acquisition.analytic import AnalyticAcquisition, ConfidenceBound
from mipcash.acquisition.catalogue import log_ei
from mipcash.acquisition.feasible_first import Excess, FeasibleFirst
from mipcash.acquisition.inputs import AcquisitionInputs
from mipcash.errors import SpaceError, at_least
from mipcash.optimizers.data import Data
from mipcash.optimizers.hybrid import Hybrid, HybridSettings
from mipcash.optimizers.model_based import ModelBased, Step
from mipcash.optimizers.optimizer import Proposal, Request


@dataclass(frozen=True)
class RivalSettings(HybridSettings):
    """Settings of ``hybrid`` and of the rivals.

    Attributes:
        kappa: standard deviations of the confidence bound.
        percentile: percentile of losses that replaces an infeasible loss in ``adaptive-percentile``, in [0, 100].
        penalty: standard deviations of the losses added by ``penalty`` per unit of violation.
    """

    kappa: float = 2.0
    percentile: float = 100.0
    penalty: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, kappa=0, percentile=0, penalty=0)
        if self.percentile > 100.0:
            raise SpaceError(f"percentile is at most 100, got {self.percentile}")


class Rival(Hybrid):
    """``hybrid`` with another acquisition function."""

    settings: RivalSettings


class LowerBound(Rival):
    """Optimizer with the lower confidence bound."""

    name: ClassVar[str] = "ucb"

    def acquisition_of(self, given: AcquisitionInputs, step: Step) -> Acquisition:
        kappa = self.settings.kappa
        bound = AnalyticAcquisition(given.loss, ConfidenceBound(kappa))
        if not given.limited:
            return bound
        excess = []
        for each in given.limited.values():
            posterior = each.posterior
            excess += Excess.of(each, lambda sign, p=posterior: AnalyticAcquisition(p, ConfidenceBound(sign * kappa)))
        return FeasibleFirst(bound, excess)


class AugmentedLagrangian(Rival):
    """Expected improvement of the augmented Lagrangian, with pending evaluations at their posterior means."""

    name: ClassVar[str] = "augmented-lagrangian"

    def acquisition_of(self, given: AcquisitionInputs, step: Step) -> Acquisition:
        if not given.limited:
            return log_ei(given)
        observed = step.data.points[np.flatnonzero(step.data.legal)]
        return lagrangian_ei(given.loss, list(given.limited.values()), observed)


class OneOutput(Rival):
    """Expected improvement of one output. All outputs enter its targets, so they are always evaluated together."""

    def propose(self, request: Request) -> Proposal:
        return ModelBased.propose(self, request)


class AdaptivePercentile(OneOutput):
    """Infeasible losses are replaced by a percentile of the feasible ones."""

    name: ClassVar[str] = "adaptive-percentile"

    def learned(self, data: Data) -> Data:
        return at_percentile(data, self.settings.percentile)


class Penalty(OneOutput):
    """Expected improvement of the loss plus a penalty for the violation."""

    name: ClassVar[str] = "penalty"

    def learned(self, data: Data) -> Data:
        return penalised(data, self.settings.penalty)
