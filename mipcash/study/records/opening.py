"""The row of a study that is opened: what its proposals depend on."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mipcash.optimizers.base import Limit, Optimizer
from mipcash.optimizers.goals import MINIMISED, Goals
from mipcash.study.records.encoding import plain
from mipcash.study.records.fingerprint import fingerprint, listing
from mipcash.study.records.limits import stored_limits
from mipcash.study.storage.base import GOALS, StudyRecord

if TYPE_CHECKING:
    from mipcash.backends.base import Backend
    from mipcash.space.space import Space


def record_of(
    space: Space,
    optimizer: Optimizer,
    name: str,
    solver: str | Backend,
    seed: int,
    settings: Any,
    limits: Sequence[Limit],
    model: str | None,
    options: Mapping[str, str] | None,
    goals: Goals = MINIMISED,
) -> StudyRecord:
    """Arguments as of :class:`mipcash.Study`, with the optimizer and what it is called."""
    entries = listing(space)
    # The effective settings, not those given: a default that changes between versions changes the proposals.
    effective = plain(getattr(optimizer, "settings", settings))
    stored = effective if effective is None or isinstance(effective, dict) else {"settings": effective}
    if goals != MINIMISED:
        stored = {**(stored or {}), GOALS: [[goal.output, goal.direction] for goal in goals.goals]}
    return StudyRecord(
        id=uuid.uuid4().hex,
        space=space.name,
        fingerprint=fingerprint(entries),
        listing=entries,
        seed=seed,
        optimizer=name,
        solver=solver if isinstance(solver, str) else solver.name,
        settings=stored,
        limits=stored_limits(limits),
        model=model,
        options=dict(options or {}),
    )
