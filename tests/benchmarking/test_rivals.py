"""Acquisitions under limits beside constrained EI: against Monte Carlo, by finite differences, as their papers select."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from benchmarks.rivals.augmented_lagrangian import Ends, Lagrangian, Multipliers, lagrangian_ei, normal_draws
from benchmarks.rivals.constraints import LowerBound, RivalSettings
from benchmarks.rivals.one_output import at_percentile, penalised
from mipcash.acquisition.acquisition import Acquisition
from mipcash.acquisition.analytic import LogEI
from mipcash.acquisition.catalogue import FantasisedEI
from mipcash.acquisition.feasible_first import WEIGHT, FeasibleFirst, whole
from mipcash.acquisition.inputs import AcquisitionInputs, Limited
from mipcash.optimizers.data import Data
from mipcash.optimizers.model_based import Step
from mipcash.optimizers.optimizer import Limit, Observation
from mipcash.space.domain import Domain
from mipcash.surrogates.structured.encoded import Encoded
from mipcash.surrogates.structured.posterior import StructuredPosterior
from tests.acquisition.checks import gradient_is_that_of_values, search_takes_it
from tests.acquisition.test_mixed_search import Setting
from tests.spaces import ALL


def outputs(setting: Setting, seed: int) -> dict[str, Limited]:
    """Two outputs of their own values, one with an upper end and one with both."""
    loss, made = setting.acquisition.posterior, {}
    for k, (low, high) in enumerate(((-math.inf, 0.1), (-0.8, 0.6))):
        values = np.random.default_rng([seed, k]).normal(size=len(setting.points))
        posterior = StructuredPosterior.fit(loss.kernel, Encoded.of(setting.structure, setting.points), values)
        made[f"g{k}"] = Limited(posterior, low, high)
    return made


def lagrangian(setting: Setting, seed: int) -> Acquisition:
    return lagrangian_ei(setting.acquisition.posterior, list(outputs(setting, seed).values()), setting.points)


def sampled(setting: Setting, seed: int) -> FeasibleFirst:
    rng, limited = np.random.default_rng([seed, 9]), outputs(setting, seed)
    drawn = {name: l.posterior.sample(rng) for name, l in limited.items()}
    return FeasibleFirst.sampled(setting.acquisition.posterior.sample(rng), drawn, limited)


def optimistic(setting: Setting, seed: int) -> Acquisition:
    given = AcquisitionInputs(setting.acquisition.posterior, -0.5, outputs(setting, seed))
    optimizer = LowerBound(setting.domain, RivalSettings())
    return optimizer.acquisition_of(given, cast(Step, None))


MADE = [lagrangian, sampled, optimistic]


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("name", list(ALL))
def test_the_mixed_search_takes_it_as_it_is(name: str, make: Any) -> None:
    setting = Setting(ALL[name](), 1, LogEI(-0.5))
    acquisition: Acquisition = make(setting, 1)
    search_takes_it(acquisition, setting)


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("name", ["conv_net", "bound_numbers", "continuous"])
def test_its_gradient_is_that_of_its_values(name: str, make: Any) -> None:
    setting = Setting(ALL[name](), 2, LogEI(-0.5))
    acquisition: Acquisition = make(setting, 2)
    gradient_is_that_of_values(acquisition, setting, np.random.default_rng(0), large=True)


def test_the_slack_of_the_lagrangian_is_the_best_one() -> None:
    lam, rho = np.array([0.0, 0.7, 3.0]), 0.4
    multipliers = Multipliers(lam, rho)
    for c in (-4.0, -0.5, -0.1, 0.0, 0.3, 2.0):
        by_search = [
            minimize_scalar(
                lambda s, l=l, c=c: l * (c + s) + (c + s) ** 2 / (2 * rho), bounds=(0.0, 9.0), method="bounded"
            ).fun
            for l in lam
        ]
        assert multipliers.psi(np.full(3, c)) == pytest.approx(by_search, abs=1e-4)
        slope = (multipliers.psi(np.full(3, c + 1e-6)) - multipliers.psi(np.full(3, c - 1e-6))) / 2e-6
        assert multipliers.slope(np.full(3, c)) == pytest.approx(slope, abs=1e-5)


def test_multipliers_grow_where_the_best_breaks_a_limit_and_fall_where_it_does_not() -> None:
    losses, excess = np.array([-1.0, 0.5]), np.array([[1.0, -2.0], [-0.5, -2.0]])
    first = Multipliers.of(losses[:1], excess[:1])
    assert first.lam == pytest.approx([2.0, 0.0])  # rho starts at 1^2 / 2
    assert first.rho == 0.25
    # now the first has L = -1 + 2 + 1 / 0.5 and the second, whose best slack is 0, 0.5 - 1 + 0.25 / 0.5
    second = Multipliers.of(losses, excess)
    assert second.lam == pytest.approx([0.0, 0.0])
    assert second.rho == 0.25
    never = Multipliers.of(np.zeros(60), np.ones((60, 1)))
    assert never.rho > 0.0
    assert np.isfinite(never.psi(np.array([[1e3]]))).all()


def test_it_is_the_expected_improvement_of_the_lagrangian() -> None:
    """Against draws of loss and outputs that share nothing with its own; with its own few draws within a fifth."""
    setting = Setting(ALL["conv_net"](), 3, LogEI(-0.5))
    loss, limited, points = setting.acquisition.posterior, list(outputs(setting, 4).values()), setting.points
    found = lagrangian_ei(loss, limited, points)
    many = lagrangian_ei(loss, limited, points, draws=4096)
    lagrange = found.outcomes
    assert isinstance(lagrange, Lagrangian)
    n, rng = 100_000, np.random.default_rng(0)
    mean, deviation = loss.predict(points)
    total = rng.normal(mean, deviation, size=(n, len(points)))
    drawn = np.stack([rng.normal(*l.posterior.predict(points), size=(n, len(points))) for l in limited], axis=-1)
    total += lagrange.multipliers.psi(Ends.of(limited).excess(drawn)).sum(axis=-1)
    gain = np.maximum(found.best[0] - total, 0.0)
    error = gain.std(axis=0) / math.sqrt(n)
    assert np.all(np.abs(np.exp(-many.values(points)) - gain.mean(axis=0)) <= 5.0 * error + 1e-3)
    assert np.exp(-found.values(points)) == pytest.approx(gain.mean(axis=0), rel=0.2, abs=0.02)


def test_far_from_what_keeps_the_limits_it_is_finite() -> None:
    setting = Setting(ALL["continuous"](), 3, LogEI(-0.5))
    limited = [Limited(each.posterior, -math.inf, -1e6) for each in outputs(setting, 0).values()]
    acquisition = lagrangian_ei(setting.acquisition.posterior, limited, setting.points)
    assert isinstance(acquisition, FantasisedEI)
    assert np.isfinite(acquisition.values(setting.points)).all()


def test_draws_have_the_first_two_moments_of_what_they_stand_for() -> None:
    for n in (1, 4, 11):
        z = normal_draws(64, n)
        assert z.mean(axis=0) == pytest.approx(np.zeros(n), abs=1e-12)
        assert z.T @ z / len(z) == pytest.approx(np.eye(n), abs=1e-12)
    assert normal_draws(64, 40).shape == (64, 40)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("make", [sampled, optimistic])
def test_it_selects_the_least_of_what_keeps_the_limits_and_else_the_least_violation(make: Any, seed: int) -> None:
    setting = Setting(ALL["discrete"](), seed, LogEI(-0.5))
    acquisition: FeasibleFirst = make(setting, seed)
    candidates = setting.points
    loss, violation = acquisition.function.values(candidates), acquisition.violation(candidates)
    for few in (candidates, candidates[np.flatnonzero(violation > 0.0)]):
        loss, violation = acquisition.function.values(few), acquisition.violation(few)
        chosen = int(np.argmin(acquisition.values(few)))
        by_the_rule = int(np.lexsort((loss, violation))[0])
        # an exact penalty: equal but for what lies within a hundredth of the range of losses
        assert violation[chosen] <= violation[by_the_rule] + np.ptp(loss) / WEIGHT


def data_of(values: list[tuple[float | None, float | None]]) -> Data:
    """Of losses and of an output that is to be at most 1; None: it failed, nan: not told."""
    space = ALL["continuous"]()
    history = [
        Observation(c, "failed") if loss is None else Observation(c, "done", loss, {} if g is None else {"g": g})
        for c, (loss, g) in zip(space.sample(len(values), 0), values, strict=True)
    ]
    return Data.of(Domain.of(space), history, (Limit("g", high=1.0),))


def test_adaptive_percentile_puts_a_percentile_of_what_keeps_the_limits_in_the_place_of_what_does_not() -> None:
    data = data_of([(3.0, 0.5), (-9.0, 2.0), (1.0, 0.9), (None, None), (2.0, 0.1), (50.0, 7.0)])
    worst, middle = (at_percentile(data, p) for p in (100.0, 50.0))
    assert worst.losses.tolist() == [3.0, 3.0, 1.0, 3.0, 2.0, 3.0]
    assert middle.losses.tolist() == [3.0, 2.0, 1.0, 2.0, 2.0, 2.0]
    assert worst.known.tolist() == [0, 1, 2, 3, 4, 5]
    assert worst.feasible.all()  # its incumbent is the best of its targets
    assert worst.order.tolist() == data.order.tolist()
    nothing = at_percentile(data_of([(3.0, 5.0), (1.0, 4.0)]), 100.0)
    assert nothing.losses.tolist() == [3.0, 3.0]


def test_a_penalty_grows_with_violation_and_knows_no_bound_of_a_failure() -> None:
    data = data_of([(3.0, 0.5), (1.0, 2.0), (1.0, 5.0), (None, None)])
    told = penalised(data, 10.0)
    unit = np.std([3.0, 1.0, 1.0])
    assert told.losses[:3] == pytest.approx([3.0, *(1.0 + 10.0 * unit * data.violations[1:3])])
    assert told.losses[3] == pytest.approx(3.0 + 10.0 * unit * (1.0 + data.violations[2]))


def test_samples_under_limits_run_through_the_observations() -> None:
    """Without the residual's mean they need not, where the structured part does not explain what was seen."""
    setting = Setting(ALL["bound_numbers"](), 3, LogEI(-0.5))
    posterior, rng = setting.acquisition.posterior, np.random.default_rng(0)
    samples = [posterior.sample(rng) for _ in range(40)]
    alone = np.mean([s.values(setting.points) for s in samples], axis=0)
    wholes = np.mean([whole(s).values(setting.points) for s in samples], axis=0)
    assert np.abs(wholes - posterior.fitted).mean() < np.abs(alone - posterior.fitted).mean()
