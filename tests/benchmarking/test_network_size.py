"""The network under a size limit: its costs are counted, its training is that of a network, and it is the same at every call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.limits.problems import network as size

CONVOLUTION: dict[str, Any] = {
    "first": "convolution",
    "kernel": 4,
    "stride": 2,
    "channels": 3,
    "layers": 1,
    "width_1": 8,
    "activation": "tanh",
    "optimizer": "adam",
    "rate": 0.03,
    "decay": 1e-5,
}
PIXELS: dict[str, Any] = {
    "first": "pixels",
    "layers": 2,
    "width_1": 12,
    "width_2": 6,
    "activation": "leaky",
    "optimizer": "sgd",
    "rate": 0.1,
    "momentum": 0.9,
    "decay": 1e-4,
}


@pytest.mark.parametrize("config", [CONVOLUTION, PIXELS])
def test_parameters_are_those_of_the_network(config: dict[str, Any]) -> None:
    assert size.space().validate(config) == []
    net = size.Net(config, np.random.default_rng(0))
    assert size.cost(config)["parameters"] == sum(w.size for w in net.weights)


def test_multiply_adds_are_counted_window_by_window() -> None:
    # 3 x 3 windows of 4 x 4 pixels times 3 channels; 27 features to 8, 8 to 10
    assert size.cost(CONVOLUTION) == {"parameters": 51 + 28 * 8 + 90, "multiply_adds": 9 * 16 * 3 + 27 * 8 + 80}


@pytest.mark.parametrize("config", [CONVOLUTION, PIXELS])
def test_gradients_are_those_of_the_cross_entropy(config: dict[str, Any]) -> None:
    images, classes, _, _ = size.digits()
    net, x, step = size.Net(config, np.random.default_rng(1)), size.inputs(config, images[:7]), 1e-6
    for w, gradient in zip(net.weights, net.gradients(x, classes[:7]), strict=True):
        for at in list(np.ndindex(w.shape))[::17]:
            values = []
            for change in (step, -2.0 * step):
                w[at] += change
                log = size.log_softmax(net.forward(x)[-1])
                values.append(-float(np.mean(log[np.arange(7), classes[:7]])))
            w[at] += step
            assert gradient[at] == pytest.approx((values[0] - values[1]) / (2.0 * step), rel=1e-4, abs=1e-7)


def test_it_learns_and_is_the_same_at_every_call() -> None:
    for config in (CONVOLUTION, PIXELS):
        values = size.objective(config)
        assert values["error"] < 0.3
        assert values["loss"] < 1.0
        assert size.objective(config) == values
    wild = size.objective(PIXELS | {"rate": 0.5, "momentum": 0.95})
    assert np.isfinite(wild["loss"])


def test_some_configurations_keep_the_limits_and_most_do_not() -> None:
    space = size.space()
    costs = [size.cost(config) for config in space.sample(300, seed=0)]
    kept = [all(cost[name] <= most for name, most in size.LIMITS.items()) for cost in costs]
    assert 0.02 < np.mean(kept) < 0.2
    assert set(size.LIMITS) <= set(size.objective(CONVOLUTION))


def test_the_best_that_is_known() -> None:
    assert size.space().is_legal(size.BEST)
    assert all(size.cost(size.BEST)[name] <= most for name, most in size.LIMITS.items())
    assert size.objective(size.BEST)["loss"] == pytest.approx(0.1547, abs=0.005)
