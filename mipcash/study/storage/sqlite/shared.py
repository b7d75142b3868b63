"""A journal that several processes of one machine write to: the file of every journal, and two more tables for who writes to it.

These tables are of those who share the file. A journal that has them is read, shown and resumed like any other. Whoever comes while
nobody shares it opens it as its one writer first: what a process left behind that was killed is found and put right there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from mipcash.study.storage.compare import compare
from mipcash.study.storage.protocol import RUNNING, EvaluationRow, StudyRecord, TrialRow
from mipcash.study.storage.shared.trial_tables import Silence
from mipcash.study.storage.sqlite import schema
from mipcash.study.storage.sqlite.file import JournalFile
from mipcash.study.storage.sqlite.lock import InUseError
from mipcash.study.storage.sqlite.reading import explain, read_record
from mipcash.study.storage.sqlite.storage import SQLiteStorage

OPENING = 10.0
"""Seconds that another may take to open the file as its one writer."""
PAUSE = 0.05
"""Seconds between looks at whether it has."""

TABLES = (
    "CREATE TABLE IF NOT EXISTS worker (name TEXT PRIMARY KEY, since REAL NOT NULL, seen REAL NOT NULL, promised REAL NOT NULL)",
    "CREATE TABLE IF NOT EXISTS change (trial INTEGER PRIMARY KEY, revision INTEGER NOT NULL)",
)


class SQLiteTables:
    """See :class:`mipcash.study.storage.shared.trial_tables.Tables`.

    Args:
        storage: the file.
    """

    _journal: JournalFile

    def __init__(self, storage: str | os.PathLike[str]) -> None:
        self.path: Path | None = Path(os.fspath(storage)).expanduser().absolute()
        self.title = str(self.path)

    def open(self, record: StudyRecord) -> StudyRecord:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.open`."""
        assert self.path is not None
        until = time.monotonic() + OPENING
        while True:
            with suppress(InUseError):  # by others that share it; or by one that does not, which is told below
                _put_right(self.path, record)
            try:
                self._journal = JournalFile(self.path, shared=True)
                break
            except InUseError:
                if time.monotonic() > until:
                    raise
                time.sleep(PAUSE)
        try:
            with self.transaction():
                for statement in TABLES:
                    self._database.execute(statement)
            with explain(self.path):
                stored = read_record(self._database, self.path)
                compare(self.path, stored, record)
        except BaseException:
            self._journal.close()
            raise
        return stored

    def transaction(self, write: bool = True) -> AbstractContextManager[None]:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.transaction`."""
        return self._journal.transaction() if write else self._reading()

    def now(self) -> float:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.now`."""
        return time.time()

    def record(self) -> StudyRecord:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.record`."""
        return read_record(self._database, self.path, whole=False)

    def note(self, changes: Mapping[str, Any]) -> None:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.note`."""
        schema.note(self._database, changes)

    def rows(self, numbers: Collection[int] | None = None) -> list[TrialRow]:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.rows`."""
        return schema.read_trials(self._database, numbers)

    def insert(self, row: TrialRow) -> None:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.insert`."""
        schema.insert_trial(self._database, row)

    def update(self, row: TrialRow, evaluations: Sequence[EvaluationRow]) -> None:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.update`."""
        schema.update_trial(self._database, row, evaluations)

    def revision(self) -> int:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.revision`."""
        return int(self._database.execute("SELECT coalesce(max(revision), 0) FROM change").fetchone()[0])

    def changes(self, since: int = 0) -> dict[int, int]:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.changes`."""
        return dict(
            self._database.execute("SELECT trial, revision FROM change WHERE revision > ? ORDER BY trial", (since,))
        )

    def mark(self, number: int, revision: int) -> None:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.mark`."""
        self._database.execute("INSERT OR REPLACE INTO change (trial, revision) VALUES (?, ?)", (number, revision))

    def running(self, worker: str) -> list[int]:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.running`."""
        found = self._database.execute(
            "SELECT DISTINCT trial FROM evaluation WHERE status = ? AND worker = ? ORDER BY trial", (RUNNING, worker)
        )
        return [number for (number,) in found]

    def silent(self, but: str) -> dict[str, Silence]:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.silent`."""
        found = self._database.execute(
            "SELECT DISTINCT e.worker, w.promised, "
            "EXISTS (SELECT 1 FROM worker o WHERE o.since <= w.seen AND o.seen + o.promised >= ?1) "
            "FROM evaluation e LEFT JOIN worker w ON w.name = e.worker "
            "WHERE e.status = ?2 AND e.worker <> ?3 AND (w.name IS NULL OR w.seen + w.promised < ?1)",
            (self.now(), RUNNING, but),
        )
        return {worker: Silence(promised, bool(witnessed)) for worker, promised, witnessed in found}

    def beat(self, worker: str, seconds: float) -> None:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.beat`."""
        with explain(self.path):
            database = self._journal.another()  # the study's own is another thread's
            try:
                database.execute(
                    "INSERT INTO worker VALUES (?1, ?2, ?2, ?3) "
                    "ON CONFLICT (name) DO UPDATE SET seen = excluded.seen, promised = excluded.promised",
                    (worker, self.now(), seconds),
                )
            finally:
                database.close()

    def leave(self, worker: str) -> None:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.leave`."""
        self._database.execute("DELETE FROM worker WHERE name = ?", (worker,))

    def close(self) -> None:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.close`."""
        if hasattr(self, "_journal"):
            self._journal.close()

    @property
    def _database(self) -> Any:
        return self._journal.database

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with explain(self.path):
            self._database.execute("BEGIN")
            try:
                yield
            finally:
                self._database.execute("COMMIT")


def _put_right(path: Path, record: StudyRecord) -> None:
    """Open a journal as its one writer, and close it: it is made, and what killed processes left is returned.

    Raises:
        InUseError: it has writers.
        StorageError: as for :meth:`mipcash.study.storage.sqlite.storage.SQLiteStorage.open`.
    """
    storage = SQLiteStorage(path)
    try:
        storage.open(record)
        storage.rows()
        storage.begin()
        with storage._transaction():
            storage._database.execute("DROP TABLE IF EXISTS worker")
    finally:
        storage.close()
