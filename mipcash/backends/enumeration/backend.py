"""``solver="enumeration"``: proof by soft consistency and enumeration, without a solver, for programs that allow it.

A program allows it if its numerical parameters are fixed, its auxiliary variables follow from the levels, and its rules reduce to
pairs and linear rows over few states (``mipcash.backends.enumeration.network``). Otherwise its combinations of levels must be few:
they are then listed, which takes milliseconds, where a solver takes tenths of a second. A wide program (``is_wide``) is
accepted only if no rule or cost connects its groups. The effort is limited in nodes, so that a proof does not depend on the
clock; without a proof the answer is the best point found and a bound.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mipcash.backends.certificate import certified, closes
from mipcash.backends.enumeration.bounds import make_potentials
from mipcash.backends.enumeration.branching import Best, Effort, prove
from mipcash.backends.enumeration.network import PairwiseNetwork, network_at
from mipcash.backends.task import (
    CUT_SLACK,
    FEASIBLE,
    INFEASIBLE,
    OPTIMAL,
    UNKNOWN,
    Answer,
    SolverSettings,
    Task,
)
from mipcash.errors import SolverError
from mipcash.program.forms import Booleans, Indices, Vector
from mipcash.program.legality import Legality, legality_at
from mipcash.program.program import BinaryProgram, is_wide
from mipcash.program.recent import Recent

KEPT_SPACES = 16
LISTED = 20_000
"""Number of combinations of levels, legal or not, up to which they are listed."""
WORTHWHILE_GAP = 1e-5
"""Smallest relative gap that is used to prune; proofs with a smaller one are exact and take no longer."""
PRECISION = 1e-11
"""Relative precision of cost comparisons, in units of the costs' spread."""


@dataclass(frozen=True)
class _Space:
    """A program with some columns fixed. The program is referenced so that its id is not reused.

    Attributes:
        network: the rules; None if they are no network.
        levels: the legal level vectors, (S, G), if there is no network; None if there may be too many.
    """

    program: BinaryProgram
    legality: Legality
    network: PairwiseNetwork | None
    levels: Indices | None


class EnumerationBackend:
    """Solves tasks that enumeration can take; keeps the networks of recent programs.

    Args:
        options: not supported.
        nodes, most: limits of a proof, see ``mipcash.backends.enumeration.branching.Effort``; without them, the limits
            of each solve.

    Raises:
        SolverError: options were given.
    """

    name = "enumeration"

    def __init__(self, options: Mapping[str, str] | None = None, nodes: float | None = None, most: float = 0.0) -> None:
        if options:
            raise SolverError(f"solver 'enumeration' takes no options ({', '.join(options)}); drop them")
        self.nodes, self.most = nodes, most
        self._spaces: Recent[_Space] = Recent(KEPT_SPACES)

    def solve(self, task: Task, settings: SolverSettings) -> Answer:
        """See ``mipcash.backends.task.Backend.solve``.

        Raises:
            SolverError: enumeration cannot take the task.
        """
        return certified(task, settings, self._unchecked, self.name, exact=True)

    def _unchecked(self, task: Task, settings: SolverSettings) -> Answer:
        began = time.perf_counter()
        reason = _inexpressible(task)
        if reason:
            raise _out_of_reach(reason)
        if is_wide(task.program.n_z, len(task.program.groups)):
            raise _out_of_reach("the space is wide")
        key = (id(task.program), tuple(sorted(task.fixed.items())))
        space = self._spaces.get(key, lambda: self._make_space(task))
        if space.levels is not None:
            return _least(space.levels, space.legality, task, settings, began)
        if space.network is None:
            raise _out_of_reach(
                "its rules are no tables of pairs of parameters, and it has too many configurations to list"
            )
        network = space.network.with_cuts(task.cuts)
        if not np.all(np.diff(network.starts)):
            return Answer(INFEASIBLE, None, math.nan, math.inf, time.perf_counter() - began, EnumerationBackend.name)
        constant = task.form.constant
        theta, pairs = network.costs(task.form)
        start = _start(network, task)
        potentials = make_potentials(network, theta, pairs)
        value = potentials.ceiling if start is None else _cost(theta, pairs, start)
        precision = PRECISION * (float(np.ptp(theta)) + len(network.variables) * float(np.abs(pairs).max(initial=0.0)))
        loose = settings.gap > WORTHWHILE_GAP and start is not None
        tolerance = max(precision, settings.gap * abs(value + constant)) if loose else precision
        best = Best(value, tolerance, start)
        effort = self._effort(settings, began)
        proven = prove(potentials, best, effort)
        bound = max(potentials.lower, min(effort.left, best.upper))
        seconds = time.perf_counter() - began
        if best.states is None:
            if proven:
                return Answer(INFEASIBLE, None, math.nan, math.inf, seconds, EnumerationBackend.name)
            return Answer(UNKNOWN, None, math.nan, bound + constant, seconds, EnumerationBackend.name)
        columns = space.legality.completed(network.levels_of(np.sort(best.states)))
        value = task.form.value(columns)
        bound = value - best.tolerance if proven else min(value, bound + constant)
        status = OPTIMAL if proven and closes(value, bound, settings) else FEASIBLE
        return Answer(status, columns, value, bound, time.perf_counter() - began, EnumerationBackend.name)

    def _effort(self, settings: SolverSettings, began: float) -> Effort:
        limit = math.inf if settings.node_limit is None else float(settings.node_limit)
        return Effort(limit if self.nodes is None else self.nodes, self.most, began + settings.time_limit)

    @staticmethod
    def _make_space(task: Task) -> _Space:
        program = task.program
        numbers = {n.label: float(task.fixed[n.latent]) for n in program.numbers}
        legality = legality_at(program, numbers)
        allowed = program.high[: program.n_z] > 0.5
        required = program.low[: program.n_z] > 0.5
        for column, fixed in task.fixed.items():
            if column < program.n_z:
                allowed[column] &= fixed > 0.5
                required[column] |= fixed > 0.5
        # a required level excludes the other levels of its group
        taken = np.bincount(program.group_of[required], minlength=len(program.groups)) > 0
        allowed &= required | ~taken[program.group_of]
        network = network_at(legality, allowed)
        return _Space(program, legality, network, _listed(legality, allowed) if network is None else None)


