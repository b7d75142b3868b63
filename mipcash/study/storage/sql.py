"""Storage of a study in a database, with one writer or several.

A trial is written before its evaluation (configuration, proof, optimizer state) and after it (outcome), each time in a committed
transaction, so that a killed process loses only its running evaluation.

A trial starts only if the storage holds nothing that its writer has not seen. Hence two writers can neither take the same trial nor
exceed a budget together. An outcome is written only if the stored trial is the version that its writer knows. Each writer sends
heartbeats from a separate thread. If a writer is silent for longer than it promised, any other writer may record that its attempts
are lost. If it comes back, it may still record its outcome, unless another writer has recorded one. If all writers vanished
together, as when a whole run is killed, their attempts get the status ``returned`` instead, which costs no retry.

If a server cannot be reached, a writer waits and repeats what it was about to do. A transaction whose commit may have succeeded is
repeated only if the storage does not hold its rows. After an interruption no other writer counts as silent until this one has sent
heartbeats for its promised time, since the others were cut off too. The same holds if this writer finds its own heartbeat late: the
machine stood still, or the clock leapt. An outcome that waits is kept on this machine
(``mipcash.study.storage.spool``), and recorded by the next writer of the machine if its own is killed. While a writer waits, it
calls ``meanwhile``, which may write further outcomes. These are kept as well, and written in their order as soon as the server is
reached.

A single writer has seen everything in the storage. An attempt that is still running when it opens the study belongs to a run that
was killed as a whole, and is returned.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from mipcash.errors import StorageError, warn
from mipcash.optimizers.outcome import PENDING, Outcome
from mipcash.study.storage.attempts import ended, recorded
from mipcash.study.storage.checks import DamageError
from mipcash.study.storage.compare import compare
from mipcash.study.storage.database import Database, Rows
from mipcash.study.storage.protocol import (
    LOST,
    NOTED,
    RETURNED,
    RUNNING,
    EvaluationRow,
    StudyRecord,
    TakenError,
    TrialRow,
    UnreachableError,
    this_worker,
)
from mipcash.study.storage.spool import Spool

T = TypeVar("T")
Late = tuple[Callable[[], object], Callable[[], bool], Path | None]
"""A write that waits, the function that tells whether the storage holds it, and the file that keeps it."""
BEATS = 4
"""Number of heartbeats in the time after which a silent worker counts as dead."""
PATIENCE, PAUSE, LONGEST_PAUSE = 600.0, 0.1, 5.0
"""Seconds for which a writer waits for a server, and its first and its longest pause between two attempts."""
LONGEST_GAP = 120.0
"""Seconds between two misses up to which they belong to one wait; an attempt to connect may take 60."""
KILLED = "its run was killed"
"""Message of an attempt that was still running when its only writer came back."""


class SQLStorage:
    """Writer of a study in a database; see ``mipcash.study.storage.protocol.Storage``.

    Args:
        database: the database of the study.
        heartbeat_seconds: seconds of silence after which this writer counts as dead, and other writers take over its trials; None:
            there are no other writers.
    """

    record: StudyRecord
    meanwhile: Callable[[], object] | None = None
    patient = True

    def __init__(self, database: Database, heartbeat_seconds: float | None = None) -> None:
        self.path, self.title = database.path, database.title
        self.worker = f"{this_worker()}:{uuid.uuid4().hex[:8]}"
        self._database, self._seconds, self._alone = database, heartbeat_seconds or 0.0, heartbeat_seconds is None
        self._started, self._end = False, threading.Event()
        self._heart: threading.Thread | None = None
        self._seen = 0
        self._steady = (
            -math.inf
        )  # since when, by the monotonic clock, no heartbeat has failed or was late; inf: one just failed
        self._away: tuple[float, float] | None = (
            None  # the first and the latest miss of a server, by the monotonic clock
        )
        self._late: list[Late] = []
        self._waits = False  # True during a call of ``meanwhile``
        self._revisions: dict[int, int] = {}

    @property
    def _spool(self) -> Spool:
        return Spool(self.record.id, self.worker)

    def open(self, record: StudyRecord) -> None:
        """See ``mipcash.study.storage.protocol.Storage.open``."""
        self._database.make(record)
        self.title = self._database.title
        with self._database.transaction(write=False) as rows:
            self._database.check(rows)
            stored = rows.record()
        compare(self.title, stored, record, self._database.another)
        self._database.settle()
        self.record = stored
        self._deliver()

    def rows(self) -> list[TrialRow]:
        """See ``mipcash.study.storage.protocol.Storage.rows``."""
        with self._database.transaction(write=False) as rows:
            self._seen = max(rows.latest())
            self.record, found = rows.record(), rows.trials()
        self._revisions = {row.number: revision for row, revision in found}
        if not self._alone:
            return [row for row, _ in found]
        return [ended(row, RETURNED, KILLED, time.time())[0] for row, _ in found]

    def begin(self) -> None:
        """See ``mipcash.study.storage.protocol.Storage.begin``."""
        if self._alone:
            self._end_all(KILLED)
        else:
            self._beat()
            self._heart = threading.Thread(target=self._live, name="mipcash heartbeat", daemon=True)
            self._heart.start()
        self._started = True

    def news(self) -> Sequence[TrialRow]:
        """See ``mipcash.study.storage.protocol.Storage.news``. Attempts of silent writers end here.

        A server that cannot be reached has no news: what is then written waits for it.
        """
        if self._alone:
            return ()
        try:
            found = self._look()
        except UnreachableError as error:
            self._miss(error)
            return ()
        self._reach()
        return found

    def _look(self) -> Sequence[TrialRow]:
        self._write_late()
        with self._database.transaction(write=False) as rows:
            if not self._is_steady(rows) or not rows.silent(self.worker):
                return self._changed(rows)
        self._end_silent_attempts()
        with self._database.transaction(write=False) as rows:
            return self._changed(rows)

    def _changed(self, rows: Rows) -> Sequence[TrialRow]:
        trial, study = rows.latest()
        if study > self._seen:
            self.record = rows.record()
        found = rows.trials("new", seen=self._seen) if trial > self._seen else ()
        self._revisions |= {row.number: revision for row, revision in found}
        self._seen = max(self._seen, trial, study)
        return [row for row, _ in found]

    def insert(self, *rows: TrialRow) -> None:
        """See ``mipcash.study.storage.protocol.Storage.insert``."""

        def insert() -> None:
            with self._change(*(row.number for row in rows), all_seen=True) as (stored, revision):
                for row in rows:
                    stored.insert(row, self._signed(row.evaluations), revision)

        self._until_reached(insert, lambda: all(self._holds(row, row.evaluations) for row in rows))

    def write(self, row: TrialRow, changed: Sequence[EvaluationRow], starts: bool = False) -> None:
        """See ``mipcash.study.storage.protocol.Storage.write``."""

        def write() -> None:
            with self._change(row.number, all_seen=starts) as (stored, revision):
                if not stored.update(row, self._signed(changed), self._revisions.get(row.number, 0), revision):
                    raise DamageError(f"trial {row.number} was changed meanwhile") if self._alone else self._taken()

        keep = (lambda: None) if starts else (lambda: self._spool.keep(row, changed))
        self._until_reached(write, lambda: self._holds(row, changed), keep)

    def note(self, record: StudyRecord) -> None:
        """See ``mipcash.study.storage.protocol.Storage.note``. Columns that this writer does not change are left alone."""
        changes = {n: getattr(record, n) for n in NOTED if getattr(record, n) != getattr(self.record, n)}
        if not changes:
            return

        def write() -> StudyRecord:
            with self._change() as (stored, revision):
                stored.note(changes, revision)
                return stored.record()

        self.record = self._until_reached(write) or self.record

    def close(self) -> None:
        """See ``mipcash.study.storage.protocol.Storage.close``.

        In a process that was forked from the writer's it does nothing.
        """
        if os.getpid() != self._database.process:
            return
        self._end.set()
        if self._started:
            self._started = False
            with contextlib.suppress(StorageError):  # else the next run returns them, or they become lost
                self._write_late()
                self._end_all("") if self._alone else self._leave()
        self._database.close()

    # -- attempts that end --------------------------------------------------------------------------------------------

    def _end_all(self, message: str) -> None:
        """Return all running attempts of any writer, and delete the list of writers."""
        with self._database.transaction(write=False) as rows:
            found, writers = rows.trials("running"), rows.run("workers", now=0.0)
        if found or writers:
            with self._change(*(row.number for row, _ in found)) as (stored, revision):
                self._give_up(stored, revision, RETURNED, message)
                stored.run("forget workers")

    def _leave(self) -> None:
        with self._database.transaction() as rows:
            self._give_up(rows, max(rows.latest()) + 1, RETURNED, "", self.worker)
            rows.run("forget worker", worker=self.worker)

    def _end_silent_attempts(self) -> None:
        """End the attempts of silent workers: lost if their run went on without them, returned if it ended with them.

        An attempt whose outcome is on this machine is not lost.
        """
        self._deliver()
        with (
            self._database.transaction() as rows
        ):  # again, since heartbeats may have arrived, or this writer stood still
            if not self._is_steady(rows):
                return
            revision = max(rows.latest()) + 1
            for worker, (promised, witnessed) in rows.silent(self.worker).items():
                name = ":".join(worker.split(":")[:2])
                text = "ended without a word" if promised is None else f"gave no sign of life for {promised:g} seconds"
                self._give_up(rows, revision, LOST if witnessed else RETURNED, f"its worker {name} {text}", worker)

    def _give_up(self, rows: Rows, revision: int, status: str, message: str, worker: str | None = None) -> None:
        now = rows.now()
        for row, known in rows.trials("running"):
            if worker is None or any(e.worker == worker for e in row.running):
                rows.update(*ended(row, status, message, now, worker), known, revision)

    def _live(self) -> None:
        while not self._end.wait(self._seconds / BEATS):
            with contextlib.suppress(StorageError):  # a lasting failure is reported by the next read or write
                self._beat()

    def _beat(self) -> None:
        try:
            with self._database.transaction() as rows:
                if rows.beat(self.worker, self._seconds):
                    self._steady = max(self._steady, time.monotonic())
        except UnreachableError:
            self._steady = math.inf
            raise
        if self._steady == math.inf:
            self._steady = time.monotonic()

    def _is_steady(self, rows: Rows) -> bool:
        """Return True if this writer was neither cut off nor stood still for its promised time, and may judge the others."""
        if rows.is_late(self.worker):
            self._steady = max(self._steady, time.monotonic())
        return time.monotonic() >= self._steady + self._seconds

    # -- a server that goes away --------------------------------------------------------------------------------------

    def _deliver(self) -> None:
        """Record outcomes that writers of this machine kept when their server was away, unless these writers are alive."""
        for path, (told, changed) in self._spool.others():
            with self._database.transaction() as rows:
                found = rows.trials("one", number=told.number)
                same = bool(found) and (found[0][0].exact, found[0][0].proposed) == (told.exact, told.proposed)
                mine = [e for e in found[0][0].evaluations if e.attempt == changed[0].attempt] if same else []
                silent = {e.worker for e in mine} if self._alone else rows.silent(self.worker)
                if any(e.status == RUNNING and e.worker not in silent for e in mine):
                    continue
                part = Outcome({e.output: output for e in changed if (output := e.recorded) is not None})
                wanted = bool(mine and part.outputs) and found[0][0].status == PENDING
                if wanted:
                    end = rows.now() if told.finished is None else told.finished
                    given = (part, told.status, mine[0].worker, end, told.duration, mine[0].attempt)
                    rows.update(*recorded(found[0][0], *given), found[0][1], max(rows.latest()) + 1)
            path.unlink(missing_ok=True)
            if wanted:
                warn(f"{self.title}: the outcome of trial {told.number}, left in {path}, is recorded")

    def _until_reached(
        self,
        act: Callable[[], T],
        done: Callable[[], bool] = lambda: False,
        keep: Callable[[], Path | None] = lambda: None,
    ) -> T | None:
        """Call ``act`` until the server can be reached.

        Args:
            done: tells after an interruption whether the storage holds what ``act`` writes, since its commit may have succeeded
                although its answer was lost.
            keep: writes what ``act`` writes into a file of this machine meanwhile.

        Returns:
            What ``act`` returns; None if it is done, or called by ``meanwhile`` and left for later.

        Raises:
            UnreachableError: the server cannot be reached for PATIENCE seconds, or at once if this writer is not patient.
        """
        pause, interrupted, kept = PAUSE, False, None
        while True:
            try:
                self._write_late()
                found = None if interrupted and done() else act()
            except UnreachableError as error:
                if not interrupted and (kept := keep()):
                    warn(f"until {self.title} is reached, the outcome is kept in {kept}")
                if not self.patient:
                    raise
                self._miss(error)
                interrupted = True
                if self._waits:
                    self._late.append((act, done, kept))
                    return None
                self._pause(pause)
                pause = min(2.0 * pause, LONGEST_PAUSE)
            else:
                self._reach()
                _drop(kept)
                return found

    def _pause(self, seconds: float) -> None:
        if self.meanwhile is not None:
            self._waits = True
            try:
                self.meanwhile()
            finally:
                self._waits = False
        time.sleep(seconds)

    def _write_late(self) -> None:
        """Write what was left for later."""
        while self._late:
            act, done, kept = self._late[0]
            try:
                if not done():
                    act()
            except TakenError as error:
                warn(f"an outcome that waited for its server is ignored: {error}")
            del self._late[0]
            _drop(kept)

    def _miss(self, error: UnreachableError) -> None:
        """Note that the server cannot be reached, and raise the error if this writer has waited for PATIENCE seconds.

        A miss long after the latest one begins a new wait: between them lies an evaluation, not an attempt.
        """
        self._steady, now = math.inf, time.monotonic()
        first, latest = self._away or (now, -math.inf)
        if now - latest > LONGEST_GAP:
            first = now
            warn(f"waiting for up to {PATIENCE:g} seconds: {error}")
        elif now - first > PATIENCE:
            raise error
        self._away = first, now

    def _reach(self) -> None:
        if self._away is not None:
            seconds, self._away = time.monotonic() - self._away[0], None
            warn(f"{self.title} is reached again after {seconds:.0f} seconds")

    def _holds(self, row: TrialRow, evaluations: Sequence[EvaluationRow]) -> bool:
        """Return True if the storage holds a trial with evaluations of this writer."""
        with self._database.transaction(write=False) as rows:
            found = rows.trials("one", number=row.number)
        if not found or _identity(found[0][0]) != _identity(row):
            return False
        if not {*map(_attempt, self._signed(evaluations))} <= {*map(_attempt, found[0][0].evaluations)}:
            return False
        self._revisions[row.number] = found[0][1]
        return True

    # -- changes ------------------------------------------------------------------------------------------------------

    @contextmanager
    def _change(self, *numbers: int, all_seen: bool = False) -> Iterator[tuple[Rows, int]]:
        """Run a transaction that changes trials or the study; yield its rows and the revision of the change.

        Raises:
            TakenError: with ``all_seen``, if another writer changed anything since the last look.
        """
        with self._database.transaction() as rows:
            latest = self._seen if self._alone else max(rows.latest())
            if all_seen and latest > self._seen:
                raise self._taken()
            yield rows, latest + 1
        # this writer has seen its own committed change
        self._revisions |= dict.fromkeys(numbers, latest + 1)
        if self._seen == latest:
            self._seen = latest + 1

    def _taken(self) -> TakenError:
        return TakenError(f"{self.title}: another writer was first; look again")

    def _signed(self, evaluations: Sequence[EvaluationRow]) -> tuple[EvaluationRow, ...]:
        """Put this writer's name on running evaluations, so that other writers recognise them."""
        if self._alone:
            return tuple(evaluations)
        return tuple(replace(e, worker=self.worker) if e.status == RUNNING else e for e in evaluations)


def _drop(kept: Path | None) -> None:
    with contextlib.suppress(OSError):
        if kept is not None:
            kept.unlink(missing_ok=True)


def _identity(row: TrialRow) -> tuple[object, ...]:
    return row.status, row.proposed, row.finished


def _attempt(row: EvaluationRow) -> tuple[object, ...]:
    return row.attempt, row.output, row.worker, row.status, row.started, row.finished
