"""Where a study of Optuna ends, and what its sampler warns of on the way."""

from __future__ import annotations

import re
from typing import Any

import pytest

import mipcash as mc

pytest.importorskip("optuna", minversion="5")

import optuna
from optuna.distributions import IntDistribution

from mipcash.integrations.optuna import MipcashSampler
from tests.integrations.test_optuna_sampler import network, objective, study_of


def test_nothing_is_evaluated_twice_before_the_end_but_where_values_are_held() -> None:
    space = mc.Space.from_optuna({"a": IntDistribution(1, 3), "b": IntDistribution(0, 1)}, "six")

    def asked(trial: Any) -> float:
        value = trial.suggest_int("a", 1, 3) + trial.suggest_int("b", 0, 1)
        if trial.number == 1:
            raise RuntimeError("failures count too")
        return value

    study = study_of(MipcashSampler(space, seed=0))
    with pytest.warns(UserWarning, match="space 'six' has been proposed; the study stops"):
        study.optimize(asked, n_trials=10, catch=RuntimeError)
    assert len(study.trials) == 6
    study = study_of(MipcashSampler(space, seed=0))
    for _ in range(2):
        study.enqueue_trial({"a": 1, "b": 0})
    with pytest.warns(UserWarning, match="the study stops"):
        study.optimize(lambda t: t.suggest_int("a", 1, 3) + t.suggest_int("b", 0, 1), n_trials=10)
    assert [t.params for t in study.trials[:2]] == [{"a": 1, "b": 0}] * 2
    assert len(study.trials) == 7
    study = study_of(optuna.samplers.PartialFixedSampler({"a": 1}, MipcashSampler(space, seed=0)))
    with pytest.warns(UserWarning, match="the study stops"):
        study.optimize(lambda t: t.suggest_int("a", 1, 3) + t.suggest_int("b", 0, 1), n_trials=10)
    assert len(study.trials) == 3


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({}, r"trial 0 has no value for the limit on 'ms' and .*it has none. Call trial.set_user_attr\('ms', value\)"),
        ({"mss": 3.0, "size": 1}, r"trial 0 .*did you mean 'mss'\? it has .*'mss'.*'size'"),
        ({"ms": "fast"}, r"trial 0 .*the user attribute 'ms' is 'fast', which is no number"),
    ],
)
def test_a_limit_on_what_is_never_set_is_warned_of_once(told: dict[str, Any], said: str) -> None:
    def untold(trial: Any) -> float:
        for name, value in told.items():
            trial.set_user_attr(name, value)
        return objective(trial)

    with pytest.warns(UserWarning, match="limit on 'ms'") as caught:
        study_of(MipcashSampler(network(), limits={"ms": 5.0}, seed=0)).optimize(untold, n_trials=3)
    found = [str(w.message) for w in caught if "limit on 'ms'" in str(w.message)]
    assert len(found) == 1
    assert re.match(said, found[0]), found
