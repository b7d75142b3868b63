"""Solvers keep a deadline that many solves share."""

from __future__ import annotations

import numpy as np
import pytest

from mipcash.backends.registry import make_backend
from mipcash.backends.task import UNKNOWN, SolverSettings, Task
from mipcash.backends.timed import timed
from mipcash.deadline import NEVER, Deadline
from mipcash.program.forms import QuadraticForm
from mipcash.space.compiled import compiled
from tests.backends.tasks import SPACES
from tests.slow import FakeClock, SlowBackend
from tests.spaces import shape_space


def test_solves_share_what_is_left() -> None:
    clock, program = FakeClock(), compiled(SPACES["layers"]()).program
    slow = SlowBackend(clock, 2.0)
    backend = timed(slow, Deadline.after(5.0, clock))
    task = Task(program, QuadraticForm.zero(program.n))
    statuses = [backend.solve(task, SolverSettings(time_limit=3.0)).status for _ in range(5)]
    assert statuses == ["optimal", "optimal", UNKNOWN, UNKNOWN, UNKNOWN]
    assert slow.limits == [3.0, 3.0, 1.0]  # once the deadline has passed nobody is asked
    assert clock.now == 105.0
    later = timed(backend, Deadline.after(9.0, clock))  # takes the place of the first
    assert later.solve(task, SolverSettings(time_limit=3.0)).status == "optimal"
    assert timed(backend, NEVER) is slow


@pytest.mark.parametrize("name", ["toulbar2", "highs"])
def test_a_search_ends_with_its_time(name: str) -> None:
    """It would take hours: what is known by then is a bound and perhaps a point."""
    program, rng = compiled(shape_space()).program, np.random.default_rng(0)
    rows, cols = np.triu_indices(program.n_z, k=1)
    form = program.folded(
        QuadraticForm(
            0.0, np.zeros(program.n), rows.astype(np.int64), cols.astype(np.int64), rng.normal(size=len(rows))
        )
    )
    answer = make_backend(name).solve(Task(program, form), SolverSettings(time_limit=0.3))
    assert not answer.proven
    assert answer.columns is None or answer.bound <= answer.value
