"""Edits of a journal whose digests are made anew: what an edit breaks beside them is left to the other checks."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

from mipcash.study.storage.checks import DIGEST, digest_of

TABLES = ("study", "trial", "evaluation")


def forge(path: Path | str, statement: str, values: tuple[Any, ...] = ()) -> None:
    """Execute a statement, against the checks of the tables too, and give every row the digest of what it holds now."""
    database = sqlite3.connect(path, isolation_level=None)
    try:
        database.execute("PRAGMA ignore_check_constraints = ON")
        database.execute(statement, values)
        for table in TABLES:
            # the statement may have taken the table away, or put a text there that cannot be read
            with contextlib.suppress(sqlite3.Error):
                _digest_rows(database, table)
    finally:
        database.close()


def _digest_rows(database: sqlite3.Connection, table: str) -> None:
    found = database.execute(f"SELECT rowid, * FROM {table}")
    names = [name for name, *_ in found.description]
    for row in found.fetchall():
        columns = dict(zip(names, row, strict=True))
        place = columns.pop(names[0])
        columns = {n: v for n, v in columns.items() if n not in ("only", DIGEST)}
        columns = {"number": place, **columns} if table == "trial" else columns  # its key is the rowid
        database.execute(f"UPDATE {table} SET {DIGEST} = ? WHERE rowid = ?", (digest_of(columns), place))
