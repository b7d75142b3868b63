"""Objectives as a user gives them: ``direction="maximize"``, ``direction=["loss", "latency_ms"]``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mipcash.errors import SpaceError
from mipcash.optimizers.objectives import Objective, Objectives
from mipcash.space.direction import DIRECTIONS, MINIMIZE, direction_of
from mipcash.text import listed, shown

DirectionGiven = str | Sequence[str] | Mapping[str, str]
"""Direction of the loss; or several outputs to minimise, or directions by name."""


def objectives_of(direction: Any = MINIMIZE) -> Objectives:
    """Return the objectives of a study.

    Args:
        direction: of the loss; or of several outputs, by name, or only their names if all are minimised.

    Raises:
        ValueError: no direction, no names, a single name, or a repeated name.
    """
    if isinstance(direction, (set, frozenset)):
        raise ValueError(
            f"direction= is a list of outputs, or a dict of their directions, and {shown(direction)} has no order"
        )
    if isinstance(direction, str) or not isinstance(direction, (Sequence, Mapping)):
        return Objectives((Objective(direction=direction_of(direction)),))
    for name in direction:
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"an objective has the name of an output, a text that is not empty; got {shown(name)}")
        if list(direction).count(name) > 1:
            raise ValueError(f"the objective {name!r} is given twice; give each once")
    if direction and not isinstance(direction, Mapping) and set(direction) <= set(DIRECTIONS):
        raise ValueError(
            f"direction= names outputs, and {listed(direction)} are no names: let the objective return a dict, and give their "
            'directions by name, such as direction={"accuracy": "maximize", "latency_ms": "minimize"}'
        )
    if len(direction) < 2:
        raise ValueError(
            f"direction= names several objectives, and {listed(direction) if direction else 'none'} was given; for one loss it is "
            '"minimize" or "maximize": what the objective returns, or its "loss", goes there'
        )
    if not isinstance(direction, Mapping):
        return Objectives(tuple(Objective(name, MINIMIZE) for name in direction))
    return Objectives(tuple(Objective(name, _direction(name, message)) for name, message in direction.items()))


def _direction(name: str, message: Any) -> str:
    try:
        return direction_of(message)
    except SpaceError as error:
        raise ValueError(f"objective {name!r}: {error}") from None


def direction_given(objectives: Objectives) -> str | dict[str, str]:
    """Return the ``direction`` for which ``objectives_of`` gives these objectives."""
    return (
        {objective.output: objective.direction for objective in objectives.each}
        if objectives.several
        else objectives.each[0].direction
    )
