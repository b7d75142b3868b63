"""Draws of the constrained minimum: joint ones have the law of the posterior, marginal ones that of independent points."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from mipcash.acquisition.analytic import LogEI
from mipcash.methods.cmes.cmes import least, marginal
from tests.acquisition.test_mixed_search import Setting
from tests.spaces import ALL


def test_the_least_legal_loss_of_each_draw() -> None:
    losses = np.array([[1.0, 0.0, 2.0], [3.0, 1.0, 2.0]])
    legal = np.array([[True, False, True], [False, False, False]])
    values, at = least(losses, legal)
    assert values.tolist() == [1.0, math.inf]
    assert at.tolist() == [0, -1]


def test_marginal_draws_are_minima_of_independent_points() -> None:
    rng = np.random.default_rng(0)
    mean, sd, kept = rng.normal(size=6), rng.uniform(0.3, 1.5, 6), rng.uniform(0.05, 0.6, 6)
    found = marginal(mean, sd, np.log(kept), 20_000, rng)
    losses = mean + sd * rng.normal(size=(20_000, 6))
    expected, _ = least(losses, rng.random((20_000, 6)) < kept)
    assert np.mean(np.isinf(found)) == pytest.approx(np.prod(1.0 - kept), abs=0.01)
    finite, others = found[np.isfinite(found)], expected[np.isfinite(expected)]
    assert stats.ks_2samp(finite, others).statistic < 0.02


def test_marginal_draws_fall_as_points_are_added_and_joint_ones_do_not() -> None:
    """The bias that the paper shows in its Figure 1: the same function at more and more points."""
    rng, sure = np.random.default_rng(1), 0.0
    for count, below in ((10, 1.2), (1000, 3.0)):
        drawn = marginal(np.zeros(count), np.ones(count), np.full(count, sure), 400, rng)
        assert -drawn.mean() > below
    setting = Setting(ALL["continuous"](), 3, LogEI(-0.5))
    posterior = setting.acquisition.posterior
    twice = setting.points[np.repeat(np.arange(len(setting.points)), 2)]
    once_, again = (posterior.draws(p, 4000, np.random.default_rng(2)).min(axis=1) for p in (setting.points, twice))
    assert again.mean() == pytest.approx(once_.mean(), abs=0.05)


@pytest.mark.parametrize("name", ["conv_net", "bound_numbers", "continuous"])
def test_joint_draws_have_the_posterior_s_moments(name: str) -> None:
    """The residual included, which samples as functions leave out."""
    setting = Setting(ALL[name](), 3, LogEI(-0.5))
    posterior = setting.acquisition.posterior
    new = setting.domain.encode(setting.domain.sample(8, np.random.default_rng(5)))
    mean, deviation = posterior.predict(new)
    drawn = posterior.draws(new, 20_000, np.random.default_rng(0))
    assert drawn.mean(axis=0) == pytest.approx(mean, abs=0.04)
    assert drawn.std(axis=0) == pytest.approx(deviation, rel=0.05)
    given = posterior.given(new[:1], mean[:1] + deviation[:1], -0.999 * posterior.fitted_noise)
    # the covariance, too: what the first point says of the others is what a draw of it says
    slope = (given.predict(new)[0] - mean) / deviation[0]
    covariance = np.cov(drawn.T)[0] / deviation[0] ** 2
    assert covariance == pytest.approx(slope, abs=0.06)
