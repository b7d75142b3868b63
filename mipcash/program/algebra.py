"""Conversion of the live Pyomo model to polynomial rows; Pyomo's own transformations resolve logic and disjunctions.

``core.logical_to_linear`` and ``gdp.bigm`` work on a clone, so that the live model stays as the user wrote it. Every
active constraint then reads ``lower <= polynomial <= upper`` with the name that the user knows it by. Constraints from disjuncts
and logical constraints are also kept as before big-M, as rules that apply if the disjunct's indicators are 1. Plain Python then
decides legality without a constant that is larger than all other terms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr.visitor import identify_variables
from pyomo.gdp import Disjunct, Disjunction
from pyomo.gdp.disjunct import DisjunctData
from pyomo.gdp.util import GDP_Error

from mipcash.errors import RuleError
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.indicators import as_pyomo
from mipcash.modelling.quadratic import Quadratic, Variable, interval, parse_quadratic
from mipcash.modelling.rules import Rule, slack_of

BLOCKS = (pyo.Block, Disjunct)
CONSTANT_LOGIC = 12
"""Largest number of Boolean variables of a logical constraint for which all values are tried to find out if it is constant."""


@dataclass(frozen=True)
class AlgebraicRow:
    """One constraint of the algebraic model.

    Attributes:
        rule: name of the rule or Pyomo constraint; "" for the structure of a parameter.
        parameter: label of the parameter whose structure this row is, else "".
        slack: tolerance of the bounds; that of the rule before big-M, if there is one.
    """

    rule: str
    parameter: str
    body: Quadratic
    lower: float
    upper: float
    slack: float


@dataclass(frozen=True)
class AlgebraicModel:
    """The rows of a space, and the variables in them that represent the declared ones.

    Attributes:
        rows: all active constraints.
        image: id of a declared variable -> variable that represents it in the rows.
        logic: disjunctions and logical constraints as rules, over the variables of the live model (and those that exist only in
            the transformed model).
        model: the model behind the rows. Pyomo's variables refer to their blocks weakly: once a transformed clone is
            collected they lose their names, so code that reads names must hold this.
    """

    rows: tuple[AlgebraicRow, ...]
    image: Mapping[int, Variable]
    logic: tuple[Rule, ...]
    model: Any = field(repr=False)


def has_logic(declaration: Declaration) -> bool:
    """Return True if the live model contains logical constraints or disjunctions, which only a transformed model expresses."""
    model = declaration.model
    kinds = (pyo.LogicalConstraint, Disjunction, Disjunct)
    return any(True for _ in model.component_data_objects(kinds, active=True, descend_into=BLOCKS))


def algebraic_model(declaration: Declaration) -> AlgebraicModel:
    """Collect the rows of a declared space.

    Raises:
        RuleError: a constraint of degree above two, or logic that cannot be transformed (e.g. an unbounded disjunct).
    """
    model, declared = declaration.model, _declared_variables(declaration)
    if not has_logic(declaration):
        rows = tuple(_row(declaration, data, *_origin(data)) for data in _constraints(model))
        return AlgebraicModel(rows, {id(v): v for v in declared}, (), model)
    model.mipcash_declared = declared  # a plain list is cloned with the model and then contains the clone's variables
    model.mipcash_all = list(model.component_data_objects(pyo.Var, descend_into=BLOCKS))
    try:
        clone = model.clone()
        originals = model.mipcash_all
    finally:
        del model.mipcash_declared, model.mipcash_all
    for variable in clone.mipcash_declared:
        as_pyomo(variable)
    image = {id(v): c for v, c in zip(declared, clone.mipcash_declared, strict=True)}
    back = {id(c): v for v, c in zip(originals, clone.mipcash_all, strict=True)}
    groups = {id(image[id(v)]): k for k, g in enumerate(declaration.groups) for v in g.variables}
    rows, logic = _Transformed(clone).collect(declaration, groups)
    return AlgebraicModel(rows, image, tuple(_renamed(rule, back) for rule in logic), clone)


def _declared_variables(declaration: Declaration) -> list[Variable]:
    listed = [v for g in declaration.groups for v in g.variables] + [n.variable for n in declaration.numbers]
    blocks = [declaration.model.parameters[label] for label in declaration.conditions]
    activities = [block.on for block in blocks if block.component("activity") is not None]
    places = [declaration.place_of(number) for number in declaration.numbers]
    listed += [place for place in places if place is not None]
    return listed + activities + [link.variable for link in declaration.links]


class _Transformed:
    """A clone with transformed logic and disjunctions, which maps each row back to what the user wrote."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.plain = {id(data) for data in _constraints(model)}
        self.names: dict[int, str] = {}
        """id of a constraint that the transformations made -> name of its source."""
        self.owner: dict[int, Any] = {}
        """id of a disjunct -> disjunct that contains its disjunction, None at the top."""
        disjunctions = list(model.component_data_objects(Disjunction, active=True, descend_into=BLOCKS))
        for disjunction in disjunctions:
            for disjunct in disjunction.disjuncts:
                self.owner[id(disjunct)] = _disjunct_of(disjunction)
        self._take_out_logic()
        self.bigm = pyo.TransformationFactory("gdp.bigm")
        if any(True for _ in model.component_data_objects((Disjunction, Disjunct), descend_into=BLOCKS)):
            try:
                self.bigm.apply_to(model)
            except GDP_Error as error:
                raise RuleError(
                    f"the disjunctions of the Pyomo model cannot be transformed: {str(error).strip().rstrip('.')}. Each Disjunct "
                    "belongs into one Disjunction, and each variable in it needs finite bounds"
                ) from error
        for disjunction in disjunctions:
            if disjunction.algebraic_constraint is not None:
                self.names[id(disjunction.algebraic_constraint)] = disjunction.name

    def _take_out_logic(self) -> None:
        """Transform logical constraints one by one, so that the rows of each bear its name.

        Raises:
            RuleError: a logical constraint that cannot be transformed, or that never holds.
        """
        listed = self.model.component_data_objects(pyo.LogicalConstraint, active=True, descend_into=BLOCKS)
        for data in list(listed):
            before = {id(c) for c in _constraints(self.model, BLOCKS)}
            try:
                pyo.TransformationFactory("core.logical_to_linear").apply_to(self.model, targets=[data])
            except ImportError as error:
                raise RuleError(
                    f"logical constraint {data.name!r} needs the package sympy ({error}); pip install sympy"
                ) from error
            except (ValueError, TypeError, RuntimeError, NotImplementedError) as error:
                raise RuleError(
                    f"logical constraint {data.name!r} cannot be transformed: {error}. Write it with land, lor, lnot, "
                    "implies, equivalent, exactly, atleast and atmost over Boolean variables"
                ) from error
            except AttributeError as error:  # raised by sympy's constants: the logic simplified to one
                self._settle_constant(data, error)
                continue
            made = [c for c in _constraints(self.model, BLOCKS) if id(c) not in before]
            self.names.update((id(c), data.name) for c in made)
        for component in list(self.model.component_objects(pyo.LogicalConstraint, descend_into=BLOCKS)):
            component.deactivate()  # a later transformation reads whole components, including deactivated members

    def _settle_constant(self, data: Any, error: AttributeError) -> None:
        """Deactivate a logical constraint that always holds.

        Raises:
            RuleError: it never holds, or it is not constant after all.
        """
        variables = [v for v in identify_variables(data.expr) if v.ctype is pyo.BooleanVar]
        if len(variables) <= CONSTANT_LOGIC:
            truths = [_truth(data.expr, variables, values) for values in product((False, True), repeat=len(variables))]
            if all(truths):
                data.deactivate()
                return
            if not any(truths):
                raise RuleError(
                    f"logical constraint {data.name!r} can never hold; drop it or check its terms"
                ) from error
        raise RuleError(
            f"logical constraint {data.name!r} cannot be transformed ({error}); write it without parts that always or never hold"
        ) from error

    def collect(
        self, declaration: Declaration, groups: Mapping[int, int]
    ) -> tuple[tuple[AlgebraicRow, ...], list[Rule]]:
        """Return all rows, and the constraints from logic and disjunctions as rules that apply under indicators.

        Args:
            groups: id of a binary of the clone -> the number of its one-hot group.
        """
        rows, logic, seen = [], list[Rule](), set[int]()
        for data in _constraints(self.model):
            if id(data) in self.plain:
                rows.append(_row(declaration, data, *_origin(data)))
                continue
            source = self._source(data)
            rule = self._rule(source)
            if rule is None:
                continue
            if rule.when and id(source) in seen:
                continue  # _relaxed wrote both bounds when it met the first row of this constraint
            rows += (
                _relaxed(rule, groups)
                if rule.when
                else [replace(_row(declaration, data, rule.name, ""), slack=rule.slack)]
            )
            if id(source) not in seen:  # big-M made two rows of a relation with two bounds
                seen.add(id(source))
                logic.append(rule)
        return tuple(rows), logic

    def _source(self, data: Any) -> Any:
        """Return the constraint before big-M."""
        try:
            return self.bigm.get_src_constraint(data)
        except GDP_Error:
            return data

    def _rule(self, source: Any) -> Rule | None:
        """Return a constraint as a rule under the indicators of the disjuncts around it; None if an indicator is fixed at 0."""
        name = self.names.get(id(source), source.name)
        body, lower, upper = _taken(source, f"constraint {name!r}")
        when = []
        disjunct = _disjunct_of(source)
        while disjunct is not None:
            indicator = disjunct.binary_indicator_var
            if not indicator.fixed:
                when.append(parse_quadratic(1 * indicator, f"the indicator of {disjunct.name!r}"))
            elif indicator.value < 0.5:
                return None
            disjunct = self.owner.get(id(disjunct))
        return Rule(name, body, lower, upper, tuple(when))


