"""The parts of the legal set of the numbers: what rules are left at some levels, for each combination of helpers' values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

import numpy as np

from mipcash.modelling.clusters import clusters
from mipcash.modelling.declared import Number
from mipcash.modelling.domains import SNAP, Integer
from mipcash.modelling.helpers import HelperSearch, ids_of
from mipcash.modelling.rules import Rule
from mipcash.space.numbers.part import NumberRules

PARTS = 64
"""Combinations of helpers' values, each with its rules, that are looked at."""


def number_rules(
    rules: Sequence[Rule], assignment: Mapping[int, float], active: Sequence[Number], hint: Mapping[int, float]
) -> Iterator[NumberRules]:
    """What the rules say about the active numbers: one set of rules per part of the legal set.

    Args:
        rules: all of the space, logic taken apart.
        assignment: id of every other variable of the configuration (levels, inactive numbers) -> value.
        active: the tuned numbers that are free.
        hint: values of helpers, used where there are too many combinations of them.
    """
    position = {id(n.variable): k for k, n in enumerate(active)}
    fixed = {i: v for i, v in assignment.items() if i not in position}
    mixed = [r for r in rules if r.body.ids & position.keys() and _may_apply(r, fixed)]
    unknown = set().union(*(ids_of(r) for r in mixed)) - fixed.keys() - position.keys()
    if not unknown:
        yield _part(mixed, fixed, active, position)
        return
    pure = _related(
        [r for r in rules if not r.body.ids & position.keys() and not ids_of(r) <= fixed.keys()], fixed, unknown
    )
    variables = {i: v for r in mixed for q in (r.body, *r.when) for i, v in q.variables.items() if i in unknown}
    search = HelperSearch(pure, fixed, also=variables)
    found = []
    for solution in search.solutions():
        found.append(solution)
        if len(found) > PARTS:
            break
    if search.over or len(found) > PARTS:
        known = {i: v for i, v in hint.items() if i not in fixed and i not in position and np.isfinite(v)}
        found = [known] if unknown <= known.keys() else found[:PARTS]
    seen: set[tuple[bytes, ...]] = set()
    for solution in found:
        part = _part(mixed, {**fixed, **solution}, active, position)
        key = (part.linear.tobytes(), part.quadratic.tobytes(), part.row_low.tobytes(), part.row_high.tobytes())
        if key not in seen:
            seen.add(key)
            yield part


def _related(rules: Sequence[Rule], fixed: Mapping[int, float], unknown: Set[int]) -> list[Rule]:
    """The rules that what is unknown depends on, directly or through other helpers."""
    groups = clusters((set(ids_of(r)) - fixed.keys(), r) for r in rules)
    return [rule for ids, listed in groups if ids & unknown for rule in listed]


def _may_apply(rule: Rule, fixed: Mapping[int, float]) -> bool:
    """Whether no condition of a rule is known to fail."""
    return all(not w.ids <= fixed.keys() or w.value(fixed) > 0.5 for w in rule.when)


def _part(
    rules: Sequence[Rule], fixed: Mapping[int, float], active: Sequence[Number], position: Mapping[int, int]
) -> NumberRules:
    k, rows = len(active), []
    for rule in rules:
        if not rule.applies(fixed):
            continue
        rest = rule.body.partial(fixed)
        row, matrix = np.zeros(k), np.zeros((k, k))
        for i, c in rest.linear.items():
            row[position[i]] += c
        for (i, j), c in rest.products.items():
            matrix[position[i], position[j]] += c / 2
            matrix[position[j], position[i]] += c / 2
        moved = abs(rest.constant) + rule.scale + _substituted(rule, fixed)
        plain = not moved and not rest.products and len(rest.linear) <= 2 and _unmerged(rule, fixed)
        low_r, high_r = rule.lower - rest.constant, rule.upper - rest.constant
        rows.append((row, matrix, low_r, high_r, rule.slack, moved, plain, rule.name))
    linear, quadratic, low, high, slack, size, plains, names = zip(*rows, strict=True) if rows else ([],) * 8
    return NumberRules(
        tuple(n.label for n in active),
        np.array([float(n.domain.low) for n in active]),
        np.array([float(n.domain.high) for n in active]),
        np.array([float(n.domain.step) if isinstance(n.domain, Integer) else 0.0 for n in active]),
        np.array([n.domain.log for n in active], dtype=bool),
        np.array([SNAP * float(n.domain.low if n.domain.log else n.domain.high - n.domain.low) for n in active]),
        np.array(linear).reshape(len(rows), k),
        np.array(quadratic).reshape(len(rows), k, k),
        np.array(low, dtype=float),
        np.array(high, dtype=float),
        np.array(slack, dtype=float),
        np.array(size, dtype=float),
        np.array(plains, dtype=bool),
        tuple(names),
    )


def _substituted(rule: Rule, fixed: Mapping[int, float]) -> float:
    """Sum of the sizes of the terms that are constants now."""
    linear = sum(abs(c * fixed[i]) for i, c in rule.body.linear.items() if i in fixed)
    products = rule.body.products.items()
    return linear + sum(abs(c * fixed[i] * fixed[j]) for (i, j), c in products if i in fixed and j in fixed)


def _unmerged(rule: Rule, fixed: Mapping[int, float]) -> bool:
    """Whether every number is left in one term of the rule alone, as it was written."""
    left = [i for i in rule.body.linear if i not in fixed]
    for i, j in rule.body.products:
        other = fixed.get(i, fixed.get(j))
        if other is None or other:
            return False  # of a level with a value of its own, the coefficient here is a product already
    return len(left) == len(set(left))
