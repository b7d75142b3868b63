"""Matern process: values against scikit-learn, gradients against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from mipcash.methods.admm.matern import MaternProcess, negative_evidence

RNG = np.random.default_rng(0)
X = RNG.random((12, 3))
Y = np.sin(5 * X[:, 0]) + X[:, 1] ** 2
THETA = np.log([1.7, 0.01, 0.4, 0.8, 2.0])


def sklearn(noise: np.ndarray | float) -> GaussianProcessRegressor:
    kernel = ConstantKernel(1.7) * Matern([0.4, 0.8, 2.0], nu=2.5)
    return GaussianProcessRegressor(kernel, alpha=noise, optimizer=None)


def test_the_evidence_and_its_gradient() -> None:
    y, v = (Y - Y.mean()) / Y.std(), np.linspace(0.0, 0.1, 12)
    value, slope = negative_evidence(THETA, X, y, v)
    its = sklearn(0.01 + v).fit(X, y).log_marginal_likelihood_value_
    assert value + 6 * np.log(2 * np.pi) == pytest.approx(-its, rel=1e-9)
    for j in range(5):
        step = 1e-5 * np.eye(5)[j]
        by_hand = (negative_evidence(THETA + step, X, y, v)[0] - negative_evidence(THETA - step, X, y, v)[0]) / 2e-5
        assert slope[j] == pytest.approx(by_hand, rel=1e-5, abs=1e-7)


def test_predictions_and_their_gradients() -> None:
    process = MaternProcess.fit(X, Y, start=THETA, iterations=0)
    regressor = sklearn(0.01).fit(X, process.y)
    at = RNG.random((5, 3))
    mean, sd = process.predict(at)
    its_mean, its_sd = regressor.predict(at, return_std=True)
    assert mean == pytest.approx(its_mean, rel=1e-6)
    assert sd == pytest.approx(its_sd, rel=1e-6)
    for x, m, s in zip(at, mean, sd, strict=True):
        value, deviation, by_mean, by_deviation = process.slope(x)
        assert (value, deviation) == pytest.approx((m, s), rel=1e-8)
        steps = 1e-6 * np.eye(3)
        (up, up_sd), (down, down_sd) = process.predict(x + steps), process.predict(x - steps)
        assert by_mean == pytest.approx((up - down) / 2e-6, rel=1e-4, abs=1e-7)
        assert by_deviation == pytest.approx((up_sd - down_sd) / 2e-6, rel=1e-4, abs=1e-7)


def test_a_fit_finds_the_relevant_inputs() -> None:
    rng = np.random.default_rng(1)
    x = rng.random((60, 6))
    y = np.sin(6 * x[:, 0]) + x[:, 1]
    process = MaternProcess.fit(x, y)
    assert process.lengths[:2].max() < process.lengths[2:].min()
    at = rng.random((50, 6))
    mean, _ = process.predict(at)
    error = process.shift + process.scale * mean - np.sin(6 * at[:, 0]) - at[:, 1]
    assert np.sqrt(np.mean(error**2)) < 0.1 * y.std()
    again = MaternProcess.fit(x, y, start=process.theta, iterations=3)
    assert again.theta == pytest.approx(process.theta, abs=0.2)


def test_pending_points_lower_only_deviations_and_equal_values_stay_finite() -> None:
    process = MaternProcess.fit(X, Y)
    at = RNG.random((4, 3))
    further = process.given(at[:2])
    assert further.predict(at)[0] == pytest.approx(process.predict(at)[0], abs=1e-4)
    assert (further.predict(at)[1][:2] < 0.5 * process.predict(at)[1][:2] + 0.05).all()
    assert process.given(at[:0]) is process
    for n in (1, 4):
        mean, sd = MaternProcess.fit(X[:n], np.full(n, 3.0)).predict(X)
        assert np.isfinite(mean).all()
        assert (sd > 0).all()
