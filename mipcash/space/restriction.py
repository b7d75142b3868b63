"""A sub-space: the configurations in which some parameters are active and have a given value.

A held parameter is a rule like any other, over the binary of its level or over its variable. What checks, compiles, samples and
walks under rules therefore stays inside, and the points of a sub-space have the same levels and units as those of the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from mipcash.backends.task import Backend
from mipcash.errors import InfeasibleSpaceError, SpaceError
from mipcash.modelling.domains import Value
from mipcash.modelling.quadratic import Quadratic, Variable
from mipcash.modelling.rules import Rule
from mipcash.program.algebra import AlgebraicModel, AlgebraicRow
from mipcash.program.compile import compile_space
from mipcash.space.compiled import QUESTION, CompiledSpace
from mipcash.space.conflict import conflicting, emptiness, told


def restricted(space: CompiledSpace, fixed: Mapping[str, Value], backend: Backend) -> CompiledSpace:
    """The sub-space in which every parameter in ``fixed`` is active and has its value.

    Args:
        fixed: label -> value; of a module, its algorithm.
        backend: who says whether anything is left.

    Raises:
        SpaceError: no such parameter, or a value outside its domain.
        InfeasibleSpaceError: no legal configuration has these values; the message names the rules against it.
        SolverError: a limit came before that was known.
    """
    values = {label: _checked(space, label, value) for label, value in fixed.items()}
    rules = [rule for label, value in values.items() for rule in _rules(space, label, value)]
    rows = tuple(_row(space.algebra, rule) for rule in rules)
    algebra = replace(space.algebra, rows=(*space.algebra.rows, *rows))
    program = compile_space(space.declaration, space.in_rules, algebra)
    sub = CompiledSpace(space.declaration, program, (*space.rules, *rules), algebra, {**space.fixed, **values})
    if told(emptiness(program, backend, QUESTION)).columns is None:
        raise InfeasibleSpaceError(_why_empty(sub, backend))
    return sub


def _checked(space: CompiledSpace, label: str, value: Value) -> Value:
    """The value as configurations have it."""
    parameter = space.declaration.parameters.get(label)
    if parameter is None:
        raise SpaceError(
            f"space {space.name!r} has no parameter {label!r} to hold; it has {list(space.declaration.parameters)}"
        )
    problem = parameter.domain.problem(value)
    if problem is not None:
        raise SpaceError(f"parameter {label!r} cannot be held: {problem}")
    return parameter.domain.canonical(value)


def _rules(space: CompiledSpace, label: str, value: Value) -> Iterator[Rule]:
    """What it takes that a parameter is active and has a value."""
    name = _name(label, value)
    for spec in space.declaration.groups:
        if spec.parameter == label:
            yield _equals(name, spec.variables[spec.level(value)], 1.0)
    for number in space.declaration.numbers:
        if number.label == label:
            yield _equals(name, number.variable, float(value))
            if number.on is not None:
                body = replace(number.on, constant=0.0)
                yield Rule(name, body, 1.0 - number.on.constant, 1.0 - number.on.constant)


def _name(label: str, value: Value) -> str:
    return f"{label} held at {value!r}"


def _equals(name: str, variable: Variable, value: float) -> Rule:
    return Rule(name, Quadratic(0.0, {id(variable): 1.0}, {}, {id(variable): variable}), value, value)


def _row(algebra: AlgebraicModel, rule: Rule) -> AlgebraicRow:
    """A rule over declared variables as a row over those that stand for them."""
    image = {i: algebra.image[i] for i in rule.body.variables}
    linear = {id(image[i]): c for i, c in rule.body.linear.items()}
    body = Quadratic(0.0, linear, {}, {id(v): v for v in image.values()})
    return AlgebraicRow(rule.name, "", body, rule.lower, rule.upper, rule.slack)


def _why_empty(sub: CompiledSpace, backend: Backend) -> str:
    held = ", ".join(f"{label} = {value!r}" for label, value in sub.fixed.items())
    ours = {_name(label, value) for label, value in sub.fixed.items()}
    rules = [name for name in conflicting(sub.program, backend, QUESTION) if name not in ours]
    against = ", ".join(map(repr, rules))
    cause = f"rule{'s' * (len(rules) > 1)} {against} cannot hold there" if rules else "its conditions do not admit them"
    return f"no legal configuration of space {sub.name!r} has {held}: {cause}; hold other values, or fewer"
