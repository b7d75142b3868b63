"""Checks of every row that is read from a storage, so that damage is reported and never enters a computation.

A journal may be truncated, corrupted, edited by hand or fabricated. Every row has a digest of its columns, which is compared before
anything in the row is decoded. Damage raises ``DamageError`` with a description; the reader of the file adds its name and the
cure.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from typing import Any

from mipcash import __version__
from mipcash.errors import StorageError
from mipcash.optimizers.outcome import DONE, FAILED, LOSS, PENDING, TEXT
from mipcash.study.records.limits import read_limits
from mipcash.study.storage.protocol import (
    ATTEMPTS,
    FORMAT,
    RUNNING,
    EvaluationRow,
    StudyRecord,
    TrialRow,
    asked_for,
)
from mipcash.study.text import one_line, shown

LATEST = 253_402_300_800.0
"""Seconds since the epoch at the end of the year 9999, after which no date can be shown."""
DIGEST = "digest"
"""Column of every table of trials, evaluations and studies: ``digest_of`` the other columns of its row."""

# repr handles bytes, which mipcash never writes
_canonical = json.JSONEncoder(sort_keys=True, default=repr).encode


class DamageError(StorageError):
    """Raised for content of a storage that mipcash did not write."""


def digest_of(columns: Mapping[str, Any]) -> str:
    """Return the digest of a row: blake2b over the JSON of its columns by name, as the database holds them."""
    # SQLite returns an integer in a REAL column as a float, and -0.0 as 0.0: all three have one digest.
    numbers = {n: float(v) + 0.0 for n, v in columns.items() if isinstance(v, (int, float)) and float(v) == v}
    return hashlib.blake2b(_canonical({**columns, **numbers}).encode(), digest_size=8).hexdigest()


def with_digest(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with its digest, for writing."""
    return {**columns, DIGEST: digest_of(columns)}


