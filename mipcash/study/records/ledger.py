"""A study's trials, kept in step with its storage: every change is written before it counts."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mipcash.errors import StorageError
from mipcash.optimizers.optimizer import Observation
from mipcash.study.records.given import Known, enqueued_row, repeat_row, same, unasked
from mipcash.study.records.telling import Telling
from mipcash.study.records.trials import checked_trial, refreshed, trial_of
from mipcash.study.standing import observation
from mipcash.study.storage.attempts import Change, begun, ended, given_up, reopened, told
from mipcash.study.storage.checks import DamageError, parse
from mipcash.study.storage.protocol import (
    LOST,
    RETURNED,
    Storage,
    StudyRecord,
    TakenError,
    TrialRow,
    this_worker,
    title_of,
)
from mipcash.study.trial import LateError, TellError, Trial

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mipcash.modelling.domains import Configuration
    from mipcash.space.space import Space


class Ledger:
    """The trials of a study that is open.

    Args:
        storage: not open yet; it is closed where opening fails.
        record: the study that wants to go on.
        retries: attempts after lost ones; a trial that lost more has failed.

    Attributes:
        trials: by number.
        state: the optimizer's, after the latest proposal.
        arrived: numbers of trials that others told, in the order in which it was learned; whoever reads them takes them out.
    """

    def __init__(self, space: Space, storage: Storage, record: StudyRecord, retries: int) -> None:
        self._space, self._storage, self._retries = space, storage, retries
        self._rows: list[TrialRow] = []
        self._clocks: dict[int, float] = {}
        self._begun: dict[int, int] = {}  # attempts that this writer is at, by trial
        self.arrived: list[int] = []
        self._pending: set[int] = set()
        self._known: list[int] = []
        self._seen: list[Observation | None] = []
        self.trials: list[Trial] = []
        self.state: dict[str, Any] = {}
        storage.open(record)
        with self._explained():
            for row in storage.rows():
                self._take(row)
        storage.begin()
        while True:
            with suppress(TakenError):
                self.sync()
                break

    @property
    def record(self) -> StudyRecord:
        return self._storage.record

    @property
    def waiting(self) -> list[int]:
        """Numbers of trials that have no outcome and that nobody is at; what others take for lost may still run here."""
        return [n for n in sorted(self._pending) if self._rows[n].waits and n not in self._begun]

    @property
    def suspects(self) -> bool:
        """Whether a trial waits that lost a worker."""
        return any(self._rows[number].lost for number in self.waiting)

    @property
    def elsewhere(self) -> list[int]:
        """Numbers of trials that other writers are at."""
        rows = ((number, self._rows[number]) for number in sorted(self._pending))
        return [number for number, row in rows if row.running and row.attempt != self._begun.get(number)]

    @property
    def n_told(self) -> int:
        """How many trials have an outcome that was not known before."""
        return len(self._rows) - len(self._pending) - len(self._known)

    @property
    def history(self) -> tuple[Observation, ...]:
        """The trials as an optimizer sees them; one of which nothing new is known is the same object as before."""
        for number, trial in enumerate(self.trials):
            if self._seen[number] is None:
                self._seen[number] = observation(trial)
        return tuple(self._seen)  # type: ignore[arg-type]

    def sync(self) -> None:
        """Take what other writers of the storage have done.

        Raises:
            TakenError: another writer came before what follows from that; call it again.
        """
        with self._explained():
            for row in self._storage.news():
                before = row.number >= len(self.trials) or self.trials[row.number].pending
                self._take(row)
                if before and not self.trials[row.number].pending:
                    self.arrived.append(row.number)
        for number in self.waiting:
            if self._rows[number].lost > self._retries:
                self._give_up(self._rows[number])

    def add(self, row: TrialRow, begin: bool = True) -> Trial:
        """A proposal that follows the trials that there are, its first attempt begun, or waiting for it.

        The trial is made from the row, so that a resumed run sees the same values.

        Raises:
            TakenError: another writer was first.
        """
        if begin:
            row, _ = begun(row, this_worker(), time.time())
        trial = trial_of(self._space, row, self.record.id, self.record.goals)
        self._storage.insert(row)
        self._hold(row, trial)
        if begin:
            self._begun[row.number] = row.attempt
        self.state = json.loads(row.state)
        self._clocks[row.number] = time.perf_counter()
        return trial

    def know(self, known: Sequence[Known]) -> list[Trial]:
        """Evaluations made elsewhere, all of them or none.

        Raises:
            TakenError: another trial has one of their numbers.
        """
        first = len(self._rows)
        rows = [one.row(self._space, first + k, self.state) for k, one in enumerate(known)]
        if not rows:
            return []
        self._outdate()
        return self._enter(rows)

    def unknown(self, given: Sequence[Known]) -> list[Known]:
        """Those of some evaluations that are not there yet; one that is given twice is to be there twice."""
        there = Counter(Known.told(self.trials[number]).key(self._space) for number in self._known)
        left = []
        for one in given:
            key = one.key(self._space)
            if not there[key]:
                left.append(one)
            there[key] -= there[key] > 0
        return left

    def enqueue(self, config: Configuration, apart: Sequence[str] = ()) -> Trial:
        """A configuration that waits for its first attempt; where it was proposed or is known, the trial that there is.

        Args:
            apart: outputs that may be evaluated apart: the trial is for those that were not proposed there.

        Raises:
            TakenError: another trial has its number.
        """
        found, outputs = same(self._space, config, self.trials), unasked(self._space, config, self.trials, apart)
        if found and not outputs:
            return found
        return self._enter([enqueued_row(self._space, len(self._rows), config, self.state, outputs)])[0]

    def repeat(self, of: Trial, repeat: int) -> Trial:
        """Another evaluation of a trial's configuration, which waits for its first attempt; where there is one, that.

        Raises:
            TellError: the trial belongs to another study.
            TakenError: another trial has its number.
        """
        if of.study != self.record.id or of.number >= len(self.trials):
            raise TellError(f"trial {of.number} was asked of another study; repeat it in the study that proposed it")
        config = self.trials[of.number].config
        for trial in self.trials:
            if trial.repeat == repeat and trial.config == config:
                return trial
        return self._enter([repeat_row(self._space, len(self._rows), config, self.state, repeat)])[0]

    def _enter(self, rows: Sequence[TrialRow]) -> list[Trial]:
        """Trials that a user brings, as they are."""
        trials = [trial_of(self._space, row, self.record.id, self.record.goals) for row in rows]
        self._storage.insert(*rows)
        for row, trial in zip(rows, trials, strict=True):
            self._hold(row, trial)
        return trials

    def mine(self, trial: Trial, told: bool = False) -> Trial:
        """What is known of a trial, since the latest look, that may be told, or whose outcome may be taken back.

        Raises:
            TellError: it may not.
        """
        if not isinstance(trial, Trial):
            raise TellError(
                f"tell() takes the trial that ask() returned and then its outcome, got {trial!r} as the trial"
            )
        if trial.study != self.record.id or trial.number >= len(self.trials):
            raise TellError(f"trial {trial.number} was asked of another study; tell it to the study that proposed it")
        mine = self.trials[trial.number]
        if not (mine.pending or told) and trial.number in self._begun:
            del self._begun[trial.number]
            raise LateError(
                f"trial {trial.number} was given up for lost here, and another worker told its outcome; this one is ignored"
            )
        if not (mine.pending or told):
            raise TellError(f"trial {trial.number} has been told already ({mine.status}); each trial is told once")
        if told and (mine.pending or mine.known):
            what = "has no outcome" if mine.pending else "was evaluated elsewhere"
            raise TellError(f"trial {trial.number} {what}, so that there is nothing to evaluate again")
        return mine

    def restart(self, number: int) -> Trial:
        """Another attempt at a trial that waits.

        Raises:
            TakenError: another writer is at it.
        """
        row, evaluations = begun(self._rows[number], this_worker(), time.time())
        self._storage.start(evaluations)
        self._begun[number], self._clocks[number] = row.attempt, time.perf_counter()
        return self._keep(row)

    def seconds(self, number: int) -> float:
        """Since the latest attempt began here; 0 where it did not."""
        now = time.perf_counter()
        return now - self._clocks.get(number, now)

    def tell(self, number: int, telling: Telling, worker: str, duration: float) -> Trial:
        """Outputs of the attempt that was begun here; of one that was begun elsewhere, those of the latest."""
        took, attempt = duration if telling.complete else None, self._begun.get(number)
        change = told(
            self._rows[number], telling.part, telling.status, worker or this_worker(), time.time(), took, attempt
        )
        trial = self._write(change)
        if telling.complete:
            self._begun.pop(number, None)
        return trial

    def lose(self, number: int, cause: str) -> Trial:
        """The worker of the latest attempt died: the trial waits for another, or has failed."""
        trial = self._end(number, LOST, cause)
        return (
            trial if not self._rows[number].waits or trial.lost <= self._retries else self._give_up(self._rows[number])
        )

    def give_back(self, number: int) -> Trial:
        """The latest attempt is given up; the trial waits."""
        return self._end(number, RETURNED, "")

    def _end(self, number: int, status: str, message: str) -> Trial:
        """End the latest attempt; one that another writer has begun since goes on."""
        row, attempt = self._rows[number], self._begun.get(number)
        trial = self.trials[number]
        if attempt is None or attempt == row.attempt:
            trial = self._write(ended(row, status, message, time.time()))
        self._begun.pop(number, None)
        return trial

    def reopen(self, number: int) -> Trial:
        """The outcome of a trial counts no longer; the trial waits."""
        return self._write(reopened(self._rows[number]))

    def note(self, **changes: Any) -> None:
        """What a run intends, and how it ended."""
        self._storage.note(replace(self.record, **changes))

    def _give_up(self, row: TrialRow) -> Trial:
        causes = [e.message for e in sorted(row.evaluations, key=lambda e: e.attempt) if e.status == LOST]
        times = "once" if row.lost == 1 else f"{row.lost} times"
        said = f"its worker died {times}; at last: {causes[-1]}"
        return self._write(given_up(row, said, time.time(), self.record.limits))

    def _write(self, change: Change) -> Trial:
        row, changed = change
        self._outdate()
        self._storage.write(row, changed)
        return self._keep(row)

    def _outdate(self) -> None:
        """What was recommended was so before this was known."""
        if self.record.recommended is not None:
            self.note(recommended=None)

    def _keep(self, row: TrialRow) -> Trial:
        trial = refreshed(self.trials[row.number], row)
        self._hold(row, trial)
        return trial

    def _hold(self, row: TrialRow, trial: Trial) -> None:
        """Put a row, new or changed, in its place."""
        if row.number == len(self._rows):
            self._rows.append(row)
            self.trials.append(trial)
            self._seen.append(None)
            if trial.known:
                self._known.append(row.number)
        else:
            self._rows[row.number], self.trials[row.number], self._seen[row.number] = row, trial, None
        (self._pending.add if trial.pending else self._pending.discard)(row.number)

    def _take(self, row: TrialRow) -> None:
        """A row from the storage."""
        trial = checked_trial(self._space, row, self.record.id, self.record.goals)
        if row.number == len(self._rows):
            self.state = parse(row.state, f"state of trial {row.number}")
        self._hold(row, trial)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Name the storage where something in it is damaged."""
        try:
            yield
        except DamageError as error:
            name = title_of(self._storage)
            raise StorageError(
                f"{name} is damaged or was edited: {error}; restore it from a copy, or move it aside and start a new journal"
            ) from error
