"""Logical formulas over rules: ``(a <= 3) | act["relu"]``, ``~act["relu"]``, ``implies(act["relu"], depth >= 2)``.

A formula records what the user wrote; ``mipcash.modelling.composed`` turns it into rules of degree at most two. Its parts are
relations, 0/1 indicators and formulas.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from pyomo.common.numeric_types import RegisterIntegerType
from pyomo.core.expr.relational_expr import RelationalExpression

from mipcash.errors import RuleError
from mipcash.modelling.asking import ARRAY, BRANCH, CALL, CHAIN, IN, construct_at
from mipcash.modelling.asking import NOT as NOT_ASKED
from mipcash.modelling.domains import is_bool, is_number
from mipcash.modelling.handles import Relation
from mipcash.modelling.wording import shortened, written

ALL, ANY, NOT, IMPLIES, XOR = "all_of", "any_of", "not", "implies", "xor"
SIGNS = {ALL: " & ", ANY: " | ", XOR: " ^ "}
BRACKETS = "put each comparison in brackets, (a <= 3) & (b >= 2): &, | and ^ bind more tightly than comparisons"


def _joining(sign: str) -> tuple[Any, Any]:
    """Return an operator and the one whose left side is no condition of ours."""
    return lambda self, other: joined(sign, self, other), lambda self, other: joined(sign, other, self)


class Logic:
    """The operators ``&``, ``|``, ``^`` and ``~`` of relations and indicators."""

    __slots__ = ()
    __and__, __rand__ = _joining("&")
    __or__, __ror__ = _joining("|")
    __xor__, __rxor__ = _joining("^")

    def __invert__(self) -> Formula:
        return negation(self)


class Always(Logic, int):  # type: ignore[misc]
    """The number 1 as a condition that always holds: ``is_active()`` of a parameter that is always active."""

    __slots__ = ()


RegisterIntegerType(Always)  # otherwise Pyomo registers the type on first use, with a warning
ALWAYS = Always(1)


@dataclass(frozen=True, eq=False)
class Formula(Logic, Relation):
    """A logical formula over conditions.

    Attributes:
        kind: ``all_of``, ``any_of``, ``not``, ``implies`` or ``xor``.
        parts: relations, indicators and formulas.
    """

    kind: str
    parts: tuple[Any, ...]

    def __invert__(self) -> Formula:
        return self.parts[0] if self.kind == NOT and isinstance(self.parts[0], Formula) else Formula(NOT, (self,))

    def __bool__(self) -> NoReturn:
        raise RuleError(no_truth(self, construct_at(sys._getframe(1))))

    def _compared(self, *_: object) -> NoReturn:
        raise RuleError(f"{shortened(written(self), 60)} is a condition and cannot be compared; {BRACKETS}")

    __le__ = __ge__ = __lt__ = __gt__ = __eq__ = __ne__ = _compared
    __hash__ = object.__hash__

    def __str__(self) -> str:
        return str(written(self))

    def __repr__(self) -> str:
        return f"<relation {shortened(written(self))}>"


def joined(sign: str, a: Any, b: Any) -> Formula:
    """Return the formula ``a & b``, ``a | b`` or ``a ^ b``; nested ``&`` or ``|`` are flattened.

    Raises:
        RuleError: one side is not a condition.
    """
    kind = next(kind for kind, text in SIGNS.items() if text.strip() == sign)
    for side in (a, b):
        problem = _no_condition(side)
        if problem:
            raise RuleError(
                f"{_operand(a)} {sign} {_operand(b)} joins conditions, and {_side(side)} is {problem}; {BRACKETS}"
            )
    return _flat(kind, (a, b)) if kind != XOR else Formula(kind, (a, b))


def _flat(kind: str, parts: tuple[Any, ...]) -> Formula:
    flat: list[Any] = []
    for part in parts:
        flat += part.parts if isinstance(part, Formula) and part.kind == kind else [part]
    return Formula(kind, tuple(flat))


def _operand(side: Any) -> str:
    """Return a side of an operator as text, a relation in brackets."""
    return f"({_side(side)})" if isinstance(side, (RelationalExpression, Formula)) else _side(side)


def _side(side: Any) -> str:
    if hasattr(side, "label"):
        return str(side.label)
    return (
        shortened(written(side), 60) if hasattr(side, "is_expression_type") or isinstance(side, Formula) else repr(side)
    )


def _no_condition(part: Any) -> str | None:
    """Return why a part cannot be joined, as far as this is known without the space; None if it can be joined."""
    if isinstance(part, (Formula, RelationalExpression, Always)):
        return None
    if is_bool(part):
        return f"the Python bool {part}: the comparison that gave it contains no parameter"
    if not hasattr(part, "is_expression_type"):
        label = getattr(part, "label", None)
        if label is not None:
            return f"a parameter without a number; use its indicators, {label}[value]"
        return "no relation or indicator" if is_number(part) else f"no relation or indicator but {part!r}"
    domain = getattr(part, "domain", None)
    if hasattr(part, "label") and not (getattr(domain, "low", -1) == 0 and getattr(domain, "high", 2) == 1):
        return "a number, not a condition"
    return None


def _conditions(function: str, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(parts) == 1 and isinstance(parts[0], (list, tuple, Iterator)):
        parts = tuple(parts[0])
    if not parts:
        raise RuleError(f"{function}() needs at least one condition, such as (a <= 3) or act['relu']")
    for part in parts:
        problem = _no_condition(part)
        if problem:
            raise RuleError(
                f"{function}() takes relations and 0/1 indicators; {_side(part)} is {problem}. Write (a <= 3) or act['relu']"
            )
    return parts


def all_of(*conditions: Any) -> Formula:
    """Return the conjunction of conditions: relations, 0/1 indicators and formulas (also written ``x & y``).

    Args:
        conditions: one or more.

    Returns:
        The formula.

    Raises:
        RuleError: an argument is no condition.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.integer("b", 0, 9)
        >>> rule = space.rule("corner", ~mc.all_of(a >= 8, b >= 8))
        >>> space.is_legal({"a": 9, "b": 9}), space.is_legal({"a": 9, "b": 0})
        (False, True)
    """
    return _flat(ALL, _conditions("mc.all_of", conditions))


def any_of(*conditions: Any) -> Formula:
    """Return the disjunction of conditions: at least one must hold (also written ``x | y``).

    Args:
        conditions: one or more.

    Returns:
        The formula.

    Raises:
        RuleError: an argument is no condition.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.integer("b", 0, 9)
        >>> rule = space.rule("one is large", mc.any_of(a >= 8, b >= 8))
        >>> space.is_legal({"a": 1, "b": 1}), space.is_legal({"a": 1, "b": 8})
        (False, True)
    """
    return _flat(ANY, _conditions("mc.any_of", conditions))


def implies(condition: Any, consequence: Any) -> Formula:
    """Return the implication: if ``condition`` holds, ``consequence`` must hold.

    Args:
        condition: a relation, a 0/1 indicator or a formula.
        consequence: the same; it must hold if ``condition`` does.

    Returns:
        The formula.

    Raises:
        RuleError: an argument is no condition.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("network")
        >>> act, depth = space.categorical("act", ["relu", "tanh"]), space.integer("depth", 1, 8)
        >>> rule = space.rule("shallow tanh", mc.implies(act["tanh"], depth <= 3))
        >>> int(space.count())
        11
    """
    return Formula(IMPLIES, _conditions("mc.implies", (condition, consequence)))


def negation(condition: Any) -> Formula:
    """Return the negation of a condition (also written ``~x``).

    Raises:
        RuleError: not a condition.
    """
    problem = _no_condition(condition)
    if problem:
        raise RuleError(
            f"~{_operand(condition)} negates a condition, and {_side(condition)} is {problem}; negate a comparison, ~(a <= 3), or "
            "an indicator, ~act['relu']"
        )
    return Formula(NOT, (condition,))


def no_truth(condition: Any, asked: str = BRANCH) -> str:
    """Return the error message for code that asks whether a relation or a formula is true.

    Args:
        asked: the construct that asked (``mipcash.modelling.asking``).
    """
    text = shortened(written(condition), 60)
    equal = " == " in text
    cures = {
        CHAIN: "Python reads 1 <= a <= 3 as two comparisons joined by and; write (1 <= a) & (a <= 3), or two rules",
        IN: "instead of 'a in [1, 2]' write a.is_(1, 2), which is 1 or 0",
        NOT_ASKED: f"instead of 'not {text}' write ~({text})",
        CALL: "instead of max(a, b) write mc.maximum(a, b), of min(a, b) mc.minimum(a, b), of all([x, y]) mc.all_of(x, y), of "
        "any([x, y]) mc.any_of(x, y)",
        ARRAY: "numpy asks for the truth of each comparison in an array; declare the rules one by one, "
        "for k, a in enumerate(array): space.rule(f'name {k}', a <= 3)",
        BRANCH: "instead of 'x and y' write x & y, instead of 'x or y' x | y, each comparison in brackets, and instead of "
        "'if x: y' mc.implies(x, y), space.rule(..., y, when=x), or space.real(..., when=x) for a parameter",
    }
    cure = f"{cures[IN]}; of Python's other functions none can look for it" if equal and asked == CALL else cures[asked]
    return f"{text} has no truth value while the space is declared, since it depends on the configuration: {cure}"
