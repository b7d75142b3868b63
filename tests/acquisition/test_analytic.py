"""Tests of closed-form acquisition functions: against integrals and Monte Carlo, in the tails, and their slopes."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from mipcash.acquisition.acquisition import SumAcquisition
from mipcash.acquisition.analytic import AnalyticAcquisition, LogEI, log_h, log_h_at, log_h_slope
from mipcash.acquisition.constrained import Interval, Limited, LogFeasibility, Truncation
from mipcash.surrogates.limit_scale import LimitScale
from tests.acquisition.test_mixed_search import Setting
from tests.spaces import ALL


@pytest.mark.parametrize("t", [-30.0, -5.0, -1.001, -0.999, 8.0])
def test_log_h_agrees_with_its_integral(t: float) -> None:
    # h(t) = int_0^inf s phi(t - s) ds, divided by phi(t) to keep precision in the tail
    scaled, _ = quad(lambda s: s * math.exp(t * s - 0.5 * s * s), 0.0, max(60.0, 2 * t), limit=200)
    assert log_h(np.array([t]))[0] == pytest.approx(norm.logpdf(t) + math.log(scaled), rel=1e-9, abs=1e-9)


def test_log_h_is_increasing_and_finite_everywhere() -> None:
    t = np.concatenate([-np.logspace(150, -3, 400), np.logspace(-3, 150, 400)])
    values = log_h(t)
    assert np.all(np.isfinite(values[np.abs(t) < 1e150]))
    assert np.all(np.diff(values) >= 0)
    edges = np.array([-1.0, -1e2, -1e5])  # boundaries between the branches of log_h
    assert np.all(np.abs(log_h(edges * (1 + 1e-9)) - log_h(edges * (1 - 1e-9))) <= 1e-6 + 4e-9 * edges**2)
    near = np.abs(t) < 1e6
    for v in (-1e3, -1e6, -1e7, -1e9):  # the slope is -t - 2/t + O(t^-3)
        assert log_h_at(v)[1] == pytest.approx(-v - 2 / v, rel=1e-11)
    assert all(log_h_at(v)[1] > 0 for v in t[near].tolist())
    assert [log_h_at(v)[0] for v in t[near].tolist()] == values[near].tolist()
    slopes = [log_h_at(v)[1] for v in t[near].tolist()]
    assert log_h_slope(t[near], values[near]) == pytest.approx(slopes, rel=1e-12)


# -- outcome constraints -----------------------------------------------------------------------------------------------

INF = math.inf
INTERVALS = [Interval(-INF, 0.3), Interval(0.2, INF), Interval(-0.1, 0.4), Interval(0.1, 0.1 + 1e-3)]


@pytest.mark.parametrize("at", [-2e3, -1e4 - 1.0, -2e4, -1e6])
def test_a_narrow_interval_far_out_has_its_probability_and_density(at: float) -> None:
    """The difference of log Phi at its ends has no digits left; compare with sixty digits."""
    width = 1e-3 / abs(at)
    with mpmath.workdps(60):
        u, root = mpmath.mpf(at), mpmath.sqrt(2)
        p = (mpmath.erfc(-u / root) - mpmath.erfc(-(u - mpmath.mpf(width)) / root)) / 2
        log, density = float(mpmath.log(p)), float(mpmath.npdf(u) / p)
    found = Truncation.between(np.array([at - width]), np.array([at]), np.array([width]))
    assert found.log[0] == pytest.approx(log, rel=1e-12)
    assert found.at_high[0] == pytest.approx(density, rel=1e-5 if at > -1e4 else 1e-8)


@pytest.mark.parametrize("interval", INTERVALS)
@given(mu=st.floats(-8.0, 8.0), sd=st.floats(1e-2, 10.0), scale=st.sampled_from([1.0, 1e3, 1e7]))
@settings(max_examples=30, deadline=None)
def test_interval_slopes_agree_with_finite_differences_far_out(
    interval: Interval, mu: float, sd: float, scale: float
) -> None:
    mu *= scale

    def log(m: float, s: float) -> float:
        return float(interval.log_probability(np.array([m]), np.array([s]))[0])

    value, by_mu, by_sd = interval.slope(mu, sd)
    assert math.isfinite(value)
    assert value == pytest.approx(log(mu, sd), rel=1e-12, abs=1e-300)
    assert value <= 0.0
    h, k = 1e-6 * max(1.0, abs(mu)) * sd, 1e-6 * sd
    assert by_mu == pytest.approx((log(mu + h, sd) - log(mu - h, sd)) / (2 * h), rel=2e-3, abs=1e-4 / sd)
    assert by_sd == pytest.approx((log(mu, sd + k) - log(mu, sd - k)) / (2 * k), rel=2e-3, abs=1e-3 / sd)


def test_constrained_expected_improvement_agrees_with_monte_carlo() -> None:
    """Compare with Monte Carlo over independent draws of the loss and the outputs at each point."""
    setting = Setting(ALL["conv_net"](), 3, LogEI(-0.5))
    posterior, points, rng = setting.acquisition.posterior, setting.points, np.random.default_rng(1)
    limited = [Limited(posterior, -INF, 0.2), Limited(posterior, -0.9, 0.8)]  # outputs share the posterior of the loss
    best = 0.4
    improvement = AnalyticAcquisition(posterior, LogEI(best))
    acquisition = SumAcquisition(improvement, LogFeasibility(limited))
    value = np.exp(-acquisition.values(points))
    mean, deviation = posterior.predict(points)
    draws = rng.normal(mean, deviation, size=(3, 40_000, len(points)))
    kept = (draws[1] <= 0.2) & (draws[2] >= -0.9) & (draws[2] <= 0.8)
    gain = np.maximum(best - draws[0], 0.0) * kept
    error = gain.std(axis=0) / math.sqrt(len(gain))
    assert np.all(np.abs(value - gain.mean(axis=0)) <= 5.0 * error + 1e-6)
    (equality,) = LogFeasibility([Limited(posterior, 0.25, 0.25)]).limits
    near, far = equality.interval.log_probability(np.array([0.3, 2.0]), np.array([0.5, 0.5]))
    assert -INF < far < near  # an equality still favours points near its value


ends = st.floats(-1e6, 1e6)


@given(ends, st.floats(0.0, 1e6), st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=12), st.integers(0, 2))
@settings(max_examples=30, deadline=None)
def test_the_limit_scale_preserves_order_and_feasibility(
    low: float, width: float, values: list[float], sides: int
) -> None:
    low, high = (low if sides != 0 else -INF), (low + width if sides != 1 else INF)
    y = np.array(sorted(values))
    scale = LimitScale.of(low, high, y)
    at_low, at_high = scale.ends
    on_scale = scale(y)
    assert np.all(np.diff(on_scale) >= 0.0)
    clear = np.minimum(np.abs(y - low), np.abs(y - high)) > 1e-9 * (1.0 + np.abs(y))
    legal, kept = (y >= low) & (y <= high), (on_scale >= at_low) & (on_scale <= at_high)
    assert np.array_equal(legal[clear], kept[clear])


def test_the_limit_scale_is_invariant_to_the_unit_of_the_output() -> None:
    values = np.array([0.5, 1.5, 2.0, 5.0, 1e9])
    one, larger = LimitScale.of(-INF, 1.0, values), LimitScale.of(-INF, 997.3, 997.3 * values)
    assert one(values) == pytest.approx(larger(997.3 * values))
    assert one(np.array([1.0 + one.unit]))[0] == pytest.approx(math.log(2.0))


def test_the_slope_of_the_limit_scale_agrees_with_finite_differences_and_outliers_leave_values_near_the_bound_apart() -> (
    None
):
    values = np.array([0.3, 0.8, 1.4, 2.5, 8.0, 70.0, 900.0])
    for low, high in ((-INF, 1.1), (0.5, INF), (0.5, 1.1)):
        scale = LimitScale.of(low, high, values)
        step = 1e-6 * values
        found = (scale(values + step) - scale(values - step)) / (2 * step)
        np.testing.assert_allclose(scale.slope(values), found, rtol=1e-6)
    near = np.append(values[:4], np.full(2, 1e90))
    on_scale = LimitScale.of(-INF, 1.1, near)(near)
    assert on_scale.max() < 10.0 < 100.0 < math.log(1e90)


def test_bounds_on_integer_outputs_move_by_a_half_except_for_binary_outputs() -> None:
    counts = np.array([1.0, 3.0, 4.0, 5.0])
    scale = LimitScale.of(2.0, 4.0, counts)
    assert (scale.low, scale.high) == (1.5, 4.5)
    assert (scale.violation(counts) > 0.0).tolist() == [True, False, False, True]
    assert LimitScale.of(-INF, 4.0, np.array([3.0, 4.5])).high == 4.0  # a fractional value was observed
    assert LimitScale.of(-INF, 0.0, np.array([-1.0, 1.0])).high == 0.0
    assert LimitScale.of(-INF, 4.2, counts).high == 4.2
    assert LimitScale.of(-INF, 4, counts).high == 4.5
