"""The protocol of policies: what a run asks and tells them.

A loop (:mod:`mipcash.study.loop`) knows no policy by name. Before a trial begins it asks whether one may begin; it tells each
outcome; it lets policies check the run when outcomes are in; and it says when the run ends.
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
BEST_OF_ALL = f"{EXHAUSTED}: best of all legal configurations, if the objective is deterministic"
CALLBACK = "callback"
OPTIMIZER = "optimizer"
"""The optimizer wished to stop; its reason follows."""
DEFECT = "defect"
"""The objective fails for a reason of its own, which follows."""
CONFIRMED = "confirmed"
"""All repeats are evaluated."""
FINAL = (TIMEOUT, CALLBACK)
"""Reasons that no later event withdraws."""


class Policy:
    """A policy that does nothing. Derive from it and override what the policy is about."""

    def refuses(self, in_flight: Collection[Trial]) -> str:
        """Return the reason for which no further trial may begin; empty if one may begin."""
        return ""

    def waits(self, in_flight: Collection[Trial]) -> bool:
        """Return whether the trials in flight must end before another trial begins."""
        return False

    def told(self, trial: Trial, evaluation: Evaluation | None) -> str:
        """Take note of an outcome; return the reason for which it ends the run, or an empty text.

        Args:
            trial: with its outcome.
            evaluation: that gave the outcome; None if the worker of the trial was lost.
        """
        return ""

    def check(self, in_flight: Collection[Trial]) -> None:
        """Look at the run after outcomes came in.

        Raises:
            DefectError: the run cannot go on.
        """

    def ends(self, reason: str) -> None:
        """Look at the run at its end.

        Raises:
            DefectError: the run was in vain.
        """
