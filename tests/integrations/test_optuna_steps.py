"""Ranges with a step in studies of Optuna."""

from __future__ import annotations

from typing import Any

import pytest

import mipcash as mc

pytest.importorskip("optuna", minversion="5")

import optuna
from optuna.distributions import FloatDistribution, IntDistribution

from mipcash.integrations.optuna import MipcashSampler
from mipcash.integrations.optuna.ranges import same_values, suggestion

optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.mark.parametrize(
    ("domain", "given", "same"),
    [
        (mc.Real(0, 1, step=0.1), FloatDistribution(0, 1, step=0.1), True),
        (mc.Real(0, 1, step=0.1), FloatDistribution(0, 1), False),
        (mc.Real(0, 1), FloatDistribution(0, 1, step=0.1), False),
        (mc.Real(0, 1, step=0.1), FloatDistribution(0, 1, step=0.2), False),
        (mc.Ordinal([0.0, 0.25, 0.5]), FloatDistribution(0, 0.5, step=0.25), True),
        (mc.Ordinal((16, 64), step=16), IntDistribution(16, 64, step=16), True),
        (mc.Integer(0, 10, 2), FloatDistribution(0, 10, step=2), True),
        (mc.Integer(0, 10**12), IntDistribution(0, 10**12), True),
        (mc.Integer(0, 10**12), FloatDistribution(0, 10**12, step=1), True),
        (mc.Integer(0, 10**12), IntDistribution(0, 10**12, step=10), False),
        (mc.Integer(0, 10**12), FloatDistribution(0, 10**12), False),
    ],
)
def test_steps_are_compared(domain: Any, given: Any, same: bool) -> None:
    assert same_values("p", domain, given) == same
    if same:
        assert eval(suggestion("p", domain), {"trial": Asked()}) == given or not isinstance(domain, mc.Real)


class Asked:
    """Stands for a trial: gives the distribution that it was asked for."""

    def suggest_float(self, name: str, low: float, high: float, **further: Any) -> Any:
        return FloatDistribution(low, high, **further)

    def suggest_int(self, name: str, low: int, high: int, **further: Any) -> Any:
        return IntDistribution(low, high, **further)


def test_a_space_with_steps_is_searched() -> None:
    space = mc.Space("steps")
    x, y = space.real("x", 0, 1, step=0.1), space.real("y", 0, 1, step=1e-4)
    space.rule("sum", x + y == 0.7)
    study = optuna.create_study(sampler=MipcashSampler(space, seed=0))

    def objective(trial: Any) -> float:
        return float(trial.suggest_float("x", 0, 1, step=0.1) * trial.suggest_float("y", 0, 1, step=1e-4))

    study.optimize(objective, n_trials=5)
    assert all(space.is_legal(t.params) for t in study.trials)
    assert len({t.params["x"] for t in study.trials}) == 5
