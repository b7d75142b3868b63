"""Tests of constrained max-value entropy: against Monte Carlo and finite differences, and finite everywhere.

The draws of the constrained minimum are tested too.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.stats import norm

from mipcash.acquisition.analytic import LogEI
from mipcash.acquisition.constrained import Limited, LogFeasibility
from mipcash.methods.cmes.cmes import least, marginal
from mipcash.methods.cmes.entropy_search import SURE, EntropySearch, Option, log_gain, noisy
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from tests.acquisition.test_mixed_search import Setting
from tests.spaces import ALL

INF = math.inf
FAR = Points(np.zeros((1, 0), dtype=np.int64), np.zeros((1, 0)))


def test_without_limits_the_value_is_that_of_max_value_entropy_search() -> None:
    setting = Setting(ALL["conv_net"](), 1, LogEI(-0.5))
    posterior, minima = setting.acquisition.posterior, np.array([-1.5, -0.9, -2.0])
    found = np.exp(-EntropySearch(posterior, minima, {}, [Option(frozenset())]).values(setting.points))
    mean, deviation = posterior.predict(setting.points)
    g = (mean[:, None] - minima) / deviation[:, None]  # Wang and Jegelka 2017, Eq. 6
    expected = np.mean(0.5 * g * np.exp(norm.logpdf(g) - norm.logcdf(g)) - norm.logcdf(g), axis=1)
    clear = (minima.max() - mean) / deviation < SURE  # beyond, gamma is capped and values agree roughly
    assert clear.sum() > 3
    assert found[clear] == pytest.approx(expected[clear], rel=1e-6)
    assert found[~clear] == pytest.approx(expected[~clear], rel=1e-1)


def test_draws_without_a_feasible_point_rank_points_by_feasibility() -> None:
    """Points rank by their probability of feasibility while it is below 0.4."""
    setting = Setting(ALL["continuous"](), 2, LogEI(-0.5))
    posterior, points = setting.acquisition.posterior, setting.points
    limit = Limited(posterior, -INF, -0.5)
    found = EntropySearch(posterior, np.array([INF]), {"r": limit}, [Option(frozenset("r"))]).values(points)
    chance = LogFeasibility([limit]).values(points)
    unlikely = chance > -math.log(0.4)
    assert unlikely.sum() > 3
    assert np.array_equal(np.argsort(found[unlikely]), np.argsort(chance[unlikely]))


def test_noise_scales_gamma_as_in_the_supplement() -> None:
    # A.2: gamma tilde = (y_* - mu) / (sd rho), rho = sd sqrt(alpha) / sqrt(1 + sd^2 alpha)
    sd, noise = np.array([0.3, 1.0, 4.0]), 0.25
    alpha = 1.0 / noise
    rho = sd * math.sqrt(alpha) / np.sqrt(1.0 + sd**2 * alpha)
    assert noisy(sd, noise) == pytest.approx(sd * rho)


# -- outputs that are not evaluated, and losses that a violated constraint hides ---------------------------------------


class Fixed:
    """Posterior with the same mean and deviation at every point."""

    fitted_noise = 0.0

    def __init__(self, mean: float, sd: float) -> None:
        self.mean, self.sd = mean, sd

    def predict(self, points: Points) -> tuple[Vector, Vector]:
        return np.full(len(points), self.mean), np.full(len(points), self.sd)


def searched(gamma: float, limits: dict[str, Any], options: list[Option], hiding: str = "") -> EntropySearch:
    """Return an entropy search over a standard normal loss."""
    return EntropySearch(Fixed(0.0, 1.0), np.array([gamma]), limits, options, frozenset(hiding))  # type: ignore[arg-type]


def told(gamma: float, limits: dict[str, Any], option: Option, hiding: str = "") -> float:
    return math.exp(-float(searched(gamma, limits, [option], hiding).values(FAR)[0]))


def within(**ends: tuple[float, float]) -> dict[str, Any]:
    """Return outcome constraints on standard normal outputs."""
    return {name: Limited(Fixed(0.0, 1.0), *each) for name, each in ends.items()}  # type: ignore[arg-type]


def below(**bounds: float) -> dict[str, Any]:
    return within(**{name: (-INF, bound) for name, bound in bounds.items()})


@pytest.mark.parametrize(
    ("gamma", "asked", "loss"),
    [(0.3, "rs", True), (-1.0, "rs", True), (-1.0, "r", True), (0.3, "rs", False), (-1.0, "r", False), (0.3, "", True)],
)
def test_entropy_search_agrees_with_monte_carlo(gamma: float, asked: str, loss: bool) -> None:
    """Compare H[E] - H[E | y_*] with Monte Carlo over the evaluated outputs E.

    Draws have weight kappa = 1 - [feasible, below y_*] u (A.1). Here u is the probability that the outputs outside E
    are feasible and below y_*.
    """
    limits = {"r": (-INF, 0.4), "s": (-1.5, 0.9)}
    ends = [each for name, each in limits.items() if name in asked] + [(-INF, gamma)] * loss
    left = [each for name, each in limits.items() if name not in asked] + [(-INF, gamma)] * (not loss)
    u = math.prod(stats.norm.cdf(high) - stats.norm.cdf(low) for low, high in left)
    n = np.random.default_rng(1).normal(size=(len(ends), 1_000_000))
    surprises = 0.5 * np.sum(n**2, axis=0)
    legal = np.all([(c >= low) & (c <= high) for c, (low, high) in zip(n, ends, strict=True)], axis=0)
    kappa = np.where(legal, 1.0 - u, 1.0)
    after = np.mean(kappa * (surprises - np.log(np.where(kappa > 0.0, kappa, 1.0)))) / kappa.mean()
    expected = float(surprises.mean() - after - math.log(kappa.mean()))
    found = told(gamma, within(**limits), Option(frozenset(asked), loss))
    if expected > 0.01:
        assert found == pytest.approx(expected, rel=0.03, abs=3e-3)
    else:  # only the floor, a small share of -log Z, remains
        assert 0.0 < found < 0.02


def test_a_loss_that_may_be_hidden_counts_with_the_probability_of_feasibility() -> None:
    """Equation A.6 averages A.3 (with the loss) and A.5 (without it), weighted by the probability of feasibility."""
    both, alone = (told(-0.6, below(r=0.4), Option(frozenset("r"), loss)) for loss in (True, False))
    p = stats.norm.cdf(0.4)
    mixed = told(-0.6, below(r=0.4), Option(frozenset("r")), "r")
    assert mixed == pytest.approx(p * both + (1.0 - p) * alone)
    assert alone < mixed < both


def test_many_weak_limits_leave_a_positive_value() -> None:
    # the closed form of eleven limits is negative there, so the floor, a share of -log Z, applies
    every = [below(**dict.fromkeys("abcdefghijk"[:m], 0.8)) for m in range(12)]
    values = [told(0.8, limits, Option(frozenset(limits))) for limits in every]
    assert min(values) > 0.0
    assert all(a > b for a, b in pairwise(values))


def test_information_is_divided_by_costs() -> None:
    cheap, dear = Option(frozenset("r"), False, math.log(0.01)), Option(frozenset("r"), True, math.log(5.0))
    free = [Option(o.outputs, o.loss) for o in (dear, cheap)]
    assert searched(1.5, below(r=0.4), [dear, cheap]).ranked(FAR).tolist() == [1, 0]
    assert searched(1.5, below(r=0.4), free).ranked(FAR).tolist() == [0, 1]
    assert told(1.5, below(r=0.4), dear) == pytest.approx(0.2 * told(1.5, below(r=0.4), free[0]))


@pytest.mark.parametrize("gamma", [-1e6, 30.0, INF])
def test_values_are_finite_everywhere(gamma: float) -> None:
    log = -np.logspace(-320, 12, 100)
    for spread in (-1e6, 0.0, 4.0):
        for each in log_gain(log, np.full(100, spread)):
            assert np.isfinite(each).all()
    for mu in (-1e7, 40.0, 1e7):
        limits: dict[str, Any] = {n: Limited(Fixed(mu, 0.5), -INF, 0.0) for n in "abcde"}  # type: ignore[arg-type]
        limits["r"] = Limited(Fixed(-mu, 0.1), -INF, 0.0)  # type: ignore[arg-type]
        options = [
            Option(frozenset(limits)),
            Option(frozenset("a"), False),
            Option(frozenset(), True),
            Option(frozenset("r"), False),
        ]
        for hiding in ("", "a"):
            assert np.isfinite(searched(gamma, limits, options, hiding).scores(FAR)).all()


# -- draws of the constrained minimum ----------------------------------------------------------------------------------


def test_marginal_draws_are_minima_of_independent_points() -> None:
    rng = np.random.default_rng(0)
    mean, sd, kept = rng.normal(size=6), rng.uniform(0.3, 1.5, 6), rng.uniform(0.05, 0.6, 6)
    found = marginal(mean, sd, np.log(kept), 20_000, rng)
    losses, legal = mean + sd * rng.normal(size=(20_000, 6)), rng.random((20_000, 6)) < kept
    expected, at = least(losses, legal)
    assert np.array_equal(expected, np.where(legal, losses, INF).min(axis=1))
    assert np.array_equal(at >= 0, legal.any(axis=1))
    assert np.mean(np.isinf(found)) == pytest.approx(np.prod(1.0 - kept), abs=0.01)
    assert stats.ks_2samp(found[np.isfinite(found)], expected[np.isfinite(expected)]).statistic < 0.02


def test_joint_draws_have_the_moments_of_the_posterior() -> None:
    """Draws include the residual, which samples as functions leave out."""
    setting = Setting(ALL["conv_net"](), 3, LogEI(-0.5))
    posterior = setting.acquisition.posterior
    new = setting.domain.encode(setting.domain.sample(8, np.random.default_rng(5)))
    mean, deviation = posterior.predict(new)
    drawn = posterior.draws(new, 20_000, np.random.default_rng(0))
    assert drawn.mean(axis=0) == pytest.approx(mean, abs=0.04)
    assert drawn.std(axis=0) == pytest.approx(deviation, rel=0.05)
    given = posterior.given(new[:1], mean[:1] + deviation[:1], -0.999 * posterior.fitted_noise)
    # the covariance too: conditioning on the first point moves the mean by the covariance of the draws
    slope = (given.predict(new)[0] - mean) / deviation[0]
    covariance = np.cov(drawn.T)[0] / deviation[0] ** 2
    assert covariance == pytest.approx(slope, abs=0.06)
