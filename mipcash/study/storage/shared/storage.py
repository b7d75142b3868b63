"""A study that several processes or machines hold at a time.

Whoever writes says first what it has seen. A trial begins only where nothing is stored that its writer does not know, so that two
can neither take one trial nor exceed a budget together; an outcome is written only over the very trial that its writer knows.
Each writer gives signs of life from a thread of its own. The attempts of one that is silent for longer than it promised are lost,
and whoever notices says so; should it come back, it may still tell what it found, as long as nobody else has. Where all writers
vanished together, as when a whole run is killed, their attempts are returned instead, and cost no retry.
"""

from __future__ import annotations

import contextlib
import os
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from mipcash.errors import StorageError
from mipcash.study.storage.attempts import ended
from mipcash.study.storage.protocol import (
    LOST,
    NOTED,
    RETURNED,
    RUNNING,
    EvaluationRow,
    StudyRecord,
    TakenError,
    TrialRow,
    this_worker,
)
from mipcash.study.storage.shared.trial_tables import STUDY, Tables

HEARTBEAT = 60.0
"""Seconds of silence after which a worker counts as gone, unless it is told otherwise."""
BEATS = 4
"""Signs of life in that time."""


class SharedStorage:
    """One writer of several; see :class:`mipcash.study.storage.protocol.Storage`.

    Args:
        tables: where the study is kept.
        heartbeat_seconds: of silence after which this writer counts as gone, and others take up its trials.
    """

    record: StudyRecord

    def __init__(self, tables: Tables, heartbeat_seconds: float = HEARTBEAT) -> None:
        self.path, self.title = tables.path, tables.title
        self.worker = f"{this_worker()}:{uuid.uuid4().hex[:8]}"
        self._tables, self._seconds = tables, heartbeat_seconds
        self._process, self._end = os.getpid(), threading.Event()
        self._heart: threading.Thread | None = None
        self._seen = 0
        self._revisions: dict[int, int] = {}

    def open(self, record: StudyRecord) -> None:
        """See :meth:`mipcash.study.storage.protocol.Storage.open`."""
        self.record = self._tables.open(record)
        self.title = self._tables.title

    def rows(self) -> list[TrialRow]:
        """See :meth:`mipcash.study.storage.protocol.Storage.rows`."""
        with self._tables.transaction(write=False):
            self.record = self._tables.record()
            self._seen, self._revisions = self._tables.revision(), self._tables.changes()
            return self._tables.rows()

    def begin(self) -> None:
        """See :meth:`mipcash.study.storage.protocol.Storage.begin`."""
        self._tables.beat(self.worker, self._seconds)
        self._heart = threading.Thread(target=self._beat, name="mipcash heartbeat", daemon=True)
        self._heart.start()

    def news(self) -> Sequence[TrialRow]:
        """See :meth:`mipcash.study.storage.protocol.Storage.news`. Attempts of silent writers end here."""
        with self._tables.transaction(write=False):
            silent = self._tables.silent(self.worker)
            if not silent:
                return self._changed()
        self._bury()
        with self._tables.transaction(write=False):
            return self._changed()

    def _changed(self) -> Sequence[TrialRow]:
        changes = self._tables.changes(self._seen)
        if not changes:
            return ()
        if STUDY in changes:
            self.record = self._tables.record()
        rows = self._tables.rows([number for number in changes if number != STUDY])
        self._revisions |= changes
        self._seen = max(changes.values())
        return rows

    def insert(self, *rows: TrialRow) -> None:
        """See :meth:`mipcash.study.storage.protocol.Storage.insert`."""
        with self._change(*(row.number for row in rows), all_seen=True):
            for row in rows:
                self._tables.insert(replace(row, evaluations=self._signed(row.evaluations)))

    def start(self, evaluations: Sequence[EvaluationRow]) -> None:
        """See :meth:`mipcash.study.storage.protocol.Storage.start`."""
        number = evaluations[0].trial
        with self._change(number, all_seen=True):
            row = self._tables.rows([number])[0]
            self._tables.update(row, self._signed(evaluations))

    def write(self, row: TrialRow, changed: Sequence[EvaluationRow]) -> None:
        """See :meth:`mipcash.study.storage.protocol.Storage.write`."""
        with self._change(row.number):
            self._tables.update(row, self._signed(changed))

    def note(self, record: StudyRecord) -> None:
        """See :meth:`mipcash.study.storage.protocol.Storage.note`. What this writer does not change stays what others wrote."""
        changes: Mapping[str, Any] = {
            name: getattr(record, name) for name in NOTED if getattr(record, name) != getattr(self.record, name)
        }
        if not changes:
            return
        with self._tables.transaction():
            self._tables.note(changes)
            revision, record = self._mark([STUDY]), self._tables.record()
        self.record = record
        self._own([STUDY], revision)

    def close(self) -> None:
        """See :meth:`mipcash.study.storage.protocol.Storage.close`.

        In a process that was forked from the writer's it does nothing.
        """
        if os.getpid() != self._process:
            return
        self._end.set()
        if self._heart is not None:
            self._heart = None
            with contextlib.suppress(StorageError), self._tables.transaction():  # else they are lost, in time
                self._give_up(self.worker, RETURNED, "")
                self._tables.leave(self.worker)
        self._tables.close()

    def _beat(self) -> None:
        while not self._end.wait(self._seconds / BEATS):
            with contextlib.suppress(StorageError):  # what reads and writes says so, if the database stays away
                self._tables.beat(self.worker, self._seconds)

    def _bury(self) -> None:
        """End the attempts of workers that are silent: lost if their run went on without them, returned if it ended with them."""
        with self._tables.transaction():  # another may have done it, or a worker given a sign of life
            for worker, (promised, witnessed) in self._tables.silent(self.worker).items():
                name = ":".join(worker.split(":")[:2])
                said = "ended without a word" if promised is None else f"gave no sign of life for {promised:g} seconds"
                self._give_up(worker, LOST if witnessed else RETURNED, f"its worker {name} {said}")

    def _give_up(self, worker: str, status: str, message: str) -> None:
        numbers = self._tables.running(worker)
        now = self._tables.now()
        for row in self._tables.rows(numbers) if numbers else ():
            self._tables.update(*ended(row, status, message, now, worker))
        if numbers:
            self._mark(numbers)

    @contextmanager
    def _change(self, *numbers: int, all_seen: bool = False) -> Iterator[None]:
        """A transaction that changes trials.

        Raises:
            TakenError: another writer changed one of them, or, with ``all_seen``, anything, since the last look.
        """
        with self._tables.transaction():
            stored = self._tables.changes(self._seen)
            if stored and (all_seen or any(stored.get(n, 0) > self._revisions.get(n, 0) for n in numbers)):
                raise TakenError(f"{self.title}: another writer was first; look again")
            yield
            revision = self._mark(numbers)
        self._own(numbers, revision)

    def _mark(self, numbers: Sequence[int]) -> int:
        """Give a change its revision."""
        revision = self._tables.revision() + 1
        for number in numbers:
            self._tables.mark(number, revision)
        return revision

    def _own(self, numbers: Sequence[int], revision: int) -> None:
        """A change of this writer, once it is there, is no news to it."""
        self._revisions |= dict.fromkeys(numbers, revision)
        if self._seen == revision - 1:
            self._seen = revision

    def _signed(self, evaluations: Sequence[EvaluationRow]) -> tuple[EvaluationRow, ...]:
        """With this writer's name on what runs."""
        return tuple(replace(e, worker=self.worker) if e.status == RUNNING else e for e in evaluations)
