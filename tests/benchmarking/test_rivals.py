"""Rivals of the default optimizer: baselines of the paper and other acquisition functions under outcome constraints."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mipcash as mc
from benchmarks.rivals.adaptive_percentile import at_percentile
from benchmarks.rivals.joint_gp import LEAST_NOISE, GaussianProcess
from mipcash.acquisition.analytic import LogEI
from mipcash.acquisition.constrained import Limited
from mipcash.acquisition.feasible_first import WEIGHT, FeasibleFirst, ResidualSample
from mipcash.deadline import NEVER
from mipcash.methods.admm.jopt import RoundedSearch
from mipcash.methods.admm.matern import MaternProcess
from mipcash.methods.mivabo.blocks import BlockMaker, FeatureSizes
from mipcash.methods.mivabo.evidence import Layout, always_active
from mipcash.methods.mivabo.functions import WeightSample
from mipcash.models import artificial
from mipcash.optimizers.data import Data
from mipcash.optimizers.optimizer import Limit, Observation, Request
from mipcash.optimizers.registry import make_optimizer
from mipcash.optimizers.unit_cube import UnitCube
from mipcash.program.points import Point
from mipcash.space.domain import Domain
from mipcash.surrogates.structured.encoded import Encoded
from mipcash.surrogates.structured.posterior import StructuredPosterior
from tests.acquisition.checks import gradient_is_that_of_values, search_takes_it
from tests.acquisition.test_mixed_search import Setting
from tests.spaces import ALL, loss

MIXED = ("conv_net", "bound_numbers")


def drawn(space: mc.Space, seed: int) -> tuple[WeightSample, Domain]:
    """Return a function drawn from the prior of the linear model, and the domain of the space."""
    domain, rng = Domain.of(space), np.random.default_rng(seed)
    program, scale = domain.program, domain.scale
    layout = Layout(len(program.groups), len(scale), always_active(scale))
    theta = layout.prior()[0] + 0.5 * rng.normal(size=len(layout.prior()[0]))
    maker = BlockMaker(program, scale, "fourier", FeatureSizes(fourier=6, per_number=4))
    blocks = maker.evidence(theta, layout, rng, maker.sizes.product_columns)
    sizes = [(b, 1 if b.cosines is None else b.cosines.size) for b in blocks]
    weights = tuple(rng.normal(size=(len(b.variances), q)) * np.sqrt(b.variances)[:, None] for b, q in sizes)
    return WeightSample(tuple(blocks), weights, 0.0, 1.0, program, len(scale)), domain


def seen(space: mc.Space, n: int = 12) -> list[Observation]:
    return [Observation(c, "done", loss(c)) for c in space.sample(n, 0)]


# -- JOPT and the joint Gaussian process ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(ALL))
def test_decoding_inverts_the_encoding(name: str) -> None:
    space = ALL[name]()
    domain, configs = Domain.of(space), space.sample(8, 3)
    points = domain.encode(configs)
    cube = UnitCube(domain.program, len(domain.scale))
    x = cube.encode(points)
    assert np.all((x >= 0) & (x <= 1))
    for k, config in enumerate(configs):
        latent = cube.decode(x[k])
        effective = domain.free_legality.effective(latent.levels[None])[0]
        np.testing.assert_array_equal(effective, points.levels[k])
        np.testing.assert_array_equal(latent.units, points.units[k])
        assert domain.decode(Point(effective, latent.units)).keys() == config.keys()
        # any point rounds to levels, and orderings round to permutations
        somewhere = cube.decode(np.random.default_rng(k).random(x.shape[1])).levels
        for members in cube.orders:
            assert sorted(somewhere[members]) == list(range(len(members)))


@pytest.mark.parametrize("name", MIXED)
def test_candidates_of_the_rounded_search_are_configurations(name: str) -> None:
    space = ALL[name]()
    domain = Domain.of(space)
    search = RoundedSearch(domain, UnitCube(domain.program, len(domain.scale)), 200, 6, 3, 20)
    x = search.cube.encode(domain.encode([o.config for o in seen(space)]))
    again, legal = search.rounded(x)
    np.testing.assert_allclose(again, x)  # encoded observations do not change by rounding
    assert legal.all()
    process = MaternProcess.fit(x, np.array([o.loss for o in seen(space)]))
    rows = search.candidates(process, float(process.y.min()), x, np.random.default_rng(0), NEVER)
    rounded, kept = search.rounded(rows)
    np.testing.assert_allclose(rounded, rows)
    improvement = LogEI(float(process.y.min()))(*process.predict(rows))
    assert (np.diff(improvement[kept]) >= -1e-9).all()  # sorted by decreasing improvement
    assert kept[: kept.sum()].all()  # candidates that violate rules come last


def test_jopt_beats_random_search_and_refits_from_its_last_state() -> None:
    values = {}
    for name in ("jopt", "random"):
        space, objective = artificial.build(instance=1)
        study = mc.Study(space, optimizer=name, seed=1)
        for _ in range(28):
            trial = study.ask()
            study.tell(trial, objective(trial.config))
        values[name] = study.result.value
    assert values["jopt"] < 0.8 * values["random"]
    space = ALL["conv_net"]()
    optimizer = make_optimizer("jopt", space)
    first = optimizer.ask(Request(seen(space), np.random.default_rng(0), {}))
    assert len(first.state["theta"]) == 2 + UnitCube(optimizer.program, len(optimizer.scale)).size
    after = optimizer.ask(Request(seen(space), np.random.default_rng(0), first.state))
    assert after.state["theta"] != first.state["theta"]


def test_the_posterior_equals_scikit_learns_without_noise_and_keeps_its_mean_with_pending_points() -> None:
    rng = np.random.default_rng(0)
    x, new, at = rng.random((15, 3)), rng.random((3, 3)), rng.random((20, 3))
    gp = GaussianProcess(x, np.sin(4 * x[:, 0]) + x[:, 1] + 0.1 * rng.normal(size=15))
    mean, sd = gp(at)
    expected, with_noise = gp.model.predict(at, return_std=True)
    noise = np.exp(gp.model.kernel_.theta[-1])
    np.testing.assert_allclose(mean, expected)
    np.testing.assert_allclose(sd**2 + noise, with_noise**2, rtol=1e-6)
    after = gp.given(new)
    np.testing.assert_allclose(after(at)[0], mean, atol=1e-6)
    assert (after(at)[1] <= sd + 1e-9).all()
    assert (after(new)[1] ** 2 <= 1.1 * max(0.001 * gp.model.kernel_.k2.noise_level, LEAST_NOISE)).all()
    assert np.isfinite(gp.given(np.concatenate([new, new]))(at)).all()  # the same configuration may be pending twice
    assert gp.given(x[:0]) is gp


# -- acquisitions under limits ----------------------------------------------------------------------------------------


def outputs(setting: Setting, seed: int) -> dict[str, Limited]:
    """Return two outputs with random values, one with an upper bound and one with both bounds."""
    kernel, found = setting.acquisition.posterior.kernel, {}
    for k, (low, high) in enumerate(((-math.inf, 0.1), (-0.8, 0.6))):
        values = np.random.default_rng([seed, k]).normal(size=len(setting.points))
        posterior = StructuredPosterior.fit(kernel, Encoded.of(setting.structure, setting.points), values)
        found[f"g{k}"] = Limited(posterior, low, high)
    return found


def sampled(setting: Setting, seed: int) -> FeasibleFirst:
    rng, limited = np.random.default_rng([seed, 9]), outputs(setting, seed)
    samples = {name: l.posterior.sample(rng) for name, l in limited.items()}
    return FeasibleFirst.sampled(setting.acquisition.posterior.sample(rng), samples, limited)


@pytest.mark.parametrize("name", MIXED)
def test_the_mixed_search_takes_the_acquisition_and_its_gradient_is_right(name: str) -> None:
    setting = Setting(ALL[name](), 1, LogEI(-0.5))
    acquisition = sampled(setting, 1)
    search_takes_it(acquisition, setting)
    gradient_is_that_of_values(acquisition, setting, np.random.default_rng(0), large=True)


@pytest.mark.parametrize("seed", range(2))
def test_it_selects_the_least_feasible_loss_or_else_the_least_violation(seed: int) -> None:
    setting = Setting(ALL["discrete"](), seed, LogEI(-0.5))
    acquisition = sampled(setting, seed)
    every = setting.points
    for few in (every, every[np.flatnonzero(acquisition.violation(every) > 0.0)]):
        losses, violation = acquisition.function.values(few), acquisition.violation(few)
        chosen = int(np.argmin(acquisition.values(few)))
        by_the_rule = int(np.lexsort((losses, violation))[0])
        # exact penalty: the choices agree unless violations differ by less than a hundredth of the range of losses
        assert violation[chosen] <= violation[by_the_rule] + np.ptp(losses) / WEIGHT


def data_of(values: list[tuple[float | None, float | None]]) -> Data:
    """Return data with the given losses (None is a failure) and an output with the upper bound 1."""
    space = ALL["continuous"]()
    history = [
        Observation(c, "failed") if value is None else Observation(c, "done", value, {"g": g})
        for c, (value, g) in zip(space.sample(len(values), 0), values, strict=True)
    ]
    return Data.of(Domain.of(space), history, (Limit("g", high=1.0),))


def test_adaptive_percentiles_replace_infeasible_losses() -> None:
    data = data_of([(3.0, 0.5), (-9.0, 2.0), (1.0, 0.9), (None, None), (2.0, 0.1), (50.0, 7.0)])
    worst, middle = (at_percentile(data, p) for p in (100.0, 50.0))
    assert worst.losses.tolist() == [3.0, 3.0, 1.0, 3.0, 2.0, 3.0]
    assert middle.losses.tolist() == [3.0, 2.0, 1.0, 2.0, 2.0, 2.0]
    assert worst.feasible.all()  # the incumbent is the best of all targets
    assert worst.order.tolist() == data.order.tolist()
    nothing = at_percentile(data_of([(3.0, 5.0), (1.0, 4.0)]), 100.0)
    assert nothing.losses.tolist() == [3.0, 3.0]


def test_samples_under_constraints_run_through_the_observations() -> None:
    """Assert this with the residual's mean. The structured part alone may not explain the observations."""
    setting = Setting(ALL["bound_numbers"](), 3, LogEI(-0.5))
    posterior, rng = setting.acquisition.posterior, np.random.default_rng(0)
    samples = [posterior.sample(rng) for _ in range(40)]
    alone = np.mean([s.values(setting.points) for s in samples], axis=0)
    wholes = np.mean([ResidualSample(s).values(setting.points) for s in samples], axis=0)
    assert np.abs(wholes - posterior.fitted).mean() < np.abs(alone - posterior.fitted).mean()
