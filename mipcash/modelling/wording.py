"""Expressions as users wrote them: ``layers * width <= 200``, where Pyomo prints ``(parameters[layers].z[0] + 2.0*...) <= 200``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pyomo.environ as pyo
from pyomo.core.base.expression import NamedExpressionData
from pyomo.core.expr import numeric_expr as numeric
from pyomo.core.expr import relational_expr as relational

from mipcash.modelling.names import user_name

LIMIT = 120
"""Largest number of characters of an expression in a message."""

_SUM, _PRODUCT, _ATOM = 1, 2, 3
"""Precedence of a text; a text of lower precedence is put in brackets inside one of higher precedence."""


def number_text(value: float) -> str:
    """Return a number with all its digits, in the shortest form: 11580 and not 1.158e+04."""
    if math.isfinite(value) and value == int(value) and abs(value) < 1e16:
        return str(int(value))
    return repr(float(value))


def written(expression: Any) -> str:
    """Return an expression or relation as its user may have written it."""
    return _text(expression)[0]


def shortened(text: str, limit: int = LIMIT) -> str:
    """Return a text on one line; a long text is shortened to its beginning and end."""
    text = " ".join(text.split())
    head = (limit - 5) * 2 // 3
    return text if len(text) <= limit else f"{text[:head]} ... {text[head + 5 - limit :]}"


def _text(expression: Any) -> tuple[str, int]:
    """Return the text and its precedence."""
    if hasattr(expression, "label"):  # a parameter
        return str(expression.label), _ATOM
    if hasattr(expression, "kind"):  # a formula
        return _formula(expression), _SUM
    if isinstance(expression, (numeric.MaxExpression, numeric.MinExpression)):
        name = "maximum" if isinstance(expression, numeric.MaxExpression) else "minimum"
        return f"{name}({', '.join(_text(a)[0] for a in expression.args)})", _ATOM
    if isinstance(expression, NamedExpressionData):
        return str(expression), _ATOM
    if isinstance(expression, (int, float)):
        return number_text(expression), _ATOM if expression >= 0 else _SUM
    if isinstance(expression, numeric.SumExpression):
        return _sum(expression.args), _SUM
    if isinstance(expression, numeric.ProductExpression):
        return _product(*expression.args)
    if isinstance(expression, numeric.NegationExpression):
        return f"-{_held(expression.arg(0), _PRODUCT)}", _SUM
    if isinstance(expression, numeric.DivisionExpression):
        return f"{_held(expression.arg(0), _PRODUCT)} / {_held(expression.arg(1), _ATOM)}", _PRODUCT
    if isinstance(expression, numeric.PowExpression):
        return f"{_held(expression.arg(0), _ATOM)}**{_held(expression.arg(1), _ATOM)}", _ATOM
    if isinstance(expression, numeric.UnaryFunctionExpression):
        return f"{expression.getname()}({_text(expression.arg(0))[0]})", _ATOM
    if isinstance(expression, relational.RelationalExpression):
        return _relation(expression), _SUM
    if getattr(expression, "is_variable_type", lambda: False)():
        return user_name(expression), _ATOM
    return (expression.to_string(), _SUM) if _is_expression(expression) else (str(expression), _ATOM)


def _is_expression(value: Any) -> bool:
    return bool(getattr(value, "is_expression_type", lambda: False)())


def _held(expression: Any, level: int) -> str:
    text, own = _text(expression)
    return text if own >= level else f"({text})"


def _sum(terms: Iterable[Any]) -> str:
    parts: list[str] = []
    for text in _together(terms):
        if not parts:
            parts.append(text)
        elif text.startswith("-"):
            parts.append(f"- {text[1:]}")
        else:
            parts.append(f"+ {text}")
    return " ".join(parts)


def _together(terms: Iterable[Any]) -> list[str]:
    """Return texts of the terms of a sum. Terms over the levels of one parameter are merged, ``act.is_('relu', 'tanh')``."""
    groups: dict[tuple[Any, ...], list[tuple[float, Any]]] = {}
    order: list[Any] = []
    for term in terms:
        factor, variable = term.args if isinstance(term, numeric.MonomialTermExpression) else (1.0, term)
        of = variable.parent_component() if getattr(variable, "is_variable_type", lambda: False)() else None
        if getattr(of, "handle", None) is None or not isinstance(factor, (int, float)):
            order.append(_text(term)[0])
            continue
        index = variable.index()
        key = (id(of), index[0]) if isinstance(index, tuple) else (id(of),)
        if key not in groups:
            order.append(groups.setdefault(key, []))
        groups[key].append((float(factor), variable))
    return [text for each in order for text in ([each] if isinstance(each, str) else _of_one(each))]


def _of_one(pairs: list[tuple[float, Any]]) -> list[str]:
    """Return the texts of the terms over levels of one parameter, or over the positions of one module."""
    handle, factors = pairs[0][1].parent_component().handle, list(dict.fromkeys(c for c, _ in pairs))
    if isinstance(pairs[0][1].index(), tuple):
        steps = {c / (v.index()[1] + 1) for c, v in pairs}
        if len(steps) == 1 and len(pairs) == len(handle.domain.members):
            return [_times(steps.pop(), f"{handle.label}.position({handle.domain.members[pairs[0][1].index()[0]]!r})")]
        return [_times(c, user_name(v)) for c, v in pairs]
    if len(factors) > 1 and len(pairs) == len(handle.domain.values) > 2:
        return [f"{handle.label}.map(...)"]
    texts = []
    for factor in factors:
        levels = [v for c, v in pairs if c == factor]
        values = ", ".join(repr(handle.level_of(v)) for v in levels)
        texts.append(_times(factor, user_name(levels[0]) if len(levels) == 1 else f"{handle.label}.is_({values})"))
    return texts


def _times(factor: float, text: str) -> str:
    if abs(factor) == 1:
        return text if factor > 0 else f"-{text}"
    return f"{number_text(factor)} * {text}"


def _product(left: Any, right: Any) -> tuple[str, int]:
    for factor, other in ((left, right), (right, left)):
        if isinstance(factor, (int, float)) and abs(factor) == 1:
            sign = "-" if factor < 0 else ""
            return sign + _held(other, _PRODUCT), _SUM if sign else _PRODUCT
    if isinstance(left, (int, float)) and left < 0:
        return f"-{_product(-left, right)[0]}", _SUM
    return f"{_held(left, _PRODUCT)} * {_held(right, _PRODUCT)}", _PRODUCT


def strict_ends(relation: Any) -> tuple[bool, bool]:
    """Return whether a relation excludes its lower and its upper bound."""
    strict = getattr(relation, "strict", False)
    return strict if isinstance(strict, tuple) else (bool(strict), bool(strict))


def _relation(relation: Any) -> str:
    below, above = ("<" if end else "<=" for end in strict_ends(relation))
    if isinstance(relation, relational.RangedExpression):
        low, body, high = (_text(a)[0] for a in relation.args)
        return f"{low} {below} {body} {above} {high}"
    operator = above
    if isinstance(relation, relational.EqualityExpression):
        operator = "=="
    elif not isinstance(relation, relational.InequalityExpression):
        return str(relation.to_string())
    left, right = relation.args
    if operator != "==" and not pyo.is_potentially_variable(left):  # Pyomo rewrites a >= 2 as 2 <= a
        return f"{_text(right)[0]} {operator.replace('<', '>')} {_text(left)[0]}"
    return f"{_text(left)[0]} {operator} {_text(right)[0]}"


def _formula(formula: Any) -> str:
    """Return ``(a <= 3) & act['relu']``, ``implies(act['relu'], a <= 3)``."""
    parts = [_held(p, _PRODUCT) for p in formula.parts]
    if formula.kind == "not" and isinstance(formula.parts[0], relational.EqualityExpression):
        return _text(formula.parts[0])[0].replace(" == ", " != ")
    if formula.kind == "not":
        return f"~{parts[0]}"
    if formula.kind == "implies":
        return f"implies({', '.join(_text(p)[0] for p in formula.parts)})"
    sign = {"all_of": " & ", "any_of": " | ", "xor": " ^ "}[formula.kind]
    return sign.join(parts)
