"""The answer of noisy evaluations: by posterior mean where they show their noise, the lowest loss where they do not."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.optimizers.noise import evident_noise
from mipcash.optimizers.optimizer import Observation
from mipcash.optimizers.outcome import LOSS, Outcome, Output


def line() -> mc.Space:
    space = mc.Space("line")
    space.integer("x", 0, 30)
    return space


def seen(x: int, folds: tuple[float, ...] = (), loss: float | None = None) -> Observation:
    value = float(np.mean(folds)) if loss is None else loss
    return Observation({"x": x}, "done", value, {}, Outcome({LOSS: Output("present", value, folds=folds)}))


def test_the_noise_of_folds_leaves_out_how_hard_they_are() -> None:
    """Against the variance that folds were drawn with; a shift of a fold for all configurations changes nothing."""
    rng = np.random.default_rng(0)
    losses = rng.normal(0, 0.3, (400, 5)) + rng.normal(0, 1e-3, (400, 1))
    found = evident_noise([seen(k, tuple(row)) for k, row in enumerate(losses.tolist())])
    assert found == pytest.approx(0.3**2 / 5, rel=0.3)
    shifted = losses + np.array([0.0, 5.0, -2.0, 1.0, 9.0])
    assert evident_noise([seen(k, tuple(row)) for k, row in enumerate(shifted.tolist())]) == pytest.approx(found)


def test_the_noise_of_repeated_measurements() -> None:
    history = [seen(1, loss=1.0), seen(1, loss=3.0), seen(2, loss=5.0), seen(3, loss=2.0), seen(3, loss=2.0)]
    assert evident_noise(history) == pytest.approx((2.0 + 0.0) / 2)
    curves = [seen(k, (3.0, 2.0, 1.0 + k), loss=1.0 + k) for k in range(9)]  # epochs, of which the last counts
    none = [seen(1, loss=2.0), seen(1, loss=2.0), *(seen(k, (0.5, 0.5, 0.5)) for k in range(2, 9))]
    for history in ([seen(k, loss=float(k % 3)) for k in range(20)], curves, none):
        assert evident_noise(history) == 0.0


def test_the_answer_of_a_deterministic_objective_is_the_best_that_was_seen() -> None:
    def rough(config: Mapping[str, Any]) -> float:
        return 0.02 * abs(config["x"] - 9) + random.Random(config["x"]).random()

    result = mc.minimize(rough, line(), 12, seed=0, progress=False)
    assert result.value == min(t.loss for t in result.history)
    whole = mc.minimize(lambda config: iter([rough(config)] * 3), line(), 12, seed=0, progress=False)
    assert whole.value == min(t.loss for t in whole.history)


def test_the_answer_of_a_noisy_one_is_the_best_by_posterior_mean() -> None:
    """Known evaluations on a slope with one lucky outlier: the lowest loss is not the answer."""

    def outcome(x: int) -> list[float]:
        mean = -0.3 if x == 24 else 0.1 * abs(x - 6)
        noise = np.random.default_rng(x).normal(0, 1.6, 4)
        return list(mean + noise - noise.mean())

    with mc.Study(line(), "hybrid") as study:
        for x in range(0, 31, 2):
            study.add({"x": x}, mc.Folds(outcome(x)))
        result = study.result
        lowest = min(result.history, key=lambda t: t.loss)
        assert lowest.config == {"x": 24}
        assert abs(result.config["x"] - 6) <= 4
        assert result.value > result.best.loss > lowest.loss  # what is worse by all rows is moved towards the mean
        assert study.finalists(3)[0].number == result.best.number
        assert len({t.number for t in study.finalists(3)}) == 3
    with mc.Study(line(), "random") as study:
        for x in range(0, 31, 2):
            study.add({"x": x}, mc.Folds(outcome(x)))
        assert study.result.config == {"x": 24}


def test_under_limits_only_what_keeps_them() -> None:
    with mc.Study(line(), "hybrid", limits={"ms": 1.0}) as study:
        for x in range(0, 31, 2):
            loss = [0.1 * x + random.Random(f"{x} {k}").gauss(0, 0.1) for k in range(4)]
            study.add({"x": x}, mc.Folds([{"loss": l, "ms": 2.0 if x < 10 else 0.5} for l in loss]))
        assert study.result.config["x"] in (10, 12)
