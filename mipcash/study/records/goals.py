"""Goals as a user gives them: ``direction="maximize"``."""

from __future__ import annotations

import difflib
from typing import Any

from mipcash.optimizers.goals import DIRECTIONS, MAXIMIZE, MINIMIZE, Goal, Goals
from mipcash.study.text import shown

OTHERS = {"min": MINIMIZE, "minimise": MINIMIZE, "max": MAXIMIZE, "maximise": MAXIMIZE}
"""What other libraries call directions; they are told ours."""


def direction_of(given: Any) -> str:
    """``minimize`` or ``maximize``.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(given, str) and given in DIRECTIONS:
        return given
    close = isinstance(given, str) and (OTHERS.get(given.lower()) or difflib.get_close_matches(given, DIRECTIONS, n=1))
    hint = f"; did you mean {(close if isinstance(close, str) else close[0])!r}?" if close else ""
    raise ValueError(f"direction must be {MINIMIZE!r} or {MAXIMIZE!r}, got {shown(given)}{hint}")


def goals_of(direction: Any = MINIMIZE) -> Goals:
    """What a study optimises.

    Raises:
        ValueError: no direction.
    """
    return Goals((Goal(direction=direction_of(direction)),))
