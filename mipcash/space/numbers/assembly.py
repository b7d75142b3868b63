"""The parts of the legal set of the numerical parameters at fixed levels, one per combination of auxiliary values."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence, Set

import numpy as np

from mipcash.modelling.auxiliary import AuxiliarySearch, ids_of
from mipcash.modelling.clusters import clusters
from mipcash.modelling.declared import Number
from mipcash.modelling.domains import SNAP
from mipcash.modelling.rules import Rule
from mipcash.program.forms import Vector
from mipcash.space.numbers.part import NumberRules
from mipcash.space.numbers.rule_rows import LinearPart, RuleRows, unknown_of

PARTS = 64
"""Largest number of combinations of auxiliary values, each with its own rules."""


def number_rules(
    rules: RuleRows, assignment: Mapping[int, float], active: Sequence[Number], hint: Mapping[int, float]
) -> Iterator[NumberRules]:
    """Yield the rules on the active numerical parameters, one set of rules per part of the legal set.

    Args:
        rules: all rules of the space, logic resolved.
        assignment: id of every other variable of the configuration (levels, inactive numerical parameters) -> value.
        active: the active numerical parameters.
        hint: values of auxiliary variables, used if they have too many combinations.
    """
    position = {id(n.variable): k for k, n in enumerate(active)}
    fixed = {i: v for i, v in assignment.items() if i not in position}
    linear, left = rules.split(fixed, position)
    mixed = [(k, r) for k, r in left if r.body.ids & position.keys() and _may_apply(r, fixed)]
    unknown = unknown_of(mixed, fixed, position)
    if not unknown:
        yield _part(rules, linear, mixed, fixed, active, position)
        return
    pure = _related(
        [r for r in rules.rules if not r.body.ids & position.keys() and not ids_of(r) <= fixed.keys()], fixed, unknown
    )
    variables = {i: v for _, r in mixed for q in (r.body, *r.when) for i, v in q.variables.items() if i in unknown}
    search = AuxiliarySearch(pure, fixed, also=variables)
    found = []
    for solution in search.solutions():
        found.append(solution)
        if len(found) > PARTS:
            break
    if search.over or len(found) > PARTS:
        known = {i: v for i, v in hint.items() if i not in fixed and i not in position and np.isfinite(v)}
        found = [known] if unknown <= known.keys() else found[:PARTS]
    seen: set[Hashable] = set()
    for solution in found:
        part = _part(rules, linear, mixed, {**fixed, **solution}, active, position)
        if part.point_set_key not in seen:
            seen.add(part.point_set_key)
            yield part


def _related(rules: Sequence[Rule], fixed: Mapping[int, float], unknown: Set[int]) -> list[Rule]:
    """Return the rules that involve the unknown variables, directly or through other auxiliary variables."""
    groups = clusters((set(ids_of(r)) - fixed.keys(), r) for r in rules)
    return [rule for ids, listed in groups if ids & unknown for rule in listed]


def _may_apply(rule: Rule, fixed: Mapping[int, float]) -> bool:
    """Return True if no condition of a rule is known to fail."""
    return all(not w.ids <= fixed.keys() or w.value(fixed) > 0.5 for w in rule.when)


def _part(
    rules: RuleRows,
    linear: LinearPart,
    mixed: Sequence[tuple[int, Rule]],
    fixed: Mapping[int, float],
    active: Sequence[Number],
    position: Mapping[int, int],
) -> NumberRules:
    """Return one set of rules, in the order of the space.

    Args:
        linear: rules that are matrix rows.
        mixed: all other rules that may apply, with their indices.
    """
    k, rows, products = len(active), [linear.linear], dict[int, Vector]()
    at, constants, sizes, plains = [linear.rules], [linear.constant], [linear.substituted], list[bool]()
    for r, rule in mixed:
        if not rule.applies(fixed):
            continue
        rest = rule.body.partial(fixed)
        row, matrix = np.zeros((1, k)), np.zeros((k, k))
        for i, c in rest.linear.items():
            row[0, position[i]] += c
        for (i, j), c in rest.products.items():
            matrix[position[i], position[j]] += c / 2
            matrix[position[j], position[i]] += c / 2
        if np.any(matrix):
            products[r] = matrix
        substituted = _substituted(rule, fixed)
        moved = abs(rest.constant) + rule.scale + substituted
        plains.append(not moved and not rest.products and len(rest.linear) <= 2 and _unmerged(rule, fixed))
        rows.append(row)
        at.append(np.array([r]))
        constants.append(np.array([rest.constant]))
        sizes.append(np.array([substituted]))
    rule_at, constant = np.concatenate(at), np.concatenate(constants)
    order = np.argsort(rule_at, kind="stable")
    moved_all = np.abs(constant) + rules.scale[rule_at] + np.concatenate(sizes)
    plain = np.concatenate(
        [(moved_all[: len(linear.rules)] == 0.0) & (linear.terms <= 2), np.array(plains, dtype=bool)]
    )
    rule_at, constant, moved_all, plain = rule_at[order], constant[order], moved_all[order], plain[order]
    curved = np.flatnonzero(np.isin(rule_at, list(products)))
    return NumberRules(
        tuple(n.label for n in active),
        np.array([float(n.domain.low) for n in active]),
        np.array([float(n.domain.high) for n in active]),
        np.array([float(n.domain.step or 0.0) for n in active]),
        np.array([n.domain.log for n in active], dtype=bool),
        np.array([SNAP * float(n.domain.low if n.domain.log else n.domain.high - n.domain.low) for n in active]),
        np.concatenate(rows)[order],
        np.array([products[int(r)] for r in rule_at[curved]]).reshape(len(curved), k, k),
        curved,
        rules.lower[rule_at] - constant,
        rules.upper[rule_at] - constant,
        rules.slack[rule_at],
        moved_all,
        plain,
        tuple(rules.rules[int(r)].name for r in rule_at),
    )


def _substituted(rule: Rule, fixed: Mapping[int, float]) -> float:
    """Return the sum of the absolute values of the terms whose variables are all fixed."""
    linear = sum(abs(c * fixed[i]) for i, c in rule.body.linear.items() if i in fixed)
    products = rule.body.products.items()
    return linear + sum(abs(c * fixed[i] * fixed[j]) for (i, j), c in products if i in fixed and j in fixed)


def _unmerged(rule: Rule, fixed: Mapping[int, float]) -> bool:
    """Return True if each remaining number occurs in one term of the rule only, with its coefficient as written."""
    left = [i for i in rule.body.linear if i not in fixed]
    for i, j in rule.body.products:
        other = fixed.get(i, fixed.get(j))
        if other is None or other:
            return False  # the value of a fixed variable would be multiplied into the coefficient
    return len(left) == len(set(left))
