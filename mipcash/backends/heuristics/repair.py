"""Legal points under very many rules, by local search on the violated rows; weights grow at local minima (Morris 1993).

Notation
    W (m, n_z)  rows over the binaries;   b (m,) their values at the present levels
    cost        weighted sum of the violations of the rows, each in units of the row's largest coefficient

    (r, c)      entries: every row r with every column c of the groups in the row; a move of a group changes only these rows
"""

from __future__ import annotations

import numpy as np

from mipcash.deadline import NEVER, Deadline
from mipcash.program.forms import Indices, Vector
from mipcash.program.legality import Legality
from mipcash.program.program import BinaryProgram

STEPS = 400
"""Maximum number of single moves."""
MANY = 1000
"""Number of rows from which on this search runs before a solver is called."""
ENTRIES = 4_000_000
"""Maximum number of entries of W."""
REPAIRING = 0.25
"""Share of the remaining time in which levels are repaired without a solver; if that fails, the solver has the rest."""
TIE = 1e-12
"""Costs that differ by less, relative to the present cost, count as equal."""


def repaired(
    legality: Legality, levels: Indices, rng: np.random.Generator, deadline: Deadline = NEVER
) -> Indices | None:
    """Return legal levels near the given ones, (G,) -> (G,), or None.

    None means that the search found none, or that the rules are not only linear rows over levels.

    Args:
        legality: complete; of a program without conditional groups and orderings.
        rng: breaks ties.
        deadline: after it no further move is made.
    """
    program = legality.program
    tables, listed = legality.constraints()
    rows = [row for row, _ in listed]
    if tables or any(len(r.form.rows) for r in rows) or len(rows) * program.n_z > ENTRIES:
        return None
    if not legality.complete or any(g.conditional or g.kind == "ordering" for g in program.groups):
        return None
    matrix = np.array([r.form.linear[: program.n_z] for r in rows]).reshape(len(rows), program.n_z)
    unit = np.maximum(np.abs(matrix).max(axis=1, initial=0.0), 1e-300)
    matrix = matrix / unit[:, None]
    low, high = np.array([r.low for r in rows]) / unit, np.array([r.high for r in rows]) / unit
    free = program.high[: program.n_z] > 0.5
    starts, group_of = program.starts[: len(levels)], program.group_of[: program.n_z]
    r, c = np.nonzero((np.add.reduceat(matrix != 0.0, starts, axis=1) > 0)[:, group_of])
    entries, owner, r_low, r_high = matrix[r, c], group_of[c], low[r], high[r]
    weight, found = np.ones(len(rows)), levels.copy()
    for _ in range(STEPS):
        if deadline.passed:
            return None
        at = program.starts + found
        body = matrix[:, at].sum(axis=1)
        missed = _missed(body, low, high)
        if not np.any(missed > 0.0):
            return found if bool(legality.check(found[None])[0]) else None
        moved = body[r] + entries - matrix[r, at[owner]]
        change = weight[r] * (_missed(moved, r_low, r_high) - missed[r])
        now = float(weight @ missed)
        cost = now + np.bincount(c, change, minlength=program.n_z)
        cost[~free] = np.inf
        cost[at] = np.inf
        best = float(cost.min())
        if best >= now - TIE * now:
            weight[missed > 0.0] += 1.0
        column = int(rng.choice(np.flatnonzero(cost <= best + TIE * now)))
        group = int(program.group_of[column])
        found[group] = column - program.starts[group]
    return None


def many_rules(program: BinaryProgram) -> bool:
    """Return True if rules have MANY rows; the rows of one-hot groups are not counted."""
    return sum(bool(row.rule) for row in program.base_rows) >= MANY


def many_over_levels(program: BinaryProgram) -> bool:
    """Return True if rules have MANY rows and there are no numerical parameters."""
    return not program.numbers and many_rules(program)


def legal_columns(program: BinaryProgram, rng: np.random.Generator, deadline: Deadline = NEVER) -> Vector | None:
    """Find base columns of a legal configuration, (n,), without a solver, under MANY rows over levels only.

    Return None if the program has fewer rows or other rules, or if none was found.
    """
    if not many_over_levels(program) or not program.has_base_rows or deadline.passed:
        return None
    legality, allowed = Legality(program, {}), program.high[: program.n_z] > 0.5
    draws = np.where(allowed, rng.random(program.n_z), -1.0)
    target = np.array([int(np.argmax(draws[g.start : g.stop])) for g in program.groups])
    levels = repaired(legality, target, rng, deadline)
    if levels is None:
        return None
    columns = legality.completed(levels)
    within = (columns >= program.low[: program.n]) & (columns <= program.high[: program.n])
    return columns if bool(np.all(within)) else None


def _missed(body: Vector, low: Vector, high: Vector) -> Vector:
    missed: Vector = np.maximum(np.maximum(low - body, body - high), 0.0)
    return missed
