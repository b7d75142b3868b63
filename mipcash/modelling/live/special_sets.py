"""Special ordered sets as rules: of variables in a given order, at most n consecutive ones may differ from 0.

Notation
    x_i     the variables in the order of their weights
    d_i     1 if x_i differs from 0: a sum of levels if x_i has levels, x_i itself if it is binary, else an auxiliary
            variable with low d <= x <= high d
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import pyomo.environ as pyo

from mipcash.errors import RuleError
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.live.derived import auxiliary_block, write
from mipcash.modelling.names import user_name

SET_LIMIT = 256
"""Largest number of variables of one special ordered set; each may need a binary and a row over all that follow it."""


def special_set_key(data: Any) -> Hashable:
    """Return a key that changes whenever a special ordered set, or a bound that its rows use, changes."""
    return (
        data.level,
        tuple((id(v), float(w), v.fixed, v.value if v.fixed else None, *v.bounds) for v, w in data.get_items()),
    )


def write_special_set(declaration: Declaration, data: Any) -> None:
    """Write the rules of an active ``SOSConstraint``.

    Raises:
        RuleError: too many variables, or one without finite bounds.
    """
    name, members = data.name, [v for v, _ in sorted(data.get_items(), key=lambda item: item[1])]
    if len(members) > SET_LIMIT:
        raise RuleError(
            f"SOSConstraint {name!r} has {len(members)} variables, more than {SET_LIMIT}; split it, or declare a categorical "
            "parameter that says which of them may differ from 0"
        )
    block = auxiliary_block(declaration, name)
    block.differs = pyo.Var(range(len(members)), domain=pyo.Binary)
    relations: list[Any] = []
    differs = [_differs(declaration, name, v, block.differs[i], relations) for i, v in enumerate(members)]
    n = data.level
    relations.append(sum(differs) <= n)
    for i, d in enumerate(differs):
        later = differs[i + n :]
        if n > 1 and later:
            relations.append(sum(later) <= min(n, len(later)) * (1 - d))
    write(declaration, name, special_set_key(data), relations)


def _differs(declaration: Declaration, name: str, variable: Any, auxiliary: Any, relations: list[Any]) -> Any:
    """Return d_i as an expression; add the rows that an auxiliary variable needs."""
    if variable.fixed:
        return int(variable.value != 0)
    link = next((link for link in declaration.links if link.variable is variable), None)
    if link is not None and not link.value.constant and all(v.is_binary() for v in link.value.variables.values()):
        return sum(link.value.variables[i] for i in link.value.linear)
    low, high = (math.nan if b is None else float(b) for b in variable.bounds)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuleError(
            f"SOSConstraint {name!r} holds {user_name(variable)!r}, which has no finite bounds; set both (setlb, setub)"
        )
    if low > 0 or high < 0:
        return 1
    if not variable.is_continuous() and low >= 0 and high <= 1:
        return variable
    relations += [variable <= high * auxiliary, variable >= low * auxiliary]
    return auxiliary
