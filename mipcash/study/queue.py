"""Hand out the trials of a study: those that wait, else a proposal of its optimizer.

The number of a trial is fixed when it is written. Where another writer of the storage was first, the optimizer is asked again with
what is known then. No other writer can come between the last look at the storage and the beginning of a trial, so that several
workers together do not exceed a budget.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from mipcash.space.exclusion import Apart
from mipcash.study.proposer import Proposer
from mipcash.study.replication import next_repeat
from mipcash.study.storage.protocol import TakenError, TrialRow
from mipcash.study.table import TrialTable
from mipcash.study.trial import Trial

Admits = Callable[[], bool]
"""Return whether another trial may begin, by what is known of the study."""


class SpentError(Exception):
    """Another trial may not begin."""


class Queue:
    """Trials of a study to evaluate next.

    Args:
        seconds: that a proposal may take at most; None: no limit.
    """

    def __init__(self, table: TrialTable, proposer: Proposer, seconds: float | None) -> None:
        self._table, self._proposer, self._seconds = table, proposer, seconds

    def next(self, apart: Apart | None, seconds: float | None, admits: Admits | None = None) -> Trial | None:
        """Return the next trial to evaluate, its attempt begun; None if it may not begin.

        Args:
            apart: the rest of a batch, and the minimum distance to it.
            seconds: that the proposal may take, where that is less than the limit of all proposals.
            admits: asked at the moment in which the trial begins. None: it may begin.

        Raises:
            SpaceExhaustedError, IllegalProposalError: as for :meth:`mipcash.Study.ask`.
        """
        with suppress(SpentError):
            while True:
                with suppress(TakenError):  # by another writer, or an addition meanwhile: look again
                    return (self._waiting(admits) or self._new(apart, seconds, admits=admits)).copy()
        return None

    def repeat(self) -> Trial | None:
        """Return the next repeat that waits, its attempt begun; None if no repeat waits."""

        def restarted() -> Trial | None:
            waiting = (k for k in self._table.waiting if self._table.trials[k].repeat)
            number = next(waiting, None)
            return None if number is None else self._table.restart(number).copy()

        return self._table.agreed(restarted)

    def replicate(self) -> bool:
        """Enqueue a repeat of the configuration that is most likely the best; return whether there is one."""

        def enqueued() -> bool:
            chosen = next_repeat(self._table.history, self._proposer.limits)
            if chosen is not None:
                self._table.repeat(self._table.trials[chosen[0]], chosen[1])
            return chosen is not None

        return self._table.agreed(enqueued)

    def prepare(self, seconds: float | None = None) -> bool:
        """Make the next proposal while evaluations run: it is journaled, and the next call of :meth:`next` returns it.

        Returns:
            Whether a proposal was made. None is made where a trial waits already.

        Raises:
            SpaceExhaustedError, IllegalProposalError: as for :meth:`next`.
        """
        with self._proposer.lock:
            while True:
                with suppress(TakenError):
                    with self._table.lock:
                        self._table.sync()
                        if self._table.waiting:
                            return False
                    self._new(None, seconds, begin=False)
                    return True

    def _waiting(self, admits: Admits | None) -> Trial | None:
        """Begin another attempt at the first trial that waits; None if no trial waits."""
        with self._table.lock:
            self._table.sync()
            _check(admits)
            waiting = self._table.waiting
            return self._table.restart(waiting[0]) if waiting else None

    def _new(
        self, apart: Apart | None, seconds: float | None, begin: bool = True, admits: Admits | None = None
    ) -> Trial:
        """Add a proposal, its first attempt begun or left to a later call.

        The optimizer is asked with a snapshot, so that other threads may tell outcomes meanwhile.

        Raises:
            TakenError: another trial got its number meanwhile.
            SpentError: it may not begin.
        """
        with self._proposer.lock:
            with self._table.lock:
                self._table.sync()
                history, state = self._table.history, self._table.state
            limit = min((s for s in (self._seconds, seconds) if s is not None), default=None)
            row = self._proposer.proposal(history, state, apart, limit)
            trial = self._table.agreed(lambda: self._entered(row, begin, admits))
            if trial is None:
                raise TakenError(f"trial {row.number} is another one already")
            return trial

    def _entered(self, row: TrialRow, begin: bool, admits: Admits | None) -> Trial | None:
        """Add the trial of a proposal; None if another trial has its number."""
        _check(admits)
        return self._table.add(row, begin) if row.number == len(self._table.trials) else None


def _check(admits: Admits | None) -> None:
    if admits is not None and not admits():
        raise SpentError
