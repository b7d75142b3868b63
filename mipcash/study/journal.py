"""The journal: a SQLite file (or memory) that holds a study and its trials.

It is written before each evaluation (configuration, proof, optimizer state) and after it (outcome), each time in a
committed transaction that is synced to the disk, so that a killed process loses nothing but the evaluation it was in.
The journal knows text and numbers only; :mod:`mipcash.study.encoding` knows spaces.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from mipcash import __version__
from mipcash.errors import StorageError
from mipcash.study.fingerprint import differences
from mipcash.study.lock import WriterLock

SCHEMA_VERSION = 1
APPLICATION_ID = 0x6D697063
"""Stamped into the SQLite header ("mipc"), so that other databases are told apart."""

MEMORY = ":memory:"

_TABLES = """
CREATE TABLE study (
    only INTEGER PRIMARY KEY DEFAULT 1 CHECK (only = 1),
    id TEXT NOT NULL, schema INTEGER NOT NULL, version TEXT NOT NULL, created REAL NOT NULL,
    space TEXT NOT NULL, fingerprint TEXT NOT NULL, listing TEXT NOT NULL,
    seed TEXT NOT NULL, optimizer TEXT NOT NULL, solver TEXT NOT NULL, settings TEXT NOT NULL,
    model TEXT, options TEXT NOT NULL, budget INTEGER, timeout REAL, stopped TEXT NOT NULL
);
CREATE TABLE trial (
    number INTEGER PRIMARY KEY,
    status TEXT NOT NULL CHECK (status IN ('running', 'done', 'failed')),
    config TEXT NOT NULL, exact TEXT NOT NULL, proof TEXT, origin TEXT NOT NULL, seconds TEXT NOT NULL,
    state TEXT NOT NULL, loss REAL, "values" TEXT NOT NULL, message TEXT NOT NULL,
    started REAL NOT NULL, finished REAL, duration REAL
);
"""


@dataclass(frozen=True)
class StudyRecord:
    """The row of a study.

    Attributes:
        id: random, the same for the life of a journal.
        space, fingerprint, listing: the space's name and what it declares; see :mod:`mipcash.study.fingerprint`.
        seed, optimizer, solver, settings: what the proposals depend on besides the space and the outcomes.
        model, options: what ``mipcash run`` loaded; None for a study of a script.
        budget, timeout: of the latest run; None where the loop is the caller's.
        stopped: why the latest run ended; empty while it goes on.
        schema, version, created: of the journal, of mipcash, in seconds since the epoch.
    """

    id: str
    space: str
    fingerprint: str
    listing: Mapping[str, str]
    seed: int
    optimizer: str
    solver: str
    settings: Mapping[str, Any] | None = None
    model: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    budget: int | None = None
    timeout: float | None = None
    stopped: str = ""
    schema: int = SCHEMA_VERSION
    version: str = __version__
    created: float = 0.0


@dataclass(frozen=True)
class TrialRow:
    """The row of a trial. ``exact`` and ``proof`` decode through the space; ``config`` is JSON for people."""

    number: int
    status: str
    config: str
    exact: str
    proof: str | None
    origin: str
    seconds: str
    state: str
    loss: float | None
    values: str
    message: str
    started: float
    finished: float | None
    duration: float | None


class Journal:
    """A journal open for writing.

    Args:
        storage: the file; None keeps the journal in memory.
        record: the study that wants to write. A file that exists must belong to it.

    Raises:
        StorageError: the folder does not exist, the file is no journal or is damaged, it belongs to another study, or
            another writer has it open.
    """

    def __init__(self, storage: str | os.PathLike[str] | None, record: StudyRecord) -> None:
        in_memory = storage is None or str(storage) == MEMORY
        self.path = None if in_memory else Path(os.fspath(storage)).expanduser()  # type: ignore[arg-type]
        self._lock: WriterLock | None = None
        if self.path is not None:
            _check_folder(self.path)
            self._lock = WriterLock(self.path)
        try:
            with _explain(self.path):
                self._database = _connect(MEMORY if self.path is None else str(self.path))
                self.record = self._open(record)
        except BaseException:
            self.close()
            raise

    def rows(self) -> list[TrialRow]:
        """All trials by number."""
        with _explain(self.path):
            return _read_rows(self._database)

    def insert(self, row: TrialRow) -> None:
        """Write a trial before its evaluation."""
        names = [f.name for f in fields(TrialRow)]
        columns = ", ".join(f'"{n}"' for n in names)
        marks = ", ".join("?" * len(names))
        with self._transaction():
            self._database.execute(f"INSERT INTO trial ({columns}) VALUES ({marks})", [getattr(row, n) for n in names])

    def finish(
        self, number: int, status: str, loss: float | None, values: str, message: str, finished: float, duration: float
    ) -> None:
        """Write a trial's outcome after its evaluation."""
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
            with self._transaction():
                _create(self._database, record)
            return record
        stored = _read_record(self._database, self.path)
        _compare(self.path, stored, record)
        return stored

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with _explain(self.path):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")


