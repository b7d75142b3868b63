"""Checks that the numbers of a configuration are clean: rules hold in plain Python, and bounds are met exactly.

* An inequality holds up to the rounding of its sum, whose terms are added in the order of declaration. It need not hold
  so exactly if the other rules leave no room inside it at this configuration.
* An equation holds to 1e-9 of its largest term, up to the rounding of its largest coefficient. It need not hold so
  exactly if the rules are infeasible without their tolerances.
* A value within 1e-9 of a bound equals the bound up to rounding, unless the rules exclude the bound. This distance is
  relative to the range that the rules leave, in each branch of the disjunctions that contains the bound.
"""

from __future__ import annotations

import math
from fractions import Fraction

from tests.fuzz.described import Active, At, Choice, Drawn, Factor, Is, Relation, Rule, Term, Value
from tests.fuzz.record import Record
from tests.fuzz.table import OPEN, ROUNDING, Body, Config
from tests.fuzz.truth import Judged, Truth

ROOM = 1e-6
"""Room inside an inequality, relative to its largest coefficient, above which the inequality must hold exactly."""


def check_numbers(truth: Truth, record: Record, question: str, config: Config) -> None:
    """Record a disagreement for every number of a legal configuration that is not clean."""
    drawn, c = truth.table.drawn, truth.table.find(config)
    assert c is not None
    for p in truth.table.active_reals(c):
        value = config[p.name]
        for bound in (p.low, p.high):
            if not math.isclose(value, bound, rel_tol=ROUNDING) and (
                not p.low <= value <= p.high
                or (abs(value - bound) < 1e-9 * min(1.0, p.high - p.low) and _reached(truth, c, p.name, value, bound))
            ):
                record.wrong(question, "default", f"{p.name!r} = {bound!r} exactly", f"{value!r} in {config}")
    if drawn.auxiliaries or any(isinstance(j.part, Choice) and j.status[c] == OPEN for j in truth.judged):
        return  # the room depends on auxiliary variables or on the disjunct, which a configuration does not contain
    for j in truth.judged:
        if isinstance(j.part, Rule) and j.status[c] == OPEN:
            problem = _unclean(truth, j, c, config)
            if problem:
                record.wrong(question, "default", f"rule {j.part.name!r} {problem}", config)


def _reached(truth: Truth, c: int, name: str, value: float, bound: float) -> bool:
    """Return True if a value is next to a bound that it can reach without using the tolerance of any rule.

    The distance must exceed what the rounding of each rule's sum leaves open.
    """
    body = Body(truth.table, Relation((Term(1.0, (Value(name),)),), "<=", 0.0))
    away = abs(Fraction(value) - Fraction(bound))
    for rule in (b for j in truth.judged if j.status[c] == OPEN for bodies in j.alternatives for b in bodies):
        constant, slopes = rule.exact(c)
        if name in slopes and away * abs(slopes[name]) <= ROUNDING * max(
            abs(constant), abs(Fraction(rule.relation.bound))
        ):
            return False
    branches = truth.reaches(body, c, Fraction(0))
    widths = [float(high - low) for low, high in branches if low <= Fraction(bound) <= high]
    return bool(widths) and float(away) <= 1e-9 * min(widths)


def _unclean(truth: Truth, j: Judged, c: int, config: Config) -> str:
    assert isinstance(j.part, Rule)
    relation = j.part.relation
    listed = []
    for term in relation.terms:
        product = term.coefficient
        for f in term.factors:
            product = product * factor_value(truth.table.drawn, f, config)
        listed.append(product)
    total = sum(listed[1:], listed[0])
    if relation.sense == "==":
        largest = max([abs(relation.bound), *map(abs, listed)])
        off = abs(total - relation.bound)
        low, high = truth.reach(j.alternatives[0][0], c, Fraction(0))
        rounding = ROUNDING * max(abs(t.coefficient) for t in relation.terms)
        if off <= 1e-9 * largest + rounding or not low <= Fraction(relation.bound) <= high:
            return ""
        return f"to 1e-9 of its largest term, off by {off:.3g}"
    off = total - relation.bound if relation.sense == "<=" else relation.bound - total
    if off <= ROUNDING * math.fsum([abs(relation.bound), *map(abs, listed)]):
        return ""
    body = j.alternatives[0][0]
    low, high = truth.reach(body, c)
    bound = Fraction(relation.bound)
    room = bound - low if relation.sense == "<=" else high - bound
    if room <= Fraction(ROOM) * body.scale:
        return ""
    return f"without tolerance ({total!r} {relation.sense} {relation.bound!r})"


def factor_value(drawn: Drawn, factor: Factor, config: Config) -> float:
    """Return the value of a factor at a configuration, in plain Python."""
    if isinstance(factor, Value):
        return float(config.get(factor.name, 0.0))
    if isinstance(factor, Active):
        return float(factor.name in config)
    if isinstance(factor, At):
        return float(config[factor.name].index(factor.member) + 1 == factor.position)
    if isinstance(factor, Is):
        values = [drawn[factor.name].values[l] for l in factor.levels]
        hit = factor.name in config and any(
            type(v) is type(config[factor.name]) and v == config[factor.name] for v in values
        )
        return float(hit != factor.negated)
    return float(config[factor.name].index(factor.member) + 1)
