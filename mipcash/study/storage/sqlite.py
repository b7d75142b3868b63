"""Storage of a study in a SQLite file: the journal.

It is readable and writable by its owner only (0600), whatever the umask, because it holds messages of the objective and names of
files. An existing file is given this mode when it is opened for writing. Symbolic links are resolved once, when it is opened.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from sqlalchemy.dialects import sqlite

from mipcash.errors import StorageError
from mipcash.study.storage.address import without_credentials
from mipcash.study.storage.checks import DamageError, check_format, is_database
from mipcash.study.storage.database import Database, Rows
from mipcash.study.storage.lock import InUseError, WriterLock, create_private, real_path
from mipcash.study.storage.protocol import StudyRecord, TrialRow
from mipcash.study.storage.sql import SQLStorage
from mipcash.study.storage.tables import Tables
from mipcash.text import shown

APPLICATION_ID = 0x6D697063
"""Stamped into the SQLite header ("mipc") to distinguish journals from other databases."""

UNUSABLE = re.compile("SQLITE_(PERM|BUSY|LOCKED|READONLY|IOERR|FULL|CANTOPEN)")
"""SQLite errors about access to a file; other errors concern its content."""

BESIDE = ("-journal", "-wal", "-shm")
"""Suffixes of the files that SQLite keeps beside a file."""

OPENING = 10.0
"""Seconds to wait for another process that has the file open as its only writer."""
PAUSE = 0.05
"""Seconds between checks whether that process has finished."""


@cache
def tables() -> Tables:
    """Return the tables of a journal."""
    return Tables(sqlite.dialect(paramstyle="named"), sqlite.insert)


class JournalReader(Database):
    """The file of a journal, opened for reading. Nothing is locked, so that a run in progress can be read.

    Args:
        path: as messages quote it.
        file: without symbolic links.
    """

    errors = (sqlite3.Error,)
    restore = "restore it from a copy, or move it aside and start a new journal"
    another = "give another storage or move this file aside"
    settings: tuple[str, ...] = ("trusted_schema = OFF",)
    path: Path

    def __init__(self, path: Path, file: Path) -> None:
        super().__init__()
        self.path, self.title, self.tables = path, str(path), tables()
        self._file = file
        self._connection: sqlite3.Connection | None = None

    def acquire(self) -> None:
        """Open the file. It is in autocommit mode, as transactions are explicit, and waits 30 s for readers to finish."""
        # not mode=ro: after a run was killed inside a write, the first reader has to apply SQLite's rollback journal
        name = f"{self._file.as_uri()}?mode=rw"
        try:
            self._connection = sqlite3.connect(
                name, timeout=30.0, isolation_level=None, check_same_thread=False, uri=True
            )
            for setting in self.settings:
                self._connection.execute(f"PRAGMA {setting}")
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self.storage_error(error) from None

    def is_new(self) -> bool:
        """Return True if the file is empty, since a run may be killed before its first transaction."""
        with self.transaction(write=False) as rows:
            return bool(rows.execute("PRAGMA page_count")[0][0] == 0)

    def check(self, rows: Rows) -> None:
        if rows.execute("PRAGMA application_id")[0][0] != APPLICATION_ID:
            raise StorageError(f"{self.path} is a SQLite database but not a journal of mipcash; give another storage")
        formats = rows.run("format")
        if len(formats) == 1:
            check_format(self.path, formats[0][0], "start a new file")
        for kind, name in rows.execute("SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view')"):
            raise DamageError(f"it has a {kind} {name!r}, which a journal never has")
        for (problem,) in rows.execute("PRAGMA integrity_check(1)"):
            if problem != "ok":
                raise DamageError(f"SQLite finds: {shown(problem, 200)}")

    def connect(self, write: bool) -> sqlite3.Connection:
        assert self._connection is not None
        if self._connection.in_transaction:  # Ctrl-C came between an error and the end of its transaction
            self._connection.rollback()
        return self._connection

    def begin(self, rows: Rows, write: bool) -> None:
        rows.execute("BEGIN IMMEDIATE" if write else "BEGIN")

    def explanation(self, error: Exception) -> str:
        if isinstance(error, sqlite3.ProgrammingError):
            return f"the journal {self.path} is closed ({error}); open the study again"
        if UNUSABLE.match(getattr(error, "sqlite_errorname", None) or ""):
            cure = "check permissions, space on the disk, and whether a program keeps it open"
            return f"the journal {self.path} cannot be used: {error}; {cure}"
        return (
            f"{self.path} is not a journal of mipcash, or is damaged ({error}); move it aside or give another storage"
        )

    def close(self) -> None:
        if self._connection is not None:
            with self._turn:
                self._connection.close()


class JournalFile(JournalReader):
    """The file of a journal that is open for writing.

    Args:
        storage: the file, which is created if it does not exist.
        shared: True if other writers with ``shared=True`` may write to it, too. The file is then opened by ``make``, and otherwise
            here.

    Raises:
        StorageError: the folder does not exist, another writer has the file open, or it has a second name (a hard link).
    """

    # synchronous = EXTRA: as FULL, and the deletion of SQLite's rollback journal is synced too
    settings = (*JournalReader.settings, "journal_mode = DELETE", "synchronous = EXTRA")

    def __init__(self, storage: str | os.PathLike[str], shared: bool = False) -> None:
        given = Path(os.path.expanduser(storage))
        super().__init__(given.absolute(), real_path(given))  # independent of a later chdir
        self._given, self._shared = self.path if shared else given, shared
        self._lock: WriterLock | None = None
        if not shared:
            self.acquire()

    def acquire(self) -> None:
        _check_folder(self._given, self._file)
        self._lock = WriterLock(self._given, self._shared)
        try:
            self._identity = _prepare(self._file)
            super().acquire()
        except BaseException:
            self.close()
            raise

    def make(self, record: StudyRecord) -> None:
        if self._shared:
            self._join(record)
        elif self.is_new():
            self.settle()  # SQLite gives its rollback journal the mode of this file
            with self.transaction() as rows:
                for statement in self.tables.create:
                    rows.execute(statement)
                rows.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                rows.add_study(record)

    def _join(self, record: StudyRecord) -> None:
        """Open the file for shared writing. If no writer has it, first open it exclusively, to clean up after killed processes."""
        until = time.monotonic() + OPENING
        while True:
            with suppress(InUseError):  # other writers share it; or one holds it alone, as reported below
                alone = SQLStorage(JournalFile(self.path))
                try:
                    alone.open(record)
                    alone.rows()
                    alone.begin()
                finally:
                    alone.close()
            try:
                self.acquire()
                if not self.is_new():
                    return
                self.close()  # the process that had it alone was killed before it made the study
                if time.monotonic() > until:
                    raise InUseError(f"{self.path} is empty, and other processes keep it open; end them, and try again")
            except InUseError:
                if time.monotonic() > until:
                    raise
            time.sleep(PAUSE)

    def settle(self) -> None:
        """Make the journal private. Call this only for a new file, or one known to be the journal of this study."""
        with suppress(OSError):  # the file belongs to another user, or the file system has no modes
            os.chmod(self._file, stat.S_IRUSR | stat.S_IWUSR)

    def connect(self, write: bool) -> sqlite3.Connection:
        if write:
            self._check_place()
        return super().connect(write)

    def unreachable(self, error: Exception) -> bool:
        """Return True while another program, such as a backup, reads the file."""
        return (getattr(error, "sqlite_errorname", None) or "").startswith("SQLITE_BUSY")

    def close(self) -> None:
        super().close()
        if self._lock is not None:
            self._lock.release()

    def _check_place(self) -> None:
        """Refuse to write to a file that was moved, deleted or replaced: data would be lost, or mixed with those of another study.

        Raises:
            StorageError: the file at the path is not the one that was opened.
        """
        with suppress(FileNotFoundError):
            now = os.stat(self._file)
            if (now.st_dev, now.st_ino) == self._identity:
                return
        raise StorageError(
            f"the journal {self.path} was moved, deleted or replaced while this study writes to it; put it back and "
            "resume it, or start a new one"
        )


def _check_folder(given: Path, file: Path) -> None:
    try:
        is_folder, exists = file.is_dir(), file.exists()
    except OSError as error:
        raise StorageError(
            f"{without_credentials(given)} cannot be looked at: {error.strerror}; give another storage"
        ) from None  # the cause quotes the path
    if is_folder:
        raise StorageError(f"{given} is a folder; give a file for the journal, such as {given / 'run.db'}")
    if not file.parent.is_dir():
        folder = without_credentials(file.parent if given.is_symlink() else given.parent)
        raise StorageError(
            f"the folder {folder} of journal {without_credentials(given.name)!r} does not exist; create it (mkdir -p {folder})"
        )
    if exists and not file.is_file():
        raise StorageError(f"{given} is no regular file; give another storage")


def _prepare(file: Path) -> tuple[int, int]:
    """Create the file, private, if it does not exist. Return its device and inode.

    A file with two names is refused. SQLite derives the name of its rollback journal from the name that it was given, so a run
    killed under one name is not recovered under the other. Neither does the lock of one name exclude a writer under the other.
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


