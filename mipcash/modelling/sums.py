"""Sums of parameters read and written at once, each as Pyomo's own visitors would, for rules of very many terms.

A rule such as ``sum(c_k * p_k) <= b`` over discrete parameters has a term per level of each. Here the terms are taken straight
from the levels of ``p_k``, and its text is that of ``p_k``, made once. What is no such sum is left to Pyomo.
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
"""Expressions inside one another up to which they are read here."""

Sum = tuple[float, dict[int, float], float]
"""Factor on all of it, coefficient by id of a variable, constant: as Pyomo holds what it has read of a linear expression."""

KeptTexts = dict[int, tuple[Any, Any, str]]
"""Texts of named expressions by id; with each, itself and what it stood for."""


def linear_terms(expression: Any) -> tuple[float, dict[int, float], dict[int, Any]] | None:
    """Constant, coefficients and variables of a sum, in the order in which it names them; None: Pyomo must read it.

    Each coefficient is the float that :class:`pyomo.repn.linear.LinearRepnVisitor` comes to.
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
    """A node, its variables added to those that were seen."""
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
    """Variables, multiples of them, and constants."""
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
    """Pyomo's text of an expression, with those of named expressions made once."""

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
    """``expression.to_string()``, Pyomo's words of it.

    Args:
        kept: texts of the named expressions that were met before, filled and used.
    """
    return str(_Texts(kept).dfs_postorder_stack(expression))
