"""Evidence of noisy evaluations, and the recommendation under noise.

Notation
    l_ik loss of configuration i in fit k = 1..K of its evaluation (folds);   L_i their mean
    e_ik = l_ik - L_i - (mean over i of l_ik) + (mean over all): the residual after the difficulty of each fold is removed
    s^2 = sum e_ik^2 / ((n - 1)(K - 1)) over the better half of n configurations, since worse ones vary more
    v = s^2 / K: the variance of L_i, for comparisons with other configurations on the same folds

Noise is measured if one configuration was evaluated several times with different losses, or if the objective returned variances, of
which v is the mean. Losses of single fits are evidence of noise too: they correct the reported value. They do not change which
configuration is recommended, since the posterior mean over fits was no better on fresh rows than the lowest loss. The noise
variance fitted by a surrogate is no evidence. It may be a fifth of all variance for a rough deterministic function, and a
thousandth for few observations of a noisy one (see the decision on answers under noise).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mipcash.optimizers.optimizer import History, Joined, Observation, averaged
from mipcash.optimizers.outcome import DONE

if TYPE_CHECKING:
    from mipcash.optimizers.data import Data
    from mipcash.surrogates.protocols import Posterior, Surrogate

SAME = 1e-9
"""Relative difference of measurements that is rounding, as of a spreadsheet, and no noise."""
LEAST = 4
"""Number of configurations with losses of single fits that an estimate of their noise needs."""


def evident_noise(history: History) -> float:
    """Return v, the evident noise variance of losses; 0 if there is no evidence."""
    return max(_of_fits(_complete(history)), measured_noise(history))


def measured_noise(history: History) -> float:
    """Return v as far as it was measured: by several evaluations of one configuration, or by returned variances; else 0."""
    done = _complete(history)
    returned = [o.returned_variance for o in done if o.returned_variance]
    return max(_of_measurements(done), float(np.mean(returned)) if returned else 0.0)


def _complete(history: History) -> list[Observation]:
    return [o for o in history if o.status == DONE and o.loss is not None and not o.outcome.pruned and not o.repeat]


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
    """Return the pooled variance of configurations that were measured several times with all outputs."""
    losses: dict[str, list[float]] = {}
    for o in done:
        if not o.asked and o.loss is not None:
            losses.setdefault(repr(o.config), []).append(o.loss)
    several = [found for found in losses.values() if len(found) > 1]
    if all(math.isclose(min(found), max(found), rel_tol=SAME) for found in several):
        return 0.0
    freedom = sum(len(found) - 1 for found in several)
    return sum(float(np.var(found)) * len(found) for found in several) / freedom


def by_posterior_mean(
    usual: Sequence[Observation], surrogate: Surrogate[Any, Posterior], data: Data, noise: float
) -> list[Observation]:
    """Return observations sorted by the posterior mean of their losses, lowest first; ties keep their order.

    Observations whose own loss (the mean of their measurements) exceeds the lowest by more than sqrt(v) come last. Only the model
    supports them, and on fresh rows it was wrong more often than right.

    Args:
        surrogate: surrogate of the losses; it is refitted to all known losses.
        data: data of the history that the observations come from.
        noise: v, of each complete evaluation without a variance of its own; the variance of a pruned one is added to it.
    """
    rows = data.known
    prepared = surrogate.prepare(data.points[rows])
    unknown = np.array([not data.observations[k].returned_variance for k in rows])
    variances = noise * unknown + data.noise(rows)
    posterior, _ = surrogate.fit(prepared, data.losses[rows], {}, np.random.default_rng(0), variances)
    means: dict[str, float] = {}
    for k, mean in zip(rows.tolist(), posterior.fitted.tolist(), strict=True):
        means[repr(data.observations[k].config)] = mean
    measured = [row.merged for row in averaged([Joined(o, (k,)) for k, o in enumerate(data.observations)])]
    own = {repr(o.config): o.loss for o in measured if o.loss is not None}
    near = min(own[repr(o.config)] for o in usual) + math.sqrt(noise)
    return sorted(usual, key=lambda o: (own[repr(o.config)] > near, means[repr(o.config)]))
