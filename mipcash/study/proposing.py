"""A study that hands out trials: those that wait, else what its optimizer proposes, beside other writers of its storage.

The number of a trial is taken where it is written; where another writer was first, the optimizer is asked again, of what there is
then. Between the last look at what others did and the beginning of a trial nobody can come: a budget is not exceeded by a race.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from mipcash.space.exclusion import Apart
from mipcash.study.arguments import seconds_of
from mipcash.study.repeating import copy_of
from mipcash.study.reporting import Reporting
from mipcash.study.storage.protocol import TakenError, TrialRow
from mipcash.study.trial import Trial

Admits = Callable[[], bool]
"""Whether another trial may begin, by what is known of the study."""


class SpentError(Exception):
    """Another trial may not begin."""


class Proposing(Reporting):
    """What :class:`mipcash.Study` knows of asking."""

    _seconds: float | None

    def prepare(self, *, seconds: float | None = None) -> bool:
        """Make the next proposal ahead, while evaluations run: it is journaled and pending, and the next ``ask`` returns it.

        Nothing is done where a trial waits already.

        Args:
            seconds: see :meth:`ask`.

        Returns:
            Whether a proposal was made.

        Raises:
            SpaceExhaustedError, IllegalProposalError, ValueError: as for :meth:`ask`.
        """
        limit = self._limit(seconds)
        with self._asking:
            while True:
                with suppress(TakenError):
                    with self._lock:
                        self._ledger.sync()
                        if self._ledger.waiting:
                            return False
                    self._new(None, limit, begin=False)
                    return True

    def ask_within(self, admits: Admits, *, seconds: float | None = None) -> Trial | None:
        """As :meth:`ask`, where another trial may begin; None: it may not.

        Args:
            admits: asked at the moment in which the trial begins, before which no other writer can come.
        """
        limit = self._limit(seconds)
        with suppress(SpentError):
            return self._ask(None, limit, admits)
        return None

    @property
    def elsewhere(self) -> tuple[Trial, ...]:
        """Trials that others who share the storage evaluate, by what is known of them."""
        with self._lock:
            return tuple(copy_of(self._ledger.trials[number]) for number in self._ledger.elsewhere)

    def arrived(self) -> list[Trial]:
        """What others have told since the last call, as far as it was looked at."""
        with self._lock:
            numbers, self._ledger.arrived = self._ledger.arrived, []
            return [copy_of(self._ledger.trials[number]) for number in numbers]

    def look(self) -> None:
        """Take what others who share the storage have done."""
        self._agreed(lambda: None)

    def _limit(self, seconds: float | None) -> float | None:
        """What a proposal may take."""
        given = [s for s in (self._seconds, seconds_of("seconds", seconds)) if s is not None]
        return min(given, default=None)

    def _ask(self, apart: Apart | None, seconds: float | None, admits: Admits | None = None) -> Trial:
        while True:
            with suppress(TakenError):  # by another writer, or an addition meanwhile: look again
                trial = self._waiting(admits) or self._new(apart, seconds, admits=admits)
                return trial if admits else self._reporting(trial)  # a run judges where it evaluates

    def _waiting(self, admits: Admits | None) -> Trial | None:
        """Another attempt at the first trial that nobody is at; None: there is none."""
        with self._lock:
            self._ledger.sync()
            _check(admits)
            waiting = self._ledger.waiting
            return copy_of(self._ledger.restart(waiting[0])) if waiting else None

    def _new(
        self, apart: Apart | None, seconds: float | None, begin: bool = True, admits: Admits | None = None
    ) -> Trial:
        """A new trial, its first attempt begun or left to a later ask.

        The optimizer is asked of a snapshot, so that others may tell outcomes meanwhile.

        Raises:
            TakenError: meanwhile its number has become another's.
            SpentError: it may not begin.
        """
        with self._asking:
            with self._lock:
                self._ledger.sync()
                history, state = self._ledger.history, self._ledger.state
            row = self._questions.proposal(history, state, apart, seconds)
            trial = self._agreed(lambda: self._entered(row, begin, admits))
            if trial is None:
                raise TakenError(f"trial {row.number} is another one already")
            return copy_of(trial)

    def _entered(self, row: TrialRow, begin: bool, admits: Admits | None) -> Trial | None:
        """The trial of a proposal; None: its number is another's."""
        _check(admits)
        return self._ledger.add(row, begin) if row.number == len(self._ledger.trials) else None


def _check(admits: Admits | None) -> None:
    if admits is not None and not admits():
        raise SpentError
