"""Whether evaluations are noisy, by evidence, and the answer where they are.

Notation
    l_ik loss of configuration i in fit k = 1..K of its evaluation (folds);   L_i their mean
    e_ik = l_ik - L_i - (mean over i of l_ik) + (mean over all): what is left when how hard a fold is counts for no configuration
    s^2 = sum e_ik^2 / ((n - 1)(K - 1)) over the better half of n configurations, since worse ones vary more
    v = s^2 / K: the variance of L_i as a measure of the configuration, beside the others on the same folds

Evidence is what evaluations show themselves: losses of single fits, or one configuration that was measured several times and gave
different losses. The noise that a surrogate fits is none: of a deterministic function that is rough it may be a fifth of all
variance, and with few observations of a noisy one a thousandth (measured; see the decision on answers under noise).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from mipcash.optimizers.data import Data
from mipcash.optimizers.optimizer import History, Observation
from mipcash.optimizers.outcome import DONE
from mipcash.surrogates.protocols import Posterior, Surrogate

LEAST = 4
"""Configurations with losses of single fits from which on their noise is estimated."""


def evident_noise(history: History) -> float:
    """v, the variance of losses that is evident; 0 where none is."""
    done = [o for o in history if o.status == DONE and o.loss is not None and not o.outcome.stopped and not o.repeat]
    return max(_of_fits(done), _of_measurements(done))


def _of_fits(done: Sequence[Observation]) -> float:
    means = [o for o in done if len(o.folds) > 1 and math.isclose(o.loss or 0.0, float(np.mean(o.folds)), rel_tol=1e-6)]
    if not means:
        return 0.0
    fits = Counter(len(o.folds) for o in means).most_common(1)[0][0]
    table = np.array([o.folds for o in means if len(o.folds) == fits])
    if len(table) < LEAST:
        return 0.0
    better = table[np.argsort(table.mean(axis=1), kind="stable")[: max(LEAST, len(table) // 2)]]
    left = better - better.mean(axis=1, keepdims=True) - better.mean(axis=0, keepdims=True) + better.mean()
    return float((left**2).sum() / ((len(better) - 1) * (fits - 1)) / fits)


def _of_measurements(done: Sequence[Observation]) -> float:
    """The pooled variance of configurations that were measured several times, all outputs in each."""
    losses: dict[str, list[float]] = {}
    for o in done:
        if not o.asked and o.loss is not None:
            losses.setdefault(repr(o.config), []).append(o.loss)
    several = [found for found in losses.values() if len(found) > 1]
    freedom = sum(len(found) - 1 for found in several)
    return sum(float(np.var(found)) * len(found) for found in several) / freedom if freedom else 0.0


def by_posterior_mean(
    usual: Sequence[Observation], surrogate: Surrogate[Any, Posterior], data: Data, noise: float
) -> list[Observation]:
    """Observations by the posterior mean of their losses, lowest first; of equals in the order that they have.

    Those whose own loss is worse than the least by more than sqrt(v) come after all others: there the model alone says that they
    are good, and on fresh rows it was wrong more often than right.

    Args:
        surrogate: of losses; it is fitted afresh, to all that is known.
        data: of the history that they are from.
        noise: v, of each whole evaluation; estimates of what was stopped have their own variance besides.
    """
    rows = data.known
    prepared = surrogate.prepare(data.points[rows])
    posterior, _ = surrogate.fit(prepared, data.losses[rows], {}, np.random.default_rng(0), noise + data.noise(rows))
    means: dict[str, float] = {}
    for k, mean in zip(rows.tolist(), posterior.fitted.tolist(), strict=True):
        means[repr(data.observations[k].config)] = mean
    near = min((o.loss for o in usual if o.loss is not None), default=math.inf) + math.sqrt(noise)
    return sorted(usual, key=lambda o: (o.loss is None or o.loss > near, means[repr(o.config)]))
