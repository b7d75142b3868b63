"""Trials of a study in step with its storage: every change is written before it takes effect.

A table may be used by several threads, and its storage by several processes. A change is made under the table's lock, based on the
current content of the storage. If a concurrent writer came first, the change is repeated on top of that writer's change.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from mipcash.errors import LateError, StorageError, TellError, warn
from mipcash.optimizers.optimizer import Observation
from mipcash.optimizers.outcome import PENDING, Outcome
from mipcash.space.compiled import compiled
from mipcash.study.feasibility import observation
from mipcash.study.records.given import Known, asked_before, nine_digits
from mipcash.study.records.trials import refreshed, trial_of, waiting_row
from mipcash.study.storage.attempts import Change, ended, given_up, recorded, reopened, started
from mipcash.study.storage.checks import DamageError, named, uncollected
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
from mipcash.study.trial import ENQUEUED, Trial, repeat_origin
from mipcash.text import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mipcash.modelling.domains import Configuration
    from mipcash.space.space import Space

T = TypeVar("T")


class TrialTable:
    """Trials of an open study.

    Methods that make changes raise ``TakenError`` on a conflict with another writer of the
    storage; call them through ``agreed``, which repeats them.

    Args:
        storage: a storage that is not open yet. If opening fails, it is left open, and its owner has to close it.
        record: the row of the study to open.
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
        self._seen: dict[int, Observation] = {}
        self._unseen: set[int] = set()
        self._configs: dict[str, Configuration] = {}  # of the first trials, as many as are indexed
        self._exact: set[str] = set()
        self._indexed = 0
        storage.open(record)
        with self._explained(), uncollected():
            rows = sorted(storage.rows(), key=lambda row: row.number)
            if lacking := set(range(len(rows))) - {row.number for row in rows}:
                raise DamageError(f"trial {min(lacking)} of {len(rows)} is missing")
            for row, trial in self._checked(rows):
                self._hold(row, trial)
        storage.begin()
        while True:
            with suppress(TakenError):
                self.sync()
                break

    # -- queries ------------------------------------------------------------------------------------------------

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
        """Numbers of the trials that have no outcome and are not being evaluated by any worker, as far as is known."""
        return [n for n in sorted(self._pending) if self._rows[n].waits and n not in self._mine]

    @property
    def suspects(self) -> bool:
        """True if a trial that lost a worker is waiting; such a trial is best evaluated alone."""
        return any(self._rows[number].lost for number in self.waiting)

    @property
    def elsewhere(self) -> tuple[Trial, ...]:
        """Trials that other workers evaluate."""
        rows = [(number, self._rows[number]) for number in sorted(self._pending)]
        return tuple(self.trials[n].copy() for n, row in rows if row.running and row.attempt != self._mine.get(n))

    @property
    def n_evaluated(self) -> int:
        """Number of trials with an outcome, known ones left out."""
        return len(self._rows) - len(self._pending) - len(self._known)

    @property
    def stop_request(self) -> str:
        """Reason why the optimizer requests to stop; empty if it does not, or while a trial waits."""
        return self.trials[-1].stop if self.trials and not self.waiting else ""

    @property
    def history(self) -> tuple[Observation, ...]:
        """Trials as an optimizer sees them. An unchanged trial stays the same object."""
        with self.lock:
            for number in sorted(self._unseen):
                self._seen[number] = observation(self.trials[number])
            self._unseen.clear()
            return tuple(self._seen.values())

    # -- other writers ------------------------------------------------------------------------------------------

    def agreed(self, change: Callable[[], T]) -> T:
        """Make a change under the lock, based on the storage's current content; repeat it on a conflict with another writer."""
        while True:
            with self.lock, suppress(TakenError):
                self.sync()
                return change()

    def look(self) -> None:
        """Load the changes of other writers of the storage."""
        self.agreed(lambda: None)

    def sync(self) -> None:
        """Load the changes of other writers of the storage, and fail trials that have lost too many workers.

        Raises:
            TakenError: conflict with another writer; call it again.
        """
        with self._explained():
            for row, trial in self._checked(self._storage.news()):
                before = row.number >= len(self.trials) or self.trials[row.number].pending
                self._hold(row, trial)
                if before and not self.trials[row.number].pending:
                    self._arrived.append(row.number)
        for number in self.waiting:
            if self._rows[number].lost > self._retries:
                self._give_up(self._rows[number])

    def arrived(self) -> list[Trial]:
        """Return the trials whose outcome other workers recorded since the last call, in the order in which it was loaded."""
        with self.lock:
            numbers, self._arrived = self._arrived, []
            return [self.trials[number].copy() for number in numbers]

    @contextmanager
    def meanwhile(self, act: Callable[[], object]) -> Iterator[None]:
        """Let ``act`` be called in this block whenever the storage waits for its server. After an exception it waits no longer."""
        self._storage.meanwhile, self._storage.patient = act, True
        try:
            yield
        except BaseException:
            self._storage.patient = False
            raise
        finally:
            self._storage.meanwhile = None

    # -- new trials ---------------------------------------------------------------------------------------------

    def add(self, row: TrialRow, begin: bool = True) -> Trial:
        """Add a proposal with the next number; start its first attempt or leave it waiting.

        The trial is made from the row, so that a resumed run sees the same values.
        """
        if begin:
            row, _ = started(row, this_worker(), time.time())
        trial = trial_of(self._space, row, self.record.id, self.record.objectives)
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
        rows = [one.row(self._space, first + k, json.dumps(self.state)) for k, one in enumerate(known)]
        if not rows:
            return []
        self._outdate()
        return self._enter(rows)

    def unknown(self, given: Sequence[Known]) -> list[Known]:
        """Return the evaluations that are not in the table yet. Of an evaluation that is given twice, the table must hold two."""
        there = Counter(Known.of_trial(trial).key(self._space) for trial in self.trials if not trial.pending)
        left = []
        for one in self.written(given):
            key = one.key(self._space)
            if not there[key]:
                left.append(one)
            there[key] -= there[key] > 0
        self._warn_of_others(left, there)
        return left

    def written(self, known: Sequence[Known]) -> list[Known]:
        """Return the evaluations, each with the first configuration that agrees with its own to nine digits, as spreadsheets round.

        A configuration that the table holds to the last digit keeps its digits.
        """
        for trial in self.trials[self._indexed :]:
            self._configs.setdefault(nine_digits(self._space, trial.config, trial.legal), trial.config)
            self._exact.add(repr(trial.config))
        self._indexed, found = len(self.trials), list[Known]()
        beside: dict[str, Configuration] = {}
        for one in known:
            key = nine_digits(self._space, one.config, one.legal)
            first = self._configs.get(key) or beside.setdefault(key, one.config)
            found.append(one if repr(one.config) in self._exact else replace(one, config=first))
        return found

    def _warn_of_others(self, added: Sequence[Known], left: Counter[str]) -> None:
        """Warn of evaluations to add if the table holds others of the same configuration that were not given again.

        Args:
            left: number of the table's evaluations, by key, that were not given again.
        """
        now = {repr(one.config): one for one in added}
        for trial in self.trials if now else ():
            one = now.get(repr(trial.config))
            if trial.known and one is not None and left[Known.of_trial(trial).key(self._space)]:
                warn(
                    f"known evaluation {one.outcome} is added, and {self.title} holds {trial.outcome} of the same configuration "
                    f"(trial {trial.number}): both count as measurements of it. If the value was corrected, start a new journal: "
                    "storage=mc.Journal(path, fresh=True)"
                )
                return

    def enqueue(self, config: Configuration, outputs: Sequence[str] = ()) -> Trial:
        """Add a waiting trial of a configuration; return its existing trial if it was proposed before or is known.

        Args:
            outputs: outputs of a decoupled evaluation. The new trial requests those that no trial of the configuration covers.
        """
        found, left = asked_before(self._space, config, self.trials, outputs)
        if found and not left:
            return found
        return self._await(config, ENQUEUED, left)

    def repeat(self, of: Trial, repeat: int, outputs: Sequence[str] = ()) -> Trial:
        """Add a waiting repeat of a trial's configuration; return the existing trial if there is one.

        Raises:
            TellError: the trial belongs to another study, or is illegal.
        """
        self._check_own(of)
        config = self.trials[of.number].config
        if not self.trials[of.number].legal:
            raise TellError(
                f"trial {of.number} violates rules and is never recommended; evaluate a legal configuration again"
            )
        for trial in self.trials:
            if trial.repeat == repeat and repr(trial.config) == repr(config):
                return trial
        return self._await(config, repeat_origin(repeat), outputs)

    def _await(self, config: Configuration, origin: str, outputs: Sequence[str]) -> Trial:
        row = waiting_row(self._space, len(self._rows), config, origin, json.dumps(self.state), outputs)
        return self._enter([row])[0]

    def _enter(self, rows: Sequence[TrialRow]) -> list[Trial]:
        trials = [trial_of(self._space, row, self.record.id, self.record.objectives) for row in rows]
        self._storage.insert(*rows)
        for row, trial in zip(rows, trials, strict=True):
            self._hold(row, trial)
        return trials

    # -- attempts and outcomes ----------------------------------------------------------------------------------

    def mine(self, trial: Trial, discarded: bool = False) -> Trial:
        """Return the table's version of a trial, after checking that its outcome may be recorded, or discarded.

        Args:
            discarded: True if the outcome is to be discarded.

        Raises:
            TellError: the outcome may not be recorded, or discarded.
            LateError: another worker has recorded the outcome meanwhile.
        """
        self._check_own(trial)
        mine = self.trials[trial.number]
        if not (mine.pending or discarded) and trial.number in self._mine:
            del self._mine[trial.number]
            raise LateError(
                f"trial {trial.number} counted as lost, and another worker has recorded its outcome; this outcome is ignored"
            )
        if not (mine.pending or discarded):
            raise TellError(
                f"trial {trial.number} has an outcome already ({mine.status}); tell() may be called once per trial"
            )
        if discarded and (mine.pending or mine.known):
            what = "has no outcome" if mine.pending else "was evaluated elsewhere"
            raise TellError(f"trial {trial.number} {what}, so that there is nothing to evaluate again")
        return mine

    def _check_own(self, trial: Trial) -> None:
        if not isinstance(trial, Trial):
            raise TellError(f"a trial that ask() returned is needed here, got {shown(trial)}")
        there = trial.number < len(self.trials) and self.trials[trial.number].seconds == trial.seconds
        if trial.study != self.record.id or not there:  # a copy of a journal has the same id
            raise TellError(f"trial {trial.number} belongs to another study; use it there")

    def restart(self, number: int) -> Trial:
        """Start another attempt at a waiting trial."""
        row, evaluations = started(self._rows[number], this_worker(), time.time())
        self._storage.write(row, evaluations, starts=True)
        self._mine[number], self._clocks[number] = row.attempt, time.perf_counter()
        return self._keep(row)

    def seconds(self, number: int) -> float:
        """Return the seconds since the latest attempt started here; 0 if none did."""
        now = time.perf_counter()
        return now - self._clocks.get(number, now)

    def tell(self, number: int, part: Outcome, status: str, worker: str, duration: float) -> Trial:
        """Write outputs of the attempt that started here, or of the latest attempt if none started here."""
        took, attempt = None if status == PENDING else duration, self._mine.get(number)
        change = recorded(self._rows[number], part, status, worker or this_worker(), time.time(), took, attempt)
        trial = self._write(change)
        if status != PENDING:
            self._mine.pop(number, None)
        return trial

    def lose(self, number: int, cause: str) -> Trial:
        """End the latest attempt, whose worker died: the trial waits for another attempt, or has failed."""
        trial = self._end(number, LOST, cause)
        return (
            trial if not self._rows[number].waits or trial.lost <= self._retries else self._give_up(self._rows[number])
        )

    def losses(self, number: int) -> list[str]:
        """Return why attempts of a trial were lost, in their order."""
        attempts = sorted(self._rows[number].evaluations, key=lambda e: e.attempt)
        return [e.message for e in attempts if e.status == LOST]

    def killed(self, number: int) -> int:
        """Return the number of attempts of a trial during which the whole run was killed."""
        return len({e.attempt for e in self._rows[number].evaluations if e.status == RETURNED and e.message})

    def give_back(self, number: int) -> Trial:
        """End the latest attempt without an outcome; the trial waits."""
        return self._end(number, RETURNED, "")

    def reopen(self, number: int) -> Trial:
        """Discard the outcome of a trial; the trial waits."""
        return self._write(reopened(self._rows[number]))

    def note(self, **changes: Any) -> None:
        """Write columns of the study, such as the settings of a run and the reason why it ended."""
        self._storage.note(replace(self.record, **changes))

    def _end(self, number: int, status: str, message: str) -> Trial:
        """End the latest attempt, unless another worker has started a newer one."""
        row, attempt = self._rows[number], self._mine.get(number)
        trial = self.trials[number]
        if attempt is None or attempt == row.attempt:
            trial = self._write(ended(row, status, message, time.time()))
        self._mine.pop(number, None)
        return trial

    def _give_up(self, row: TrialRow) -> Trial:
        times = "once" if row.lost == 1 else f"{row.lost} times"
        text = f"its worker died {times}; at last: {self.losses(row.number)[-1]}"
        return self._write(given_up(row, text, time.time(), self.record.limits))

    def _write(self, change: Change) -> Trial:
        row, changed = change
        self._outdate()
        self._storage.write(row, changed)
        return self._keep(row)

    def _outdate(self) -> None:
        """Discard the stored recommendation, which does not take the new data into account."""
        if self.record.recommended is not None:
            self.note(recommended=None)

    # -- rows in memory -----------------------------------------------------------------------------------------

    def _keep(self, row: TrialRow) -> Trial:
        trial = refreshed(self.trials[row.number], row)
        self._hold(row, trial)
        return trial

    def _hold(self, row: TrialRow, trial: Trial) -> None:
        """Store a new or changed row and its trial at their number."""
        if row.number == len(self._rows):
            self._rows.append(row)
            self.trials.append(trial)
            if trial.known:
                self._known.append(row.number)
        else:
            self._rows[row.number], self.trials[row.number] = row, trial
        self._unseen.add(row.number)
        (self._pending.add if trial.pending else self._pending.discard)(row.number)

    def _checked(self, rows: Sequence[TrialRow]) -> Iterator[tuple[TrialRow, Trial]]:
        """Yield rows from the storage by number, checked, each with its trial; read the state of the latest."""
        if rows:
            now = compiled(self._space)
            for row in rows:
                trial = trial_of(self._space, row, self.record.id, self.record.objectives)
                if trial.legal and (violations := now.violations(trial.config)):
                    reasons = "; ".join(v.message for v in violations)
                    raise DamageError(f"the configuration of trial {row.number} is illegal: {reasons}")
                yield row, trial
            if row.number == len(self._rows) - 1:
                with named(f"trial {row.number}"):
                    self.state = json.loads(row.state)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn a DamageError into a StorageError that names the storage."""
        try:
            yield
        except DamageError as error:
            raise StorageError(
                f"{self.title} is damaged or was edited: {error}; restore it from a copy, or move it aside and start a new journal"
            ) from error
