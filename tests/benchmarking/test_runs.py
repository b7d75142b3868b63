"""Runners of the benchmarks: finished runs are kept, interrupted runs are repeated, and test rows stay unseen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.admm.benchmark import work as admm
from benchmarks.admmbo.runner import RANDOM, Task
from benchmarks.admmbo.runner import work as admmbo
from benchmarks.automl import data, searches
from benchmarks.automl.data import split
from benchmarks.automl.spaces import fold_numbers, objective_of
from benchmarks.cmes.problems import PROBLEMS
from benchmarks.cmes.runs import work as cmes
from benchmarks.paper.remembered import Remembered
from benchmarks.peers import history, runner
from benchmarks.peers.__main__ import main, names, numbers


def silent(text: str) -> None:
    assert "FAILED" not in text, text


def test_runs_are_resumed(tmp_path: Path) -> None:
    wanted = runner.tasks(["random", "mutation"], ["branin-cat", "sensors"], [0, 1])
    assert [t.seed for t in wanted] == [0] * 4 + [1] * 4
    assert runner.work(wanted[:3], silent, 12, tmp_path) == 0
    assert runner.missing(wanted, 12, tmp_path) == wanted[3:]
    file = tmp_path / "random.jsonl"
    before = file.read_bytes()
    with file.open("ab") as damaged:
        damaged.write(b'{"problem":"branin-cat","seed":1,"los')  # a process killed while writing a line
    assert runner.missing(wanted, 12, tmp_path) == wanted[3:]
    assert runner.work(wanted[3:], silent, 12, tmp_path) == 0
    assert runner.missing(wanted, 12, tmp_path) == []
    assert file.read_bytes().startswith(before)
    assert len(history.read("random", "", tmp_path)) == 4
    # peers share their initial design, which is stored
    a, b = (history.read(m, "", tmp_path)[0].losses[:10] for m in ("random", "mutation"))
    assert a == b
    history.drop("random", "", [("sensors", 0)], tmp_path)
    assert [t.problem for t in runner.missing(wanted, 12, tmp_path)] == ["sensors"]


@pytest.mark.parametrize(
    "work",
    [
        lambda folder, seeds, said: admm(["random"], seeds, lambda _: 12, folder, said),
        lambda folder, seeds, said: admmbo([Task("16", RANDOM, s) for s in seeds], folder / "runs.jsonl", said, 10),
        lambda folder, seeds, said: cmes(["random"], seeds, 6, said, folder / "runs.jsonl", PROBLEMS[1:2]),
    ],
    ids=["admm", "admmbo", "cmes"],
)
def test_finished_runs_are_not_repeated(work: Callable[..., Any], tmp_path: Path) -> None:
    said: list[str] = []
    first, again = work(tmp_path, [0], said.append), work(tmp_path, [0, 1], said.append)
    assert len(said) == 2
    assert first == again == 0 or (again[0] == first[0] and len(again) == 2)


def test_evaluations_are_stored_and_reused(tmp_path: Path) -> None:
    calls = []

    def objective(config: object) -> float:
        calls.append(config)
        return 7.5

    path = tmp_path / "evaluations.jsonl"
    assert Remembered(lambda: objective, path)({"a": 1, "b": 0.1}) == 7.5
    with path.open("a") as file:
        file.write('{"config": {"a"')  # a process killed while writing a line
    again = Remembered(lambda: objective, path)
    assert again({"b": 0.1, "a": 1}) == 7.5
    assert len(calls) == 1
    assert again({"b": 0.2, "a": 1}) == 7.5
    assert len(again.records()) == len(calls) == 2
    Remembered(lambda: objective, path, {"epochs": 5})({"a": 1, "b": 0.1})  # other settings need another training
    assert len(calls) == 3


def test_the_command_line(tmp_path: Path) -> None:
    run = ["run", "--methods", "random", "--problems", "branin-cat", "--seeds", "0", "--budget", "11"]
    assert main([*run, "--jobs", "1", "--results", str(tmp_path)]) == 0
    assert main([*run, "--methods", "nothing", "--results", str(tmp_path)]) == 2
    assert numbers("0-2,5") == [0, 1, 2, 5]
    assert names("a,mivabo:x=1,y=2,b") == ["a", "mivabo:x=1,y=2", "b"]


# -- pipelines on rows that no search sees ----------------------------------------------------------------------------


def rows_of(array: np.ndarray) -> set[bytes]:
    return {row.tobytes() for row in np.ascontiguousarray(array)}


@pytest.mark.parametrize("name", ["wine", "friedman-value"])
def test_fresh_rows_are_never_in_a_search(name: str) -> None:
    x, _ = data.SOURCES[name][1]()
    tested: list[bytes] = []
    for seed in range(data.OUTER):
        made = split(name, seed)
        assert not rows_of(made.x) & rows_of(made.x_fresh)
        assert len(made.y) == len(made.x) <= data.ROWS
        tested += sorted(rows_of(made.x_fresh))
    assert sorted(tested) == sorted(rows_of(x))  # every row is tested once
    with pytest.raises(ValueError, match="there is no data set 'nope'; there are sonar"):
        split("nope", 0)


def test_other_programs_are_given_the_folds_of_the_objective() -> None:
    made = split("wine", 1)
    fold = fold_numbers(made)
    for k, (_, held_out) in enumerate(objective_of(made, "bundled").splits()):
        assert set(np.flatnonzero(fold == k)) == set(held_out)


def test_losses_and_the_values_that_peers_receive_for_failures() -> None:
    y = np.array([0, 0, 1, 1])
    assert data.loss("binary", y, np.array([0.1, 0.4, 0.35, 0.8])) == pytest.approx(0.25)
    assert data.loss("regression", np.arange(4.0), np.arange(4.0)) == 0.0
    assert data.loss("multiclass", np.array([0, 1, 2]), np.eye(3)) == 0.0
    assert searches.told(0.3, [None, 7.0]) == 0.3
    assert searches.told(None, [None, 7.0, 0.2]) == 7.0  # 1 - R2 may exceed 1, so 1 would look good
    assert searches.told(None, [0.4]) == searches.told(None, []) == 1.0