def without_digest(table: str, key: Sequence[str], row: Mapping[str, Any]) -> dict[str, Any]:
    """Compare a row that was read with its digest, and return it without the digest.

    Args:
        table, key: the table and its key columns, by which a message names the row.

    Raises:
        DamageError: the digests differ.
    """
    columns = dict(row)
    stored = columns.pop(DIGEST)
    if stored != digest_of(columns):
        named = ", ".join(f"{name} {shown(columns[name])}" for name in key)
        raise DamageError(
            f"the row of table {table!r} with {named} does not match its digest: a value in it was changed"
        )
    return columns


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
def _named(where: str) -> Iterator[None]:
    """Turn an exception of Python, which a forged value causes, into a DamageError."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise DamageError(f"{where} has a value that mipcash did not write: {one_line(str(error), 200)}") from error


@cache
def _kinds(kind: type) -> list[tuple[str, str, bool]]:
    """Return for each column of a row its name, ``int``, ``float`` or ``str``, and True if it may be None."""
    found = [(each.name, *str(each.type).partition(" | ")) for each in fields(kind) if each.name != "evaluations"]
    numbers = ("int", "float")
    return [(n, k if k in numbers and n != "seed" else "str", bool(none)) for n, k, _, none in found]


def _typed(kind: type, columns: Mapping[str, Any], where: str) -> None:
    """Check the types of the columns of a row; numbers other than values and limits of time are finite."""
    for name, wanted, optional in _kinds(kind):
        value = columns.get(name)
        if (value is None and optional) or (wanted == "str" and type(value) is str):
            continue
        if wanted == "int" and type(value) is not int:
            raise DamageError(f"the {name} {where} is {shown(value)} and no whole number")
        if wanted == "float":
            number(value, f"{name} {where}", finite=name not in ("value", "timeout"))
        elif wanted == "str":
            text(value, f"{name} {where}")


def study_record(row: Mapping[str, Any]) -> StudyRecord:
    """Return the checked row of the study.

    Raises:
        DamageError: a column has an invalid value.
    """
    columns, where = dict(row), "of the study"
    _typed(StudyRecord, columns, where)
    with _named("the study"):
        columns["seed"] = int(columns["seed"])
        for name in ("listing", "options", "limits", "settings", "objective", "declaration"):
            if columns[name] is not None:
                columns[name] = parse(columns[name], f"{name} {where}", (dict, type(None)))
        record = StudyRecord(**columns)
        read_limits(record.limits)
        record.objectives  # noqa: B018 - raises for objectives that cannot be read
        texts = [*record.listing.values(), *record.options.values()]
        texts += [record.objective[name] for name in ("name", "digest")] if record.objective else []
        wrong = {
            "listing, options or objective": not all(isinstance(value, str) for value in texts),
            "budget": record.budget is not None and not record.budget >= 1,
            "timeout": record.timeout is not None and not record.timeout > 0.0,
            "time of creation": not 0.0 <= record.created < LATEST,
        }
    for name in (name for name, is_wrong in wrong.items() if is_wrong):
        raise DamageError(f"the {name} {where} is not what mipcash writes")
    return record


def trial_row(columns: Mapping[str, Any], evaluations: Sequence[Mapping[str, Any]], expected: int) -> TrialRow:
    """Return the row of trial ``expected`` with its evaluations, checked as far as possible without the space.

    Raises:
        DamageError: a gap in the numbers, a column with an invalid value, or a status that contradicts other columns.
    """
    if columns["number"] != expected:
        raise DamageError(f"trial {shown(columns['number'])} stands where trial {expected} belongs")
    where = f"of trial {expected}"
    _typed(TrialRow, columns, where)
    for name in ("config", "exact", "state", "trace", "proof"):
        if columns[name] is not None:
            parse(columns[name], f"{name} {where}")
    for key, value in parse(columns["seconds"], f"seconds {where}").items():
        number(value, f"seconds {key!r} {where}")
    asked = parse(columns["outputs"], f"outputs {where}", list)
    with _named(f"trial {expected}"):
        row = TrialRow(**columns, evaluations=tuple(_evaluation_row(e, where) for e in evaluations))
        settled, outcome = (
            row.status != PENDING,
            row.outcome,
        )  # raises if value, variance and status of an attempt disagree
        if row.status not in (PENDING, DONE, FAILED):
            raise DamageError(f"the status {where} is {shown(row.status)}")
        if ((row.finished is not None), (row.duration is not None)) != (settled, settled):
            raise DamageError(f"the status {where} is {row.status!r}, which the time of its end contradicts")
        if settled and (outcome.missing(asked_for(asked)) or row.running or outcome.status(asked) != row.status):
            raise DamageError(f"the status {where} is {row.status!r}, which its evaluations contradict")
    return row


def _evaluation_row(columns: Mapping[str, Any], of: str) -> EvaluationRow:
    where = f"of evaluation {shown(columns['output'])} {of}"
    _typed(EvaluationRow, columns, where)
    row = EvaluationRow(**columns)
    for fold in parse(row.folds, f"folds {where}", list):
        number(fold, f"fold {where}", finite=False)
    if row.attempt < 1 or row.status not in ATTEMPTS:
        raise DamageError(f"the attempt {where} is {shown(row.attempt)}, {shown(row.status)}")
    if (row.finished is None) != (row.status == RUNNING) or (row.status == TEXT and row.output == LOSS):
        raise DamageError(f"the status {where} is {row.status!r}, which other columns contradict")
    return row


def parse(wording: Any, what: str, kinds: type | tuple[type, ...] = dict) -> Any:
    """Return the value of a JSON text.

    Raises:
        DamageError: it is no JSON, is nested too deeply, has a name twice, or is of another type than ``kinds``.
    """
    try:
        value = _decoded(text(wording, what))
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


_decoded = json.JSONDecoder(object_pairs_hook=_distinct).decode  # made once: `json.loads` makes one at every call


def text(value: Any, what: str) -> str:
    """Return a value that must be a text. Raise DamageError if it is none."""
    if not isinstance(value, str):
        raise DamageError(f"the {what} is {shown(value)} and no text")
    return value


def number(value: Any, what: str, finite: bool = True) -> float:
    """Return a value that must be a number. Raise DamageError if it is none, or not finite although ``finite`` is True."""
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            found = float(value)
            if math.isfinite(found) or not finite:
                return found
    except OverflowError:
        pass
    raise DamageError(f"the {what} is {shown(value)} and no {'finite ' if finite else ''}number")
