"""Start from an existing Pyomo model: its variables become parameters, its constraints are the rules.

    binary, bounded integer     integer parameter; up to ``expand_limit`` levels it is expanded, x == sum_l v_l z_l
    bounded real                real parameter
    BooleanVar                  categorical parameter with the values False and True

A variable named in ``auxiliary`` (or the indicator of a disjunct) is left as it is: it occurs in constraints, and
configurations do not show it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pyomo.environ as pyo
from pyomo.gdp import Disjunct

from mipcash.errors import SpaceError
from mipcash.space.declaration import Declaration, Link, Number
from mipcash.space.domains import Categorical, Integer, Real
from mipcash.space.quadratic import take_apart


def adopt_model(declaration: Declaration, model: Any, auxiliary: Iterable[str]) -> None:
    """Turn the variables of ``model`` into parameters of ``declaration`` (in place, on the live model).

    Raises:
        SpaceError: not a concrete model, a variable without finite bounds, an unknown name in ``auxiliary``.
    """
    if not isinstance(model, pyo.ConcreteModel):
        raise SpaceError(
            f"from_pyomo needs a pyomo ConcreteModel, got {type(model).__name__}; an abstract model must be instantiated first "
            "(model.create_instance())"
        )
    found = list(model.component_data_objects(pyo.Var, descend_into=pyo.Block))
    booleans = list(model.component_data_objects(pyo.BooleanVar, descend_into=pyo.Block))
    skip = set(auxiliary)
    unknown = skip - {v.name for v in [*found, *booleans]}
    if unknown:
        raise SpaceError(
            f"auxiliary names {sorted(unknown)} are not variables of the model; it has {[v.name for v in found]}"
        )
    declaration.model = model
    declaration._install_components()
    associated = {id(b.get_associated_binary()) for b in booleans if b.get_associated_binary() is not None}
    for variable in found:
        if variable.name not in skip and not variable.fixed and id(variable) not in associated:
            _adopt(declaration, variable)
    for boolean in booleans:
        if boolean.name not in skip and not boolean.fixed and not isinstance(boolean.parent_block(), Disjunct):
            _adopt_boolean(declaration, boolean)


def _adopt(declaration: Declaration, variable: Any) -> None:
    name, (low, high) = variable.name, variable.bounds
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        raise SpaceError(
            f"variable {name!r} needs finite bounds to be searched; set both (setlb, setub) or name it in auxiliary="
        )
    block = declaration._block(name)
    block.on_expression = 1
    if variable.is_continuous():
        if low == high:
            variable.fix(low)
            return
        domain: Real | Integer = Real(low, high)
    else:
        domain = Integer(math.ceil(low - 1e-9), math.floor(high + 1e-9))
    if isinstance(domain, Integer) and len(domain) <= declaration.expand_limit:
        declaration._declare(name, domain, None)
        value = sum(v * block.z[l] for l, v in enumerate(domain.values))
        block.link = pyo.Constraint(expr=variable == value)
        declaration.links.append(Link(variable, take_apart(value, f"the value of {name!r}")))
    else:
        declaration.parameters[name] = declaration._attach(block, name, domain, variable, tuned=True)
        declaration.numbers.append(Number(name, variable, domain, None, tuned=True))


def _adopt_boolean(declaration: Declaration, boolean: Any) -> None:
    name, binary = boolean.name, boolean.get_associated_binary()
    declaration._declare(name, Categorical((False, True)), None)
    block = declaration._block(name)
    if binary is None:
        boolean.associate_binary_var(block.z[1])
    else:
        block.link = pyo.Constraint(expr=binary == block.z[1])
        declaration.links.append(Link(binary, take_apart(1 * block.z[1], f"the value of {name!r}")))
