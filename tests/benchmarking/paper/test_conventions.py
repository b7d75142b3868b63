"""What becomes of illegal suggestions, on a method that makes them in a known order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import mipcash as mc
from benchmarks.paper.experiment import Experiment, Group, rows, runs_of, violations_until
from benchmarks.peers import history, runner
from benchmarks.peers.convention import PATIENCE, convention
from benchmarks.peers.method import Initial, Method
from benchmarks.peers.problem import Problem
from benchmarks.peers.runner import Task
from benchmarks.peers.shape import Shape
from benchmarks.peers.suite import Suite


def space() -> mc.Space:
    s = mc.Space("even numbers")
    x = s.integer("x", 0, 9)
    s.rule("not seven or more", x <= 6)
    return s


PROBLEM = Problem("even", space, lambda c: float(c["x"]), "rules", 0.0, "construction", "made up", penalty=70.0)


class Fake(Method):
    """Suggests 9, 8, 7 (illegal) and 6, over and over; notes what it is told."""

    name = "fake"

    def __init__(self, values: tuple[int, ...] = (9, 8, 7, 6)) -> None:
        self.values, self.at = values, 0
        self.told: list[tuple[int, float | None]] = []

    def start(self, problem: Problem, shape: Shape, seed: int, initial: Initial, budget: int) -> None:
        self.initial = list(initial)

    def suggest(self) -> dict[str, Any]:
        self.at += 1
        return {"x": self.values[(self.at - 1) % len(self.values)]}

    def observe(self, config: dict[str, Any], loss: float, violations: Mapping[str, float]) -> None:
        self.told.append((config["x"], loss))

    def skip(self, config: dict[str, Any], violations: Mapping[str, float]) -> None:
        self.told.append((config["x"], None))


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    made = Suite(
        "fake", lambda: {"even": PROBLEM}, tmp_path, budget=5, initial=2, conventions=("penalty-500", "ignore")
    )
    monkeypatch.setattr(runner, "suite", lambda name: made)
    return made


def run(suite: Suite, monkeypatch: pytest.MonkeyPatch, rule: str, budget: int = 5, **of: Any) -> tuple[Any, Fake]:
    fake = Fake(**of)
    monkeypatch.setattr(runner, "make_method", lambda name: fake)
    return runner.run_one(Task("fake", "even", 0, rule, "fake"), budget, suite.folder), fake


def test_a_penalty_costs_an_evaluation(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    found, fake = run(suite, monkeypatch, "penalty")
    assert found.losses[2:] == (None, None, None)
    assert len(fake.initial) == 2
    assert fake.told == [(9, 70.0), (8, 70.0), (7, 70.0)]


def test_repair_evaluates_the_nearest(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    found, fake = run(suite, monkeypatch, "repair")
    assert found.losses[2:] == (6.0, 6.0, 6.0)
    assert found.legal == (True, True, False, False, False)
    assert fake.told == [(6, 6.0)] * 3


@pytest.mark.parametrize(("rule", "told"), [("penalty-500", 500.0), ("penalty-125", 125.0), ("ignore", None)])
def test_only_legal_evaluations_are_counted(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, rule: str, told: float | None
) -> None:
    found, fake = run(suite, monkeypatch, rule)
    assert found.losses[2:] == (None, None, None, 6.0) * 3
    assert len(found.solutions()) == 5
    assert fake.told == [(9, told), (8, told), (7, told), (6, 6.0)] * 3
    assert [violations_until(found, n) for n in (2, 3, 4, 5, 99)] == [0, 3, 6, 9, 9]


def test_a_run_without_legal_suggestions_ends(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = run(suite, monkeypatch, "ignore", values=(9,))
    assert len(found.losses) == PATIENCE * 5
    assert len(found.solutions()) == 2


def test_rows(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    for rule, values in (("penalty-500", (9, 0)), ("ignore", (9,))):
        found, _ = run(suite, monkeypatch, rule, values=values)
        history.append(found, suite.folder)
    group = Group("one", "One", ("even",), ("fake",))
    experiment = Experiment("made", "Made up", suite, (group,), (3, 5), "loss", {"smoke": (0,)})
    told, ignored = rows(
        experiment, runs_of(experiment, group, history.reader(suite.folder), suite.budget), suite.budget
    )
    first = [float(v) for v in found.solutions()[:2]]
    assert (told.convention, told.runs, told.short) == ("penalty-500", 1, 0)
    assert told.mean[2:] == [0.0] * 3
    assert told.counted is not None
    assert told.counted[2] == min(first)  # the first suggestion, illegal, is counted
    assert [v[0] for v in told.violations] == [1, 3]
    assert (ignored.convention, ignored.short) == ("ignore", 1)
    assert ignored.mean[-1] == min(first)


def test_names() -> None:
    assert convention("penalty-500").value == 500
    assert convention("").counted
    for name in ("penalty-much", "fine", "repair-5"):
        with pytest.raises(ValueError, match="there is no convention"):
            convention(name)
