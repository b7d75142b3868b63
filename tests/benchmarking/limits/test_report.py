"""Tables of limits: what they say of histories that are known, and the methods' protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.limits import report
from benchmarks.limits.suite import FOLDER, METHODS, problems
from benchmarks.peers import history, runner
from benchmarks.peers.catalogue import LIMITED, make_method
from benchmarks.peers.evaluation import Evaluation
from benchmarks.peers.history import History
from benchmarks.peers.method import Method, MissingPackageError
from benchmarks.peers.runner import Task, run_one
from benchmarks.peers.shape import Shape

NAME = "admmbo-17"


def run_of(method: str, regrets: list[float | None], seed: int = 0, legal: str = "1111", name: str = NAME) -> History:
    """A run with regrets, None where a limit is broken."""
    whole = problems()[NAME]
    assert whole.reference is not None
    losses = [None if r is None else whole.optimum + r * (whole.reference - whole.optimum) for r in regrets]
    flags = tuple(f == "1" for f in legal)
    rule = "" if method in ("hybrid", "random") else "repair"
    return History(method, name, seed, rule, tuple(losses), flags, (None, 1.0, 2.0, 3.0), {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for made in (
        run_of("hybrid", [None, 0.5, 0.0, 0.2]),
        run_of("optuna-tpe-constrained", [None, None, None, 0.1], legal="1101"),
        run_of("random", [None, None, None, None]),
        run_of("optuna-tpe-constrained", [0.3, 0.3, 0.3, 0.3], seed=1),
    ):
        history.append(made, tmp_path)
    return tmp_path


def test_a_table_says_what_the_runs_say(folder: Path) -> None:
    methods = ["hybrid", "optuna-tpe-constrained", "random"]
    made = report.table("t", methods, "hybrid", budget=4, read=history.reader(folder))
    assert made is not None
    assert (made.pairs, made.seeds, made.problems) == (1, [0], [NAME])  # what not all have is left out
    ours, tpe, random = made.rows
    assert [r.rank for r in made.rows] == [1, 2, 3]
    assert (ours.median, tpe.median, random.median) == (pytest.approx(0, abs=1e-6), pytest.approx(0.1), report.CAP)
    assert (ours.first, tpe.first, random.first) == (2, 4, 5)
    assert (ours.never, random.never) == (0, 1)
    assert (ours.violating, tpe.violating) == (0.25, 0.75)
    assert (tpe.illegal, tpe.cpu) == (1, 2.0)
    assert tpe.wins == (1, 0, 0)
    assert tpe.difference is not None
    assert tpe.difference[0] == pytest.approx(-5, abs=1e-3)
    text = report.markdown(made)
    assert "| optuna-tpe-constrained | 2.00" in text
    assert "1 / 0 / 0" in text


class Told(Method):
    """Suggests what breaks a rule, and notes what it is told."""

    told: list[Any]

    takes_limits = True

    def start(self, problem, shape, seed, initial, budget):
        raise AssertionError("there are limits")

    def begin(self, problem, shape, seed, initial, budget):
        self.told, self.shape = [e for _, e in initial], shape

    def suggest(self):
        return {d.name: d.choices[0] if d.choices else d.high for d in self.shape.dimensions if not d.parents}

    def learn(self, config, evaluation, violations):
        assert not violations
        assert self.shape.space.is_legal(config)
        self.told.append(evaluation)

    def observe(self, config, loss, violations):
        raise AssertionError("there are limits")


def test_methods_are_told_all_outputs_and_histories_keep_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    method = Told()
    monkeypatch.setattr(Told, "suggest", lambda self: {"x1": 0.0, "x2": 1.0, "grade": 0})
    monkeypatch.setattr(runner, "make_method", lambda name: method)
    method.name = "told"
    found = run_one(Task("told", NAME, 0, "repair", "limits"), 12, tmp_path)
    assert found.legal == (True,) * 10 + (False,) * 2
    assert all(isinstance(e, Evaluation) and set(e.values) == {"c1", "c2"} for e in method.told)
    assert [e.counted for e in method.told] == list(found.losses)
    again = History.from_line(found.to_line(), "told", "repair")
    assert again.outputs[0] == pytest.approx(method.told[0].outputs)
    assert [v is None for v in again.losses] == [not e.kept for e in method.told]
    monkeypatch.setattr(Told, "takes_limits", False)
    with pytest.raises(ValueError, match="does not take the limits"):
        run_one(Task("told", NAME, 0, "repair", "limits"), 12, tmp_path)


@pytest.mark.parametrize("name", [*LIMITED, "hybrid"])
@pytest.mark.parametrize("problem", ["solvers", NAME])
def test_conformance(name: str, problem: str, tmp_path: Path) -> None:
    try:
        made = make_method(name)
    except MissingPackageError as error:
        pytest.skip(str(error))
    assert made.takes_limits
    found = run_one(Task(name, problem, 0, "" if made.legal else "repair", "limits"), 13, tmp_path)
    assert len(found.losses) == len(found.outputs) == 13
    assert all(v is None or o is not None for v, o in zip(found.losses, found.outputs, strict=True))
    assert all(found.legal) or not made.legal


def test_smoke(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "limits.json"
    assert main(["run", "limits", "--size", "smoke", "--out", str(out)]) == 0
    results = json.loads(out.read_text(encoding="utf-8"))["results"]
    assert results["failed"] == 0
    (made,) = results["tables"]
    assert {r["method"] for r in made["rows"]} == {"hybrid", "random"}
    assert all(r["illegal"] == 0 for r in made["rows"])
    capsys.readouterr()
    assert main(["report", str(out)]) == 0
    assert "first kept" in capsys.readouterr().out


def test_the_kept_runs_are_of_the_suite() -> None:
    names = {p.name for p in problems().values()}
    for method in METHODS:
        for rule in ("", "repair"):
            for run in history.read(method, rule, FOLDER):
                assert run.problem in names
                assert len(run.outputs) == len(run.losses) >= 50


def test_shapes_are_those_that_other_libraries_take() -> None:
    for problem in problems().values():
        if problem.name != "credit":
            Shape(problem.space())
