"""Outcome constraints without separate surrogates: one surrogate learns losses that include the violations.

These rivals are compared with optimizers that model every output (:mod:`mipcash.acquisition.constrained`).

Notation:
    y (t,)   losses.
    w (t,)   violations (:mod:`mipcash.optimizers.data`).
    s        standard deviation of the known losses.

Targets:
    adaptive-percentile   y if feasible, else the p-th percentile of the feasible losses so far.
                          Perrone et al. 2019, Section 4, call it AP and prefer p = 100.
                          Their method never knows the loss of an infeasible point.
    penalty               y + weight s min(w, 1 + max finite w).

The percentile adapts: it is recomputed for every proposal from all known losses. Without a feasible loss it is the
percentile of all known losses. Every target is then the same, and proposals explore. For the percentile a failure is an
infeasible point. For the penalty a failure has no violation, so it counts as the worst loss, as in every model of one
output.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mipcash.optimizers.data import Data
from mipcash.program.forms import Indices, Vector


def at_percentile(data: Data, percentile: float) -> Data:
    """Return the data of ``adaptive-percentile``."""
    return _told(data, _at_percentile(data, percentile))


def penalised(data: Data, weight: float) -> Data:
    """Return the data of ``penalty``."""
    return _told(data, _penalised(data, weight))


def _told(data: Data, targets: Vector) -> Data:
    """Return the data with targets as losses, restricted to rows with a target."""
    rows = np.flatnonzero(np.isfinite(targets))
    nothing = np.zeros(len(targets))
    losses = np.where(np.isfinite(targets), targets, 0.0)
    return replace(data, losses=losses, known=rows, failed=nothing.astype(bool), violations=nothing, limits=(), scales={})


def _known(data: Data) -> Vector:
    """Return y, (t,), with nan for unknown losses."""
    losses = np.full(len(data.losses), np.nan)
    losses[data.known] = data.losses[data.known]
    return losses


def _at_percentile(data: Data, percentile: float) -> Vector:
    losses, broken = _known(data), data.failed | ((data.violations > 0.0) & np.isfinite(data.violations))
    kept = losses[np.isfinite(losses) & (data.violations == 0.0) & ~data.failed]
    of = kept if len(kept) else losses[np.isfinite(losses)]
    target = float(np.percentile(of, percentile)) if len(of) else 0.0
    return np.where(broken, target, np.where(np.isfinite(data.violations), losses, np.nan))


def _penalised(data: Data, weight: float) -> Vector:
    known: Indices = data.known
    unit = float(np.std(data.losses[known])) if len(known) > 1 else 0.0
    told = np.isfinite(data.violations) | data.failed
    return np.where(told, data.losses + weight * (unit or 1.0) * data.bounded_violations, np.nan)
