"""What becomes of a trial's row: an attempt begins, is told, lost or returned. Each gives the row and the evaluations to write."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mipcash.optimizers.outcome import FAILED, LOSS, MISSING, PENDING, Outcome
from mipcash.study.storage.protocol import RETURNED, RUNNING, EvaluationRow, TrialRow, asked_for

Change = tuple[TrialRow, tuple[EvaluationRow, ...]]
"""The row as it is now, and its evaluations that changed."""


def begun(row: TrialRow, worker: str, now: float) -> Change:
    """Another attempt at the outputs that are missing."""
    names = row.outcome.missing(asked_for(json.loads(row.outputs)))
    attempt = row.attempt + 1
    rows = tuple(EvaluationRow(row.number, n, attempt, worker, RUNNING, None, "", now, None, None) for n in names)
    return with_evaluations(row, rows), rows


def told(
    row: TrialRow,
    part: Outcome,
    status: str,
    worker: str,
    now: float,
    duration: float | None,
    attempt: int | None = None,
) -> Change:
    """Outputs of an attempt, and the status that the trial has with them.

    Where all that an objective gives was asked for, the attempt runs on, under the name of the loss, until the trial is told.

    Args:
        attempt: whose outputs they are; None: the latest. One that was given up for lost may be told after all, and what was begun
            in its place is given back where the trial is told by it.
    """
    attempt = row.attempt if attempt is None else attempt
    at = {e.output: e for e in row.evaluations if e.attempt == attempt}
    begin = min((e.started for e in at.values()), default=now)
    whole = not json.loads(row.outputs)
    changed = {}
    for name, output in part.outputs.items():
        if output.status == MISSING:
            continue
        on = whole and name == LOSS and status == PENDING
        end = None if on else now
        changed[name] = EvaluationRow.of(row.number, name, attempt, worker, output, begin, end, on)
    if status != PENDING:  # what was told so far is what there is
        for name, so_far in at.items():
            output = row.outcome[name]
            if so_far.status == RUNNING and name not in changed and output.status != MISSING:
                changed[name] = replace(so_far, status=output.status, finished=now)
    row = replace(row, status=status, finished=None if status == PENDING else now, duration=duration)
    rows = tuple(changed.values())
    if status != PENDING:
        others = [e for e in row.running if e.attempt != attempt]
        rows += tuple(replace(e, status=RETURNED, value=None, variance=None, finished=now) for e in others)
    return with_evaluations(row, rows), rows


def ended(row: TrialRow, status: str, message: str, now: float, worker: str | None = None) -> Change:
    """The attempt that runs ends without an outcome: ``lost`` or ``returned``.

    Args:
        worker: whose attempt; None: anybody's.
    """
    running = (e for e in row.running if worker is None or e.worker == worker)
    rows = tuple(replace(e, status=status, value=None, variance=None, message=message, finished=now) for e in running)
    return with_evaluations(row, rows), rows


def reopened(row: TrialRow) -> Change:
    """What was told counts no longer: the trial waits for another attempt. Why it failed stays with the attempt."""
    told = (e for e in row.evaluations if e.told is not None)
    rows = tuple(
        replace(e, status=RETURNED, value=None, variance=None, finished=e.finished or row.finished) for e in told
    )
    row = replace(row, status=PENDING, finished=None, duration=None)
    return with_evaluations(row, rows), rows


def given_up(row: TrialRow, message: str, now: float, limited: Iterable[str]) -> Change:
    """No further attempt: what is missing has failed.

    Args:
        limited: outputs with limits, which an evaluation of all outputs owes besides the loss.
    """
    outputs = json.loads(row.outputs)
    names = row.outcome.missing(asked_for(outputs) if outputs else dict.fromkeys((*asked_for(outputs), *limited)))
    attempt = row.attempt + 1
    rows = tuple(EvaluationRow(row.number, n, attempt, "", FAILED, None, message, now, now, None) for n in names)
    whole = with_evaluations(row, rows)
    status = whole.outcome.status(json.loads(row.outputs))
    return replace(whole, status=status, finished=now, duration=0.0), rows


def with_evaluations(row: TrialRow, changed: Sequence[EvaluationRow]) -> TrialRow:
    """A row with evaluations that changed or joined it."""
    found: Mapping[tuple[int, str], EvaluationRow] = {(e.attempt, e.output): e for e in (*row.evaluations, *changed)}
    return replace(row, evaluations=tuple(found.values()))
