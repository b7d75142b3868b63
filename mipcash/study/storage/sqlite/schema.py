"""The tables of a journal, and how rows are written in them and read.

SQLite has no nan: a value that is nan is the text ``nan``. Names of outputs that UTF-8 cannot hold, or that begin with a
quotation mark, are written as JSON.
"""

from __future__ import annotations

import itertools
import json
import math
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from mipcash.study.storage.checks import DIGEST, DamageError, trial_row, with_digest, without_digest
from mipcash.study.storage.protocol import FORMAT, RUNNING, EvaluationRow, StudyRecord, TrialRow
from mipcash.study.text import storable

APPLICATION_ID = 0x6D697063
"""Stamped into the SQLite header ("mipc"), so that other databases are told apart."""

NAN = "nan"

LARGEST = 2**63 - 1
"""The largest integer of a database."""

TABLES = {
    "study": """CREATE TABLE study (
    only INTEGER PRIMARY KEY DEFAULT 1 CHECK (only = 1),
    id TEXT NOT NULL, schema INTEGER NOT NULL, version TEXT NOT NULL, created REAL NOT NULL,
    space TEXT NOT NULL, fingerprint TEXT NOT NULL, listing TEXT NOT NULL,
    seed TEXT NOT NULL, optimizer TEXT NOT NULL, solver TEXT NOT NULL, settings TEXT NOT NULL, limits TEXT NOT NULL,
    model TEXT, options TEXT NOT NULL, budget INTEGER, timeout REAL, stopped TEXT NOT NULL, recommended INTEGER,
    objective TEXT, digest TEXT NOT NULL
)""",
    "trial": """CREATE TABLE trial (
    number INTEGER PRIMARY KEY,
    status TEXT NOT NULL CHECK (status IN ('pending', 'done', 'failed')),
    config TEXT NOT NULL, exact TEXT NOT NULL, proof TEXT, origin TEXT NOT NULL, seconds TEXT NOT NULL,
    state TEXT NOT NULL, outputs TEXT NOT NULL, trace TEXT NOT NULL, stop TEXT NOT NULL,
    proposed REAL NOT NULL, finished REAL, duration REAL,
    digest TEXT NOT NULL
)""",
    "evaluation": """CREATE TABLE evaluation (
    trial INTEGER NOT NULL REFERENCES trial (number), output TEXT NOT NULL, attempt INTEGER NOT NULL,
    worker TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('running', 'present', 'failed', 'text', 'lost', 'returned')),
    value REAL, message TEXT NOT NULL, started REAL NOT NULL, finished REAL, cost REAL,
    folds TEXT NOT NULL, variance REAL, digest TEXT NOT NULL,
    PRIMARY KEY (trial, attempt, output)
)""",
}

STUDY = [f.name for f in fields(StudyRecord)]
TRIAL = [f.name for f in fields(TrialRow) if f.name != "evaluations"]
EVALUATION = [f.name for f in fields(EvaluationRow)]
KEYS = {"study": ("id",), "trial": ("number",), "evaluation": ("trial", "attempt", "output")}
UPSERT = f"ON CONFLICT ({', '.join(KEYS['evaluation'])}) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in (*EVALUATION, DIGEST) if name not in KEYS["evaluation"]
)
"""Unlike REPLACE it leaves a row in its place, so that outputs keep their order."""


def check_tables(database: sqlite3.Connection) -> None:
    """The tables are the ones that mipcash makes, and nothing else acts on them.

    Raises:
        DamageError: one is missing or another, a view or a trigger is there.
    """
    known = {name: " ".join(text.split()) for name, text in TABLES.items()}
    for kind, name, text in database.execute("SELECT type, name, sql FROM sqlite_master"):
        if kind in ("trigger", "view"):
            raise DamageError(f"it has a {kind} {name!r}, which a journal never has")
        if kind == "table" and name in known and " ".join(str(text).split()) != known.pop(name):
            raise DamageError(f"its table {name!r} has other columns or checks than those of format {FORMAT}")
    if known:
        raise DamageError(f"the table {next(iter(known))!r} is missing")


def create(database: sqlite3.Connection, record: StudyRecord) -> None:
    """The tables of a new journal, and its study."""
    for statement in TABLES.values():
        database.execute(statement)
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    _insert(database, "study", STUDY, [coded_study(asdict(record))])


def note(database: sqlite3.Connection, changes: Mapping[str, Any]) -> None:
    """Write some columns of the study."""
    (columns,) = select(database, "study", STUDY, "id")
    changed = with_digest({**columns, **coded_study(changes)})
    names = [*changes, DIGEST]
    database.execute(f"UPDATE study SET {', '.join(f'{n} = ?' for n in names)}", [changed[n] for n in names])