def read_journal(path: str | os.PathLike[str]) -> tuple[StudyRecord, list[TrialRow]]:
    """The study and its trials, without locking: a run that is going on may be looked at.

    Raises:
        StorageError: there is no such file, it is no journal, or it is damaged.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise StorageError(f"{file} does not exist; `mipcash run MODEL` writes journals to runs/ unless told otherwise")
    with _explain(file):
        # Not mode=ro: a run killed inside a write leaves a rollback file, and the first reader has to apply it.
        database = _connect(f"{file.absolute().as_uri()}?mode=rw", uri=True)
        try:
            if _is_new(database):
                raise StorageError(f"{file} is empty: the run that made it was stopped before it wrote anything")
            return _read_record(database, file), _read_rows(database)
        finally:
            database.close()


def _connect(name: str, uri: bool = False) -> sqlite3.Connection:
    """Autocommit (transactions are written out), used by one thread at a time, waiting 30 s for readers to finish."""
    return sqlite3.connect(name, timeout=30, isolation_level=None, check_same_thread=False, uri=uri)


def _check_folder(path: Path) -> None:
    if path.is_dir():
        raise StorageError(f"{path} is a folder; give a file for the journal, such as {path / 'run.db'}")
    if not path.parent.is_dir():
        raise StorageError(
            f"the folder {path.parent} of journal {path.name!r} does not exist; create it (mkdir -p {path.parent})"
        )


def _is_new(database: sqlite3.Connection) -> bool:
    """Whether the file is empty (a run may be killed before its first transaction) and not some other database."""
    application = database.execute("PRAGMA application_id").fetchone()[0]
    tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return bool(application == 0 and tables == 0)


def _create(database: sqlite3.Connection, record: StudyRecord) -> None:
    for statement in filter(str.strip, _TABLES.split(";")):
        database.execute(statement)
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    columns = asdict(record)
    for name in ("listing", "settings", "options"):
        columns[name] = json.dumps(columns[name])
    columns["seed"] = str(record.seed)  # a seed may be larger than SQLite's 64-bit integers
    names = ", ".join(columns)
    database.execute(f"INSERT INTO study ({names}) VALUES ({', '.join('?' * len(columns))})", list(columns.values()))


def _read_record(database: sqlite3.Connection, path: Path | None) -> StudyRecord:
    if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StorageError(f"{path} is a SQLite database but not a journal of mipcash; give another storage")
    schema = database.execute("SELECT schema FROM study").fetchone()[0]
    if schema != SCHEMA_VERSION:
        raise StorageError(
            f"{path} has journal format {schema} and this mipcash ({__version__}) reads format {SCHEMA_VERSION}; "
            "use the version that wrote it, or start a new journal"
        )
    names = [f.name for f in fields(StudyRecord)]
    row = dict(zip(names, database.execute(f"SELECT {', '.join(names)} FROM study").fetchone(), strict=True))
    for name in ("listing", "settings", "options"):
        row[name] = json.loads(row[name])
    return StudyRecord(**{**row, "seed": int(row["seed"])})


def _read_rows(database: sqlite3.Connection) -> list[TrialRow]:
    columns = ", ".join(f'"{f.name}"' for f in fields(TrialRow))
    return [TrialRow(*row) for row in database.execute(f"SELECT {columns} FROM trial ORDER BY number")]


def _compare(path: Path | None, stored: StudyRecord, wanted: StudyRecord) -> None:
    """Refuse a journal whose proposals would not go on as they began.

    Raises:
        StorageError: naming every difference.
    """
    found = []
    for name in ("seed", "optimizer", "solver"):
        then, now = getattr(stored, name), getattr(wanted, name)
        if then != now:
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
def _explain(path: Path | None) -> Iterator[None]:
    """Turn SQLite's errors into ones that name the file, the cause and the cure."""
    try:
        yield
    except sqlite3.OperationalError as error:
        cure = "check permissions, space on the disk, and whether a program keeps it open"
        raise StorageError(f"the journal {path} cannot be used: {error}; {cure}") from error
    except (sqlite3.ProgrammingError, sqlite3.InterfaceError) as error:
        raise StorageError(f"the journal {path} is closed ({error}); open the study again") from error
    except (sqlite3.DatabaseError, json.JSONDecodeError) as error:
        raise StorageError(
            f"{path} is not a journal of mipcash, or is damaged ({error}); move it aside or give another storage"
        ) from error
