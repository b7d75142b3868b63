"""Check a configuration against the rules as declared, without the compiled program.

Parameters are checked first (unknown, missing, given though inactive, outside the domain), then every rule is
evaluated at the natural values. Rules over auxiliaries ask whether values of the auxiliaries exist: an equation with one
unknown left fixes it, and so on; what propagation cannot decide is left to the solver (``undecided``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mipcash.space.clusters import clusters
from mipcash.space.declaration import Declaration
from mipcash.space.domains import Configuration
from mipcash.space.rules import TOLERANCE, Rule, slack

ENUMERATION_LIMIT = 20_000
"""Combinations of auxiliaries that are tried in plain Python before the solver is asked."""


@dataclass(frozen=True)
class Violation:
    """One reason why a configuration is illegal.

    Attributes:
        name: the parameter or rule.
        message: what is wrong, with the numbers.
    """

    name: str
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Verdict:
    """Outcome of the check in plain Python.

    Attributes:
        violations: broken rules and bad values; empty where none was found.
        undecided: names of rules whose auxiliaries are left to the solver.
        assignment: id of a variable -> value, for every variable the configuration fixes.
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
        ids = rule.body.ids.union(*(w.ids for w in rule.when))
        if ids & broken_parameters:
            continue
        if ids <= assignment.keys():
            if rule.applies(assignment) and rule.broken(value := rule.body.value(assignment)):
                problems.append(_broken(rule, value))
        else:
            pending.append(rule)
    undecided = _settle_auxiliaries(declaration, pending, assignment, problems)
    return Verdict(tuple(problems), tuple(undecided), assignment)


def _broken(rule: Rule, value: float) -> Violation:
    return Violation(rule.name, f"rule {rule.name!r} is broken: its value is {value:g}, it must be {rule.range_text()}")


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
        doubtful = bool(broken & set().union(*(w.ids for w in conditions)))
        if doubtful and label not in config:
            broken.update(map(id, variables))
            continue
        active = doubtful or all(w.value(assignment) > 0.5 for w in conditions)
        block = declaration.model.parameters[label]
        if block.component("conjunction") is not None:
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
            if spec.kind == "ordering":
                level = list(value).index(spec.label[len(label) + 1 :])
            else:
                level = next(
                    l for l, v in enumerate(spec.values) if v is value or (v == value and type(v) is type(value))
                )
            assignment[id(spec.variables[level])] = 1.0
        if label in numbers:
            assignment[id(numbers[label].variable)] = float(value)
    for link in declaration.links:
        if link.value.ids <= assignment.keys():
            assignment[id(link.variable)] = link.value.value(assignment)


def _settle_auxiliaries(
    declaration: Declaration, pending: list[Rule], assignment: dict[int, float], problems: list[Violation]
) -> list[str]:
    """Find values of the auxiliaries, or name the rules that admit none; returns what is left undecided."""
    domains = {id(n.variable): n.domain for n in declaration.numbers if not n.tuned}
    pending = [
        r for r in pending if not set().union(*(w.ids for w in r.when)) <= assignment.keys() or r.applies(assignment)
    ]
    progress = True
    while progress:
        progress = False
        for rule in list(pending):
            if rule not in pending:  # dropped below, with the other rules on an auxiliary that has no value
                continue
            if not all(w.ids <= assignment.keys() for w in rule.when):
                continue
            rest = rule.body.partial(assignment)
            if not rest.ids:
                pending.remove(rule)
                progress = True
                if rule.broken(rest.constant):
                    problems.append(_broken(rule, rest.constant))
            elif rule.lower == rule.upper and len(rest.ids) == 1 and not rest.products:
                (unknown, coefficient), *_ = rest.linear.items()
                domain = domains.get(unknown)
                if domain is None:
                    continue
                value = (rule.lower - rest.constant) / coefficient
                pending.remove(rule)
                progress = True
                if abs(value - round(value)) * abs(coefficient) > slack(rule.lower) or domain.problem(round(value)):
                    name = rest.variables[unknown].parent_block().index()
                    problems.append(
                        Violation(
                            rule.name,
                            f"rule {rule.name!r} is broken: it needs {name} = {value:g}, which is not an {domain}",
                        )
                    )
                    pending[:] = [r for r in pending if unknown not in r.body.ids]
                else:
                    assignment[unknown] = float(round(value))
    return _enumerate_rest(pending, assignment, domains, problems)


def _enumerate_rest(
    pending: list[Rule], assignment: Mapping[int, float], domains: Mapping[int, object], problems: list[Violation]
) -> list[str]:
    """Try all values of the auxiliaries that are left, in groups of rules that share some."""
    undecided: list[str] = []
    for cluster in _clusters(pending, assignment):
        unknown = sorted(
            set().union(*(r.body.ids.union(*(w.ids for w in r.when)) for r in cluster)) - assignment.keys()
        )
        sizes = [len(domains[i]) if i in domains else math.inf for i in unknown]  # type: ignore[arg-type]
        if math.prod(sizes) > ENUMERATION_LIMIT:
            undecided += [r.name for r in cluster]
            continue
        bodies = [(r, r.body.partial(assignment)) for r in cluster]
        for values in itertools.product(*(domains[i].values for i in unknown)):  # type: ignore[attr-defined]
            trial = dict(assignment) | dict(zip(unknown, map(float, values), strict=True))
            if not any(r.applies(trial) and r.broken(b.value(trial)) for r, b in bodies):
                break
        else:
            names = ", ".join(repr(r.name) for r in cluster)
            what = "rule" if len(cluster) == 1 else "rules"
            helpers = ", ".join(
                str(bodies[0][1].variables[i].parent_block().index()) for i in unknown if i in bodies[0][1].variables
            )
            problems.append(
                Violation(
                    cluster[0].name,
                    f"{what} {names} cannot hold for any value of the auxiliary {helpers or 'parameters'}",
                )
            )
    return undecided


def _clusters(pending: list[Rule], assignment: Mapping[int, float]) -> list[list[Rule]]:
    """Rules that share what is not assigned yet."""
    loose = ((rule.body.ids.union(*(w.ids for w in rule.when)) - assignment.keys(), rule) for rule in pending)
    return [rules for _, rules in clusters(loose)]


__all__ = ["TOLERANCE", "Verdict", "Violation", "check"]
