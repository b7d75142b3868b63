"""Checks of the arguments of a study, made before anything is opened."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from mipcash.optimizers.objectives import Objectives
from mipcash.optimizers.optimizer import Limit
from mipcash.optimizers.outcome import LOSS
from mipcash.study.records.limits import limits_of
from mipcash.text import listed, shown


def whole_number(name: str, value: Any, least: int) -> int:
    """Return a whole number as an int. Raise ValueError if it is none (a bool is none), or below ``least``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number, at least {least}, got {shown(value)}")
    return int(value)


def positive(name: str, value: Any, unit: str = "seconds") -> float | None:
    """Return a limit as a float, or None for no limit (None or infinity).

    Raises:
        ValueError: the limit is no number above 0; the message calls it ``name``.
    """
    if value is None:
        return None
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if not number > 0:
        raise ValueError(f"{name} must be a positive number of {unit}, or None for no limit; got {shown(value)}")
    return None if math.isinf(number) else number


def costs_of(given: Any, limits: Sequence[Limit], unasked: bool = False) -> dict[str, float]:
    """Return the cost of one evaluation of each output, by name. An empty dict means that outputs are evaluated together.

    Args:
        unasked: True if the caller gave one function per output, but no costs.

    Raises:
        ValueError: the costs are no mapping by name, one is not a finite number above 0, or the loss or a constrained output has
            none.
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
                f"costs= needs a cost for every output, and that of {name!r} is missing; there are only those of "
                f"{listed(found)}; add it, in the same unit"
            )
    return found


def check_objectives(
    objectives: Objectives,
    costs: Mapping[str, float],
    pruning: Any = None,
    confirm: Any = None,
    limits: Sequence[Limit] = (),
) -> None:
    """Check that the other arguments fit the objectives. Decoupled evaluations, pruning and ``confirm=`` need a single loss.
    Decoupled evaluations and pruning also need a space without a fidelity.

    Raises:
        ValueError: there are several objectives, or a fidelity, and one of these arguments is given; or a limit is on
            ``loss``, which is not one of the several objectives.
    """
    for given, what in (
        (costs, "costs= is for decoupled evaluation, one function per output: let one function return all outputs"),
        (pruning, "pruning= compares evaluations step by step: leave it out, low fidelities take its place"),
    ):
        if given and objectives.fidelity is not None:
            raise ValueError(f"the space has the fidelity {objectives.fidelity.label!r}, and {what}")
    if not objectives.several:
        return
    for given, what in (
        (
            costs,
            "costs= is for decoupled evaluation of one loss: leave it out, and let one function return all outputs",
        ),
        (pruning, "pruning= stops what is clearly worse by one loss: leave it out"),
        (confirm, "confirm= evaluates again what has the lowest loss: leave it out"),
    ):
        if given:
            raise ValueError(f"there are several objectives, {listed(objectives.names)}, and {what}")
    if LOSS not in objectives.names and any(limit.output == LOSS for limit in limits):
        raise ValueError(
            f"limits= has a limit on 'loss', and the objectives are {listed(objectives.names)}; put the limit on one of them, or "
            "return the other output under another name"
        )


def costs_by_output(objective: Any, given: Any, limits: Any) -> dict[str, float]:
    """Return the cost of each function of an objective, or an empty dict if the objective is one function.

    Args:
        given: the caller's costs; None: 1 each.
        limits: the outcome constraints, as the caller gave them.

    Raises:
        ValueError: costs are given for a single function, they do not name exactly the functions, or an output with an outcome
            constraint has no function.
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
    """Check that there is one cost for each function of an objective.

    Raises:
        ValueError: the names of functions and costs differ.
    """
    names = list(objective) if isinstance(objective, Mapping) else []
    if set(names) != set(costs):
        raise ValueError(
            f"the objective is {f'of functions for {listed(names)}' if names else 'one function'}, and there are costs of "
            f"{listed(costs) if costs else 'none'}; costs= name each function of the objective, and nothing else"
        )
