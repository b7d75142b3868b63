"""Journals of format 3, in which an evaluation was one number: how they are read, and what their tables were.

Its tables are those of the present format, but for the partial results of an evaluation and the variance of an estimate.
"""

from __future__ import annotations

import sqlite3

from mipcash.study.storage.base import StudyRecord, TrialRow
from mipcash.study.storage.sqlite import schema

SCHEMA = 3

TABLES = {
    "study": """CREATE TABLE study (
    only INTEGER PRIMARY KEY DEFAULT 1 CHECK (only = 1),
    id TEXT NOT NULL, schema INTEGER NOT NULL, version TEXT NOT NULL, created REAL NOT NULL,
    space TEXT NOT NULL, fingerprint TEXT NOT NULL, listing TEXT NOT NULL,
    seed TEXT NOT NULL, optimizer TEXT NOT NULL, solver TEXT NOT NULL, settings TEXT NOT NULL, limits TEXT NOT NULL,
    model TEXT, options TEXT NOT NULL, budget INTEGER, timeout REAL, stopped TEXT NOT NULL, recommended INTEGER
)""",
    "trial": """CREATE TABLE trial (
    number INTEGER PRIMARY KEY,
    status TEXT NOT NULL CHECK (status IN ('pending', 'done', 'failed')),
    config TEXT NOT NULL, exact TEXT NOT NULL, proof TEXT, origin TEXT NOT NULL, seconds TEXT NOT NULL,
    state TEXT NOT NULL, outputs TEXT NOT NULL, trace TEXT NOT NULL, stop TEXT NOT NULL,
    proposed REAL NOT NULL, finished REAL, duration REAL
)""",
    "evaluation": """CREATE TABLE evaluation (
    trial INTEGER NOT NULL REFERENCES trial (number), output TEXT NOT NULL, attempt INTEGER NOT NULL,
    worker TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('running', 'present', 'failed', 'text', 'lost', 'returned')),
    value REAL, message TEXT NOT NULL, started REAL NOT NULL, finished REAL, cost REAL,
    PRIMARY KEY (trial, attempt, output)
)""",
}

STUDY = schema.STUDY
EVALUATION = ["trial", "output", "attempt", "worker", "status", "value", "message", "started", "finished", "cost"]


def read_trials(database: sqlite3.Connection) -> list[TrialRow]:
    """All trials by number, checked, as the present format has them.

    Raises:
        DamageError: a row is not as mipcash wrote it.
    """
    return schema.read_trials(database, EVALUATION)


def in_present_words(record: StudyRecord) -> StudyRecord:
    """The study as the present format would hold it: as it is."""
    return record
