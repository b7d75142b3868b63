"""The benchmark of batches: nothing is told within a batch, what is there is not run again, ratios are those of the histories."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any, ClassVar

import pytest

from benchmarks.__main__ import main
from benchmarks.batches import benchmark, methods, report, runner
from benchmarks.batches.runner import BatchTask
from benchmarks.peers import history
from benchmarks.peers.history import History
from benchmarks.peers.method import Method, MissingPackageError


class Recorded(Method):
    """Suggests what breaks a rule of ``ising-rules`` now and then, and notes what it is told when."""

    legal: ClassVar[bool] = False
    own_design: ClassVar[bool] = False
    calls: ClassVar[list[tuple[str, int]]] = []
    evaluated: ClassVar[list[dict[str, Any]]] = []

    def start(self, problem, shape, seed, initial, budget):
        self.shape = shape
        self.calls[:] = [("start", len(initial))]
        self.evaluated[:] = []

    def suggest(self):
        self.calls.append(("suggest", 1))
        if len(self.calls) % 2:
            return {name: d.choices[-1] for name, d in self.shape.by_name.items()}
        return self.shape.space.sample(1, len(self.calls))[0]

    def expect(self, config):
        assert self.shape.space.is_legal(config)
        self.evaluated.append(config)

    def tell(self, results):
        assert [c for c, _ in results] == self.evaluated[-len(results) :]
        self.calls.append(("tell", len(results)))

    def observe(self, config, loss, violations):
        raise AssertionError("one at a time")


def silent(text: str) -> None:
    pass


def test_nothing_of_a_batch_is_told_before_all_of_it_is_suggested(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runner, "make_batch_method", lambda name: Recorded())
    task = BatchTask("optuna-tpe", "ising-rules", 0, 4)
    assert task.convention == "repair"
    found = runner.run_one(task, 17, tmp_path)
    assert len(found.losses) == 17
    assert found.legal.count(False) > 0
    grouped = [(kind, sum(n for _, n in calls)) for kind, calls in itertools.groupby(Recorded.calls, lambda c: c[0])]
    assert grouped == [("start", 10), ("suggest", 4), ("tell", 4), ("suggest", 3), ("tell", 3)]


def test_ours_are_asked_beside_what_is_pending(tmp_path: Path) -> None:
    method = methods.make_batch_method("hybrid")
    asked: list[int] = []
    propose = method.__class__.suggest

    class Spied(methods.OurBatches):
        def suggest(self) -> dict[str, Any]:
            config = propose(self)
            asked.append(sum(t.pending for t in self.study.trials))
            return config

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "make_batch_method", Spied)
        runner.run_one(BatchTask("hybrid", "branin-cat", 0, 4), 16, tmp_path)
    assert asked == [*range(1, 11), *range(1, 5), 1, 2]


def test_what_is_there_is_not_run_again(tmp_path: Path) -> None:
    wanted = runner.tasks(["random"], ["branin-cat"], [0, 1], (1, 4))
    assert runner.work(wanted[:1], silent, 12, tmp_path, tmp_path) == 0
    assert runner.missing(wanted, 12, tmp_path) == wanted[1:]
    assert runner.missing(wanted, 13, tmp_path) == wanted
    assert runner.work([BatchTask("random", "nothing", 0, 4)], silent, 12, tmp_path) == 1  # a failure ends no other run


def test_ratios_are_those_of_the_histories(tmp_path: Path) -> None:
    def put(method: str, batch: int, best: float, seed: int) -> None:
        losses = (9.0, best)
        made = History(method, "nvs09-cat", seed, "", losses, (True, True), (0.5, 1.5), {})
        history.append(made, tmp_path / str(batch))

    for seed in (0, 1, 2):
        put("random", 1, -5.35107, seed)  # 50 above the optimum of -55.35107
        put("hybrid", 1, -45.35107, seed)
        put("hybrid", 4, -40.35107, seed)
        if seed < 2:
            put("optuna-tpe", 1, -35.35107, seed)
            put("optuna-tpe", 4, -25.35107, seed)
    rows = report.collect(["hybrid", "optuna-tpe"], ["nvs09-cat"], (1, 4), 2, tmp_path)
    lines = {(l["method"], l["batch"]): l for l in report.summarise(rows, "hybrid", 2)}
    assert {k: round(l["regret"], 6) for k, l in lines.items()} == {
        ("random", 1): 1.0,
        ("hybrid", 1): 0.2,
        ("hybrid", 4): 0.3,
        ("optuna-tpe", 1): 0.4,
        ("optuna-tpe", 4): 0.6,
    }
    assert lines["hybrid", 4]["ratio"] == pytest.approx(1.5)
    assert lines["hybrid", 4]["ratio_error"] == pytest.approx(0.0)
    assert math.isnan(lines["hybrid", 1]["ratio"])
    assert lines["optuna-tpe", 4]["wins"] == [2, 0, 0]
    assert lines["hybrid", 4]["runs"] == 2
    text = report.markdown(list(lines.values()), "hybrid")
    assert "| hybrid | 4 | 0.30 ± 0.00 | 1.50 ± 0.00 | - | 1 |" in text
    assert report.summarise(report.collect(["botorch"], ["nvs09-cat"], (4,), 2, tmp_path), "hybrid", 2) == []


def test_smoke(tmp_path: Path) -> None:
    out = tmp_path / "batches.json"
    assert main(["run", "batches", "--size", "smoke", "--out", str(out)]) == 0
    results = json.loads(out.read_text(encoding="utf-8"))["results"]
    assert results["failed"] == 0
    assert {(l["method"], l["batch"]) for l in results["together"]} == {("random", 1), ("hybrid", 1), ("hybrid", 4)}
    assert "at a time" in benchmark.markdown(results)


@pytest.mark.parametrize("name", ["optuna-tpe", "botorch"])
@pytest.mark.parametrize("problem", ["branin-cat", "nvs09-rules"])
def test_peers_know_what_is_pending(name: str, problem: str, tmp_path: Path) -> None:
    try:
        method = methods.make_batch_method(name)
    except MissingPackageError as missing:
        pytest.skip(str(missing))
    found = runner.run_one(BatchTask(name, problem, 0, 4), 18, tmp_path)
    assert len(found.losses) == 18
    assert method.legal is False


def test_unknown_methods_are_refused() -> None:
    with pytest.raises(ValueError, match="no method 'smac' for batches"):
        methods.make_batch_method("smac")
