"""``trial.report`` and ``trial.should_stop``: results equal to those of yields, in every executor."""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import mipcash as mc
from mipcash.errors import DefectError, TellError

EPOCHS = 9


def line() -> mc.Space:
    space = mc.Space("line")
    space.real("x", 0.0, 1.0)
    space.real("y", 0.0, 1.0)
    return space


def at(config: dict[str, Any], epoch: int) -> float:
    return float(config["x"] + (1.0 + config["y"]) / (epoch + 1))


def yielding(config: dict[str, Any]) -> Any:
    for epoch in range(EPOCHS):
        yield at(config, epoch)
    return at(config, EPOCHS - 1)


def training(config: dict[str, Any], trial: mc.Trial) -> float:
    for epoch in range(EPOCHS):
        trial.report(epoch, at(config, epoch))
        if trial.should_stop():
            break
    return at(config, epoch)


def yielding_folds(config: dict[str, Any]) -> Iterator[float]:
    for k in range(5):
        yield at(config, k) + 0.1 * math.cos(99.0 * (k + config["x"]))


def validating(config: dict[str, Any], *, trial: mc.Trial) -> float:
    seen = []
    for k, loss in enumerate(yielding_folds(config)):
        trial.report(10 * k, loss)
        seen.append(loss)
        if trial.should_stop():
            break
    return math.fsum(seen) / len(seen)


def run(objective: Any, budget: Any = 25, **given: Any) -> mc.Result:
    return mc.minimize(objective, line(), budget, **{"optimizer": "random", "progress": False, **given})


def one(objective: Any, **given: Any) -> mc.Trial:
    return run(objective, 1, **given).history[0]


def told(found: mc.Result | mc.Study) -> list[tuple[Any, ...]]:
    trials = found.trials if isinstance(found, mc.Study) else found.history
    return [(t.number, t.config, t.status, t.loss, t.folds, t.outcome.variance) for t in trials]


@pytest.mark.parametrize(
    ("reports", "yields", "racing", "execution"),
    [
        (training, yielding, "halving", mc.Execution(evaluation_timeout=60.0)),
        (validating, yielding_folds, True, mc.Execution(executor=lambda: ProcessPoolExecutor(1))),
    ],
)
def test_reports_equal_yields_in_every_executor(reports: Any, yields: Any, racing: Any, execution: Any) -> None:
    found = run(reports, pruning=racing)
    assert found.n_pruned > 3
    assert told(found) == told(run(yields, pruning=racing))
    assert told(found) == told(run(reports, pruning=racing, execution=execution))
    assert told(found) == told(run(yields, pruning=racing, execution=execution))


@pytest.mark.parametrize(
    ("reports", "yields", "racing"), [(training, yielding, mc.Halving(factor=2)), (validating, yielding_folds, True)]
)
def test_a_loop_of_ask_and_tell_equals_a_run(reports: Any, yields: Any, racing: Any) -> None:
    study = mc.Study(line(), "random", pruning=racing)
    for _ in range(25):
        trial = study.ask()
        study.tell(trial, reports(trial.config, trial=trial))
    found = run(yields, pruning=racing)
    assert found.n_pruned > 3
    assert told(study) == told(found)
    assert (study.result.n_steps, study.result.n_steps_saved) == (found.n_steps, found.n_steps_saved)


def test_a_maximised_value_is_reported_in_its_own_sign() -> None:
    def gain(config: dict[str, Any], trial: mc.Trial) -> float:
        for epoch in range(EPOCHS):
            trial.report(epoch, -at(config, epoch))
            if trial.should_stop():
                break
        return -at(config, epoch)

    found, same = run(gain, pruning="halving", direction="maximize"), run(training, pruning="halving")
    assert [(t.loss, t.steps, t.complete) for t in found.history] == [
        (-t.loss, t.steps, t.complete) for t in same.history
    ]


def test_without_pruning_reports_are_kept_and_no_trial_stops(tmp_path: Path) -> None:
    found = run(training, 8, storage=tmp_path / "run.db")
    assert [t.folds for t in found.history] == [tuple(at(t.config, e) for e in range(EPOCHS)) for t in found.history]
    assert [t.loss for t in found.history] == [at(t.config, EPOCHS - 1) for t in found.history]
    resumed = run(training, 25, storage=tmp_path / "run.db", pruning="halving")
    assert told(resumed)[:8] == told(found)
    assert resumed.n_pruned > 3


