"""Sources of the trials of a loop: a search, repeats of finalists, or repeats of the configuration that is most likely the best."""

from __future__ import annotations

from collections.abc import Collection

from mipcash.errors import SpaceExhaustedError, UndecidedError
from mipcash.study.policies.policy import BUDGET, CONFIRMED, EXHAUSTED, NEARLY, UNDECIDED
from mipcash.study.policies.spent import Deadline, WithinBudget
from mipcash.study.policies.workers import Pace
from mipcash.study.study import Study
from mipcash.study.trial import Trial


class Search:
    """Waiting trials of a study, then proposals of its optimizer."""

    def __init__(self, study: Study, budget: WithinBudget, deadline: Deadline, pace: Pace) -> None:
        self._study, self._budget, self._deadline, self._pace = study, budget, deadline, pace

    def next(self, in_flight: Collection[Trial]) -> Trial | str:
        """Start and return the next trial, or return the reason why there is none; empty if there may be one later."""
        try:
            trial = self._study.queue.next(None, self._seconds, lambda: self._budget.pays(in_flight))
        except SpaceExhaustedError as error:
            # a running evaluation may make the optimizer request another output of its configuration
            return "" if in_flight and self._study.costs else _reason(error)
        except UndecidedError:
            if not self._study.n_evaluated:
                raise
            return "" if in_flight else UNDECIDED
        if trial is None:  # other workers have used up the budget meanwhile
            return BUDGET
        # the proposal itself may have taken the rest of the time
        reason = self._deadline.refuses(in_flight) or ("" if self._budget.pays_for(trial, in_flight) else BUDGET)
        if reason:
            self._study.give_back(trial)
            return reason
        return trial

    @property
    def _seconds(self) -> float | None:
        return min((s for s in (self._deadline.left, self._pace.limit) if s is not None), default=None)

    def ahead(self) -> bool | str:
        """Prepare a trial while all workers are busy. Return True if one was made, False if not, or the reason why the run ends."""
        try:
            most = self._pace.ahead
            return most > 0 and self._study.queue.prepare(most, self._seconds)
        except SpaceExhaustedError as error:
            return False if self._study.costs else _reason(error)
        except UndecidedError:
            return False


def _reason(error: SpaceExhaustedError) -> str:
    return EXHAUSTED if error.proven else NEARLY


class Repeats:
    """Waiting repeats of a study.

    Args:
        chosen: if True and no repeat waits, enqueue another one of the configuration that is most likely the best
            (``mipcash.study.replication``).
    """

    def __init__(self, study: Study, chosen: bool = False) -> None:
        self._study, self._chosen = study, chosen

    def next(self, in_flight: Collection[Trial]) -> Trial | str:
        queue = self._study.queue
        found = queue.repeat()  # first a repeat that was interrupted, as its loss decides which one is next
        if found is None and self._chosen and queue.replicate():
            found = queue.repeat()
        return found or ("" if in_flight else CONFIRMED)

    def ahead(self) -> bool | str:
        return False
