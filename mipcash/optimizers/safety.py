"""Posterior probability that outcome constraints are satisfied at evaluated configurations.

Notation
    g_i (i = 1..m) constrained outputs, and failure as +-1 with a bound of 0;   f_i the output without noise
    P = prod_i P(low_i <= f_i <= high_i | observations), outputs independent given the data

P concerns the noise-free values, not the result of one more noisy measurement. If an output is measured with noise, an
observation that is feasible by less than the noise has P near one half. Without noise, P is near 0 or 1 at evaluated points.
Hyperparameters are fixed at their estimates. Each output has the structured surrogate of ``mipcash.optimizers.hybrid``,
refitted, so P depends neither on the optimizer of the study nor on the course of the run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from mipcash.acquisition.constrained import Limited, LogFeasibility
from mipcash.modelling.domains import Configuration
from mipcash.optimizers.data import Data
from mipcash.optimizers.hybrid import Hybrid
from mipcash.optimizers.optimizer import History, Limit
from mipcash.program.forms import Vector
from mipcash.space.domain import Domain


def probabilities(
    domain: Domain, history: History, limits: Sequence[Limit], configs: Sequence[Configuration]
) -> Vector:
    """Return P at r configurations: shape (r,), all nan if a constrained output was never observed."""
    data = Data.of(domain, history, limits)
    if not len(data.points) or any(limit.output not in data.scales for limit in limits):
        return np.full(len(configs), np.nan)
    model, limited = Hybrid(domain), []
    with threadpool_limits(1):
        tables = model.surrogate.prepare(data.points)
        for name, (rows, values, ends) in model.learned_beside(data).items():
            fresh, noise = np.random.default_rng(0), data.noise(rows, name)
            posterior, _ = model.surrogate_for(name).fit(tables.part(rows), values, {}, fresh, noise)
            low, high = posterior.scaled(np.array(ends)).tolist()
            limited.append(Limited(posterior, low, high))
        return np.exp(-LogFeasibility(limited).values(domain.encode(configs)))
