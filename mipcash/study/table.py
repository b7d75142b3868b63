"""Trials of a study in step with its storage: every change is written before it counts.

Several threads may use a table, and several processes the storage. A change is made under the table's lock, from what the storage
holds at that moment. Where another writer came first, it is made again from what that writer did.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

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
    from collections.abc import Callable, Iterator, Sequence

    from mipcash.modelling.domains import Configuration
    from mipcash.space.space import Space

T = TypeVar("T")


class TrialTable:
    """Trials of an open study.

    Methods that change something raise :class:`~mipcash.study.storage.protocol.TakenError` where another writer of the storage came
    first; call them through :meth:`agreed`, which repeats them.

    Args:
        storage: not open yet. It is left open where opening fails, for its owner to close.
        record: the study that wants to go on.
        retries: further attempts at a trial whose worker was lost, after which it has failed.

    Attributes:
        lock: held while the table is read or changed.
        trials: by number.
        state: of the optimizer, after the latest proposal.
    """

    def __init__(self, space: Space, storage: Storage, record: StudyRecord, retries: int) -> None:
        self.lock = threading.RLock()
        self.trials: list[Trial] = []
        self.state: dict[str, Any] = {}
        self._space, self._storage, self._retries = space, storage, retries
        self._rows: list[TrialRow] = []
        self._clocks: dict[int, float] = {}
        self._mine: dict[int, int] = {}  # attempts that this writer evaluates, by trial
        self._arrived: list[int] = []
        self._pending: set[int] = set()
        self._known: list[int] = []
        self._seen: list[Observation | None] = []
        storage.open(record)
        with self._explained():
            for row in storage.rows():
                self._take(row)
        storage.begin()
        while True:
            with suppress(TakenError):
                self.sync()
                break

    # -- what is known ------------------------------------------------------------------------------------------

    @property
    def record(self) -> StudyRecord:
        """Row of the study."""
        return self._storage.record

    @property
    def title(self) -> str:
        """Name of the storage in messages."""
        return title_of(self._storage)

    @property
    def waiting(self) -> list[int]:
        """Numbers of the trials without an outcome that no worker evaluates, by what this writer knows."""
        return [n for n in sorted(self._pending) if self._rows[n].waits and n not in self._mine]

    @property
    def suspects(self) -> bool:
        """Whether a trial waits that lost a worker; it is best evaluated alone."""
        return any(self._rows[number].lost for number in self.waiting)

    @property
    def elsewhere(self) -> tuple[Trial, ...]:
        """Trials that other writers evaluate."""
        rows = [(number, self._rows[number]) for number in sorted(self._pending)]
        return tuple(self.trials[n].copy() for n, row in rows if row.running and row.attempt != self._mine.get(n))

    @property
    def n_told(self) -> int:
        """Number of trials with an outcome, known ones left out."""
        return len(self._rows) - len(self._pending) - len(self._known)

    @property
    def wish(self) -> str:
        """Why the optimizer wishes no further proposal; empty while it does not, or while a trial waits."""
        return self.trials[-1].stop if self.trials and not self.waiting else ""

    @property
    def history(self) -> tuple[Observation, ...]:
        """Trials as an optimizer sees them; a trial of which nothing new is known is the same object as before."""
        for number, trial in enumerate(self.trials):
            if self._seen[number] is None:
                self._seen[number] = observation(trial)
        return tuple(self._seen)  # type: ignore[arg-type]

    # -- other writers ------------------------------------------------------------------------------------------

    def agreed(self, change: Callable[[], T]) -> T:
        """Make a change under the lock, from what the storage holds; again where another writer came first."""
        while True:
            with self.lock, suppress(TakenError):
                self.sync()
                return change()

    def look(self) -> None:
        """Take over what other writers of the storage have done."""
        self.agreed(lambda: None)

    def sync(self) -> None:
        """Take over what other writers of the storage have done.

        Raises:
            TakenError: another writer came before what follows from that; call it again.
        """
        with self._explained():
            for row in self._storage.news():
                before = row.number >= len(self.trials) or self.trials[row.number].pending
                self._take(row)
                if before and not self.trials[row.number].pending:
                    self._arrived.append(row.number)
        for number in self.waiting:
            if self._rows[number].lost > self._retries:
                self._give_up(self._rows[number])

    def arrived(self) -> list[Trial]:
        """Return the trials that other writers told since the last call, in the order in which this was learned."""
        with self.lock:
            numbers, self._arrived = self._arrived, []
            return [self.trials[number].copy() for number in numbers]

    # -- new trials ---------------------------------------------------------------------------------------------

    def add(self, row: TrialRow, begin: bool = True) -> Trial:
        """Add a proposal with the next number, its first attempt begun, or waiting for it.

        The trial is made from the row, so that a resumed run sees the same values.
        """
        if begin:
            row, _ = begun(row, this_worker(), time.time())
        trial = trial_of(self._space, row, self.record.id, self.record.goals)
        self._storage.insert(row)
        self._hold(row, trial)
        if begin:
            self._mine[row.number] = row.attempt
        self.state = json.loads(row.state)
        self._clocks[row.number] = time.perf_counter()
        return trial

    def know(self, known: Sequence[Known]) -> list[Trial]:
        """Add evaluations that were made outside the study, all of them or none."""
        first = len(self._rows)
        rows = [one.row(self._space, first + k, self.state) for k, one in enumerate(known)]
        if not rows:
            return []
        self._outdate()
        return self._enter(rows)

    def unknown(self, given: Sequence[Known]) -> list[Known]:
        """Return the evaluations that are not in the table; one that is given twice is to be there twice."""
        there = Counter(Known.told(self.trials[number]).key(self._space) for number in self._known)
        left = []
        for one in given:
            key = one.key(self._space)
            if not there[key]:
                left.append(one)
            there[key] -= there[key] > 0
        return left

    def enqueue(self, config: Configuration, outputs: Sequence[str] = ()) -> Trial:
        """Add a configuration that waits for its first attempt; return the trial that exists where it was proposed or is known.

        Args:
            outputs: those of a decoupled evaluation; the trial is for those of them that no trial of the configuration has.
        """
        found, left = same(self._space, config, self.trials), unasked(self._space, config, self.trials, outputs)
        if found and not left:
            return found
        return self._enter([enqueued_row(self._space, len(self._rows), config, self.state, left)])[0]

    def repeat(self, of: Trial, repeat: int) -> Trial:
        """Add another evaluation of a trial's configuration, which waits for its first attempt; return it where it exists.

        Raises:
            TellError: the trial belongs to another study.
        """
        if of.study != self.record.id or of.number >= len(self.trials):
            raise TellError(f"trial {of.number} was asked of another study; repeat it in the study that proposed it")
        config = self.trials[of.number].config
        for trial in self.trials:
            if trial.repeat == repeat and trial.config == config:
                return trial
        return self._enter([repeat_row(self._space, len(self._rows), config, self.state, repeat)])[0]

    def _enter(self, rows: Sequence[TrialRow]) -> list[Trial]:
        trials = [trial_of(self._space, row, self.record.id, self.record.goals) for row in rows]
        self._storage.insert(*rows)
        for row, trial in zip(rows, trials, strict=True):
            self._hold(row, trial)
        return trials

    # -- attempts and outcomes ----------------------------------------------------------------------------------

    def mine(self, trial: Trial, told: bool = False) -> Trial:
        """Return what is known of a trial whose outcome may be told, or taken back.

        Args:
            told: whether the outcome is to be taken back.

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
        if not (mine.pending or told) and trial.number in self._mine:
            del self._mine[trial.number]
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
        """Begin another attempt at a trial that waits."""
        row, evaluations = begun(self._rows[number], this_worker(), time.time())
        self._storage.start(evaluations)
        self._mine[number], self._clocks[number] = row.attempt, time.perf_counter()
        return self._keep(row)

    def seconds(self, number: int) -> float:
        """Return the seconds since the latest attempt began here; 0 where none did."""
        now = time.perf_counter()
        return now - self._clocks.get(number, now)

    def tell(self, number: int, telling: Telling, worker: str, duration: float) -> Trial:
        """Write outputs of the attempt that began here, or of the latest attempt where none began here."""
        took, attempt = duration if telling.complete else None, self._mine.get(number)
        change = told(
            self._rows[number], telling.part, telling.status, worker or this_worker(), time.time(), took, attempt
        )
        trial = self._write(change)
        if telling.complete:
            self._mine.pop(number, None)
        return trial

    def lose(self, number: int, cause: str) -> Trial:
        """End the latest attempt, whose worker died: the trial waits for another attempt, or has failed."""
        trial = self._end(number, LOST, cause)
        return (
            trial if not self._rows[number].waits or trial.lost <= self._retries else self._give_up(self._rows[number])
        )

    def give_back(self, number: int) -> Trial:
        """End the latest attempt without an outcome; the trial waits."""
        return self._end(number, RETURNED, "")

    def reopen(self, number: int) -> Trial:
        """Take the outcome of a trial back; the trial waits."""
        return self._write(reopened(self._rows[number]))

    def note(self, **changes: Any) -> None:
        """Write columns of the study: what a run intends, and how it ended."""
        self._storage.note(replace(self.record, **changes))

    def _end(self, number: int, status: str, message: str) -> Trial:
        """End the latest attempt, unless another writer has begun it since."""
        row, attempt = self._rows[number], self._mine.get(number)
        trial = self.trials[number]
        if attempt is None or attempt == row.attempt:
            trial = self._write(ended(row, status, message, time.time()))
        self._mine.pop(number, None)
        return trial

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
        """Withdraw the recommendation, which did not know of what is written now."""
        if self.record.recommended is not None:
            self.note(recommended=None)

    # -- rows in memory -----------------------------------------------------------------------------------------

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
        """Hold a row from the storage."""
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
            raise StorageError(
                f"{self.title} is damaged or was edited: {error}; restore it from a copy, or move it aside and start a new journal"
            ) from error
