"""Polynomials of degree two, read from Pyomo expressions.

Notation
    body(v) = constant + sum_i linear[i] v_i + sum_{i<=j} products[i, j] v_i v_j

over Pyomo variables, keyed by ``id(variable)``. Validation, big-M bounds and the compiler all work on these
polynomials instead of Pyomo expressions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from pyomo.common.errors import DeveloperError
from pyomo.repn.quadratic import QuadraticRepnVisitor
from pyomo.repn.util import OrderedVarRecorder

from mipcash.errors import RuleError
from mipcash.modelling.domains import is_number
from mipcash.modelling.names import either, user_name
from mipcash.modelling.wording import shortened, written

Variable = Any
"""A Pyomo ``VarData``; Pyomo carries no types."""


class Term(NamedTuple):
    """A term of a sum, for the size of the sum.

    Attributes:
        coefficient: its absolute value.
        size: the largest absolute value of the term without its coefficient.
        exclusive: a key; of the terms with equal keys at most one differs from zero.
    """

    coefficient: float
    size: float
    exclusive: tuple[int, ...]


@dataclass(frozen=True)
class Quadratic:
    """A quadratic polynomial over Pyomo variables (see the module's notation)."""

    constant: float
    linear: Mapping[int, float]
    products: Mapping[tuple[int, int], float]
    variables: Mapping[int, Variable] = field(repr=False)

    @cached_property
    def ids(self) -> frozenset[int]:
        """Keys of the variables that occur with a coefficient other than zero."""
        return frozenset(self.linear) | {i for pair in self.products for i in pair}

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The terms by size within the variables' bounds; levels of one parameter exclude each other."""
        size = {i: _largest(v) for i, v in self.variables.items()}
        of = {i: _parameter_of(v) for i, v in self.variables.items()}
        linear = [Term(abs(c), size[i], (of[i],)) for i, c in self.linear.items()]
        return (*linear, *(Term(abs(c), size[i] * size[j], (of[i], of[j])) for (i, j), c in self.products.items()))

    def __str__(self) -> str:
        of = self.variables
        terms = [(c, user_name(of[i])) for i, c in self.linear.items()]
        terms += [(c, f"{user_name(of[i])} * {user_name(of[j])}") for (i, j), c in self.products.items()]
        parts = [f"{'-' if c < 0 else '+'} {'' if abs(c) == 1 else f'{abs(c):g} * '}{name}" for c, name in terms]
        parts += [f"{'-' if self.constant < 0 else '+'} {abs(self.constant):g}"] if self.constant or not parts else []
        return " ".join(parts).removeprefix("+ ")

    def condition_text(self) -> str:
        """Return the text of a condition: ``layers is 2 or 3``, ``a is not 1``, else ``... is 1``."""
        held = [self.variables[i] for i in self.linear]
        plain = not self.constant and not self.products and all(c == 1 for c in self.linear.values())
        if self.constant == 1 and not self.products and all(c == -1 for c in self.linear.values()):
            return either(held, "is not") or f"{self} is 1"
        return (plain and either(held)) or f"{self} is 1"

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the state for copies and pickles, whose variables have other ids."""
        of = self.variables
        linear = [(of[i], c) for i, c in self.linear.items()]
        products = [(of[i], of[j], c) for (i, j), c in self.products.items()]
        return put_together, (self.constant, linear, products, list(of.values()))

    def value(self, assignment: Mapping[int, float]) -> float:
        """Return the polynomial's value; every variable that occurs must be in ``assignment``."""
        total = self.constant
        for i, c in self.linear.items():
            total += c * assignment[i]
        for (i, j), c in self.products.items():
            total += c * assignment[i] * assignment[j]
        return total

    def partial(self, assignment: Mapping[int, float]) -> Quadratic:
        """Return the polynomial with the variables in ``assignment`` replaced by their values."""
        constant, linear, products = self.constant, dict[int, float](), dict[tuple[int, int], float]()
        for i, c in self.linear.items():
            if i in assignment:
                constant += c * assignment[i]
            else:
                linear[i] = linear.get(i, 0.0) + c
        for (i, j), c in self.products.items():
            if i in assignment and j in assignment:
                constant += c * assignment[i] * assignment[j]
            elif i in assignment:
                linear[j] = linear.get(j, 0.0) + c * assignment[i]
            elif j in assignment:
                linear[i] = linear.get(i, 0.0) + c * assignment[j]
            else:
                products[i, j] = c
        return Quadratic(constant, {i: c for i, c in linear.items() if c}, products, self.variables)


@dataclass(frozen=True)
class Junction:
    """Conditions of which all must hold (``every``), or at least one.

    Attributes:
        parts: 0/1 indicators over levels, and junctions.
    """

    every: bool
    parts: tuple[Condition, ...]

    @cached_property
    def ids(self) -> frozenset[int]:
        """Keys of the variables that occur."""
        return frozenset().union(*(part.ids for part in self.parts))

    def value(self, assignment: Mapping[int, float]) -> float:
        """Return 1 if the condition holds, else 0; every variable that occurs must be in ``assignment``."""
        return float((all if self.every else any)(part.value(assignment) > 0.5 for part in self.parts))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the state for copies and pickles, whose variables have other ids."""
        return Junction, (self.every, self.parts)

    def condition_text(self) -> str:
        """Return the text of the condition: ``(kind is 'x' or depth is 2)``."""
        return f"({(' and ' if self.every else ' or ').join(part.condition_text() for part in self.parts)})"

    def __str__(self) -> str:
        return f"({(' & ' if self.every else ' | ').join(f'({part})' for part in self.parts)})"


Condition = Quadratic | Junction
"""A condition: 1 if it holds, else 0."""


def bounds_of(variable: Variable) -> tuple[float, float]:
    """Return the bounds of a variable, infinite if there are none."""
    low, high = variable.bounds
    return (-math.inf if low is None else float(low)), (math.inf if high is None else float(high))


def _largest(variable: Variable) -> float:
    """Return the largest absolute value of a variable; infinite if it is unbounded."""
    return max(map(abs, bounds_of(variable)))


def _parameter_of(variable: Variable) -> int:
    """Return a key that the levels of one parameter share; each other variable has its own, those of an ordering too."""
    handle = getattr(variable.parent_component(), "handle", None)
    return id(variable) if getattr(getattr(handle, "domain", None), "values", None) is None else id(handle)


def put_together(
    constant: float,
    linear: Iterable[tuple[Variable, float]],
    products: Iterable[tuple[Variable, Variable, float]],
    variables: Iterable[Variable],
) -> Quadratic:
    """Return a polynomial by its terms: (variable, coefficient) and (variable, variable, coefficient)."""
    return Quadratic(
        constant,
        {id(v): c for v, c in linear},
        {(id(v), id(w)): c for v, w, c in products},
        {id(v): v for v in variables},
    )


def parse_quadratic(expression: Any, what: str) -> Quadratic:
    """Read a Pyomo expression of degree at most two.

    Args:
        expression: a Pyomo numeric expression or a number.
        what: name of the expression in an error, e.g. ``rule 'memory'``.

    Raises:
        RuleError: degree above two, a function such as ``exp`` of a parameter, or a coefficient that is not finite.
    """
    # type first: is_number(expression) makes Pyomo build an error message as long as the expression
    if not getattr(expression, "is_numeric_type", lambda: False)() and not is_number(expression):
        raise RuleError(
            f"{what} is {_kind(expression)}; write a number that is calculated from parameters, such as a + 2 * b"
        )
    recorder = OrderedVarRecorder({}, {}, None)
    try:
        repn = QuadraticRepnVisitor({}, var_recorder=recorder).walk_expression(expression)
    except (ValueError, TypeError, ZeroDivisionError, OverflowError) as error:
        raise RuleError(
            f"{what} cannot be read ({shortened(str(error), 80)}); write it as sums and products of parameters"
        ) from error
    except DeveloperError as error:  # Pyomo's visitor does not know max and min
        if not any(f"{name}Expression" in str(error) for name in ("Max", "Min")):
            raise
        raise RuleError(_too_high(what, expression)) from error
    if repn.nonlinear is not None:
        raise RuleError(_too_high(what, expression))
    scale = float(repn.multiplier)
    linear = {i: scale * float(c) for i, c in (repn.linear or {}).items() if c}
    # in order of occurrence: ids are addresses, so an order by id would differ between runs
    names = recorder.var_map
    place = {i: k for k, i in enumerate(names)}
    products: dict[tuple[int, int], float] = {}
    for (i, j), c in (repn.quadratic or {}).items():
        key = (i, j) if place[i] <= place[j] else (j, i)
        products[key] = products.get(key, 0.0) + scale * float(c)
    products = {k: c for k, c in products.items() if c}
    constant = scale * float(repn.constant)
    if not all(map(math.isfinite, (constant, *linear.values(), *products.values()))):
        raise RuleError(f"{what} has a coefficient that is not finite (nan or inf); check the numbers it is built from")
    keep = set(linear) | {i for pair in products for i in pair}  # others cancelled out
    return Quadratic(constant, linear, products, {i: v for i, v in names.items() if i in keep})


def _too_high(what: str, expression: Any) -> str:
    return (
        f"{what} is of degree above two (or applies a function to a parameter). Declare an inner product as a parameter, "
        "ab = space.real('ab', low, high), with the rule ab == a * b, and a maximum or absolute value in the same way; write a "
        "function of a discrete parameter as its map, a.map(f), or put it into an ordinal's values. The expression is "
        f"{shortened(written(expression), 80)}"
    )


def _kind(value: Any) -> str:
    """Return a description of what was given in place of an expression."""
    if hasattr(value, "label"):
        return f"parameter {value.label!r}, without a number; use its indicators, {value.label}[value]"
    if isinstance(value, str):
        return f"the text {value!r}; take the parameter itself, space[{value!r}]"
    text = written(value) if hasattr(value, "is_expression_type") or hasattr(value, "kind") else repr(value)
    return f"{shortened(text, 60)}, which is no number"


def interval(body: Quadratic, group_of: Mapping[int, int]) -> tuple[float, float]:
    """Return bounds of ``body`` over the bounds of its variables, which use the one-hot structure.

    Args:
        body: the polynomial.
        group_of: the number of the one-hot group of each binary that belongs to one. At most one binary of a group is
            1, so a group's linear terms contribute one of their coefficients or nothing, and so does a block of
            products between two groups.

    Returns:
        ``(low, high)``; infinite if a variable is unbounded.
    """
    low = high = body.constant
    blocks: dict[tuple[int, ...], list[float]] = {}  # (g,): linear terms; (g, h): products, with g = h the squares
    for i, c in body.linear.items():
        if i in group_of:
            blocks.setdefault((group_of[i],), [0.0]).append(c)
        else:
            ends = [c * b for b in bounds_of(body.variables[i])]
            low, high = low + min(ends), high + max(ends)
    for (i, j), c in body.products.items():
        if i in group_of and j in group_of:
            g, h = group_of[i], group_of[j]
            if g == h and i != j:
                continue
            blocks.setdefault(tuple(sorted((g, h))), [0.0]).append(c)
        else:
            (a, b), (d, e) = bounds_of(body.variables[i]), bounds_of(body.variables[j])
            extremes = [a * d, a * e, b * d, b * e] if i != j else [a * a, b * b] + [0.0] * (a <= 0 <= b)
            ends = [c * p for p in extremes]
            low, high = low + min(ends), high + max(ends)
    for coefficients in blocks.values():
        low, high = low + min(coefficients), high + max(coefficients)
    return low, high
