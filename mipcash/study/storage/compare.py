"""Check that a stored study matches the one to be resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mipcash.errors import StorageError, warn
from mipcash.study.storage.listings import differences
from mipcash.study.storage.protocol import FIDELITY, OBJECTIVES, StudyRecord
from mipcash.study.storage.versions import changed
from mipcash.text import storable, told_apart


def compare(
    name: Path | str,
    stored: StudyRecord,
    wanted: StudyRecord,
    cure: str = "give another storage or move this file aside",
) -> None:
    """Refuse a journal that belongs to a study with other proposals.

    Raises:
        StorageError: the studies differ; the message lists the differences.
    """
    found: list[str] = []
    for what in ("seed", "optimizer", "solver"):
        then, now = getattr(stored, what), getattr(wanted, what)
        if then != (storable(now) if isinstance(now, str) else now):
            found.append(f"{what} was {then!r} and is {now!r} now")
    found += _other_objectives(stored, wanted)
    # another optimizer has entirely different settings, and its name is enough
    same = stored.optimizer == storable(wanted.optimizer)
    parts = {
        "setting": (_settings(stored), _settings(wanted)) if same else (None, None),
        "option": (stored.options, wanted.options),
        "limit": (stored.limits, wanted.limits),
    }
    for what, (before, after) in parts.items():
        then, now = before or {}, after or {}
        for key in sorted({*then, *now}):
            if key not in then or key not in now or not (then[key] == now[key] or repr(then[key]) == repr(now[key])):
                were, are = told_apart([repr(each.get(key, "not given")) for each in (then, now)], 120)
                found.append(f"{what} {key} was {were} and is {are} now")
    if dict(stored.listing) != dict(wanted.listing):
        found += differences(stored.listing, wanted.listing)
    others = changed(stored.version, wanted.version)
    if not found:
        if others:
            warn(
                f"{name} was written with {', '.join(others)}: proposals may differ in their last digits, and then altogether, "
                "from those of a run that was not interrupted"
            )
        return
    named = "; ".join(found[:6]) + (f"; and {len(found) - 6} more differences" if len(found) > 6 else "")
    upgrade = f" It was written with {', '.join(others)}." if others else ""
    turned = stored.objectives.each != wanted.objectives.each  # losses of another sign, or other outputs
    known = "" if stored.options or turned else f", and pass known=mc.read_trials({name!r}, space) to keep its trials"
    raise StorageError(
        f"{name} belongs to another study: {named}.{upgrade} To resume it, use what it was started with; for a new "
        f"study, {cure}{known}"
    )


def _settings(record: StudyRecord) -> dict[str, Any]:
    """Return the settings of the optimizer only."""
    return {name: value for name, value in (record.settings or {}).items() if name not in (OBJECTIVES, FIDELITY)}


def _other_objectives(stored: StudyRecord, wanted: StudyRecord) -> list[str]:
    """Return the difference in the objectives, in the words of ``direction=``; empty if there is none."""
    if stored.objectives.each == wanted.objectives.each:
        return []
    if not stored.objectives.several and not wanted.objectives.several:
        return [f"direction was {stored.objectives.each[0].direction} and is {wanted.objectives.each[0].direction} now"]
    then, now = (
        {objective.output: objective.direction for objective in record.objectives.each} for record in (stored, wanted)
    )
    return [f"objectives were {then} and are {now} now"]
