"""``solver="auto"``: the fastest installed solver for the structure at hand.

Enumeration (:mod:`mipcash.backends.enumeration.backend`) proves most tasks in milliseconds. What it does not is for toulbar2, whose
bounds are strong where many pairs interact; but between many bits that all interact the native MIQP of Gurobi is faster,
where it is installed and its licence is large enough. What neither takes goes to HiGHS.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from mipcash.backends.base import Answer, Backend, SolverSettings, Task
from mipcash.backends.certificate import certified
from mipcash.backends.enumeration.backend import Prover
from mipcash.backends.registry import make_backend, solver_info
from mipcash.errors import SolverError

DISCRETE = "toulbar2"
NATIVE = "gurobi form=quadratic"
GENERAL = "highs enumeration=off"
DENSE_BITS = 35
"""Bits from which on the native MIQP is faster than toulbar2 if they are ``DENSELY`` coupled."""
DENSELY = 0.5
LARGE_DOMAIN = 3
"""States from which on a group is no bit."""


class AutoBackend:
    """Solves a task by enumeration, or with the solver that is fastest for its structure.

    Args:
        options: there are none; each solver has its own.

    Raises:
        SolverError: options were given.
    """

    name = "auto"

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        if options:
            raise SolverError(
                f"solver 'auto' takes no options ({', '.join(options)}); name the solver that they belong to"
            )
        self._prover = Prover()
        self._backends: dict[str, Backend] = {}

    def solve(self, task: Task, settings: SolverSettings) -> Answer:
        """See :meth:`mipcash.backends.base.Backend.solve`."""
        return certified(task, settings, self._unchecked, self.name)

    def _unchecked(self, task: Task, settings: SolverSettings) -> Answer:
        """By enumeration, then by a solver, which checks its own answers."""
        began = time.perf_counter()
        early = self._prover.solve(task, settings)
        if early is None:
            return self._ask(task, settings)
        if early.proven or early.seconds >= settings.time_limit:
            return early
        start = task.start if early.columns is None else early.columns
        left = replace(settings, time_limit=settings.time_limit - early.seconds)
        return early.joined(self._ask(replace(task, start=start), left), time.perf_counter() - began)

    def _ask(self, task: Task, settings: SolverSettings) -> Answer:
        """The first solver that is installed and takes the task."""
        for name in (NATIVE, DISCRETE) if _dense_bits(task) else (DISCRETE,):
            if solver_info(name.split()[0]).installed:
                try:
                    return self._backend(name).solve(task, settings)
                except SolverError:
                    # continuous columns, too many values, or more than a licence allows
                    continue
        return self._backend(GENERAL).solve(task, settings)

    def _backend(self, name: str) -> Backend:
        if name not in self._backends:
            self._backends[name] = make_backend(name)
        return self._backends[name]


def _dense_bits(task: Task) -> bool:
    """Whether many bits all interact."""
    bits = {g for g, group in enumerate(task.program.groups) if group.size < LARGE_DOMAIN}
    couples = sum(1 for g, h in task.program.couplings(task.form) if g in bits and h in bits)
    return len(bits) >= DENSE_BITS and couples >= DENSELY * len(bits) * (len(bits) - 1) / 2
