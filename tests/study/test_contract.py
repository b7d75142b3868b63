"""What an optimizer is asked and may answer: the request, the wish to stop, the final answer, limits that it must not ignore."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny

import mipcash as mc
from mipcash.errors import MipcashError, StorageError
from mipcash.optimizers.optimizer import History, Limit, Observation, Proposal, Request
from mipcash.optimizers.registry import make_optimizer
from mipcash.study.minimize import minimize
from mipcash.study.storage.sqlite import read_journal
from tests.named import OPTIMIZERS

FAST = Limit("latency_ms", high=5.0)


class Second(tiny.Sampler):
    """Recommends the second-best, and its asks leave a trace."""

    def propose(self, request: Request) -> Proposal:
        return replace(super().propose(request), trace={"asked": len(request.history)}, outputs=("loss",))

    def recommend(self, history: History, limits: Any = ()) -> Observation | None:
        done = sorted((o for o in history if o.status == "done"), key=lambda o: o.loss or 0.0)
        return done[1] if len(done) > 1 else None


class Satisfied(tiny.Sampler):
    """Wishes to stop with its fourth proposal."""

    def propose(self, request: Request) -> Proposal:
        return replace(super().propose(request), stop="residuals are small" if len(request.history) == 3 else "")


def test_a_request_tells_pending_from_settled(space: mc.Space) -> None:
    a, b, c = (tiny.draw(space, np.random.default_rng(k)) for k in range(3))
    history = [Observation(a, "done", 1.0), Observation(b, "pending", values={"ms": 3.0}), Observation(c, "failed")]
    request = Request(history, np.random.default_rng(0))
    assert [o.config for o in request.pending] == [b]
    assert [o.config for o in request.settled] == [a, c]
    assert request.before == [a, b, c]
    assert (request.state, request.apart, request.limits, request.seconds) == ({}, None, (), None)


def test_the_result_is_what_the_optimizer_recommends(space: mc.Space) -> None:
    study = mc.Study(space, Second(space))
    for value in (3.0, 1.0, 2.0):
        trial = study.ask()
        assert (trial.trace, trial.evaluate, trial.stop) == ({"asked": trial.number}, ("loss",), "")
        study.tell(trial, value)
    assert study.result.value == 2.0
    assert study.result.config == study.trials[2].config
    assert mc.Study(space, Second(space)).result.best is None
    assert mc.Result(study.trials).value == 1.0  # without an optimizer, the lowest


def test_a_recommendation_is_an_observation_of_the_history(space: mc.Space) -> None:
    class Inventing(tiny.Sampler):
        def recommend(self, history: History, limits: Any = ()) -> Observation | None:
            return Observation(history[0].config, "done", 0.0)

    study = mc.Study(space, Inventing(space))
    study.tell(study.ask(), 1.0)
    with pytest.raises(TypeError, match="none of the observations that it was given"):
        _ = study.result


@pytest.mark.parametrize("workers", [1, 2])
def test_a_wish_to_stop_is_honoured_after_the_proposal_that_bears_it(
    space: mc.Space, journal: Path, workers: int
) -> None:
    result = minimize(
        tiny.loss, space, 9, optimizer=Satisfied(space), execution=mc.Execution(workers=workers), progress=False
    )
    assert (result.n_done, len(result.history)) == (4, 4)
    assert result.stopped == "optimizer: residuals are small"
    assert result.history[3].stop == "residuals are small"


def test_a_trace_that_json_cannot_hold_is_refused(space: mc.Space) -> None:
    class Broken(tiny.Sampler):
        def propose(self, request: Request) -> Proposal:
            return replace(super().propose(request), trace={"rng": request.rng})

    study = mc.Study(space, Broken(space))
    with pytest.raises(TypeError, match="returned a trace that JSON cannot hold"):
        study.ask()
    assert study.trials == ()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_limits_are_learned_from_or_refused(name: str) -> None:
    optimizer = make_optimizer(name, tiny.tiny_space())
    request = Request([], np.random.default_rng(0), limits=(FAST,))
    if not optimizer.takes_limits:
        with pytest.raises(MipcashError, match=r"does not learn from limits and was given latency_ms <= 5; leave"):
            optimizer.ask(request)


def test_a_recommendation_keeps_the_limits(space: mc.Space) -> None:
    config = tiny.draw(space, np.random.default_rng(0))
    history = [
        Observation(config, "done", 1.0, {"latency_ms": 9.0}),
        Observation(config, "done", 1.5, {"latency_ms": math.nan}),
        Observation(config, "done", 1.6),
        Observation(config, "done", 2.0, {"latency_ms": 5.0}),
        Observation(config, "failed", None, {"latency_ms": 1.0}),
    ]
    optimizer = tiny.Sampler(space)
    assert optimizer.recommend(history) is history[0]
    assert optimizer.recommend(history, [FAST]) is history[3]
    assert optimizer.recommend(history, [FAST, Limit("loss", high=1.9)]) is None
    assert optimizer.recommend([]) is None


def test_a_limit_says_what_it_is_and_how_far_a_value_breaks_it() -> None:
    assert str(Limit("accuracy", 0.9)) == "0.9 <= accuracy"
    assert str(Limit("ms", 1, 5)) == "1 <= ms <= 5"
    assert [Limit("ms", 1, 5).violation(v) for v in (0.0, 3.0, 7.5, None, math.nan)] == [
        1.0,
        0.0,
        2.5,
        math.inf,
        math.inf,
    ]
    for low, high in ((2.0, 1.0), (-math.inf, math.inf), (math.nan, 1.0)):
        with pytest.raises(ValueError, match="the limit on 'ms' needs a finite low or high"):
            Limit("ms", low, high)


def test_what_comes_after_the_first_three_arguments_has_a_name(space: mc.Space) -> None:
    with pytest.raises(TypeError, match="by their place and all else by name"):
        mc.minimize(tiny.loss, space, 5, "random")  # type: ignore[misc]
    with pytest.raises(TypeError, match="by their place and all else by name"):
        mc.Study(space, mc.Method("random", solver="highs"), 0)  # type: ignore[misc]
    trial = mc.Study(space, tiny.Sampler(space)).ask()
    assert trial.pending
    assert trial.running
    assert trial.status == "pending"


class Careful(tiny.Sampler):
    """Takes limits."""

    takes_limits = True

    def propose(self, request: Request) -> Proposal:
        return replace(super().propose(request), origin="; ".join(map(str, request.limits)))


def test_limits_reach_the_optimizer_and_decide_the_answer(space: mc.Space, journal: Path) -> None:
    def outputs(config: dict[str, Any]) -> dict[str, float]:
        return {"loss": tiny.loss(config), "rounds": float(config["rounds"])}

    limits = {"rounds": 1500, "accuracy": (0.9, None)}
    unknown = {"accuracy": mc.Failed("not measured")}
    lacking = mc.minimize(
        lambda config: {**outputs(config), **unknown}, space, 3, optimizer=Careful(space), limits=limits, progress=False
    )
    assert (lacking.n_done, lacking.config) == (3, None)
    result = mc.minimize(
        outputs, space, 9, optimizer=Careful(space), limits={"rounds": (None, 1500)}, storage=journal, progress=False
    )
    assert {t.origin for t in result.history} == {"rounds <= 1500"}
    kept = [t for t in result.history if t.values["rounds"] <= 1500]
    assert 0 < len(kept) < 9
    assert result.value == min(t.loss for t in kept if t.loss is not None)
    with pytest.raises(StorageError, match=r"limit rounds was \[None, 1500.0\] and is 'not given' now"):
        mc.Study(space, Careful(space), storage=journal)


def test_limits_that_would_be_ignored_or_are_none_are_refused_before_anything_is_made(
    space: mc.Space, journal: Path
) -> None:
    with pytest.raises(MipcashError, match="optimizer 'sampler' does not learn from limits and was given ms <= 5"):
        mc.minimize(
            tiny.loss, space, 3, optimizer=tiny.Sampler(space), limits={"ms": 5}, storage=journal, progress=False
        )
    for ends in ("fast", (1, 2, 3), [None, "x"]):
        with pytest.raises(ValueError, match="the limit on 'ms' is a number that the output may not exceed, or a pair"):
            mc.Study(space, Careful(space), limits={"ms": ends}, storage=journal)  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="needs a finite low or high"):
        mc.Study(space, Careful(space), limits={"ms": (None, None)}, storage=journal)
    assert not journal.exists()


def test_what_is_no_optimizer_no_proposal_or_no_storage_is_told(space: mc.Space) -> None:
    class Old(tiny.Sampler):
        def propose(self, request: Request) -> Proposal:
            return super().propose(request).config  # type: ignore[return-value]

    with pytest.raises(TypeError, match=r"optimizer 'sampler' must return a Proposal, and returned dict"):
        mc.Study(space, Old(space)).ask()
    with pytest.raises(
        TypeError,
        match=r"must be a name, mc.Method\(...\), or an object of a class derived from .*Optimizer; got object",
    ):
        mc.Study(space, object())  # type: ignore[arg-type]
    with pytest.raises(
        TypeError,
        match=r"storage must be the path of a journal, an address such as .*, a Storage, or None for memory; got int 5",
    ):
        mc.Study(space, tiny.Sampler(space), storage=5)  # type: ignore[arg-type]


def test_an_optimum_is_proven_only_where_all_losses_are_known(space: mc.Space) -> None:
    class AskingMs(tiny.Finite):
        def propose(self, request: Request) -> Proposal:
            return replace(super().propose(request), outputs=("ms",))

    result = minimize(lambda c: {"ms": 1.0}, space, 9, optimizer=AskingMs(space), progress=False)
    assert (result.n_done, result.stopped) == (3, "space exhausted")


def test_a_recommendation_is_void_when_more_is_told(space: mc.Space, journal: Path) -> None:
    minimize(tiny.loss, space, 2, optimizer=tiny.Sampler(space), storage=journal, progress=False)
    assert read_journal(journal)[0].recommended is not None
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        study.tell(study.ask(), -1.0)
    assert read_journal(journal)[0].recommended is None
