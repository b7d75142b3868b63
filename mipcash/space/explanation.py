"""Explanation of an empty space: the conflicting rules and the least relaxations."""

from __future__ import annotations

from functools import partial

from mipcash.backends.task import INFEASIBLE, Backend
from mipcash.backends.timed import TimedBackend
from mipcash.errors import SolverError, SpaceError
from mipcash.modelling.rules import Rule
from mipcash.space.compiled import CompiledSpace
from mipcash.space.conflict import Conflict, conflicting, emptiness, least_relaxation
from mipcash.space.optimum import value_at


def conflict_of(space: CompiledSpace, backend: Backend) -> Conflict:
    """Return an irreducible conflict among the named rules, and the least relaxations that resolve it.

    Returns:
        An empty conflict if the space is not empty.

    Raises:
        SolverError: a limit was reached before this was known.
    """
    names = conflicting(space.program, backend)
    relaxations = []
    listed = [rule.name for rule in space.rules]
    logic = {rule.name for rule in space.algebra.logic}
    for rule in space.rules:
        # a rule with several rows, under a disjunct, or over truth values has no single bound to move
        if rule.name in names and not (rule.name in logic or listed.count(rule.name) > 1 or _of_truths(space, rule)):
            try:
                written = str(space.declaration.rules.get(rule.name, rule))
                value = partial(value_at, space.declaration, space.program, rule.body)
                found = least_relaxation(space.program, rule, value, written, space.backend)
            except (SolverError, SpaceError):  # the conflict is known, and the relaxation is optional
                continue
            relaxations += [] if found is None else [found]
    return Conflict(names, tuple(relaxations))


def _of_truths(space: CompiledSpace, rule: Rule) -> bool:
    """Return True if the rule is a condition such as ``~act["relu"]``, or a clause of a composed rule, and no relation."""
    ones, variables = all(abs(c) == 1.0 for c in rule.body.linear.values()), rule.body.variables.values()
    alone, whole = len({id(v.parent_component()) for v in variables}) == 1, space.declaration.rules.get(rule.name)
    return (
        ones
        and not rule.bound_is_written
        and all(v.is_binary() for v in variables)
        and (alone or (whole is not None and bool(whole.parts)))
    )


def explained(space: CompiledSpace, backend: Backend, *, empty: bool = False) -> str:
    """Return a text on why a space is empty, or that it is not; see ``mipcash.Space.explain``.

    Args:
        empty: True if the space is already proven to be empty.
    """
    answer, name = emptiness(space.program, backend), space.name
    if answer.columns is not None:
        return f"space {name!r} is not empty"
    no_time = f"space {name!r} is empty; the time limit was reached before the reason was found; explain() gives it"
    if answer.status != INFEASIBLE and empty:
        return no_time
    if answer.status != INFEASIBLE:
        return f"the solver could not tell in the time it was given whether space {name!r} is empty; give it more, or try another"
    try:
        found = conflict_of(space, backend)
    except SolverError:
        return no_time
    if not found.rules:
        return f"space {name!r} is empty: its conditions and domains contradict each other"
    listed = ", ".join(map(repr, found.rules))
    text = (
        f"space {name!r} is empty: {'rule' if len(found.rules) == 1 else 'rules'} {listed} cannot hold "
        f"{'within the domains' if len(found.rules) == 1 else 'together'}; relax or drop one of them"
    )
    if found.relaxations:
        late = isinstance(space.backend, TimedBackend) and space.backend.deadline.passed
        text += f". The least that helps{', as far as the time allowed' if late else ''}: "
        text += "; or ".join(r.text for r in found.relaxations)
    return text
