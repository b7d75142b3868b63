"""What was stopped before its last fit: models learn from it as a noisier observation, and none takes it for the incumbent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.methods.admm.matern import MaternProcess
from mipcash.methods.admmbo.admmbo import Admmbo
from mipcash.methods.admmbo.models import Models
from mipcash.methods.mivabo.mivabo import MiVaBO
from mipcash.optimizers.data import Data
from mipcash.optimizers.hybrid import Hybrid
from mipcash.optimizers.optimizer import Limit, Observation
from mipcash.optimizers.outcome import LOSS, Outcome, Output
from mipcash.optimizers.registry import make_optimizer
from mipcash.space.domain import Domain

VARIANCE = 4.0


def line() -> mc.Space:
    space = mc.Space("line")
    space.real("x", 0.0, 1.0)
    space.categorical("kind", ["a", "b"])
    return space


def observation(x: float, loss: float, ms: float = 1.0, variance: float | None = None, kind: str = "a") -> Observation:
    told = {LOSS: Output("present", loss, variance=variance), "ms": Output("present", ms, variance=variance)}
    return Observation({"x": x, "kind": kind}, "done", loss, {"ms": ms}, Outcome(told))


def history(stopped: float | None = VARIANCE) -> list[Observation]:
    """Eight observations, the lowest of which was stopped."""
    whole = [observation(x, (x - 0.5) ** 2 + 0.5) for x in np.linspace(0.0, 1.0, 7)]
    return [*whole[:4], observation(0.25, 0.1, 2.0, stopped, "b"), *whole[4:]]


def test_data_tell_variances_and_rank_what_is_whole() -> None:
    data = Data.of(Domain.of(line()), history(), [Limit("ms", high=3.0)])
    assert data.variances.tolist() == [0, 0, 0, 0, VARIANCE, 0, 0, 0]
    assert 4 not in data.order.tolist()
    assert len(data.order) == 7
    assert data.losses[data.order[0]] == 0.5
    assert np.asarray(data.noise()).tolist() == data.variances.tolist()
    assert np.asarray(data.noise(np.array([3, 4]))).tolist() == [0.0, VARIANCE]
    scale = data.scales["ms"]
    step = 1e-6
    slope = float((scale(np.array([2.0 + step])) - scale(np.array([2.0 - step])))[0]) / (2 * step)
    assert np.asarray(data.noise(output="ms"))[4] == pytest.approx(VARIANCE * slope**2)
    assert Data.of(Domain.of(line()), history(None), ()).noise() == 0.0


def means(optimizer: Any, told: list[Observation]) -> np.ndarray:
    """Of the loss at the observations, in shares of what it ranges over."""
    data = Data.of(optimizer.domain, told)
    rng = np.random.default_rng(0)
    if isinstance(optimizer, Hybrid):
        posterior = optimizer._fitted(data, {}, rng)[0].loss
    elif isinstance(optimizer, MiVaBO):
        posterior = optimizer._posterior(data, rng, {})[0]  # type: ignore[assignment]
    else:
        posterior = Models(optimizer.surrogate, data, optimizer.domain.deadline).fitted(LOSS)
    return np.asarray(posterior.predict(data.points)[0] / np.ptp(posterior.scaled(data.losses)))


@pytest.mark.parametrize("make", [Hybrid, MiVaBO, Admmbo])
def test_a_model_believes_less_of_what_was_stopped(make: Any) -> None:
    optimizer = make(Domain.of(line()))
    noisy, whole = means(optimizer, history()), means(optimizer, history(None))
    assert whole[4] < noisy[4] - 0.2


@pytest.mark.parametrize("name", ["hybrid", "jopt", "admmbo", "admm", "mivabo", "cmes", "random"])
def test_what_was_stopped_is_not_recommended(name: str) -> None:
    optimizer = make_optimizer(name, line())
    limits = [Limit("ms", high=3.0)] if optimizer.takes_limits else []
    found = optimizer.recommend(history(), limits)
    assert found is not None
    assert not found.outcome.stopped


def test_the_incumbent_of_expected_improvement_is_a_whole_evaluation() -> None:
    optimizer = Hybrid(Domain.of(line()))
    told = history(0.0)  # the estimate is sure, and the lowest
    fitted = optimizer._fitted(Data.of(optimizer.domain, told), {}, np.random.default_rng(0))[0]
    whole = [k for k, o in enumerate(told) if not o.outcome.stopped]
    assert fitted.best == min(np.asarray(fitted.loss.fitted)[whole])
    assert fitted.best > min(fitted.loss.fitted)


@pytest.mark.parametrize("name", ["jopt", "admm"])
def test_processes_over_vectors_are_told_the_noise(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a run whose stopped evaluations the models see: the noise is theirs alone, on the scale of what is learned."""
    seen: list[tuple[int, int]] = []
    fit = MaternProcess.fit

    def watched(x: Any, values: Any, prior: Any = None, **given: Any) -> MaternProcess:
        noise = np.broadcast_to(given.get("noise", 0.0), len(values))
        seen.append((len(values), int((noise > 0.0).sum())))
        return fit(x, values, prior, **given)

    monkeypatch.setattr(MaternProcess, "fit", watched)

    def objective(config: dict[str, Any]) -> Any:
        for k in range(4):
            yield (config["x"] - 0.3) ** 2 + 0.05 * np.sin(50.0 * config["x"] + 9.0 * k * config["x"])

    space = mc.Space("part")
    space.real("x", 0.0, 1.0)
    found = mc.minimize(objective, space, 16, optimizer=name, pruning=mc.Racing(c=0.5), progress=False)
    assert found.n_pruned > 3
    assert max(noisy for _, noisy in seen) > 2
    assert all(noisy <= found.n_pruned and noisy < count for count, noisy in seen)