def read_journal(path: str | os.PathLike[str]) -> tuple[StudyRecord, list[TrialRow]]:
    """Return the study of a file and its trials, without locking, so that a run in progress can be read.

    Raises:
        StorageError: there is no such file, it is no journal, or it is damaged.
    """
    file = Path(os.path.expanduser(path))
    if file.is_dir():
        raise StorageError(f"{without_credentials(file)} is a folder; give the journal itself, a file in it")
    if not file.is_file():
        raise StorageError(
            f"{without_credentials(file)} does not exist; `mipcash run MODEL` writes journals to runs/ unless told otherwise"
        )
    journal = JournalReader(file, real_path(file))
    try:
        journal.acquire()
        if journal.is_new():
            raise StorageError(f"{file} is empty: the run that made it was stopped before it wrote anything")
        return journal.read()
    finally:
        journal.close()


def rename_journal(path: Path) -> Path | None:
    """Rename a journal to the first free ``NAME.old-1.db``, ``NAME.old-2.db`` ... beside it. Return None if there is no file.

    Nothing is deleted. A damaged journal is renamed too.

    Raises:
        StorageError: a run is writing to the journal, its folder is not writable, or the file is no SQLite database.
    """
    file = real_path(path)
    if not file.is_file():
        return None
    if file.stat().st_size and not is_database(file):
        raise StorageError(f"{path} is no journal, and is not renamed; give another storage, or move the file yourself")
    lock = WriterLock(path)
    try:
        with suppress(StorageError):  # SQLite completes an interrupted transaction
            read_journal(file)
        number = 1
        while (target := file.with_name(f"{file.stem}.old-{number}{file.suffix}")).exists():
            number += 1
        try:
            # files that SQLite left beside the journal must not be taken for those of a new one
            for end in ("", *BESIDE):
                if end == "" or file.with_name(file.name + end).exists():
                    file.with_name(file.name + end).rename(target.with_name(target.name + end))
        except OSError as error:
            raise StorageError(
                f"{path} cannot be renamed to {target.name}: {error.strerror}; give another storage"
            ) from error
    finally:
        lock.release()
    return target if path.is_symlink() else path.with_name(target.name)
