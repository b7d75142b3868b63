"""Binary feedback on the constrained minimum, and decoupled evaluations: against entropies by quadrature and by finite sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import expit

from mipcash.acquisition.binary_entropy import Answers, binary_share, unseen
from mipcash.acquisition.constrained import Interval, Truncation
from mipcash.acquisition.constrained_entropy import FLOOR, Share, log_gain

ONE = np.ones(1)
CASES = [(-0.4, 0.7, 0.0, 0.0), (0.8, 1.5, 0.0, -0.7), (0.1, 0.3, -0.5, -0.6), (-2.0, 2.5, 1.0, -1.2)]
"""mu, sd, delta of the latent; gamma of the loss."""


def loss_share(gamma: float) -> Share:
    return Share.of(Truncation.below(np.array([gamma])), ONE, ONE)


def answers(mu: float, sd: float, delta: float) -> tuple[np.ndarray, np.ndarray]:
    found = Answers(np.array([mu]), np.array([sd]), delta)
    return np.exp(found.log_q)[:, 0], np.exp(found.log_f)[:, 0]


@pytest.mark.parametrize(("mu", "sd", "delta", "gamma"), CASES)
def test_it_is_the_entropy_difference_of_loss_and_answer(mu: float, sd: float, delta: float, gamma: float) -> None:
    """H[P(y)] + H[Q(z)] - H[P(y, z | y_*)] with P(y, z | y_*) = P(y) Q(z) (1 - [y <= y_*] F_z) / Z, by quadrature (A.3)."""
    q, f = answers(mu, sd, delta)
    norm = 1.0 - stats.norm.cdf(gamma) * np.sum(q * f)
    after = 0.0
    for share, legal in zip(q, f, strict=True):
        for low, high, kappa in ((-12.0, gamma, 1.0 - legal), (gamma, 12.0, 1.0)):
            if kappa > 0.0:

                def surprise(y: float, p: float = share * kappa / norm) -> float:
                    density = stats.norm.pdf(y) * p
                    return -density * math.log(density) if density > 0.0 else 0.0

                after += quad(surprise, low, high, limit=200)[0]
    before = 0.5 * (1 + math.log(2 * math.pi)) - np.sum(q * np.log(q))
    one, other = loss_share(gamma), binary_share(np.array([mu]), np.array([sd]), delta)
    found = math.exp(log_gain(one.log + other.log, one.spread + other.spread)[0][0])
    assert found == pytest.approx(before - after, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("mu", "sd", "delta", "gamma"), CASES)
def test_the_answers_are_near_those_of_the_likelihood(mu: float, sd: float, delta: float, gamma: float) -> None:
    """Q(z) and F_z approximate integrals over the latent, which Monte Carlo gives."""
    c = np.random.default_rng(0).normal(mu, sd, 400_000)
    q, f = answers(mu, sd, delta)
    for k, z in enumerate((1.0, -1.0)):
        weight = expit(z * c)
        assert q[k] == pytest.approx(weight.mean(), abs=0.01)
        # Laplace's approximation by one Newton step, as in the paper: coarse where the latent is wide
        assert f[k] == pytest.approx(np.sum(weight * (c <= delta)) / weight.sum(), abs=0.08 if sd < 2.0 else 0.2)


@pytest.mark.parametrize("delta", [0.0, -1.0])
def test_slopes_are_those_of_the_values_and_finite_far_out(delta: float) -> None:
    far = binary_share(np.array([-1e6, -900.0, 900.0, 1e6, 1e6]), np.array([0.05, 1.0, 0.05, 0.01, 1e3]), delta)
    assert all(np.isfinite(each).all() for each in far)
    mu, sd = (a.ravel() for a in np.meshgrid([-300.0, -40.0, -3.0, -0.2, 0.0, 0.7, 4.0, 40.0], [0.05, 0.6, 5.0]))
    share = binary_share(mu, sd, delta)
    h = 1e-5
    by_mu = [
        (a - b) / (2 * h) for a, b in zip(binary_share(mu + h, sd, delta), binary_share(mu - h, sd, delta), strict=True)
    ]
    by_sd = [
        (a - b) / (2 * h * sd)
        for a, b in zip(binary_share(mu, sd * (1 + h), delta), binary_share(mu, sd * (1 - h), delta), strict=True)
    ]
    assert share.log_by_mu == pytest.approx(by_mu[0], rel=1e-4, abs=1e-5)
    assert share.log_by_sd == pytest.approx(by_sd[0], rel=1e-4, abs=1e-5)
    assert share.spread_by_mu == pytest.approx(by_mu[3], rel=1e-4, abs=1e-4)
    assert share.spread_by_sd == pytest.approx(by_sd[3], rel=2e-3, abs=1e-4)


@pytest.mark.parametrize("gamma", [-1.0, 0.4])
@pytest.mark.parametrize("bound", [-0.8, 0.3, 2.0])
def test_scoring_the_loss_alone_is_the_entropy_difference_of_its_marginal(gamma: float, bound: float) -> None:
    """P(y | y_*) = P(y) (1 - [y <= y_*] Z_c) / Z, by quadrature (A.5)."""
    legal = stats.norm.cdf(bound)
    norm = 1.0 - stats.norm.cdf(gamma) * legal

    def surprise(y: float, p: float) -> float:
        density = stats.norm.pdf(y) * p
        return -density * math.log(density) if density > 0.0 else 0.0

    after = (
        quad(surprise, -12.0, gamma, args=((1.0 - legal) / norm,))[0]
        + quad(surprise, gamma, 12.0, args=(1.0 / norm,))[0]
    )
    one = loss_share(gamma)
    log = Interval(-math.inf, bound).log_probability(np.zeros(1), ONE)
    found = math.exp(log_gain(one.log + log, one.spread + unseen(log))[0][0])
    difference = 0.5 * (1 + math.log(2 * math.pi)) - after
    # it may be negative, as the distribution given y_* is not one that Bayes' rule gives: then the floor counts
    assert found == pytest.approx(max(difference, -FLOOR * math.log(norm)), rel=1e-6)


def test_what_is_not_evaluated_adds_a_finite_share_everywhere() -> None:
    log = -np.logspace(-300, 10, 60)
    assert np.isfinite(unseen(log)).all()
    assert unseen(np.array([-1e9]))[0] == pytest.approx(2.0)
    assert unseen(np.array([-1e-200]))[0] == pytest.approx(0.0, abs=1e-9)
