"""The benchmark of ADMMBO: its problems, what its runs come to, and its smoke size."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.admmbo.problems import PROBLEMS, kept
from benchmarks.admmbo.report import row, rows
from benchmarks.admmbo.runner import RANDOM, Run, Task, read, work


@pytest.mark.parametrize(("name", "share"), [("16", 0.018), ("17", 0.462), ("18", 0.443)])
def test_how_much_of_the_box_keeps_the_limits(name: str, share: float) -> None:
    problem = PROBLEMS[name]
    drawn = np.random.default_rng(0).uniform(0.0, problem.high, size=(4000, problem.dimension))
    assert np.mean([kept(problem.objective(x)) for x in drawn]) == pytest.approx(share, abs=0.03)
    assert len(problem.outputs) == problem.limits + 1
    assert problem.space().validate(problem.start(0)[0]) == []
    assert problem.start(0) != problem.start(1)


def test_what_runs_come_to() -> None:
    task = Task("17", "admmbo, apart", 0)
    best = PROBLEMS["17"].best
    runs = [
        Run(task, [(6, best + 0.4), (40, best + 0.1)], 120, "residuals 0 and 0", (best + 0.2, True), 100, 2.0),
        Run(task, [(20, best + 0.3)], 300, "", (best - 0.1, False), 100, 4.0),
        Run(task, [], 200, "40 iterations", None, 100, 3.0),
    ]
    found = row(runs)
    assert found["feasible"] == {"6": 1 / 3, "15": 1 / 3, "30": 2 / 3, "50": 2 / 3}
    assert found["all_feasible"] is None
    assert found["regret"]["30"] == pytest.approx(0.4)
    assert found["regret"]["50"] == pytest.approx(0.3)
    assert (found["converged"], found["stopped"]) == (1 / 3, 2 / 3)
    assert (found["spent"], found["most_spent"], found["budget"]) == (200, 300, 300)
    assert found["answers_kept"] == 0.5
    assert found["cpu"] == pytest.approx(0.03)
    assert runs[0].at(5) == math.inf
    early = [Run(Task("17", "admmbo, apart", 1), [(6, best + 1.0)], 30, "", None, 24, 0.5), runs[0]]
    (found,) = rows([*runs[:2]], early)
    assert (found["starts"], found["begun"], found["all_feasible"]) == (2, 3, 20)
    assert found["regret"]["50"] == pytest.approx(0.2)
    assert Run.of_line(runs[0].as_line()) == runs[0]


def test_runs_that_are_there_are_not_done_again(tmp_path: Path) -> None:
    said: list[str] = []
    path, todo = tmp_path / "runs.jsonl", [Task("16", RANDOM, 0), Task("16", RANDOM, 1)]
    first = work(todo[:1], path, said.append, 10)
    both = work(todo, path, said.append, 10)
    assert both[0] == first[0]
    assert len(said) == len(read(path)) == 2
    assert both[0].spent == 10


def test_the_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "admmbo.json"
    assert main(["run", "admmbo", "--size", "smoke", "--out", str(out)]) == 0
    results = json.loads(out.read_text(encoding="utf-8"))["results"]
    assert [r["method"] for r in results["compared"]] == ["admmbo, apart", "random, together"]
    assert [r["settings"] for r in results["varied"]] == [{"penalty": 1.0}]
    assert all(r["most_spent"] in (36, 37, 38) for r in results["compared"])
    capsys.readouterr()
    assert main(["report", str(out)]) == 0
    assert "| (17) | admmbo, apart | 1 |" in capsys.readouterr().out