def _listed(legality: Legality, allowed: Booleans) -> Indices | None:
    """Return the legal level vectors over allowed columns, (S, G); None if there may be too many, or only a solver can tell."""
    choices = [np.flatnonzero(allowed[x.start : x.stop]) for x in legality.program.groups]
    if not legality.complete or math.prod(map(len, choices)) > LISTED:
        return None
    levels: Indices = np.stack([axis.ravel() for axis in np.meshgrid(*choices, indexing="ij")], axis=1)
    levels = levels[np.all(legality.effective(levels) == levels, axis=1)]
    return levels[legality.check(levels)]


def _least(levels: Indices, legality: Legality, task: Task, settings: SolverSettings, began: float) -> Answer:
    """Return the answer with the least cost among listed levels, (S, G), that satisfy the cuts; the first one of several."""
    columns, form = legality.program.starts + levels, task.form
    matrix, values = form.symmetric(), form.constant + form.linear[columns].sum(axis=1)
    for g in range(1, columns.shape[1]):
        values += matrix[columns[:, :g], columns[:, g, None]].sum(axis=1)
    for cut in task.cuts:
        body = cut.weights(legality.program.n_z)[columns].sum(axis=1)
        values[(body < cut.low - CUT_SLACK) | (body > cut.high + CUT_SLACK)] = math.inf
    if not np.isfinite(values).any():
        return Answer(INFEASIBLE, None, math.nan, math.inf, time.perf_counter() - began, EnumerationBackend.name)
    point = legality.completed(levels[int(np.argmin(values))])
    value = form.value(point)
    bound = value - PRECISION * float(np.ptp(values[np.isfinite(values)]))
    status = OPTIMAL if closes(value, bound, settings) else FEASIBLE
    return Answer(status, point, value, bound, time.perf_counter() - began, EnumerationBackend.name)


def _inexpressible(task: Task) -> str:
    """Return the reason why a task is not over levels alone, with legal fixed numerical parameters; "" if it is."""
    program, form = task.program, task.form
    if not program.n_z:
        return "it has no levels"
    if not program.has_base_rows:
        return "it has rows or columns that a reduction added"
    if np.any(form.linear[program.n_z :]) or np.any(form.rows >= program.n_z) or np.any(form.cols >= program.n_z):
        return "its objective contains numerical parameters or auxiliary variables"
    if any(np.any(cut.columns >= program.n_z) for cut in task.cuts):
        return "a cut contains numerical parameters or auxiliary variables"
    for number in program.numbers:
        c = number.latent
        if c not in task.fixed:
            return f"its number {number.label!r} is not fixed"
        whole = not program.integer[c] or task.fixed[c] == round(task.fixed[c])
        if not (program.low[c] - 1e-9 <= task.fixed[c] <= program.high[c] + 1e-9 and whole):
            return f"its number {number.label!r} is fixed outside its domain"
    latents = {n.latent for n in program.numbers}
    others = [c for c in task.fixed if c >= program.n_z and c not in latents]
    return f"its column {program.names[others[0]]!r} is fixed, which is neither a level nor a number" if others else ""


def _out_of_reach(reason: str) -> SolverError:
    return SolverError(
        f"enumeration cannot take this program: {reason}; use solver='auto', which gives such programs to another solver"
    )


def _start(network: PairwiseNetwork, task: Task) -> Indices | None:
    """Return the states of the task's start, or None if it is illegal or unknown."""
    n_z = task.program.n_z
    if task.start is None or not np.all(np.isfinite(task.start[:n_z])):
        return None
    z = task.start[:n_z] > 0.5
    if not np.array_equal(np.add.reduceat(z.astype(np.int64), task.program.starts), np.ones(len(task.program.groups))):
        return None
    states = network.states_of(task.program.levels_of(task.start))
    return states if states is not None and network.admits(states) else None


def _cost(theta: Vector, pairs: Vector, states: Indices) -> float:
    return float(theta[states].sum() + pairs[np.ix_(states, states)].sum() / 2)
