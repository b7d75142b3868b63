"""Without local search, the best legal one of the given levels is where a proof starts."""

from __future__ import annotations

import numpy as np

import mipcash as mc
from mipcash.backends.registry import make_backend
from mipcash.backends.task import Answer, SolverSettings, Task
from mipcash.program.forms import QuadraticForm
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Exclusion
from mipcash.space.minimiser import Minimiser


class Watched:
    """Remembers the start of its last task."""

    name = "watched"

    def __init__(self) -> None:
        self.inner, self.start = make_backend("auto"), None

    def solve(self, task: Task, settings: SolverSettings) -> Answer:
        self.start = task.start
        return self.inner.solve(task, settings)


def test_the_best_legal_and_admitted_levels_are_the_start():
    space = mc.Space("bits")
    bits = [space.integer(f"b{k}", 0, 1) for k in range(4)]
    space.rule("two at most", sum(bits) <= 2)
    program, backend = Domain.of(space).program, Watched()
    minimiser = Minimiser(program, backend)
    linear = np.zeros(program.n)
    linear[program.starts + 1] = [-1.0, -2.0, -3.0, -4.0]
    none = np.zeros(0, dtype=np.int64)
    form = QuadraticForm(0.0, linear, none, none, np.zeros(0))
    levels = np.array([[1, 0, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1], [0, 1, 0, 1]])

    def started(excluded: list[Exclusion]) -> np.ndarray | None:
        answer = minimiser.minimise(form, SolverSettings(), excluded=excluded, starts=list(levels))
        assert answer.value == (-7.0 if not excluded else -6.0)
        return None if backend.start is None else program.levels_of(backend.start)

    assert np.array_equal(started([]), levels[1])
    assert np.array_equal(started([Exclusion(levels[1])]), levels[3])
    minimiser.minimise(form, SolverSettings(), starts=[levels[2]])
    assert backend.start is None
