"""Check a configuration against the declared rules, without the compiled program.

Parameters are checked first (unknown, missing, given though inactive, outside the domain), then every rule is
evaluated at the natural values. For rules over auxiliary variables (including indicators of disjuncts), values of them are
searched for (``mipcash.modelling.auxiliary``). Rules that plain Python cannot decide are left to the solver (``undecided``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mipcash.modelling.auxiliary import Unsatisfiable, settle
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.declared import OneHot
from mipcash.modelling.domains import Configuration, ParameterDomain
from mipcash.modelling.quadratic import Condition
from mipcash.modelling.rules import Rule
from mipcash.modelling.wording import number_text, shortened

MOST_RULES = 64
"""Largest number of conflicting rules of which those that suffice are looked for."""


@dataclass(frozen=True)
class Violation:
    """One reason why a configuration is illegal.

    Attributes:
        name: the parameter or rule.
        message: the problem, with the numbers.
    """

    name: str
    message: str

    def __repr__(self) -> str:
        return f"<violation of {self.name!r}: {self.message}>"

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Verdict:
    """Result of the check in plain Python.

    Attributes:
        violations: broken rules and invalid values; empty if there are none.
        undecided: names of rules whose auxiliary variables are left to the solver.
        assignment: id of a variable -> value, for every variable that the configuration fixes and every auxiliary variable found.
    """

    violations: tuple[Violation, ...]
    undecided: tuple[str, ...]
    assignment: Mapping[int, float]


@dataclass(frozen=True)
class Slot:
    """A parameter as the check reads it.

    Attributes:
        label, domain: of the parameter.
        conditions: they hold where the parameter is active.
        active: id of the variable of a live block that tells whether it is active; None without a block.
        groups: the groups whose levels stand for its value.
        number: id of the variable that has its value; None if there is none.
        off: id -> 0.0 of all its variables, as they are where it is inactive.
    """

    label: str
    domain: ParameterDomain
    conditions: tuple[Condition, ...]
    active: int | None
    groups: tuple[OneHot, ...]
    number: int | None
    off: Mapping[int, float]


def slots(declaration: Declaration) -> tuple[Slot, ...]:
    """Return the parameters of a declaration, for many checks against it."""
    numbers = {n.label: id(n.variable) for n in declaration.numbers if n.tuned}
    found = []
    for label, parameter in declaration.parameters.items():
        groups = tuple(g for g in declaration.groups if g.parameter == label)
        block, number = declaration.model.parameters[label], numbers.get(label)
        variables = {id(v) for g in groups for v in g.variables} | ({number} if number is not None else set())
        active = None if block.component("activity") is None else id(block.on)
        conditions = tuple(declaration.conditions.get(label, ()))
        found.append(Slot(label, parameter.domain, conditions, active, groups, number, dict.fromkeys(variables, 0.0)))
    return tuple(found)


def check(
    declaration: Declaration,
    config: Configuration,
    rules: Iterable[Rule],
    known: Sequence[Slot] | None = None,
    least: bool = False,
) -> Verdict:
    """Check a configuration against domains and rules (see the module's description).

    Args:
        known: ``slots`` of the declaration, if the caller has them.
        least: of rules that cannot hold together, name only some that cannot without any of them.
    """
    problems: list[Violation] = []
    assignment: dict[int, float] = {}
    broken_parameters: set[int] = set()
    if not isinstance(config, Mapping):
        problems.append(
            Violation("configuration", f"a configuration is a dict of parameter values, got {type(config).__name__}")
        )
        return Verdict(tuple(problems), (), {})
    for name in config:
        if name not in declaration.parameters:
            problems.append(Violation(str(name), f"{name!r} is not a parameter of space {declaration.name!r}"))
    _assign_parameters(known or slots(declaration), config, assignment, broken_parameters, problems)
    for link in declaration.links:
        if link.value.ids <= assignment.keys():
            assignment[id(link.variable)] = link.value.value(assignment)
    pending: list[Rule] = []
    for rule in rules:
        ids = rule.ids
        if ids & broken_parameters:
            continue
        if ids <= assignment.keys():
            if rule.applies(assignment) and rule.violated(value := rule.body.value(assignment)):
                problems.append(_broken(declaration, rule, value))
        else:
            pending.append(rule)
    if not problems and not pending:  # most configurations
        return Verdict((), (), assignment)
    settled = settle(pending, assignment)
    for misfit in settled.misfits:
        if least and len(misfit.rules) > 1:
            misfit = replace(misfit, rules=_least(misfit.rules, assignment))
        alone = misfit.rules[0]
        if len(misfit.rules) == 1 and not misfit.auxiliary and alone.ids <= settled.assignment.keys():
            problems.append(_broken(declaration, alone, alone.body.value(settled.assignment)))
        else:
            problems.append(_unfit(declaration, misfit))
    problems = list({(p.name, p.message): p for p in problems}.values())
    return Verdict(tuple(problems), tuple(r.name for r in settled.undecided), settled.assignment)


def _least(rules: Sequence[Rule], assignment: Mapping[int, float]) -> tuple[Rule, ...]:
    """Return those of conflicting rules that remain if each is left out in turn where the others conflict without it."""
    left = list(rules)
    for rule in rules if len(rules) <= MOST_RULES else ():
        others = [r for r in left if r is not rule]
        if settle(others, assignment).misfits:
            left = others
    return tuple(left)


def _broken(declaration: Declaration, rule: Rule, value: float) -> Violation:
    whole = declaration.rules.get(rule.name)
    if whole is not None and whole.parts:  # in the user's words
        return Violation(rule.name, f"rule {rule.name!r} is violated: {whole} does not hold")
    if rule.bound_is_written or not rule.written:
        own = f"its value is {number_text(value)}, it must be {rule.range_text()}"
        return Violation(rule.name, f"rule {rule.name!r} is violated: {own}")
    missed = number_text(max(rule.lower - value, value - rule.upper))
    return Violation(rule.name, f"rule {rule.name!r} is violated: {shortened(rule.written)} does not hold, by {missed}")


def _assign_parameters(
    parameters: Iterable[Slot],
    config: Configuration,
    assignment: dict[int, float],
    broken: set[int],
    problems: list[Violation],
) -> None:
    for slot in parameters:
        label = slot.label
        doubtful = any(broken & w.ids for w in slot.conditions) if broken else False
        if doubtful and label not in config:
            broken.update(slot.off)
            continue
        active = doubtful or not slot.conditions or all(w.value(assignment) > 0.5 for w in slot.conditions)
        if slot.active is not None:
            assignment[slot.active] = float(active)
        message = None
        if active and label not in config:
            message = f"parameter {label!r} is missing; it takes {slot.domain}"
        elif not active and label in config:
            message = f"parameter {label!r} is given, but it is not active in this configuration; leave it out"
        elif active and (problem := slot.domain.problem(config[label])) is not None:
            message = f"parameter {label!r}: {problem}"
        if message is not None:
            problems.append(Violation(label, message))
            broken.update(slot.off)
            continue
        assignment.update(slot.off)
        if not active:
            continue
        value: Any = slot.domain.canonical(config[label])
        for group in slot.groups:
            assignment[id(group.variables[group.level(value)])] = 1.0
        if slot.number is not None:
            assignment[slot.number] = float(value)


def _unfit(declaration: Declaration, misfit: Unsatisfiable) -> Violation:
    """Return the violation for rules that no value of their auxiliary variables satisfies."""
    first, listed = misfit.rules[0], dict.fromkeys(r.name for r in misfit.rules)
    names, whole = ", ".join(map(repr, listed)), declaration.rules.get(first.name)
    if len(listed) == 1 and whole is not None and whole.parts:
        return _broken(declaration, first, misfit.value)
    if misfit.auxiliary:
        text = (
            f"rule {names} is violated: it needs {misfit.auxiliary} = {number_text(misfit.value)}, which it cannot be"
        )
    elif len(listed) == 1:
        text = f"rule {names} cannot hold for this configuration, whatever its auxiliaries are"
    else:
        text = f"rules {names} cannot hold together for this configuration, whatever their auxiliaries are"
    return Violation(first.name, text)


__all__ = ["Verdict", "Violation", "check", "slots"]
