"""What a study is given, checked before anything is opened."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from mipcash.optimizers.goals import Goals
from mipcash.optimizers.optimizer import Limit
from mipcash.optimizers.outcome import LOSS
from mipcash.study.records.limits import limits_of
from mipcash.study.text import listed, shown


def seed_of(seed: Any) -> int:
    """A whole number >= 0."""
    try:
        number = operator.index(seed)
    except TypeError:
        raise ValueError(f"seed must be a whole number, at least 0, got {shown(seed)}") from None
    if number < 0:
        raise ValueError(f"seed must be a whole number, at least 0, and not be negative; got {number}")
    return number


def retries_of(retries: Any) -> int:
    """A whole number >= 0."""
    try:
        number = operator.index(retries)
    except TypeError:
        number = -1
    if number < 0:
        raise ValueError(f"retries must be a whole number, at least 0, got {shown(retries)}")
    return number


def seconds_of(name: str, seconds: Any) -> float | None:
    """A limit in seconds, > 0; None: there is none, which infinity says too.

    Raises:
        ValueError: it is none, by its name.
    """
    if seconds is None:
        return None
    number = float(seconds) if isinstance(seconds, Real) and not isinstance(seconds, bool) else math.nan
    if not number > 0:
        raise ValueError(f"{name} must be a positive number of seconds, or None for no limit; got {shown(seconds)}")
    return None if math.isinf(number) else number


def costs_of(given: Any, limits: Sequence[Limit], unasked: bool = False) -> dict[str, float]:
    """What one evaluation of an output costs, by name; empty: outputs are evaluated together.

    Args:
        unasked: the caller gave functions, and no costs.

    Raises:
        ValueError: no such costs, one that is not above 0, or none of the loss or of a limited output.
    """
    if given is None or given == {}:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ValueError(
            f'costs are given by the name of their output, costs={{"loss": 60, "latency_ms": 1}}; got {shown(given)}'
        )
    found = {}
    for name, cost in given.items():
        number = float(cost) if isinstance(cost, Real) and not isinstance(cost, bool) else math.nan
        if not 0.0 < number < math.inf:
            raise ValueError(f"the cost of {name!r} must be a finite number above 0, got {shown(cost)}")
        found[name] = number
    for name in (LOSS, *(limit.output for limit in limits)):
        if name not in found:
            if unasked:
                raise ValueError(
                    f"there is a limit on {name!r}, and no function for it among those of the objective, {listed(found)}; add it, "
                    "or leave the limit out"
                )
            raise ValueError(
                f"costs say what each output costs that is evaluated apart, and none of {name!r} is given, only those of "
                f"{listed(found)}; add it, in the same unit"
            )
    return found


def check_goals(goals: Goals, costs: Mapping[str, float], pruning: Any = None, confirm: Any = None) -> None:
    """Several objectives come out of one function, whole, and no order among configurations follows from them.

    Raises:
        ValueError: something is given that is for one loss alone.
    """
    if not goals.several:
        return
    for given, what in (
        (costs, "costs= is for outputs that are evaluated apart: let one function return all of them"),
        (pruning, "pruning= stops what is clearly worse by one loss: leave it out"),
        (confirm, "confirm= evaluates again what has the lowest loss: leave it out"),
    ):
        if given:
            raise ValueError(f"there are several objectives, {listed(goals.names)}, and {what}")


def costs_by_output(objective: Any, given: Any, limits: Any) -> dict[str, float]:
    """Costs of the functions of an objective; empty where it is one function.

    Args:
        given: what the caller says; None: 1 each.
        limits: as the caller gave them.

    Raises:
        ValueError: costs of one function, or not those of the functions; a limit on what none of them gives.
    """
    if not isinstance(objective, Mapping):
        if given is None:
            return {}
        raise ValueError(
            "costs= are of outputs that are functions of their own, and the objective is one function, which gives all outputs "
            'together; pass a function per output, {"loss": f, "latency_ms": g}, or leave costs= out'
        )
    costs = costs_of(dict.fromkeys(objective, 1.0) if given is None else given, limits_of(limits), given is None)
    check_costs(objective, costs)
    return costs


def check_costs(objective: Any, costs: Mapping[str, float]) -> None:
    """Costs are those of the functions of an objective.

    Raises:
        ValueError: they are not.
    """
    names = list(objective) if isinstance(objective, Mapping) else []
    if set(names) != set(costs):
        raise ValueError(
            f"the objective is {f'of functions for {listed(names)}' if names else 'one function'}, and there are costs of "
            f"{listed(costs) if costs else 'none'}; costs= name each function of the objective, and nothing else"
        )
