"""The benchmark of constrained max-value entropy search: problems are what they say, ranks are the paper's, a picture is drawn."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.cmes.benchmark import _ranks, collected
from benchmarks.cmes.methods import ANSWER, HIDDEN, METHODS, method
from benchmarks.cmes.problems import PROBLEMS
from benchmarks.cmes.runs import Run, read, run, told, work
from mipcash.space.domain import Domain


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_a_problem_has_the_shape_of_the_table_and_either_side_of_its_limit(problem) -> None:
    domain = Domain.of(problem.space())
    kinds = [p.domain.kind for p in problem.space().parameters.values()]
    assert tuple(kinds.count(k) for k in ("real", "integer", "categorical")) == problem.shape
    configs = domain.sample(24, np.random.default_rng(0))
    values = [problem.evaluate(c) for c in configs]
    assert np.isfinite(values).all()
    kept = np.mean([v <= problem.threshold for _, v in values])
    assert abs(kept - problem.feasible) < 0.3
    assert problem.evaluate(configs[0]) == values[0]


def test_what_a_method_is_told() -> None:
    problem = PROBLEMS[1]
    beyond = problem.threshold + 1.0
    assert told(METHODS["cMES real"], 0.3, beyond, problem)[1].values == {"value": beyond}
    status, outcome = told(method(f"log-ei:{ANSWER}"), 0.3, beyond, problem)
    assert (status, outcome.loss, outcome.values) == ("done", 0.3, {"value": 1.0})
    status, outcome = told(METHODS["cMES"], 0.3, beyond, problem)
    assert (status, outcome.loss, outcome.values) == ("failed", None, {"value": 1.0})
    assert told(METHODS["cMES"], 0.3, problem.threshold, problem)[1].values == {"value": -1.0}
    with pytest.raises(ValueError, match="there is no method"):
        method("nothing")
    assert method(f"thompson:{HIDDEN}").settings.acquisition == "thompson"


def test_all_methods_of_a_seed_start_from_the_same_configurations() -> None:
    runs = [run(name, PROBLEMS[1], 3, 6) for name in ("random", "cEI", "cMES")]
    assert runs[0].losses[:5] == runs[1].losses[:5] == runs[2].losses[:5]
    assert len(runs[1].losses) == 6


def test_those_without_a_feasible_point_share_the_last_ranks() -> None:
    """The paper's example: of ten methods five are feasible, so that the others have rank 8."""
    runs = [Run(f"m{k}", "p", 0, [float(k)], [k < 5], 0.0) for k in range(10)]
    assert _ranks(runs)[:, 0].tolist() == [1, 2, 3, 4, 5, 8, 8, 8, 8, 8]
    assert runs[7].best == [math.inf]


def test_runs_go_on_where_they_ended(tmp_path: Path) -> None:
    path, said = tmp_path / "runs.jsonl", list[str]()
    first = work(["random"], [0], 6, said.append, path, PROBLEMS[1:2])
    again = work(["random"], [0, 1], 6, said.append, path, PROBLEMS[1:2])
    assert len(said) == 2
    assert read(path) == again
    assert again[0] == first[0]
    assert collected(again)["runs"] == 2


def test_the_registered_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "cmes.json"
    assert main(["run", "cmes", "--size", "smoke", "--out", str(out)]) == 0
    tables = json.loads(out.read_text(encoding="utf-8"))["results"]["tables"]
    assert [t["cells"] for t in tables] == [1, 1] or len(tables) >= 1
    capsys.readouterr()
    assert main(["report", str(out)]) == 0
    assert "| cMES |" in capsys.readouterr().out
