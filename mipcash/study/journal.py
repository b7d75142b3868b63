"""The journal: a SQLite file (or memory) that holds a study and its trials.

It is written before each evaluation (configuration, proof, optimizer state) and after it (outcome), each time in a
committed transaction that is synced to the disk, so that a killed process loses nothing but the evaluation it was in.
The journal knows text and numbers only; :mod:`mipcash.study.encoding` knows spaces.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path

from mipcash import __version__
from mipcash.errors import StorageError
from mipcash.optimizers.outcome import PENDING
from mipcash.study.checks import (
    LARGEST,
    SCHEMA_VERSION,
    STORED_PENDING,
    TABLES,
    DamageError,
    StudyRecord,
    TrialRow,
    check_tables,
    study_record,
    trial_row,
)
from mipcash.study.fingerprint import differences, fingerprint
from mipcash.study.lock import WriterLock, create_private, real_path
from mipcash.study.text import shown, storable

APPLICATION_ID = 0x6D697063
"""Stamped into the SQLite header ("mipc"), so that other databases are told apart."""

MEMORY = ":memory:"

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


class Journal:
    """A journal open for writing.

    Args:
        storage: the file; None keeps the journal in memory.
        record: the study that wants to write. A file that exists must belong to it.

    Raises:
        StorageError: the folder does not exist, the file is no journal or is damaged, it belongs to another study,
            another writer has it open, or it has a second name (a hard link).

    A journal is readable and writable by its owner alone (0600), whatever the umask: it holds what an objective said and
    the names of files. One that exists is made so when it is opened for writing. Symbolic links are followed, once, here.
    """

    def __init__(self, storage: str | os.PathLike[str] | None, record: StudyRecord) -> None:
        in_memory = storage is None or str(storage) == MEMORY
        self.path: Path | None = None
        self._lock: WriterLock | None = None
        self._identity: tuple[int, int] | None = None
        name = MEMORY
        if not in_memory:
            given = Path(os.fspath(storage)).expanduser()  # type: ignore[arg-type]
            self.path = given.absolute()  # a later chdir must not lead elsewhere
            file = real_path(given)
            _check_folder(given, file)
            self._lock = WriterLock(given)
            name = str(file)
        try:
            with explain(self.path):
                if not in_memory:
                    self._identity = _prepare(file)
                self._file = name
                self._database = _connect(name)
                self.record = self._open(record)
        except BaseException:
            self.close()
            raise

    def rows(self) -> list[TrialRow]:
        """All trials by number."""
        with explain(self.path):
            return _read_rows(self._database)

    def insert(self, row: TrialRow) -> None:
        """Write a trial before its evaluation."""
        names = [f.name for f in fields(TrialRow)]
        columns = ", ".join(f'"{n}"' for n in names)
        marks = ", ".join("?" * len(names))
        values = {**vars(row), "status": STORED_PENDING}
        with self._transaction():
            self._database.execute(f"INSERT INTO trial ({columns}) VALUES ({marks})", [values[n] for n in names])

    def finish(
        self,
        number: int,
        status: str,
        loss: float | None,
        values: str,
        message: str,
        finished: float | None,
        duration: float | None,
    ) -> None:
        """Write a trial's outcome after its evaluation; of a pending one, the values that are known already."""
        status, loss = (STORED_PENDING, None) if status == PENDING else (status, loss)
        with self._transaction():
            self._database.execute(
                'UPDATE trial SET status = ?, loss = ?, "values" = ?, message = ?, finished = ?, duration = ? '
                "WHERE number = ?",
                (status, loss, values, message, finished, duration, number),
            )

    def restart(self, number: int, started: float) -> None:
        """Note that the evaluation of a trial whose run was killed starts again."""
        with self._transaction():
            self._database.execute("UPDATE trial SET started = ? WHERE number = ?", (started, number))

    def plan(self, budget: int | None, timeout: float | None) -> None:
        """Note what the run that starts now intends."""
        budget = None if budget is None else min(int(budget), LARGEST)
        timeout = None if timeout is None else float(timeout)
        with self._transaction():
            self._database.execute("UPDATE study SET budget = ?, timeout = ?, stopped = ''", (budget, timeout))
        self.record = replace(self.record, budget=budget, timeout=timeout, stopped="")

    def stop(self, reason: str) -> None:
        """Note why a run ended."""
        with self._transaction():
            self._database.execute("UPDATE study SET stopped = ?", (reason,))
        self.record = replace(self.record, stopped=reason)

    def close(self) -> None:
        """Close the file and let other writers in; doing it twice does no harm."""
        database = getattr(self, "_database", None)
        if database is not None:
            database.close()
        if self._lock is not None:
            self._lock.release()

    def _open(self, record: StudyRecord) -> StudyRecord:
        self._database.execute("PRAGMA journal_mode = DELETE")
        self._database.execute("PRAGMA synchronous = EXTRA")  # FULL, and the removal of the rollback file is synced too
        if _is_new(self._database):
            record = replace(record, created=time.time())
            self._tighten()
            with self._transaction():
                _create(self._database, record)
            return record
        stored = _read_record(self._database, self.path)
        _compare(self.path, stored, record)
        self._tighten()  # only now: what is no journal of this study is left as it is
        return stored

    def _tighten(self) -> None:
        """0600 for the journal, from which SQLite takes the mode of its rollback file."""
        if self.path is not None:
            with contextlib.suppress(OSError):  # the file of another user, or a file system without modes
                os.chmod(self._file, stat.S_IRUSR | stat.S_IWUSR)

    def _check_place(self) -> None:
        """What is written to a file that was moved, deleted or replaced is lost, or meets the writes of another study."""
        if self._identity is None:
            return
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


