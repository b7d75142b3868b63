"""Rules that force the condition of a parameter, most likely by mistake: what is inactive reads as 0, and 0 breaks them.

For a conditional parameter p let R be the rules without ``when=`` in which p occurs. They force p where no legal configuration
leaves p inactive and without R one would. A rule of R that does so alone is named; where only several do together, they all
are. Each is a question of feasibility for the solver, asked only where interval arithmetic leaves it open.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from mipcash.backends.task import CUT_SLACK, INFEASIBLE, Backend, SolverSettings, Task
from mipcash.deadline import Deadline
from mipcash.errors import RuleWarning, stack_level
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.rules import Rule
from mipcash.modelling.wording import shortened
from mipcash.program.forms import QuadraticForm
from mipcash.program.program import BaseRow, BinaryProgram
from mipcash.program.rewriting import with_rows, without_rules

SECONDS = 1.0
"""What all questions of one look may take; what is open then is not warned of."""
SETTINGS = SolverSettings(time_limit=SECONDS)
LARGEST = 100_000
"""Nonzeros of a program that is not looked at: to load it once more would take longer."""


@dataclass(frozen=True)
class Forced:
    """Rules that force a parameter to be active.

    Attributes:
        parameter: its label.
        rules: one that does alone, or several that do together.
    """

    parameter: str
    rules: tuple[str, ...]

    def message(self, declaration: Declaration) -> str:
        """What is said of it: rule, parameter, cure."""
        held = [declaration.rules[name] for name in self.rules]
        named = " and ".join(f"{rule.name!r} ({shortened(rule.written, 60)})" for rule in held)
        handle = self.parameter if self.parameter.isidentifier() else f"space[{self.parameter!r}]"
        conditions = " and ".join(f"{w} == 1" for w in declaration.conditions[self.parameter])
        if len(held) == 1:
            said, does, breaks, meant = f"rule {named}", "forces", "breaks the rule", "it is"
        else:
            said, does, breaks, meant = f"rules {named}", "force", "breaks them", "they are"
        return (
            f"{said} {does} parameter {self.parameter!r} to be active: where it is not, it reads as 0, which {breaks}. If {meant} "
            f"meant for where it is active, add when={handle}.is_active(); if not, say so by a rule of its own, "
            f"{shortened(conditions, 60)}"
        )


def warn_of_forced(
    declaration: Declaration, rules: Sequence[Rule], program: BinaryProgram, backend: Backend, known: set[Forced]
) -> None:
    """Warn of the rules that force a parameter, each once.

    Args:
        rules: those that are active.
        known: what was warned of; what is found is added.
    """
    for found in forced(declaration, rules, program, backend, Deadline.after(SECONDS)):
        if found not in known:
            known.add(found)
            warnings.warn(found.message(declaration), RuleWarning, stacklevel=stack_level())


def forced(
    declaration: Declaration, rules: Sequence[Rule], program: BinaryProgram, backend: Backend, deadline: Deadline
) -> Iterator[Forced]:
    """The parameters that rules force to be active, as far as the time allows to tell."""
    if program.matrix.nnz > LARGEST:
        return
    for label, suspects in _suspects(declaration, rules, deadline).items():
        names = {rule.name for rule in suspects}
        inactive = _where_inactive(program, label)
        if not _is_empty(inactive, backend, deadline) or _is_empty(without_rules(inactive, names), backend, deadline):
            continue
        alone = [n for n in names if _is_empty(without_rules(inactive, names - {n}), backend, deadline)]
        if deadline.passed:
            return
        ordered = dict.fromkeys(rule.name for rule in suspects)
        yield from (Forced(label, (n,)) for n in ordered if n in alone)
        if not alone:
            yield Forced(label, tuple(ordered))


def _suspects(declaration: Declaration, rules: Sequence[Rule], deadline: Deadline) -> dict[str, list[Rule]]:
    """Conditional parameter -> the rules in R that may not hold where it reads as 0."""
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
    """Whether a rule sees of a parameter only if it is active: all its levels with one coefficient, and in no product."""
    seen = {rule.body.linear.get(i, 0.0) for i in levels}
    return len(seen) == 1 and not any(i in levels or j in levels for i, j in rule.body.products)


def _may_break(declaration: Declaration, rule: Rule, ids: Collection[int]) -> bool:
    low, high = declaration.interval(rule.body.partial(dict.fromkeys(ids, 0.0)))
    return rule.broken(low) or rule.broken(high)


def _where_inactive(program: BinaryProgram, label: str) -> BinaryProgram:
    """Return the program in which a parameter is inactive."""
    row, switch = np.zeros(program.n_columns), program.switch(label)
    np.add.at(row, switch.columns, switch.coefficients)
    most = -switch.constant
    base = BaseRow("", replace(QuadraticForm.zero(program.n), linear=row[: program.n]), -math.inf, most, CUT_SLACK)
    return with_rows(program, sparse.csr_array(row[None]), [-math.inf], [most], slack=[CUT_SLACK], base=[base])


def _is_empty(program: BinaryProgram, backend: Backend, deadline: Deadline) -> bool:
    """Whether that is proven in the time that is left."""
    if deadline.passed:
        return False
    return backend.solve(Task(program, QuadraticForm.zero(program.n)), deadline.within(SETTINGS)).status == INFEASIBLE
