"""Notes of the sampler on a trial in the storage of its study: the complete proposal, and the state of the optimizer.

Every process that works on a study reads the notes. It thus knows pending proposals of other workers before their parameters are
asked for, and can continue a study. Storages of Optuna reliably keep texts of 2,048 characters, so a note is split.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mipcash.modelling.domains import Categorical, Configuration, Ordinal
from mipcash.space.space import Space
from mipcash.study.records.encoding import decode_config, encode_config

KEY, LENGTH = "mipcash:{}", 2045


@dataclass(frozen=True)
class Note:
    """A note on a trial.

    Attributes:
        config: the proposal.
        state: of the optimizer after the proposal.
        proof: origin, solver, value and bound of the proposal.
    """

    config: Configuration
    state: Mapping[str, Any] = field(default_factory=dict)
    proof: Mapping[str, Any] = field(default_factory=dict)


def signature(space: Space) -> str:
    """Return a text that is equal for spaces with the same domains, whatever their rules."""
    listed = [
        (label, list(map(repr, p.domain.values)) if isinstance(p.domain, (Ordinal, Categorical)) else repr(p.domain))
        for label, p in space.parameters.items()
    ]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:16]


def write(storage: Any, trial_id: int, space: Space, note: Note) -> None:
    """Write a note to a storage of Optuna."""
    text = json.dumps(
        {"space": signature(space), "config": encode_config(space, note.config), "state": note.state, **note.proof}
    )
    for k, start in enumerate(range(0, len(text), LENGTH)):
        storage.set_trial_system_attr(trial_id, KEY.format(k), text[start : start + LENGTH])


def read(attributes: Mapping[str, Any], space: Space) -> Note | None:
    """Return the note among the system attributes of a trial, or None if there is none or it is of another space."""
    parts, k = list[str](), 0
    while KEY.format(k) in attributes:
        parts.append(attributes[KEY.format(k)])
        k += 1
    if not parts:
        return None
    try:
        reported = json.loads("".join(parts))
        if reported.pop("space") != signature(space):
            return None
        return Note(decode_config(space, reported.pop("config")), reported.pop("state"), reported)
    except (ValueError, LookupError):  # incomplete: the writing process was killed
        return None
