"""Pending trials: fantasies agree with the posterior, and new proposals differ from the pending configurations."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.acquisition.analytic import AnalyticAcquisition, LogEI
from mipcash.acquisition.catalogue import AcquisitionInputs
from mipcash.acquisition.constrained import Limited
from mipcash.methods.admm.jopt import NEAR
from mipcash.optimizers.hybrid import Hybrid, HybridSettings
from mipcash.optimizers.optimizer import Limit, Observation, Request
from mipcash.optimizers.outcome import LOSS, Outcome
from mipcash.optimizers.pending import EXACT, FANTASIES, FantasisedEI, believed, beside_pending
from mipcash.space.domain import Domain
from tests.optimizers.test_hybrid import history_of
from tests.spaces import ALL


def fitted(name: str, n: int = 14) -> tuple[Hybrid, Any, Any]:
    """Return the optimizer, its posterior of n observations, and six further points."""
    space = ALL[name]()
    optimizer = Hybrid(Domain.of(space))
    posterior = optimizer._fitted(optimizer.data(history_of(space, n)), {}, np.random.default_rng(0))[0].loss
    return optimizer, posterior, optimizer.domain.encode(space.sample(6, 99))


def test_several_fantasies_at_once_agree_with_single_ones() -> None:
    """The acquisition function is the mean of the expected improvements under each fantasy."""
    optimizer, posterior, points = fitted("bound_numbers")
    values, best = np.random.default_rng(1).normal(size=(3, 2)), np.array([-0.5, -1.0, 0.0])
    acquisition = FantasisedEI(posterior.given(points[:2], np.zeros(2), 0.1), values, best)
    improvements = []
    for k in range(3):
        given = posterior.given(points[:2], values[k], 0.1)
        improvements.append(np.exp(-AnalyticAcquisition(given, LogEI(best[k])).values(points)))
    found = acquisition.values(points)
    np.testing.assert_allclose(found, -np.log(np.mean(improvements, axis=0)), rtol=1e-7)
    for k in range(len(points)):
        here = points[k]
        value, _ = acquisition.section(here.one_hot(optimizer.program))(here.units)
        assert value == pytest.approx(found[k], abs=1e-9)


def test_pending_trials_are_known_up_to_a_thousandth_of_the_noise() -> None:
    """The same configuration may be pending twice."""
    _, posterior, points = fitted("bound_numbers")
    noise = EXACT * posterior.fitted_noise
    after = believed(posterior, points, noise)
    np.testing.assert_allclose(after.predict(points)[0], posterior.predict(points)[0], atol=1e-6)
    left = after.predict(points)[1] ** 2
    assert (left <= (1.0 + EXACT) * posterior.fitted_noise * 1.1 + 1e-8).all()
    twice = points[[0, 0, 1, 1]]
    assert np.isfinite(believed(posterior, twice, noise).predict(points)).all()
    assert np.isfinite(posterior.draws(twice, 4, np.random.default_rng(0))).all()


def test_only_missing_outputs_of_pending_trials_are_imputed() -> None:
    """A pending trial that reported its loss is data for the loss. Only its constrained output is imputed."""
    space = ALL["conv_net"]()
    optimizer = Hybrid(Domain.of(space))
    configs = space.sample(14, 0)
    history = [Observation(c, "done", float(k % 5), {"g": float(k % 3)}) for k, c in enumerate(configs[:11])]
    history += [
        Observation(configs[11], "pending", 2.0, outcome=Outcome.of(2.0)),
        Observation(configs[12], "pending", outcome=Outcome.of(None, {"g": 1.0})),
        Observation(configs[13], "pending"),
    ]
    request = Request(history, np.random.default_rng(0))
    assert len(optimizer.data(history).losses) == 12
    units = optimizer.domain.encode(configs).units
    np.testing.assert_array_equal(optimizer.awaited(request, LOSS).units, units[[12, 13]])
    np.testing.assert_array_equal(optimizer.awaited(request, "g").units, units[[11, 13]])
    loss = optimizer._fitted(optimizer.data(history), {}, np.random.default_rng(0))[0].loss
    given = beside_pending(
        AcquisitionInputs(loss, -1.0, {"g": Limited(loss, 0.0, 1.0)}),
        loss,  # type: ignore[arg-type]
        lambda output: optimizer.awaited(request, output),
        np.random.default_rng(0),
    )
    assert len(given.loss.fitted) == len(given.limited["g"].posterior.fitted) == 12 + 2
    assert isinstance(given.improvement, FantasisedEI)
    np.testing.assert_array_equal(given.improvement.best, np.full(FANTASIES, -1.0))  # not known to be feasible


def test_the_incumbent_of_fantasies_is_evaluated_while_a_constrained_output_is_not_known() -> None:
    space = ALL["conv_net"]()
    optimizer, configs = Hybrid(Domain.of(space)), space.sample(11, 0)
    history = [
        *(Observation(c, "done", float(k)) for k, c in enumerate(configs[:10])),
        Observation(configs[10], "pending"),
    ]
    limits = (Limit("g", high=1.0),)
    request = Request(history, np.random.default_rng(0), limits=limits)
    awaited = partial(optimizer.awaited, request)
    given, _ = optimizer._fitted(optimizer.data(history, limits), {}, request.rng, awaited)
    assert isinstance(given.improvement, FantasisedEI)
    assert (given.improvement.best <= given.loss.fitted[:10].min() + 1e-9).all()


def two_reals() -> mc.Space:
    space = mc.Space("two reals and a category")
    space.real("x", 0.0, 1.0)
    space.real("y", 0.0, 1.0)
    space.categorical("c", ["a", "b", "c"])
    return space


def bowl(config: dict[str, Any]) -> float:
    return (config["x"] - 0.3) ** 2 + (config["y"] - 0.7) ** 2 + {"a": 0.0, "b": 0.05, "c": 0.4}[config["c"]]


@pytest.mark.parametrize(
    ("optimizer", "acquisition", "least"),
    [("hybrid", "log-ei", 0.01), ("hybrid", "thompson", 1e-4), ("jopt", "", NEAR)],
)
def test_pending_proposals_are_different_points(optimizer: str, acquisition: str, least: float) -> None:
    """Without fantasies, six proposals lay within 1e-5 of each other. A batch gives the same points as single asks."""
    settings = HybridSettings(acquisition=acquisition) if acquisition else None
    study, other = (mc.Study(two_reals(), mc.Method(optimizer, settings=settings), seed=0) for _ in range(2))
    for trial, same in zip(study.ask(10), other.ask(10), strict=True):
        study.tell(trial, bowl(trial.config))
        other.tell(same, bowl(same.config))
    batch = [study.ask().config for _ in range(5)]
    for a, b in itertools.combinations(batch, 2):
        assert a["c"] != b["c"] or max(abs(a["x"] - b["x"]), abs(a["y"] - b["y"])) >= least
    assert acquisition != "log-ei" or len({c["c"] for c in batch}) > 1  # explores beyond the best category
    assert batch[:3] == [t.config for t in other.ask(3)]
