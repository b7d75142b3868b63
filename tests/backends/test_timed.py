"""Test of a deadline that several solves share."""

from __future__ import annotations

from mipcash.backends.task import UNKNOWN, SolverSettings, Task
from mipcash.backends.timed import timed
from mipcash.deadline import NEVER, Deadline
from mipcash.program.forms import QuadraticForm
from mipcash.space.compiled import compiled
from tests.backends.tasks import SPACES
from tests.slow import FakeClock, SlowBackend


def test_solves_share_the_time_before_the_deadline() -> None:
    clock, program = FakeClock(), compiled(SPACES["layers"]()).program
    slow = SlowBackend(clock, 2.0)
    backend = timed(slow, Deadline.after(5.0, clock))
    task = Task(program, QuadraticForm.zero(program.n))
    statuses = [backend.solve(task, SolverSettings(time_limit=3.0)).status for _ in range(5)]
    assert statuses == ["optimal", "optimal", UNKNOWN, UNKNOWN, UNKNOWN]
    assert slow.limits == [3.0, 3.0, 1.0]  # after the deadline the solver is not called
    assert clock.now == 105.0
    later = timed(backend, Deadline.after(9.0, clock))  # replaces the first deadline
    assert later.solve(task, SolverSettings(time_limit=3.0)).status == "optimal"
    assert timed(backend, NEVER) is slow
