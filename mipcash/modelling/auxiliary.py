"""Search for values of auxiliary variables: variables that configurations do not contain, such as indicators of disjuncts.

A configuration is legal if *some* values of the auxiliary variables satisfy every rule. An equation with one unknown determines
its value, repeatedly. The remaining rules fall into clusters that share auxiliary variables. Each cluster is searched depth
first, and a rule is checked as soon as all its variables have values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mipcash.modelling.clusters import clusters
from mipcash.modelling.names import user_name
from mipcash.modelling.quadratic import Quadratic, Variable
from mipcash.modelling.rules import Rule

SEARCH_LIMIT = 20_000
"""Largest number of values that are tried in plain Python before the solver is used."""

Ranges = Mapping[int, range]
"""Id of an auxiliary variable -> its values."""


@dataclass(frozen=True)
class Unsatisfiable:
    """Rules that no values of their auxiliary variables can satisfy.

    Attributes:
        rules: at least one.
        auxiliary: name of the auxiliary variable to which an equation gives an impossible value; "" if all values were tried.
        value: the impossible value.
    """

    rules: tuple[Rule, ...]
    auxiliary: str = ""
    value: float = math.nan


@dataclass
class Settled:
    """State of the search for values of auxiliary variables.

    Attributes:
        assignment: id of a variable -> value, including the auxiliary variables of decided rules.
        misfits: rules that cannot hold.
        undecided: rules that only a solver can decide.
    """

    assignment: dict[int, float]
    misfits: list[Unsatisfiable] = field(default_factory=list)
    undecided: list[Rule] = field(default_factory=list)


def settle(unsettled: Sequence[Rule], assignment: Mapping[int, float]) -> Settled:
    """Find values of the auxiliary variables that occur in rules, or the rules that admit no values."""
    found = Settled(dict(assignment))
    left = _propagate(list(unsettled), found)
    for _, rules in clusters([(set(rule.ids) - found.assignment.keys(), rule) for rule in left]):
        search = AuxiliarySearch(rules, found.assignment)
        solution = next(search.solutions(), None)
        if solution is not None:
            found.assignment.update(solution)
        elif search.over:
            found.undecided += rules
        else:
            found.misfits.append(Unsatisfiable(tuple(rules)))
    return found


def _propagate(unsettled: list[Rule], found: Settled) -> list[Rule]:
    """Solve equations with one unknown repeatedly. Return the rules that still have unknowns."""
    values, progress = found.assignment, True
    while progress:
        progress = False
        for rule in list(unsettled):
            if rule not in unsettled or not all(w.ids <= values.keys() for w in rule.when):
                continue  # already removed because of an impossible auxiliary variable, or its condition is undecided
            rest = rule.body.partial(values)
            if not rule.applies(values):
                unsettled.remove(rule)
            elif not rest.ids:
                unsettled.remove(rule)
                if rule.violated(rest.constant):
                    found.misfits.append(Unsatisfiable((rule,)))
            elif (unknown := _only_unknown(rule, rest)) is not None:
                i, value = unknown
                unsettled.remove(rule)
                allowed = range_of(rest.variables[i])
                if abs(value - round(value)) * abs(rest.linear[i]) > rule.slack or round(value) not in (allowed or ()):
                    found.misfits.append(Unsatisfiable((rule,), user_name(rest.variables[i]), value))
                    unsettled[:] = [r for r in unsettled if i not in r.body.ids]
                else:
                    values[i] = float(round(value))
            else:
                continue
            progress = True
    return unsettled


def _only_unknown(rule: Rule, rest: Quadratic) -> tuple[int, float] | None:
    """Return the integer that an equation determines, and its value; None if the equation determines no integer."""
    if rule.lower != rule.upper or len(rest.ids) != 1 or rest.products:
        return None
    ((i, coefficient),) = rest.linear.items()
    if range_of(rest.variables[i]) is None:
        return None
    return i, (rule.lower - rest.constant) / coefficient


def range_of(variable: Any) -> range | None:
    """Return the values of an integer auxiliary variable; None if it is continuous or unbounded."""
    low, high = variable.bounds
    if variable.is_continuous() or low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return None
    return range(math.ceil(low), math.floor(high) + 1)


class AuxiliarySearch:
    """Depth-first search for values of the auxiliary variables of some rules, all other variables being assigned.

    Args:
        also: further auxiliary variables, which the rules need not mention: id -> variable.

    Attributes:
        over: True if the search reached its limit, or an auxiliary variable has no finite range.
    """

    def __init__(
        self, rules: Sequence[Rule], assignment: Mapping[int, float], also: Mapping[int, Variable] | None = None
    ) -> None:
        variables = {i: v for r in rules for q in (r.body, *r.when) for i, v in q.variables.items()} | dict(also or {})
        unknown = variables.keys() - assignment.keys()
        ranges = {i: range_of(variables[i]) for i in unknown}
        self.over = any(values is None for values in ranges.values())
        self._left, self._known = SEARCH_LIMIT, assignment
        self._order = sorted(unknown, key=lambda i: (len(ranges[i] or ()), variables[i].name))
        self._ranges: Ranges = {i: values for i, values in ranges.items() if values is not None}
        at = {i: k for k, i in enumerate(self._order)}
        self._ready: list[list[Rule]] = [[] for _ in self._order]
        """Rules that can be checked once the k-th auxiliary variable has a value."""
        self._before: list[Rule] = []
        for rule in rules:
            last = max((at[i] for i in rule.ids if i in at), default=-1)
            (self._before if last < 0 else self._ready[last]).append(rule)

    def solutions(self) -> Iterator[dict[int, float]]:
        """Yield the assignments under which every rule holds, one dict each; none if ``over`` is true from the start."""
        if self.over or any(_fails(rule, self._known) for rule in self._before):
            return
        yield from self._deeper(0, dict(self._known))

    def _deeper(self, depth: int, values: dict[int, float]) -> Iterator[dict[int, float]]:
        if depth == len(self._order):
            yield {i: values[i] for i in self._order}
            return
        i = self._order[depth]
        for value in self._ranges[i]:
            if self._left <= 0:
                self.over = True
                return
            self._left -= 1
            values[i] = float(value)
            if not any(_fails(rule, values) for rule in self._ready[depth]):
                yield from self._deeper(depth + 1, values)
            if self.over:
                break
        values.pop(i, None)


def _fails(rule: Rule, values: Mapping[int, float]) -> bool:
    return rule.applies(values) and rule.violated(rule.body.value(values))
