"""What is told of a trial, read against what was asked for and what is known already."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mipcash.optimizers.base import Limit
from mipcash.optimizers.outcome import LOSS, PENDING, Outcome
from mipcash.study.reading import read_outcome
from mipcash.study.text import shown
from mipcash.study.trial import Trial


@dataclass(frozen=True)
class Telling:
    """What a trial becomes by what was told.

    Attributes:
        outcome: all that is known of it now.
        part: what of it was told this time.
        status: ``pending`` while an output that was asked for is missing, else as its outputs say.
    """

    outcome: Outcome
    part: Outcome
    status: str

    @property
    def complete(self) -> bool:
        return self.status != PENDING

    @classmethod
    def of(
        cls,
        trial: Trial,
        told: Any,
        partial: bool | None,
        cost: float | Mapping[str, float],
        limits: Sequence[Limit] = (),
    ) -> Telling:
        """Arguments as of :meth:`mipcash.Study.tell`; an evaluation of all outputs owes those with limits besides the loss."""
        asked, known = trial.evaluate, trial.outcome
        if partial is None:
            partial = bool(asked) and isinstance(told, Mapping)
        missing = known.missing(asked or (LOSS, *(limit.output for limit in limits if limit.output != LOSS)))
        wanted = missing if asked or LOSS in missing else (LOSS, *missing)
        part = read_outcome(told, wanted, () if partial else missing, cost)
        outcome = known.with_part(part)
        pending = partial and (not asked or bool(outcome.missing(asked)))
        return cls(outcome, part, PENDING if pending else outcome.status(asked))


def told_costs(cost: Any) -> float | dict[str, float]:
    """A cost as it was told.

    Raises:
        ValueError: it is no finite number, or one in it is none.
    """
    what = "cost must be a finite number, or one per output by name"
    return {str(n): finite(c, what) for n, c in cost.items()} if isinstance(cost, Mapping) else finite(cost, what)


def finite(value: Any, what: str) -> float:
    """A number that a caller gave.

    Raises:
        ValueError: it is none, or not finite; ``what`` says what it should be.
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{what}; got {shown(value)}")
    return number
