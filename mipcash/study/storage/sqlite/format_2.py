"""Journals of format 2, in which what an objective said beside its numbers was lost: how they are read, and what their tables were.

The columns are those of format 3; an evaluation could not be a text yet.
"""

from __future__ import annotations

from mipcash.study.storage.base import StudyRecord
from mipcash.study.storage.sqlite import format_3, schema

SCHEMA = 2

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
    status TEXT NOT NULL CHECK (status IN ('running', 'present', 'failed', 'lost', 'returned')),
    value REAL, message TEXT NOT NULL, started REAL NOT NULL, finished REAL, cost REAL,
    PRIMARY KEY (trial, attempt, output)
)""",
}

STUDY = schema.STUDY
read_trials = format_3.read_trials


def in_present_words(record: StudyRecord) -> StudyRecord:
    """The study as the present format would hold it: as it is."""
    return record
