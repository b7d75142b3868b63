"""Policies for lost workers, proposals made ahead, and concurrent writers of the storage."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection
from statistics import median

from mipcash.study.policies.policy import Policy
from mipcash.study.policies.spent import Deadline
from mipcash.study.progress import Progress
from mipcash.study.result import SUSPICIOUS
from mipcash.study.study import Study
from mipcash.study.trial import Trial

NOTABLE = 0.05
"""Proposals are made ahead if they take more than this share of an evaluation. Such a proposal knows one outcome less."""
LATEST = 5
"""Number of trials from which the share is computed."""
LOOK = (0.05, 1.0)
"""First and largest pause, in seconds, between polls of other workers' trials; the pause doubles each time."""


class Suspects(Policy):
    """Evaluates a trial alone if one of its workers died, because a pool that breaks ends all evaluations in it."""

    def __init__(self, study: Study) -> None:
        self._study = study

    def waits(self, in_flight: Collection[Trial]) -> bool:
        return bool(in_flight) and (any(t.lost for t in in_flight) or self._study.table.suspects)


class Shown(Policy):
    """Displays each outcome, including those of other workers."""

    def __init__(self, study: Study, display: Progress) -> None:
        self._study, self._display = study, display
        study.table.arrived()  # the display has the earlier trials already

    def refuses(self, in_flight: Collection[Trial]) -> str:
        self._arrived()
        return ""

    def evaluated(self, trial: Trial, evaluation: object) -> str:
        self._arrived()
        self._display.evaluated(trial)
        if self._study.n_evaluated == SUSPICIOUS and self._study.result.problem():
            self._display.note(self._study.result.problem())
        return ""

    def _arrived(self) -> None:
        for trial in self._study.table.arrived():
            self._display.evaluated_by_others(trial)


class Pace(Policy):
    """Measures the times of proposals and evaluations. If proposals are slow, they are made ahead, while all workers are busy.

    A proposal made ahead waits in the study until a worker is free, or beyond the end of the run.
    """

    def __init__(self) -> None:
        self._asks: deque[float] = deque(maxlen=LATEST)
        self._evaluations: deque[float] = deque(maxlen=LATEST)

    def evaluated(self, trial: Trial, evaluation: object) -> str:
        self._asks.append(trial.seconds.get("ask", 0.0))
        self._evaluations.append(trial.duration or 0.0)
        return ""

    @property
    def slow(self) -> bool:
        """True if a proposal takes a notable share of an evaluation."""
        return bool(self._asks) and median(self._asks) > NOTABLE * median(self._evaluations)


def await_others(study: Study, deadline: Deadline) -> str | None:
    """Wait for a change of the trials that other workers evaluate: one ends, is lost, or is started.

    Returns:
        The reason why the run ends; empty if it goes on; None if no other worker evaluates a trial.
    """
    before, pause = study.table.elsewhere, LOOK[0]
    if not before:
        return None
    while [(t.number, t.attempt) for t in study.table.elsewhere] == [(t.number, t.attempt) for t in before]:
        if reason := deadline.refuses(()):
            return reason
        time.sleep(min(pause, deadline.left or pause))
        pause = min(2.0 * pause, LOOK[1])
        study.table.look()
    return ""
