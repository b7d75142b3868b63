"""A study whose trials report while they are evaluated by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mipcash.optimizers.outcome import LOSS
from mipcash.study.pruning import Halving, Racing, judge_for
from mipcash.study.repeating import Repeating
from mipcash.study.reports import Reports
from mipcash.study.trial import Trial


class Reporting(Repeating):
    """What :class:`mipcash.Study` knows of reports.

    Attributes:
        pruning: when a trial that was asked for should stop; None: never.
    """

    pruning: Racing | Halving | None

    def _reporting(self, trial: Trial) -> Trial:
        """A trial to hand out, whose evaluation begins now."""
        judge = None if self.pruning is None else judge_for(self.pruning, trial, self.trials, self.limits)
        return replace(trial, reports=Reports(judge))


def outcome_of(trial: Trial, known: Trial, outcome: Any) -> Any:
    """What is told of a trial, with what it reported: that is of the loss, and belongs to what tells it.

    Args:
        known: what was told of it before.
    """
    if trial.reports is None or known.outcome.missing((LOSS,)) == ():
        return outcome
    return trial.reports.outcome(outcome)
