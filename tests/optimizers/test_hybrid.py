"""The hybrid optimizer: its certificate holds, every acquisition proposes legal new points, settings are checked."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.acquisition.alternating import AlternatingSettings
from mipcash.acquisition.catalogue import ACQUISITIONS
from mipcash.acquisition.mixed_search import LocalSearchSettings
from mipcash.backends.task import SolverSettings
from mipcash.errors import SpaceError
from mipcash.methods.mivabo.blocks import FeatureSizes
from mipcash.methods.mivabo.decomposition.search import DecompositionSettings
from mipcash.optimizers.hybrid import Hybrid, HybridSettings
from mipcash.optimizers.optimizer import Observation, Request
from mipcash.optimizers.registry import make_optimizer
from mipcash.program.points import Points
from mipcash.space.compiled import compiled
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Apart
from tests.spaces import ALL, loss


def history_of(space: mc.Space, n: int, seed: int = 0) -> list[Observation]:
    return [Observation(c, "done", loss(c)) for c in space.sample(n, seed)]


@pytest.mark.parametrize("seed", range(4))
def test_no_new_legal_configuration_has_a_lower_structured_prediction_than_the_bound(seed: int) -> None:
    space = ALL["discrete"]()
    optimizer = make_optimizer("hybrid", space)
    assert isinstance(optimizer, Hybrid)
    history = history_of(space, 12, seed)
    proposal = optimizer.ask(Request(history, np.random.default_rng(seed), {}))
    posterior = optimizer._fitted(optimizer.data(history), {}, np.random.default_rng(0))[0].loss
    mean, program = posterior.mean(), compiled(space).program
    legality = Domain.of(space).free_legality
    every = np.array(list(product(*(range(int(s)) for s in program.sizes))))
    legal = every[(legality.effective(every) == every).all(axis=1) & legality.check(every)]
    seen = {program.encode(o.config).tobytes() for o in history}
    new = np.array([s for s in legal if s.tobytes() not in seen])
    predicted = [mean.loss(mean.value(z, np.zeros(0))) for z in program.one_hot(new)]
    assert proposal.solution is not None
    assert proposal.solution.bound <= min(predicted) + 1e-6
    assert min(predicted) <= proposal.solution.value + 1e-6
    assert program.encode(proposal.config).tobytes() not in seen


@pytest.mark.parametrize("acquisition", ACQUISITIONS)
@pytest.mark.parametrize("name", ["conv_net", "bound_numbers", "continuous"])
def test_every_acquisition_proposes_legal_new_points(acquisition: str, name: str) -> None:
    space = ALL[name]()
    optimizer = make_optimizer("hybrid", space, settings=HybridSettings(acquisition=acquisition))
    history, state = history_of(space, 10), {}
    for k in range(3):
        proposal = optimizer.ask(Request(history, np.random.default_rng(k), state))
        state = dict(proposal.state)
        assert space.is_legal(proposal.config)
        assert not optimizer.domain.repeats(proposal.config, [o.config for o in history])
        history.append(Observation(proposal.config, "done", loss(proposal.config)))


def second_difference(optimizer: Hybrid, one: str, other: str) -> Points:
    """Four points that differ in two groups: both moved, either, none; legal or not."""
    labels = [g.label for g in optimizer.program.groups]
    levels = np.zeros((4, len(labels)), dtype=np.int64)
    levels[[0, 1], labels.index(one)] = 1
    levels[[0, 2], labels.index(other)] = 1
    return Points(levels, np.full((4, len(optimizer.scale)), 0.5))


def test_declared_interactions_restrict_the_model_and_unknown_names_are_refused() -> None:
    space = ALL["conv_net"]()
    settings = HybridSettings(interactions=(("layers", "stride"), ("lr", "activation")))
    optimizer = make_optimizer("hybrid", space, settings=settings)
    assert isinstance(optimizer, Hybrid)
    labels = [g.label for g in optimizer.program.groups]
    pairs = optimizer.surrogate.structure.pairs
    assert pairs[labels.index("layers"), labels.index("stride")] == 1.0
    assert pairs[labels.index("layers"), labels.index("filter")] == 0.0
    history = history_of(space, 14)
    posterior = optimizer._fitted(optimizer.data(history), {}, np.random.default_rng(0))[0].loss
    together, alone, beside, neither = posterior.predict(second_difference(optimizer, "layers", "filter"))[0]
    assert together - alone - beside + neither == pytest.approx(0.0, abs=1e-9)
    together, alone, beside, neither = posterior.predict(second_difference(optimizer, "layers", "stride"))[0]
    assert abs(together - alone - beside + neither) > 1e-6
    with pytest.raises(SpaceError, match="layer"):
        make_optimizer("hybrid", space, settings=HybridSettings(interactions=(("layer", "stride"),)))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"acquisition": "pi"}, "'pi'"),
        ({"n_initial": 0}, "n_initial must be at least 1, got 0"),
        ({"samples": -1}, "samples must be at least 0"),
        ({"acquisition": "thompson", "samples": 0}, "samples must be at least 1"),
        ({"acquisition": "mes", "samples": 0}, "samples must be at least 1"),
        ({"best": 0}, "best must be at least 1"),
        ({"restart_every": 0}, "restart_every must be at least 1"),
        ({"inflation": -1.0}, "inflation must be at least 0"),
        ({"cover": -1}, "cover must be at least 0"),
    ],
)
def test_wrong_settings_are_refused(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(SpaceError, match=named):
        HybridSettings(**changes)


def test_limits_of_nothing_are_refused() -> None:
    with pytest.raises(SpaceError, match="LocalSearchSettings: survivors must be at least 1"):
        LocalSearchSettings(survivors=0)
    with pytest.raises(SpaceError, match="FeatureSizes: fourier must be at least 1"):
        FeatureSizes(fourier=0)
    with pytest.raises(SpaceError, match="SolverSettings: time_limit must be at least 0, got -1"):
        SolverSettings(time_limit=-1)
    with pytest.raises(SpaceError, match="SolverSettings: gap must be at least 0, got nan"):
        SolverSettings(gap=float("nan"))
    with pytest.raises(SpaceError, match="SolverSettings: node_limit must be at least 0"):
        SolverSettings(node_limit=-1)
    with pytest.raises(SpaceError, match="AlternatingSettings: rounds must be at least 1"):
        AlternatingSettings(rounds=0)
    with pytest.raises(SpaceError, match="DecompositionSettings: step must lie between 0 and 2, got 2"):
        DecompositionSettings(step=2)


def test_thompson_proposes_the_lowest_minimiser_of_several_draws() -> None:
    """The more draws, the lower the proposal's value under its own one: that value is the certificate's."""
    space = ALL["discrete"]()
    history, values = history_of(space, 12), []
    for samples in (1, 12):
        settings = HybridSettings(acquisition="thompson", samples=samples)
        found = [
            make_optimizer("hybrid", space, settings=settings)
            .ask(Request(history, np.random.default_rng(seed), {}))
            .solution
            for seed in range(6)
        ]
        values.append(np.mean([s.value for s in found if s is not None]))
    assert values[1] < values[0]


def test_failures_and_constant_losses_do_not_stop_it() -> None:
    space = ALL["conv_net"]()
    optimizer = make_optimizer("hybrid", space)
    configs = space.sample(12, 0)
    history = [Observation(c, "failed") if k % 3 == 0 else Observation(c, "done", 1.0) for k, c in enumerate(configs)]
    proposal = optimizer.ask(Request(history, np.random.default_rng(0), {}))
    assert space.is_legal(proposal.config)


def test_a_batch_keeps_its_distance_beside_active_numbers() -> None:
    space = ALL["conv_net"]()
    optimizer = make_optimizer("hybrid", space)
    history = history_of(space, 12)
    program = compiled(space).program
    for seed in range(6):
        batch: list[dict[str, Any]] = []
        for _ in range(3):
            pending = [Observation(c, "pending") for c in batch]
            proposal = optimizer.ask(
                Request([*history, *pending], np.random.default_rng(seed), {}, Apart(tuple(batch), 3))
            )
            levels = program.encode(proposal.config)
            assert all(np.sum(levels != program.encode(c)) >= 3 for c in batch)
            batch.append(dict(proposal.config))


@pytest.mark.parametrize(("t", "fits"), [(30, [True] * 4), (50, [True, False] * 2)])
def test_many_observations_are_fitted_at_every_second_proposal(t: int, fits: list[bool]) -> None:
    space = ALL["conv_net"]()
    optimizer = make_optimizer("hybrid", space)
    history, state = history_of(space, t), dict[str, Any]()
    for k, expected in enumerate(fits):
        before = state.get("theta")
        state = dict(optimizer.ask(Request(history[: t - 4 + k], np.random.default_rng(k), state)).state)
        assert (state["theta"] != before) == expected
