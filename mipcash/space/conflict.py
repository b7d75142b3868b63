"""Diagnosis of an empty space: an irreducible set of conflicting rules, by a deletion filter, and the least relaxations.

Drop rules one after the other. If the remaining rules are still infeasible, the dropped rules are not needed for the conflict;
otherwise they stay. The result is irreducible: each of its rules is needed (Chinneck 2008, Alg. 6.2, over rules instead of rows).

The least relaxation of one rule: add a slack t >= 0 on each side of its rows and minimise t over the whole space. If this is
feasible, moving the rule's bound by t admits a configuration, and no smaller move does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse

from mipcash.backends.heuristics.repair import REPAIRING, legal_columns
from mipcash.backends.reductions.scaling import divisor
from mipcash.backends.spatial import resolved
from mipcash.backends.task import INFEASIBLE, OPTIMAL, Answer, Backend, SolverSettings, Task
from mipcash.backends.timed import TimedBackend
from mipcash.deadline import NEVER
from mipcash.errors import UndecidedError
from mipcash.modelling.rules import Rule
from mipcash.modelling.wording import number_text, shortened
from mipcash.program.forms import QuadraticForm, Vector
from mipcash.program.program import BinaryProgram
from mipcash.program.rewriting import with_coefficients, with_columns, without_rules

QUESTION = SolverSettings(time_limit=60.0)
"""Settings of the questions about a space."""
BOXES = 200
"""Limit of spatial branch-and-bound nodes in the search for the least relaxation, which is optional."""

CLOSE = 1e-5
"""Relative gap between a move and its proven bound up to which the move counts as least."""

ROUGH = 0.5
"""Gap of a first solve that is only to tell the size of the move, if rules multiply reals."""

NARROW = 1e-3
"""Fraction of the slack range below which a move is solved for again over a range of its own size."""


@dataclass(frozen=True)
class RelaxedRule:
    """The least change of one rule's bounds that makes the space non-empty.

    Attributes:
        rule: its name.
        by: the change, in the units of the rule's body.
        text: e.g. ``'memory' (<= 9): 10 suffices``.
    """

    rule: str
    by: float
    text: str


@dataclass(frozen=True)
class Conflict:
    """Explanation of why a space is empty.

    Attributes:
        rules: an irreducible set of rules that cannot hold together; () if the space is not empty, or if its
            structure alone is contradictory.
        relaxations: the least change of each rule whose relaxation alone suffices.
    """

    rules: tuple[str, ...]
    relaxations: tuple[RelaxedRule, ...] = field(default=())


def emptiness(program: BinaryProgram, backend: Backend, fixed: Mapping[int, float] | None = None) -> Answer:
    """Return a legal configuration, the proof that there is none, or neither if a limit is reached first."""
    deadline = backend.deadline if isinstance(backend, TimedBackend) else NEVER
    repairing = deadline.sooner(QUESTION.time_limit).share(REPAIRING)
    known = None if fixed else legal_columns(program, np.random.default_rng(0), repairing)
    if known is not None:
        return Answer(OPTIMAL, known, 0.0, 0.0, 0.0, "repair")
    return backend.solve(Task(program, QuadraticForm.zero(program.n), fixed or {}), QUESTION)


def decided(answer: Answer) -> Answer:
    """Return the answer if it decides whether there is a solution.

    Raises:
        UndecidedError: a limit was reached before this was known.
    """
    if answer.columns is None and answer.status != INFEASIBLE:
        raise UndecidedError(
            "the solver could not tell in the time it was given whether any configuration is left; give it more time, try another "
            "solver, or make the space smaller"
        )
    return answer


def conflicting(program: BinaryProgram, backend: Backend, fixed: Mapping[int, float] | None = None) -> tuple[str, ...]:
    """Return an irreducible set of rules that cannot hold together, in order of declaration, or () if there is none.

    If the backend reaches a limit, the returned rules conflict, but some of them may not be needed for the conflict.

    Raises:
        UndecidedError: a limit was reached before it was known whether the rules conflict.
    """
    if decided(emptiness(program, backend, fixed)).columns is not None:
        return ()
    names = [name for name in dict.fromkeys(program.row_rule) if name]
    needed = list(names)
    # drop large chunks first: forty rules, three of them in conflict, then take about twenty solves instead of forty
    width = max(1, len(needed) // 2)
    while width >= 1:
        k = 0
        while k < len(needed):
            trial = needed[:k] + needed[k + width :]
            left = without_rules(program, set(names) - set(trial))
            if emptiness(left, backend, fixed).status == INFEASIBLE:
                needed = trial
            else:
                k += width
        width = width // 2 if width > 1 else 0
    return tuple(needed)


def least_relaxation(
    program: BinaryProgram, rule: Rule, value_at: Callable[[Vector], float], written: str, backend: Backend
) -> RelaxedRule | None:
    """Return the least relaxation of one rule, all other rules kept, or None if it does not help or is not proven to be least.

    Args:
        value_at: the value of the rule's body at base columns, shape (n,).
        written: the rule as its user wrote it.
    """
    rows = [k for k, name in enumerate(program.row_rule) if name == rule.name]
    most, rough = _largest_violation(program, rows), bool(program.bilinear)
    settings = replace(QUESTION, node_limit=BOXES) if rough or not resolved(program) else QUESTION
    answer = _to_multiple(program, rows, backend, settings) or backend.solve(
        _move(program, rows, most), replace(settings, gap=ROUGH) if rough else settings
    )
    if answer.columns is not None and answer.value > 0.0 and (rough or answer.value < NARROW * most):
        # a solver's precision is relative to the range of a column: solve again over twice the move found
        nearer = backend.solve(_move(program, rows, 2.0 * answer.value), settings)
        if rough or (nearer.columns is not None and (nearer.status == OPTIMAL or answer.status != OPTIMAL)):
            answer = nearer
    # a move is known only up to the rule's own slack and the solver's tolerance
    loose = 4.0 * rule.slack + CLOSE * abs(answer.value)
    if answer.columns is None or (answer.status != OPTIMAL and answer.value - answer.bound > loose):
        return None
    # use the violation at that configuration: the solver's slack variables may be smaller, by its tolerance
    base = answer.columns[: program.n]
    held = [(row, row.form.value(base)) for row in program.base_rows if row.rule == rule.name]
    moved = max([0.0, *(row.low - at for row, at in held)]) + max([0.0, *(at - row.high for row, at in held)])
    value = value_at(base)
    by = max(rule.lower - value, value - rule.upper)
    # rows with other units than the body, such as clauses over levels, do not tell how far the bound is to be moved
    if by <= max(1e-12, rule.slack) or abs(by - moved) > loose + CLOSE * by:
        return None
    visible = rule.bound_is_written and rule.lower != 0 != rule.upper
    cure = f"{_text(value)} suffices" if visible else f"relax it by {_text(by)}"
    return RelaxedRule(rule.name, by, f"{rule.name!r} ({shortened(written, 60)}): {cure}")


def _to_multiple(program: BinaryProgram, rows: list[int], backend: Backend, settings: SolverSettings) -> Answer | None:
    """Return the least move of a row over integers whose bounds contain no multiple of its divisor, as ``2 a + 4 b == 7``.

    One of its bounds moves to the next multiple, if that is enough; else, and for other rows, return None. A solver would search
    all integers for a smaller move.
    """
    unit = divisor(program, rows[0]) if len(rows) == 1 else 0.0
    at = rows[0]
    ends = float(program.row_low[at]), float(program.row_high[at])
    if not unit or not np.all(np.isfinite(ends)):
        return None
    slack = float(program.row_slack[at]) + 4.0 * float(np.spacing(max(map(abs, ends))))  # the divisor is rounded
    below, above = unit * np.floor((ends[0] + slack) / unit), unit * np.ceil((ends[1] - slack) / unit)
    if not (below < ends[0] - slack and above > ends[1] + slack and above - below < 1.5 * unit):
        return None
    for move, new in sorted([(ends[0] - below, (below, ends[1])), (above - ends[1], (ends[0], above))]):
        low, high = program.row_low.copy(), program.row_high.copy()
        low[at], high[at] = new
        moved = with_coefficients(program, program.matrix, low, high)
        answer = backend.solve(Task(moved, QuadraticForm.zero(program.n)), settings)
        if answer.columns is not None:
            return replace(answer, status=OPTIMAL, value=move, bound=move)
    return None


def _move(program: BinaryProgram, rows: list[int], most: float) -> Task:
    """Return the task that minimises the sum of two slacks, each at most ``most``, for rows that are too low or too high."""
    columns = np.zeros((program.matrix.shape[0], 2))
    for k in rows:
        columns[k, 0] = 1.0 if np.isfinite(program.row_low[k]) else 0.0
        columns[k, 1] = -1.0 if np.isfinite(program.row_high[k]) else 0.0
    slacked = with_columns(program, ("too low", "too high"), np.zeros(2), np.full(2, most), sparse.csr_array(columns))
    linear = np.zeros(slacked.n)
    linear[program.n :] = 1.0
    return Task(slacked, replace(QuadraticForm.zero(slacked.n), linear=linear))


def _text(value: float) -> str:
    """Format a bound without its last digits, which are solver noise."""
    return number_text(float(f"{value:.12g}"))


def _largest_violation(program: BinaryProgram, rows: list[int]) -> float:
    """Return an upper bound on the violation of the rows, from the column bounds."""
    reach = np.maximum(np.abs(program.low), np.abs(program.high))
    matrix = abs(program.matrix[rows])
    bounds = np.concatenate([program.row_low[rows], program.row_high[rows]])
    finite = np.abs(bounds[np.isfinite(bounds)])
    # as small as possible: beside a large range, small coefficients are within the solver's tolerance
    return 1.01 * float(np.max(matrix @ reach, initial=0.0) + np.max(finite, initial=0.0)) or 1.0
