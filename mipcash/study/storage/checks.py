"""Checks of every row that is read from a storage, so that damage is reported and never enters a computation.

A journal may be truncated, corrupted, edited by hand or fabricated. Every row has a digest of its columns, which is compared before
anything in the row is decoded. Damage raises ``DamageError`` with a description; the reader of the file adds its name and the
cure.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from mipcash import __version__
from mipcash.errors import StorageError
from mipcash.optimizers.outcome import DONE, FAILED, LOSS, PENDING, PRESENT, TEXT
from mipcash.study.storage.protocol import (
    ATTEMPTS,
    FORMAT,
    RUNNING,
    EvaluationRow,
    StudyRecord,
    TrialRow,
    asked_for,
    read_objectives,
)
from mipcash.study.text import shown

NAME_LIMIT = 10_000
"""Largest number of characters of a name, since messages repeat it."""


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


def study_record(row: Mapping[str, Any]) -> StudyRecord:
    """Return the checked row of the study.

    Raises:
        DamageError: a column has an invalid value.
    """
    columns = dict(row)
    for name in ("id", "space", "fingerprint", "optimizer", "solver", "stopped", "version"):
        if len(text(columns[name], name)) > NAME_LIMIT:
            raise DamageError(f"the {name} is {shown(columns[name])} and no name")
    if not str(columns["seed"]).isdecimal() or len(str(columns["seed"])) > 4000:
        raise DamageError(f"the seed is {shown(columns['seed'])} and no whole number")
    columns["seed"] = int(columns["seed"])
    for name in ("listing", "options"):
        columns[name] = parse(columns[name], name)
        for key, wording in columns[name].items():
            text(wording, f"{name} {key!r}")
    columns["settings"] = parse(columns["settings"], "settings", (dict, type(None)))
    if columns["objective"] is not None:
        columns["objective"] = parse(columns["objective"], "objective")
        for name in ("name", "digest"):
            text(columns["objective"].get(name), f"{name} of the objective")
    if columns["declaration"] is not None:
        columns["declaration"] = parse(columns["declaration"], "declaration")
    if columns["model"] is not None:
        text(columns["model"], "model")
    if columns["budget"] is not None and not (type(columns["budget"]) is int and columns["budget"] >= 1):
        raise DamageError(f"the budget is {shown(columns['budget'])} and no number of evaluations")
    if columns["timeout"] is not None and not number(columns["timeout"], "timeout", finite=False) > 0:
        raise DamageError(f"the timeout is {shown(columns['timeout'])} and no number of seconds")
    if not 0.0 <= number(columns["created"], "time of creation") < LATEST:
        raise DamageError(f"the time of creation is {shown(columns['created'])} and no date")
    columns["limits"] = _limits(columns["limits"])
    if type(columns["schema"]) is not int:
        raise DamageError(f"the format is {shown(columns['schema'])} and no whole number")
    if columns["recommended"] is not None and type(columns["recommended"]) is not int:
        raise DamageError(f"the recommended trial is {shown(columns['recommended'])}")
    try:
        read_objectives(columns["settings"])
    except ValueError as error:
        raise DamageError(str(error)) from None
    return StudyRecord(**columns)


def trial_row(columns: Mapping[str, Any], evaluations: Sequence[Mapping[str, Any]], expected: int) -> TrialRow:
    """Return the row of trial ``expected`` with its evaluations, checked as far as possible without the space.

    Raises:
        DamageError: a gap in the numbers, a column with an invalid value, or a status that contradicts other columns.
    """
    where = _proposal(columns, expected)
    parse(columns["trace"], f"trace {where}")
    text(columns["stop"], f"stop {where}")
    asked = parse(columns["outputs"], f"outputs {where}", list)
    for name in asked:
        text(name, f"output {where}")
    for name in ("finished", "duration"):
        if columns[name] is not None:
            number(columns[name], f"{name} {where}")
    number(columns["proposed"], f"start {where}")
    row = TrialRow(**columns, evaluations=tuple(evaluation_row(e, where) for e in evaluations))
    _check_status(row, asked, where)
    return row


def _proposal(columns: Mapping[str, Any], expected: int) -> str:
    """Check the columns of a proposal, and return how messages name the trial."""
    if columns["number"] != expected:
        raise DamageError(f"trial {shown(columns['number'])} stands where trial {expected} belongs")
    where = f"of trial {expected}"
    for name in ("origin", "status"):
        text(columns[name], f"{name} {where}")
    for name in ("config", "exact", "state"):
        parse(columns[name], f"{name} {where}")
    if columns["proof"] is not None:
        parse(columns["proof"], f"proof {where}")
    for key, value in parse(columns["seconds"], f"seconds {where}").items():
        number(value, f"seconds {key!r} {where}")
    return where


def evaluation_row(columns: Mapping[str, Any], where: str) -> EvaluationRow:
    """Return a checked evaluation of a trial.

    Raises:
        DamageError: a column has an invalid value, or contradicts another one.
    """
    name = shown(columns["output"])
    for column in ("output", "worker", "message", "status"):
        text(columns[column], f"{column} of evaluation {name} {where}")
    if type(columns["attempt"]) is not int or columns["attempt"] < 1:
        raise DamageError(f"the attempt of evaluation {name} {where} is {shown(columns['attempt'])}")
    if columns["status"] not in ATTEMPTS:
        raise DamageError(f"the status of evaluation {name} {where} is {shown(columns['status'])}")
    for column in ("started", "finished", "cost"):
        if column == "started" or columns[column] is not None:
            number(columns[column], f"{column} of evaluation {name} {where}")
    if columns["value"] is not None:
        number(columns["value"], f"value of evaluation {name} {where}", finite=columns["status"] == PRESENT)
    _check_folds(columns, f"of evaluation {name} {where}")
    row = EvaluationRow(**columns)
    if (row.status == PRESENT) and row.value is None:
        raise DamageError(f"evaluation {name} {where} is {PRESENT!r} and has no value")
    if row.status == TEXT and (row.value is not None or row.output == LOSS):
        raise DamageError(f"evaluation {name} {where} is a text, and {'the loss' if row.value is None else 'a number'}")
    if (row.finished is None) != (row.status == RUNNING):
        raise DamageError(f"evaluation {name} {where} is {row.status!r}, which the time of its end contradicts")
    return row


def _check_folds(columns: Mapping[str, Any], where: str) -> None:
    for fold in parse(columns["folds"], f"folds {where}", list):
        number(fold, f"fold {where}", finite=False)
    variance = columns["variance"]
    if variance is not None and (
        number(variance, f"variance {where}") < 0.0 or columns["status"] not in (PRESENT, RUNNING)
    ):
        raise DamageError(f"the variance {where} is {shown(variance)}, and there is no estimate that has it")


def _check_status(row: TrialRow, asked: Sequence[str], where: str) -> None:
    if row.status not in (PENDING, DONE, FAILED):
        raise DamageError(f"the status {where} is {shown(row.status)}")
    settled = row.status != PENDING
    if ((row.finished is not None), (row.duration is not None)) != (settled, settled):
        raise DamageError(f"the status {where} is {row.status!r}, which the time of its end contradicts")
    if not settled:
        return
    missing = row.outcome.missing(asked_for(asked))
    if missing or row.running or row.outcome.status(asked) != row.status:
        raise DamageError(f"the status {where} is {row.status!r}, which its evaluations contradict")


def _limits(wording: Any) -> dict[str, list[float | None]]:
    limits: dict[str, list[float | None]] = parse(wording, "limits")
    for name, ends in limits.items():
        if not isinstance(ends, list) or len(ends) != 2:
            raise DamageError(f"the limit {name!r} is {shown(ends)} and no pair")
        for end in ends:
            if end is not None:
                number(end, f"limit {name!r}")
        low, high = ends
        if low == high is None or (low is not None and high is not None and low > high):
            raise DamageError(f"the limit {name!r} is {shown(ends)} and holds nothing")
    return limits


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
