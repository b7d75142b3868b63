"""Why a space is empty: a smallest set of named rules in conflict, by a deletion filter, and what would help.

Drop rules; if the rest is still infeasible they are not needed for the conflict, else they stay. What is left is
irreducible: each of its rules is needed (Chinneck 2008, Alg. 6.2, over rules instead of rows).

The least relaxation of one rule: a slack t >= 0 on each side of its rows, minimise t over the whole space. Where the
rest is feasible, the rule with its bound moved by t admits a configuration, and no smaller move does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse

from mipcash.backends.heuristics.repair import REPAIRING, legal_columns
from mipcash.backends.task import INFEASIBLE, OPTIMAL, Answer, Backend, SolverSettings, Task
from mipcash.backends.timed import TimedBackend
from mipcash.deadline import NEVER
from mipcash.errors import UndecidedError
from mipcash.modelling.rules import Rule
from mipcash.modelling.wording import number_text
from mipcash.program.forms import QuadraticForm
from mipcash.program.program import BinaryProgram
from mipcash.program.rewriting import with_columns, without_rules

BOXES = 200
"""Boxes of the search for the least relaxation, where rules multiply reals: it helps, and need not be known."""

CLOSE = 1e-5
"""Relative difference between a move and its bound that is as good as none."""

NARROW = 1e-3
"""Share of its range below which a move is looked for again in a range of its own size."""


@dataclass(frozen=True)
class RelaxedRule:
    """The least move of one rule's bounds that makes the space non-empty.

    Attributes:
        rule: its name.
        by: the move, in the units of the rule's body.
        text: e.g. ``'memory' (<= 9): 10 suffices``.
    """

    rule: str
    by: float
    text: str


@dataclass(frozen=True)
class Conflict:
    """Why a space is empty.

    Attributes:
        rules: an irreducible set of rules that cannot hold together; () if the space is not empty, or if its
            structure alone is contradictory.
        relaxations: for each rule whose relaxation alone suffices, by how much.
    """

    rules: tuple[str, ...]
    relaxations: tuple[RelaxedRule, ...] = field(default=())


def is_empty(
    program: BinaryProgram, backend: Backend, settings: SolverSettings, fixed: Mapping[int, float] | None = None
) -> bool:
    """Whether no legal configuration exists (proven within the limits), with some base columns fixed."""
    return emptiness(program, backend, settings, fixed).status == INFEASIBLE


def emptiness(
    program: BinaryProgram, backend: Backend, settings: SolverSettings, fixed: Mapping[int, float] | None = None
) -> Answer:
    """Some legal configuration, the proof that there is none, or neither within the limits."""
    deadline = backend.deadline if isinstance(backend, TimedBackend) else NEVER
    repairing = deadline.sooner(settings.time_limit).share(REPAIRING)
    known = None if fixed else legal_columns(program, np.random.default_rng(0), repairing)
    if known is not None:
        return Answer(OPTIMAL, known, 0.0, 0.0, 0.0, "repair")
    return backend.solve(Task(program, QuadraticForm.zero(program.n), fixed or {}), settings)


def told(answer: Answer) -> Answer:
    """The answer, if it says whether there is a solution.

    Raises:
        UndecidedError: a limit came before either was known.
    """
    if answer.columns is None and answer.status != INFEASIBLE:
        raise UndecidedError(
            "the solver could not tell in the time it was given whether any configuration is left; give it more time, try another "
            "solver, or make the space smaller"
        )
    return answer


def conflicting(
    program: BinaryProgram, backend: Backend, settings: SolverSettings, fixed: Mapping[int, float] | None = None
) -> tuple[str, ...]:
    """An irreducible set of rules that cannot hold together, in the order of declaration; () if there is none.

    Where the backend comes to a limit, the rules cannot hold together, but some may not be needed for that.

    Raises:
        UndecidedError: a limit came before it was known whether they can.
    """
    if told(emptiness(program, backend, settings, fixed)).columns is not None:
        return ()
    names = [name for name in dict.fromkeys(program.row_rule) if name]
    needed = list(names)
    # halving first: forty rules with three in conflict then cost some twenty solves instead of forty
    width = max(1, len(needed) // 2)
    while width >= 1:
        k = 0
        while k < len(needed):
            trial = needed[:k] + needed[k + width :]
            if is_empty(without_rules(program, set(names) - set(trial)), backend, settings, fixed):
                needed = trial
            else:
                k += width
        width = width // 2 if width > 1 else 0
    return tuple(needed)


def least_relaxation(
    program: BinaryProgram, rule: Rule, backend: Backend, settings: SolverSettings
) -> RelaxedRule | None:
    """By how much one rule must give way, all others kept; None if that does not help."""
    if program.bilinear:
        settings = replace(settings, node_limit=BOXES)
    rows = [k for k, name in enumerate(program.row_rule) if name == rule.name]
    most = _largest_violation(program, rows)
    answer = backend.solve(_move(program, rows, most), settings)
    if answer.columns is not None and 0.0 < answer.value < NARROW * most:
        # a solver knows a column no better than its range allows: a second solve where the move is no longer small beside it
        nearer = backend.solve(_move(program, rows, 2.0 * answer.value), settings)
        answer = answer if nearer.columns is None else nearer
    # a move is known no better than to what the rule may be missed by anyway, and to a solver's tolerance
    loose = 4.0 * rule.slack + CLOSE * abs(answer.value)
    if answer.columns is None or (answer.status != OPTIMAL and answer.value - answer.bound > loose):
        return None
    # what that configuration needs: a solver's own slack may be short of it by the solver's tolerance
    base = answer.columns[: program.n]
    held = [(row, row.form.value(base)) for row in program.base_rows if row.rule == rule.name]
    down = max(max(0.0, row.low - value) for row, value in held)
    up = max(max(0.0, value - row.high) for row, value in held)
    parts, noise = [], max(1e-12, rule.slack)
    if down > noise:
        parts.append(f"{_text(rule.lower - down)} suffices" if rule.lower != 0 else f"lower its bound by {_text(down)}")
    if up > noise:
        parts.append(f"{_text(rule.upper + up)} suffices" if rule.upper != 0 else f"raise its bound by {_text(up)}")
    if not parts:  # the others leave room for it within its tolerance
        return None
    return RelaxedRule(rule.name, down + up, f"{rule.name!r} ({rule.range_text()}): {' and '.join(parts)}")


def _move(program: BinaryProgram, rows: list[int], most: float) -> Task:
    """The least total of two slacks, at most ``most`` each, by which the rows may be too low and too high."""
    columns = np.zeros((program.matrix.shape[0], 2))
    for k in rows:
        columns[k, 0] = 1.0 if np.isfinite(program.row_low[k]) else 0.0
        columns[k, 1] = -1.0 if np.isfinite(program.row_high[k]) else 0.0
    slacked = with_columns(program, ("too low", "too high"), np.zeros(2), np.full(2, most), sparse.csr_array(columns))
    linear = np.zeros(slacked.n)
    linear[program.n :] = 1.0
    return Task(slacked, replace(QuadraticForm.zero(slacked.n), linear=linear))


def _text(value: float) -> str:
    """A bound without the last digits, which are the solver's."""
    return number_text(float(f"{value:.12g}"))


def _largest_violation(program: BinaryProgram, rows: list[int]) -> float:
    """An upper bound on how far the rows can be off, from the column bounds."""
    reach = np.maximum(np.abs(program.low), np.abs(program.high))
    matrix = abs(program.matrix[rows])
    bounds = np.concatenate([program.row_low[rows], program.row_high[rows]])
    finite = np.abs(bounds[np.isfinite(bounds)])
    # no larger than it has to be: beside a large range, small coefficients get lost in a tolerance
    return 1.01 * float(np.max(matrix @ reach, initial=0.0) + np.max(finite, initial=0.0)) or 1.0
