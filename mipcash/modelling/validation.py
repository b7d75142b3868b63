"""Check a configuration against the declared rules, without the compiled program.

Parameters are checked first (unknown, missing, given though inactive, outside the domain), then every rule is
evaluated at the natural values. For rules over auxiliary variables (including indicators of disjuncts), values of them are
searched for (``mipcash.modelling.auxiliary``). Rules that plain Python cannot decide are left to the solver (``undecided``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mipcash.modelling.auxiliary import Unsatisfiable, ids_of, settle
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.domains import Configuration
from mipcash.modelling.rules import Rule
from mipcash.modelling.wording import number_text, shortened


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


def check(declaration: Declaration, config: Configuration, rules: Iterable[Rule]) -> Verdict:
    """Check a configuration against domains and rules (see the module's description)."""
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
    _assign_parameters(declaration, config, assignment, broken_parameters, problems)
    pending: list[Rule] = []
    for rule in rules:
        ids = ids_of(rule)
        if ids & broken_parameters:
            continue
        if ids <= assignment.keys():
            if rule.applies(assignment) and rule.violated(value := rule.body.value(assignment)):
                problems.append(_broken(rule, value))
        else:
            pending.append(rule)
    settled = settle(pending, assignment)
    for misfit in settled.misfits:
        alone = misfit.rules[0]
        if len(misfit.rules) == 1 and not misfit.auxiliary and ids_of(alone) <= settled.assignment.keys():
            problems.append(_broken(alone, alone.body.value(settled.assignment)))
        else:
            problems.append(_unfit(misfit))
    problems = [_as_written(declaration, p) for p in problems]
    problems = list({(p.name, p.message): p for p in problems}.values())
    return Verdict(tuple(problems), tuple(r.name for r in settled.undecided), settled.assignment)


def _broken(rule: Rule, value: float) -> Violation:
    if rule.bound_is_written or not rule.written:
        own = f"its value is {number_text(value)}, it must be {rule.range_text()}"
        return Violation(rule.name, f"rule {rule.name!r} is violated: {own}")
    missed = number_text(max(rule.lower - value, value - rule.upper))
    return Violation(rule.name, f"rule {rule.name!r} is violated: {shortened(rule.written)} does not hold, by {missed}")


def _as_written(declaration: Declaration, violation: Violation) -> Violation:
    """Return the violation in the user's words for a rule with functions or logic, instead of naming one of its parts."""
    rule = declaration.rules.get(violation.name)
    if rule is None or not rule.parts or "cannot hold together" in violation.message:
        return violation
    return Violation(rule.name, f"rule {rule.name!r} is violated: {rule} does not hold")


def _assign_parameters(
    declaration: Declaration,
    config: Configuration,
    assignment: dict[int, float],
    broken: set[int],
    problems: list[Violation],
) -> None:
    groups: dict[str, list[int]] = {}
    for g, spec in enumerate(declaration.groups):
        groups.setdefault(spec.parameter, []).append(g)
    numbers = {n.label: n for n in declaration.numbers if n.tuned}
    for label, parameter in declaration.parameters.items():
        variables = [v for g in groups.get(label, []) for v in declaration.groups[g].variables]
        variables += [numbers[label].variable] if label in numbers else []
        conditions = declaration.conditions.get(label, ())
        doubtful = any(broken & w.ids for w in conditions)
        if doubtful and label not in config:
            broken.update(map(id, variables))
            continue
        active = doubtful or all(w.value(assignment) > 0.5 for w in conditions)
        block = declaration.model.parameters[label]
        if block.component("activity") is not None:
            assignment[id(block.on)] = float(active)
        message = None
        if active and label not in config:
            message = f"parameter {label!r} is missing; it takes {parameter.domain}"
        elif not active and label in config:
            message = f"parameter {label!r} is given, but it is not active in this configuration; leave it out"
        elif active and (problem := parameter.domain.problem(config[label])) is not None:
            message = f"parameter {label!r}: {problem}"
        if message is not None:
            problems.append(Violation(label, message))
            broken.update(map(id, variables))
            continue
        assignment.update(dict.fromkeys(map(id, variables), 0.0))
        if not active:
            continue
        value: Any = parameter.domain.canonical(config[label])
        for g in groups.get(label, []):
            spec = declaration.groups[g]
            assignment[id(spec.variables[spec.level(value)])] = 1.0
        if label in numbers:
            assignment[id(numbers[label].variable)] = float(value)
    for link in declaration.links:
        if link.value.ids <= assignment.keys():
            assignment[id(link.variable)] = link.value.value(assignment)


def _unfit(misfit: Unsatisfiable) -> Violation:
    """Return the violation for rules that no value of their auxiliary variables satisfies."""
    first, listed = misfit.rules[0], dict.fromkeys(r.name for r in misfit.rules)
    names = ", ".join(map(repr, listed))
    if misfit.auxiliary:
        text = (
            f"rule {names} is violated: it needs {misfit.auxiliary} = {number_text(misfit.value)}, which it cannot be"
        )
    elif len(listed) == 1:
        text = f"rule {names} cannot hold for this configuration, whatever its auxiliaries are"
    else:
        text = f"rules {names} cannot hold together for this configuration, whatever their auxiliaries are"
    return Violation(first.name, text)


__all__ = ["Verdict", "Violation", "check"]
