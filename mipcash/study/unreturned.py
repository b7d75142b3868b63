"""Outcome constraints on outputs that no evaluation returns, because of a misspelt name or a value that is no number.

If a successful evaluation lacks a constrained output, or returns an unreadable value, that output has failed, with its cause. If
this holds for all evaluations, constraint and objective do not match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mipcash.optimizers.optimizer import Limit
from mipcash.optimizers.outcome import FAILED, PRESENT
from mipcash.study.reading import unread
from mipcash.study.trial import Trial
from mipcash.text import did_you_mean


@dataclass(frozen=True)
class Unreturned:
    """A constrained output that no evaluation returned.

    Attributes:
        output: its name.
        trials: numbers of the evaluations that succeeded without it.
        text: description of what was returned instead.
        stated: True if one of them gave nan, inf or ``mipcash.Failed`` in its place.
    """

    output: str
    trials: tuple[int, ...]
    text: str
    stated: bool


def unreturned(trials: Sequence[Trial], limits: Sequence[Limit]) -> list[Unreturned]:
    """Return the constrained outputs that no evaluation of a study returned, although some succeeded."""
    if not limits:
        return []
    own, found = [t for t in trials if not (t.known or t.pending)], []
    for limit in limits:
        if any(t.outcome[limit.output].status == PRESENT for t in own):
            continue
        without = [t for t in own if t.done and t.loss is not None and t.outcome[limit.output].status == FAILED]
        if without:
            found.append(_described(limit.output, without))
    return found


def _described(name: str, without: Sequence[Trial]) -> Unreturned:
    latest, numbers = without[-1].outcome, tuple(t.number for t in without)
    stated = not all(unread(t.outcome[name]) for t in without)
    others = [other for other in latest.outputs if latest[other].status != FAILED]
    near = "" if stated else did_you_mean(name, others, "")
    hint = f"; {near}" if near else ""
    which = "the only evaluation" if len(without) == 1 else f"none of {len(without)} evaluations"
    gave = "did not give" if len(without) == 1 else "gave"
    return Unreturned(
        name, numbers, f"{which} {gave} {name!r}, which has an outcome constraint: {latest[name].message}{hint}", stated
    )
