"""Adoption of an existing Pyomo model: its variables become parameters, its constraints become rules.

    binary, integer, evenly spaced    integer parameter; up to ``expand_limit`` levels it is expanded, x == sum_l v_l z_l
    any other finite set of numbers   ordinal parameter, expanded
    bounded real                      real parameter; if its domain has holes, with a binary per interval
    BooleanVar                        categorical parameter with the values False and True

Variables named in ``auxiliary`` are no parameters: they occur in constraints but not in configurations. Neither are indicators of
disjuncts, the inner variables of a ``Piecewise``, variables that are fixed or whose bounds leave one value, and variables of
deactivated blocks. Every component of the model is supported, or refused by name (see
``mipcash.modelling.live.components``). A refused model is left unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyomo.environ as pyo
from pyomo.core.base.piecewise import Piecewise
from pyomo.gdp import Disjunct

from mipcash.errors import SpaceError
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.declared import Link, Number
from mipcash.modelling.domains import Categorical, Integer, Ordinal
from mipcash.modelling.formulas import ALWAYS
from mipcash.modelling.live.components import BLOCKS, check_live_model, owners, refuse_unknown
from mipcash.modelling.live.holes import bound_by_rows, write_pieces
from mipcash.modelling.live.value_sets import Constant, Pieces, Values, values_of
from mipcash.modelling.parameters import NumericParameter
from mipcash.modelling.quadratic import parse_quadratic

FIXED, OFF = "was fixed", "was part of a deactivated block"


NEARLY = 1e-3
"""Distance below which a bound of an integer that is not whole is rounded; other bounds may follow a Param."""


def adopt_model(declaration: Declaration, model: Any, auxiliary: Iterable[str]) -> None:
    """Turn the variables of ``model`` into parameters of ``declaration`` (in place, on the live model).

    Args:
        auxiliary: names of auxiliary variables: variables, indexed variables, or blocks (everything in them).

    Raises:
        SpaceError: not a concrete model, a variable without finite bounds, an unknown name in ``auxiliary``, or a component
            that can be neither supported nor ignored.
        RuleError: a constraint that is not a relation of degree at most two.
    """
    if not isinstance(model, pyo.ConcreteModel):
        raise SpaceError(
            f"from_pyomo needs a pyomo ConcreteModel, got {type(model).__name__}; an abstract model must be instantiated first "
            "(model.create_instance())"
        )
    refuse_unknown(model)
    variables = _searched(model, set(auxiliary))
    before, declaration.model = declaration.model, model
    undo: list[Callable[[], None]] = []
    try:
        declaration.install_components()
        undo += [lambda: model.del_component("rules"), lambda: model.del_component("parameters")]
        for variable in variables:
            _adopt_one(declaration, variable, undo)
        check_live_model(declaration)
    except Exception:
        for step in reversed(undo):
            step()
        declaration.model = before
        raise


def _searched(model: Any, skip: set[str]) -> list[Any]:
    """Return the variables that are not auxiliary."""
    found, names = list[Any](), set[str]()
    booleans = list(model.component_data_objects(pyo.BooleanVar, descend_into=BLOCKS))
    associated = {id(b.get_associated_binary()) for b in booleans if b.get_associated_binary() is not None}
    for variable in [*model.component_data_objects(pyo.Var, descend_into=BLOCKS), *booleans]:
        if id(variable) in associated:
            continue
        around = [variable.name, variable.parent_component().name, *(b.name for b in owners(variable))]
        names.update(around)
        found += [] if skip & set(around) else [variable]
    if unknown := skip - names:
        raise SpaceError(
            f"auxiliary names {sorted(unknown)} are not variables of the model; it has "
            f"{[v.name for v in model.component_data_objects(pyo.Var, descend_into=pyo.Block)]}"
        )
    return found


def _adopt_one(declaration: Declaration, variable: Any, undo: list[Callable[[], None]]) -> None:
    blocks, left_out = list(owners(variable)), declaration.parts.left_out
    if any(isinstance(b.parent_component(), Piecewise) for b in blocks):
        if not variable.fixed and variable.ctype is pyo.Var:
            undo.append(_restore(variable))
            bound_by_rows(variable)
    elif variable.fixed:
        if variable.value is None:
            raise SpaceError(
                f"variable {variable.name!r} is fixed without a value; give it one (fix(value)) or unfix it"
            )
        left_out[id(variable)] = variable, FIXED
    elif not all(b.active for b in blocks):
        left_out[id(variable)] = variable, OFF
    elif any(b.ctype is Disjunct for b in blocks):
        if variable.local_name not in ("indicator_var", "binary_indicator_var"):
            raise SpaceError(
                f"variable {variable.name!r} belongs to a Disjunct, so that configurations would have to show it only there; "
                "move it out of the disjunct to make it a parameter, or name it in auxiliary="
            )
    elif variable.ctype is pyo.BooleanVar:
        if variable.get_associated_binary() is None:
            undo.append(lambda: setattr(variable, "_associated_binary", None))
        _adopt_boolean(declaration, variable)
    else:
        undo.append(_restore(variable))
        _adopt(declaration, variable, values_of(variable))


def _restore(variable: Any) -> Callable[[], None]:
    """Return a function that restores a variable to its present state."""
    domain, low, high = variable.domain, variable._lb, variable._ub

    def restore() -> None:
        variable.unfix()
        variable.domain, variable._lb, variable._ub = domain, low, high

    return restore


def _adopt(declaration: Declaration, variable: Any, values: Values) -> None:
    name = variable.name
    if isinstance(values, Constant):
        variable.fix(values.value)
        declaration.parts.left_out[id(variable)] = (variable, f"could only be {values.value:g}")
        return
    block = declaration.block(name)
    block.on_expression = ALWAYS
    domain = values.hull if isinstance(values, Pieces) else values
    if isinstance(domain, Ordinal) or (isinstance(domain, Integer) and len(domain) <= declaration.expand_limit):
        declaration.declare(name, domain, None)
        value = sum(v * block.z[l] for l, v in enumerate(domain.values))
        block.link = pyo.Constraint(expr=variable == value)
        declaration.links.append(Link(variable, parse_quadratic(value, f"the value of {name!r}")))
        low, high = float(min(domain.values)), float(max(domain.values))
    else:
        low, high = float(domain.low), float(domain.high)
        if isinstance(domain, Integer):
            for bound, whole, put in ((variable.lb, low, variable.setlb), (variable.ub, high, variable.setub)):
                if bound is not None and 0.0 < abs(bound - whole) < NEARLY:
                    put(whole)
        declaration.parameters[name] = NumericParameter(name, domain, True, variable, block)
        declaration.numbers.append(Number(name, variable, domain, None, tuned=True))
        if isinstance(domain, Integer) and domain.step > 1:
            block.k = pyo.Var(domain=pyo.Integers, bounds=(0, len(domain.values) - 1))
            block.on_grid = pyo.Constraint(expr=variable == domain.low + domain.step * block.k)
    if isinstance(values, Pieces):
        write_pieces(declaration, variable, values)
    declaration.parts.remember(variable, low, high)


def _adopt_boolean(declaration: Declaration, boolean: Any) -> None:
    name, binary = boolean.name, boolean.get_associated_binary()
    declaration.declare(name, Categorical((False, True)), None)
    block = declaration.block(name)
    if binary is None:
        boolean.associate_binary_var(block.z[1])
    else:
        block.link = pyo.Constraint(expr=binary == block.z[1])
        declaration.links.append(Link(binary, parse_quadratic(1 * block.z[1], f"the value of {name!r}")))
