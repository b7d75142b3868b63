"""Policies for lost workers, proposals made ahead, and concurrent writers of the storage."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Collection
from statistics import median

from mipcash.errors import warn
from mipcash.optimizers.outcome import LOSS, MISSING, VARIANCE
from mipcash.study.policies.policy import Policy
from mipcash.study.policies.spent import Deadline
from mipcash.study.progress import Progress
from mipcash.study.reading import unread
from mipcash.study.result import SUSPICIOUS
from mipcash.study.study import Study
from mipcash.study.trial import Trial

NOTABLE, AHEAD = 0.1, 0.25
"""Proposals are made ahead if one for each worker takes more than this share of an evaluation; the largest share of the workers for
which proposals wait. Such a proposal knows the outcomes less that come meanwhile."""
WORTH = 1.0
"""Least time of evaluations, in seconds, for which proposals are shortened."""
PROPOSING = 0.6
"""Share of the time for which proposals are made; in the rest outcomes are recorded, and a fit that began in time ends."""
LATEST = 5
"""Number of trials from which times are computed."""
LOOK = (0.05, 1.0)
"""First and largest pause, in seconds, between polls of other workers' trials; the pause doubles each time."""


class Suspects(Policy):
    """Evaluates a trial alone if one of its workers died, because a pool that breaks ends all evaluations in it."""

    def __init__(self, study: Study) -> None:
        self._study = study

    def waits(self, in_flight: Collection[Trial]) -> bool:
        return bool(in_flight) and (any(t.lost for t in in_flight) or self._study.table.suspects)


class Shown(Policy):
    """Displays each outcome, including those of other workers, and warns of further outputs that cannot be kept."""

    def __init__(self, study: Study, display: Progress) -> None:
        self._study, self._display = study, display
        self._warned = {LOSS, *study.objectives.names, *(limit.output for limit in study.limits), *study.costs}
        study.table.arrived()  # the display has the earlier trials already

    def refuses(self, in_flight: Collection[Trial]) -> str:
        self._arrived()
        return ""

    def evaluated(self, trial: Trial, evaluation: object) -> str:
        self._arrived()
        self._display.evaluated(trial)
        for name, output in trial.outcome.outputs.items():
            if name not in self._warned and unread(output):
                self._warned.add(name)
                warn(f"output {name!r} is not kept: {output.message}")
        variance = trial.outcome[VARIANCE]
        known = variance.value is not None and 0 <= variance.value < math.inf
        if VARIANCE not in self._warned and variance.status != MISSING and not known:
            self._warned.add(VARIANCE)
            given = variance.message if variance.value is None else variance.value
            warn(f"output 'variance' is no noise variance, a finite number of at least 0: {given}")
        if self._study.n_evaluated == SUSPICIOUS:
            if problem := self._study.result.problem():
                self._display.note(problem)
            steps = (o.folds for t in self._study.trials for o in t.outcome.outputs.values())
            if self._study.pruning is not None and trial.done and not any(steps):
                warn(
                    "pruning= has no effect, since the objective neither yields its steps nor reports them by trial.report"
                )
        return ""

    def _arrived(self) -> None:
        for trial in self._study.table.arrived():
            self._display.evaluated_by_others(trial)


class Pace(Policy):
    """Measures the times of proposals and evaluations. If proposals are slow, they are made ahead, while all workers are busy.

    A proposal made ahead waits in the study until a worker is free, or beyond the end of the run.

    Args:
        workers: number of evaluations at a time.
    """

    def __init__(self, workers: int = 1) -> None:
        self._workers = workers
        self._asks: deque[float] = deque(maxlen=LATEST)
        self._evaluations: deque[float] = deque(maxlen=LATEST)

    def evaluated(self, trial: Trial, evaluation: object) -> str:
        self._asks.append(trial.seconds.get("ask", 0.0))
        self._evaluations.append(trial.duration or 0.0)
        return ""

    @property
    def ahead(self) -> int:
        """Number of proposals that may wait; 0 unless proposals are slow."""
        if not self._asks:
            return 0
        asks, evaluation = median(self._asks) * self._workers, median(self._evaluations)
        if asks <= NOTABLE * evaluation:
            return 0
        return max(1, int(AHEAD * self._workers * min(1.0, asks / max(evaluation, 1e-9))))

    @property
    def limit(self) -> float | None:
        """Seconds for a proposal; None: no limit.

        If a proposal takes a seconds, an evaluation e and there are w workers, a worker gets one every max(e, w a) seconds, and
        waits for max(0, w a - e). So it does not wait if a <= e / w.
        """
        evaluation = median(self._evaluations) if self._evaluations else 0.0
        return None if self._workers == 1 or evaluation < WORTH else PROPOSING * evaluation / self._workers


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
