"""Tests of ``auto``: enumeration first, then the solver that suits the structure or that the user names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mipcash.backends import portfolio
from mipcash.backends.enumeration.backend import EnumerationBackend
from mipcash.backends.portfolio import PortfolioBackend
from mipcash.backends.registry import make_backend
from mipcash.backends.task import Answer, SolverSettings, Task
from mipcash.errors import SolverError
from mipcash.space.compiled import compiled
from tests.backends.tasks import SPACES, bits, random_form


class Recorder:
    """Fake solver that records its calls and, as configured, refuses tasks or returns answers without proof."""

    name = "recorder"

    def __init__(self, solver: str, asked: list[str], refuses: bool, proves: bool) -> None:
        self.solver, self.asked, self.refuses, self.proves = solver, asked, refuses, proves

    def solve(self, task: Task, settings: SolverSettings) -> Answer:
        self.asked.append(self.solver)
        if self.refuses:
            raise SolverError("too large")
        program = task.program
        first = program.one_hot(np.zeros(len(program.groups), dtype=np.int64))
        return Answer("optimal" if self.proves else "feasible", first, task.form.value(first), -5.0, 0.0)


@pytest.mark.parametrize(("n", "refusing", "proves", "expected"), [
    (44, "", True, ["gurobi form=quadratic"]),
    (44, "gurobi", True, ["gurobi form=quadratic", "toulbar2"]),
    (30, "", True, ["toulbar2"]),
    (30, "toulbar2", True, ["toulbar2", "highs"]),
    (44, "", False, ["gurobi form=quadratic", "highs"]),
    (30, "", False, ["toulbar2", "highs"]),
])  # fmt: skip
def test_solvers_are_tried_in_the_expected_order(
    n: int, refusing: str, proves: bool, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        portfolio,
        "make_backend",
        lambda name: Recorder(name, asked, bool(refusing) and name.startswith(refusing), proves),
    )
    backend = PortfolioBackend()
    backend._enumeration = EnumerationBackend(nodes=10)
    program = compiled(bits(n)).program
    answer = backend.solve(
        Task(program, random_form(program, np.random.default_rng(0), 1.0)), SolverSettings(time_limit=5.0)
    )
    assert asked == expected
    # the result has the stronger of the bounds of enumeration and of the solver
    assert answer.bound >= -5.0 or answer.value <= 1.0
    assert answer.bound <= answer.value


def test_a_linear_task_goes_to_highs_first_and_does_not_wait_for_toulbar2(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[tuple[str, bool, int | None]] = []

    class Slow(Recorder):
        def solve(self, task: Task, settings: SolverSettings) -> Answer:
            limits.append((self.solver, settings.time_limit <= 1.0, settings.node_limit))
            return super().solve(task, settings)

    monkeypatch.setattr(portfolio, "make_backend", lambda name: Slow(name, [], False, False))
    backend = PortfolioBackend()
    backend._enumeration = backend._briefly = EnumerationBackend(nodes=10)
    program = compiled(bits(30)).program
    form = random_form(program, np.random.default_rng(0), 1.0)
    empty = np.zeros(0, dtype=np.int64)
    linear = replace(form, rows=empty, cols=empty, values=np.zeros(0))
    backend.solve(Task(program, linear), SolverSettings(time_limit=60.0))
    # by nodes, so that it does not depend on the machine which of them answers
    assert limits == [("highs", False, 500), ("toulbar2", True, None), ("highs", False, None)]
    backend.solve(Task(program, form), SolverSettings(time_limit=60.0))
    assert limits[3:] == [("toulbar2", False, None), ("highs", False, None)]


def test_the_solver_after_enumeration_can_be_named() -> None:
    program = compiled(SPACES["ordered"]()).program
    task = Task(program, random_form(program, np.random.default_rng(0)))
    enumerated, alone = make_backend("auto solver=highs presolve=off"), make_backend("highs presolve=off")
    first, second = (backend.solve(task, SolverSettings()) for backend in (enumerated, alone))
    assert first.value == pytest.approx(second.value, abs=1e-6)
    assert (first.prover, second.prover) == ("enumeration", "highs")
    wide = compiled(SPACES["wide"]()).program
    free = Task(wide, random_form(wide, np.random.default_rng(0)))
    assert enumerated.solve(free, SolverSettings()).prover == "highs"
    for options, message in (
        ("solver=highs presolv=off", "rejects option presolv='off'"),
        ("solver=hihgs", "did you mean 'highs'"),
        ("presolve=off", "takes no options .presolve. but 'solver'.*'auto solver=highs presolve=off'"),
    ):
        with pytest.raises(SolverError, match=message):
            make_backend(f"auto {options}")
