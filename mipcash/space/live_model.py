"""The live Pyomo model: detection of changes, and the rules that it contains beyond the declared ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyomo.environ as pyo
from pyomo.gdp import Disjunction

from mipcash.errors import RuleError
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.live.components import BLOCKS, HONOURED, refuse_unknown, relations_of
from mipcash.modelling.live.special_sets import special_set_key
from mipcash.modelling.names import user_name
from mipcash.modelling.quadratic import Quadratic
from mipcash.modelling.rules import Rule, make_rule


def signature(declaration: Declaration) -> tuple[object, tuple[object, ...]]:
    """Return a signature of the live model, which changes whenever the legal set changes or a component is added or removed.

    Expressions are distinguished by identity. They are returned with the signature so that the caller keeps them alive.

    Raises:
        SpaceError: the model has a component of a kind that a space does not support.
    """
    model: Any = declaration.model
    parts: list[object] = [len(declaration.parameters), len(declaration.auxiliaries)]
    held: list[object] = []
    found, unusual = _components(model, parts, held)
    if unusual:
        refuse_unknown(model)  # Pyomo itself cannot list the contents of some components
        parts += _others(model, held)
    for data in found:
        kind = data.ctype
        if kind is pyo.Var:
            if data.fixed or data.lb != 0 or data.ub != 1 or not data.is_binary():
                parts.append(
                    (id(data), data.fixed, data.lb, data.ub, data.value if data.fixed else None, id(data.domain))
                )
                held.append(data.domain)
        elif kind is pyo.Constraint or kind is pyo.LogicalConstraint:
            parts.append((id(data), data.active, id(data.expr)))
            held += [data, data.expr]
        elif kind is pyo.BooleanVar:
            if data.fixed:
                parts.append((id(data), data.value))
        elif kind is Disjunction:
            parts.append((id(data), data.active, data.xor, tuple(map(id, data.disjuncts))))
            held += [data, *data.disjuncts]
        else:
            parts.append((id(data), data.active, special_set_key(data) if kind is pyo.SOSConstraint else None))
            held.append(data)
    return tuple(parts), tuple(held)


def _components(model: Any, parts: list[object], held: list[object]) -> tuple[list[Any], bool]:
    """Return the data of the honoured components, and True if there are others than Expressions; add the states of the rest.

    One pass over the model: Pyomo's generators walk it once for each kind.
    """
    found: list[Any] = []
    blocks, unusual = [model], False
    for block in blocks:
        if not block.active:
            parts.append((id(block), False))
        for component in block.component_map().values():
            kind = component.ctype
            if kind is pyo.Expression:
                held += (component, *(expressions := [data.expr for data in component.values()]))
                parts.append((id(component), tuple(map(id, expressions))))
            elif kind not in HONOURED or isinstance(component, (Mapping, Sequence)):
                unusual = True
            else:
                data = list(component.values()) if component.is_indexed() else [component] * bool(len(component))
                found += data if kind is not pyo.Block else ()
                blocks += data if kind in BLOCKS and not component.is_reference() else ()
    return found, unusual


def _others(model: Any, held: list[object]) -> list[object]:
    """Return the state of mutable Params and of components of kinds that are not supported."""
    parts: list[object] = []
    for block in model.block_data_objects(descend_into=BLOCKS):
        for kind in block.collect_ctypes(active=None, descend_into=False) - HONOURED - {pyo.Expression}:
            for component in block.component_map(kind).values():
                state: object = component.active
                if kind is pyo.Param and component.mutable:
                    state = tuple(component.extract_values().items())
                parts.append((id(component), state))
                held.append(component)
    return parts


def active_rules(declaration: Declaration) -> list[Rule]:
    """Return the active rules: declared rules, constraints added to the model directly, fixed variables and narrowed bounds.

    Raises:
        RuleError: a mutable Param in a declared rule has changed since.
    """
    rules: list[Rule] = []
    constraints = declaration.model.rules
    for name, rule in declaration.rules.items():
        keys = [name, (name, "<="), (name, ">=")] + [
            (name, s, k) for k in range(len(rule.parts)) for s in ("==", "<=", ">=")
        ]
        rows = [constraints[k] for k in keys if k in constraints]
        if not rows or any(r.active for r in rows):
            for param, value in declaration.params.get(name, ()):
                if param.value != value:
                    raise RuleError(
                        f"rule {name!r} was declared with {param.name} = {value!r}, which it keeps, and {param.name} is now "
                        f"{param.value!r}; add the relation as a pyomo Constraint to space.model instead, which follows its Params"
                    )
            rules += rule.parts or (rule,)
    derived = [rule for d in declaration.parts.derived.values() for rule in d.rules]
    return rules + derived + _foreign_rules(declaration) + _restrictions(declaration)


def _foreign_rules(declaration: Declaration) -> list[Rule]:
    constraints = (data for data in relations_of(declaration) if data.ctype is pyo.Constraint)
    return [make_rule(data.name, data.expr, constant=True) for data in constraints]


def _restrictions(declaration: Declaration) -> list[Rule]:
    bounds = [(n.variable, n.restriction()) for n in declaration.numbers]
    levels = [v for g in declaration.groups for v in g.variables] + [link.variable for link in declaration.links]
    bounds += [(v, (float(v.value), float(v.value))) for v in levels if v.fixed]
    return [
        Rule(
            f"{user_name(v)} restricted on the model",
            Quadratic(0.0, {id(v): 1.0}, {}, {id(v): v}),
            *interval,
        )
        for v, interval in bounds
        if interval is not None
    ]
