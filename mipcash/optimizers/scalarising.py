"""Scalarisation of several objectives: each proposal minimises a weighted combination with random weights (ParEGO, Knowles 2006).

The objectives of all evaluations are scaled to 0 at the best and 1 at the worst of the front. They are combined by the augmented
Tchebycheff function, with new random weights for each proposal. The optimizer is given a history with this value as its loss.
Outcome constraints, pending trials, failures, rules and certificates work as for one objective.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mipcash.optimizers.objectives import Objectives
from mipcash.optimizers.optimizer import History, Limit, Observation, keeps
from mipcash.optimizers.outcome import LOSS, VARIANCE, Outcome, Output
from mipcash.optimizers.pareto import Values, tchebycheff, unit_values

RENAMED = {LOSS: "unscalarised loss", VARIANCE: "unscalarised variance"}
"""Names in a scalarised history of outputs whose names have a meaning there, and may be objectives or have outcome constraints."""


def values_of(history: History, objectives: Objectives) -> tuple[list[int], Values]:
    """Return the values of all objectives, for observations in which all are known.

    Returns:
        Indices of these n observations, increasing; and the objectives in minimisation form, shape (n, m). The loss of an
        observation is already in minimisation form.
    """
    signs = [1.0 if objective.output == LOSS else objective.sign for objective in objectives.each]
    rows, found = [], []
    for k, o in enumerate(history):
        reported = [o.outcome[objective.output].value for objective in objectives.each]
        if o.loss is not None and all(v is not None and math.isfinite(v) for v in reported):
            rows.append(k)
            found.append([sign * (v or 0.0) for sign, v in zip(signs, reported, strict=True)])
    return rows, np.array(found, dtype=np.float64).reshape(len(rows), len(signs))


def weights_of(rng: np.random.Generator, objectives: Objectives) -> Values:
    """Return random weights of the objectives, uniform over the simplex: shape (m,)."""
    return np.asarray(rng.dirichlet(np.ones(len(objectives.each))))


def scalarised(
    history: History, limits: Sequence[Limit], objectives: Objectives, weights: Values
) -> tuple[History, tuple[Limit, ...]]:
    """Return a history with a scalarised loss, and the outcome constraints, with renamed outputs (``RENAMED``).

    An observation that lacks an objective has no loss.

    Args:
        weights: of the objectives, shape (m,).
    """
    rows, values = values_of(history, objectives)
    found = list(history)
    if rows:
        kept = np.array([keeps(history[k], limits) for k in rows], dtype=bool)
        legal = np.array([history[k].legal for k in rows], dtype=bool)
        by = next((values[some] for some in (kept & legal, legal) if some.any()), values)
        losses = tchebycheff(unit_values(values, by), weights)
        for k, loss in zip(rows, losses.tolist(), strict=True):
            found[k] = _with_loss(history[k], loss)
    for k in {k for k, o in enumerate(history) if o.loss is not None} - set(rows):
        found[k] = _with_loss(history[k], None)
    seen = [replace(limit, output=RENAMED.get(limit.output, limit.output)) for limit in limits]
    return tuple(found), tuple(seen)


def _with_loss(o: Observation, loss: float | None) -> Observation:
    reported = o.outcome[LOSS]
    outputs = {RENAMED.get(name, name): output for name, output in o.outcome.outputs.items()}
    if loss is not None:
        outputs[LOSS] = Output(reported.status, loss, cost=reported.cost)
    outcome = Outcome(outputs)
    # not by `replace`, which takes twice the time: every ask makes the whole history anew
    return Observation(o.config, o.status, loss, outcome.values, outcome, o.known, o.legal, o.asked, o.repeat)
