"""Edits of a journal with recomputed digests, so that checks other than the digest have to find the damage."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

from mipcash.study.storage.checks import DIGEST, digest_of

TABLES = ("study", "trial", "evaluation")


def forge(path: Path | str, statement: str, values: tuple[Any, ...] = ()) -> None:
    """Execute a statement with the table constraints disabled, and recompute the digest of every row."""
    database = sqlite3.connect(path, isolation_level=None)
    try:
        database.execute("PRAGMA ignore_check_constraints = ON")
        database.execute(statement, values)
        for table in TABLES:
            # the statement may have dropped the table or inserted text that cannot be decoded
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
