"""The parts of the legal set of the numerical parameters at fixed levels, one per combination of integer auxiliary values.

Continuous auxiliary variables in linear rules are eliminated exactly: a projection onto the numerical parameters.

Notation
    low <= a . x + b . t <= high    a row over the numbers x (k,) and the auxiliary variables t (q,), with c = (a, b)

A variable in an equation is substituted. Otherwise every upper bound of it is paired with every lower bound (Fourier-Motzkin):
some value of t satisfies the rows exactly if each pair leaves room. Tolerances add up with the same factors as the rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from mipcash.modelling.auxiliary import AuxiliarySearch
from mipcash.modelling.clusters import clusters
from mipcash.modelling.declared import Number
from mipcash.modelling.domains import SNAP
from mipcash.modelling.quadratic import Quadratic, Variable
from mipcash.modelling.rules import Rule
from mipcash.program.forms import Vector
from mipcash.space.numbers.part import NumberRules

MOST = 200
"""Largest number of rows."""
ZERO = 1e-12
"""Coefficients up to this share of the largest one in their row are rounding errors of a substitution."""


@dataclass(frozen=True)
class Row:
    """A row (see the module's notation).

    Attributes:
        slack: tolerance.
        size: magnitude of the terms moved into the bounds.
        name: of the rule.
    """

    c: Vector
    low: float
    high: float
    slack: float
    size: float
    name: str

    def plus(self, factor: float, other: Row) -> Row:
        """Return this row plus a multiple of an equation."""
        c = self.c + factor * other.c
        c[np.abs(c) <= ZERO * np.abs(c).max(initial=0.0)] = 0.0
        moved = factor * other.low
        size = self.size + abs(factor) * (abs(other.low) + other.size)
        return Row(c, self.low + moved, self.high + moved, self.slack + abs(factor) * other.slack, size, self.name)

    def bound(self, k: int, sign: float) -> Row | None:
        """Return the row as an upper bound of ``sign`` times variable k; None if it is none."""
        scale = sign / self.c[k]
        high = (self.high if scale > 0 else self.low) * scale
        if not math.isfinite(high):
            return None
        return Row(self.c * scale, -math.inf, high, self.slack * abs(scale), self.size * abs(scale), self.name)


def projected(rows: Sequence[Row], k: int) -> list[Row] | None:
    """Return rows over the first k variables that hold exactly if some values of the others satisfy the given rows.

    The variables in equations come first, then those that make the fewest rows.

    Returns:
        None if there would be more than MOST rows.
    """
    rows = _merged(rows)
    while columns := sorted({int(c) for r in rows for c in np.flatnonzero(r.c[k:]) + k}):
        rows = _merged(_eliminated(rows, min(columns, key=lambda c: _growth(rows, c))))
        if len(rows) > MOST:
            return None
    return rows


def _growth(rows: Sequence[Row], column: int) -> int:
    """Return the number of rows that the elimination of a variable makes; 0 if an equation has it."""
    there = [r for r in rows if r.c[column]]
    if any(r.low == r.high for r in there):
        return 0
    above, below = (sum(r.bound(column, sign) is not None for r in there) for sign in (1.0, -1.0))
    return above * below


def _eliminated(rows: Sequence[Row], column: int) -> list[Row]:
    """Return rows without a variable, which is substituted by an equation or else by pairs of its bounds."""
    there, rest = [r for r in rows if r.c[column]], [r for r in rows if not r.c[column]]
    pivots = [r for r in there if r.low == r.high]
    if pivots:
        pivot = max(pivots, key=lambda r: abs(r.c[column]) / np.abs(r.c).max())
        left = [r.plus(-r.c[column] / pivot.c[column], pivot) for r in there if r is not pivot]
    else:
        above, below = ([r for each in there if (r := each.bound(column, sign))] for sign in (1.0, -1.0))
        left = [_pair(upper, lower, column) for upper in above for lower in below]
    return [*rest, *left]


def _merged(rows: Sequence[Row]) -> list[Row]:
    """Return the rows, those with the same coefficients up to a factor as one; rows without variables only if they fail."""
    found: dict[tuple[float, ...], Row] = {}
    for row in rows:
        if not row.c.any():
            if _fails(row):
                return [row]
            continue
        scale = 1.0 / float(row.c[np.flatnonzero(row.c)[0]])
        lower, upper = sorted((row.low * scale, row.high * scale))
        c, slack, size = row.c * scale, row.slack * abs(scale), row.size * abs(scale)
        other = found.get(tuple(c.tolist()))
        if other is None:
            found[tuple(c.tolist())] = Row(c, lower, upper, slack, size, row.name)
            continue
        low, high = max(lower, other.low), min(upper, other.high)
        slack, size = max(slack, other.slack), max(size, other.size)
        if low > high + slack:
            return [Row(np.zeros(len(c)), low - high, math.inf, slack, size, row.name)]
        found[tuple(c.tolist())] = Row(c, min(low, high), high, slack, size, other.name or row.name)
    return list(found.values())


def is_possible(rows: Sequence[Row]) -> bool:
    """Return True if no row without variables fails."""
    return not any(not r.c.any() and _fails(r) for r in rows)


def _fails(row: Row) -> bool:
    """Return True if a row without variables does not hold."""
    return not row.low - row.slack <= 0.0 <= row.high + row.slack


def _pair(upper: Row, lower: Row, column: int) -> Row:
    """Return the row that leaves room for a variable between an upper bound of it and one of its negative."""
    c = upper.c + lower.c
    c[column] = 0.0
    size = upper.size + lower.size + abs(upper.high) + abs(lower.high)
    return Row(c, -math.inf, upper.high + lower.high, upper.slack + lower.slack, size, upper.name or lower.name)


PARTS = 128
"""Largest number of combinations of auxiliary values, each with its own rules."""
REALS = 64
"""Largest number of continuous auxiliary variables that are eliminated."""


def number_rules(
    rules: Sequence[Rule], assignment: Mapping[int, float], active: Sequence[Number], hint: Mapping[int, float]
) -> list[NumberRules]:
    """Return the rules on the active numerical parameters, one set of rules per part of the legal set.

    Args:
        rules: all rules of the space, logic resolved.
        assignment: id of every other variable of the configuration (levels, inactive numerical parameters) -> value.
        active: the active numerical parameters.
        hint: values of auxiliary variables, used if they have too many combinations.
    """
    position = {id(n.variable): k for k, n in enumerate(active)}
    fixed = {i: v for i, v in assignment.items() if i not in position}
    mixed = [r for r in rules if r.body.ids & position.keys() and _may_apply(r, fixed)]
    unknown = set[int]().union(*(r.ids for r in mixed)) - fixed.keys() - position.keys()
    if not unknown:
        return [_with_equations(_part(mixed, fixed, active, position))]
    others = [r for r in rules if not r.body.ids & position.keys() and not r.ids <= fixed.keys()]
    linked = clusters((set(r.ids) - fixed.keys(), r) for r in others)
    pure = [rule for ids, listed in linked if ids & unknown for rule in listed]
    both = [*pure, *mixed]
    variables = {i: v for r in both for q in (r.body, *r.when) for i, v in q.variables.items()}
    auxiliary = {i: v for i, v in variables.items() if i not in fixed and i not in position}
    reals = _eliminable(auxiliary, both, fixed)
    known = {i: v for i, v in hint.items() if i not in fixed and i not in position and np.isfinite(v)}
    own = [r for r in mixed if not r.body.ids & reals.keys()]
    tied = [r for r in both if r.ids & reals.keys()]
    asked = unknown.union(*(r.ids for r in tied)) - reals.keys()
    also = {i: v for i, v in auxiliary.items() if i in asked}
    discrete = [r for r in pure if not r.ids & reals.keys()]
    search = AuxiliarySearch([*discrete, *_single_choices(discrete, [*mixed, *tied], fixed)], fixed, also)
    solutions = list(islice(search.solutions(), PARTS + 1))
    if search.over or len(solutions) > PARTS:  # only the known one
        held = {i: v for i, v in known.items() if i not in reals}
        solutions = [held] if also.keys() <= held.keys() else solutions[:PARTS]
    found = dict[Hashable, NumberRules]()
    for solution in solutions:
        values = {**fixed, **solution}
        rows = projected(_rows(tied, values, reals, position), len(position)) if tied else []
        if rows is None:  # too many rows: continuous auxiliary variables keep their known values, too
            if not unknown <= known.keys():
                return []
            return [_with_equations(_part(mixed, {**fixed, **known}, active, position))]
        if is_possible(rows):
            part = _with_equations(_with_rows(_part(own, values, active, position), rows))
            found.setdefault(part.point_set_key, part)
    return list(found.values())


def _single_choices(discrete: Sequence[Rule], others: Sequence[Rule], fixed: Mapping[int, float]) -> list[Rule]:
    """Return for each clause, sum_i s_i >= 1, the rule that at most one of its binaries is 1, where no part of the set is lost.

    That holds for binaries that occur beside the clause only as conditions of rules: one that is 1 only adds rules. All of them may
    be 0 if the clause holds by a level, or if a condition of the clause is 0. Without this, five alternatives have 31 combinations
    of such binaries, and five parts.
    """
    bodies, conditions = Counter[int](), Counter[int]()
    for rule in [*discrete, *others]:
        bodies.update(rule.body.ids)
        conditions.update(i for w in rule.when for i, c in w.linear.items() if c < 0 or w.products)
    found = []
    for rule in discrete:
        body = rule.body
        if body.products or rule.upper < math.inf or set(body.linear.values()) != {1.0}:
            continue
        binary = {i: v for i, v in body.variables.items() if v.is_binary() and i not in fixed}
        choices = [i for i in binary if bodies[i] == 1 and not conditions[i]]
        needed = rule.lower - body.partial(fixed).constant  # at most 0 if a level satisfies the clause
        if len(choices) < 2 or needed > 1.0:
            continue
        most = rule.when if rule.when and needed > 0.0 else [Quadratic(float(needed > 0.0), {}, {}, {})]
        for w in most:  # as many as the condition, 0 or 1, of the clause
            terms = {**dict.fromkeys(choices, 1.0), **{i: -c for i, c in w.linear.items()}}
            single = Quadratic(0.0, terms, {}, {**{i: binary[i] for i in choices}, **w.variables})
            if not w.products:
                found.append(replace(rule, body=single, lower=-math.inf, upper=w.constant, when=()))
    return found


def _eliminable(
    others: Mapping[int, Variable], rules: Sequence[Rule], fixed: Mapping[int, float]
) -> dict[int, Variable]:
    """Return the continuous auxiliary variables, if they are few and bounded, and linear in rules without conditions on them."""
    reals = {i: v for i, v in others.items() if v.is_continuous()}
    settled = fixed.keys() | (others.keys() - reals.keys())
    for rule in rules:
        curved = any(i not in settled and j not in settled for i, j in rule.body.products)
        if (curved and rule.body.ids & reals.keys()) or any(w.ids & reals.keys() for w in rule.when):
            return {}
    bounded = all(None not in v.bounds and np.isfinite(v.bounds).all() for v in reals.values())
    return reals if bounded and len(reals) <= REALS else {}


def _rows(
    tied: Sequence[Rule], fixed: Mapping[int, float], reals: Mapping[int, Variable], position: Mapping[int, int]
) -> list[Row]:
    """Return rules as rows over the numbers and the continuous auxiliary variables, with the bounds of the latter."""
    at = {**position, **{i: len(position) + n for n, i in enumerate(reals)}}
    rows = [Row(np.eye(len(at))[at[i]], float(v.lb), float(v.ub), 0.0, 0.0, "") for i, v in reals.items()]
    for rule in tied:
        if rule.applies(fixed):
            rest, c = rule.body.partial(fixed), np.zeros(len(at))
            for i, value in rest.linear.items():
                c[at[i]] += value
            size = abs(rest.constant) + rule.scale + _substituted(rule, fixed)
            rows.append(Row(c, rule.lower - rest.constant, rule.upper - rest.constant, rule.slack, size, rule.name))
    return rows


def _with_rows(part: NumberRules, rows: Sequence[Row]) -> NumberRules:
    """Return a part with further rows over its numbers."""
    rows, k = [r for r in rows if r.c.any()], len(part.labels)
    if not rows:
        return part
    return replace(
        part,
        linear=np.concatenate([part.linear, *(r.c[None, :k] for r in rows)]),
        row_low=np.append(part.row_low, [r.low for r in rows]),
        row_high=np.append(part.row_high, [r.high for r in rows]),
        slack=np.append(part.slack, [r.slack for r in rows]),
        size=np.append(part.size, [r.size for r in rows]),
        plain=np.append(part.plain, np.zeros(len(rows), dtype=bool)),
        names=(*part.names, *(r.name for r in rows)),
    )


def _may_apply(rule: Rule, fixed: Mapping[int, float]) -> bool:
    """Return True if no condition of a rule is known to fail."""
    return all(not w.ids <= fixed.keys() or w.value(fixed) > 0.5 for w in rule.when)


def _part(
    mixed: Sequence[Rule], fixed: Mapping[int, float], active: Sequence[Number], position: Mapping[int, int]
) -> NumberRules:
    """Return one set of rules, in the order of the space.

    Args:
        mixed: rules on the numbers that may apply.
    """
    rules = [rule for rule in mixed if rule.applies(fixed)]
    m, k = len(rules), len(active)
    rows, products = np.zeros((m, k)), dict[int, Vector]()
    constant, moved, plain = np.zeros(m), np.zeros(m), np.zeros(m, dtype=bool)
    for r, rule in enumerate(rules):
        rest = rule.body.partial(fixed)
        for i, c in rest.linear.items():
            rows[r, position[i]] += c
        if rest.products:
            products[r] = np.zeros((k, k))
        for (i, j), c in rest.products.items():
            matrix = products[r]
            matrix[position[i], position[j]] += c / 2
            matrix[position[j], position[i]] += c / 2
        constant[r], moved[r] = rest.constant, abs(rest.constant) + rule.scale + _substituted(rule, fixed)
        # the value of a fixed variable would be multiplied into the coefficient
        merged = any(fixed.get(i, fixed.get(j)) for i, j in rule.body.products)
        plain[r] = not (moved[r] or rest.products or merged) and len(rest.linear) <= 2
    return NumberRules(
        tuple(n.label for n in active),
        np.array([float(n.domain.low) for n in active]),
        np.array([float(n.domain.high) for n in active]),
        np.array([float(n.domain.step or 0.0) for n in active]),
        np.array([n.domain.log for n in active], dtype=bool),
        np.array([SNAP * float(n.domain.low if n.domain.log else n.domain.high - n.domain.low) for n in active]),
        rows,
        np.array([*products.values()]).reshape(len(products), k, k),
        np.array([*products], dtype=np.int64),
        np.array([rule.lower for rule in rules]) - constant,
        np.array([rule.upper for rule in rules]) - constant,
        np.array([rule.slack for rule in rules], dtype=float),
        moved,
        plain,
        tuple(rule.name for rule in rules),
    )


def _with_equations(rules: NumberRules) -> NumberRules:
    """Return the rules with each pair ``a . x <= b`` and ``a . x >= b`` as one equation, along which a walk can move.

    Functions such as ``t == mc.maximum(x, y)`` give such pairs, since each half holds under a condition of its own.
    """
    upper, lower, kept = rules.row_high.copy(), rules.row_low.copy(), np.ones(len(rules.row_high), dtype=bool)
    seen: dict[Hashable, int] = {}
    for r in np.flatnonzero(~rules.curved & (np.isinf(lower) != np.isinf(upper))).tolist():
        sign, end = (1.0, upper[r]) if np.isinf(lower[r]) else (-1.0, lower[r])
        row = sign * rules.linear[r] + 0.0  # no negative zeros
        other = seen.get((*(0.0 - row).tolist(), -sign * end))
        if other is None:
            seen[(*row.tolist(), sign * end)] = r
        else:
            kept[r] = False
            lower[other] = upper[other] = lower[other] if np.isinf(upper[other]) else upper[other]
    if kept.all():
        return rules
    return replace(rules, row_low=lower, row_high=upper).part(np.flatnonzero(kept))


def _substituted(rule: Rule, fixed: Mapping[int, float]) -> float:
    """Return the sum of the absolute values of the terms whose variables are all fixed."""
    linear = sum(abs(c * fixed[i]) for i, c in rule.body.linear.items() if i in fixed)
    products = rule.body.products.items()
    return linear + sum(abs(c * fixed[i] * fixed[j]) for (i, j), c in products if i in fixed and j in fixed)
