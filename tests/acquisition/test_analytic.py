"""Closed forms against integrals, stability in the tails, derivatives against finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from mipcash.acquisition.analytic import ConfidenceBound, LogEI, MaxValueEntropy, log_h, log_h_at

ACQUISITIONS = {
    "log-ei": LogEI(0.3),
    "ucb": ConfidenceBound(1.5),
    "mes": MaxValueEntropy(np.array([-0.3, -0.7, 0.1])),
}


@pytest.mark.parametrize("t", [-30.0, -5.0, -1.001, -0.999, 8.0])
def test_log_h_agrees_with_its_integral(t: float) -> None:
    # h(t) = int_0^inf s phi(t - s) ds, scaled by phi(t) so that the tail has digits
    scaled, _ = quad(lambda s: s * math.exp(t * s - 0.5 * s * s), 0.0, max(60.0, 2 * t), limit=200)
    assert log_h(np.array([t]))[0] == pytest.approx(norm.logpdf(t) + math.log(scaled), rel=1e-9, abs=1e-9)


def test_log_h_is_increasing_and_finite_everywhere() -> None:
    t = np.concatenate([-np.logspace(150, -3, 400), np.logspace(-3, 150, 400)])
    values = log_h(t)
    assert np.all(np.isfinite(values[np.abs(t) < 1e150]))
    assert np.all(np.diff(values) >= 0)
    edges = np.array([-1.0, -1e2, -1e5])  # where branches meet
    assert np.all(np.abs(log_h(edges * (1 + 1e-9)) - log_h(edges * (1 - 1e-9))) <= 1e-6 + 4e-9 * edges**2)
    near = np.abs(t) < 1e6
    assert all(log_h_at(v)[1] > 0 for v in t[near].tolist())
    assert [log_h_at(v)[0] for v in t[near].tolist()] == values[near].tolist()


@pytest.mark.parametrize("name", ACQUISITIONS)
@pytest.mark.parametrize(("mu", "sd"), [(0.5, 0.2), (2.0, 0.5)])
def test_slopes_agree_with_finite_differences(name: str, mu: float, sd: float) -> None:
    acquisition, step = ACQUISITIONS[name], 1e-6

    def value(m: float, s: float) -> float:
        return float(acquisition(np.array([m]), np.array([s]))[0])

    at, by_mu, by_sd = acquisition.slope(mu, sd)
    assert at == pytest.approx(value(mu, sd), rel=1e-12)
    assert by_mu == pytest.approx((value(mu + step, sd) - value(mu - step, sd)) / (2 * step), rel=1e-4, abs=1e-7)
    assert by_sd == pytest.approx((value(mu, sd + step) - value(mu, sd - step)) / (2 * step), rel=1e-4, abs=1e-7)


def test_max_value_entropy_is_the_entropy_lost_by_truncation() -> None:
    mu, sd, least = 0.2, 0.6, -0.4
    z = (least - mu) / sd
    mass = norm.sf(z)

    def surprise(f: float) -> float:
        log_density = norm.logpdf(f, mu, sd) - math.log(mass)
        return -math.exp(log_density) * log_density

    truncated, _ = quad(surprise, least, mu + 12 * sd)
    gain = norm.entropy(mu, sd) - truncated
    found = -MaxValueEntropy(np.array([least]))(np.array([mu]), np.array([sd]))[0]
    assert found == pytest.approx(gain, abs=1e-6)
