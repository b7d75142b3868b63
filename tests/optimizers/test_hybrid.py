"""Hybrid optimizer: valid certificates, legal new points of every acquisition function, checked settings."""

from __future__ import annotations

import os
import subprocess
import sys
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
from mipcash.optimizers.hybrid import Hybrid, HybridSettings
from mipcash.optimizers.optimizer import Limit, Observation, Request
from mipcash.optimizers.registry import make_optimizer
from mipcash.program.points import Points
from mipcash.space.compiled import compiled
from mipcash.space.domain import Domain
from mipcash.space.exclusion import MinimumDistance
from tests.slow import counted
from tests.spaces import ALL, alternatives, loss


def history_of(space: mc.Space, n: int, seed: int = 0) -> list[Observation]:
    return [Observation(c, "done", loss(c)) for c in space.sample(n, seed)]


@pytest.mark.parametrize("seed", range(2))
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
def test_every_acquisition_proposes_legal_new_points(acquisition: str) -> None:
    space = ALL["bound_numbers"]()
    optimizer = make_optimizer("hybrid", space, settings=HybridSettings(acquisition=acquisition))
    history, state = history_of(space, 10), {}
    for k in range(2):
        proposal = optimizer.ask(Request(history, np.random.default_rng(k), state))
        state = dict(proposal.state)
        assert space.is_legal(proposal.config)
        assert not optimizer.domain.repeats(proposal.config, [o.config for o in history])
        history.append(Observation(proposal.config, "done", loss(proposal.config)))


def second_difference(optimizer: Hybrid, one: str, other: str) -> Points:
    """Four points, legal or not, with both groups moved, only the first, only the second, and neither."""
    labels = [g.label for g in optimizer.program.groups]
    levels = np.zeros((4, len(labels)), dtype=np.int64)
    levels[[0, 1], labels.index(one)] = 1
    levels[[0, 2], labels.index(other)] = 1
    return Points(levels, np.full((4, len(optimizer.scale)), 0.5))


