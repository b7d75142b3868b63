"""How sure the model is that limits hold: the probability at what was evaluated, by surrogates of the default optimizer.

Notation
    g_i (i = 1..m) limited outputs, and whether an evaluation fails as +-1 with a limit of 0;   f_i its value without noise
    P = prod_i P(low_i <= f_i <= high_i | observations), outputs independent given the data

It is a statement about the values themselves, not about what one more noisy measurement would show: where an output is measured
with noise, an observation that keeps its limit by less than the noise has P near a half. Without noise P is near 0 or 1 at what
was evaluated. Hyperparameters are taken for granted, as everywhere. Each output has the structured surrogate of
:mod:`mipcash.optimizers.hybrid`, fitted anew, so that P does not depend on the optimizer of a study, nor on the way its run went.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from mipcash.acquisition.constrained import LogFeasibility
from mipcash.acquisition.ingredients import Limited
from mipcash.optimizers.data import Data
from mipcash.optimizers.hybrid import Hybrid
from mipcash.optimizers.optimizer import History, Limit
from mipcash.program.forms import Vector
from mipcash.space.domain import Domain


def probabilities(domain: Domain, history: History, limits: Sequence[Limit]) -> Vector:
    """P at every configuration that something is known of.

    Returns:
        Shape (r,), in the order of :func:`mipcash.optimizers.optimizer.joined` over the loss and the limited outputs; nan where an
        output with a limit is not known anywhere.
    """
    data = Data.of(domain, history, limits)
    if not len(data.points) or any(limit.output not in data.scales for limit in limits):
        return np.full(len(data.losses), np.nan)
    model, limited = Hybrid(domain), []
    with threadpool_limits(1):
        tables = model.surrogate.prepare(data.points)
        for name, (rows, values, ends) in model.learned_beside(data).items():
            posterior, _ = model.surrogate_for(name).fit(tables.part(rows), values, {}, np.random.default_rng(0))
            low, high = posterior.scaled(np.array(ends)).tolist()
            limited.append(Limited(posterior, low, high))
        return np.exp(-LogFeasibility.of(limited).values(data.points))