def stopped_study(**given: Any) -> mc.Study:
    """Return a study whose next trial should stop after it reports a loss of 5."""
    study = mc.Study(line(), "random", pruning=mc.Racing(least=3), **given)
    for _ in range(4):
        trial = study.ask()
        for k in range(5):
            trial.report(k, {"loss": 0.1 * math.cos(k * trial.config["x"]), "ms": 1.0})
        losses = [0.1 * math.cos(k * trial.config["x"]) for k in range(5)]
        study.tell(trial, {"loss": math.fsum(losses) / 5, "ms": 1.0, "size": 2.0})
    return study


def test_the_loss_of_a_pruned_trial_is_an_estimate_whatever_is_told() -> None:
    for outcome in (None, 5.0, {"loss": 4.0, "size": 3.0}, math.nan, "stopped", {}, {"size": 3.0}, True):
        study = stopped_study(limits={"size": 9.0})
        trial = pickle.loads(pickle.dumps(study.ask()))  # it may be evaluated in another process
        trial.report(0, {"loss": 5.0, "ms": 3.0})
        assert trial.should_stop()
        after = study.tell(pickle.loads(pickle.dumps(trial)), outcome)  # type: ignore[arg-type]
        best = study.result.best
        assert best is not None
        assert after.loss == pytest.approx(best.loss + 5.0 - best.folds[0])
        assert (after.done, after.complete, after.folds, study.result.n_pruned) == (True, False, (5.0,), 1)
        size = after.outcome["size"]  # only a complete evaluation returns it
        assert (size.status, size.value) == (
            ("present", 3.0) if isinstance(outcome, dict) and outcome else ("missing", None)
        )
        assert after.values.get("ms", 3.0) == 3.0


def test_a_trial_that_should_stop_may_fail_or_go_on() -> None:
    study = stopped_study()
    trial = study.ask()
    trial.report(0, 5.0)
    assert trial.should_stop()
    assert study.tell(trial, mc.Failed("pruned")).message == "pruned"
    trial = study.ask()
    for k in range(5):
        trial.report(k, 5.0)
        assert trial.should_stop() == (k < 4)
    after = study.tell(trial, 5.0)
    assert (after.loss, after.complete, after.steps) == (5.0, True, 5)


def reporting(*losses: Any, raises: bool = False) -> mc.Trial:
    """Return the trial of an objective that reports these losses, stops when it should, and returns or raises."""

    def objective(config: dict[str, Any], trial: mc.Trial) -> float:
        for epoch, loss in enumerate(losses):
            trial.report(epoch, loss)
            if trial.should_stop():
                break
        if raises:
            raise ValueError(f"diverged at {config['x']}")
        return 0.25

    return one(objective)


class TrialPruned(Exception):
    """Exception with the name of Optuna's."""


def test_an_objective_may_end_by_the_exception_of_optuna_when_it_should_stop() -> None:
    def pruned(config: dict[str, Any], trial: mc.Trial) -> float:
        for epoch in range(EPOCHS):
            trial.report(epoch, at(config, epoch))
            if trial.should_stop():
                raise TrialPruned
        return at(config, EPOCHS - 1)

    ours, theirs = (
        mc.minimize(f, line(), 14, optimizer="random", pruning="halving", progress=False) for f in (training, pruned)
    )
    assert [(t.loss, t.failed, t.complete) for t in ours.history] == [
        (t.loss, t.failed, t.complete) for t in theirs.history
    ]
    assert theirs.n_pruned > 0

    def early(config: dict[str, Any], trial: mc.Trial) -> float:
        if config["x"] > 0.5:
            raise TrialPruned("too large")
        return at(config, 0)

    run = mc.minimize(early, line(), 8, optimizer="random", progress=False)
    assert [t.failed for t in run.history] == [t.config["x"] > 0.5 for t in run.history]


