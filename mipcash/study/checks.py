"""What a journal must hold: every row is checked when it is read, so that damage is told and never computed with.

A journal may be cut, flipped, edited by hand or made up. What is wrong with it is raised as :class:`DamageError`, which says
what; :mod:`mipcash.study.journal` adds the file and the cure.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mipcash import __version__
from mipcash.errors import StorageError
from mipcash.optimizers.outcome import DONE, FAILED, PENDING
from mipcash.study.reading import loss_problem
from mipcash.study.text import shown

SCHEMA_VERSION = 1
NAME_LIMIT = 10_000
"""Characters of a name, which messages repeat."""
STORED_PENDING = "running"
"""How format 1 writes that a trial is pending."""
LARGEST = 2**63 - 1
"""The largest integer of SQLite."""

TABLES = {
    "study": """CREATE TABLE study (
    only INTEGER PRIMARY KEY DEFAULT 1 CHECK (only = 1),
    id TEXT NOT NULL, schema INTEGER NOT NULL, version TEXT NOT NULL, created REAL NOT NULL,
    space TEXT NOT NULL, fingerprint TEXT NOT NULL, listing TEXT NOT NULL,
    seed TEXT NOT NULL, optimizer TEXT NOT NULL, solver TEXT NOT NULL, settings TEXT NOT NULL,
    model TEXT, options TEXT NOT NULL, budget INTEGER, timeout REAL, stopped TEXT NOT NULL
)""",
    "trial": """CREATE TABLE trial (
    number INTEGER PRIMARY KEY,
    status TEXT NOT NULL CHECK (status IN ('running', 'done', 'failed')),
    config TEXT NOT NULL, exact TEXT NOT NULL, proof TEXT, origin TEXT NOT NULL, seconds TEXT NOT NULL,
    state TEXT NOT NULL, loss REAL, "values" TEXT NOT NULL, message TEXT NOT NULL,
    started REAL NOT NULL, finished REAL, duration REAL
)""",
}


class DamageError(StorageError):
    """Something in a journal that mipcash did not write."""


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
            raise DamageError(f"its table {name!r} has other columns or checks than those of format {SCHEMA_VERSION}")
    if known:
        raise DamageError(f"the table {next(iter(known))!r} is missing")


def study_record(row: Mapping[str, Any]) -> StudyRecord:
    """The row of the study, checked.

    Raises:
        DamageError: a column that does not hold what it must.
    """
    columns = dict(row)
    for name in ("id", "space", "fingerprint", "optimizer", "solver", "stopped", "version"):
        if len(_text(columns[name], name)) > NAME_LIMIT:
            raise DamageError(f"the {name} is {shown(columns[name])} and no name")
    if not str(columns["seed"]).isdecimal() or len(str(columns["seed"])) > 4000:
        raise DamageError(f"the seed is {shown(columns['seed'])} and no whole number")
    columns["seed"] = int(columns["seed"])
    for name in ("listing", "options"):
        columns[name] = parse(columns[name], name)
        for key, text in columns[name].items():
            _text(text, f"{name} {key!r}")
    columns["settings"] = parse(columns["settings"], "settings", (dict, type(None)))
    if columns["model"] is not None:
        _text(columns["model"], "model")
    if columns["budget"] is not None and not (type(columns["budget"]) is int and columns["budget"] >= 1):
        raise DamageError(f"the budget is {shown(columns['budget'])} and no number of evaluations")
    if columns["timeout"] is not None and not _number(columns["timeout"], "timeout", finite=False) > 0:
        raise DamageError(f"the timeout is {shown(columns['timeout'])} and no number of seconds")
    _number(columns["created"], "time of creation")
    return StudyRecord(**columns)


def trial_row(columns: Mapping[str, Any], number: int) -> TrialRow:
    """The row of trial ``number``, checked as far as it can be without the space.

    A loss that an earlier version recorded and that is beyond what a loss may be now is read as a failure.

    Raises:
        DamageError: a gap in the numbers, a column that does not hold what it must, a status that the others contradict.
    """
    if columns["number"] != number:
        raise DamageError(f"trial {shown(columns['number'])} stands where trial {number} belongs")
    where = f"of trial {number}"
    for name in ("origin", "message", "status"):
        _text(columns[name], f"{name} {where}")
    for name in ("config", "exact", "state"):
        parse(columns[name], f"{name} {where}")
    if columns["proof"] is not None:
        parse(columns["proof"], f"proof {where}")
    for name in ("seconds", "values"):
        for key, value in parse(columns[name], f"{name} {where}").items():
            _number(value, f"{name} {key!r} {where}", finite=name == "seconds")
    _number(columns["started"], f"start {where}")
    for name in ("finished", "duration", "loss"):
        if columns[name] is not None:
            _number(columns[name], f"{name} {where}")
    _check_status(columns, where)
    row = TrialRow(**{**columns, "status": PENDING} if columns["status"] == STORED_PENDING else columns)
    problem = loss_problem(row.loss) if row.loss is not None else ""
    return TrialRow(**{**columns, "status": FAILED, "loss": None, "message": problem}) if problem else row


def _check_status(columns: Mapping[str, Any], where: str) -> None:
    status, loss = columns["status"], columns["loss"]
    if status not in (STORED_PENDING, DONE, FAILED):
        raise DamageError(f"the status {where} is {shown(status)}")
    if (status == DONE) != (loss is not None):
        raise DamageError(f"the status {where} is {status!r} and its loss is {shown(loss)}")
    told = (columns["finished"] is not None, columns["duration"] is not None)
    if told != (status != STORED_PENDING, status != STORED_PENDING):
        raise DamageError(f"the status {where} is {status!r}, which the time of its end contradicts")


def parse(text: Any, what: str, kinds: type | tuple[type, ...] = dict) -> Any:
    """JSON of a kind.

    Raises:
        DamageError: it is none, is nested beyond reading, names something twice, or is of another kind.
    """
    try:
        value = json.loads(_text(text, what), object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise DamageError(f"the {what} is not JSON that mipcash wrote ({shown(error)})") from error
    if not isinstance(value, kinds):
        raise DamageError(f"the {what} is {shown(value)}, which is JSON of another kind")
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name occurs twice")
    return made


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise DamageError(f"the {what} is {shown(value)} and no text")
    return value


def _number(value: Any, what: str, finite: bool = True) -> float:
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            number = float(value)
            if math.isfinite(number) or not finite:
                return number
    except OverflowError:
        pass
    raise DamageError(f"the {what} is {shown(value)} and no {'finite ' if finite else ''}number")
