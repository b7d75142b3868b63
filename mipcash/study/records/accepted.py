"""Rules that are accepted while a study goes on: its trials are judged anew, and its journal notes them.

What failed under one stays in the history, as known and illegal; what works under none is forbidden, or the rule is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mipcash.errors import RuleWarning
from mipcash.modelling.rules import Rule
from mipcash.space.cuts.accepting import broken_of
from mipcash.study.records.fingerprint import ACCEPTED, accepted_entries, without_accepted
from mipcash.study.records.trials import forbidden
from mipcash.study.storage.base import Storage
from mipcash.study.trial import ILLEGAL, Trial

if TYPE_CHECKING:
    from mipcash.space.space import Space


def not_the_same(before: Sequence[Rule], now: Sequence[Rule]) -> bool:
    """Whether rules were accepted or withdrawn between two looks."""
    return len(before) != len(now) or any(a is not b for a, b in zip(before, now, strict=True))


def rejudged(space: Space, trials: Sequence[Trial]) -> list[Trial]:
    """Trials as the rules are that are accepted by now; one of which nothing changes is the same object.

    Raises:
        RuleError: a rule forbids what works.
    """
    judged = []
    for trial in trials:
        names = [] if trial.origin == ILLEGAL else broken_of(space, trial.config)
        judged.append(forbidden(trial, names) if names or trial.forbidden else trial)
    return judged


def warn_of_lacking(space: Space, storage: Storage) -> None:
    """Say which accepted rules a journal went on with that a space lacks."""
    now = accepted_entries(space)
    for name, text in storage.record.listing.items():
        if name.startswith(ACCEPTED) and name not in now:
            warnings.warn(
                f"the study went on with the {name}, {text}, which space {space.name!r} lacks: what failed under it may be "
                f"proposed again. To keep it, accept it before the study is opened: space.accept(..., "
                f"name={name[len(ACCEPTED) :]})",
                RuleWarning,
                stacklevel=2,
            )


def note_accepted(space: Space, storage: Storage) -> None:
    """Keep the accepted rules in the journal."""
    record, now = storage.record, accepted_entries(space)
    then = {name: text for name, text in record.listing.items() if name.startswith(ACCEPTED)}
    if then == now:
        return
    storage.note(replace(record, listing={**without_accepted(record.listing), **now}))