def test_a_reported_loss_that_is_not_finite_stops_and_fails_the_trial() -> None:
    trial = reporting(0.5, math.inf, 0.5)
    assert (trial.message, trial.folds) == ("the objective reported inf; a loss must be finite (step 1)", (0.5,))
    assert reporting(mc.Failed("too wide")).message == "too wide (step 0)"
    trial = reporting(0.5, raises=True)
    assert (trial.failed, trial.folds, trial.steps) == (True, (0.5,), 1)

    def going_on(config: dict[str, Any], trial: mc.Trial) -> float:
        for epoch, loss in enumerate([0.5, math.nan, 0.25]):
            trial.report(epoch, loss)
        assert not trial.should_stop()
        return 0.25

    trial = one(going_on)
    assert (trial.loss, trial.folds) == (0.25, (0.5,))

    def unaware(config: dict[str, Any], trial: mc.Trial) -> float:
        trial.report(0, 0.5)
        trial.report(1, math.nan)
        return 0.25

    trial = one(unaware)
    assert (trial.message, trial.folds) == ("the objective reported nan; a loss must be finite (step 1)", (0.5,))


def test_an_invalid_report_is_refused_at_once() -> None:
    study = mc.Study(line(), "random")
    trial = study.ask()
    trial.report(3, 0.25)
    for step, value, message in (
        (3, 0.5, "step 3 was reported already; report each step once, in order"),
        (2, 0.5, "step 2 comes before step 3, which was reported"),
        (-1, 0.5, "takes a step, a whole number, at least 0, and then the loss; got int -1 as the step"),
        (0.31, 4, "a whole number, at least 0, and then the loss; got float 0.31 as the step"),
        (True, 4, "got bool True as the step"),
        (4, "low", "takes a number, or a dict with 'loss', such as report(3, 0.25); got str 'low'"),
        (4, None, "got None"),
        (4, True, "got bool True"),
        (4, {"ms": 1.0}, "got dict {'ms': 1.0}"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            trial.report(step, value)  # type: ignore[arg-type]
    trial.report(5, 0.75)
    assert study.tell(trial, 0.5).folds == (0.25, 0.75)
    for late in (trial, study.trials[0], study.tell(study.ask(), 0.5)):
        with pytest.raises(TellError, match=f"trial {late.number} is not being evaluated; call report"):
            late.report(0, 0.5)
        with pytest.raises(TellError, match=r"call should_stop\(\) of the trial that ask\(\) returned"):
            late.should_stop()


def test_an_objective_that_reports_and_returns_nothing_or_yields_too_is_a_defect() -> None:
    def forgetful(config: dict[str, Any], trial: mc.Trial) -> None:
        trial.report(0, config["x"])

    def both(config: dict[str, Any], trial: mc.Trial) -> Iterator[float]:
        trial.report(0, 0.5)
        yield 0.5

    with pytest.raises(DefectError, match="the objective reported 1 values and returned nothing; return the loss"):
        run(forgetful)
    with pytest.raises(DefectError, match="yields its results and reports them too; do one of the two"):
        one(both)


def test_an_objective_receives_its_trial_and_repeats_are_not_pruned() -> None:
    seen: list[tuple[int, int, dict[str, Any]]] = []

    def objective(config: dict[str, Any], trial: mc.Trial, repeat: int = 0) -> float:
        assert trial.repeat == repeat
        seen.append((trial.number, repeat, trial.config))
        return training(config, trial) + 0.01 * repeat

    found = run(objective, 25, pruning="halving", confirm=3)
    assert seen == [(t.number, t.repeat, t.config) for t in found.history]
    assert [t.steps for t in found.history if t.repeat] == [EPOCHS] * 3


def test_the_first_parameter_is_the_configuration_under_any_name() -> None:
    def named(trial: dict[str, Any]) -> float:
        return float(trial["x"])

    def bound(config: dict[str, Any], trial: str) -> float:
        assert trial == "mine"
        return float(config["x"])

    assert one(named).done
    assert one(partial(bound, trial="mine")).done


def test_the_function_of_each_output_reports_its_own_values() -> None:
    def size(config: dict[str, Any], trial: mc.Trial) -> float:
        for k in range(3):
            trial.report(k, float(k))
            assert not trial.should_stop()
        return 7.0

    found = run({"loss": training, "size": size}, 40, pruning="halving")
    assert found.n_pruned > 3
    assert {t.outcome["size"].folds for t in found.history} == {(0.0, 1.0, 2.0)}
    assert {t.values["size"] for t in found.history} == {7.0}
