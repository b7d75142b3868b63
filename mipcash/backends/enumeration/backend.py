"""An exact answer before a solver is asked: proof by soft consistency and enumeration where a program allows it.

A program allows it where its numbers are fixed, its helpers follow from the levels, and its rules leave pairs and linear
rows over few states (:mod:`mipcash.backends.enumeration.network`), or few joint levels at all
(:mod:`mipcash.backends.enumeration.exhaustive`).
The effort counts nodes, so that what is proven does not depend on the clock; what the effort did not suffice for goes to a
solver, with the best point found and the bound.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from mipcash.backends.base import Answer, SolverSettings, Task
from mipcash.backends.enumeration.bounds import make_potentials
from mipcash.backends.enumeration.exhaustive import Listing, make_listing
from mipcash.backends.enumeration.network import PairwiseNetwork, network_at
from mipcash.backends.enumeration.search import Best, Effort, prove
from mipcash.backends.solution import FEASIBLE, INFEASIBLE, OPTIMAL, UNKNOWN
from mipcash.program.forms import Indices, Vector
from mipcash.program.legality import Legality, legality_at
from mipcash.program.program import BinaryProgram
from mipcash.program.recent import Recent

KEPT_SPACES = 16
NODES = 200_000.0
MOST_NODES = 20_000_000.0
WORTHWHILE_GAP = 1e-5
"""Relative gap from which on it is used; below it, proofs are exact and take no longer."""
NAME = "enumeration"
"""Who proved it, in answers."""
PRECISION = 1e-11
"""Costs are compared up to this share of their spread."""


@dataclass(frozen=True)
class _Space:
    """A program with some columns fixed; the program is kept so that its id stays its own.

    Attributes:
        within: what the rules come to; None where the program is out of reach.
    """

    program: BinaryProgram
    legality: Legality
    within: PairwiseNetwork | Listing | None


class Prover:
    """Proves what is within its reach; keeps the networks of recent programs.

    Args:
        nodes, most: what a proof may cost, see :class:`mipcash.backends.enumeration.search.Effort`.
    """

    def __init__(self, nodes: float = NODES, most: float = MOST_NODES) -> None:
        self.nodes, self.most = nodes, most
        self._spaces: Recent[_Space] = Recent(KEPT_SPACES)

    def solve(self, task: Task, settings: SolverSettings) -> Answer | None:
        """The answer, proven or not within the effort; None where the program is out of reach."""
        began = time.perf_counter()
        if not _expressible(task):
            return None
        key = (id(task.program), tuple(sorted(task.fixed.items())))
        space = self._spaces.get(key, lambda: self._make_space(task))
        if space.within is None:
            return None
        if isinstance(space.within, Listing):
            return _least(space.within, space.legality, task, began)
        network = space.within.with_cuts(task.cuts)
        if not np.all(np.diff(network.starts)):
            return Answer(INFEASIBLE, None, math.nan, math.inf, time.perf_counter() - began, NAME)
        constant = task.form.constant
        theta, pairs = network.costs(task.form)
        start = _start(network, task)
        potentials = make_potentials(network, theta, pairs)
        value = potentials.ceiling if start is None else _cost(theta, pairs, start)
        precision = PRECISION * (float(np.ptp(theta)) + len(network.variables) * float(np.abs(pairs).max(initial=0.0)))
        loose = settings.gap > WORTHWHILE_GAP and start is not None
        tolerance = max(precision, settings.gap * abs(value + constant)) if loose else precision
        best = Best(value, tolerance, start)
        effort = Effort(self.nodes, self.most, began + settings.time_limit)
        proven = prove(potentials, best, effort)
        bound = max(potentials.lower, min(effort.left, best.upper))
        seconds = time.perf_counter() - began
        if best.states is None:
            if proven:
                return Answer(INFEASIBLE, None, math.nan, math.inf, seconds, NAME)
            return Answer(UNKNOWN, None, math.nan, bound + constant, seconds, NAME)
        columns = space.legality.completed(network.levels_of(np.sort(best.states)))
        value = task.form.value(columns)
        if proven:
            return Answer(OPTIMAL, columns, value, value - best.tolerance, time.perf_counter() - began, NAME)
        return Answer(FEASIBLE, columns, value, min(value, bound + constant), time.perf_counter() - began, NAME)

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
        # a level that must be taken leaves no other of its group
        taken = np.bincount(program.group_of[required], minlength=len(program.groups)) > 0
        allowed &= required | ~taken[program.group_of]
        return _Space(program, legality, network_at(legality, allowed) or make_listing(legality, allowed))


def _least(listing: Listing, legality: Legality, task: Task, began: float) -> Answer:
    """The least of all that the cuts admit, the first of equals."""
    values = np.where(listing.admitted(task.cuts), listing.values(task.form), math.inf)
    at = int(np.argmin(values)) if len(values) else -1
    if at < 0 or values[at] == math.inf:
        return Answer(INFEASIBLE, None, math.nan, math.inf, time.perf_counter() - began, NAME)
    columns = legality.completed(listing.levels[at])
    value, spread = task.form.value(columns), float(np.ptp(values[values < math.inf]))
    return Answer(OPTIMAL, columns, value, value - PRECISION * spread, time.perf_counter() - began, NAME)


def _expressible(task: Task) -> bool:
    """Whether the objective and the cuts are over binaries, of which there are some, and every number is fixed and legal."""
    program, form = task.program, task.form
    if not program.n_z or not program.has_base_rows:
        return False
    if np.any(form.linear[program.n_z :]) or np.any(form.rows >= program.n_z) or np.any(form.cols >= program.n_z):
        return False
    if any(np.any(cut.columns >= program.n_z) for cut in task.cuts):
        return False
    latents = {n.latent for n in program.numbers}
    others = [c for c in task.fixed if c >= program.n_z and c not in latents]
    within = all(
        program.low[c] - 1e-9 <= task.fixed.get(c, math.inf) <= program.high[c] + 1e-9
        and (not program.integer[c] or task.fixed[c] == round(task.fixed[c]))
        for c in latents
    )
    return within and not others


def _start(network: PairwiseNetwork, task: Task) -> Indices | None:
    """States of the task's start; None where it is not legal or not known."""
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
