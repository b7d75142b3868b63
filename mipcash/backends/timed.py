"""Backends with a deadline: many solves share the time left, whatever time limit the settings of each allow."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mipcash.backends.task import UNKNOWN, Answer, Backend, SolverSettings, Task
from mipcash.deadline import Deadline

EARLY = 0.9
"""Share of a time limit from which on an unproven answer is taken to have been ended by it."""


@dataclass(frozen=True)
class TimedBackend:
    """A backend that limits each solve to the time left.

    Attributes:
        backend: the solver.
        deadline: once it has passed, tasks are not solved and their answers are ``UNKNOWN``.
    """

    backend: Backend
    deadline: Deadline

    @property
    def name(self) -> str:
        """Name of the solver."""
        return self.backend.name

    def solve(self, task: Task, settings: SolverSettings) -> Answer:
        """See ``mipcash.backends.task.Backend.solve``."""
        if self.deadline.passed:
            return Answer(UNKNOWN, None, math.nan, -math.inf, 0.0)
        limited = self.deadline.within(settings)
        answer = self.backend.solve(task, limited)
        if not answer.proven and answer.seconds >= EARLY * limited.time_limit:
            self.deadline.miss()
        return answer


def timed(backend: Backend, deadline: Deadline) -> Backend:
    """Return the backend with this deadline, which replaces an earlier one."""
    solver = backend.backend if isinstance(backend, TimedBackend) else backend
    return solver if deadline.endless else TimedBackend(solver, deadline)
