"""Constrained max-value entropy: against sampled entropies, by finite differences, finite far from everything promising."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from mipcash.acquisition.analytic import LogEI, MaxValueEntropy
from mipcash.acquisition.constrained import Interval, Kept, LogFeasibility
from mipcash.methods.cmes.constrained_entropy import SURE, ConstrainedEntropy, Share, log_gain, noisy
from tests.acquisition.checks import gradient_is_that_of_values
from tests.acquisition.test_mixed_search import Setting
from tests.spaces import ALL

INF = math.inf


def gain(gamma: float, intervals: list[tuple[float, float]]) -> float:
    """The closed form, of standard normal outputs."""
    one, zero = np.ones(1), np.zeros(1)
    shares = [
        Share.of(Interval(low, high).truncation(zero, one), one, one) for low, high in [(-INF, gamma), *intervals]
    ]
    log, spread = sum(s.log for s in shares), sum(s.spread for s in shares)
    return math.exp(log_gain(log, spread)[0][0])


@pytest.mark.parametrize(
    ("gamma", "intervals"),
    [
        (0.0, [(-INF, 0.0)]),
        (-1.0, [(-INF, 0.5)]),
        (0.7, [(-INF, -0.4)]),
        (-0.3, [(-INF, 1.0), (-INF, 0.2)]),
        (-0.5, [(-0.6, 0.9)]),
        (0.2, [(0.1, INF), (-1.5, 0.3)]),
        (-0.8, []),
    ],
)
def test_it_is_the_difference_of_the_entropies(gamma: float, intervals: list[tuple[float, float]]) -> None:
    """P(y, c | y_*) is P(y, c) without what is legal and below y_*: entropies by draws of both (A.1)."""
    rng = np.random.default_rng(0)
    n = rng.normal(size=(1 + len(intervals), 2_000_000))
    legal = np.all([(c >= low) & (c <= high) for c, (low, high) in zip(n[1:], intervals, strict=True)], axis=0)
    left = ~(legal & (n[0] <= gamma))
    share = left.mean()
    surprise = 0.5 * np.sum(n**2, axis=0) + 0.5 * len(n) * math.log(2 * math.pi)
    before = 0.5 * len(n) * (1 + math.log(2 * math.pi))
    after = math.log(share) + surprise[left].mean()
    error = surprise[left].std() / math.sqrt(left.sum()) + math.sqrt((1 - share) / share / n.shape[1])
    assert gain(gamma, intervals) == pytest.approx(before - after, abs=5 * error)


def test_without_limits_it_is_max_value_entropy_search() -> None:
    setting = Setting(ALL["conv_net"](), 3, LogEI(-0.5))
    posterior, minima = setting.acquisition.posterior, np.array([-1.5, -0.9, -2.0])
    found = np.exp(-ConstrainedEntropy(posterior, minima).values(setting.points))
    mean, deviation = posterior.predict(setting.points)
    expected = -MaxValueEntropy(minima)(mean, deviation)
    clear = (minima.max() - mean) / deviation < SURE  # beyond, it has reached its limit of 2 but for 1/gamma^2
    assert clear.sum() > 3
    assert found[clear] == pytest.approx(expected[clear], rel=1e-6)
    assert found[~clear] == pytest.approx(expected[~clear], rel=1e-1)


def test_it_is_finite_wherever_a_search_may_look() -> None:
    log = -np.logspace(-320, 12, 100)
    for spread in (-1e6, -1.0, 0.0, 0.3, 4.0):
        for each in log_gain(log, np.full(100, spread)):
            assert np.isfinite(each).all()
    far = Interval(-INF, 0.0).truncation(np.array([1e8, -1e8]), np.ones(2))
    assert all(np.isfinite(each).all() for each in Share.of(far, np.ones(2), np.ones(2)))


def test_many_limits_that_hold_by_little_still_count() -> None:
    # the closed form of eleven limits is negative there: what counts is the share of -log Z
    values = [gain(0.8, [(-INF, 0.8)] * m) for m in range(12)]
    assert min(values) > 0.0
    assert all(a > b for a, b in pairwise(values))


def test_a_draw_without_a_legal_point_asks_for_feasibility_alone() -> None:
    setting = Setting(ALL["continuous"](), 2, LogEI(-0.5))
    posterior, points = setting.acquisition.posterior, setting.points
    limits = [Kept(posterior, Interval(-INF, -0.5))]
    found = ConstrainedEntropy(posterior, np.array([INF]), limits).values(points)
    assert np.isfinite(found).all()
    # the more likely the limit is kept, the better, as long as it is rather broken than kept
    chance = LogFeasibility(limits).values(points)
    unlikely = chance > -math.log(0.4)
    assert unlikely.sum() > 3
    assert np.array_equal(np.argsort(found[unlikely]), np.argsort(chance[unlikely]))


def test_noise_scales_gamma_as_in_the_supplement() -> None:
    # A.2: gamma tilde = (y_* - mu) / (sd rho), rho = sd sqrt(alpha) / sqrt(1 + sd^2 alpha)
    sd, noise = np.array([0.3, 1.0, 4.0]), 0.25
    alpha = 1.0 / noise
    rho = sd * math.sqrt(alpha) / np.sqrt(1.0 + sd**2 * alpha)
    found, by = noisy(sd, noise)
    assert found == pytest.approx(sd * rho)
    assert by == pytest.approx((noisy(sd + 1e-6, noise)[0] - noisy(sd - 1e-6, noise)[0]) / 2e-6, rel=1e-6)


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("name", ["conv_net", "bound_numbers", "continuous"])
def test_its_gradient_is_that_of_its_values(name: str, noise: bool) -> None:
    setting = Setting(ALL[name](), 2, LogEI(-0.5))
    posterior = setting.acquisition.posterior
    limits = [Kept(posterior, Interval(-INF, 0.2)), Kept(posterior, Interval(-0.4, 0.9))]
    acquisition = ConstrainedEntropy(posterior, np.array([-1.1, -0.2, INF]), limits, noise)
    gradient_is_that_of_values(acquisition, setting, np.random.default_rng(0))
