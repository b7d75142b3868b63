"""Conversion between the rows of a storage and trials; what is read back is checked against the space."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from mipcash.modelling.domains import Configuration
from mipcash.optimizers.objectives import Objectives
from mipcash.optimizers.optimizer import Optimizer, Proposal
from mipcash.optimizers.outcome import PENDING
from mipcash.space.solution import Solution
from mipcash.study.records.encoding import (
    decode_config,
    decode_solution,
    encode_config,
    encode_solution,
    plain,
    readable_config,
)
from mipcash.study.storage.checks import named
from mipcash.study.storage.protocol import TrialRow, parsed
from mipcash.study.trial import ENQUEUED, ILLEGAL, KNOWN, REPEAT, Trial
from mipcash.text import shown, storable

if TYPE_CHECKING:
    from mipcash.space.space import Space


def proposal_row(space: Space, optimizer: Optimizer, number: int, proposal: Proposal, began: float) -> TrialRow:
    """Return the row of a proposal, without an attempt.

    Args:
        began: ``time.perf_counter()`` when the optimizer was called.

    Raises:
        TypeError: the state or trace does not fit into JSON, other data are of a wrong type, or the origin is reserved for trials
            that a user adds.
    """
    stop = proposal.stop or ""
    for what, right, wanted in (
        ("solution", isinstance(proposal.solution, Solution | None), "None or a mipcash Solution"),
        ("stop", isinstance(stop, str), "a text, the reason for which the run ends"),
        ("seconds", _are_seconds(proposal.seconds), "a dict of numbers, the seconds by part"),
    ):
        if not right:
            given = shown(getattr(proposal, what))
            raise TypeError(f"optimizer {optimizer.name!r} made a proposal with {what}={given}; it must be {wanted}")
    if proposal.origin in (KNOWN, ILLEGAL, ENQUEUED) or str(proposal.origin).startswith(REPEAT):
        raise TypeError(
            f"optimizer {optimizer.name!r} uses the origin {proposal.origin!r}, which is reserved for configurations of the user"
        )
    return waiting_row(
        space,
        number,
        proposal.config,
        storable(str(proposal.origin)),
        json_text(optimizer, "state", proposal.state),
        dict.fromkeys(proposal.outputs),
        proof=None if proposal.solution is None else encode_solution(space, proposal.solution),
        seconds=json.dumps({**plain(proposal.seconds), "ask": time.perf_counter() - began}),
        trace=json_text(optimizer, "trace", proposal.trace),
        stop=storable(stop),
    )


def waiting_row(
    space: Space, number: int, config: Configuration, origin: str, state: str, outputs: Iterable[str], **further: Any
) -> TrialRow:
    """Return the row of a trial without an attempt."""
    return TrialRow(
        number=number,
        status=PENDING,
        config=readable_config(config),
        exact=encode_config(space, config),
        origin=origin,
        state=state,
        outputs=json.dumps(list(outputs)),
        proposed=time.time(),
        **further,
    )


def _are_seconds(given: object) -> bool:
    """Return True if this is a dict of seconds by part."""
    return isinstance(given, Mapping) and all(isinstance(s, Real) and math.isfinite(s) for s in given.values())


def trial_of(space: Space, row: TrialRow, study: str, objectives: Objectives) -> Trial:
    """Return the trial of a row.

    Raises:
        DamageError: the row cannot be decoded, or its configuration or proof does not belong to ``space``.
    """
    with named(f"trial {row.number}"):
        return Trial(
            number=row.number,
            config=decode_config(space, row.exact),
            proof=None if row.proof is None else decode_solution(space, row.proof),
            study=study,
            objectives=objectives,
            **_proposed(row),
            **_evaluated(row),
        )


def readable_trial(row: TrialRow, objectives: Objectives) -> Trial:
    """Return the trial of a row without a space, with its configuration in the readable form."""
    with named(f"trial {row.number}"):
        return Trial(row.number, json.loads(row.config), objectives=objectives, **_proposed(row), **_evaluated(row))


def refreshed(trial: Trial, row: TrialRow) -> Trial:
    """Return the trial with the row's data on its evaluation."""
    return replace(trial, **_evaluated(row))


def _proposed(row: TrialRow) -> dict[str, Any]:
    """Return the data of a trial that a row has on its proposal."""
    return {
        "origin": row.origin,
        "seconds": parsed(row.seconds),
        "evaluate": row.requested,
        "trace": parsed(row.trace),
        "stop": row.stop,
    }


def _evaluated(row: TrialRow) -> dict[str, Any]:
    """Return the data of a trial that a row has on its evaluation."""
    return {
        "status": row.status,
        "outcome": row.outcome,
        "attempt": row.attempt,
        "lost": row.lost,
        "started": max((e.started for e in row.evaluations), default=row.proposed),
        "finished": row.finished,
        "duration": row.duration,
    }


def outputs_of(optimizer: Optimizer, proposal: Proposal) -> list[str]:
    """Return the outputs that a proposal names.

    Raises:
        TypeError: they are no tuple of names.
    """
    outputs = proposal.outputs
    if not isinstance(outputs, (tuple, list)) or not all(isinstance(name, str) for name in outputs):
        raise TypeError(
            f"optimizer {optimizer.name!r} wants the outputs {shown(outputs)}; they are a tuple of names, such as ('loss',)"
        )
    return list(outputs)


def json_text(optimizer: Optimizer, what: str, value: Mapping[str, Any]) -> str:
    """Return the state of an optimizer, or a trace, as JSON.

    Raises:
        TypeError: a value does not fit into JSON.
    """
    try:
        return json.dumps(dict(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            f"optimizer {optimizer.name!r} returned a {what} that JSON cannot hold ({error}); a {what} is made of dicts, "
            "lists, strings, numbers and None, so that a run can be resumed"
        ) from error
