"""MipcashSampler with several objectives: better fronts than random search, failures, constraints."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("optuna", minversion="5")

import optuna
from optuna.trial import TrialState

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
