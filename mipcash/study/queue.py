"""Hand out the trials of a study: waiting trials first, then proposals of its optimizer.

The number of a trial is fixed when it is written. If a concurrent writer wrote first, the optimizer is asked again with the new
history. No other writer can intervene between the last look at the storage and the start of a trial, so several workers together do
not exceed a budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from mipcash.modelling.domains import Value
from mipcash.space.exclusion import MinimumDistance
from mipcash.study.proposer import Proposer
from mipcash.study.replication import next_repeat
from mipcash.study.storage.protocol import TakenError, TrialRow
from mipcash.study.table import TrialTable
from mipcash.study.trial import Trial

Admits = Callable[[], bool]
"""Returns True if another trial may start, by what is known of the study."""


class SpentError(Exception):
    """Raised if no other trial may start."""


class Queue:
    """Queue of the trials of a study to evaluate next.

    Args:
        seconds: limit for each proposal; None: no limit.
    """

    def __init__(self, table: TrialTable, proposer: Proposer, seconds: float | None) -> None:
        self._table, self._proposer, self._seconds = table, proposer, seconds

    def next(
        self,
        min_distance: MinimumDistance | None,
        seconds: float | None,
        admits: Admits | None = None,
        fixed: Mapping[str, Value] | None = None,
    ) -> Trial | None:
        """Start and return the next trial to evaluate; None if ``admits`` does not allow it.

        Args:
            min_distance: the trials of the batch so far, and the minimum distance from them.
            seconds: limit for this proposal, if lower than the general limit.
            admits: called just before the trial starts; returns True if it may start. None: it may.
            fixed: values that the trial has; waiting trials then wait on.

        Raises:
            SpaceExhaustedError, IllegalProposalError: as for ``mipcash.Study.ask``.
        """
        with suppress(SpentError):
            while True:
                with suppress(
                    TakenError
                ):  # conflict with another writer, or a trial was added: repeat with the new history
                    waiting = None if fixed else self._waiting(admits)
                    return (waiting or self._new(min_distance, seconds, admits=admits, fixed=fixed)).copy()
        return None

    def repeat(self) -> Trial | None:
        """Start and return the next waiting repeat; None if no repeat waits."""

        def restarted() -> Trial | None:
            waiting = (k for k in self._table.waiting if self._table.trials[k].repeat)
            number = next(waiting, None)
            return None if number is None else self._table.restart(number).copy()

        return self._table.agreed(restarted)

    def replicate(self) -> bool:
        """Enqueue a repeat of the configuration that is most likely the best. Return False if there is nothing to repeat."""

        def enqueued() -> bool:
            chosen = next_repeat(self._table.history, self._proposer.limits)
            if chosen is not None:
                self._table.repeat(self._table.trials[chosen[0]], chosen[1], tuple(self._proposer.costs))
            return chosen is not None

        return self._table.agreed(enqueued)

    def prepare(self, most: int, seconds: float | None = None) -> bool:
        """Make and journal the next proposal while evaluations run. A later call of ``next`` returns it.

        Returns:
            True if a proposal was made; False if ``most`` trials are waiting already.

        Raises:
            SpaceExhaustedError, IllegalProposalError: as for ``next``.
        """
        with self._proposer.lock:
            while True:
                with suppress(TakenError):
                    with self._table.lock:
                        self._table.sync()
                        if len(self._table.waiting) >= most:
                            return False
                    self._new(None, seconds, begin=False)
                    return True

    def _waiting(self, admits: Admits | None) -> Trial | None:
        """Start another attempt at the first waiting trial; return None if no trial waits.

        Raises:
            SpentError: it may not start.
        """
        with self._table.lock:
            self._table.sync()
            _check(admits)
            waiting = self._table.waiting
            return self._table.restart(waiting[0]) if waiting else None

    def _new(
        self,
        min_distance: MinimumDistance | None,
        seconds: float | None,
        begin: bool = True,
        admits: Admits | None = None,
        fixed: Mapping[str, Value] | None = None,
    ) -> Trial:
        """Add a proposal, and start its first attempt if ``begin`` is True.

        The optimizer works on a snapshot, so that other threads may record outcomes meanwhile.

        Raises:
            TakenError: another trial has been added under its number meanwhile.
            SpentError: it may not start.
        """
        with self._proposer.lock:
            with self._table.lock:
                self._table.sync()
                history, state = self._table.history, self._table.state
            limit = min((s for s in (self._seconds, seconds) if s is not None), default=None)
            row = self._proposer.proposal(history, state, min_distance, limit, fixed)
            trial = self._table.agreed(lambda: self._entered(row, begin, admits))
            if trial is None:
                raise TakenError(f"another trial has the number {row.number} already")
            return trial

    def _entered(self, row: TrialRow, begin: bool, admits: Admits | None) -> Trial | None:
        """Add the trial of a proposal; return None if another trial has its number."""
        _check(admits)
        return self._table.add(row, begin) if row.number == len(self._table.trials) else None


def _check(admits: Admits | None) -> None:
    if admits is not None and not admits():
        raise SpentError
