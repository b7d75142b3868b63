"""Goals as a user gives them: ``direction="maximize"``."""

from __future__ import annotations

from typing import Any

from mipcash.optimizers.goals import Goal, Goals
from mipcash.space.direction import MINIMIZE, direction_of


def goals_of(direction: Any = MINIMIZE) -> Goals:
    """What a study optimises.

    Raises:
        ValueError: no direction.
    """
    return Goals((Goal(direction=direction_of(direction)),))
