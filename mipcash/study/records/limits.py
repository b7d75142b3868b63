"""Outcome constraints as a user gives them, and as a storage holds them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mipcash.optimizers.optimizer import Limit
from mipcash.text import shown

LimitsGiven = Mapping[str, float | Sequence[float | None]] | None
"""By output: an upper limit, or (low, high) with None for no limit."""


def limits_of(given: LimitsGiven) -> tuple[Limit, ...]:
    """Return outcome constraints as an optimizer takes them, from e.g. ``{"latency_ms": 5.0, "accuracy": (0.9, None)}``.

    The loss may be constrained too: an upper limit is the level that a recommended trial must reach.

    Raises:
        ValueError: a name is no text or empty, an end is no number, a pair is malformed, no end is finite, or a limit is True or
            False, which gives no direction.
    """
    if not isinstance(given, (Mapping, type(None))):
        raise ValueError(
            f'limits are given by the name of their output, limits={{"latency_ms": 5.0}}; got {shown(given)}'
        )
    for name in given or {}:
        if not isinstance(name, str) or not name.strip():
            raise ValueError(
                f"a limit has the name of an output of the objective, a text that is not empty; got {shown(name)}"
            )
    return tuple(Limit(name, *_ends(name, ends)) for name, ends in (given or {}).items())


def stored_limits(limits: Sequence[Limit]) -> dict[str, list[float | None]]:
    """Return constraints as a storage holds them, with None for no limit."""
    return {l.output: [end if math.isfinite(end) else None for end in (l.low, l.high)] for l in limits}


def read_limits(stored: Mapping[str, Sequence[float | None]]) -> tuple[Limit, ...]:
    """Return the constraints from what ``stored_limits`` gave."""
    return limits_of({name: tuple(ends) for name, ends in stored.items()})


def _ends(name: str, given: Any) -> tuple[float, float]:
    if isinstance(given, (bool, np.bool_)):
        raise ValueError(
            f"the limit on {name!r} is {given}, which does not say in which direction: (1, None) is for what must be true, 0 for "
            "what must be false"
        )
    pair = given if isinstance(given, (tuple, list)) else (None, given)
    try:
        low, high = pair
        if isinstance(low, str) or isinstance(high, str):
            raise TypeError("a text is no number")
        return (-math.inf if low is None else float(low)), (math.inf if high is None else float(high))
    except (TypeError, ValueError):
        raise ValueError(
            f"the limit on {name!r} is a number that the output may not exceed, or a pair (low, high) with None for no "
            f"limit; got {shown(given)}"
        ) from None
