"""Error messages for operators and functions that have no meaning in a rule: the expression, the cause, the remedy.

Any function of a discrete parameter is exact by its values (``a.map(f)``). A function of a real has no exact form. Quotient and
remainder of an integer that is not expanded are auxiliary variables with their own rules. The message offers the remedy that
fits the argument.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from pyomo.core.expr.numeric_expr import SumExpression

from mipcash.errors import RuleError, SpaceError
from mipcash.modelling.domains import Integer, is_number, level_of, same_value
from mipcash.modelling.wording import shortened, written

if TYPE_CHECKING:
    from mipcash.modelling.declared import Number

SHOWN = 60
"""Largest number of characters of an expression in a message."""
INVERSES = {"np.log": "np.exp(3)", "math.log": "math.exp(3)", "np.exp": "np.log(3)", "np.sqrt": "9", "np.log2": "2**3"}
"""For a monotone function, the bound that ``f(x) <= 3`` puts on ``x``."""

MOST_VALUES = 10**8
"""Largest number of values of an integer in a conditional rule. Of 25 spaces each with 1e9, 1e10 and 1e11 values, HiGHS proved a
wrong optimum in 2, 6 and 8, and up to 1e8 in none."""


def refuse_many_values(name: str, ids: Collection[int], numbers: Iterable[Number]) -> None:
    """Refuse integers with too many values in a conditional rule.

    Args:
        name, ids: of the rule, and of its variables.
        numbers: of the space.

    Raises:
        RuleError: there is one.
    """
    for number in numbers:
        many = (number.domain.high - number.domain.low) / (number.domain.step or 1)
        if id(number.variable) in ids and isinstance(number.domain, Integer) and many > MOST_VALUES:
            raise RuleError(
                f"rule {name!r} holds only under a condition, and integer {number.label!r} in it has {many + 1:,.0f} values, "
                f"with more than {MOST_VALUES:,} of which solvers are not exact there; declare it with a step, or as a real"
            )


def shown(value: Any) -> str:
    """Return an expression, a parameter or any other value as a short text."""
    if hasattr(value, "label"):
        return str(value.label)
    if hasattr(value, "is_expression_type") or is_number(value):
        return shortened(written(value), SHOWN)
    return shortened(repr(value), SHOWN)


def levels_of(value: Any) -> bool:
    """Return True if a value is a parameter that is expanded into levels."""
    return hasattr(value, "label") and value._columns().component("z") is not None


def kind_of(value: Any) -> str:
    """Return ``a (integer in [0, 9])`` for a parameter, else the expression."""
    return f"{value.label!r} ({shortened(str(value.domain), SHOWN)})" if hasattr(value, "label") else shown(value)


def _is_real(value: Any) -> bool:
    return hasattr(value, "label") and value.domain.kind == "real"


def is_indicator(value: Any) -> bool:
    """Return True if an expression is 0/1 and written as a condition: ``a[1]``, ``a.is_(1, 2)``."""
    if hasattr(value, "label"):
        return False
    if getattr(value, "is_variable_type", lambda: False)():
        return bool(value.is_binary())
    if not isinstance(value, SumExpression):
        return False
    owners = {id(getattr(term, "handle", None)) for term in value.args}
    if len(owners) != 1 or getattr(value.arg(0), "handle", None) is None:
        return False
    levels = [term.index() for term in value.args]
    return len(set(levels)) == len(levels) and not any(isinstance(level, tuple) for level in levels)


def by_function(value: Any, function: str) -> str:
    """Return the message for a function of numpy, math or Python: ``np.log(a)``, ``round(a)``."""
    text = f"{function}({shown(value)}) cannot stand in a rule: "
    if levels_of(value):
        return (
            f"{text}write {shown(value)}.map({_callable(function)}), which is exact for the levels of {kind_of(value)}"
        )
    inverse = INVERSES.get(function)
    bound = f"Bound its argument instead ({function}(x) <= 3 is x <= {inverse}), or " if inverse else ""
    if _is_real(value):
        other = f"declare {shown(value)} as an ordinal and write {shown(value)}.map({_callable(function)})"
        return f"{text}a function of the real {shown(value)} has no exact form. {bound or ''}{_start(other, bound)}"
    other = f"apply it to one discrete parameter of up to 64 levels, a.map({_callable(function)}), which is exact"
    return f"{text}it has no exact form for {kind_of(value)}. {bound}{_start(other, bound)}"


def _start(text: str, before: str) -> str:
    return text if before else text[0].upper() + text[1:]


def _callable(function: str) -> str:
    return "lambda v: 1 / v" if function == "reciprocal" else function


def by_levels(value: Any, sign: str, other: Any, *, turned: bool = False) -> str:
    """Return the message for ``a // 2``, ``a % 2``, ``a ** 3``, ``2 ** a``."""
    left, right = (other, value) if turned else (value, other)
    sides = (_factor(left), _factor(right))
    text = f"{sides[0]} {sign} {sides[1]} cannot stand in a rule: "
    if levels_of(value) and is_number(other):
        formula = f"{sides[0]} {sign} v" if turned else f"v {sign} {sides[1]}"
        return f"{text}write {shown(value)}.map(lambda v: {formula}), which is exact for the levels of {kind_of(value)}"
    if sign == "**":
        return f"{text}only the powers 0, 1 and 2 are polynomials of degree at most two. {_power_cure(value, other, sides, turned)}"
    if _is_real(value) or turned or not is_number(other):
        return (
            f"{text}it has no exact form. Use the map of a discrete parameter of up to 64 levels, a.map(lambda v: v {sign} 2), "
            "which is exact"
        )
    n, low, high = shown(other), *_quotients(value, other)
    return (
        f"{text}it is no sum of products. For integers declare the quotient, q = space.auxiliary('q', {low}, {high}), "
        f"with the rules {n} * q <= {sides[0]} and {sides[0]} <= {n} * q + {n} - 1"
        + (f"; the remainder is {sides[0]} - {n} * q" if sign == "%" else "")
    )