@pytest.mark.parametrize("near", [256, 25])
def test_a_new_optimizer_continues_as_one_with_cached_factors(near: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between searches of the hyperparameters, factors are extended; with many observations, batches are screened."""
    monkeypatch.setattr("mipcash.surrogates.structured.posterior.NEAR", near)
    monkeypatch.setattr("mipcash.surrogates.structured.surrogate.every", lambda t: 4)
    space = ALL["bound_numbers"]()
    history, unbroken, state = history_of(space, 41), make_optimizer("hybrid", space), dict[str, Any]()
    extended = list[int]()
    for k in range(6):
        anew = make_optimizer("hybrid", ALL["bound_numbers"]())
        proposal, again = (o.ask(Request(history, np.random.default_rng(k), state)) for o in (unbroken, anew))
        assert proposal.config == again.config
        assert proposal.state == again.state
        assert not space.validate(proposal.config)
        extended.append(len(history) - proposal.state["searched"])
        history.append(Observation(proposal.config, "done", loss(proposal.config)))
        state = dict(proposal.state)
    assert max(extended) == 3


@pytest.mark.parametrize(
    ("make", "changes", "named"),
    [
        (HybridSettings, {"acquisition": "pi"}, "'pi'"),
        (HybridSettings, {"n_initial": 0}, "n_initial must be at least 1, got 0"),
        (HybridSettings, {"samples": -1}, "samples must be at least 0"),
        (HybridSettings, {"acquisition": "thompson", "samples": 0}, "samples must be at least 1"),
        (HybridSettings, {"best": 0}, "best must be at least 1"),
        (HybridSettings, {"restart_every": 0}, "restart_every must be at least 1"),
        (HybridSettings, {"cover": -1}, "cover must be at least 0"),
        (HybridSettings, {"product_columns": float("nan")}, "product_columns must be "),
        (mc.settings.RandomSettings, {"attempts": 1.5}, "attempts must be a whole number"),
        (LocalSearchSettings, {"survivors": 0}, "LocalSearchSettings: survivors must be at least 1"),
        (FeatureSizes, {"fourier": 0}, "FeatureSizes: fourier must be at least 1"),
        (SolverSettings, {"time_limit": -1}, "SolverSettings: time_limit must be at least 0, got -1"),
        (SolverSettings, {"gap": float("nan")}, "SolverSettings: gap must be at least 0, got nan"),
        (SolverSettings, {"node_limit": -1}, "SolverSettings: node_limit must be at least 0"),
        (AlternatingSettings, {"rounds": 0}, "AlternatingSettings: rounds must be at least 1"),
    ],
)
def test_wrong_settings_are_refused(make: Any, changes: dict[str, Any], named: str) -> None:
    with pytest.raises(SpaceError, match=named):
        make(**changes)


def test_thompson_proposes_the_lowest_minimiser_of_several_draws() -> None:
    """With more draws, the sampled loss of the proposal is lower on average. The certificate states this loss."""
    space = ALL["discrete"]()
    request = [Request(history_of(space, 12), np.random.default_rng(seed)) for seed in range(5)]
    few, many = (
        make_optimizer("hybrid", space, settings=HybridSettings(acquisition="thompson", samples=samples))
        for samples in (1, 12)
    )
    one, several = (np.mean([o.ask(r).solution.value for r in request]) for o in (few, many))  # type: ignore[union-attr]
    assert several < one


@pytest.mark.parametrize(
    ("name", "samples", "sought"),
    [("discrete", None, 2), ("conv_net", None, 0), ("conv_net", 3, 4)],
)
def test_minimisers_are_sought_by_default_only_in_purely_discrete_spaces(
    name: str, samples: int | None, sought: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Minimisers of the mean and of the requested number of samples are sought."""
    calls, space = counted(monkeypatch, (Hybrid, "_minimum")), ALL[name]()
    optimizer = make_optimizer("hybrid", space, settings=HybridSettings(samples=samples))
    optimizer.ask(Request(history_of(space, 12), np.random.default_rng(0), {}))
    assert len(calls) == sought


def test_a_number_under_several_conditions_is_proposed_with_its_own_certificate() -> None:
    """The certificate is that of the configuration. The search's value of an inactive number does not count."""
    space = alternatives()
    optimizer = Hybrid(Domain.of(space))
    history = history_of(space, 25)
    mean = optimizer._fitted(optimizer.data(history), {}, np.random.default_rng(0))[0].loss.mean()
    for seed in range(3):
        proposal = optimizer.ask(Request(history, np.random.default_rng(seed), {}))
        (point,) = optimizer.domain.encode([proposal.config])
        assert proposal.solution is not None
        predicted = mean.loss(mean.value(point.one_hot(optimizer.program), point.units))
        assert proposal.solution.value == pytest.approx(predicted, abs=1e-9)


def test_a_batch_keeps_its_minimum_distance_with_active_numbers() -> None:
    space = ALL["conv_net"]()
    optimizer = make_optimizer("hybrid", space)
    history = history_of(space, 12)
    program = compiled(space).program
    for seed in range(2):
        batch: list[dict[str, Any]] = []
        for _ in range(3):
            pending = [Observation(c, "pending") for c in batch]
            proposal = optimizer.ask(
                Request([*history, *pending], np.random.default_rng(seed), {}, MinimumDistance(tuple(batch), 3))
            )
            levels = program.encode(proposal.config)
            assert all(np.sum(levels != program.encode(c)) >= 3 for c in batch)
            batch.append(dict(proposal.config))


# -- outcome constraints -----------------------------------------------------------------------------------------------


def limited_request(*known: int) -> Request:
    """Request with eight observations. Those in ``known`` include the constrained output."""
    configs = ALL["bound_numbers"]().sample(8, 0)
    history = [
        Observation(c, "done", loss(c), {"g": float(c["level"])} if k in known else {}) for k, c in enumerate(configs)
    ]
    return Request(history, np.random.default_rng(0), limits=(Limit("g", high=2.5),))


@pytest.mark.parametrize("acquisition", ["log-ei", "thompson"])
def test_an_output_is_left_out_until_it_has_observations(acquisition: str) -> None:
    """A subclass may choose the surrogate of each output."""
    asked = []

    class Asking(Hybrid):
        def surrogate_for(self, output: str) -> Any:
            asked.append(output)
            return super().surrogate_for(output)

    optimizer = Asking(Domain.of(ALL["bound_numbers"]()), HybridSettings(acquisition=acquisition))
    proposal = optimizer.ask(limited_request())
    assert proposal.origin == acquisition
    assert "outputs" not in proposal.state
    assert asked == ["loss"]
    state = optimizer.ask(limited_request(0, 1, 2, 4, 5, 6)).state
    assert asked == ["loss", "loss", "g"]
    assert state["outputs"]["g"]["theta"] != state["theta"]


DECISIONS = """
import mipcash as mc

ties, mixture = mc.Space("ties"), mc.Space("mixture")
for k in range(25):
    ties.integer(f"b{k}", 0, 1)
kind = mixture.categorical("kind", list("abc"))
mixture.rule("whole", sum(mixture.real(name, 0, 1) for name in "xyz") == 1)
method = mc.Method("hybrid", solver="highs", seconds_per_proposal=None)
for space, loss in [
    (ties, lambda c: sum((1 + k % 3) * abs(c[f"b{k}"] - k % 2) for k in range(25))),
    (mixture, lambda c: (c["x"] - 0.3) ** 2 + "bca".index(c["kind"]) * c["y"]),
]:
    for trial in mc.minimize(loss, space, 12, optimizer=method, seed=3, progress=False).history:
        print({name: value if isinstance(value, (str, int)) else round(value, 6) for name, value in trial.config.items()})
"""


def test_the_same_seed_decides_the_same_where_blas_rounds_differently() -> None:
    """On processors without these two variants of OpenBLAS the runs are equal in any case."""
    runs = [
        subprocess.run(
            [sys.executable, "-c", DECISIONS],
            env=os.environ | {"OPENBLAS_CORETYPE": kind},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for kind in ("Haswell", "Prescott")
    ]
    assert runs[0].count("\n") == 24
    assert runs[0] == runs[1]
