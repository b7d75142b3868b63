"""Auto: enumeration first, then the solver that suits the structure; HiGHS' backend does the same before HiGHS."""

from __future__ import annotations

import numpy as np
import pytest

from mipcash.backends import portfolio as auto
from mipcash.backends.base import Answer, SolverSettings, Task
from mipcash.backends.enumeration.backend import Prover
from mipcash.backends.highs import HighsBackend
from mipcash.backends.portfolio import AutoBackend
from mipcash.backends.registry import make_backend
from mipcash.errors import SolverError
from tests.backends.tasks import SPACES, bits, random_form


class Recorder:
    """Stands in for a solver; refuses what it is told to refuse."""

    name = "recorder"

    def __init__(self, solver: str, asked: list[str], refuses: bool) -> None:
        self.solver, self.asked, self.refuses = solver, asked, refuses

    def solve(self, task: Task, settings: SolverSettings) -> Answer:
        self.asked.append(self.solver)
        if self.refuses:
            raise SolverError("too large")
        program = task.program
        first = program.one_hot(np.zeros(len(program.groups), dtype=np.int64))
        return Answer("feasible", first, task.form.value(first), -5.0, 0.0)


@pytest.mark.parametrize(("n", "refusing", "expected"), [
    (44, "", ["gurobi form=quadratic"]),
    (44, "gurobi", ["gurobi form=quadratic", "toulbar2"]),
    (30, "", ["toulbar2"]),
    (30, "toulbar2", ["toulbar2", "highs enumeration=off"]),
])  # fmt: skip
def test_who_is_asked(n: int, refusing: str, expected: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        auto, "make_backend", lambda name: Recorder(name, asked, bool(refusing) and name.startswith(refusing))
    )
    monkeypatch.setattr(auto, "solver_info", lambda name: type("Info", (), {"installed": True}))
    backend = AutoBackend()
    backend._prover = Prover(10, 0)
    program = bits(n).program
    answer = backend.solve(
        Task(program, random_form(program, np.random.default_rng(0), 1.0)), SolverSettings(time_limit=5.0)
    )
    assert asked == expected
    # what enumeration knew is not lost: its bound or the solver's, whichever is stronger
    assert answer.bound >= -5.0 or answer.value <= 1.0
    assert answer.bound <= answer.value


def test_answers_are_joined() -> None:
    some, none = np.ones(2), None
    early = Answer("feasible", some, 3.0, 1.0, 0.1)
    assert early.joined(Answer("feasible", some, 2.0, 0.5, 1.0), 1.1) == Answer("feasible", some, 2.0, 1.0, 1.1)
    assert early.joined(Answer("unknown", none, float("nan"), 2.0, 1.0), 1.1) == Answer("feasible", some, 3.0, 2.0, 1.1)
    assert early.joined(Answer("optimal", some, 3.0, 3.0, 1.0), 1.1) == Answer("optimal", some, 3.0, 3.0, 1.1)
    nothing = Answer("unknown", none, float("nan"), 1.0, 0.1)
    assert nothing.joined(Answer("infeasible", none, float("nan"), float("inf"), 1.0), 1.1).status == "infeasible"


def test_enumeration_can_be_switched_off() -> None:
    program = SPACES["ordered"]().program
    task = Task(program, random_form(program, np.random.default_rng(0)))
    on, off = make_backend("highs"), make_backend("highs", {"enumeration": "off"})
    assert isinstance(off, HighsBackend)
    assert off._prover is None
    assert on.solve(task, SolverSettings()).value == pytest.approx(off.solve(task, SolverSettings()).value, abs=1e-6)
    with pytest.raises(SolverError, match="enumeration='maybe'"):
        make_backend("highs", {"enumeration": "maybe"})
