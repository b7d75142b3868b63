"""The interface of a backend: minimise a quadratic form over a compiled program, with a proof.

A backend handles programs and forms; it does not depend on parameters, surrogates or studies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from mipcash.errors import check_settings
from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.program import BinaryProgram

OPTIMAL = "optimal"
"""The incumbent is proven optimal within the requested gap."""
FEASIBLE = "feasible"
"""A limit stopped the solver: there is an incumbent and a bound, but no proof of optimality."""
INFEASIBLE = "infeasible"
"""It is proven that no legal configuration exists (under the given cuts and fixings)."""
UNKNOWN = "unknown"
"""A limit stopped the solver before it found an incumbent."""
ABSOLUTE_GAP = 1e-9
"""Largest difference between value and bound that counts as zero."""
SOLVED = 1e-12
"""Absolute gap at which solvers may stop, in units of the largest cost."""


def relative_gap(value: float, bound: float) -> float:
    """Return the gap between value and bound, divided by the larger absolute value of the two; inf without a bound.

    It is at most 2, also if value and bound differ in sign.
    """
    apart = abs(value - bound)
    if math.isinf(apart):
        return math.inf
    return apart / max(abs(value), abs(bound)) if apart > ABSOLUTE_GAP else 0.0


@dataclass(frozen=True)
class SolverSettings:
    """Limits of one solve.

    Args:
        time_limit: seconds of wall-clock time.
        gap: relative gap at which the solver may stop and report the incumbent as optimal.
        threads: number of threads; 1 keeps runs reproducible.
        seed: the solver's own seed.
        node_limit: branch-and-bound nodes; unlike a time limit, this limit is reproducible.

    Raises:
        SpaceError: a limit is negative or not a number, the seed or the threads are no whole number, or there are no threads.

    Examples:
        >>> import mipcash as mc
        >>> solver = mc.settings.SolverSettings(time_limit=1.0, node_limit=50)
        >>> mc.settings.HybridSettings(solver=solver).solver.node_limit
        50
    """

    time_limit: float = 60.0
    gap: float = 1e-6
    threads: int = 1
    seed: int = 0
    node_limit: int | None = None

    def __post_init__(self) -> None:
        check_settings(self, time_limit=0, gap=0, threads=1, seed=0, node_limit=0)


CUT_SLACK = 1e-6
"""Largest violation of a cut that counts as legal."""


@dataclass(frozen=True)
class Cut:
    """An extra row ``low <= values . v[columns] <= high`` over base columns, for one solve."""

    columns: Indices
    values: Vector
    low: float
    high: float

    def weights(self, n: int) -> Vector:
        """Return the row over the first n base columns, shape (n,); all columns of the cut must be among them."""
        dense = np.zeros(n)
        np.add.at(dense, self.columns, self.values)
        return dense


@dataclass(frozen=True)
class Task:
    """One problem to solve.

    Attributes:
        program: the compiled space.
        form: the objective, over the base columns of ``program``; folded.
        fixed: base column -> value.
        cuts: extra rows.
        start: base columns of a legal point to start from, shape (n,), nan where unknown.
    """

    program: BinaryProgram
    form: QuadraticForm
    fixed: Mapping[int, float] = field(default_factory=dict)
    cuts: Sequence[Cut] = ()
    start: Vector | None = None


@dataclass(frozen=True)
class Answer:
    """The result of a solve.

    Attributes:
        status: ``OPTIMAL``, ``FEASIBLE``, ``INFEASIBLE`` or ``UNKNOWN``.
        columns: base columns of the incumbent, shape (n,); None without an incumbent.
        value: objective of the incumbent (nan without one).
        bound: proven lower bound.
        seconds: wall-clock time.
        prover: a solver or ``enumeration``, which proved the status and the bound; "" if nothing is proven.
    """

    status: str
    columns: Vector | None
    value: float
    bound: float
    seconds: float
    prover: str = ""

    @property
    def proven(self) -> bool:
        """True if optimality or infeasibility is proven."""
        return self.status in (OPTIMAL, INFEASIBLE)

    def joined(self, later: Answer, seconds: float) -> Answer:
        """Combine this unproven answer with a later one for the same task."""
        if later.status == INFEASIBLE and self.columns is not None:  # the point that is known refutes it
            return replace(self, seconds=seconds)
        if later.status == INFEASIBLE or (self.columns is None and later.columns is None):
            return replace(later, bound=max(self.bound, later.bound), seconds=seconds)
        best = later if self.columns is None or later.value <= self.value else self
        bound = min(max(self.bound, later.bound), best.value)
        status = OPTIMAL if later.status == OPTIMAL else FEASIBLE
        return Answer(status, best.columns, best.value, bound, seconds, later.prover)


class Backend(Protocol):
    """A solver of tasks."""

    @property
    def name(self) -> str:
        """Name of the solver, for solutions and messages."""

    def solve(self, task: Task, settings: SolverSettings) -> Answer:
        """Minimise the objective; at a limit, return the incumbent and a bound instead of raising an exception.

        Raises:
            SolverError: the solver is missing, rejects the program, or fails numerically.
        """
