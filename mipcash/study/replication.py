"""Replication: spend the rest of the budget on repeats of the configuration that is most likely the best, under noise.

Notation
    x_i, n_i    mean loss of configuration i in minimisation form, and number of measurements, running ones included
    v           variance of one measurement, pooled over the configurations that were measured several times
    N           sum of n_i

The next repeat is of the configuration with the least lower confidence bound x_i - sqrt(2 v log N / n_i). This is UCB1 (Auer,
Cesa-Bianchi and Fischer 2002, section 2) in units of the noise. Before v is known, the configuration with the lowest mean is
repeated. A configuration is left out if a repeat failed, or if the mean of a constrained output over its repeats violates the
constraint by more than sqrt(2 v log N / n) of that output.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from statistics import fmean, variance

from mipcash.optimizers.optimizer import History, Limit, Observation
from mipcash.optimizers.outcome import DONE, PENDING, PRESENT, VARIANCE
from mipcash.study.feasibility import violated
from mipcash.study.finalists import violated_by
from mipcash.study.trial import Trial

RESERVED = 4
"""With ``confirm="replicate"``, a search leaves one in this many evaluations to repeats."""
ALIKE = 3
"""Number of repeats with exactly the first loss that shows the objective to be deterministic. Given data may be duplicates."""


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
    losses = {key: [o.loss for o in found if o.loss is not None] for key, found in measured.items()}
    total = sum(map(len, measured.values()))
    spread = {l.output: _pooled(_known(found, l.output) for found in measured.values()) for l in limits}
    for key, found in measured.items():
        again = [o for o in found if o.repeat and o.status != PENDING]
        room = {name: math.sqrt(2.0 * v * math.log(total) / max(1, len(again))) for name, v in spread.items()}
        if any(o.loss is None for o in again) or any(b.by > room[b.limit.output] for b in violated_by(again, limits)):
            del first[key]  # it will not be recommended
    several = [found for found in losses.values() if len(found) > 1]
    repeats = sum(o.repeat > 0 and o.loss is not None for found in measured.values() for o in found)
    if not first or (repeats >= ALIKE and all(len(set(found)) == 1 for found in several)):
        return None
    v = _pooled(several)
    bound = {k: fmean(losses[k]) - math.sqrt(2.0 * v * math.log(total) / len(measured[k])) for k in first}
    key = min(bound, key=lambda k: (bound[k], first[k]))
    return first[key], 1 + max(o.repeat for o in measured[key])


def _known(measured: Sequence[Observation], output: str) -> list[float]:
    """Return the known values of an output."""
    outcomes = (o.outcome[output] for o in measured)
    return [float(o.value) for o in outcomes if o.status == PRESENT and o.value is not None]


def _pooled(samples: Iterable[Sequence[float]]) -> float:
    """Return the pooled variance of samples of two or more values; 0 if there are none."""
    several = [values for values in samples if len(values) > 1]
    freedom = sum(len(values) - 1 for values in several)
    return sum(variance(values) * (len(values) - 1) for values in several) / freedom if freedom else 0.0


def tells_variance(trials: Collection[Trial]) -> bool:
    """Return True if some trial returned a noise variance above 0."""
    return any(t.done and t.values.get(VARIANCE, 0.0) > 0.0 for t in trials)
