"""``solver="auto"``, the default: enumeration within a node limit, then the installed solver that is fastest for the structure.

Enumeration (``mipcash.backends.enumeration.backend``) proves most tasks in milliseconds. The remaining tasks go to toulbar2,
whose bounds are strong if many pairs interact. For many bits that all interact, the native MIQP of Gurobi is faster, if it is
installed and its licence is large enough. Tasks that neither accepts go to HiGHS, and those with a linear objective go there first.
Every stage checks its own answers, and an answer names the stage that proved it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from mipcash.backends.enumeration.backend import EnumerationBackend
from mipcash.backends.registry import make_backend
from mipcash.backends.task import Answer, Backend, SolverSettings, Task
from mipcash.errors import SolverError

NODES = 200_000.0
MOST_NODES = 20_000_000.0
"""The effort of enumeration, see ``mipcash.backends.enumeration.branching.Effort``."""
DISCRETE = "toulbar2"
NATIVE = "gurobi form=quadratic"
GENERAL = "highs"
DENSE_BITS = 35
"""Number of bits from which on the native MIQP is faster than toulbar2 if they are ``DENSELY`` coupled."""
DENSELY = 0.5
LINEAR_NODES = 10_000.0
LINEAR_LIMITS: dict[str, dict[str, Any]] = {GENERAL: {"node_limit": 500}, DISCRETE: {"time_limit": 1.0}}
"""Effort of enumeration, and limits of HiGHS and then of toulbar2, if the objective has no products. HiGHS solves most such
programs in milliseconds, whose rules may still have products. Its limit is not of time, so that proposals do not depend on the
machine. The propagation of toulbar2 beside rows may be endless (see ``COARSE_RANGE`` of its backend)."""
LARGE_DOMAIN = 3
"""Number of states from which on a group does not count as a bit."""


class PortfolioBackend:
    """Solves a task by enumeration, or with the solver that is fastest for its structure.

    Args:
        options: ``solver``, which solves the tasks that enumeration does not prove, and that solver's own options.

    Raises:
        SolverError: there are options without a solver that they belong to, or the solver rejects one.
    """

    name = "auto"

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        given = dict(options or {})
        solver = given.pop("solver", "")
        if given and not solver:
            raise SolverError(
                f"solver 'auto' takes no options ({', '.join(given)}) but 'solver'; name the one that they belong to: "
                f"'auto solver=highs {' '.join(f'{key}={value}' for key, value in given.items())}'"
            )
        self._enumeration: Backend = EnumerationBackend(nodes=NODES, most=MOST_NODES)
        self._briefly: Backend = EnumerationBackend(nodes=LINEAR_NODES, most=LINEAR_NODES)
        self._backends: dict[str, Backend | None] = {}
        self._named = make_backend(solver, given) if solver else None

    def solve(self, task: Task, settings: SolverSettings) -> Answer:
        """See ``mipcash.backends.task.Backend.solve``."""
        began = time.perf_counter()
        try:
            early = (self._briefly if _is_linear(task) else self._enumeration).solve(task, settings)
        except SolverError:
            # enumeration cannot take the task
            return self._ask(task, settings)
        return early if early.proven else _continued(early, self._ask, task, settings, began)

    def _ask(self, task: Task, settings: SolverSettings) -> Answer:
        """Solve with the named solver, else with the installed solvers that accept the task, until one proves its answer.

        The integer costs of toulbar2 may be too coarse if the optimum is about 0; HiGHS then continues from its answer.
        """
        if self._named is not None:
            return self._named.solve(task, settings)
        began, early = time.perf_counter(), None
        for name in _suited(task):
            backend = self._backend(name)
            if backend is None:
                continue
            try:
                limited = _limited(name, task, settings)
                if early is None:
                    early = backend.solve(task, limited)
                else:
                    early = _continued(early, backend.solve, task, limited, time.perf_counter())
            except SolverError:
                # too many values, a continuous auxiliary variable, or more than a licence allows
                continue
            if early.proven or settings.node_limit is not None:
                return early
            if not _is_linear(task):
                break
        general = self._backend(GENERAL)
        assert general is not None, "HiGHS comes with mipcash"
        return (
            general.solve(task, settings) if early is None else _continued(early, general.solve, task, settings, began)
        )

    def _backend(self, name: str) -> Backend | None:
        """Return a backend; None if its solver is not installed."""
        if name not in self._backends:
            self._backends[name] = None
            with suppress(SolverError):
                self._backends[name] = make_backend(name)
        return self._backends[name]


def _continued(
    early: Answer, solve: Callable[[Task, SolverSettings], Answer], task: Task, settings: SolverSettings, began: float
) -> Answer:
    """Continue an unproven answer with another solver in the time that is left."""
    spent = time.perf_counter() - began
    if spent >= settings.time_limit:
        return early
    start = task.start if early.columns is None else early.columns
    later = solve(replace(task, start=start), replace(settings, time_limit=settings.time_limit - spent))
    return early.joined(later, time.perf_counter() - began)


def _limited(name: str, task: Task, settings: SolverSettings) -> SolverSettings:
    """Return the settings, with a lower limit if the objective has no products, since HiGHS solves such tasks well."""
    if len(task.form.rows):
        return settings
    lower = LINEAR_LIMITS.get(name, {}).items()
    return replace(
        settings, **{k: v if getattr(settings, k) is None else min(getattr(settings, k), v) for k, v in lower}
    )


def _is_linear(task: Task) -> bool:
    """Return True if the objective has no products, and is more than the question if there is a legal point."""
    return not len(task.form.rows) and bool(np.any(task.form.linear))


def _suited(task: Task) -> tuple[str, ...]:
    """Return the solvers to try before HiGHS has all the time that is left, the fastest first."""
    program, cost = task.program, task.form.linear
    for n in program.numbers:
        free = n.column not in task.fixed and n.latent not in task.fixed
        if free and (not program.integer[n.column] or cost[n.column] or cost[n.latent]):
            return ()  # toulbar2 needs finite domains, and its propagation of a cost of a wide integer may be endless
    if _is_linear(task):
        return (GENERAL, DISCRETE)
    return (NATIVE, DISCRETE) if _dense_bits(task) else (DISCRETE,)


def _dense_bits(task: Task) -> bool:
    """Return True if there are many bits and most pairs of them interact."""
    bits = {g for g, group in enumerate(task.program.groups) if group.size < LARGE_DOMAIN}
    couples = sum(1 for g, h in task.program.couplings(task.form) if g in bits and h in bits)
    return len(bits) >= DENSE_BITS and couples >= DENSELY * len(bits) * (len(bits) - 1) / 2
