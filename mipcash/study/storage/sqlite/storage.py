"""The journal: a SQLite file that holds a study, its trials and their evaluations. This is its one writer.

It is written before each evaluation (configuration, proof, optimizer state) and after it (outcome), each time in a
committed transaction that is synced to the disk, so that a killed process loses nothing but the evaluation it was in.
An attempt that still runs when a journal is opened ended with its run, which was killed as a whole: there was no other writer.
That says nothing about the trial, so that the attempt counts as returned and costs no retry.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from dataclasses import replace

from mipcash.errors import StorageError
from mipcash.study.storage.attempts import ended
from mipcash.study.storage.compare import compare
from mipcash.study.storage.protocol import NOTED, RETURNED, EvaluationRow, StudyRecord, TrialRow
from mipcash.study.storage.sqlite import schema
from mipcash.study.storage.sqlite.file import JournalFile
from mipcash.study.storage.sqlite.reading import explain, is_new, read_record, read_trials

KILLED = "its run was killed"
"""Message of an attempt that still ran when its journal was opened again."""


class SQLiteStorage:
    """A journal open for writing; see :class:`mipcash.study.storage.protocol.Storage`.

    Args:
        storage: the file.

    Raises:
        StorageError: the folder does not exist, another writer has the file open, or it has a second name (a hard link).

    A journal is readable and writable by its owner alone (0600), whatever the umask: it holds what an objective said and
    the names of files. One that exists is made so when it is opened for writing. Symbolic links are followed, once, here.
    """

    record: StudyRecord

    def __init__(self, storage: str | os.PathLike[str]) -> None:
        self._process, self._begun = os.getpid(), False
        self._journal = JournalFile(storage)
        self.path, self._database = self._journal.path, self._journal.database
        self._transaction = self._journal.transaction

    def open(self, record: StudyRecord) -> None:
        """See :meth:`mipcash.study.storage.protocol.Storage.open`."""
        with explain(self.path):
            if is_new(self._database):
                record = replace(record, created=time.time())
                self._journal.tighten()
                with self._transaction():
                    schema.create(self._database, record)
            else:
                stored = read_record(self._database, self.path)
                compare(self.path, stored, record)
                self._journal.tighten()  # only now: what is no journal of this study is left as it is
                record = stored
            self.record = record

    def rows(self) -> list[TrialRow]:
        """See :meth:`mipcash.study.storage.protocol.Storage.rows`."""
        with explain(self.path):
            return [ended(r, RETURNED, KILLED, time.time())[0] for r in read_trials(self._database, self.record)]

    def begin(self) -> None:
        """See :meth:`mipcash.study.storage.protocol.Storage.begin`."""
        self._end_attempts(KILLED)
        self._begun = True

    def news(self) -> Sequence[TrialRow]:
        """None: a journal has one writer."""
        return ()

    def insert(self, *rows: TrialRow) -> None:
        """See :meth:`mipcash.study.storage.protocol.Storage.insert`."""
        with self._transaction():
            for row in rows:
                schema.insert_trial(self._database, row)

    def start(self, evaluations: Sequence[EvaluationRow]) -> None:
        """See :meth:`mipcash.study.storage.protocol.Storage.start`."""
        with self._transaction():
            schema.insert_evaluations(self._database, evaluations)

    def write(self, row: TrialRow, changed: Sequence[EvaluationRow]) -> None:
        """See :meth:`mipcash.study.storage.protocol.Storage.write`."""
        with self._transaction():
            schema.update_trial(self._database, row, changed)

    def note(self, record: StudyRecord) -> None:
        """See :meth:`mipcash.study.storage.protocol.Storage.note`."""
        with self._transaction():
            schema.note(self._database, {name: getattr(record, name) for name in NOTED})
            self.record = read_record(self._database, self.path, whole=False)

    def close(self) -> None:
        """Close the file and let other writers in. In a process that was forked from the writer's it does nothing."""
        if os.getpid() != self._process:
            return
        if self._begun:
            self._begun = False
            with contextlib.suppress(StorageError):  # it was taken away, or cannot be written to: the next run does it
                self._end_attempts("")
        self._journal.close()

    def _end_attempts(self, message: str) -> None:
        """Return all attempts that run."""
        with explain(self.path):
            numbers = schema.running(self._database)
        if not numbers:
            return
        with self._transaction():
            for row in schema.read_trials(self._database, numbers):
                schema.update_trial(self._database, *ended(row, RETURNED, message, time.time()))
