"""Outcome constraints without separate surrogates: infeasible losses are replaced by a percentile of the feasible ones (AP).

Notation:
    y (t,)   losses.
    target   y if feasible, else the p-th percentile of the feasible losses so far.

Perrone et al. 2019, Section 4, call it AP and prefer p = 100. Their method never knows the loss of an infeasible point. The
percentile adapts: it is recomputed for every proposal from all known losses. Without a feasible loss it is the percentile
of all known losses; every target is then the same, and proposals explore. A failure is an infeasible point.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mipcash.errors import SpaceError, check_settings
from mipcash.optimizers.data import Data
from mipcash.optimizers.hybrid import Hybrid, HybridSettings
from mipcash.optimizers.model_based import ModelBased
from mipcash.optimizers.optimizer import Proposal, Request
from mipcash.program.forms import Vector


@dataclass(frozen=True)
class PercentileSettings(HybridSettings):
    """Settings of ``hybrid``, and the percentile of losses that replaces an infeasible loss, in [0, 100]."""

    percentile: float = 100.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_settings(self, percentile=0)
        if self.percentile > 100.0:
            raise SpaceError(f"percentile is at most 100, got {self.percentile}")


class AdaptivePercentile(Hybrid):
    """Expected improvement of one output. All outputs enter its targets, so they are always evaluated together."""

    name: ClassVar[str] = "adaptive-percentile"
    settings: PercentileSettings

    def propose(self, request: Request) -> Proposal:
        return ModelBased.propose(self, request)

    def learned(self, data: Data) -> Data:
        return at_percentile(data, self.settings.percentile)


def at_percentile(data: Data, percentile: float) -> Data:
    """Return the data with targets as losses, restricted to rows with a target."""
    targets = _targets(data, percentile)
    known, nothing = np.isfinite(targets), np.zeros(len(targets))
    losses, failed = np.where(known, targets, 0.0), nothing.astype(bool)
    return replace(data, losses=losses, known=np.flatnonzero(known), failed=failed, violations=nothing, limits=(), scales={})


def _targets(data: Data, percentile: float) -> Vector:
    """Return the targets, (t,), with nan where nothing is known."""
    losses = np.full(len(data.losses), np.nan)
    losses[data.known] = data.losses[data.known]
    violated = data.failed | ((data.violations > 0.0) & np.isfinite(data.violations))
    kept = losses[np.isfinite(losses) & (data.violations == 0.0) & ~data.failed]
    of = kept if len(kept) else losses[np.isfinite(losses)]
    target = float(np.percentile(of, percentile)) if len(of) else 0.0
    return np.where(violated, target, np.where(np.isfinite(data.violations), losses, np.nan))
