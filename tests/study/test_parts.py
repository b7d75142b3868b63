"""Named outputs, each present, missing or failed, and trials that are reported in parts."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import tiny

import mipcash as mc
from mipcash.errors import TellError
from mipcash.optimizers.optimizer import Observation, Proposal, Request
from mipcash.optimizers.outcome import Outcome, Output


def asking(*outputs: str) -> type[tiny.Sampler]:
    """Return an optimizer class that requests the given outputs only."""

    class Asking(tiny.Sampler):
        def propose(self, request: Request) -> Proposal:
            return replace(super().propose(request), outputs=outputs)

    return Asking


def opened(space: mc.Space, *outputs: str) -> tuple[mc.Study, tiny.Sampler]:
    optimizer = asking(*outputs)(space)
    return mc.Study(space, optimizer), optimizer


def test_a_trial_reported_in_parts_is_pending_until_it_is_complete(space: mc.Space) -> None:
    study, optimizer = opened(space)
    trial = study.ask()
    first = study.tell(trial, {"latency_ms": 3.2}, partial=True)
    assert (first.status, first.pending, first.loss, first.values) == ("pending", True, None, {"latency_ms": 3.2})
    second = study.tell(trial, {"loss": 0.5, "memory": 7}, partial=True)
    assert (second.status, second.loss, second.duration) == ("pending", 0.5, None)
    assert study.n_evaluated == 0
    study.ask()
    seen = optimizer.histories[-1][0]
    assert (seen.status, seen.loss, seen.values) == ("pending", 0.5, {"latency_ms": 3.2, "memory": 7.0})
    done = study.tell(trial, {"accuracy": 0.9})
    assert (done.status, done.loss) == ("done", 0.5)
    assert done.values == {"latency_ms": 3.2, "memory": 7.0, "accuracy": 0.9}
    assert study.result.value == 0.5
    with pytest.raises(TellError, match="has an outcome already"):
        study.tell(trial, {"latency_ms": 1.0}, partial=True)


def test_some_of_the_requested_outputs_may_be_told_without_partial(space: mc.Space) -> None:
    study, _ = opened(space, "loss", "latency_ms")
    trial = study.ask()
    assert trial.evaluate == ("loss", "latency_ms")
    part = study.tell(trial, {"latency_ms": 3.2})
    assert (part.status, part.outcome["loss"].status) == ("pending", "missing")
    assert study.tell(trial, {"loss": 0.25}).status == "done"


def test_a_trial_whose_loss_is_not_requested_is_done_without_a_loss(space: mc.Space) -> None:
    study, optimizer = opened(space, "latency_ms")
    trial = study.tell(study.ask(), 3.2)
    assert (trial.status, trial.loss, trial.values, study.n_evaluated) == ("done", None, {"latency_ms": 3.2}, 1)
    failed = study.tell(study.ask(), mc.Failed("no clock"))
    assert (failed.status, failed.outcome["latency_ms"].message) == ("failed", "no clock")
    assert (failed.outcome["loss"].status, failed.message) == ("missing", "no clock")
    study.ask()
    assert [(o.status, o.loss) for o in optimizer.histories[-1]] == [("done", None), ("failed", None)]
    assert study.result.best is None
    assert math.isnan(study.result.value)
    assert "1 done, 1 failed, 1 pending" in str(study.result)


def test_the_loss_decides_the_status_and_other_outputs_fail_separately(space: mc.Space) -> None:
    study, _ = opened(space)
    trial = study.tell(study.ask(), {"loss": 1.0, "ms": mc.Failed("timer broke"), "odd": math.nan, "size": 2})
    assert (trial.status, trial.loss, trial.message) == ("done", 1.0, "")
    assert {n: trial.outcome[n].status for n in ("ms", "odd")} == {"ms": "failed", "odd": "failed"}
    assert (trial.values["size"], trial.outcome["ms"].message) == (2.0, "timer broke")
    assert "nan, which is no finite number" in trial.outcome["odd"].message
    failed = study.tell(study.ask(), {"loss": mc.Failed("diverged"), "size": 2})
    assert (failed.status, failed.message, failed.values) == ("failed", "diverged", {"size": 2.0})


def test_an_output_that_is_told_again_replaces_its_earlier_value(space: mc.Space) -> None:
    """Report the mean of the folds so far, until the last fold."""
    study, _ = opened(space)
    trial = study.ask()
    for mean in (0.5, 0.4, 0.45):
        assert study.tell(trial, mean, partial=True).loss == mean
    assert study.tell(trial, {"loss": 0.44}).loss == 0.44
    trial = study.ask()
    study.tell(trial, 0.5, partial=True)
    assert study.tell(trial, mc.Failed("fold 2 crashed")).status == "failed"


def test_outputs_have_a_cost(space: mc.Space) -> None:
    study, _ = opened(space)
    for cost, loss, ms in ((None, 2.0, 2.0), (60, 60.0, 60.0), ({"ms": 1}, None, 1.0)):
        told = study.tell(study.ask(), {"loss": 1.0, "ms": 3.0}, 2.0, cost=cost)  # type: ignore[arg-type]
        assert (told.outcome["loss"].cost, told.outcome["ms"].cost, told.duration) == (loss, ms, 2.0)
    trial = study.ask()
    for cost in (math.nan, "much", {"ms": None}):
        with pytest.raises(ValueError, match="cost must be a finite number"):
            study.tell(trial, 1.0, cost=cost)  # type: ignore[arg-type]
    assert study.trials[-1].pending


def test_outputs_and_observations_are_checked() -> None:
    with pytest.raises(ValueError, match="'present', 'failed', 'text' or 'missing', and not 'done'"):
        Output("done")
    with pytest.raises(ValueError, match="a present output needs a finite value, got None"):
        Output("present")
    assert Observation({}, "done", 1.0, {"ms": 2.0}).outcome == Outcome.of(1.0, {"ms": 2.0})
    assert Observation({}, "failed").outcome["loss"].status == "failed"
    assert Observation({}, "pending").outcome["loss"].status == "missing"
    assert Observation({}, "done", None, {"ms": 2.0}, Outcome.of(None, {"ms": 2.0})).loss is None
    for loss in (None, math.nan):
        with pytest.raises(ValueError, match="a done observation needs a finite loss"):
            Observation({}, "done", loss)


def test_requested_outputs_are_distinct_names(space: mc.Space, tmp_path: Path) -> None:
    study = mc.Study(space, asking("a", "b", "a")(space), storage=tmp_path / "run.db")
    trial = study.ask()
    assert trial.evaluate == ("a", "b")
    study.give_back(trial)
    assert study.ask().attempt == 2
    study.close()

    class Careless(tiny.Sampler):
        def propose(self, request: Request) -> Proposal:
            return replace(super().propose(request), outputs="loss")  # type: ignore[arg-type]

    with pytest.raises(TypeError, match=r"wants the outputs str 'loss'; they are a tuple of names"):
        mc.Study(space, Careless(space)).ask()
