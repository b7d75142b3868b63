"""Rules that force a parameter to be active, most likely by mistake: an inactive parameter counts as 0, which violates them.

For a conditional parameter p let R be the rules without ``when=`` in which p occurs. They force p if the space is not empty, and
no legal configuration leaves p inactive but one would without R. If single rules of R do so alone, they are named; if only several
do together, all are named. Each question is a feasibility problem for the solver, posed only if interval arithmetic does not
decide it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from mipcash.backends.task import CUT_SLACK, INFEASIBLE, Backend, SolverSettings, Task
from mipcash.deadline import Deadline
from mipcash.errors import RuleWarning, warn
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.rules import Rule
from mipcash.modelling.wording import shortened
from mipcash.program.forms import QuadraticForm
from mipcash.program.program import BaseRow, BinaryProgram
from mipcash.program.rewriting import with_rows, without_rules

SECONDS = 1.0
"""Seconds for all feasibility problems of one check. No warning is given for what is undecided by then."""
SETTINGS = SolverSettings(time_limit=SECONDS)
LARGEST = 100_000
"""Number of nonzeros above which a program is not checked, since loading it once more would take too long."""


@dataclass(frozen=True)
class Forced:
    """Rules that force a parameter to be active.

    Attributes:
        parameter: its label.
        rules: one rule that forces it alone, or several that do so together.
    """

    parameter: str
    rules: tuple[str, ...]

    def message(self, declaration: Declaration) -> str:
        """Return the warning: rules, parameter and how to change the rules."""
        held = [declaration.rules[name] for name in self.rules]
        named = " and ".join(f"{rule.name!r} ({shortened(rule.written, 60)})" for rule in held)
        handle = self.parameter if self.parameter.isidentifier() else f"space[{self.parameter!r}]"
        conditions = " and ".join(f"{w} == 1" for w in declaration.conditions[self.parameter])
        if len(held) == 1:
            text, does, violates, meant = f"rule {named}", "forces", "violates the rule", "it is"
        else:
            text, does, violates, meant = f"rules {named}", "force", "violates them", "they are"
        return (
            f"{text} {does} parameter {self.parameter!r} to be active: if it is inactive, it counts as 0, which {violates}. If "
            f"{meant} meant only for an active parameter, add when={handle}.is_active(); if not, require it by a separate rule, "
            f"{shortened(conditions, 60)}"
        )


def warn_of_forced(
    declaration: Declaration, rules: Sequence[Rule], program: BinaryProgram, backend: Backend, known: set[Forced]
) -> None:
    """Warn of the rules that force a parameter, once each.

    Args:
        rules: the active rules.
        known: earlier warnings; new ones are added.
    """
    for found in forced(declaration, rules, program, backend, Deadline.after(SECONDS)):
        if found not in known:
            known.add(found)
            warn(found.message(declaration), RuleWarning)


def forced(
    declaration: Declaration, rules: Sequence[Rule], program: BinaryProgram, backend: Backend, deadline: Deadline
) -> Iterator[Forced]:
    """Yield the parameters that rules force to be active, as far as this can be decided before the deadline."""
    if program.matrix.nnz > LARGEST:
        return
    empty: bool | None = None  # asked once, of the first suspect that is forced
    for label, suspects in _suspects(declaration, rules, deadline).items():
        names = {rule.name for rule in suspects}
        inactive = with_activity(program, label, False)
        if not _is_empty(inactive, backend, deadline) or _is_empty(without_rules(inactive, names), backend, deadline):
            continue
        alone = [n for n in names if _is_empty(without_rules(inactive, names - {n}), backend, deadline)]
        empty = _is_empty(program, backend, deadline) if empty is None else empty
        if deadline.passed or empty:
            return  # an empty space forces nothing
        ordered = dict.fromkeys(rule.name for rule in suspects)
        yield from (Forced(label, (n,)) for n in ordered if n in alone)
        if not alone:
            yield Forced(label, tuple(ordered))


def _suspects(declaration: Declaration, rules: Sequence[Rule], deadline: Deadline) -> dict[str, list[Rule]]:
    """Return, for each conditional parameter, the rules in R that may be broken if the parameter counts as 0."""
    levels = {g.parameter: frozenset(map(id, g.variables)) for g in declaration.groups if g.on is not None}
    held = {**levels, **{n.label: frozenset({id(n.variable)}) for n in declaration.numbers if n.on is not None}}
    label_of = {i: label for label, ids in held.items() for i in ids}
    found: dict[str, list[Rule]] = {}
    if not label_of:
        return found
    for rule in rules:
        declared = declaration.rules.get(rule.name)
        if rule.when or declared is None or deadline.passed:
            continue
        if declared is not rule and not any(part is rule for part in declared.parts):
            continue
        for label in dict.fromkeys(label_of[i] for i in rule.body.ids if i in label_of):
            if not _only_activity(rule, levels.get(label, ())) and _may_break(declaration, rule, held[label]):
                found.setdefault(label, []).append(rule)
    return found


def _only_activity(rule: Rule, levels: Collection[int]) -> bool:
    """Return True if a rule depends on a parameter only through its activity: all levels have one coefficient and no products."""
    seen = {rule.body.linear.get(i, 0.0) for i in levels}
    return len(seen) == 1 and not any(i in levels or j in levels for i, j in rule.body.products)


def _may_break(declaration: Declaration, rule: Rule, ids: Collection[int]) -> bool:
    low, high = declaration.interval(rule.body.partial(dict.fromkeys(ids, 0.0)))
    return rule.violated(low) or rule.violated(high)


def with_activity(program: BinaryProgram, label: str, active: bool) -> BinaryProgram:
    """Return the program with the additional row that a conditional parameter is active, or inactive."""
    switch, row = program.switch(label), np.zeros(program.n_columns)
    np.add.at(row, switch.columns, switch.coefficients)
    low, high = (1.0 - switch.constant, math.inf) if active else (-math.inf, -switch.constant)
    base = BaseRow("", replace(QuadraticForm.zero(program.n), linear=row[: program.n]), low, high, CUT_SLACK)
    return with_rows(program, sparse.csr_array(row[None]), [low], [high], slack=[CUT_SLACK], base=[base])


def _is_empty(program: BinaryProgram, backend: Backend, deadline: Deadline) -> bool:
    """Return True if the program is proven to be infeasible before the deadline."""
    if deadline.passed:
        return False
    return backend.solve(Task(program, QuadraticForm.zero(program.n)), deadline.within(SETTINGS)).status == INFEASIBLE
