"""Rules: named relations of degree at most two, checked when they are declared.

A rule reads ``lower <= body <= upper`` over the model's variables. A conditional rule with indicators w_1 ... w_k (all
must hold) is written into the live model with the smallest valid big-M,

    body <= upper + (sup body - upper) * sum_i (1 - w_i)          and the mirror image for ``lower``,

which keeps it of degree two; validation evaluates the relation itself and never the big-M form.

Validation, solvers and searches use the same tolerance. A rule may be violated by ``TOLERANCE`` times its largest coefficient, or
times its largest term if that is smaller, so that scaling a rule does not change its meaning. The rounding error of float sums is
added: ``ROUNDING`` times the sum of the largest absolute values of the terms and the bound. A term that exceeds the sum of the
others counts as that sum, since near the bound it cannot be larger. A coefficient belongs to a variable of the model; for an
expanded integer or ordinal it is the value of a level times its factor. A rule over discrete parameters alone may be violated by at
most ``TOLERANCE``, and by the rounding error; whole numbers with whole coefficients that floats add exactly have none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyomo.core.expr.numvalue import is_potentially_variable
from pyomo.core.expr.relational_expr import EqualityExpression, InequalityExpression, RangedExpression
from pyomo.environ import value as pyomo_value

from mipcash.display import table
from mipcash.errors import RuleError
from mipcash.modelling.domains import is_bool
from mipcash.modelling.quadratic import Quadratic, Term, parse_quadratic
from mipcash.modelling.wording import number_text, shortened, strict_ends, written

TOLERANCE = 1e-9
"""Tolerance relative to a rule's largest coefficient; solvers use the same tolerance on rows scaled to it."""
ROUNDING = 1e-15
"""Rounding error of float sums relative to the sum of the largest terms."""


@dataclass(frozen=True)
class Rule:
    """A named rule.

    Attributes:
        name: as declared.
        body, lower, upper: ``lower <= body <= upper``; an absent bound is infinite.
        when: indicators that must all be 1 for the rule to apply; empty: always.
        scale: the absolute value of a constant that was moved into the bounds, 0 if there was none.
        written: the relation as its user wrote it.
        parts: the parts of a rule with functions or logic (``mipcash.modelling.composed``), whose own body is then empty.
    """

    name: str
    body: Quadratic
    lower: float
    upper: float
    when: tuple[Quadratic, ...] = ()
    scale: float = 0.0
    written: str = ""
    parts: tuple[Rule, ...] = ()

    def __repr__(self) -> str:
        return f"<rule {self.name!r}: {self}>"

    def __str__(self) -> str:
        when = " and ".join(w.condition_text() for w in self.when)
        return shortened(self.written or self.range_text()) + (f", when {shortened(when)}" if when else "")

    def _repr_html_(self) -> str:
        return table("", ("rule", "relation"), [(self.name, str(self))])

    @property
    def ids(self) -> frozenset[int]:
        """Ids of all variables that the rule depends on, including those in its conditions."""
        return self.body.ids.union(*(w.ids for w in self.when)) if self.when else self.body.ids

    def applies(self, assignment: Mapping[int, float]) -> bool:
        return all(w.value(assignment) > 0.5 for w in self.when)

    def violated(self, value: float) -> bool:
        """Return True if a value of the body violates the rule beyond the tolerance."""
        return value < self.lower - self.slack or value > self.upper + self.slack

    @cached_property
    def slack(self) -> float:
        """Tolerance: the amount by which the body may pass a bound and still count as legal."""
        return slack_of(self.body, self.lower, self.upper, self.scale)

    def range_text(self) -> str:
        if self.lower == self.upper:
            return f"== {number_text(self.lower)}"
        low = f">= {number_text(self.lower)}" if math.isfinite(self.lower) else ""
        high = f"<= {number_text(self.upper)}" if math.isfinite(self.upper) else ""
        return " and ".join(t for t in (low, high) if t)

    @property
    def bound_is_written(self) -> bool:
        """True if the relation as written ends with the bound, as in ``x + y <= 3``, and not in ``x <= y``."""
        return self.written.endswith(self.range_text())


def slack_of(body: Quadratic, lower: float, upper: float, scale: float = 0.0) -> float:
    """Return the tolerance of ``lower <= body <= upper`` (see the module's description).

    Args:
        scale: absolute value of a constant that was moved into the bounds.
    """
    bounds = max(scale, *(abs(b) for b in (lower, upper) if math.isfinite(b)), 0.0)
    terms = body.terms
    if not terms:  # no variables are left: only the constants are compared
        return TOLERANCE * bounds
    whole = all(not v.is_continuous() for v in body.variables.values())
    slack = TOLERANCE * max(t.coefficient * min(1.0, t.size) for t in terms)
    rounding = rounding_of(terms, bounds, whole)
    return (min(slack, TOLERANCE) if whole else slack) + rounding


def rounding_of(terms: Sequence[Term], bounds: float, whole: bool = False) -> float:
    """Return the rounding error of a sum of terms near a bound.

    Args:
        terms: infinite ones are ignored, and of those that exclude each other all but the largest.
        bounds: the absolute value of the bounds.
        whole: True if all variables are whole numbers. With whole coefficients, floats add them without rounding.
    """
    sizes: dict[tuple[int, ...], float] = {}
    for c, size, key in terms:
        if math.isfinite(c * size):
            sizes[key] = max(sizes.get(key, 0.0), c * size)
    largest, total = max(sizes.values(), default=0.0), sum(sizes.values())
    if whole and total + bounds < 2.0**53 and all(t.coefficient.is_integer() for t in terms):
        return 0.0
    rest = total - largest + bounds
    return ROUNDING * (rest + min(largest, rest))


