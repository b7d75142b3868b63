"""What each part of the default optimizer is for: a proposal without it is another, or a worse one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mipcash.acquisition.acquisition import Acquisition
from mipcash.acquisition.analytic import AnalyticAcquisition, ConfidenceBound, MaxValueEntropy
from mipcash.acquisition.catalogue import mes
from mipcash.acquisition.inputs import AcquisitionInputs, Drawn
from mipcash.acquisition.mixed_search import LocalSearchSettings, MixedSearch
from mipcash.optimizers.hybrid import EXCHANGES, LEAN, Hybrid, HybridSettings
from mipcash.optimizers.model_based import Step
from mipcash.optimizers.optimizer import Observation, Request
from mipcash.optimizers.registry import make_optimizer
from mipcash.program.points import Point, Points
from mipcash.space.domain import Domain
from mipcash.surrogates.structured import surrogate
from tests.optimizers.test_hybrid import history_of
from tests.spaces import ALL
from tests.surrogates.test_formulas import deep


def made(space: Any, **settings: Any) -> Hybrid:
    optimizer = make_optimizer("hybrid", space, settings=HybridSettings(**settings))
    assert isinstance(optimizer, Hybrid)
    return optimizer


@pytest.mark.parametrize("name", ["discrete", "conv_net", "bound_numbers"])
def test_the_pool_holds_the_minimisers_of_the_mean_and_of_every_sample(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = ALL[name]()
    optimizer = made(space, samples=3)
    minima: list[Point] = []
    pools: list[Points] = []
    minimum, minimise = Hybrid._minimum, MixedSearch.minimise

    def remembered(self: Hybrid, *given: Any) -> Point | None:
        found = minimum(self, *given)
        assert found is not None
        minima.append(found)
        return found

    def watched(self: MixedSearch, acquisition: Acquisition, starts: Points, *given: Any) -> Point | None:
        pools.append(starts)
        return minimise(self, acquisition, starts, *given)

    monkeypatch.setattr(Hybrid, "_minimum", remembered)
    monkeypatch.setattr(MixedSearch, "minimise", watched)
    history = history_of(space, 12)
    optimizer.ask(Request(history, np.random.default_rng(0), {}))
    assert len(minima) == 4
    (pool,) = pools
    best = optimizer.data(history).best(optimizer.settings.best)
    for point in [*minima, *best]:
        assert any(np.array_equal(point.levels, p.levels) and np.array_equal(point.units, p.units) for p in pool)


@pytest.mark.parametrize("name", ["discrete", "conv_net", "bound_numbers"])
def test_a_minimiser_of_a_surface_is_below_all_observations(name: str) -> None:
    """As it is a minimiser over all legal levels: at the numbers of the best observation none has less."""
    space = ALL[name]()
    optimizer = made(space)
    data = optimizer.data(history_of(space, 14))
    posterior = optimizer._fitted(data, {}, np.random.default_rng(0))[0].loss
    units = np.repeat(data.best(1).units, len(data.points), axis=0)
    beside = Points(data.points.levels, units)
    beside = beside[np.array([optimizer.domain.is_legal(point) for point in beside])]
    assert len(beside) > 1
    rng = np.random.default_rng(0)
    for surface in (posterior.mean(), posterior.sample(rng), posterior.sample(rng)):
        found = optimizer._minimum(surface, data.best(5), [], rng)
        assert found is not None
        value = surface.value(found.one_hot(optimizer.program), found.units)
        assert value <= surface.values(beside).min() + 1e-9


class ByMean(Hybrid):
    """Minimises the posterior mean."""

    def acquisition_of(self, given: AcquisitionInputs, step: Step) -> Acquisition:
        return AnalyticAcquisition(given.loss, ConfidenceBound(0.0))


def test_the_minimiser_of_the_program_is_proposed_where_the_search_is_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the mean as the acquisition nothing beats the program's minimiser but for the residual."""
    space = ALL["discrete"]()
    optimizer = ByMean(Domain.of(space), HybridSettings())
    history = history_of(space, 12)
    worst: list[np.ndarray] = []

    def bad(self: MixedSearch, acquisition: Acquisition, starts: Points, *given: Any) -> Point:
        """The worst legal configuration that was not seen."""
        seen = {optimizer.program.encode(o.config).tobytes() for o in history}
        levels = [optimizer.program.encode(c) for c in space.sample(200, 5)]
        new = np.array([s for s in levels if s.tobytes() not in seen])
        values = acquisition.values(Points(new, np.zeros((len(new), 0))))
        worst.append(new[int(np.argmax(values))])
        return Point(worst[-1], np.zeros(0))

    monkeypatch.setattr(MixedSearch, "minimise", bad)
    proposal = optimizer.ask(Request(history, np.random.default_rng(0), {}))
    proposed = optimizer.program.encode(proposal.config)
    assert not np.array_equal(proposed, worst[0])
    posterior = optimizer._fitted(optimizer.data(history), {}, np.random.default_rng(0))[0].loss
    mean = posterior.mean()
    assert proposal.solution is not None
    assert proposal.solution.status == "optimal"
    assert proposal.solution.value == pytest.approx(
        mean.loss(mean.value(optimizer.program.one_hot(proposed), np.zeros(0)))
    )


