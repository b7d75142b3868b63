"""From the live Pyomo model to polynomial rows: Pyomo's own transformations take logic and disjunctions out.

``gdp.bigm`` and ``core.logical_to_linear`` work on a clone, so that the live model stays as the user wrote it. Every
active constraint then reads ``lower <= polynomial <= upper`` with a name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyomo.environ as pyo
from pyomo.gdp import Disjunct, Disjunction

from mipcash.errors import RuleError
from mipcash.space.declaration import Declaration
from mipcash.space.quadratic import Quadratic, Variable, take_apart


@dataclass(frozen=True)
class AlgebraicRow:
    """One constraint of the algebraic model.

    Attributes:
        rule: name of the rule or Pyomo constraint; "" for the structure of a parameter.
        parameter: label of the parameter whose structure this row is, else "".
    """

    rule: str
    parameter: str
    body: Quadratic
    lower: float
    upper: float


@dataclass(frozen=True)
class AlgebraicModel:
    """The rows of a space, and where the declared variables went.

    Attributes:
        rows: all active constraints.
        image: id of a declared variable -> variable that stands for it in the rows.
        transformed: whether logic or disjunctions were transformed.
        model: the model behind the rows. Pyomo's variables refer to their blocks weakly: once a transformed clone is
            collected they lose their names, so whoever reads names must hold this.
    """

    rows: tuple[AlgebraicRow, ...]
    image: Mapping[int, Variable]
    transformed: bool
    model: Any = field(repr=False)


def has_logic(declaration: Declaration) -> bool:
    """Whether the live model holds logical constraints or disjunctions, which only a transformed model expresses."""
    model = declaration.model
    kinds = (pyo.LogicalConstraint, Disjunction, Disjunct)
    return any(True for _ in model.component_data_objects(kinds, active=True, descend_into=(pyo.Block, Disjunct)))


def algebraic_model(declaration: Declaration) -> AlgebraicModel:
    """Collect the rows of a declared space.

    Raises:
        RuleError: a constraint of degree above two, or a disjunct whose terms are unbounded.
    """
    model, declared = declaration.model, _declared_variables(declaration)
    transformed = has_logic(declaration)
    image = {id(v): v for v in declared}
    if transformed:
        model.mipcash_declared = (
            declared  # a plain list travels with the clone and comes back with the clone's variables
        )
        try:
            clone = model.clone()
        finally:
            del model.mipcash_declared
        image = {id(v): c for v, c in zip(declared, clone.mipcash_declared, strict=True)}
        model = _without_logic(clone)
    return AlgebraicModel(tuple(_rows(model)), image, transformed, model)


def _declared_variables(declaration: Declaration) -> list[Variable]:
    listed = [v for g in declaration.groups for v in g.variables] + [n.variable for n in declaration.numbers]
    blocks = [declaration.model.parameters[label] for label in declaration.conditions]
    conjunctions = [block.on for block in blocks if block.component("conjunction") is not None]
    return listed + conjunctions + [link.variable for link in declaration.links]


def _without_logic(model: Any) -> Any:
    try:
        if any(True for _ in model.component_data_objects((Disjunction, Disjunct), descend_into=(pyo.Block, Disjunct))):
            pyo.TransformationFactory("gdp.bigm").apply_to(model)
        pyo.TransformationFactory("core.logical_to_linear").apply_to(model)
    except Exception as error:
        raise RuleError(
            f"the disjunctions or logical constraints of the Pyomo model cannot be transformed: {error}. "
            "Give every variable in a disjunct finite bounds, and use every Disjunct in a Disjunction"
        ) from error
    return model


def _rows(model: Any) -> Iterator[AlgebraicRow]:
    for data in model.component_data_objects(pyo.Constraint, active=True, descend_into=pyo.Block):
        rule, parameter = _origin(data)
        body = take_apart(data.body, f"constraint {data.name!r}" if not rule else f"rule {rule!r}")
        lower, upper = pyo.value(data.lower), pyo.value(data.upper)
        yield AlgebraicRow(
            rule,
            parameter,
            body,
            -math.inf if lower is None else float(lower),
            math.inf if upper is None else float(upper),
        )


def _origin(data: Any) -> tuple[str, str]:
    component, index = data.parent_component(), data.index()
    if component.local_name == "rules" and component.parent_block() is data.model():
        return (index[0] if isinstance(index, tuple) else index), ""
    block = data.parent_block()
    if block.parent_component().local_name == "parameters":
        return "", str(block.index())
    return data.name, ""