def is_within(value: float, lower: float, upper: float, slack: float, strict: tuple[bool, bool]) -> bool:
    """Return True if a value lies between bounds, with a tolerance outside, or inside of those that are excluded."""
    below, above = strict
    return (value > lower + slack if below else value >= lower - slack) and (
        value < upper - slack if above else value <= upper + slack
    )


def split_relation(name: str, relation: Any, *, strict: bool = False) -> tuple[Any, float, float]:
    """Return the body expression and constant bounds of a Pyomo relation.

    Args:
        strict: admit a strict inequality, whose bounds are not part of it.

    Raises:
        RuleError: not a relation (a plain bool, an expression), a strict inequality, a chain whose outer sides are not constant, or
            a bound without a constant value.
    """
    if is_bool(relation):
        raise RuleError(
            f"rule {name!r} is the plain Python bool {relation}: its sides hold no numeric parameter, so Python compared "
            "them on the spot. Compare parameters (layers <= 2) or indicators (activation['relu'] == 1)"
        )
    if isinstance(relation, RangedExpression):
        left, body, right = relation.args
    elif isinstance(relation, (InequalityExpression, EqualityExpression)):
        a, b = relation.args
        body, left, right = _sides(a, b)
        if isinstance(relation, EqualityExpression):
            left = right = right if right is not None else left
    else:
        raise RuleError(
            f"rule {name!r} is {_kind(relation)}. A rule is a relation, a + b <= 3, or a condition, ~act['relu']"
        )
    if any(strict_ends(relation)) and not strict:
        raise RuleError(f"rule {name!r} is a strict inequality, which has no smallest violation; use <= or >=")
    for side in (left, right):
        if side is not None and is_potentially_variable(side):
            raise RuleError(
                f"rule {name!r} is read as the chained inequality {shortened(written(relation), 60)}, whose ends are not both "
                "numbers; declare one rule per relation, or join them in brackets: (a <= b) & (b <= 3)"
            )
    bounds = []
    for side, missing in ((left, -math.inf), (right, math.inf)):
        try:
            bounds.append(missing if side is None else float(pyomo_value(side)))
        except (ValueError, TypeError) as error:
            raise RuleError(f"rule {name!r} has a bound that is not a constant: {shortened(str(error))}") from error
    if any(map(math.isnan, bounds)):
        raise RuleError(f"rule {name!r} has a bound that is nan; check the numbers it is built from")
    if bounds[0] == math.inf or bounds[1] == -math.inf:
        raise RuleError(
            f"rule {name!r} has an infinite bound that nothing satisfies; check the numbers it is built from"
        )
    return body, bounds[0], bounds[1]


def _kind(value: Any) -> str:
    """Return a description of what was given in place of a relation."""
    if value is None:
        return "None: give its name, then its relation, which is no text, such as space.rule('small', x + n <= 3)"
    if isinstance(value, (str, bytes)):
        return f"the text {value!r}; rules are written with operators, without quotes"
    if isinstance(value, (list, tuple, set, dict)) or type(value).__name__ in (
        "ndarray",
        "NumericNDArray",
        "generator",
        "map",
    ):
        each = "for k, r in enumerate(...): space.rule(f'name {k}', r)"
        return f"a {type(value).__name__}; declare its relations one by one ({each}), or join them: mc.all_of(...)"
    if hasattr(value, "label") and not hasattr(value, "is_expression_type"):
        return f"parameter {value.label}, which has no number; write that an indicator of it is 1, {value.label}[value] == 1"
    if hasattr(value, "label") or hasattr(value, "is_expression_type"):
        text = shortened(written(value), 40)
        return f"{text}, which is compared with nothing; write a bound, {text} <= 3"
    if callable(value):
        return "a function; call it, and give what it returns"
    return f"{shortened(repr(value), 60)}, of type {type(value).__name__}, and holds no parameter"


def _sides(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Return body, lower and upper bound of ``a <= b``. A constant side stays a bound, so that messages quote it as written."""
    if not is_potentially_variable(b):
        return a, None, b
    if not is_potentially_variable(a):
        return b, a, None
    return a - b, None, 0.0


def make_rule(name: str, relation: Any, when: Sequence[Quadratic] = (), *, constant: bool = False) -> Rule:
    """Check a relation and convert it into a rule.

    Args:
        constant: admit a relation in which all variables are fixed.

    Raises:
        RuleError: see ``split_relation`` and ``mipcash.modelling.quadratic.parse_quadratic``; or a relation without variables,
            unless ``constant``.
    """
    body, lower, upper = split_relation(name, relation)
    polynomial = parse_quadratic(body, f"rule {name!r}")
    if not polynomial.ids and not constant:
        margin = slack_of(polynomial, lower, upper, abs(polynomial.constant))
        holds = lower - margin <= polynomial.constant <= upper + margin
        raise RuleError(
            f"rule {name!r} holds no parameter once it is simplified (it is always {holds}); drop it or check its terms"
        )
    shift = polynomial.constant
    centred = Quadratic(0.0, polynomial.linear, polynomial.products, polynomial.variables)
    return Rule(name, centred, lower - shift, upper - shift, tuple(when), abs(shift), written(relation))
