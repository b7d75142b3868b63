"""Direction of an objective: ``minimize`` or ``maximize``, ``min`` or ``max`` for short."""

from __future__ import annotations

import reprlib
from typing import Any

from mipcash.errors import SpaceError
from mipcash.text import did_you_mean

MINIMIZE, MAXIMIZE = "minimize", "maximize"
DIRECTIONS = (MINIMIZE, MAXIMIZE)
_ALSO = {"min": MINIMIZE, "max": MAXIMIZE}


def direction_of(given: Any) -> str:
    """Return ``minimize`` or ``maximize``.

    Raises:
        SpaceError: the direction is neither of them.
    """
    if isinstance(given, str) and (found := _ALSO.get(given, given)) in DIRECTIONS:
        return found
    near = did_you_mean(given, DIRECTIONS, "") if isinstance(given, str) else ""
    hint = f"; {near}" if near else ""
    raise SpaceError(f"direction must be {MINIMIZE!r} or {MAXIMIZE!r}, got {reprlib.repr(given)}{hint}")
