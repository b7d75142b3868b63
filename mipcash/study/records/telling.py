"""Parse an outcome passed to ``tell``, in view of the requested outputs and those already known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mipcash.optimizers.objectives import Objectives
from mipcash.optimizers.optimizer import Limit
from mipcash.optimizers.outcome import LOSS, PENDING, PRESENT, Outcome
from mipcash.study.reading import read_outcome, unread
from mipcash.study.trial import Trial
from mipcash.text import did_you_mean, shown


def told(
    trial: Trial, reported: Any, partial: bool | None, cost: float | Mapping[str, float], limits: Sequence[Limit] = ()
) -> tuple[Outcome, str]:
    """Return the outputs given in a call of ``tell``, and the status of the trial after it. Arguments as for ``tell``.

    An evaluation of all outputs must give the constrained outputs as well as the loss. The trial is pending while a requested
    output is missing.
    """
    asked, known, objectives = trial.evaluate, trial.outcome, trial.objectives
    if partial is None:
        partial = bool(asked) and isinstance(reported, Mapping)
    missing = known.missing(asked or dict.fromkeys((*objectives.names, *(limit.output for limit in limits))))
    wanted = missing if asked or LOSS in missing or objectives.several else (LOSS, *missing)
    part = read_outcome(reported, wanted, () if partial else missing, cost)
    if objectives.several and not partial:
        part = completed(objectives, known, part)
    outcome = known.with_part(part)
    pending = partial and (not asked or bool(outcome.missing(asked)))
    return part, PENDING if pending else outcome.status(asked)


RETURNED_LOSS = "returned loss"
"""Name of an output ``loss`` that is none of several objectives; the loss of a trial is the first objective."""


def completed(objectives: Objectives, known: Outcome, part: Outcome) -> Outcome:
    """Add the loss, computed from several objectives, to the last part of an outcome.

    If an objective is missing, the failure message suggests a similar name.
    """
    whole = known.with_part(part)
    found = objectives.completed(whole)[LOSS]
    lacking = next((n for n in objectives.names if whole[n].status != PRESENT), None)
    if lacking is not None and unread(whole[lacking]):
        others = [n for n, o in whole.outputs.items() if o.status == PRESENT and n not in objectives.names]
        near = did_you_mean(lacking, others, "")
        found = replace(found, message=f"{found.message}; {near}" if near else found.message)
    elif lacking is not None and whole[lacking].value is not None:  # nan or inf
        found = replace(found, message=f"{lacking}: {found.message}")
    outputs = {LOSS: found, **{n: o for n, o in part.outputs.items() if n != LOSS}}
    own = part.outputs.get(LOSS)
    if LOSS not in objectives.names and own is not None and own.status == PRESENT and own.value != found.value:
        outputs[RETURNED_LOSS] = own
    return Outcome(outputs)


def reported_costs(cost: Any) -> float | dict[str, float]:
    """Return a cost as a float, or as a dict of floats by output.

    Raises:
        ValueError: a cost is no finite number.
    """
    what = "cost must be a finite number, or one per output by name"
    return {str(n): finite(c, what) for n, c in cost.items()} if isinstance(cost, Mapping) else finite(cost, what)


def finite(value: Any, what: str, low: float = -math.inf) -> float:
    """Return a caller's number as a float.

    Raises:
        ValueError: it is no finite number, or below ``low``; the message begins with ``what``.
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or number < low:
        raise ValueError(f"{what}; got {shown(value)}")
    return number
