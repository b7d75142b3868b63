"""Contract between study and optimizer: proposals, requests to stop, recommendations and outcome constraints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny

import mipcash as mc
from mipcash.cli.archive import open_archive
from mipcash.errors import MipcashError, StorageError
from mipcash.optimizers.optimizer import History, Limit, Observation, Proposal, Request
from mipcash.optimizers.registry import make_optimizer
from mipcash.study.minimize import minimize
from mipcash.study.storage.sqlite import read_journal
from tests.named import OPTIMIZERS


class Odd(tiny.Sampler):
    """Optimizer that extends proposals, asks to stop at the fourth proposal, and recommends the second-best trial."""

    def __init__(self, space: mc.Space, **changes: Any) -> None:
        super().__init__(space)
        self.changes = changes

    def propose(self, request: Request) -> Proposal:
        stop = "residuals are small" if len(request.history) == 3 else ""
        return replace(super().propose(request), stop=stop, **self.changes)

    def recommend(self, history: History, limits: Any = ()) -> Observation | None:
        done = sorted((o for o in history if o.status == "done"), key=lambda o: o.loss or 0.0)
        return done[1] if len(done) > 1 else None


def test_the_best_trial_is_the_recommendation_of_the_optimizer(space: mc.Space, journal: Path) -> None:
    study = mc.Study(space, Odd(space, trace={"a": 1}, outputs=("loss",)), storage=journal)
    for value in (3.0, 1.0, 2.0):
        trial = study.ask()
        assert (trial.trace, trial.evaluate, trial.stop) == ({"a": 1}, ("loss",), "")
        study.tell(trial, value)
    assert study.result.value == 2.0
    assert study.result.config == study.trials[2].config
    assert mc.Result(study.trials).value == 1.0  # without an optimizer, the lowest loss
    assert mc.Study(space, Odd(space)).result.best is None
    study.stop("budget")
    assert read_journal(journal)[0].recommended == 2
    assert open_archive(journal).result.best.number == 2  # type: ignore[union-attr]
    study.tell(study.ask(), -1.0)  # a new outcome deletes the recommendation
    assert read_journal(journal)[0].recommended is None

    class Inventing(tiny.Sampler):
        def recommend(self, history: History, limits: Any = ()) -> Observation | None:
            return Observation(history[0].config, "done", 0.0)

    study = mc.Study(space, Inventing(space))
    study.tell(study.ask(), 1.0)
    with pytest.raises(TypeError, match="none of the observations that it was given"):
        _ = study.result


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_stops_after_the_proposal_that_asks_to_stop(space: mc.Space, workers: int) -> None:
    result = minimize(tiny.loss, space, 9, optimizer=Odd(space), execution=workers, progress=False)
    assert (result.n_done, len(result.history), result.stopped) == (4, 4, "optimizer: residuals are small")
    assert result.history[3].stop == "residuals are small"


def test_an_optimum_is_proven_only_if_all_losses_are_known(space: mc.Space) -> None:
    class AskingMs(tiny.Finite):
        def propose(self, request: Request) -> Proposal:
            return replace(super().propose(request), outputs=("ms",))

    result = minimize(lambda c: {"ms": 1.0}, space, 9, optimizer=AskingMs(space), progress=False)
    assert (result.n_done, result.stopped) == (3, "space exhausted")


def test_invalid_optimizers_proposals_and_storages_are_refused(space: mc.Space) -> None:
    class Old(tiny.Sampler):
        def propose(self, request: Request) -> Proposal:
            return super().propose(request).config  # type: ignore[return-value]

    with pytest.raises(TypeError, match=r"optimizer 'sampler' must return a Proposal, and returned dict"):
        mc.Study(space, Old(space)).ask()
    for field in ("trace", "state"):
        study = mc.Study(space, Odd(space, **{field: {"rng": object()}}))
        with pytest.raises(TypeError, match=f"returned a {field} that JSON cannot hold"):
            study.ask()
        assert study.trials == ()
    with pytest.raises(TypeError, match=r"must be a name, mc.Method\(...\), or an object of a class .*; got object"):
        mc.Study(space, object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"storage must be the path of a journal, an address such as .*; got int 5"):
        mc.Study(space, tiny.Sampler(space), storage=5)  # type: ignore[arg-type]


# -- outcome constraints --------------------------------------------------------------------------------------------


def test_unsupported_and_invalid_limits_are_refused_before_the_journal_is_created(
    space: mc.Space, journal: Path
) -> None:
    request = Request([], np.random.default_rng(0), limits=(Limit("latency_ms", high=5.0),))
    for name in OPTIMIZERS:
        optimizer = make_optimizer(name, space)
        if not optimizer.takes_limits:
            with pytest.raises(
                MipcashError, match=r"does not support outcome constraints and was given latency_ms <= 5; leave"
            ):
                optimizer.ask(request)
    with pytest.raises(
        MipcashError, match="optimizer 'sampler' does not support outcome constraints and was given ms <= 5"
    ):
        minimize(tiny.loss, space, 3, optimizer=tiny.Sampler(space), limits={"ms": 5}, storage=journal)
    with pytest.raises(ValueError, match="the limit on 'ms' is a number that the output may not exceed, or a pair"):
        mc.Study(space, limits={"ms": "fast"}, storage=journal)  # type: ignore[dict-item]
    assert not journal.exists()


class Careful(tiny.Sampler):
    """Optimizer that accepts outcome constraints and writes them into the origin of its proposals."""

    takes_limits = True

    def propose(self, request: Request) -> Proposal:
        return replace(super().propose(request), origin="; ".join(map(str, request.limits)))


def test_limits_reach_the_optimizer_and_decide_the_best_trial(space: mc.Space, journal: Path) -> None:
    def outputs(config: dict[str, Any]) -> dict[str, float]:
        return {"loss": tiny.loss(config), "rounds": float(config["rounds"])}

    given = {"limits": {"rounds": (None, 1500)}, "storage": journal, "progress": False}
    result = mc.minimize(outputs, space, 9, optimizer=Careful(space), **given)
    assert {t.origin for t in result.history} == {"rounds <= 1500"}
    kept = [t for t in result.history if t.values["rounds"] <= 1500]
    assert 0 < len(kept) < 9
    assert result.value == min(t.loss for t in kept if t.loss is not None)
    with pytest.raises(StorageError, match=r"limit rounds was \[None, 1500.0\] and is 'not given' now"):
        mc.Study(space, Careful(space), storage=journal)
