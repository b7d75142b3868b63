"""MipcashSampler with several objectives, and with trials that Optuna, or another study, has made."""

from __future__ import annotations

import math
from typing import Any

import pytest

pytest.importorskip("optuna", minversion="5")

import optuna
from optuna.distributions import CategoricalDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

import mipcash as mc
from mipcash.integrations.optuna import MipcashSampler
from tests.integrations.test_optuna_sampler import network, suggested


def trade_off(trial: Any) -> tuple[float, float]:
    """Return a loss to minimise and an accuracy to maximise, which depend on all parameters in opposite ways."""
    config = suggested(trial)
    size = config["layers"] * config["width"] / 192
    waste = (
        3.0 * abs(config.get("dropout", 0.2) - 0.2) + 30.0 * abs(config["lr"] - 0.01) + 0.3 * (config["act"] == "tanh")
    )
    return size + waste, size**0.5 - waste


@pytest.mark.parametrize("space", ["given", "inferred"])
def test_several_objectives_are_searched_for_their_front(space: str) -> None:
    def volume(sampler: Any) -> float:
        study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
        study.optimize(trade_off, n_trials=30)
        if isinstance(sampler, MipcashSampler) and space == "given":
            assert all(network().is_legal(t.params) for t in study.trials)
        area, worst = 0.0, -1.0  # above the reference point (2, -1)
        for low, high in sorted(t.values for t in study.best_trials):
            area, worst = area + max(0.0, 2.0 - low) * max(0.0, high - worst), max(worst, high)
        return area

    ours = [volume(MipcashSampler(network() if space == "given" else None, seed=s)) for s in (0, 1)]
    random = [volume(optuna.samplers.RandomSampler(seed=s)) for s in (0, 1)]
    assert sum(ours) > sum(random)
    again = volume(MipcashSampler(network() if space == "given" else None, seed=0))
    assert again == ours[0]


def test_failures_and_constraints_count_for_several_objectives() -> None:
    def objective(trial: Any) -> tuple[float, float]:
        layers = trial.suggest_int("layers", 1, 3)
        trial.suggest_categorical("width", [16, 32, 64, 128])
        trial.suggest_categorical("act", ["relu", "tanh", None])
        trial.suggest_float("lr", 1e-4, 1e-1, log=True)
        if layers > 1:
            trial.suggest_float("dropout", 0.0, 0.5)
        if layers == 3:
            raise ValueError("no")
        trial.set_user_attr("ms", 10.0 * layers)
        return float(layers), -float(layers)

    study = optuna.create_study(
        directions=["minimize", "minimize"], sampler=MipcashSampler(network(), limits={"ms": 12.0}, seed=0)
    )
    study.optimize(objective, n_trials=12, catch=ValueError)
    assert {t.state for t in study.trials} == {TrialState.COMPLETE, TrialState.FAIL}
    assert [t.params["layers"] for t in study.trials[-4:]] == [1] * 4


def ruled() -> mc.Space:
    space = mc.Space("ruled")
    n, k = space.integer("n", 1, 8), space.categorical("k", ["a", "b"])
    space.real("x", 0.0, 1.0, when=k["a"])
    space.rule("r", n <= 4 + 4 * k["b"])
    return space


def of(sign: float) -> Any:
    def objective(trial: Any) -> float:
        n, k = trial.suggest_int("n", 1, 8), trial.suggest_categorical("k", ["a", "b"])
        assert n <= 4 or k == "b"
        return sign * ((n - 6) ** 2 + (trial.suggest_float("x", 0.0, 1.0) if k == "a" else 0.0))

    return objective


def test_a_sampler_of_another_study_reads_that_study() -> None:
    used = MipcashSampler(ruled(), seed=0)
    first = optuna.create_study(sampler=used)
    first.optimize(of(1.0), n_trials=8)
    found = []
    for sampler in (used, MipcashSampler(ruled(), seed=0)):
        study = optuna.create_study(sampler=sampler)
        for trial in first.get_trials():
            trial.values = [-trial.value]
            study.add_trial(trial)
        study.optimize(of(-1.0), n_trials=4)
        found.append([t.params for t in study.trials])
    assert found[0] == found[1]


@pytest.mark.parametrize("given", [{"n": 4, "k": "a"}, {"n": 7}])
def test_parameters_of_a_waiting_trial_are_kept_and_completed_legally(given: dict[str, Any]) -> None:
    kinds = {"n": IntDistribution(1, 8), "k": CategoricalDistribution(["a", "b"])}
    waiting = create_trial(state=TrialState.WAITING, params=given, distributions={n: kinds[n] for n in given})
    study = optuna.create_study(sampler=MipcashSampler(ruled(), seed=0))
    for _ in range(3):
        study.add_trial(waiting)
    study.optimize(of(1.0), n_trials=3)
    assert all(given.items() <= trial.params.items() for trial in study.trials)


def test_infinite_constraints_say_only_whether_a_trial_is_feasible() -> None:
    def objective(trial: Any) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_constraint("c", math.inf if x < 0.5 else -math.inf)
        return (x - 0.4) ** 2

    study = optuna.create_study(sampler=MipcashSampler(seed=0))
    study.optimize(objective, n_trials=20)
    assert 0.5 <= study.best_params["x"] < 0.52


def test_a_parameter_without_a_name_is_sampled_independently() -> None:
    study = optuna.create_study(sampler=MipcashSampler(seed=0))
    study.optimize(lambda t: t.suggest_float("", 0.0, 1.0) + t.suggest_int("a", 0, 3), n_trials=8)
    assert len(study.trials) == 8