def _relaxed(rule: Rule, groups: Mapping[int, int]) -> list[AlgebraicRow]:
    """Return a conditional rule as rows with the smallest valid big-M constants. It applies if all its indicators are 1.

    Pyomo's own constants may be negative in nested disjunctions, where they cut off legal points.

    Raises:
        RuleError: a term without bounds.
    """
    low, high = interval(rule.body, groups)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuleError(
            f"constraint {rule.name!r} of a disjunct has terms without bounds; give every variable in it finite ones"
        )
    rows = []
    for side, most in ((1.0, high - rule.upper), (-1.0, rule.lower - low)):
        if not most > 0.0:
            continue  # this side always holds
        linear = {i: side * c for i, c in rule.body.linear.items()}
        variables = dict(rule.body.variables)
        for indicator in rule.when:
            ((i, _),) = indicator.linear.items()
            linear[i] = linear.get(i, 0.0) + most
            variables |= indicator.variables
        products = {pair: side * c for pair, c in rule.body.products.items()}
        bound = (rule.upper if side > 0 else -rule.lower) + most * len(rule.when)
        rows.append(
            AlgebraicRow(rule.name, "", Quadratic(0.0, linear, products, variables), -math.inf, bound, rule.slack)
        )
    return rows


def _truth(expression: Any, variables: Sequence[Any], values: Sequence[bool]) -> bool:
    for variable, value in zip(variables, values, strict=True):
        variable.set_value(value)
    return bool(pyo.value(expression))


