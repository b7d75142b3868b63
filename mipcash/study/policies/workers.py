"""Trials whose workers were lost, proposals made ahead, and other writers of the storage."""

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
"""Share of an evaluation from which on proposals are made ahead. A proposal that is made ahead knows one outcome less."""
LATEST = 5
"""Trials by which the share is judged."""
LOOK = (0.05, 1.0)
"""Seconds between looks at what others evaluate, where nothing else is left: the first, which doubles each time, and the most."""


class Suspects(Policy):
    """A trial that lost a worker is evaluated alone: a broken pool ends all evaluations that run in it."""

    def __init__(self, study: Study) -> None:
        self._study = study

    def waits(self, in_flight: Collection[Trial]) -> bool:
        return bool(in_flight) and (any(t.lost for t in in_flight) or self._study.table.suspects)


class Shown(Policy):
    """Each outcome is shown, those of other writers included."""

    def __init__(self, study: Study, display: Progress) -> None:
        self._study, self._display = study, display
        study.table.arrived()  # the display knows what was there before

    def refuses(self, in_flight: Collection[Trial]) -> str:
        self._arrived()
        return ""

    def told(self, trial: Trial, evaluation: object) -> str:
        self._arrived()
        self._display.told(trial)
        if self._study.n_told == SUSPICIOUS and self._study.result.problem():
            self._display.note(self._study.result.problem())
        return ""

    def _arrived(self) -> None:
        for trial in self._study.table.arrived():
            self._display.elsewhere(trial)


class Pace(Policy):
    """How long proposals and evaluations take: proposals are made ahead, while all workers are busy, where they take long.

    A proposal that was made ahead waits in the study until a worker is free, and stays there where the run ends before.
    """

    def __init__(self) -> None:
        self._asks: deque[float] = deque(maxlen=LATEST)
        self._evaluations: deque[float] = deque(maxlen=LATEST)

    def told(self, trial: Trial, evaluation: object) -> str:
        self._asks.append(trial.seconds.get("ask", 0.0))
        self._evaluations.append(trial.duration or 0.0)
        return ""

    @property
    def slow(self) -> bool:
        """Whether a proposal takes a notable share of an evaluation."""
        return bool(self._asks) and median(self._asks) > NOTABLE * median(self._evaluations)


def await_others(study: Study, deadline: Deadline) -> str | None:
    """Wait until something becomes of the trials that other writers evaluate, which may be left for this worker.

    Returns:
        Why the run ends; empty if it goes on; None if other writers evaluate nothing.
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