def read_journal(path: str | os.PathLike[str]) -> tuple[StudyRecord, list[TrialRow]]:
    """The study and its trials, without locking: a run that is going on may be looked at.

    Raises:
        StorageError: there is no such file, it is no journal, or it is damaged.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise StorageError(f"{file} does not exist; `mipcash run MODEL` writes journals to runs/ unless told otherwise")
    with explain(file):
        # Not mode=ro: a run killed inside a write leaves a rollback file, and the first reader has to apply it.
        database = _connect(f"{real_path(file).as_uri()}?mode=rw", uri=True)
        try:
            if _is_new(database):
                raise StorageError(f"{file} is empty: the run that made it was stopped before it wrote anything")
            database.execute("BEGIN")  # one moment of a run that goes on
            return _read_record(database, file), _read_rows(database)
        finally:
            database.close()


def _connect(name: str, uri: bool = False) -> sqlite3.Connection:
    """Autocommit (transactions are written out), used by one thread at a time, waiting 30 s for readers to finish."""
    return sqlite3.connect(name, timeout=30, isolation_level=None, check_same_thread=False, uri=uri)


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


def _is_new(database: sqlite3.Connection) -> bool:
    """Whether the file is empty: a run may be killed before its first transaction."""
    return bool(database.execute("PRAGMA page_count").fetchone()[0] == 0)


def _create(database: sqlite3.Connection, record: StudyRecord) -> None:
    for statement in TABLES.values():
        database.execute(statement)
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    columns = asdict(record)
    for name in ("listing", "settings", "options"):
        columns[name] = json.dumps(columns[name])
    for name in ("space", "optimizer", "solver", "model"):
        columns[name] = None if columns[name] is None else storable(columns[name])
    columns["seed"] = str(record.seed)  # a seed may be larger than SQLite's 64-bit integers
    names = ", ".join(columns)
    database.execute(f"INSERT INTO study ({names}) VALUES ({', '.join('?' * len(columns))})", list(columns.values()))


def _read_record(database: sqlite3.Connection, path: Path | None) -> StudyRecord:
    """The study, after a look at the whole file.

    Raises:
        StorageError: another database, or another format.
        DamageError: the rest of what may be wrong.
    """
    database.execute("PRAGMA trusted_schema = OFF")
    if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StorageError(f"{path} is a SQLite database but not a journal of mipcash; give another storage")
    problem = database.execute("PRAGMA integrity_check(1)").fetchone()
    schemas = database.execute("SELECT schema FROM study LIMIT 2").fetchall()
    if len(schemas) == 1 and type(schemas[0][0]) is int and schemas[0][0] != SCHEMA_VERSION:
        raise StorageError(
            f"{path} has journal format {schemas[0][0]} and this mipcash ({__version__}) reads format {SCHEMA_VERSION}; "
            "use the version that wrote it, or start a new journal"
        )
    check_tables(database)
    if problem is None or problem[0] != "ok":
        raise DamageError(f"SQLite finds: {shown(None if problem is None else problem[0], 200)}")
    names = [f.name for f in fields(StudyRecord)]
    rows = database.execute(f"SELECT {', '.join(names)} FROM study").fetchall()
    if len(rows) != 1:
        raise DamageError(f"it holds {len(rows)} studies instead of one")
    record = study_record(dict(zip(names, rows[0], strict=True)))
    if record.schema != SCHEMA_VERSION:
        raise DamageError(f"its format is {shown(record.schema)}")
    if fingerprint(record.listing) != record.fingerprint:
        raise DamageError("what it lists of its space does not agree with its fingerprint")
    return record


def _read_rows(database: sqlite3.Connection) -> list[TrialRow]:
    names = [f.name for f in fields(TrialRow)]
    columns = ", ".join(f'"{n}"' for n in names)
    found = database.execute(f"SELECT {columns} FROM trial ORDER BY number")
    return [trial_row(dict(zip(names, row, strict=True)), number) for number, row in enumerate(found)]


def _compare(path: Path | None, stored: StudyRecord, wanted: StudyRecord) -> None:
    """Refuse a journal whose proposals would not go on as they began.

    Raises:
        StorageError: naming every difference.
    """
    found = []
    for name in ("seed", "optimizer", "solver"):
        then, now = getattr(stored, name), getattr(wanted, name)
        if then != (storable(now) if isinstance(now, str) else now):
            found.append(f"{name} was {then!r} and is {now!r} now")
    for what, then, now in (("setting", stored.settings, wanted.settings), ("option", stored.options, wanted.options)):
        then, now = then or {}, now or {}
        for key in sorted({*then, *now}):
            if key not in then or key not in now or then[key] != now[key]:
                found.append(
                    f"{what} {key} was {then.get(key, 'not given')!r} and is {now.get(key, 'not given')!r} now"
                )
    if stored.fingerprint != wanted.fingerprint:
        found += differences(stored.listing, wanted.listing)
    if not found:
        return
    shown = "; ".join(found[:6]) + (f"; and {len(found) - 6} more differences" if len(found) > 6 else "")
    upgrade = (
        f" It was written by mipcash {stored.version}, this is {__version__}." if stored.version != __version__ else ""
    )
    raise StorageError(
        f"{path} belongs to another study: {shown}.{upgrade} To resume it, use what it was started with; for a new "
        "study, give another storage or move this file aside"
    )


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
