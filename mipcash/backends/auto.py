"""``solver="auto"``: the fastest installed solver for the structure at hand."""

from __future__ import annotations

from collections.abc import Mapping

from mipcash.backends.base import Answer, Backend, SolverSettings, Task
from mipcash.backends.registry import make_backend, solver_info
from mipcash.errors import SolverError

DISCRETE = "toulbar2"
GENERAL = "highs"


class AutoBackend:
    """Solves a task with toulbar2 where it is installed and expresses the program, else with HiGHS.

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
        self._discrete = solver_info(DISCRETE).installed
        self._backends: dict[str, Backend] = {}

    def solve(self, task: Task, settings: SolverSettings) -> Answer:
        """See :meth:`mipcash.backends.base.Backend.solve`."""
        if self._discrete:
            try:
                return self._backend(DISCRETE).solve(task, settings)
            except SolverError:
                # continuous columns, or too many values
                pass
        return self._backend(GENERAL).solve(task, settings)

    def _backend(self, name: str) -> Backend:
        if name not in self._backends:
            self._backends[name] = make_backend(name)
        return self._backends[name]
