"""Components of a Pyomo model: supported, without meaning for legality, or refused by name.

Every kind of component that is active on the live model is looked up here. A kind that is not listed is refused, so that no
part of a model is silently ignored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyomo.environ as pyo
from pyomo.common.errors import DeveloperError
from pyomo.core.base.set import RangeSet, Set, SetOf
from pyomo.core.expr import logical_expr as logic
from pyomo.core.expr.relational_expr import RelationalExpression
from pyomo.gdp import Disjunct, Disjunction

from mipcash.errors import RuleError, SpaceError
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.live.derived import erase, write
from mipcash.modelling.live.holes import write_auxiliary_domain
from mipcash.modelling.live.special_sets import special_set_key, write_special_set
from mipcash.modelling.live.value_sets import is_plain
from mipcash.modelling.names import user_name
from mipcash.modelling.quadratic import Variable, bounds_of
from mipcash.modelling.refusals import refuse_many_values
from mipcash.modelling.rules import Rule, make_rule
from mipcash.modelling.wording import written

BLOCKS = (pyo.Block, Disjunct)

HONOURED = frozenset(
    {
        *(pyo.Block, Disjunct, Disjunction, pyo.Var, pyo.BooleanVar),
        *(pyo.Constraint, pyo.LogicalConstraint, pyo.SOSConstraint),
    }
)
"""Kinds of components that define legality and that the space supports."""

WITHOUT_MEANING = frozenset(
    {
        *(Set, RangeSet, SetOf, pyo.Param, pyo.Expression, pyo.ExternalFunction),  # act in constraints that use them
        *(pyo.Objective, pyo.Suffix),  # the black box is the objective; big-M suffixes are read by the transformation
        *(pyo.BuildAction, pyo.BuildCheck),  # executed when the model was built
    }
)
"""Kinds that do not affect legality on their own."""

WITHOUT_MEANING_BY_NAME = frozenset({"Port", "Connector", "PiecewiseLinearFunction"})
"""Such kinds from packages that users import themselves; their meaning is in an Arc or in a constraint."""

CURES = {
    "Complementarity": "turn it into disjunctions first: TransformationFactory('mpec.simple_disjunction').apply_to(model)",
    "Arc": "turn it into constraints first: TransformationFactory('network.expand_arcs').apply_to(model)",
    "ContinuousSet": "discretise it first: TransformationFactory('dae.finite_difference').apply_to(model, nfe=...)",
    "DerivativeVar": "discretise it first: TransformationFactory('dae.finite_difference').apply_to(model, nfe=...)",
    "Integral": "discretise it first: TransformationFactory('dae.finite_difference').apply_to(model, nfe=...)",
    "IntervalVar": "write start, end and presence as variables of their own, with constraints between them",
    "SequenceVar": "write the order as constraints, or declare an ordering of modules",
    "MatrixConstraint": "write its rows as a Constraint",
    "ExternalGreyBoxBlock": "write what it computes as constraints of degree at most two, or leave it to the objective",
}
"""Known kinds that are refused -> what to do instead."""


def check_live_model(declaration: Declaration) -> None:
    """Check the live model: refuse unsupported components by name, and write rules for components that are not constraints.

    Call it when the live model has changed, before it is compiled. It may add to ``model.rules``.

    Raises:
        SpaceError: a component that is neither supported nor without meaning, or a variable whose domain was changed.
        RuleError: a constraint that is not of degree at most two, or that no finite program expresses.
    """
    model = declaration.model
    refuse_unknown(model)
    _refuse_changed_variables(declaration)
    for rule in _constraints(declaration):
        _check_rule(declaration, rule)
    refuse_logic(model)
    _refuse_sets_in_disjuncts(model)
    _derive(declaration)


def owners(component: Any) -> Iterator[Any]:
    """Yield the blocks around a component, innermost first, without the model itself."""
    block = component.parent_block()
    while block is not None and block.parent_block() is not None:
        yield block
        block = block.parent_block()


# -- kinds ----------------------------------------------------------------------------------------------------------


def refuse_unknown(model: Any) -> None:
    """Refuse active components of a kind that the space does not support.

    Raises:
        SpaceError: with the name of the component and the remedy.
    """
    on = dict[int, bool]()
    for block in model.block_data_objects(descend_into=BLOCKS):
        on[id(block)] = block.active and on.get(id(block.parent_block()), True)
        for kind in block.collect_ctypes(active=None, descend_into=False):
            listed: list[Any] = list(block.component_map(kind).values())
            for component in listed:
                if kind in HONOURED:
                    if isinstance(component, (Mapping, Sequence)):
                        _refuse_unreadable(component)
                elif not on[id(block)] or kind in WITHOUT_MEANING or kind.__name__ in WITHOUT_MEANING_BY_NAME:
                    break
                elif component.active and not _is_spent(component):
                    _refuse(component, kind.__name__)


def _refuse_unreadable(component: Any) -> None:
    """Refuse a container that calls itself a constraint but makes Pyomo fail when listing its contents, active or not.

    Raises:
        SpaceError: always.
    """
    name, kind = component.name, type(component).__name__
    raise SpaceError(
        f"{name!r} is a component of type {kind}, whose parts Pyomo cannot list with those of the model; "
        f"{CURES.get(kind, 'use an indexed component of its kind')}, and delete it"
    )


def _is_spent(component: Any) -> bool:
    """Return True if a component has no effect: it has no members, only deactivated ones, or is a discretised set."""
    if component.ctype.__name__ == "ContinuousSet":
        return bool(component.get_discretization_info())
    members = list(component.values())
    return not members or not any(getattr(m, "active", True) for m in members)


def _refuse(component: Any, kind: str) -> None:
    cure = CURES.get(kind, "write it as variables and constraints of degree at most two")
    raise SpaceError(
        f"{component.name!r} is a component of type {kind}, which a space cannot obey; {cure}, or deactivate it if it does "
        "not matter"
    )


# -- constraints ----------------------------------------------------------------------------------------------------


def relations_of(declaration: Declaration) -> Iterator[Any]:
    """Yield the active relations that the user added to the model: constraints, logical ones, disjunctions, ordered sets."""
    model: Any = declaration.model
    kinds = (pyo.Constraint, pyo.LogicalConstraint, Disjunction, pyo.SOSConstraint)
    for data in model.component_data_objects(kinds, active=True, descend_into=pyo.Block):
        if data.parent_component() is model.rules or data.parent_block().parent_component() is model.parameters:
            continue
        yield data


def relation_text(relation: Any) -> str:
    """Return a relation of ``relations_of`` as text: an expression, or the alternatives of a disjunction."""
    if relation.ctype is Disjunction:
        alternatives = []
        for disjunct in relation.disjuncts:
            parts = disjunct.component_data_objects(pyo.Constraint, active=True, descend_into=pyo.Block)
            alternatives.append(" and ".join(written(c.expr) for c in parts) or written(disjunct.indicator_var))
        return f"({') or ('.join(alternatives)})"
    expression = getattr(relation, "expr", None)
    return written(expression) if expression is not None else "an ordered set of variables"


def _constraints(declaration: Declaration) -> Iterator[Rule]:
    """Yield the active constraints that the user added to the model, including those in disjuncts, as rules.

    Raises:
        RuleError: a constraint that is no sum of products of variables; one in a disjunct over an integer parameter of many values.
    """
    model: Any = declaration.model
    for data in model.component_data_objects(pyo.Constraint, active=True, descend_into=BLOCKS):
        if data.parent_component() is model.rules or data.parent_block().parent_component() is model.parameters:
            continue
        try:
            rule = make_rule(data.name, data.expr, constant=True)
        except (AttributeError, DeveloperError) as error:
            raise RuleError(
                f"constraint {data.name!r} holds something that is no sum of products of variables ({error}); transform it "
                "with Pyomo first (core.expand_connectors, contrib.piecewise...), or write it out"
            ) from error
        if any(block.ctype is Disjunct for block in owners(data)):
            refuse_many_values(rule.name, rule.body.ids, declaration.numbers)
        yield rule


def _check_rule(declaration: Declaration, rule: Rule) -> None:
    declaration.refuse_foreign(f"constraint {rule.name!r}", rule.body)
    declared = {id(n.variable) for n in declaration.numbers} | {id(link.variable) for link in declaration.links}
    for i, variable in rule.body.variables.items():
        if i in declared or variable.parent_block().parent_component() is declaration.model.component("parameters"):
            continue
        _check_variable(declaration, rule, variable)


def _check_variable(declaration: Declaration, rule: Rule, variable: Variable) -> None:
    """Check a variable that is no parameter: it must be bounded, and its domain must be one that a solver or rows can express.

    Raises:
        SpaceError: the variable was left out when the space was declared, or has no finite bounds.
    """
    parts = declaration.parts
    if id(variable) in parts.left_out:
        why = parts.left_out[id(variable)][1]
        raise SpaceError(
            f"constraint {rule.name!r} uses {variable.name!r}, which {why} when the space was declared and is no parameter; "
            "call from_pyomo as it is meant to be searched, or name it in auxiliary="
        )
    if not is_plain(variable):
        write_auxiliary_domain(declaration, variable)
    low, high = variable.bounds
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        raise SpaceError(
            f"variable {variable.name!r} needs finite bounds, because constraint {rule.name!r} uses it; set both (setlb, setub)"
        )


# -- variables of the adopted model ---------------------------------------------------------------------------------


def _refuse_changed_variables(declaration: Declaration) -> None:
    parts = declaration.parts
    for variable, why in parts.left_out.values():
        back = not variable.fixed and all(b.active for b in owners(variable))
        if back and variable.model() is declaration.model:
            raise SpaceError(
                f"variable {variable.name!r} {why} when the space was declared, so that it is no parameter, and it is free "
                "now; fix it again, or declare the space from the model as it is"
            )
    for number in declaration.numbers:
        if number.tuned and id(number.variable) not in parts.known:
            reach = (float(number.domain.low), float(number.domain.high), *([] if number.on is None else [0.0]))
            parts.remember(number.variable, min(reach), max(reach))
    for known in list(parts.known.values()):
        variable = known.variable
        if variable.model() is not declaration.model:
            tuned = [number.variable for number in declaration.numbers] + [link.variable for link in declaration.links]
            if any(variable is each for each in tuned):
                raise SpaceError(f"a parameter was deleted from the model, {variable.name!r}; declare the space anew")
            del parts.known[id(variable)]
        elif variable.domain is not known.domain:
            raise SpaceError(
                f"the domain of {user_name(variable)!r} was changed after the space was declared; narrow it by "
                "bounds or a constraint, or declare the space anew"
            )
        elif known.impossible():
            raise SpaceError(
                f"{user_name(variable)!r} can take no value: its fixed value or its bounds are outside its domain; correct them"
            )
        elif known.widened():
            raise SpaceError(
                f"the bounds of {user_name(variable)!r} were widened to {list(bounds_of(variable))} after the space "
                f"was declared with {list(known.bounds)}; declare the space with the wider ones"
            )


def _refuse_sets_in_disjuncts(model: Any) -> None:
    for data in model.component_data_objects(pyo.SOSConstraint, active=True, descend_into=BLOCKS):
        if any(b.ctype is Disjunct for b in owners(data)):
            raise SpaceError(
                f"SOSConstraint {data.name!r} is part of a Disjunct, where Pyomo's transformations do not reach it; "
                "move it to the model, or write it with binaries"
            )


# -- components that are not constraints ----------------------------------------------------------------------------


def _derive(declaration: Declaration) -> None:
    """Write rules for special ordered sets, fixed booleans and narrowed levels; delete the rules of components that are gone."""
    parts, wanted = declaration.parts, dict[str, Any]()
    for data in declaration.model.component_data_objects(pyo.SOSConstraint, active=True, descend_into=pyo.Block):
        wanted[data.name] = special_set_key(data)
        if data.name not in parts.derived or parts.derived[data.name].key != wanted[data.name]:
            write_special_set(declaration, data)
    for name, expression, low, high in _restricted(declaration):
        wanted[name] = (low, high)
        if name not in parts.derived or parts.derived[name].key != (low, high):
            relation = expression == low if low == high else pyo.inequality(low, expression, high)
            write(declaration, name, (low, high), [relation])
    domains = {f"the domain of {k.variable.name}" for k in parts.known.values()}
    for name in [n for n in parts.derived if n not in wanted and n not in domains]:
        erase(declaration, name)


def _restricted(declaration: Declaration) -> Iterator[tuple[str, Any, float, float]]:
    """Yield name, expression and bounds of variables that are fixed or narrowed on the live model but not in the program."""
    for boolean in declaration.model.component_data_objects(pyo.BooleanVar, descend_into=BLOCKS):
        binary = boolean.get_associated_binary()
        if boolean.fixed and binary is not None and not binary.fixed:
            if boolean.value is None:
                raise SpaceError(f"{boolean.name!r} is fixed without a value; give it one (fix(True)) or unfix it")
            yield f"{boolean.name} restricted on the model", 1 * binary, float(boolean.value), float(boolean.value)
    for link in declaration.links:
        known = declaration.parts.known.get(id(link.variable))
        if known is not None and (bounds := known.narrowed()) is not None:
            yield f"{user_name(link.variable)} restricted on the model", 1 * link.variable, *bounds
    for level in (v for g in declaration.groups for v in g.variables):
        low, high = bounds_of(level)
        if not level.fixed and (low > 0 or high < 1):
            yield f"{user_name(level)} restricted on the model", 1 * level, low, high


CONNECTIVES = (
    *(logic.NotExpression, logic.XorExpression, logic.EquivalenceExpression, logic.ImplicationExpression),
    *(logic.AndExpression, logic.OrExpression),
)
COUNTS = (logic.AtLeastExpression, logic.AtMostExpression, logic.ExactlyExpression)
"""Their first argument is a number, all other arguments are logical."""


def refuse_logic(model: Any) -> None:
    """Refuse logic that cannot be transformed.

    Raises:
        RuleError: a logical constraint that contains a relation, a count up to a variable or an unknown operator; an active
            disjunct that no active disjunction lists.
    """
    for data in model.component_data_objects(pyo.LogicalConstraint, active=True, descend_into=BLOCKS):
        _check_logic(data.name, data.expr)
    listed = set[int]()
    for data in model.component_data_objects(Disjunction, active=True, descend_into=BLOCKS):
        listed.update(map(id, data.disjuncts))
    for disjunct in model.component_data_objects(Disjunct, active=True, descend_into=BLOCKS):
        if id(disjunct) not in listed:
            raise RuleError(
                f"disjunct {disjunct.name!r} is in no active Disjunction, so that nothing says when it holds; list it in one "
                "(an empty Disjunct may be the alternative), or deactivate it"
            )


def _check_logic(name: str, expression: Any) -> None:
    if isinstance(expression, RelationalExpression):
        raise RuleError(
            f"logical constraint {name!r} holds the relation {expression}; put it into a Disjunct and use its indicator_var, "
            "or use indicators such as layers.boolean(2)"
        )
    if not getattr(expression, "is_expression_type", lambda: False)():
        return
    arguments = list(expression.args)
    if isinstance(expression, COUNTS):
        count = arguments.pop(0)
        if getattr(count, "is_potentially_variable", lambda: False)():
            raise RuleError(
                f"logical constraint {name!r} counts up to {count}, which is not a constant; give the number, or write the "
                "count as a constraint over binaries"
            )
    elif not isinstance(expression, CONNECTIVES):
        raise RuleError(
            f"logical constraint {name!r} uses {type(expression).__name__}, which cannot be turned into rows; write it with "
            "and, or, not, implies, atleast, atmost, exactly"
        )
    for argument in arguments:
        _check_logic(name, argument)
