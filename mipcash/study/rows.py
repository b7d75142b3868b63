"""Between the journal's rows and trials: what is read back is checked against the space."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mipcash.optimizers.base import Optimizer
from mipcash.optimizers.outcome import FAILED, Outcome
from mipcash.study.checks import DamageError, TrialRow
from mipcash.study.encoding import decode_config, decode_solution, readable_config
from mipcash.study.trial import Trial

if TYPE_CHECKING:
    from mipcash.space.space import Space


def trial_of(space: Space, row: TrialRow, study: str) -> Trial:
    """The trial of a row.

    Raises:
        DamageError: a configuration or a proof that is not one of ``space``.
    """
    return Trial(
        number=row.number,
        config=decode_config(space, row.exact),
        status=row.status,
        outcome=outcome_of(row),
        proof=None if row.proof is None else decode_solution(space, row.proof),
        origin=row.origin,
        seconds=json.loads(row.seconds),
        started=row.started,
        finished=row.finished,
        duration=row.duration,
        study=study,
    )


def outcome_of(row: TrialRow) -> Outcome:
    """What a row says of the outputs."""
    values = {name: float(value) for name, value in json.loads(row.values).items()}
    return Outcome.failure(row.message, values) if row.status == FAILED else Outcome.of(row.loss, values)


def checked_trial(space: Space, row: TrialRow, study: str) -> Trial:
    """The trial of a row that was read from a file: as it was proposed, and legal.

    Raises:
        DamageError: it is not.
    """
    trial = trial_of(space, row, study)
    if readable_config(trial.config) != row.config:
        raise DamageError(f"the two records of the configuration of trial {row.number} differ")
    violations = space.validate(trial.config)
    if violations:
        reasons = "; ".join(v.message for v in violations)
        raise DamageError(f"the configuration of trial {row.number} is illegal: {reasons}")
    return trial


def json_text(optimizer: Optimizer, what: str, value: Mapping[str, Any]) -> str:
    """The state of an optimizer, or a trace, as JSON.

    Raises:
        TypeError: it holds what JSON cannot.
    """
    try:
        return json.dumps(dict(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            f"optimizer {optimizer.name!r} returned a {what} that JSON cannot hold ({error}); a {what} is made of dicts, "
            "lists, strings, numbers and None, so that a run can be resumed"
        ) from error
