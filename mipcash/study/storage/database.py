"""A database with the tables, and the rows of one study in it. Subclasses implement a file and a server."""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from mipcash.errors import StorageError
from mipcash.study.storage.checks import DamageError, check_digest, named, study_record, trial_row, with_digest
from mipcash.study.storage.protocol import EvaluationRow, StudyRecord, TrialRow, UnreachableError
from mipcash.study.storage.tables import FIELDS, KEYS, REVISION, Tables
from mipcash.text import storable

LARGEST = 2**63 - 1
"""Largest integer of a database."""
NAN = "nan"
"""Stored in place of the value nan, which SQLite cannot hold."""

VALUES = {name: attrgetter(*names) for name, names in FIELDS.items()}


class Silence(NamedTuple):
    """Silence of a worker with a running attempt.

    Attributes:
        promised: seconds within which it promised its next heartbeat; None: no such worker is known.
        witnessed: True if a worker that is alive now had started before the silent worker's last heartbeat. Otherwise the run ended
            as a whole, which is no evidence that the trial killed its worker.
    """

    promised: float | None
    witnessed: bool


class Rows:
    """Rows of a study, inside a transaction.

    Args:
        cursor: of the driver.
        study: column -> value that selects the study, if the database holds several; else empty.
    """

    def __init__(self, cursor: Any, tables: Tables, study: Mapping[str, str]) -> None:
        self._cursor, self._tables, self._study = cursor, tables, study

    def execute(self, text: str, given: Mapping[str, Any] | None = None) -> list[Any]:
        """Execute a statement, and return the selected rows."""
        self._cursor.execute(text, self._study if given is None else given)
        return list(self._cursor.fetchall()) if self._cursor.description else []

    def run(self, statement: str, /, **given: Any) -> list[Any]:
        """Execute a statement of ``Tables.texts``."""
        return self.execute(self._tables.texts[statement], {**self._study, **given})

    def now(self) -> float:
        """Return seconds since the epoch, by a clock that all writers share."""
        return float(self.run("now", now=time.time())[0][0])

    # -- the study ----------------------------------------------------------------------------------------------------

    def add_study(self, record: StudyRecord, **columns: Any) -> None:
        """Add the row of a new study."""
        coded = coded_study({**asdict(record), "created": self.now()})
        self.run("insert study", **with_digest({**columns, **coded, REVISION: 0}))

    def record(self) -> StudyRecord:
        """Return the study as it is stored.

        Raises:
            DamageError: its row was not written by mipcash.
        """
        columns = self._columns()
        return study_record({name: columns[name] for name in FIELDS["study"]})

    def note(self, changes: Mapping[str, Any], revision: int) -> None:
        """Write some of the columns ``NOTED`` of the study."""
        self.run("update study", **with_digest({**self._columns(), **coded_study(changes), REVISION: revision}))

    def latest(self) -> tuple[int, int]:
        """Return the revisions of the trial that changed last, and of the study's own row."""
        found = self.run("latest")
        if not found:
            raise DamageError("the study was deleted")
        trial, study = found[0][0] or 0, found[0][1]
        if not (isinstance(trial, int) and isinstance(study, int)):  # a change beside the run, which no digest covers
            raise DamageError(f"the latest revisions are {trial!r} and {study!r}")
        return trial, study

    def _columns(self) -> dict[str, Any]:
        found = self._selected("study", "all")
        if len(found) != 1:
            raise DamageError(f"it holds {len(found)} studies instead of one")
        return found[0]

    # -- trials -------------------------------------------------------------------------------------------------------

    def trials(self, which: str = "all", **given: Any) -> list[tuple[TrialRow, int]]:
        """Return trials by number, checked, each with its revision.

        Args:
            which: ``all``, ``one`` (``number``), ``new`` (changed after the revision ``seen``) or ``running``.

        Raises:
            DamageError: a row was not written by mipcash.
        """
        reported: dict[Any, list[dict[str, Any]]] = {}
        evaluations = self._selected("evaluation", which, **given)
        with named("an evaluation"):
            for columns in evaluations:
                columns["output"] = decoded_name(columns["output"])
                columns["value"] = math.nan if columns["value"] == NAN else columns["value"]
                reported.setdefault(columns["trial"], []).append(columns)
        found = []
        for number, columns in enumerate(self._selected("trial", which, **given)):
            revision = columns.pop(REVISION)
            expected = number if which == "all" else columns["number"]
            found.append((trial_row(columns, reported.pop(expected, []), expected), revision))
        if reported:
            raise DamageError(f"it holds an evaluation of trial {next(iter(reported))!r}, which is not there")
        return found

    def insert(self, row: TrialRow, evaluations: Iterable[EvaluationRow], revision: int) -> None:
        """Add a trial whose number is free."""
        self.run("insert trial", **self._coded("trial", row, {REVISION: revision}))
        self._put(evaluations)

    def update(self, row: TrialRow, evaluations: Iterable[EvaluationRow], known: int, revision: int) -> bool:
        """Update a trial, and its changed or new evaluations. Return False if its revision is not ``known``."""
        self.run("update trial", **self._coded("trial", row, {REVISION: revision}), known=known)
        if self._cursor.rowcount != 1:
            return False
        self._put(evaluations)
        return True

    def _put(self, evaluations: Iterable[EvaluationRow]) -> None:
        for each in evaluations:
            value = NAN if each.value is not None and each.value != each.value and not self._study else each.value
            coded = {"output": coded_name(each.output), "value": value}
            self.run("put evaluation", **self._coded("evaluation", each, coded))

    def _coded(self, table: str, row: TrialRow | EvaluationRow, other: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row for writing, with some columns replaced or added."""
        return with_digest({**self._study, **dict(zip(FIELDS[table], VALUES[table](row), strict=True)), **other})

    def _selected(self, table: str, which: str, **given: Any) -> list[dict[str, Any]]:
        """Return rows of a table, compared with their digests, without the column of the study.

        Raises:
            DamageError: a row does not match its digest.
        """
        names, found = self._tables.names[table], []
        for row in self.run(f"{table} {which}", **given):
            columns = dict(zip(names, row, strict=True))
            check_digest(self._tables.prefix + table, KEYS[table], columns)
            for name in self._study:
                columns.pop(name, None)
            found.append(columns)
        return found

    # -- writers ------------------------------------------------------------------------------------------------------

    def silent(self, but: str) -> dict[str, Silence]:
        """Return the workers other than ``but`` that have a running attempt and missed their promised heartbeat."""
        at_work = {worker for (worker,) in self.run("at work")} - {but}
        if not at_work:
            return {}
        known = {name: times for name, *times in self.run("workers", now=time.time())}
        late = {name for name, times in known.items() if _is_late(*times)}
        found = {worker: Silence(None, False) for worker in at_work - {*known}}
        for worker in at_work & late:
            _, seen, promised, _ = known[worker]
            alive = (since for name, (since, *_) in known.items() if name not in late)
            found[worker] = Silence(promised, any(since <= seen for since in alive))
        return found

    def is_late(self, worker: str) -> bool:
        """Return True if a worker missed its own promised heartbeat: its machine stood still, or the clock leapt."""
        return any(_is_late(*times) for times in self._times(worker))

    def beat(self, worker: str, seconds: float) -> bool:
        """Write a heartbeat of a worker, which promises the next one within ``seconds``. Return True if this one is late."""
        known = self._times(worker)
        now = known[0][-1] if known else self.now()  # read once: the clock may leap at any instant
        self.run("put worker", name=worker, since=now, seen=now, promised=seconds)
        return any(_is_late(*times) for times in known)

    def _times(self, worker: str) -> list[list[float]]:
        """Return since when a worker is there, its latest heartbeat, the seconds it promised, and now; nothing if it is unknown."""
        return [times for name, *times in self.run("workers", now=time.time()) if name == worker]


def _is_late(since: float, seen: float, promised: float, now: float) -> bool:
    """Return True for a heartbeat that is older than promised, or in the future, from before the clock went back."""
    return not seen - promised <= now <= seen + promised


class Database:
    """Base class of the databases that hold a study.

    Attributes:
        path: path of the file; None for a server.
        title: name of the database in messages.
        tables: tables and statements in its SQL dialect.
        errors: exceptions of its driver.
        restore, another: advice in messages about damage, and about a database that holds another study.
    """

    path: Path | None = None
    title: str
    tables: Tables
    errors: tuple[type[Exception], ...]
    restore: str
    another: str

    def __init__(self) -> None:
        self.study: dict[str, str] = {}
        self.process = os.getpid()
        self._turn = threading.Lock()

    # -- methods that subclasses implement ----------------------------------------------------------------------------

    def make(self, record: StudyRecord) -> None:
        """Create the study if it does not exist.

        Raises:
            StorageError: the database is not accessible, or in use by another writer.
        """
        raise NotImplementedError

    def check(self, rows: Rows) -> None:
        """Check the database, except for its rows.

        Raises:
            StorageError: it is no database of mipcash, or of another format.
            DamageError: tables or pages were not written by mipcash.
        """
        raise NotImplementedError

    def settle(self) -> None:
        """Finish opening, after the study was found to be the right one."""

    def connect(self, write: bool) -> Any:
        """Return a connection of the driver."""
        raise NotImplementedError

    def release(self, connection: Any) -> None:
        """Release a connection."""

    def begin(self, rows: Rows, write: bool) -> None:
        """Begin a transaction."""
        raise NotImplementedError

    def unreachable(self, error: Exception) -> bool:
        """Return True if the database may be reached later."""
        return False

    def explanation(self, error: Exception) -> str:
        """Return the message for an error of the driver: database, cause and cure, without text that may contain a password."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the database; a second call has no effect."""
        raise NotImplementedError

    # -- common methods -----------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self, write: bool = True) -> Iterator[Rows]:
        """Run a transaction. A writing one starts after all earlier ones of the study have ended, and sees their changes.

        Raises:
            StorageError: the database cannot be used, is damaged, or was opened before this process was forked.
        """
        if os.getpid() != self.process:
            raise StorageError(
                f"{self.title} was opened by process {self.process}, from which this one was forked; open the study in each "
                "process, with a storage for several writers: mc.Study(..., storage='sqlite:///run.db')"
            )
        try:
            with self._turn:  # heartbeats come from another thread
                connection = self.connect(write)
                try:
                    rows = Rows(connection.cursor(), self.tables, self.study)
                    self.begin(rows, write)
                    yield rows
                    connection.commit()
                except BaseException:
                    with suppress(*self.errors):  # the connection is gone, and the transaction with it
                        connection.rollback()
                    raise
                finally:
                    self.release(connection)
        except Exception as error:
            if isinstance(error, (*self.errors, DamageError, UnicodeDecodeError)):
                raise self.storage_error(error) from None
            raise

    def storage_error(self, error: Exception) -> StorageError:
        """Convert an exception to a StorageError that names the database, the cause and the cure."""
        if isinstance(error, self.errors):
            return (UnreachableError if self.unreachable(error) else StorageError)(self.explanation(error))
        # SQLite quotes what it cannot read, even if it is no text
        return StorageError(f"{self.title} is damaged or was edited: {error}; {self.restore}")

    def read(self) -> tuple[StudyRecord, list[TrialRow]]:
        """Return the study and its trials, as of one moment.

        Raises:
            StorageError: there is none, or it cannot be read.
        """
        with self.transaction(write=False) as rows:
            self.check(rows)
            return rows.record(), [row for row, _ in rows.trials()]


def coded_study(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns of a study in the form that a database holds."""
    coded = dict(columns)
    for name in {"listing", "settings", "limits", "options", "objective", "declaration"} & {*columns}:
        if columns[name] is not None or name == "settings":
            coded[name] = json.dumps(columns[name], default=dict)
    for name in {"space", "optimizer", "solver", "model"} & {*columns}:
        coded[name] = None if columns[name] is None else storable(columns[name])
    if coded.get("budget") is not None:
        coded["budget"] = min(int(coded["budget"]), LARGEST)
    if "seed" in coded:
        coded["seed"] = str(coded["seed"])  # stored as text, since it may have more than 64 bits
    return coded


def coded_name(name: str) -> str:
    """Return the name of an output as it is stored: as JSON if UTF-8 cannot hold it or it starts with a quotation mark."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return json.dumps(name)
    return json.dumps(name) if name.startswith('"') or "\0" in name else name


def decoded_name(text: str) -> str:
    """Return the name of an output from its stored form."""
    name: str = json.loads(text) if text.startswith('"') else text
    return name