def _quotients(value: Any, divisor: Any) -> tuple[Any, Any]:
    """Return the range of a quotient: numbers for a parameter, else words."""
    domain = getattr(value, "domain", None)
    if domain is None or not hasattr(value, "label") or not hasattr(domain, "low") or divisor <= 0:
        return "low", "high"
    return int(domain.low // divisor), int(domain.high // divisor)


def _power_cure(value: Any, other: Any, sides: tuple[str, str], turned: bool) -> str:
    positive = hasattr(value, "label") and getattr(value.domain, "low", -1) >= 0
    if turned and is_number(other) and float(other) > 1:
        return f"Bound the exponent instead: {sides[0]} ** {sides[1]} <= 8 is {sides[1]} <= math.log(8, {sides[0]})"
    if not turned and is_number(other) and float(other) > 0 and positive:
        bound = f"{sides[0]} <= 8 ** (1 / {sides[1]})"
        return f"Bound the base instead: {sides[0]} ** {sides[1]} <= 8 is {bound}, because {sides[0]} >= 0"
    return "A function of one discrete parameter of up to 64 levels is exact by its map, a.map(lambda v: v ** 3)"


def _factor(value: Any) -> str:
    text = shown(value)
    return text if text.replace("_", "a").replace(".", "a").isalnum() else f"({text})"


def by_zero(dividend: Any) -> str:
    """Return the message for ``a / 0``."""
    return f"{_factor(dividend)} / 0 has no value: it cannot stand in a rule. Divide by another number"


def without_meaning(value: Any, sign: str, other: Any) -> str:
    """Return the message for ``a >> b``, ``a << b``, ``a @ b``."""
    cure = "Sum the products: sum(w * p for w, p in zip(weights, parameters))"
    if sign != "@":
        cure = "For 'if this then that' write mc.implies(this, that)"
    return f"{_factor(value)} {sign} {_factor(other)} cannot stand in a rule: {sign} has no meaning there. {cure}"


def by_parameter(dividend: Any, divisor: Any) -> str:
    """Return the message for ``a / b``, where ``b`` depends on the configuration."""
    a, b = _factor(dividend), _factor(divisor)
    text = f"{a} / {b} divides by what depends on the configuration, which is no sum of products. "
    domain = getattr(divisor, "domain", None)
    low, high = getattr(domain, "low", None), getattr(domain, "high", None)
    if low is None and hasattr(divisor, "label") and (values := getattr(domain, "values", None)):
        low, high = min(values), max(values)
    if low is not None and low > 0:
        cure = f"Multiply it out: {a} / {b} <= 2 is {a} <= 2 * {b}, because {b} > 0"
    elif high is not None and high < 0:
        cure = f"Multiply it out: {a} / {b} <= 2 is {a} >= 2 * {b}, because {b} < 0"
    elif low is not None:
        cure = (
            f"{b} may be 0 ({domain}). Where it is positive, {a} / {b} <= 2 is {a} <= 2 * {b}; keep 0 out of its domain"
        )
    else:
        cure = f"Multiply it out where its sign is known: {a} / {b} <= 2 is {a} <= 2 * {b} for a positive {b}"
    if levels_of(divisor) and low is not None and high is not None and not low <= 0 <= high:
        cure += f"; or write {a} * {b}.map(lambda v: 1 / v)" if a != "1" else f"; or write {b}.map(lambda v: 1 / v)"
    return text + cure


def compared_with_text(value: Any, sign: str, other: Any) -> str:
    """Return the message for a number compared with a text, None or a list."""
    text = f"{shown(value)} {sign} {shown(other)} compares a number with {_what(other)}. "
    domain = getattr(value, "domain", None)
    listed = list(other) if isinstance(other, (list, tuple, set)) else []
    if listed and levels_of(value):
        return (
            f"{text}Instead of 'a in [1, 2]' write {shown(value)}.is_({', '.join(map(shown, listed))}), which is 1 or 0"
        )
    if isinstance(other, str) and _is_level(domain, other):
        return f"{text}Write the number: {shown(value)} {sign} {other}"
    if listed:
        return f"{text}Declare one rule for each"
    if is_indicator(value):
        return f"{text}An indicator is 1 or 0: {shown(value)} == 1"
    return f"{text}Compare {kind_of(value)} with a number or with another numeric expression"


def _is_level(domain: Any, text: str) -> bool:
    """Return True if a text is one of the numbers of a domain."""
    try:
        return domain is not None and level_of(domain, float(text)) is not None
    except ValueError:
        return False


def _what(other: Any) -> str:
    return "None" if other is None else f"a {type(other).__name__}" if not isinstance(other, str) else "a text"


def no_container(value: Any, what: str, item: Any = None) -> str:
    """Return the message for ``3 in a``, ``len(a)``, ``for v in a``."""
    if what == "in":
        text = f"{shown(item)} in {shown(value)} has no meaning: "
        hyperparameters = getattr(getattr(value, "handle", None), "hyperparameters", None)
        if hyperparameters is not None and isinstance(item, str):
            return f"{text}{shown(value)} is a 0/1 indicator; its hyperparameter is {shown(value)}[{item!r}]"
        cure = f"{value.label}.is_({shown(item)})" if hasattr(value, "label") else f"x == {shown(item)}"
        return (
            f"{text}{shown(value)} is one number that depends on the configuration. "
            f"For the condition that it takes a value write {cure}"
        )
    asked = f"len({shown(value)})" if what == "len" else f"iteration over {shown(value)}"
    values = f", {value.label}.domain.values" if hasattr(value, "label") and hasattr(value.domain, "values") else ""
    return (
        f"{asked} has no meaning: it is one number that depends on the configuration and no list. What it can be is its "
        f"domain{values or (', ' + value.label + '.domain' if hasattr(value, 'label') else '')}"
    )


def no_number(value: Any, function: str) -> str:
    """Return the message for ``float(a)``, ``int(a)`` and the functions of ``math``, which call them."""
    text = (
        f"{function}({shown(value)}) has no value while the space is declared: it depends on the configuration, and functions "
        "such as math.log need a number. "
    )
    example = "math.log" if function == "float" else function
    if levels_of(value):
        return f"{text}For a function of its value write {shown(value)}.map({example}), exact for the levels of {kind_of(value)}"
    if _is_real(value):
        return (
            f"{text}A function of a real has no exact form: bound its argument (math.log(x) <= 3 is x <= math.exp(3)), or declare "
            f"{shown(value)} as an ordinal and write {shown(value)}.map({example})"
        )
    return f"{text}Use the expression as it is, without {function}(); functions need a discrete parameter: a.map({example})"


def no_truth_of_number(value: Any) -> str:
    """Return the message for a number or an indicator whose truth value Python asks for."""
    text = (
        f"{shown(value)} has no truth value while the space is declared, since it depends on the configuration: if, and, or, not "
        "cannot use it. "
    )
    signs = "x & y instead of 'x and y', x | y instead of 'x or y', ~x instead of 'not x', mc.implies(x, y) instead of 'if x: y'"
    if is_indicator(value):
        return f"{text}Write {signs}. To declare a parameter that exists only if the indicator is 1, pass when={shown(value)}"
    return f"{text}Compare it, ({shown(value)} >= 1), and write {signs}"


class NoAttributeError(SpaceError, AttributeError):
    """Error for an attribute that a parameter does not have."""


def no_attribute(parameter: Any, name: str) -> AttributeError:
    """Return the error for ``act.relu`` instead of ``act['relu']``."""
    known = vars(parameter) if hasattr(type(parameter), "__dict__") else {}
    if name.startswith("_") or "label" not in known or "domain" not in known:  # requested by Python or Pyomo internally
        return AttributeError(f"{type(parameter).__name__!r} object has no attribute {name!r}")
    label, values = known["label"], getattr(known["domain"], "values", ())
    value = next((v for v in values if str(v) == name), None)
    cure = (
        f"for the indicator that it takes the value {value!r} write {label}[{value!r}]"
        if value is not None
        else f"rules use {label}[value], {label}.is_(...), {label}.map(f), {label}.is_active()"
    )
    return NoAttributeError(f"parameter {label!r} has no attribute {name!r}; {cure}")


def no_numeric_value(parameter: Any, *others: Any) -> str:
    """Return the message for a categorical parameter, module or order used as a number or a condition."""
    label = parameter.label
    values = list(getattr(parameter.domain, "values", ()))
    if not values:
        return (
            f"parameter {label!r} is an order and has no numeric value, so it cannot be compared or calculated with; use "
            f"{label}.position(module), 1 to {len(parameter.domain.members)}, or the indicators {label}.at(module, 1)"
        )
    named = [o for o in others if not hasattr(o, "is_expression_type") and any(same_value(v, o) for v in values)]
    value = named[0] if named else values[0]
    return (
        f"parameter {label!r} ({shortened(str(parameter.domain), SHOWN)}) has no numeric value, so it cannot be compared, "
        f"calculated with or asked for its truth; use its indicators: {label}[{value!r}] is 1 where it takes {value!r}, else 0 "
        f"(and {label}.map({{{value!r}: 1.5, ...}}) gives each value a number)"
    )
