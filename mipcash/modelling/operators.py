"""Operators of parameters, indicators, and all expressions calculated from them.

Objects and arithmetic are Pyomo's own. Here Pyomo's results get classes that define the operators that Pyomo leaves
to Python: ``a & b``, ``~x``, ``a != 3`` make formulas. Operations without meaning (``if a <= 3``, ``a // 2``, ``np.log(a)``)
raise an error that names the remedy, instead of giving a false or obscure result. Towards Pyomo these classes report the class
that they wrap (``__class__``). Everything that accepts a Pyomo expression therefore accepts them, and they are pickled as such.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from pyomo.core.expr import numeric_expr as numeric
from pyomo.core.expr import relational_expr as relational
from pyomo.core.expr.numvalue import is_potentially_variable

from mipcash.errors import RuleError
from mipcash.modelling.asking import construct_at
from mipcash.modelling.domains import is_number
from mipcash.modelling.formulas import Formula, Logic, negation, no_truth
from mipcash.modelling.handles import Expression
from mipcash.modelling.refusals import (
    by_function,
    by_levels,
    by_parameter,
    by_zero,
    compared_with_text,
    no_container,
    no_number,
    no_truth_of_number,
    without_meaning,
)
from mipcash.modelling.wording import shortened, written


def _own(name: str) -> Any:
    """Return Pyomo's operator, whose result has our operators, too."""
    return lambda self, *others: own(getattr(super(Operators, self), name)(*others))


def _compared(name: str, sign: str) -> Any:
    """Return Pyomo's comparison, which refuses what is no number."""
    return lambda self, other: own(getattr(super(Operators, self), name)(comparable(self, sign, other)))


def _refused(message: Callable[..., str], *told: Any, others: bool = True, **how: Any) -> Any:
    """Return an operator without meaning in a rule."""

    def refuse(self: Any, *given: Any) -> NoReturn:
        raise RuleError(message(self, *told, *(given if others else ()), **how))

    return refuse


class Operators(Logic):
    """Arithmetic and comparisons of a numeric expression, whose value depends on the configuration."""

    __slots__ = ()

    __add__, __sub__, __mul__ = _own("__add__"), _own("__sub__"), _own("__mul__")
    __radd__, __rsub__, __rmul__ = _own("__radd__"), _own("__rsub__"), _own("__rmul__")
    __neg__, __abs__ = _own("__neg__"), _own("__abs__")

    def __truediv__(self, other: Any) -> Any:
        if is_potentially_variable(other):
            raise RuleError(by_parameter(self, other))
        if is_number(other) and float(other) == 0.0:
            raise RuleError(by_zero(self))
        return own(super().__truediv__(other))  # type: ignore[misc]

    def __rtruediv__(self, other: Any) -> NoReturn:
        raise RuleError(by_parameter(other, self))

    def __pow__(self, other: Any) -> Any:
        if is_potentially_variable(other) or not (is_number(other) and float(other) in (0.0, 1.0, 2.0)):
            raise RuleError(by_levels(self, "**", other))
        return own(super().__pow__(other))  # type: ignore[misc]

    def __pos__(self) -> Any:
        return self

    __iadd__, __isub__, __imul__, __itruediv__, __ipow__ = __add__, __sub__, __mul__, __truediv__, __pow__
    __le__, __ge__ = _compared("__le__", "<="), _compared("__ge__", ">=")
    __lt__, __gt__ = _compared("__lt__", "<"), _compared("__gt__", ">")
    __eq__ = _compared("__eq__", "==")

    def __ne__(self, other: Any) -> Any:
        return negation(own(super().__eq__(comparable(self, "!=", other))))

    def __hash__(self) -> int:
        return id(self)

    __rpow__ = _refused(by_levels, "**", turned=True)
    __rshift__, __lshift__ = _refused(without_meaning, ">>"), _refused(without_meaning, "<<")
    __matmul__ = _refused(without_meaning, "@")
    __floordiv__ = __divmod__ = _refused(by_levels, "//")
    __rfloordiv__ = _refused(by_levels, "//", turned=True)
    __mod__, __rmod__ = _refused(by_levels, "%"), _refused(by_levels, "%", turned=True)
    __bool__ = _refused(no_truth_of_number)
    __float__, __int__ = _refused(no_number, "float"), _refused(no_number, "int")
    __round__ = _refused(by_function, "round", others=False)
    __floor__, __ceil__ = _refused(by_function, "math.floor"), _refused(by_function, "math.ceil")
    __trunc__ = _refused(by_function, "math.trunc")
    __len__, __iter__ = _refused(no_container, "len"), _refused(no_container, "iteration")
    __contains__ = _refused(no_container, "in")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if dtype not in (None, object):
            raise RuleError(no_number(self, "numpy.array"))
        held = np.empty((), dtype=object)
        held[()] = self
        return held

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        known = FUNCTIONS.get(ufunc.__name__)
        if known is not None and method == "__call__" and all(np.ndim(_held(i)) == 0 for i in inputs):
            return known(*(i.item() if isinstance(i, (np.generic, np.ndarray)) else i for i in inputs))
        if ufunc.nin == 1 and ufunc.__name__ not in ("negative", "positive", "square", "absolute"):
            raise RuleError(by_function(self, f"np.{ufunc.__name__}"))
        return numeric.NumericValue.__array_ufunc__(None, ufunc, method, *map(_held, inputs), **kwargs)


