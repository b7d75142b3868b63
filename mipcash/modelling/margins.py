"""How exactly a program expresses a product of two reals, and which rules that does not suffice for.

Binaries and integers are exact in products. Of two reals one is cut into ``REAL_BITS`` bits plus a remainder, whose product
is relaxed; the rule is tightened by the error, so that nothing illegal gets in:

    margin = sum over products of two reals of |coefficient| 2**-REAL_BITS range range' / 4

on each side. A rule that is narrower than two margins would be left without a solution.
"""

from __future__ import annotations

import math
from collections.abc import Container

from mipcash.errors import RuleError
from mipcash.modelling.quadratic import Quadratic, Variable
from mipcash.modelling.rules import Rule

REAL_BITS = 12
"""Bits K of a real factor in a product of two reals: the margin is 2^-K / 4 of the product of the ranges."""


def margin(body: Quadratic, discrete: Container[int] = ()) -> float:
    """By how much the program tightens a rule, on each side; infinite where a factor has no bounds.

    Args:
        discrete: ids of variables that have levels, whatever their Pyomo domain says.
    """
    total = 0.0
    for (i, j), c in body.products.items():
        first, second = body.variables[i], body.variables[j]
        if all(v.is_continuous() and id(v) not in discrete for v in (first, second)):
            total += abs(c) * 2.0**-REAL_BITS * _range(first) * _range(second) / 4
    return total


def _range(variable: Variable) -> float:
    low, high = variable.bounds
    return math.inf if low is None or high is None else float(high) - float(low)


def too_narrow(name: str, width: float, lost: float) -> str:
    """The message for a rule whose two sides are ``width`` apart, where each is tightened by ``lost``."""
    return (
        f"rule {name!r} equates a product of two reals, which no finite program expresses exactly; make one factor an integer "
        f"or an ordinal, or replace == by a range (its sides are {width:g} apart and must be more than {2 * lost:g})"
    )


def refuse_inexact(rule: Rule, discrete: Container[int] = ()) -> None:
    """Refuse an equation, or a range as good as one, between products of two reals.

    Raises:
        RuleError: the two sides of the rule are closer than the program can tell them apart.
    """
    lost, width = margin(rule.body, discrete), rule.upper - rule.lower
    if lost and math.isfinite(lost) and width < 2 * lost + 1e-12:
        raise RuleError(too_narrow(rule.name, width, lost))
