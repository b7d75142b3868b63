"""Journals of format 1, in which a trial held its one outcome: how they are read, and made into the present format.

Its solver ``highs`` was enumeration with HiGHS behind it, which goes by the name ``auto`` now; ``highs enumeration=off`` was HiGHS.

An outcome becomes the evaluations of the first attempt. A trial without one may have been given back or killed, which format 1
does not tell apart: its attempt counts as returned, and costs no retry.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mipcash.optimizers.outcome import DONE, FAILED, LOSS, PENDING, Output
from mipcash.study.storage.base import RETURNED, RUNNING, EvaluationRow, StudyRecord, TrialRow
from mipcash.study.storage.checks import DamageError, number, parse, proposal_columns, text, without_odd_loss
from mipcash.study.storage.sqlite.schema import select
from mipcash.study.text import shown

SCHEMA = 1

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

STUDY = ["id", "space", "fingerprint", "listing", "seed", "optimizer", "solver", "settings", "model", "options"]
STUDY += ["budget", "timeout", "stopped", "schema", "version", "created"]
PROPOSAL = ["number", "config", "exact", "proof", "origin", "seconds", "state"]
TRIAL = [*PROPOSAL, "status", "loss", "values", "message", "started", "finished", "duration"]


def read_trials(database: sqlite3.Connection) -> list[TrialRow]:
    """All trials by number, checked, as the present format has them.

    Raises:
        DamageError: a row is not as mipcash wrote it.
    """
    return [_trial(columns, number) for number, columns in enumerate(select(database, "trial", TRIAL, "number"))]


def in_present_words(record: StudyRecord) -> StudyRecord:
    """The study as the present format would hold it, but for its format."""
    name, *options = record.solver.split()
    if name != "highs":
        return record
    alone = "enumeration=off" in options
    options = [_in_present_words(option) for option in options if not option.startswith("enumeration=")]
    given = ["highs", *options] if alone else ["auto", *(["solver=highs", *options] if options else [])]
    return replace(record, solver=" ".join(given))


def _in_present_words(option: str) -> str:
    """An option of HiGHS' backend, two of which had other names."""
    key, equals, value = option.partition("=")
    return {"dead_ends": "dominated_levels", "row_products": "rlt_rows"}.get(key, key) + equals + value


def _trial(columns: Mapping[str, Any], expected: int) -> TrialRow:
    where = proposal_columns(columns, expected)
    text(columns["message"], f"message {where}")
    values = parse(columns["values"], f"values {where}")
    for key, value in values.items():
        number(value, f"values {key!r} {where}", finite=False)
    number(columns["started"], f"start {where}")
    for name in ("finished", "duration", "loss"):
        if columns[name] is not None:
            number(columns[name], f"{name} {where}")
    _check_status(columns, where)
    pending = columns["status"] == RUNNING
    row = TrialRow(
        **{name: columns[name] for name in PROPOSAL},
        status=PENDING if pending else columns["status"],
        outputs="[]",
        trace="{}",
        stop="",
        proposed=columns["started"],
        finished=columns["finished"],
        duration=columns["duration"],
        evaluations=_evaluations(columns, values, pending),
    )
    return without_odd_loss(row)


def _evaluations(columns: Mapping[str, Any], values: Mapping[str, float], pending: bool) -> tuple[EvaluationRow, ...]:
    loss = Output(FAILED, message=columns["message"]) if columns["loss"] is None else Output.of(columns["loss"])
    outputs = {LOSS: loss, **{name: Output.of(float(value)) for name, value in values.items()}}
    if pending:
        outputs = {LOSS: Output()}
    begin, end = columns["started"], columns["finished"]
    return tuple(
        EvaluationRow(
            columns["number"],
            name,
            1,
            "",
            RETURNED if pending else output.status,
            output.value,
            output.message,
            begin,
            begin if pending else end,
            columns["duration"],
        )
        for name, output in outputs.items()
    )


def _check_status(columns: Mapping[str, Any], where: str) -> None:
    status, loss = columns["status"], columns["loss"]
    if status not in (RUNNING, DONE, FAILED):
        raise DamageError(f"the status {where} is {shown(status)}")
    if (status == DONE) != (loss is not None):
        raise DamageError(f"the status {where} is {status!r} and its loss is {shown(loss)}")
    told = (columns["finished"] is not None, columns["duration"] is not None)
    if told != (status != RUNNING, status != RUNNING):
        raise DamageError(f"the status {where} is {status!r}, which the time of its end contradicts")
