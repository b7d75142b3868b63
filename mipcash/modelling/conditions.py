"""Conditions: the 0/1 indicators of ``when=``, checked, and the activity that they add up to."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr import numeric_expr as numeric
from pyomo.core.expr.relational_expr import RelationalExpression

from mipcash.errors import SpaceError
from mipcash.modelling.declared import Declared
from mipcash.modelling.formulas import ALL, ANY, NOT, Formula
from mipcash.modelling.names import user_name
from mipcash.modelling.parameters import Expression, Parameter
from mipcash.modelling.quadratic import Quadratic, take_apart
from mipcash.modelling.wording import written


def conjunction(when: Any) -> tuple[Any, list[Formula]]:
    """The indicators of a ``when=`` that are joined by ``&``, as a list, and formulas that are no indicators."""
    if when is None:
        return None, []
    indicators, formulas = list[Any](), list[Formula]()
    left = list(when) if isinstance(when, (list, tuple)) else [when]
    while left:
        each = left.pop(0)
        if not isinstance(each, Formula):
            indicators.append(each)
        elif each.kind == ALL:
            left = [*each.parts, *left]
        elif each.kind == NOT and not isinstance(each.parts[0], (Formula, RelationalExpression)):
            indicators.append(1 - each.parts[0])
        else:
            formulas.append(each)
    return indicators, formulas


def check_indicators(declaration: Declared, what: str, when: Any) -> list[Quadratic]:
    """Check the indicators of a ``when=`` and take them apart."""
    if when is None:
        return []
    listed, formulas = conjunction(when)
    if formulas:
        raise SpaceError(
            f"{what}: when= takes 0/1 indicators that must all be 1, not {written(formulas[0])}; for one of several values of a "
            "parameter write layers.is_(1, 2)"
        )
    polynomials = []
    for indicator in listed:
        if type(indicator) is int and indicator == 1:  # is_active() of a parameter that always is
            continue
        if isinstance(indicator, (bool, Parameter)) or not hasattr(indicator, "is_expression_type"):
            raise SpaceError(
                f"{what}: when= takes indicators such as layers.is_(1, 2) or activation['relu'], got {_given(indicator)}"
            )
        if isinstance(indicator, RelationalExpression):
            raise SpaceError(
                f"{what}: when= takes 0/1 indicators such as layers.is_(1, 2), not the relation {written(indicator)}"
            )
        polynomial = take_apart(indicator, f"the condition of {what}")
        declaration.refuse_foreign(f"the condition of {what}", polynomial)
        low, high = declaration.interval(polynomial)
        binary = all(v.is_binary() for v in polynomial.variables.values())
        whole = all(float(c).is_integer() for c in (polynomial.constant, *polynomial.linear.values()))
        if polynomial.products or not (binary and whole and low >= 0 and high <= 1):
            raise SpaceError(
                f"{what}: a condition must be a 0/1 indicator such as layers.is_(1, 2); this ranges over [{low:g}, {high:g}]"
            )
        polynomials.append(polynomial)
    return polynomials


def _given(value: Any) -> str:
    return "a function" if callable(value) and not hasattr(value, "label") else repr(value)


Alternatives = tuple[Quadratic, ...]
"""Indicators of which one at least must be 1."""


def conditions_of(declaration: Declared, name: str, when: Any) -> list[Alternatives]:
    """The conditions of a parameter, all of which must hold, over levels only.

    ``a | b`` is one condition with two alternatives; ``child.is_active()`` stands for the conditions of the child.
    """
    indicators, formulas = conjunction(when)
    found: list[Alternatives] = [(w,) for w in _over_levels(declaration, name, indicators)]
    for clause in [clause for formula in formulas for clause in _clauses(formula)]:
        alternatives = [_over_levels(declaration, name, [each]) for each in clause]
        if any(len(each) != 1 for each in alternatives):
            raise SpaceError(
                f"parameter {name!r}: an alternative in {written(when)} stands for several conditions; write them out"
            )
        several = tuple(w for (w,) in alternatives)
        whole = added(several)
        found.append((whole,) if declaration.interval(whole)[1] <= 1 else several)
    return found


def _clauses(formula: Any) -> list[list[Any]]:
    """A formula over indicators as a conjunction of alternatives."""
    if not isinstance(formula, Formula):
        return [[formula]]
    if formula.kind == ALL:
        return [clause for part in formula.parts for clause in _clauses(part)]
    if formula.kind == ANY:
        chosen = itertools.product(*map(_clauses, formula.parts))
        return [[each for clause in clauses for each in clause] for clauses in chosen]
    negated = formula.parts[0]
    if formula.kind == NOT and isinstance(negated, Formula) and negated.kind in (ALL, ANY):
        other = {ALL: ANY, ANY: ALL}[negated.kind]
        return _clauses(Formula(other, tuple(Formula(NOT, (part,)) for part in negated.parts)))
    if formula.kind == NOT and isinstance(negated, Formula) and negated.kind == NOT:
        return _clauses(negated.parts[0])
    if formula.kind == NOT and not isinstance(negated, (Formula, RelationalExpression)):
        return [[1 - negated]]
    return [[formula]]  # refused where it is checked


def added(alternatives: Alternatives) -> Quadratic:
    """Their sum: at least 1 where one of them is 1."""
    if len(alternatives) == 1:
        return alternatives[0]
    linear: dict[int, float] = {}
    for w in alternatives:
        for i, c in w.linear.items():
            linear[i] = linear.get(i, 0.0) + c
    variables = {i: v for w in alternatives for i, v in w.variables.items()}
    kept = {i: c for i, c in linear.items() if c}
    return Quadratic(sum(w.constant for w in alternatives), kept, {}, {i: variables[i] for i in kept})


def _over_levels(declaration: Declared, name: str, when: Any) -> list[Quadratic]:
    """Indicators over levels only."""
    found: list[Quadratic] = []
    levels = {id(v) for g in declaration.groups for v in g.variables}
    conjunctions = {
        id(block.on): declaration.conditions[label]
        for label in declaration.conditions
        if (block := declaration.model.parameters[label]).component("conjunction") is not None
    }
    for indicator in check_indicators(declaration, f"parameter {name!r}", when):
        if (
            len(indicator.linear) == 1
            and (on := next(iter(indicator.linear))) in conjunctions
            and not indicator.constant
        ):
            found += conjunctions[on]
        elif indicator.ids <= levels:
            found.append(indicator)
        else:
            raise SpaceError(
                f"parameter {name!r}: its condition must follow from the levels of other parameters, this one uses "
                f"{', '.join(user_name(v) for i, v in indicator.variables.items() if i not in levels)}; "
                "use indicators such as layers.is_(1, 2)"
            )
    return found


def single(conditions: Sequence[Alternatives]) -> bool:
    """Whether a parameter is active where one affine indicator is 1."""
    return len(conditions) == 1 and len(conditions[0]) == 1


def activity(block: Any, conditions: Sequence[Alternatives]) -> Expression:
    """``on`` as an affine expression.

    Of k conditions, on is the sum of the parameter's own levels, or a binary of its own for a number: on <= w_i, where w_i is the
    sum of the alternatives of the i-th, and on >= sum_i u_i - (k - 1) for every choice u_i of one alternative of each.
    """
    if not conditions:
        return None
    expressions = [expression_of(added(alternatives)) for alternatives in conditions]
    if single(conditions):
        return expressions[0]
    if block.component("z") is not None:
        block.at_most_one = pyo.Constraint(expr=sum(block.z.values()) <= 1)
        on = sum(block.z.values())
    else:
        block.conjunction = pyo.Var([0], domain=pyo.Binary)
        block.on = on = block.conjunction[0]
    block.on_only_if = pyo.Constraint(range(len(expressions)))
    for i, expression in enumerate(expressions):
        block.on_only_if[i] = on <= expression
    chosen = list(itertools.product(*conditions))
    if len(chosen) == 1:
        block.on_if = pyo.Constraint(expr=on >= sum(expressions) - (len(expressions) - 1))
        return on
    block.on_if = pyo.Constraint(range(len(chosen)))
    for i, each in enumerate(chosen):
        block.on_if[i] = on >= sum(map(expression_of, each)) - (len(each) - 1)
    return on


def expression_of(polynomial: Quadratic) -> Expression:
    """A Pyomo expression of a polynomial."""
    of = polynomial.variables
    terms = [c * of[i] for i, c in polynomial.linear.items()]
    terms += [c * of[i] * of[j] for (i, j), c in polynomial.products.items()]
    return sum(terms, polynomial.constant)


def row_of(polynomial: Quadratic) -> Expression:
    """The same as an expression of Pyomo's own classes, made at once: for the rows of rules, of which there may be thousands."""
    of = polynomial.variables
    terms: list[Any] = [numeric.MonomialTermExpression((c, of[i])) for i, c in polynomial.linear.items()]
    if not polynomial.products:
        return numeric.LinearExpression([polynomial.constant, *terms] if polynomial.constant else terms)
    for (i, j), c in polynomial.products.items():
        terms.append(numeric.ProductExpression((numeric.MonomialTermExpression((c, of[i])), of[j])))
    return numeric.SumExpression([polynomial.constant, *terms] if polynomial.constant else terms)
