"""What is pending counts: fantasies are the posterior's own, and proposals beside pending trials go elsewhere."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.acquisition.analytic import AnalyticAcquisition, LogEI
from mipcash.acquisition.catalogue import FantasisedEI
from mipcash.acquisition.inputs import AcquisitionInputs, Limited
from mipcash.methods.admm.jopt import NEAR
from mipcash.optimizers.hybrid import Hybrid
from mipcash.optimizers.optimizer import Observation, Request
from mipcash.optimizers.outcome import LOSS, Outcome
from mipcash.optimizers.pending import EXACT, FANTASIES, StructuredOutcomes, believed, beside_pending, drawn_jointly
from mipcash.space.domain import Domain
from tests.optimizers.test_hybrid import history_of
from tests.spaces import ALL

SPACES = ["conv_net", "bound_numbers", "discrete"]


def fitted(name: str, n: int = 14) -> tuple[Hybrid, Any, Any]:
    """The optimizer, its posterior of n observations, and six further points."""
    space = ALL[name]()
    optimizer = Hybrid(Domain.of(space))
    posterior = optimizer._fitted(optimizer.data(history_of(space, n)), {}, np.random.default_rng(0))[0].loss
    return optimizer, posterior, optimizer.domain.encode(space.sample(6, 99))


@pytest.mark.parametrize("name", SPACES)
def test_many_outcomes_at_once_are_each_of_them(name: str) -> None:
    optimizer, posterior, points = fitted(name)
    values = np.random.default_rng(1).normal(size=(3, 2))
    outcomes = StructuredOutcomes.of(posterior, points[:2], values, 0.1)
    means, deviation = outcomes.predict(points)
    for k in range(3):
        mean, same = posterior.given(points[:2], values[k], 0.1).predict(points)
        np.testing.assert_allclose(means[k], mean, atol=1e-9)
        np.testing.assert_allclose(deviation, same, atol=1e-9)
    here = points[3]
    z = here.one_hot(optimizer.program)
    alone = posterior.given(points[:2], values[1], 0.1).section(z)(here.units)
    together = outcomes.section(z)(here.units)
    np.testing.assert_allclose(together[0][1], alone[0], atol=1e-9)
    np.testing.assert_allclose(together[1], alone[1], atol=1e-9)
    np.testing.assert_allclose(together[2][1], alone[2], atol=1e-9)
    np.testing.assert_allclose(together[3], alone[3], atol=1e-9)


def test_the_acquisition_is_the_mean_of_expected_improvements() -> None:
    optimizer, posterior, points = fitted("conv_net")
    values, best = np.random.default_rng(1).normal(size=(4, 2)), np.array([-0.5, -1.0, 0.0, -0.2])
    acquisition = FantasisedEI(StructuredOutcomes.of(posterior, points[:2], values), best)
    each = [
        np.exp(-AnalyticAcquisition(posterior.given(points[:2], v), LogEI(b)).values(points))
        for v, b in zip(values, best, strict=True)
    ]
    np.testing.assert_allclose(acquisition.values(points), -np.log(np.mean(each, axis=0)), rtol=1e-7)
    here = points[4]
    section = acquisition.section(here.one_hot(optimizer.program))
    value, slope = section(here.units)
    assert value == pytest.approx(acquisition.values(points)[4])
    step = 1e-5
    for d in range(len(here.units)):
        ahead, behind = here.units.copy(), here.units.copy()
        ahead[d] += step
        behind[d] -= step
        assert slope[d] == pytest.approx((section(ahead)[0] - section(behind)[0]) / (2 * step), rel=1e-3, abs=1e-5)


def test_draws_of_what_is_pending_are_joint() -> None:
    """Two points side by side come to nearly the same; the moments are those of the posterior."""
    _, posterior, points = fitted("conv_net")
    beside = points[[0, 1]]
    beside.units[1], beside.levels[1] = beside.units[0], beside.levels[0]
    beside.units[1, 0] += 1e-3
    drawn = drawn_jointly(posterior, beside, 4000, np.random.default_rng(0))
    mean, deviation = posterior.predict(beside)
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=5 * deviation.max() / 60)
    np.testing.assert_allclose(drawn.std(axis=0), deviation, rtol=0.1)
    assert np.corrcoef(drawn.T)[0, 1] > 0.9


@pytest.mark.parametrize("name", SPACES)
def test_what_is_pending_is_known_but_for_a_thousandth_of_the_noise(name: str) -> None:
    _, posterior, points = fitted(name)
    after = believed(posterior, points, EXACT * posterior.fitted_noise)
    np.testing.assert_allclose(after.predict(points)[0], posterior.predict(points)[0], atol=1e-6)
    left = after.predict(points)[1] ** 2
    assert (left <= (1.0 + EXACT) * posterior.fitted_noise * 1.1 + 1e-8).all()
    twice = believed(
        posterior, points[[0, 0, 1, 1]], EXACT * posterior.fitted_noise
    )  # the same configuration may be pending twice
    assert np.isfinite(twice.predict(points)).all()
    assert np.isfinite(drawn_jointly(posterior, points[[0, 0, 1, 1]], 4, np.random.default_rng(0))).all()


def test_only_what_an_output_waits_for_is_guessed() -> None:
    """A pending trial that told its loss is data for the loss, and guessed for the limited output alone."""
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
    plain = AcquisitionInputs(loss, -1.0, {"g": Limited(loss, 0.0, 1.0)})
    given = beside_pending(
        plain,
        loss,  # type: ignore[arg-type]
        lambda output: optimizer.awaited(request, output),
        np.random.default_rng(0),
    )
    assert len(given.loss.fitted) == 12 + 2
    assert len(given.limited["g"].posterior.fitted) == 12 + 2
    assert given.fantasies is not None
    np.testing.assert_array_equal(given.fantasies.best, np.full(FANTASIES, -1.0))  # not known to keep the limit
    free = beside_pending(
        AcquisitionInputs(loss, -1.0),
        loss,  # type: ignore[arg-type]
        lambda output: optimizer.awaited(request, output),
        np.random.default_rng(0),
    )
    assert free.fantasies is not None
    assert (free.fantasies.best <= -1.0).all()


def two_reals() -> mc.Space:
    space = mc.Space("two reals and a category")
    space.real("x", 0.0, 1.0)
    space.real("y", 0.0, 1.0)
    space.categorical("c", ["a", "b", "c"])
    return space


def bowl(config: dict[str, Any]) -> float:
    return (config["x"] - 0.3) ** 2 + (config["y"] - 0.7) ** 2 + {"a": 0.0, "b": 0.05, "c": 0.4}[config["c"]]


def told(n: int, seed: int = 0, optimizer: str = "hybrid") -> mc.Study:
    study = mc.Study(two_reals(), optimizer, seed=seed)
    for _ in range(n):
        trial = study.ask()
        study.tell(trial, bowl(trial.config))
    return study


@pytest.mark.parametrize(("n", "least"), [(12, 0.01), (25, 0.001)])
def test_untold_asks_are_different_points(n: int, least: float) -> None:
    """Before the model knew what is pending, six of them lay within 1e-5 of each other."""
    for seed in (0, 1):
        study = told(n, seed)
        batch = [study.ask().config for _ in range(6)]
        for a, b in itertools.combinations(batch, 2):
            assert a["c"] != b["c"] or max(abs(a["x"] - b["x"]), abs(a["y"] - b["y"])) > least
        assert len({c["c"] for c in batch}) > 1  # the best category is not all that is looked at


def difference(a: dict[str, Any], b: dict[str, Any]) -> float:
    return 1.0 if a["c"] != b["c"] else float(max(abs(a["x"] - b["x"]), abs(a["y"] - b["y"])))


@pytest.mark.parametrize("n", [12, 25])
def test_untold_asks_of_the_joint_gaussian_process_are_different_points(n: int) -> None:
    """Where its means alone were believed, with all of the noise, they lay within 1e-5 of each other."""
    for seed in (0, 1):
        study = told(n, seed, "jopt")
        batch = [study.ask().config for _ in range(6)]
        assert min(difference(a, b) for a, b in itertools.combinations(batch, 2)) >= NEAR


def test_the_joint_gaussian_process_proposes_beside_what_is_pending_where_nothing_else_is_left() -> None:
    space = mc.Space("narrow")
    space.integer("k", 0, 199)
    study = mc.Study(space, "jopt", seed=0)
    for _ in range(12):
        trial = study.ask()
        study.tell(trial, float(trial.config["k"]))
    batch = [study.ask().config["k"] for _ in range(40)]
    assert len(set(batch)) == 40


def test_a_batch_is_what_single_asks_give() -> None:
    study = told(9)
    assert [study.ask().config for _ in range(4)] == [t.config for t in told(9).ask(4)]


def test_each_of_a_batch_promises_more_than_another_evaluation_of_those_before_it() -> None:
    study = told(12)
    history = [Observation(t.config, "done", t.loss) for t in study.trials]
    batch = [t.config for t in study.ask(5)]
    optimizer = Hybrid(Domain.of(two_reals()))
    for k in range(1, 5):
        request = Request([*history, *(Observation(c, "pending") for c in batch[:k])], np.random.default_rng(0))
        data = optimizer.data(history)
        found, _ = optimizer._fitted(
            data, {}, request.rng, lambda output, request=request: optimizer.awaited(request, output)
        )
        assert found.fantasies is not None
        points = optimizer.domain.encode(batch[: k + 1])
        promise = FantasisedEI(found.fantasies.outcomes, found.fantasies.best).values(points)
        assert promise[k] < promise[:k].min() - 0.25


@pytest.mark.parametrize("acquisition", ["mes", "thompson"])
def test_every_acquisition_takes_what_is_pending(acquisition: str) -> None:
    study = mc.Study(
        two_reals(), seed=0, optimizer=mc.Method(settings=mc.settings.HybridSettings(acquisition=acquisition))
    )
    for trial in study.ask(8):
        study.tell(trial, bowl(trial.config))
    batch = [t.config for t in study.ask(4)]
    least = min(
        9.0 if a["c"] != b["c"] else max(abs(a["x"] - b["x"]), abs(a["y"] - b["y"]))
        for a, b in itertools.combinations(batch, 2)
    )
    assert least > 1e-4
