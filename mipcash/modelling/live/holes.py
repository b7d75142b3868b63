"""Domains with holes: values and intervals of a variable as rules over binaries, one per value or interval.

x in [l_1, u_1] or ... or [l_k, u_k]      sum l_i b_i <= x <= sum u_i b_i,  sum b_i = 1
x in {v_1, ..., v_k}                      x = sum v_i b_i,  sum b_i = 1      (auxiliary variables only; a parameter has levels)
x in {v, v + step, ...}                   x = v + step k,  k an integer
"""

from __future__ import annotations

import math
from typing import Any

import pyomo.environ as pyo

from mipcash.modelling.declaration import Declaration
from mipcash.modelling.domains import Integer, Ordinal
from mipcash.modelling.live.derived import auxiliary_block, write
from mipcash.modelling.live.value_sets import Pieces, values_of
from mipcash.modelling.quadratic import interval, parse_quadratic


def write_pieces(declaration: Declaration, variable: Any, pieces: Pieces) -> None:
    """Restrict a variable to a union of intervals. Its domain on the model becomes the reals; its bounds stay."""
    name, parts = f"the domain of {variable.name}", pieces.parts
    block = auxiliary_block(declaration, name)
    block.part = pyo.Var(range(len(parts)), domain=pyo.Binary)
    b = list(block.part.values())
    variable.domain = pyo.Reals
    if variable.lb is None:
        variable.setlb(pieces.hull.low)
    if variable.ub is None:
        variable.setub(pieces.hull.high)
    relations = [
        sum(b) == 1,
        variable >= sum(p.low * x for p, x in zip(parts, b, strict=True)),
        variable <= sum(p.high * x for p, x in zip(parts, b, strict=True)),
    ]
    write(declaration, name, pieces, relations)


def write_auxiliary_domain(declaration: Declaration, variable: Any) -> None:
    """Write the domain of a variable that is no parameter, if Pyomo's types do not describe it completely.

    Raises:
        SpaceError: see ``mipcash.modelling.live.value_sets.values_of``.
    """
    values, name = values_of(variable), f"the domain of {variable.name}"
    if isinstance(values, Pieces):
        write_pieces(declaration, variable, values)
        declaration.parts.remember(variable, values.hull.low, values.hull.high)
        return
    if not isinstance(values, (Integer, Ordinal)):
        return
    if isinstance(values, Integer) and values.step == 1:
        return
    block = auxiliary_block(declaration, name)
    if isinstance(values, Ordinal):
        block.part = pyo.Var(range(len(values.values)), domain=pyo.Binary)
        value = sum(v * block.part[i] for i, v in enumerate(values.values))
        relations = [sum(block.part.values()) == 1]
        low, high = float(min(values.values)), float(max(values.values))
    else:
        block.part = pyo.Var([0], domain=pyo.Integers, bounds=(0, len(values) - 1))
        value, relations = values.low + values.step * block.part[0], []
        low, high = float(values.low), float(values.high)
    whole = isinstance(values, Integer) or all(isinstance(v, int) for v in values.values)
    variable.domain, variable.bounds = pyo.Integers if whole else pyo.Reals, (low, high)
    write(declaration, name, values, [variable == value, *relations])
    declaration.parts.remember(variable, low, high)


def bound_by_rows(variable: Any) -> None:
    """Give an inner variable of a ``Piecewise`` the bounds that the linear rows of its block imply.

    Pyomo leaves weights that add up to 1 without an upper bound, and declares them positive although it means at least 0.
    """
    if variable.is_continuous() and variable.lb == 0:
        variable.domain = pyo.NonNegativeReals
    if variable.lb is not None and variable.ub is not None:
        return
    ends = [-math.inf if variable.lb is None else variable.lb, math.inf if variable.ub is None else variable.ub]
    for row in variable.parent_block().component_data_objects(pyo.Constraint, active=True):
        body = parse_quadratic(row.body, f"constraint {row.name!r}")
        factor = body.linear.get(id(variable))
        if factor is None or body.products:
            continue
        rest = type(body)(
            body.constant, {i: c for i, c in body.linear.items() if i != id(variable)}, {}, body.variables
        )
        low, high = interval(rest, {})
        lower = -math.inf if row.lower is None else pyo.value(row.lower)
        upper = math.inf if row.upper is None else pyo.value(row.upper)
        implied = sorted(((lower - high) / factor, (upper - low) / factor))
        ends = [max(ends[0], implied[0]), min(ends[1], implied[1])]
    if all(map(math.isfinite, ends)):
        variable.bounds = tuple(ends)
