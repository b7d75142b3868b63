"""Training data of the models (decoupled outputs, noise, pruned trials), and the recommended trial."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mipcash as mc
from mipcash.methods.admmbo.admmbo import Admmbo
from mipcash.methods.admmbo.models import Models
from mipcash.methods.mivabo.mivabo import MiVaBO
from mipcash.methods.mivabo.posterior import LinearPosterior
from mipcash.optimizers.data import Data, imputed
from mipcash.optimizers.hybrid import Hybrid
from mipcash.optimizers.noise import evident_noise
from mipcash.optimizers.optimizer import Limit, Observation, joined
from mipcash.optimizers.outcome import LOSS, Outcome, Output
from mipcash.optimizers.random import RandomSearch
from mipcash.optimizers.registry import make_optimizer
from mipcash.optimizers.safety import probabilities
from mipcash.space.domain import Domain

# -- decoupled outputs -------------------------------------------------------------------------------------------------

LIMITS = (Limit("ms", high=5.0), Limit("size", high=2.0))
NAMES = ("loss", "ms", "size")


def digits() -> mc.Space:
    space = mc.Space("line")
    space.integer("n", 0, 9)
    return space


def told(n: int, status: str = "done", known: bool = False, **outputs: float | str) -> Observation:
    """Observation with these outputs. A number is a present output, a text is the message of a failed one."""
    outputs_ = {k: Output.of(v) if not isinstance(v, str) else Output("failed", message=v) for k, v in outputs.items()}
    outcome = Outcome(outputs_)
    return Observation({"n": n}, status, outcome.loss, outcome.values, outcome, known)


def test_observations_of_one_configuration_are_joined() -> None:
    history = [
        told(0, loss=1.0, ms=9.0, size=1.0),
        told(1, ms=3.0),
        told(2, ms=4.0),
        told(1, size=1.0),
        told(2, size=3.0),
        told(1, loss=2.0),
        told(3, loss=0.5),
    ]
    data = Data.of(Domain.of(digits()), history, LIMITS)
    assert [o.config["n"] for o in data.observations] == [0, 2, 1, 3]  # sorted by their latest part
    assert list(data.known) == [0, 2, 3]
    assert list(data.feasible) == [False, False, True, False]
    assert data.violations[3] == math.inf
    assert list(data.order) == [2, 0, 3]
    assert [list(part) for part in data.values("ms")] == [[0, 1, 2], [9.0, 4.0, 3.0]]
    assert not data.failed.any()


def test_one_failed_output_makes_its_configuration_failed() -> None:
    history = [told(1, ms=3.0), told(1, "failed", loss="crashed"), told(1, size=1.0), told(2, "failed", ms="no clock")]
    data = Data.of(Domain.of(digits()), history, LIMITS)
    assert [(o.status, o.loss) for o in data.observations] == [("failed", None), ("failed", None)]
    assert list(data.failed) == [True, True]
    assert not len(data.known)


def test_a_repeated_output_is_another_measurement() -> None:
    history = [told(1, ms=3.0, loss=1.0, size=1.0), told(1, ms=6.0), told(1, loss=0.5)]
    rows = joined(history, NAMES)
    assert [row.parts for row in rows] == [(0,), (1, 2)]
    assert rows[0].merged is history[0]
    assert rows[1].merged.outcome["ms"].value == 6.0
    whole = [told(n % 2, loss=float(n)) for n in range(4)]
    assert all(row.merged is whole[k] for k, row in enumerate(joined(whole, NAMES)))


def test_the_recommendation_is_known_to_satisfy_all_constraints() -> None:
    optimizer = RandomSearch(Domain.of(digits()))
    history = [told(1, loss=1.0), told(2, loss=3.0), told(2, ms=4.0), told(1, ms=4.0), told(3, loss=0.0, ms=1.0)]
    assert optimizer.recommend(history, LIMITS) is None
    history.append(told(2, size=1.0))
    assert optimizer.recommend(history, LIMITS) is history[1]  # the observation with the loss
    history.append(told(1, size=1.0))
    assert optimizer.recommend(history, LIMITS) is history[0]
    assert optimizer.recommend(history, ()) is history[4]


PART = st.tuples(st.integers(0, 3), st.permutations(NAMES), st.integers(1, 2))


@settings(max_examples=15, deadline=None)
@given(st.lists(PART, min_size=1, max_size=4, unique_by=lambda p: p[0]), st.randoms(use_true_random=False))
def test_the_order_of_the_parts_does_not_matter(given: list[tuple[int, list[str], int]], random: object) -> None:
    """Outputs spread over several evaluations give the models the same data as one evaluation of all outputs."""
    values = {n: {"loss": 1.0 + n, "ms": 3.0 + n, "size": 1.0 + n / 2} for n in range(4)}
    parts = [
        told(n, **{name: values[n][name] for name in chunk})
        for n, names, cut in given
        for chunk in (names[:cut], names[cut:])
    ]
    random.shuffle(parts)  # type: ignore[attr-defined]
    domain = Domain.of(digits())
    apart = Data.of(domain, parts, LIMITS)
    order = list(dict.fromkeys(reversed([o.config["n"] for o in parts])))[::-1]
    together = Data.of(domain, [told(n, **values[n]) for n in order], LIMITS)
    for name in ("losses", "known", "failed", "violations", "order", "feasible", "merits"):
        assert np.array_equal(getattr(apart, name), getattr(together, name)), name
    assert np.array_equal(apart.points.levels, together.points.levels)
    answer, whole = (RandomSearch(domain).recommend(h, LIMITS) for h in (parts, together.observations))
    assert (answer and answer.config) == (whole and whole.config)


# -- noise -------------------------------------------------------------------------------------------------------------


def line() -> mc.Space:
    space = mc.Space("line")
    space.integer("x", 0, 30)
    return space


def seen(x: int, folds: tuple[float, ...] = (), loss: float | None = None) -> Observation:
    value = float(np.mean(folds)) if loss is None else loss
    return Observation({"x": x}, "done", value, {}, Outcome({LOSS: Output("present", value, folds=folds)}))


def test_the_noise_of_folds_excludes_their_difficulty() -> None:
    """The estimate agrees with the drawn variance. Shifting a fold for all configurations does not change it."""
    rng = np.random.default_rng(0)
    losses = rng.normal(0, 0.3, (400, 5)) + rng.normal(0, 1e-3, (400, 1))
    found = evident_noise([seen(k, tuple(row)) for k, row in enumerate(losses.tolist())])
    assert found == pytest.approx(0.3**2 / 5, rel=0.3)
    shifted = losses + np.array([0.0, 5.0, -2.0, 1.0, 9.0])
    assert evident_noise([seen(k, tuple(row)) for k, row in enumerate(shifted.tolist())]) == pytest.approx(found)


def test_the_noise_of_repeated_measurements() -> None:
    history = [seen(1, loss=1.0), seen(1, loss=3.0), seen(2, loss=5.0), seen(3, loss=2.0), seen(3, loss=2.0)]
    assert evident_noise(history) == pytest.approx((2.0 + 0.0) / 2)
    curves = [seen(k, (3.0, 2.0, 1.0 + k), loss=1.0 + k) for k in range(9)]  # epochs: the loss is that of the last one
    none = [seen(1, loss=2.0), seen(1, loss=2.0), *(seen(k, (0.5, 0.5, 0.5)) for k in range(2, 9))]
    for history in ([seen(k, loss=float(k % 3)) for k in range(20)], curves, none):
        assert evident_noise(history) == 0.0


def test_a_deterministic_objective_is_answered_by_its_lowest_observed_loss() -> None:
    def rough(config: Mapping[str, Any]) -> float:
        return 0.02 * abs(config["x"] - 9) + random.Random(config["x"]).random()

    result = mc.minimize(rough, line(), 12, seed=0, progress=False)
    assert result.value == min(t.loss for t in result.history)
    whole = mc.minimize(lambda config: iter([rough(config)] * 3), line(), 12, seed=0, progress=False)
    assert whole.value == min(t.loss for t in whole.history)


def test_a_noisy_objective_is_answered_by_its_lowest_posterior_mean() -> None:
    """With one lucky outlier on a slope, the configuration of the lowest loss is not recommended."""

    def told(optimizer: str, of: Callable[[int], Any]) -> mc.Study:
        study = mc.Study(line(), optimizer)
        for x in range(0, 31, 2):
            study.add({"x": x}, of(x))
        return study

    def mean(x: int) -> float:
        return -0.3 if x == 24 else 0.1 * abs(x - 6)

    def measured(x: int) -> dict[str, float]:
        return {"loss": mean(x), "variance": 0.64}

    def folds(x: int) -> mc.Folds:
        noise = np.random.default_rng(x).normal(0, 1.6, 4)
        return mc.Folds(list(mean(x) + noise - noise.mean()))

    with told("hybrid", measured) as study:
        result = study.result
        lowest = min(result.history, key=lambda t: t.loss)
        assert lowest.config == {"x": 24}
        assert abs(result.config["x"] - 6) <= 4
        assert result.value > result.best.loss > lowest.loss  # the posterior shrinks a low loss towards the mean
        assert study.finalists(3)[0].number == result.best.number
        assert len({t.number for t in study.finalists(3)}) == 3
    with told("random", measured) as study:
        assert study.result.config == {"x": 24}
    with told(
        "hybrid", folds
    ) as study:  # losses on the same folds: the lowest mean is the answer, and its value is corrected
        assert study.result.config == {"x": 24}
        assert study.result.value > -0.3


def test_only_feasible_configurations_are_recommended() -> None:
    with mc.Study(line(), "hybrid", limits={"ms": 1.0}) as study:
        for x in range(0, 31, 2):
            loss = [0.1 * x + random.Random(f"{x} {k}").gauss(0, 0.1) for k in range(4)]
            study.add({"x": x}, mc.Folds([{"loss": l, "ms": 2.0 if x < 10 else 0.5} for l in loss]))
        assert study.result.config["x"] in (10, 12)


def test_known_variances_of_a_constrained_output_count_in_the_probability_of_feasibility() -> None:
    def seen(x: float, variance: float | None) -> Observation:
        told = {LOSS: Output("present", x), "g": Output("present", x - 0.5, variance=variance)}
        return Observation({"x": x, "kind": "a"}, "done", x, {"g": x - 0.5}, Outcome(told))

    for variance in (None, 4.0):
        history = [seen(x, variance) for x in np.linspace(0.0, 1.0, 12)]
        found = probabilities(Domain.of(numbers()), history, [Limit("g", high=0.0)], [o.config for o in history])
        assert (found[0] > 0.99 and found[-1] < 0.01) == (variance is None)


# -- pruned trials -----------------------------------------------------------------------------------------------------

VARIANCE = 4.0


def numbers() -> mc.Space:
    space = mc.Space("line")
    space.real("x", 0.0, 1.0)
    space.categorical("kind", ["a", "b"])
    return space


def observation(x: float, loss: float, ms: float = 1.0, variance: float | None = None, kind: str = "a") -> Observation:
    told = {LOSS: Output("present", loss, variance=variance), "ms": Output("present", ms, variance=variance)}
    return Observation({"x": x, "kind": kind}, "done", loss, {"ms": ms}, Outcome(told))


def stopped_one(stopped: float | None = VARIANCE) -> list[Observation]:
    """Eight observations, of which the one with the lowest loss was pruned."""
    whole = [observation(x, (x - 0.5) ** 2 + 0.5) for x in np.linspace(0.0, 1.0, 7)]
    return [*whole[:4], observation(0.25, 0.1, 2.0, stopped, "b"), *whole[4:]]


def test_data_have_variances_and_rank_complete_trials() -> None:
    data = Data.of(Domain.of(numbers()), stopped_one(), [Limit("ms", high=3.0)])
    assert data.variances.tolist() == [0, 0, 0, 0, VARIANCE, 0, 0, 0]
    assert 4 not in data.order.tolist()
    assert len(data.order) == 7
    assert data.losses[data.order[0]] == 0.5
    assert np.asarray(data.noise()).tolist() == data.variances.tolist()
    assert np.asarray(data.noise(np.array([3, 4]))).tolist() == [0.0, VARIANCE]
    scale = data.scales["ms"]
    step = 1e-6
    slope = float((scale(np.array([2.0 + step])) - scale(np.array([2.0 - step])))[0]) / (2 * step)
    assert np.asarray(data.noise(constrained="ms"))[4] == pytest.approx(VARIANCE * slope**2)
    on_loss = Data.of(Domain.of(numbers()), stopped_one(), [Limit(LOSS, high=0.6)])
    slope = float(on_loss.scales[LOSS].slope(np.array([0.1]))[0])
    assert np.asarray(on_loss.noise(constrained=LOSS))[4] == pytest.approx(VARIANCE * slope**2)
    assert np.asarray(on_loss.noise()).tolist() == data.variances.tolist()
    assert Data.of(Domain.of(numbers()), stopped_one(None), ()).noise() == 0.0


def means(optimizer: Any, told: list[Observation]) -> np.ndarray:
    """Posterior means of the loss at the observations, relative to the range of the losses."""
    data = Data.of(optimizer.domain, told)
    rng = np.random.default_rng(0)
    if isinstance(optimizer, Hybrid):
        posterior = optimizer._fitted(data, {}, rng)[0].loss
    elif isinstance(optimizer, MiVaBO):
        linear, _ = optimizer.surrogate.fit(data.points, data.merits, {}, rng, data.noise())
        assert isinstance(linear, LinearPosterior)
        return np.asarray(linear.predict(data.points)[0] * linear.scale / np.ptp(data.losses))
    else:
        posterior = Models(optimizer.surrogate, data, optimizer.domain.deadline).fitted(LOSS)
    return np.asarray(posterior.predict(data.points)[0] / np.ptp(posterior.scaled(data.losses)))


@pytest.mark.parametrize("make", [Hybrid, MiVaBO, Admmbo])
def test_models_trust_pruned_trials_less(make: Any) -> None:
    optimizer = make(Domain.of(numbers()))
    noisy, whole = means(optimizer, stopped_one()), means(optimizer, stopped_one(None))
    assert whole[4] < noisy[4] - 0.2


@pytest.mark.parametrize("name", ["hybrid", "jopt", "admmbo", "admm", "mivabo", "cmes", "random"])
def test_pruned_trials_are_not_recommended(name: str) -> None:
    optimizer = make_optimizer(name, numbers())
    limits = [Limit("ms", high=3.0)] if optimizer.takes_limits else []
    found = optimizer.recommend(stopped_one(), limits)
    assert found is not None
    assert not found.outcome.pruned


def test_failures_count_as_the_worst_loss() -> None:
    assert imputed(np.array([1.0, np.nan, 3.0])).tolist() == [1.0, 3.0, 3.0]
    assert imputed(np.array([np.nan])).tolist() == [0.0]


def test_observations_have_a_known_status() -> None:
    with pytest.raises(ValueError, match="'done', 'failed' or 'pending', and not 'running'"):
        Observation({}, "running")
