"""Fast reading and printing of sums over parameters, for rules of very many terms, with the results of Pyomo's own visitors.

A rule such as ``sum(c_k * p_k) <= b`` over discrete parameters has a term per level of each. Here the terms are read
directly from the levels of ``p_k``, and the text of ``p_k`` is made only once. Pyomo reads all other expressions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from pyomo.core.base.expression import NamedExpressionData
from pyomo.core.base.var import VarData
from pyomo.core.expr import numeric_expr as numeric
from pyomo.core.expr import visitor

NUMBERS: frozenset[Any] = frozenset({int, float, np.float64})
DEEP = 100
"""Largest nesting depth of expressions that this module reads itself."""

Sum = tuple[float, dict[int, float], float]
"""Common factor, coefficient by id of a variable, and constant, in the form in which Pyomo reads a linear expression."""

KeptTexts = dict[int, tuple[Any, Any, str]]
"""Texts of named expressions by id, each with the named expression and the expression it stood for."""


def linear_terms(expression: Any) -> tuple[float, dict[int, float], dict[int, Any]] | None:
    """Return constant, coefficients and variables of a sum, in order of occurrence, or None if Pyomo must read it.

    Each coefficient is the same float as from ``pyomo.repn.linear.LinearRepnVisitor``.
    """
    variables: dict[int, Any] = {}
    found = _read(expression, variables)
    if found is None:
        return None
    factor, linear, constant = found
    if factor != 1:
        linear, constant = {i: factor * c for i, c in linear.items()}, factor * constant
    return constant, linear, variables


def _read(node: Any, variables: dict[int, Any], depth: int = 0) -> Sum | None:
    """Read a node and add its variables to ``variables``; None if Pyomo must read it."""
    kind = node.__class__
    if kind in (numeric.LinearExpression, numeric.MonomialTermExpression) or isinstance(node, VarData):
        return _terms(node.args if kind is numeric.LinearExpression else (node,), variables)
    if depth > DEEP:
        return None
    if isinstance(node, NamedExpressionData):
        return _read(node.expr, variables, depth + 1)
    if kind is numeric.SumExpression:
        return _sum(node.args, variables, depth + 1)
    factor: Any
    if kind is numeric.NegationExpression:
        factor, inner = -1, node.args[0]
    elif kind is numeric.ProductExpression:
        factor, inner = node.args if node.args[0].__class__ in NUMBERS else node.args[::-1]
    else:
        return None
    if factor.__class__ not in NUMBERS or not factor or inner.__class__ in NUMBERS:
        return None
    found = _read(inner, variables, depth + 1)
    return None if found is None else (found[0] * factor, found[1], found[2])


def _terms(terms: Iterable[Any], variables: dict[int, Any]) -> Sum | None:
    """Read variables, multiples of them, and constants; None if Pyomo must read them."""
    linear: dict[int, float] = {}
    constant: float = 0
    for term in terms:
        factor: Any = 1
        if term.__class__ is numeric.MonomialTermExpression:
            factor, term = term.args
        elif term.__class__ in NUMBERS:
            constant += term
            continue
        if factor.__class__ not in NUMBERS or not isinstance(term, VarData) or term.fixed:
            return None
        i = id(term)
        variables[i] = term
        if i in linear:
            linear[i] += factor
        elif factor:
            linear[i] = factor
    return 1, linear, constant


def _sum(terms: Iterable[Any], variables: dict[int, Any], depth: int) -> Sum | None:
    linear: dict[int, float] = {}
    constant: float = 0
    for term in terms:
        if term.__class__ in NUMBERS:
            constant += term
            continue
        found = _read(term, variables, depth)
        if found is None or not found[1]:
            return None
        factor, coefficients, more = found
        if more:
            constant += factor * more
        for i, c in coefficients.items():
            value = c if factor == 1 else factor * c
            linear[i] = linear[i] + value if i in linear else value
    return 1, linear, constant


class _Texts(visitor._ToStringVisitor):  # type: ignore[misc]
    """Visitor for Pyomo's text of an expression that converts each named expression only once."""

    def __init__(self, kept: KeptTexts) -> None:
        super().__init__(None, None)
        self.kept = kept

    def visiting_potential_leaf(self, node: Any) -> tuple[bool, Any]:
        if isinstance(node, NamedExpressionData):
            known = self.kept.get(id(node))
            if known is None or known[0] is not node or known[1] is not node.expr:
                known = self.kept[id(node)] = (node, node.expr, str(visitor.expression_to_string(node)))
            return True, known[2]
        found: tuple[bool, Any] = super().visiting_potential_leaf(node)
        return found


def pyomo_text(expression: Any, kept: KeptTexts) -> str:
    """Return ``expression.to_string()``, Pyomo's text of it.

    Args:
        kept: cached texts of named expressions, used and extended.
    """
    return str(_Texts(kept).dfs_postorder_stack(expression))
