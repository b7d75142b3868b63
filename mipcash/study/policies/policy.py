"""Interface of policies, which decide when a run waits or ends.

A loop (``mipcash.study.loop``) knows no policy by name. It asks its policies before each trial whether the trial may start,
passes each outcome to them, lets them check the run after outcomes came in, and informs them of the end of the run.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from mipcash.study.trial import Trial

if TYPE_CHECKING:
    from mipcash.study.evaluating.evaluation import Evaluation

BUDGET = "budget"
TIMEOUT = "timeout"
EXHAUSTED = "space exhausted"
UNDECIDED = "no further configuration was found in the time of a proposal, nor proof that there is none"
NEARLY = f"{EXHAUSTED} within the solver's tolerance"
BEST_OF_ALL = f"{EXHAUSTED}: best of all legal configurations, if the objective is deterministic"
CALLBACK = "callback"
OPTIMIZER = "optimizer"
"""The optimizer requested to stop; its reason follows."""
DEFECT = "defect"
"""The failures are due to the objective itself; the message follows."""
CONFIRMED = "confirmed"
"""All repeats are evaluated."""
FINAL = (TIMEOUT, CALLBACK)
"""Reasons that no later event revokes."""


class Policy:
    """A policy that does nothing. Derive from it and override the methods that the policy needs."""

    def refuses(self, in_flight: Collection[Trial]) -> str:
        """Return the reason why no further trial may start; empty if one may start."""
        return ""

    def waits(self, in_flight: Collection[Trial]) -> bool:
        """Return True if the trials in flight must end before another trial starts."""
        return False

    def evaluated(self, trial: Trial, evaluation: Evaluation | None) -> str:
        """Process an outcome. Return the reason why it ends the run, or an empty text.

        Args:
            trial: with its outcome.
            evaluation: the evaluation; None if the worker of the trial was lost.
        """
        return ""

    def check(self, in_flight: Collection[Trial]) -> None:
        """Check the run after outcomes came in.

        Raises:
            DefectError: the run cannot go on.
        """

    def ends(self, reason: str) -> None:
        """Check the run at its end.

        Raises:
            DefectError: the evaluations failed because of a defect of the objective.
        """
