"""Checks of every row that is read from a storage, so that damage is reported and never enters a computation.

A journal may be truncated, corrupted or edited by hand. Every row has a digest of its columns, which is compared before anything in
the row is decoded. Damage raises ``DamageError`` with a description; the reader of the file adds its name and the cure. Whoever
forges the digests too can write any result into a journal; what cannot be decoded then is damage, and a value of another kind may
fail anywhere.
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mipcash import __version__
from mipcash.errors import StorageError
from mipcash.optimizers.outcome import PENDING
from mipcash.study.records.limits import read_limits
from mipcash.study.storage.protocol import (
    FORMAT,
    EvaluationRow,
    StudyRecord,
    TrialRow,
    asked_for,
)
from mipcash.text import one_line, shown

MAGIC = b"SQLite format 3\0"
"""First bytes of a SQLite file."""

DIGEST = "digest"
"""Column of every table of trials, evaluations and studies: ``digest_of`` the other columns of its row."""


class DamageError(StorageError):
    """Raised for content of a storage that mipcash did not write."""


def digest_of(columns: Mapping[str, Any]) -> str:
    """Return the digest of a row: blake2b over its values sorted by column name, in ASCII, as a database returns them."""
    values = [v if type(v := columns[n]) is str or v is None else _as_stored(v) for n in sorted(columns)]
    return hashlib.blake2b(ascii(values).encode(), digest_size=8).hexdigest()


def _as_stored(value: Any) -> Any:
    """Return a value of a type that subclasses of it share; an integer as a float, and -0.0 as 0.0, as SQLite returns them."""
    if isinstance(value, float) or (isinstance(value, int) and float(value) == value):
        return float(value) + 0.0
    return str(value) if isinstance(value, str) else value


def with_digest(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with its digest, for writing."""
    return {**columns, DIGEST: digest_of(columns)}


def check_digest(table: str, key: Sequence[str], row: dict[str, Any]) -> None:
    """Compare a row that was read with its digest, which is removed from it.

    Args:
        table, key: the table and its key columns, by which a message names the row.

    Raises:
        DamageError: the digests differ.
    """
    if row.pop(DIGEST) != digest_of(row):
        named = ", ".join(f"{name} {shown(row[name])}" for name in key)
        raise DamageError(
            f"the row of table {table!r} with {named} does not match its digest: a value in it was changed"
        )


def check_format(name: object, found: object, cure: str) -> None:
    """Refuse a journal that has another format number.

    Raises:
        StorageError: the format number differs. A format that is no number is damage, which the check of the row finds.
    """
    if type(found) is int and found != FORMAT:
        raise StorageError(
            f"{name} has journal format {found} and this mipcash ({__version__}) works with format {FORMAT}; {cure}, or open it "
            "with the version of mipcash that wrote it"
        )


@contextmanager
def uncollected() -> Iterator[None]:
    """Pause the garbage collector, which would visit all rows read so far again and again: a fifth of the time of 10,000 trials."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def named(where: str) -> Iterator[None]:
    """Turn an exception of Python, which a value that cannot be read causes, into a DamageError."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise DamageError(f"{where} has a value that mipcash did not write: {one_line(str(error), 200)}") from error


def study_record(row: Mapping[str, Any]) -> StudyRecord:
    """Return the row of the study, decoded.

    Raises:
        DamageError: a column has an invalid value.
    """
    columns = dict(row)
    with named("the study"):
        columns["seed"] = int(columns["seed"])
        for name in ("listing", "options", "limits", "settings", "objective", "declaration"):
            columns[name] = None if columns[name] is None else json.loads(columns[name])
        record = StudyRecord(**columns)
        read_limits(record.limits), record.objectives
    return record


def trial_row(columns: Mapping[str, Any], evaluations: Sequence[Mapping[str, Any]], expected: int) -> TrialRow:
    """Return the row of trial ``expected`` with its evaluations, checked as far as possible without the space.

    Raises:
        DamageError: a gap in the numbers, a value that cannot be read, or a status that contradicts the evaluations.
    """
    if columns["number"] != expected:
        raise DamageError(f"trial {shown(columns['number'])} stands where trial {expected} belongs")
    with named(f"trial {expected}"):
        row = TrialRow(**columns, evaluations=tuple(EvaluationRow(**each) for each in evaluations))
        asked, settled, outcome = row.requested, row.status != PENDING, row.outcome
        wrong = (row.finished is not None) != settled or (
            settled and (outcome.missing(asked_for(asked)) or row.running or outcome.status(asked) != row.status)
        )
    if wrong:
        raise DamageError(f"the status of trial {expected} is {row.status!r}, which its evaluations contradict")
    return row


def is_database(file: Path) -> bool:
    """Return True if a file begins as a SQLite database does."""
    with file.open("rb") as content:
        return content.read(len(MAGIC)) == MAGIC