def test_fits_start_from_the_hyperparameters_of_the_last_proposal(monkeypatch: pytest.MonkeyPatch) -> None:
    space = ALL["conv_net"]()
    optimizer = made(space)
    starts: list[np.ndarray] = []
    fit = surrogate.fit

    def watched(evidence: Any, given: Sequence[np.ndarray], *rest: Any) -> Any:
        starts.append(np.array(given[0]))
        return fit(evidence, given, *rest)

    monkeypatch.setattr(surrogate, "fit", watched)
    history, state = history_of(space, 20), dict[str, Any]()
    median = optimizer.surrogate.structure.prior[0]
    for t in range(12, 20):
        del starts[:]
        before = state.get("theta")
        state = dict(optimizer.ask(Request(history[:t], np.random.default_rng(t), state)).state)
        assert np.array_equal(starts[0], median if before is None else before)
    assert not np.allclose(state["theta"], median)


@pytest.mark.parametrize(("name", "sought"), [("discrete", 2), ("conv_net", 0), ("bound_numbers", 0)])
def test_minimisers_are_sought_unasked_in_purely_discrete_spaces_alone(
    name: str, sought: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere twice as many walks take their place."""
    minima, limits = list[Point | None](), list[LocalSearchSettings]()
    minimum, search_of = Hybrid._minimum, Hybrid._search_of

    def remembered(self: Hybrid, *given: Any) -> Point | None:
        minima.append(minimum(self, *given))
        return minima[-1]

    def watched(self: Hybrid, excluded: Any, observed: Points, given: LocalSearchSettings) -> MixedSearch:
        limits.append(given)
        return search_of(self, excluded, observed, given)

    monkeypatch.setattr(Hybrid, "_minimum", remembered)
    monkeypatch.setattr(Hybrid, "_search_of", watched)
    space = ALL[name]()
    made(space).ask(Request(history_of(space, 12), np.random.default_rng(0), {}))
    assert len(minima) == sought
    tied = name == "bound_numbers"
    assert limits[-1] == (
        LocalSearchSettings() if sought else replace(LEAN, exchanges=EXCHANGES if tied else 0, forbidden=tied)
    )


def test_a_number_under_three_conditions_is_proposed_with_its_own_certificate() -> None:
    """What a search left in a number that is off does not count: the certificate is that of the configuration."""
    space = deep()
    optimizer = made(space)
    history = [
        Observation(c, "done", c["d"] + (3.0 * (c["r"] - 0.8) ** 2 - 2.0 if "r" in c else c["s"]))
        for c in space.sample(25, 0)
    ]
    posterior = optimizer._fitted(optimizer.data(history), {}, np.random.default_rng(0))[0].loss
    mean = posterior.mean()
    for seed in range(4):
        proposal = optimizer.ask(Request(history, np.random.default_rng(seed), {}))
        (point,) = optimizer.domain.encode([proposal.config])
        predicted = mean.loss(mean.value(point.one_hot(optimizer.program), point.units))
        assert proposal.solution is not None
        assert proposal.solution.value == pytest.approx(predicted, abs=1e-9)


def test_sampled_minima_of_the_entropy_search_lie_below_what_is_known() -> None:
    space = ALL["conv_net"]()
    optimizer = made(space, acquisition="mes", samples=4)
    data = optimizer.data(history_of(space, 25))
    posterior, rng, drawn = optimizer._fitted(data, {}, np.random.default_rng(0))[0].loss, np.random.default_rng(0), []
    for _ in range(4):
        sample = posterior.sample(rng)
        point = optimizer._minimum(sample, data.best(5), [], rng)
        assert point is not None
        drawn.append(Drawn(sample, point, optimizer._value(sample, point)))
    acquisition = mes(AcquisitionInputs(posterior, posterior.fitted.min(), drawn=drawn))
    assert isinstance(acquisition, AnalyticAcquisition)
    assert isinstance(acquisition.form, MaxValueEntropy)
    minima = acquisition.form.minima
    assert len(minima) == 4
    assert minima.max() < posterior.fitted.min()
    assert len(np.unique(minima)) > 1
