"""The journal: a SQLite file that holds a study, its trials and their evaluations. This is its one writer.

It is written before each evaluation (configuration, proof, optimizer state) and after it (outcome), each time in a
committed transaction that is synced to the disk, so that a killed process loses nothing but the evaluation it was in.
An attempt that still runs when a journal is opened lost its worker: no other writer can be at it.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from mipcash.errors import StorageError
from mipcash.study.storage.attempts import ended
from mipcash.study.storage.base import FORMAT, LOST, RETURNED, RUNNING, EvaluationRow, StudyRecord, TrialRow
from mipcash.study.storage.compare import compare
from mipcash.study.storage.sqlite.lock import WriterLock, create_private, real_path
from mipcash.study.storage.sqlite.reading import connect, explain, is_new, read_record, read_trials, tables_of
from mipcash.study.storage.sqlite.schema import create, insert_evaluations, insert_trial, rewrite

LARGEST = 2**63 - 1
"""The largest integer of SQLite."""

DIED = "the process that evaluated it ended without a word"


class SQLiteStorage:
    """A journal open for writing; see :class:`mipcash.study.storage.base.Storage`.

    Args:
        storage: the file.

    Raises:
        StorageError: the folder does not exist, another writer has the file open, or it has a second name (a hard link).

    A journal is readable and writable by its owner alone (0600), whatever the umask: it holds what an objective said and
    the names of files. One that exists is made so when it is opened for writing. Symbolic links are followed, once, here.
    A journal of an earlier format is made into one of the present format once all in it is found in order, in one transaction.
    """

    record: StudyRecord

    def __init__(self, storage: str | os.PathLike[str]) -> None:
        given = Path(os.fspath(storage)).expanduser()
        self.path = given.absolute()  # a later chdir must not lead elsewhere
        file = real_path(given)
        _check_folder(given, file)
        self._process, self._begun = os.getpid(), False
        self._lock = WriterLock(given)
        try:
            with explain(self.path):
                self._identity = _prepare(file)
                self._file = str(file)
                self._database = connect(self._file)
        except BaseException:
            self.close()
            raise

    def open(self, record: StudyRecord) -> None:
        """See :meth:`mipcash.study.storage.base.Storage.open`."""
        with explain(self.path):
            self._database.execute("PRAGMA journal_mode = DELETE")
            self._database.execute(
                "PRAGMA synchronous = EXTRA"
            )  # FULL, and the removal of the rollback file is synced too
            if is_new(self._database):
                record = replace(record, created=time.time())
                self._tighten()
                with self._transaction():
                    create(self._database, record)
            else:
                stored = read_record(self._database, self.path)
                compare(self.path, stored, record)
                self._tighten()  # only now: what is no journal of this study is left as it is
                record = stored
            self.record = record

    def rows(self) -> list[TrialRow]:
        """See :meth:`mipcash.study.storage.base.Storage.rows`."""
        with explain(self.path):
            return [ended(r, LOST, DIED, time.time())[0] for r in read_trials(self._database, self.record)]

    def begin(self) -> None:
        """See :meth:`mipcash.study.storage.base.Storage.begin`."""
        if self.record.schema == FORMAT:
            self._end_attempts(LOST, DIED)
        else:
            migrated = replace(self.record, schema=FORMAT)
            with self._transaction():
                rows = read_trials(self._database, self.record)
                rewrite(self._database, tables_of(self.record.schema), migrated, rows)
            self.record = migrated
        self._begun = True

    def news(self) -> Sequence[TrialRow]:
        """None: a journal has one writer."""
        return ()

    def insert(self, *rows: TrialRow) -> None:
        """See :meth:`mipcash.study.storage.base.Storage.insert`."""
        with self._transaction():
            for row in rows:
                insert_trial(self._database, row)

    def start(self, evaluations: Sequence[EvaluationRow]) -> None:
        """See :meth:`mipcash.study.storage.base.Storage.start`."""
        with self._transaction():
            insert_evaluations(self._database, evaluations)

    def write(self, row: TrialRow, changed: Sequence[EvaluationRow]) -> None:
        """See :meth:`mipcash.study.storage.base.Storage.write`."""
        with self._transaction():
            self._database.execute(
                "UPDATE trial SET status = ?, finished = ?, duration = ? WHERE number = ?",
                (row.status, row.finished, row.duration, row.number),
            )
            insert_evaluations(self._database, changed, replace=True)

    def note(self, record: StudyRecord) -> None:
        """See :meth:`mipcash.study.storage.base.Storage.note`."""
        budget = None if record.budget is None else min(int(record.budget), LARGEST)
        record = replace(record, budget=budget)
        with self._transaction():
            self._database.execute(
                "UPDATE study SET budget = ?, timeout = ?, stopped = ?, recommended = ?, listing = ?",
                (record.budget, record.timeout, record.stopped, record.recommended, json.dumps(dict(record.listing))),
            )
        self.record = record

    def close(self) -> None:
        """Close the file and let other writers in. In a process that was forked from the writer's it does nothing."""
        if os.getpid() != self._process:
            return
        if self._begun:
            self._begun = False
            with contextlib.suppress(StorageError):  # it was taken away, or cannot be written to: then they are lost
                self._end_attempts(RETURNED, "")
        database = getattr(self, "_database", None)
        if database is not None:
            database.close()
        self._lock.release()

    def _end_attempts(self, status: str, message: str) -> None:
        """Give all attempts that run an end."""
        running = "FROM evaluation WHERE status = ? LIMIT 1"
        with explain(self.path):
            if self._database.execute(f"SELECT 1 {running}", (RUNNING,)).fetchone() is None:
                return
        with self._transaction():
            self._database.execute(
                "UPDATE evaluation SET status = ?, value = NULL, variance = NULL, message = ?, finished = ? WHERE status = ?",
                (status, message, time.time(), RUNNING),
            )

    def _tighten(self) -> None:
        """0600 for the journal, from which SQLite takes the mode of its rollback file."""
        with contextlib.suppress(OSError):  # the file of another user, or a file system without modes
            os.chmod(self._file, stat.S_IRUSR | stat.S_IWUSR)

    def _check_place(self) -> None:
        """What is written to a file that was moved, deleted or replaced is lost, or meets the writes of another study."""
        with contextlib.suppress(FileNotFoundError):
            now = os.stat(self._file)
            if (now.st_dev, now.st_ino) == self._identity:
                return
        raise StorageError(
            f"the journal {self.path} was moved, deleted or replaced while this study writes to it; put it back and "
            "resume it, or start a new one"
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with explain(self.path):
            self._check_place()
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:  # SQLite itself rolls back where the disk is full
                    self._database.execute("ROLLBACK")
                raise


def _check_folder(given: Path, file: Path) -> None:
    try:
        is_folder, exists = file.is_dir(), file.exists()
    except OSError as error:
        raise StorageError(f"{given} cannot be looked at: {error.strerror}; give another storage") from error
    if is_folder:
        raise StorageError(f"{given} is a folder; give a file for the journal, such as {given / 'run.db'}")
    if not file.parent.is_dir():
        parent = file.parent if given.is_symlink() else given.parent
        raise StorageError(
            f"the folder {parent} of journal {given.name!r} does not exist; create it (mkdir -p {parent})"
        )
    if exists and not file.is_file():
        raise StorageError(f"{given} is no regular file; give another storage")


def _prepare(file: Path) -> tuple[int, int]:
    """Make the file, private, where there is none; its device and inode.

    A file of two names is refused: SQLite calls its rollback file after the name it was given, so that a run killed
    under one name is not mended under the other, and neither name's lock keeps the other's writer out.
    """
    try:
        create_private(file)
        found = os.stat(file)
    except OSError as error:
        raise StorageError(f"the journal {file} cannot be used: {error.strerror}; check its permissions") from error
    if found.st_nlink > 1:
        raise StorageError(
            f"the journal {file} has {found.st_nlink} names (hard links); a run resumed under one of them would spoil what "
            f"another has open. Remove the others (find . -samefile {file.name} lists them), or copy the file and use the copy"
        )
    return found.st_dev, found.st_ino
