"""Replication: spend the rest of the budget on repeats of the configuration that is most likely the best, under noise.

Notation
    x_i, n_i    mean loss of configuration i in minimisation form, and number of measurements, running ones included
    v           variance of one measurement, pooled over the configurations that were measured several times
    N           sum of n_i

The next repeat is of the configuration with the least lower confidence bound x_i - sqrt(2 v log N / n_i). This is UCB1 (Auer,
Cesa-Bianchi and Fischer 2002, section 2) in units of the noise. Before v is known, the configuration with the lowest mean is
repeated.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from statistics import fmean, variance

from mipcash.optimizers.optimizer import History, Limit, Observation
from mipcash.optimizers.outcome import DONE, PENDING, VARIANCE
from mipcash.study.feasibility import violated
from mipcash.study.trial import Trial

RESERVED = 4
"""With ``confirm="replicate"``, a search leaves one in this many evaluations to repeats."""
ALIKE = 3
"""Number of repeats with exactly the first loss that shows the objective to be deterministic."""


def next_repeat(history: History, limits: Sequence[Limit]) -> tuple[int, int] | None:
    """Return the number of the trial to repeat next, and the number of that repeat.

    Return None if there is nothing to repeat, or if the objective is deterministic.

    Args:
        history: observations of all trials, with losses in minimisation form.
    """
    measured: dict[str, list[Observation]] = {}
    first: dict[str, int] = {}
    for number, o in enumerate(history):
        if o.repeat or not (o.status == DONE and o.loss is not None and not o.outcome.pruned):
            if repr(o.config) in first and o.repeat:
                measured[repr(o.config)].append(o)
        elif o.legal and not violated(o.outcome, limits):
            first.setdefault(repr(o.config), number)
            measured.setdefault(repr(o.config), []).append(o)
    for key, found in measured.items():
        if any(o.repeat and o.status != PENDING and (o.loss is None or violated(o.outcome, limits)) for o in found):
            del first[key]  # it cannot be recommended any more
    losses = {key: [o.loss for o in found if o.loss is not None] for key, found in measured.items()}
    several = [found for found in losses.values() if len(found) > 1]
    if not first or (sum(map(len, several)) - len(several) >= ALIKE and all(len(set(found)) == 1 for found in several)):
        return None
    freedom = sum(len(found) - 1 for found in several)
    v = sum(variance(found) * (len(found) - 1) for found in several) / freedom if freedom else 0.0
    total = sum(map(len, measured.values()))
    bound = {k: fmean(losses[k]) - math.sqrt(2.0 * v * math.log(total) / len(measured[k])) for k in first}
    key = min(bound, key=lambda k: (bound[k], first[k]))
    return first[key], 1 + max(o.repeat for o in measured[key])


def tells_variance(trials: Collection[Trial]) -> bool:
    """Return True if some trial returned a noise variance above 0."""
    return any(t.done and t.values.get(VARIANCE, 0.0) > 0.0 for t in trials)
