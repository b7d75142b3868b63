"""Limits without surrogates of their own: they are put into the losses, and one surrogate learns these.

Rivals of what learns every output for itself (:mod:`mipcash.acquisition.constrained`), for comparison.

Notation
    y (t,) losses;   w (t,) violations (:mod:`mipcash.optimizers.data`);   s standard deviation of the known losses

    adaptive-percentile    y where the limits are kept, else the p-th percentile of the losses of what kept them so far
                           (Perrone et al. 2019, Section 4: AP, where p = 100 was best; theirs knows no loss of what breaks a limit)
    penalty                y + weight s min(w, 1 + max finite w)

The percentile adapts: it is taken anew for every proposal, of all that is known then. While nothing keeps the limits it is that of
all known losses: every target is the same, and proposals explore. What failed breaks a limit that the percentile knows; a
penalty has no violation of it, so that it counts as the worst loss, as it does for every model of one output.
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
    """With targets for losses, wherever there is one."""
    rows = np.flatnonzero(np.isfinite(targets))
    nothing = np.zeros(len(targets))
    losses = np.where(np.isfinite(targets), targets, 0.0)
    return replace(data, losses=losses, known=rows, failed=nothing.astype(bool), violations=nothing, limits=(), scales={})


def _known(data: Data) -> Vector:
    """y, (t,), nan where the loss is unknown."""
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