def coded_study(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns of a study as a database can hold them."""
    coded = dict(columns)
    for name in ("listing", "settings", "limits", "options"):
        if name in coded:
            coded[name] = json.dumps(coded[name] if name == "settings" else dict(coded[name]))
    if coded.get("objective") is not None:
        coded["objective"] = json.dumps(dict(coded["objective"]))
    for name in ("space", "optimizer", "solver", "model"):
        if coded.get(name) is not None:
            coded[name] = storable(coded[name])
    if coded.get("budget") is not None:
        coded["budget"] = min(int(coded["budget"]), LARGEST)
    if "seed" in coded:
        coded["seed"] = str(coded["seed"])  # it may be larger than 64 bits
    return coded


def running(database: sqlite3.Connection) -> list[int]:
    """Return the numbers of trials with an attempt that runs."""
    found = database.execute("SELECT DISTINCT trial FROM evaluation WHERE status = ? ORDER BY trial", (RUNNING,))
    return [number for (number,) in found]


def insert_trial(database: sqlite3.Connection, row: TrialRow) -> None:
    _insert(database, "trial", TRIAL, [vars(row)])
    insert_evaluations(database, row.evaluations)


def insert_evaluations(database: sqlite3.Connection, rows: Iterable[EvaluationRow], replace: bool = False) -> None:
    """Add evaluations; ``replace``: in the place of what was known of the same attempts."""
    coded = [{**vars(e), "output": coded_name(e.output), "value": _coded_value(e.value)} for e in rows]
    _insert(database, "evaluation", EVALUATION, coded, UPSERT if replace else "")


def update_trial(database: sqlite3.Connection, row: TrialRow, evaluations: Iterable[EvaluationRow]) -> None:
    """What became of a trial: its own columns that change, and the evaluations that changed or joined it."""
    digest = with_digest({name: getattr(row, name) for name in TRIAL})[DIGEST]
    database.execute(
        "UPDATE trial SET status = ?, finished = ?, duration = ?, digest = ? WHERE number = ?",
        (row.status, row.finished, row.duration, digest, row.number),
    )
    insert_evaluations(database, evaluations, replace=True)


def read_trials(database: sqlite3.Connection, numbers: Collection[int] | None = None) -> list[TrialRow]:
    """Return trials by number, checked.

    Args:
        numbers: of the trials to read; None: all.

    Raises:
        DamageError: a row is not as mipcash writes it.
    """
    told: dict[Any, list[Mapping[str, Any]]] = {}
    some = None if numbers is None else sorted(numbers)
    for columns in select(database, "evaluation", EVALUATION, "trial, attempt, rowid", "trial", some):
        value = math.nan if columns["value"] == NAN else columns["value"]
        coded = {**columns, "output": decoded_name(columns["output"]), "value": value}
        told.setdefault(columns["trial"], []).append(coded)
    found = select(database, "trial", TRIAL, "number", "number", some)
    expected: Iterable[int] = itertools.count() if some is None else some
    rows = [trial_row(columns, told.pop(k, []), k) for columns, k in zip(found, expected, strict=False)]
    if told:
        raise DamageError(f"it holds an evaluation of trial {next(iter(told))!r}, which is not there")
    return rows


def select(
    database: sqlite3.Connection,
    table: str,
    names: Sequence[str],
    order: str,
    key: str = "",
    among: Sequence[int] | None = None,
) -> Iterable[dict[str, Any]]:
    """Return the rows of a table as mappings, compared with their digests.

    Args:
        key, among: the column and the numbers that select rows; None: all rows.

    Raises:
        DamageError: a row does not match its digest.
    """
    names = [*names, DIGEST]
    columns = ", ".join(f'"{n}"' for n in names)
    where = "" if among is None else f" WHERE {key} IN (SELECT value FROM json_each(?))"
    given = () if among is None else (json.dumps(among),)
    for row in database.execute(f"SELECT {columns} FROM {table}{where} ORDER BY {order}", given):
        yield without_digest(table, KEYS[table], dict(zip(names, row, strict=True)))


def coded_name(name: str) -> str:
    """The name of an output as it is stored."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return json.dumps(name)
    return json.dumps(name) if name.startswith('"') or "\0" in name else name


def decoded_name(text: Any) -> Any:
    """The name of an output that is stored so.

    Raises:
        DamageError: it is none that :func:`coded_name` gives.
    """
    if not isinstance(text, str) or not text.startswith('"'):
        return text
    try:
        name = json.loads(text)
    except (ValueError, RecursionError):
        name = None
    if not isinstance(name, str) or coded_name(name) != text:
        raise DamageError(f"it holds an evaluation of the output {text!r}, which mipcash did not write")
    return name


def _coded_value(value: float | None) -> float | str | None:
    return NAN if value is not None and math.isnan(value) else value


def _insert(
    database: sqlite3.Connection,
    table: str,
    names: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    conflict: str = "",
) -> None:
    digested = [with_digest({n: row[n] for n in names}) for row in rows]
    columns, marks = ", ".join(f'"{n}"' for n in (*names, DIGEST)), ", ".join("?" * (len(names) + 1))
    database.executemany(
        f"INSERT INTO {table} ({columns}) VALUES ({marks}) {conflict}", [list(row.values()) for row in digested]
    )
