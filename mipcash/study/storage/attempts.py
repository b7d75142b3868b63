"""Changes of a trial's row: an attempt starts, records outputs, is lost or returned. Each gives the rows to write."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mipcash.optimizers.outcome import FAILED, LOSS, MISSING, PENDING, Outcome
from mipcash.study.storage.protocol import LOST, RETURNED, RUNNING, EvaluationRow, TrialRow, asked_for

Change = tuple[TrialRow, tuple[EvaluationRow, ...]]
"""The new row, and its evaluations that changed."""


def started(row: TrialRow, worker: str, now: float) -> Change:
    """Start another attempt at the missing outputs."""
    names = row.outcome.missing(asked_for(row.requested))
    attempt = row.attempt + 1
    rows = tuple(EvaluationRow(row.number, n, attempt, worker, RUNNING, None, "", now, None, None) for n in names)
    return with_evaluations(row, rows), rows


def recorded(
    row: TrialRow,
    part: Outcome,
    status: str,
    worker: str,
    now: float,
    duration: float | None,
    attempt: int | None = None,
) -> Change:
    """Record outputs of an attempt, and the resulting status of the trial.

    If all outputs of the objective were requested, the attempt keeps running under the name of the loss until the trial is
    complete.

    Args:
        attempt: attempt that gave the outputs; None: the latest. An attempt that counts as lost may still record them. If
            that completes the trial, later attempts that are running get the status ``returned``.
    """
    attempt = row.attempt if attempt is None else attempt
    at = {e.output: e for e in row.evaluations if e.attempt == attempt}
    begin = min((e.started for e in at.values()), default=now)
    whole = not row.requested
    changed = {}
    for name, output in part.outputs.items():
        if output.status == MISSING:
            continue
        on = whole and name == LOSS and status == PENDING
        end = None if on else now
        told = (RUNNING if on else output.status, output.value, output.message, begin, end, output.cost)
        folds, variance = json.dumps(output.folds), output.variance
        changed[name] = EvaluationRow(row.number, name, attempt, worker, *told, folds, variance)
    if status != PENDING:  # the outputs recorded so far are final
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
    """End the running attempt without an outcome, as ``lost`` or ``returned``.

    Args:
        worker: owner of the attempt; None: any worker.
    """
    running = [e for e in row.running if worker is None or e.worker == worker]
    if not running:
        return row, ()
    rows = tuple(replace(e, status=status, value=None, variance=None, message=message, finished=now) for e in running)
    return with_evaluations(row, rows), rows


def reopened(row: TrialRow) -> Change:
    """Discard the outcome, so that the trial waits for another attempt. The failure message stays with the old attempt.

    Attempts that lost their worker count no longer.
    """
    reported = (e for e in row.evaluations if e.recorded is not None or e.status == LOST)
    rows = tuple(
        replace(e, status=RETURNED, value=None, variance=None, finished=e.finished or row.finished) for e in reported
    )
    row = replace(row, status=PENDING, finished=None, duration=None)
    return with_evaluations(row, rows), rows


def given_up(row: TrialRow, message: str, now: float, limited: Iterable[str]) -> Change:
    """Fail the missing outputs instead of making another attempt.

    Args:
        limited: constrained outputs, which an evaluation of all outputs must give besides the loss.
    """
    outputs = row.requested
    names = row.outcome.missing(asked_for(outputs) if outputs else dict.fromkeys((*asked_for(outputs), *limited)))
    attempt = row.attempt + 1
    rows = tuple(EvaluationRow(row.number, n, attempt, "", FAILED, None, message, now, now, None) for n in names)
    whole = with_evaluations(row, rows)
    status = whole.outcome.status(outputs)
    return replace(whole, status=status, finished=now, duration=0.0), rows


def with_evaluations(row: TrialRow, changed: Sequence[EvaluationRow]) -> TrialRow:
    """Return a row with changed or added evaluations."""
    found: Mapping[tuple[int, str], EvaluationRow] = {(e.attempt, e.output): e for e in (*row.evaluations, *changed)}
    return replace(row, evaluations=tuple(found.values()))
