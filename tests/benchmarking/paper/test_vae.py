"""The benchmark's own way to a trained network, on small images: trainings, memory, the best networks again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from benchmarks.paper import final, vae
from benchmarks.paper.remembered import Remembered
from benchmarks.peers import history, runner
from benchmarks.peers.runner import Task
from benchmarks.peers.suite import Suite
from tests.images import bars

TINY = {"train_size": 64, "test_size": 16, "epochs": 1, "batch": 16, "samples": 4, "device": "cpu", "threads": 1}


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Suite]:
    """A suite of one problem that trains tiny networks on images of bars."""
    monkeypatch.setitem(vae.OPTIONS, "tiny", TINY)
    monkeypatch.setattr(vae, "FOLDER", tmp_path / "vae")
    problem = vae._problem("tiny")
    made = Suite("tiny", lambda: {problem.name: problem}, tmp_path / "vae", budget=4, initial=3, conventions=())
    monkeypatch.setattr(runner, "suite", lambda name: made)
    with bars(tmp_path, monkeypatch):
        yield made


def test_a_run_its_memory_and_the_best_network_again(suite: Suite) -> None:
    (problem,) = suite.chosen()
    task = Task("random", problem.name, 0, "", "tiny")
    found = runner.run_one(task, suite.budget, suite.folder)
    objective = problem.objective
    assert isinstance(objective, Remembered)
    kept = objective.records()
    assert [history.kept(r["loss"]) for r in kept] == [history.kept(v) for v in found.solutions()]
    assert all(r["machine"]["device"] == "cpu" and r["machine"]["torch"] and r["wall"] > 0 for r in kept)
    assert vae._stamp("tiny").items() <= found.stamp.items()
    assert runner.run_one(task, suite.budget, suite.folder).losses == found.losses
    assert len(objective.records()) == len(kept), "the second run trains nothing"

    history.append(found, suite.folder)
    (best,) = final.bests("tiny", suite, ["random", "hybrid"], ["penalty-500"])
    assert (best.label, best.runs, best.loss) == ("random", 1, history.kept(min(found.solutions())))
    said: list[str] = []
    made = final.make("tiny", [best], said.append, samples=40, folder=suite.folder)
    (row,) = made["rows"]
    assert row["nats"] <= best.loss + 2.0, "more samples tighten the bound, up to noise"
    assert np.shape(row["images"]) == np.shape(made["originals"]) == (final.SHOWN, 28, 28)
    assert final.picture_path("tiny", suite.folder).stat().st_size > 1000
    text = final.markdown("tiny", "figures", suite.folder)
    assert f"| random | none | 1 | {best.loss:.2f} | 40 | {row['nats']:.2f} | 1 |" in text
    assert "figures/paper-vae-tiny-reconstructions.png" in text

    marked = json.loads((suite.folder / "final-tiny.json").read_text(encoding="utf-8"))
    marked["rows"][0]["nats"] = 1.25
    (suite.folder / "final-tiny.json").write_text(json.dumps(marked), encoding="utf-8")
    again = final.make("tiny", [replace(best, runs=7)], said.append, samples=40, folder=suite.folder)
    assert (again["rows"][0]["nats"], again["rows"][0]["runs"]) == (1.25, 7), "what is there is not made again"
    assert final.markdown("tiny", folder=suite.folder / "nothing") == ""


def test_a_best_loss_that_was_not_kept_is_named(suite: Suite) -> None:
    (problem,) = suite.chosen()
    losses = (150.0,) * suite.budget
    flags, stamp = (True,) * suite.budget, dict(problem.stamp)
    history.append(history.History("random", problem.name, 0, "", losses, flags, losses, stamp), suite.folder)
    with pytest.raises(LookupError, match=r"no evaluation of vae-tiny with the loss 150\.0 that random has"):
        final.bests("tiny", suite, ["random"], [])


@pytest.mark.parametrize("outcome", [FloatingPointError("diverged"), 1e9])
def test_a_training_without_a_sensible_loss_counts_as_the_worst(
    outcome: Any, suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    def evaluate(config: object) -> dict[str, float]:
        if isinstance(outcome, Exception):
            raise outcome
        return {"loss": outcome}

    monkeypatch.setattr(vae.vae, "build", lambda **options: (None, evaluate))
    assert vae._trained("tiny")({}) == vae.WORST


def test_uniform_draws_break_the_rules_far_more_often_than_not() -> None:
    ((few, _), (many, _)) = vae.uniform_violations(at=(1, 3), seeds=range(2))
    assert 0 < few < many
