"""Goals as a user gives them: ``direction="maximize"``, ``objectives=["loss", "latency_ms"]``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mipcash.errors import SpaceError
from mipcash.optimizers.goals import Goal, Goals
from mipcash.space.direction import MINIMIZE, direction_of
from mipcash.study.text import listed, shown

ObjectivesGiven = Sequence[str] | Mapping[str, str] | None
"""Names of outputs, or directions by name."""


def goals_of(direction: Any = MINIMIZE, objectives: Any = None) -> Goals:
    """What a study optimises.

    Args:
        direction: of the loss, or of all objectives that are given by their names alone.
        objectives: names, or directions by name; None: the loss.

    Raises:
        ValueError: no direction, no names, one alone, or one twice.
    """
    direction = direction_of(direction)
    if objectives is None:
        return Goals((Goal(direction=direction),))
    if isinstance(objectives, str) or not isinstance(objectives, (Sequence, Mapping)):
        raise ValueError(
            f'objectives are names of outputs, objectives=["loss", "latency_ms"], or directions by name, {{"accuracy": "maximize", '
            f'"latency_ms": "minimize"}}; got {shown(objectives)}'
        )
    for name in objectives:
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"an objective has the name of an output, a text that is not empty; got {shown(name)}")
        if list(objectives).count(name) > 1:
            raise ValueError(f"the objective {name!r} is given twice; give each once")
    if len(objectives) < 2:
        raise ValueError(
            f"objectives= is for several, and {listed(objectives) if objectives else 'none'} was given; for one leave it out: what "
            'the objective returns, or its "loss", is minimised, or maximised with direction="maximize"'
        )
    if not isinstance(objectives, Mapping):
        return Goals(tuple(Goal(name, direction) for name in objectives))
    if direction != MINIMIZE:
        raise ValueError("objectives= says where each is to go already; leave direction= out")
    return Goals(tuple(Goal(name, _direction(name, said)) for name, said in objectives.items()))


def _direction(name: str, said: Any) -> str:
    try:
        return direction_of(said)
    except SpaceError as error:
        raise ValueError(f"objective {name!r}: {error}") from None


def stored_goals(goals: Goals) -> dict[str, Any]:
    """What :func:`goals_of` gives these goals for, as its arguments."""
    if not goals.several:
        return {"direction": goals.goals[0].direction}
    return {"objectives": {goal.output: goal.direction for goal in goals.goals}}
