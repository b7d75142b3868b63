"""A backend that keeps a deadline, whatever the settings of a solve allow: many solves share what is left of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mipcash.backends.task import UNKNOWN, Answer, Backend, SolverSettings, Task
from mipcash.deadline import Deadline


@dataclass(frozen=True)
class TimedBackend:
    """Hands every task on with a time limit of at most what is left.

    Attributes:
        backend: who solves.
        deadline: once it has passed nobody is asked, and nothing is known.
    """

    backend: Backend
    deadline: Deadline

    @property
    def name(self) -> str:
        """The solver's."""
        return self.backend.name

    def solve(self, task: Task, settings: SolverSettings) -> Answer:
        """See :meth:`mipcash.backends.task.Backend.solve`."""
        if self.deadline.passed:
            return Answer(UNKNOWN, None, math.nan, -math.inf, 0.0)
        return self.backend.solve(task, self.deadline.within(settings))


def timed(backend: Backend, deadline: Deadline) -> Backend:
    """A backend until a deadline; another deadline of its own no longer counts."""
    solver = backend.backend if isinstance(backend, TimedBackend) else backend
    return solver if deadline.endless else TimedBackend(solver, deadline)
