"""A declaration as a space of ConfigSpace, if ConfigSpace can express it.

It can express parameters other than orderings, activity, and rules over lists of values (a setting that violates one becomes a
forbidden clause). Of rules over numerical parameters it can express bounds on one parameter and comparisons of two. Other rules are
refused by name.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mipcash.errors import SpaceError
from mipcash.integrations.spaces.shared import package
from mipcash.modelling.auxiliary import settle
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.declared import OneHot
from mipcash.modelling.domains import LISTED, Categorical, Configuration, Integer, Real, Value
from mipcash.modelling.live.components import relations_of
from mipcash.modelling.quadratic import Condition, Quadratic
from mipcash.modelling.rules import Rule

MOST_SETTINGS, MOST_CLAUSES = 20_000, 1_000
"""Maximum number of joint settings that are checked for one rule, and of forbidden clauses for it."""

Setting = tuple[int | None, ...]
"""A level of each of some groups; None: off."""


def configspace_of(declaration: Declaration, legal: Iterable[Configuration]) -> Any:
    """Return a ``ConfigurationSpace``.

    Args:
        legal: legal configurations; the first that ConfigSpace accepts becomes the default. ConfigSpace refuses a space whose
            default is forbidden, and some others, since it evaluates "not equal" of an inactive parent inconsistently.

    Raises:
        SpaceError: ConfigSpace cannot express the declaration; the message names the part.
    """
    theirs = package("ConfigSpace", "configspace", "to_configspace")
    for relation in relations_of(declaration):
        raise SpaceError(_inexpressible(f"the constraint {relation.name!r} of the model", "write it as a rule"))
    if declaration.fidelity is not None:
        raise SpaceError(_inexpressible(f"the fidelity {declaration.fidelity.label!r}", "declare it as a parameter"))
    problem = ""
    for default in legal:
        space = theirs.ConfigurationSpace(name=declaration.name)
        made = {name: _hyperparameter(theirs, name, p.domain, default) for name, p in declaration.parameters.items()}
        back = _Back(theirs, declaration, made)
        clauses = [clause for rule in declaration.rules.values() for clause in back.clauses(rule)]
        parts = [*made.values(), *filter(None, map(back.condition, declaration.conditions)), *clauses]
        try:
            space.add(*parts)
        except ValueError as error:  # the base class of all its exceptions
            problem = str(error)
        else:
            return space
    raise SpaceError(f"ConfigSpace takes none of the legal configurations that were tried as its default: {problem}")


def _inexpressible(what: str, cure: str) -> str:
    return f"ConfigSpace cannot express {what}; {cure}, or keep the space in mipcash"


def _hyperparameter(theirs: Any, name: str, domain: Any, legal: Configuration) -> Any:
    default = {"default_value": legal[name]} if name in legal else {}
    if isinstance(domain, Real) and domain.step is None:
        return theirs.UniformFloatHyperparameter(name, domain.low, domain.high, log=domain.log, **default)
    if isinstance(domain, Integer) and domain.step == 1 and domain.low < domain.high:
        return theirs.UniformIntegerHyperparameter(name, domain.low, domain.high, log=domain.log, **default)
    values = getattr(domain, "values", None)
    if values is None:
        raise SpaceError(_inexpressible(f"{name!r}, {domain}", "leave it out"))
    if len(values) > LISTED and isinstance(domain, (Real, Integer)):
        raise SpaceError(
            _inexpressible(f"the steps of {name!r}, {domain}, but by a list of its values", "give a wider step")
        )
    if len(values) == 1:
        return theirs.Constant(name, values[0])
    if isinstance(domain, Categorical):
        return theirs.CategoricalHyperparameter(name, list(values), **default)
    return theirs.OrdinalHyperparameter(name, list(values), **default)


@dataclass(frozen=True)
class _Back:
    """The conversion; ``made`` are ConfigSpace's hyperparameters by name."""

    theirs: Any
    declaration: Declaration
    made: Mapping[str, Any]

    # -- conditions -------------------------------------------------------------------------------------------------

    def condition(self, child: str) -> Any:
        """Return the condition under which a parameter is active; None: it is always active."""
        parts = [part for w in self.declaration.conditions[child] for part in self._parts(child, w)]
        return self._all(parts) if parts else None

    def _all(self, parts: Sequence[Any]) -> Any:
        return parts[0] if len(parts) == 1 else self.theirs.AndConjunction(*parts)

    def _parts(self, child: str, condition: Condition) -> list[Any]:
        """Return conditions that are together equivalent to a condition."""
        if isinstance(condition, Quadratic):
            (group,) = self._groups(condition.ids)
            holds = [l for l, v in enumerate(group.variables) if _value(condition, v) > 0.5]
            return self._among(child, group, holds, off=condition.constant > 0.5)
        if condition.every:
            return [each for part in condition.parts for each in self._parts(child, part)]
        return [self.theirs.OrConjunction(*(self._all(self._parts(child, part)) for part in condition.parts))]

    def _among(self, child: str, group: OneHot, levels: Sequence[int], off: bool) -> list[Any]:
        """Return conditions that all hold if a group has one of some levels, or is off and ``off`` is allowed."""
        if off and group.on is not None:
            missing = [v for l, v in enumerate(group.values) if l not in levels]
            return [self.theirs.NotEqualsCondition(self.made[child], self._of(group), v) for v in missing]
        values = [group.values[l] for l in levels]
        if len(values) == 1:
            return [self.theirs.EqualsCondition(self.made[child], self._of(group), values[0])]
        return [self.theirs.InCondition(self.made[child], self._of(group), values)]

    def _of(self, group: OneHot) -> Any:
        return self.made[group.parameter]

    # -- rules ------------------------------------------------------------------------------------------------------

    def clauses(self, rule: Rule) -> Iterator[Any]:
        """Yield the forbidden clauses of a rule."""
        parts = rule.parts or (rule,)
        ids = {i for part in parts for q in (part.body, *part.when) for i in q.ids}
        numbers = {id(n.variable): n.label for n in self.declaration.numbers if n.tuned}
        if ids & numbers.keys():
            yield from self._of_numbers(rule, numbers)
            return
        groups = self._groups(ids)
        for broken in (self._broken(parts, groups), self._broken(parts, self._with_parents(groups))):
            listed, over = broken
            if all(level is not None for setting in listed for level in setting) or over != groups:
                yield from self._forbidding(rule, listed, over)
                return

    def _broken(self, parts: Sequence[Rule], groups: list[OneHot]) -> tuple[list[Setting], list[OneHot]]:
        """Return the settings of some groups that violate a rule, and these groups."""
        choices = [[*range(len(g.values)), *([] if g.on is None else [None])] for g in groups]
        if math.prod(map(len, choices)) > MOST_SETTINGS:
            raise SpaceError(
                _inexpressible(f"the rule {parts[0].name!r}, of {MOST_SETTINGS:,} settings or more", "leave it out")
            )
        found = []
        for setting in itertools.product(*choices):
            assignment = {id(v): 0.0 for g in groups for v in g.variables}
            for group, level in zip(groups, setting, strict=True):
                if level is not None:
                    assignment[id(group.variables[level])] = 1.0
            if self._possible(groups, setting, assignment):
                settled = settle(list(parts), assignment)
                if settled.undecided:
                    raise SpaceError(_inexpressible(f"the rule {parts[0].name!r} with its auxiliaries", "leave it out"))
                if settled.misfits:
                    found.append(setting)
        return found, groups

    def _possible(self, groups: Sequence[OneHot], setting: Setting, assignment: Mapping[int, float]) -> bool:
        """Return True if activity allows a setting, as far as its groups determine it."""
        for group, level in zip(groups, setting, strict=True):
            conditions = self.declaration.conditions.get(group.parameter, ())
            known = [w.value(assignment) > 0.5 for w in conditions if w.ids <= assignment.keys()]
            if level is not None and not all(known):
                return False
            if level is None and len(known) == len(conditions) and all(known):
                return False
        return True

    def _with_parents(self, groups: list[OneHot]) -> list[OneHot]:
        """Return the groups together with all groups that determine where they are active."""
        found = list(groups)
        for group in found:  # ``found`` grows in the loop
            for w in self.declaration.conditions.get(group.parameter, ()):
                found += [g for g in self._groups(w.ids) if g not in found]
        return found

    def _forbidding(self, rule: Rule, broken: Sequence[Setting], groups: Sequence[OneHot]) -> Iterator[Any]:
        """Yield clauses for violating settings; settings that differ only in the group with most levels share one clause."""
        longest = max(range(len(groups)), key=lambda k: len(groups[k].values), default=0)
        joined: dict[Setting, list[int | None]] = {}
        for setting in broken:
            joined.setdefault((*setting[:longest], *setting[longest + 1 :]), []).append(setting[longest])
        if len(joined) > MOST_CLAUSES:
            raise SpaceError(
                _inexpressible(f"the rule {rule.name!r}, which is {len(joined):,} clauses", "leave it out")
            )
        others = [g for k, g in enumerate(groups) if k != longest]
        for setting, levels in joined.items():
            literals = [
                self._literal(g, [level]) for g, level in zip(others, setting, strict=True) if level is not None
            ]
            on = [level for level in levels if level is not None]
            if on:
                yield self._together([*literals, self._literal(groups[longest], on)])
            if None in levels:
                yield self._together(literals)

    def _literal(self, group: OneHot, levels: Sequence[int]) -> Any:
        values: list[Value] = [group.values[l] for l in levels]
        if len(values) == 1:
            return self.theirs.ForbiddenEqualsClause(self._of(group), values[0])
        return self.theirs.ForbiddenInClause(self._of(group), values)

    def _together(self, literals: Sequence[Any]) -> Any:
        return literals[0] if len(literals) == 1 else self.theirs.ForbiddenAndConjunction(*literals)

    # -- rules over numerical parameters ----------------------------------------------------------------------------

    def _of_numbers(self, rule: Rule, numbers: Mapping[int, str]) -> Iterator[Any]:
        """Yield clauses for ``c x <= b`` and ``x <= y``, where other parameters have given values."""
        body, cure = rule.body, "bound one number, or compare two"
        refused = SpaceError(_inexpressible(f"the rule {rule.name!r} ({rule})", cure))
        slopes = self._slopes(body, numbers)
        if rule.parts or body.products or slopes is None or len(slopes) > 2:
            raise refused
        labels = list(slopes)
        literals = []
        own = [w for label in labels for w in self.declaration.conditions.get(label, ())]
        for w in rule.when:
            groups = self._groups(w.ids)
            if any(_same(w, other) for other in own):
                continue  # in ConfigSpace an inactive parameter violates no clause
            if len(groups) != 1 or (w.constant > 0.5 and groups[0].on is not None):
                raise refused
            literals.append(
                self._literal(groups[0], [l for l, v in enumerate(groups[0].variables) if _value(w, v) > 0.5])
            )
        for other in own:  # an inactive numerical parameter counts as 0, which the rule may forbid
            at_zero = body.constant
            if not any(_same(w, other) for w in rule.when) and (len(labels) > 1 or rule.violated(at_zero)):
                raise refused
        one = len(labels) == 1
        comparison = self._bounds(labels[0], rule) if one else self._comparisons(slopes, rule, refused)
        for literal in comparison:
            yield self._together([*literals, literal])

    def _slopes(self, body: Quadratic, numbers: Mapping[int, str]) -> dict[str, float] | None:
        """Return a polynomial as a sum of parameters' values: label -> factor; None if it is not such a sum."""
        slopes = {numbers[i]: c for i, c in body.linear.items() if i in numbers}
        left = body.linear.keys() - numbers.keys()
        for group in self._groups(left):
            worth = [(id(v), float(value)) for v, value in zip(group.variables, group.values, strict=True) if value]
            factors = {body.linear.get(i, 0.0) / value for i, value in worth}
            if len(factors) != 1 or group.kind not in ("integer", "ordinal"):
                return None
            slopes[group.parameter] = factors.pop()
            left -= {i for i, _ in worth}
        return None if left else slopes

    def _bounds(self, label: str, rule: Rule) -> Iterator[Any]:
        (slope,), domain = rule.body.linear.values(), self.declaration.parameters[label].domain
        ends = [(end - rule.body.constant) / slope for end in (rule.lower, rule.upper)]
        low, high = ends if slope > 0 else reversed(ends)
        whole = isinstance(domain, Integer)
        low, high = (
            (math.ceil(low - 1e-9), math.floor(high + 1e-9)) if whole and math.isfinite(low + high) else (low, high)
        )
        for end, kind in ((low, "ForbiddenLessThanClause"), (high, "ForbiddenGreaterThanClause")):
            if math.isfinite(end) and domain.low <= end <= domain.high:  # type: ignore[union-attr]
                yield getattr(self.theirs, kind)(self.made[label], int(end) if whole else end)

    def _comparisons(self, slopes: Mapping[str, float], rule: Rule, refused: SpaceError) -> Iterator[Any]:
        labels, (a, b) = list(slopes), slopes.values()
        if a != -b or rule.body.constant or any(math.isfinite(end) and end for end in (rule.lower, rule.upper)):
            raise refused
        first, second = (self.made[label] for label in (labels if a > 0 else reversed(labels)))
        if math.isfinite(rule.upper):
            yield self.theirs.ForbiddenGreaterThanRelation(first, second)
        if math.isfinite(rule.lower):
            yield self.theirs.ForbiddenLessThanRelation(first, second)

    def _groups(self, ids: Any) -> list[OneHot]:
        return [g for g in self.declaration.groups if any(id(v) in ids for v in g.variables)]


def _value(indicator: Quadratic, variable: Any) -> float:
    """Return the value of an indicator over one group at one of the group's levels."""
    return indicator.constant + indicator.linear.get(id(variable), 0.0)


def _same(a: Condition, b: Condition) -> bool:
    if not isinstance(a, Quadratic) or not isinstance(b, Quadratic):
        return False
    return a.constant == b.constant and dict(a.linear) == dict(b.linear)
