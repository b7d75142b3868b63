"""What ADMMBO recommends: Algorithm 3.1, line 17.

    argmin over all that was evaluated of E[f(x)]   where p(c_i(x) <= 0) >= 1 - delta for every limit i

All that was evaluated: points of the loss and of every limited output, which need not be the same where outputs are evaluated
apart. The paper recommends x where ADMM has converged; x is one of these points, and the same is asked of it here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mipcash.methods.admmbo.models import Models, OneSided
from mipcash.optimizers.base import History, Observation
from mipcash.optimizers.outcome import LOSS


def recommended(models: Models, history: History, limits: Sequence[OneSided], delta: float) -> Observation | None:
    """The observation of that configuration that tells the loss, if one does; None where no configuration is sure enough.

    Args:
        models: of what is known.
        history: it is one of these.
        limits: c_i <= 0.
        delta: see the module's formula.
    """
    data = models.data
    if any(not len(models.known(name)[0]) for name in (LOSS, *(limit.output for limit in limits))):
        return None
    sure = data.legal & ~data.failed & data.whole
    for limit in limits:
        kept = models.limit(limit)
        mean, deviation = kept.posterior.predict(data.points)
        sure &= kept.interval.log_probability(mean, deviation) >= math.log1p(-delta)
    if not sure.any():
        return None
    means = np.where(sure, models.fitted(LOSS).predict(data.points)[0], math.inf)
    config = data.observations[int(np.argmin(means))].config
    same = [o for o in history if o.config == config and o.legal and not o.outcome.stopped]
    return next((o for o in same if o.loss is not None), same[0])