def _held(value: Any) -> Any:
    """Return a value that numpy can inspect; an object with our operators becomes a single element."""
    return value.__array__() if isinstance(value, Operators) else value


def maximum(*expressions: Any) -> Expression:
    """Return the largest of some expressions, exact in rules (``mc.maximum(a, b) <= 8``; Python's own ``max`` cannot be).

    Args:
        expressions: numbers and numeric expressions, or one list of them.

    Returns:
        The expression.

    Raises:
        RuleError: an argument is no number or numeric expression.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.integer("b", 0, 9)
        >>> rule = space.rule("peak", mc.maximum(a, b) <= 8)
        >>> space.is_legal({"a": 9, "b": 0}), space.is_legal({"a": 8, "b": 0})
        (False, True)
    """
    largest: Expression = own(numeric.MaxExpression(_numbers("maximum", expressions)))
    return largest


def minimum(*expressions: Any) -> Expression:
    """Return the smallest of some expressions, exact in rules.

    Args:
        expressions: numbers and numeric expressions, or one list of them.

    Returns:
        The expression.

    Raises:
        RuleError: an argument is no number or numeric expression.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.integer("b", 0, 9)
        >>> rule = space.rule("floor", mc.minimum(a, b) >= 2)
        >>> space.is_legal({"a": 9, "b": 0}), space.is_legal({"a": 9, "b": 2})
        (False, True)
    """
    smallest: Expression = own(numeric.MinExpression(_numbers("minimum", expressions)))
    return smallest


def _numbers(function: str, expressions: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(expressions) == 1 and isinstance(expressions[0], (list, tuple, np.ndarray)):
        expressions = tuple(expressions[0])
    if not expressions:
        raise RuleError(f"mc.{function}() needs at least one expression, mc.{function}(a, b)")
    for e in expressions:
        numeric_expression = getattr(e, "is_numeric_type", lambda: False)()
        if not (numeric_expression or is_number(e)):
            what = f"parameter {e.label!r}, which has no number" if hasattr(e, "label") else repr(e)
            raise RuleError(f"mc.{function}() takes numbers and numeric expressions, not {what}")
    return tuple(float(e) if is_number(e) and not isinstance(e, (int, float)) else e for e in expressions)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "maximum": maximum,
    "minimum": minimum,
    "square": lambda a: a**2,
    "invert": lambda a: ~a,
    "logical_and": lambda a, b: a & b,
    "logical_or": lambda a, b: a | b,
    "logical_not": lambda a: ~a,
}
"""numpy's functions of scalars that have a meaning in a rule; numpy calls them for ``np.float64(2) * a``."""


def comparable(a: Any, sign: str, b: Any) -> Any:
    """Return ``b`` if a number can be compared with it.

    Raises:
        RuleError: ``b`` is a text, None, a list or a formula.
    """
    if isinstance(b, (str, bytes)) or b is None or isinstance(b, (list, tuple, set, dict, Formula)):
        raise RuleError(compared_with_text(a, sign, b))
    return b


class _Own:
    """Base class of objects that report Pyomo's class as their own (see the module's description)."""

    __slots__ = ()
    pyomo: Any

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self.pyomo

    def __str__(self) -> str:
        """Return the text as users write it; ``to_string()`` returns Pyomo's text."""
        return written(self)

    def __repr__(self) -> str:
        kind = "relation" if issubclass(self.pyomo, relational.RelationalExpression) else "expression"
        return f"<{kind} {shortened(written(self))}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        plain = self.pyomo.__new__(self.pyomo)
        plain.__setstate__(self.__getstate__())
        return plain.__reduce_ex__(protocol)


class _Relation(Logic, _Own):
    __slots__ = ()

    def __bool__(self) -> NoReturn:
        raise RuleError(no_truth(self, construct_at(sys._getframe(1))))

    def _no_number(self, other: Any) -> NoReturn:
        raise RuleError(
            f"({written(self)}) is a relation and no number, so it is not added or multiplied; for a discrete parameter take its "
            "indicator, a.is_(2, 3), else tie a 0/1 integer to it: space.rule('tie', mc.implies(indicator == 0, ~relation))"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _no_number


def _made() -> dict[type, type]:
    """Return Pyomo's class -> our class, for all results of arithmetic and comparisons."""
    numbers = (
        *(numeric.SumExpression, numeric.LinearExpression, numeric.MonomialTermExpression, numeric.ProductExpression),
        *(numeric.DivisionExpression, numeric.PowExpression, numeric.NegationExpression, numeric.AbsExpression),
        *(numeric.MaxExpression, numeric.MinExpression),
    )
    relations = (relational.InequalityExpression, relational.EqualityExpression, relational.RangedExpression)
    made: dict[type, type] = {}
    for kinds, base in ((numbers, (Operators, _Own)), (relations, (_Relation,))):
        for kind in kinds:
            made[kind] = type(kind.__name__, (*base, kind), {"__slots__": (), "pyomo": kind, "__module__": __name__})
    return made


OWN = _made()


def own(result: Any) -> Any:
    """Give a result of Pyomo's arithmetic our class; numbers and variables stay as they are."""
    kind = OWN.get(type(result))
    if kind is not None:
        result.__class__ = kind
    return result
