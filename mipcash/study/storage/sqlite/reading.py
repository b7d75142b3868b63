"""Read a journal without writing to its file, and rename it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mipcash.errors import StorageError
from mipcash.study.records.fingerprint import fingerprint
from mipcash.study.storage.address import without_credentials
from mipcash.study.storage.checks import DamageError, check_format, study_record
from mipcash.study.storage.protocol import NOTHING, StudyRecord, TrialRow
from mipcash.study.storage.sqlite import schema
from mipcash.study.storage.sqlite.lock import WriterLock, real_path
from mipcash.study.text import shown

UNUSABLE = (
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
)
"""What SQLite says of a file that it cannot get at; the rest is said of what is in it."""

BESIDE = ("-journal", "-wal", "-shm")
"""What SQLite keeps beside a file, by its name."""


def read_journal(path: str | os.PathLike[str]) -> tuple[StudyRecord, list[TrialRow]]:
    """The study and its trials, without locking: a run that is going on may be looked at.

    Raises:
        StorageError: there is no such file, it is no journal, or it is damaged.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise StorageError(
            f"{without_credentials(file)} does not exist; `mipcash run MODEL` writes journals to runs/ unless told otherwise"
        )
    with explain(file):
        # Not mode=ro: a run killed inside a write leaves a rollback file, and the first reader has to apply it.
        database = connect(f"{real_path(file).as_uri()}?mode=rw", uri=True)
        try:
            if is_new(database):
                raise StorageError(f"{file} is empty: the run that made it was stopped before it wrote anything")
            database.execute("BEGIN")  # one moment of a run that goes on
            record = read_record(database, file)
            return record, read_trials(database, record)
        finally:
            database.close()


def rename_journal(path: Path) -> Path | None:
    """Rename a journal to the first free ``NAME.old-1.db``, ``NAME.old-2.db`` ... beside it. Return None if there is no file.

    Nothing is deleted. A file that is no journal is renamed too.

    Raises:
        StorageError: a run is writing to the journal, or its folder cannot be written to.
    """
    file = real_path(path)
    if not file.is_file():
        return None
    lock = WriterLock(path)
    try:
        with suppress(StorageError):  # SQLite finishes what a killed run left
            read_journal(file)
        number = 1
        while (target := file.with_name(f"{file.stem}.old-{number}{file.suffix}")).exists():
            number += 1
        try:
            # of a journal that SQLite could not open they are left, and would be taken for those of the new one
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


def connect(name: str, uri: bool = False) -> sqlite3.Connection:
    """Autocommit (transactions are written out), used by one thread at a time, waiting 30 s for readers to finish."""
    return sqlite3.connect(name, timeout=30, isolation_level=None, check_same_thread=False, uri=uri)


def is_new(database: sqlite3.Connection) -> bool:
    """Whether the file is empty: a run may be killed before its first transaction."""
    return bool(database.execute("PRAGMA page_count").fetchone()[0] == 0)


def read_record(database: sqlite3.Connection, path: Path | None, whole: bool = True) -> StudyRecord:
    """The study, after a look at the whole file, or at that row alone.

    Raises:
        StorageError: another database, or another format.
        DamageError: the rest of what may be wrong.
    """
    database.execute("PRAGMA trusted_schema = OFF")
    if database.execute("PRAGMA application_id").fetchone()[0] != schema.APPLICATION_ID:
        raise StorageError(f"{path} is a SQLite database but not a journal of mipcash; give another storage")
    problem = database.execute("PRAGMA integrity_check(1)").fetchone() if whole else ("ok",)
    found = [number for (number,) in database.execute("SELECT schema FROM study LIMIT 2")]
    if len(found) == 1:
        check_format(path, found[0], "start a new file")
    schema.check_tables(database)
    if problem is None or problem[0] != "ok":
        raise DamageError(f"SQLite finds: {shown(None if problem is None else problem[0], 200)}")
    rows: list[dict[str, Any]] = list(schema.select(database, "study", schema.STUDY, "id"))
    if len(rows) != 1:
        raise DamageError(f"it holds {len(rows)} studies instead of one")
    record = study_record(rows[0])
    if fingerprint(record.listing) != record.fingerprint:
        raise DamageError("what it lists of its space does not agree with its fingerprint")
    return record


def read_trials(database: sqlite3.Connection, record: StudyRecord) -> list[TrialRow]:
    """All trials by number.

    Raises:
        DamageError: a row is not as mipcash writes it.
    """
    rows = schema.read_trials(database)
    if record.recommended is not None and not NOTHING <= record.recommended < len(rows):
        raise DamageError(f"the recommended trial is {shown(record.recommended)}, which is not there")
    return rows


@contextmanager
def explain(path: Path | None) -> Iterator[None]:
    """Turn SQLite's errors, and what was found damaged, into errors that name the file, the cause and the cure."""
    try:
        yield
    except sqlite3.ProgrammingError as error:
        raise StorageError(f"the journal {path} is closed ({error}); open the study again") from error
    except sqlite3.Error as error:
        if (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF in UNUSABLE:  # the low byte is the primary code
            cure = "check permissions, space on the disk, and whether a program keeps it open"
            raise StorageError(f"the journal {path} cannot be used: {error}; {cure}") from error
        raise StorageError(
            f"{path} is not a journal of mipcash, or is damaged ({error}); move it aside or give another storage"
        ) from error
    except (DamageError, UnicodeDecodeError) as error:  # SQLite quotes what it cannot read, and that may be no text
        raise StorageError(
            f"{path} is damaged or was edited: {error}; restore it from a copy, or move it aside and start a new journal"
        ) from error