def _disjunct_of(data: Any) -> Any:
    """Return the innermost disjunct around a component, or None."""
    block = data.parent_block()
    while block is not None and not isinstance(block, DisjunctData):
        block = block.parent_block()
    return block


def _renamed(rule: Rule, back: Mapping[int, Variable]) -> Rule:
    """Return a rule over the clone's variables as a rule over those of the live model."""
    return replace(rule, body=_moved(rule.body, back), when=tuple(_moved(w, back) for w in rule.when))


def _moved(body: Quadratic, back: Mapping[int, Variable]) -> Quadratic:
    variables = {i: back.get(i, v) for i, v in body.variables.items()}
    ids = {i: id(v) for i, v in variables.items()}
    return Quadratic(
        body.constant,
        {ids[i]: c for i, c in body.linear.items()},
        {(ids[i], ids[j]): c for (i, j), c in body.products.items()},
        {id(v): v for v in variables.values()},
    )


def _constraints(model: Any, into: Any = pyo.Block) -> Iterator[Any]:
    yield from model.component_data_objects(pyo.Constraint, active=True, descend_into=into)


def _taken(data: Any, what: str) -> tuple[Quadratic, float, float]:
    """Return body and bounds of a constraint, with the body's constant moved into the bounds."""
    body = parse_quadratic(data.body, what)
    lower, upper = pyo.value(data.lower), pyo.value(data.upper)
    low = -math.inf if lower is None else float(lower) - body.constant
    high = math.inf if upper is None else float(upper) - body.constant
    return replace(body, constant=0.0), low, high


def _row(declaration: Declaration, data: Any, rule: str, parameter: str) -> AlgebraicRow:
    # a constraint of the user's own may have the name of a declared rule
    known = declaration.rules.get(rule) if _is_declared(data) else None
    body, lower, upper = _taken(data, f"constraint {data.name!r}" if known is None else f"rule {rule!r}")
    if known is not None:
        known = known.parts[data.index()[2]] if known.parts else known
        if (
            body.linear == known.body.linear
            and list(body.variables) == list(known.body.variables)
            and not body.products
        ):
            body = known.body  # equal to the declared body, which is shared so that large rules are stored once
        return AlgebraicRow(rule, parameter, body, lower, upper, known.slack)
    numbers = {i: c for i, c in body.linear.items() if parameter and not body.variables[i].is_binary()}
    measured = (
        replace(body, linear=numbers) if numbers else body
    )  # not the binaries, whose coefficients are the number's range
    return AlgebraicRow(rule, parameter, body, lower, upper, slack_of(measured, lower, upper))


def _is_declared(data: Any) -> bool:
    component = data.parent_component()
    return bool(component.local_name == "rules" and component.parent_block() is data.model())


def _origin(data: Any) -> tuple[str, str]:
    index = data.index()
    if _is_declared(data):
        return (index[0] if isinstance(index, tuple) else index), ""
    block = data.parent_block()
    if block.parent_component().local_name == "parameters":
        return "", str(block.index())
    return data.name, ""
