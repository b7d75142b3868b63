"""Model ``synthetic``: the value is w' phi of Section 3.1."""

from __future__ import annotations

import math

import pytest

from mipcash.errors import ModelError
from mipcash.models import synthetic


def by_hand(function: synthetic.Function, config: dict[str, float]) -> float:
    """Compute w' phi feature by feature."""
    bits = [config[f"b{i}"] for i in range(1, 9)]
    reals = [config[f"x{j}"] for j in range(1, 9)]
    discrete = [1.0, *bits, *(bits[i] * bits[j] for i in range(8) for j in range(i + 1, 8))]
    angles = [
        sum(v * x for v, x in zip(frequency, reals, strict=True)) + phase
        for frequency, phase in zip(function.frequencies, function.phases, strict=True)
    ]
    continuous = [math.sqrt(2 / 16) * math.cos(angle) for angle in angles]
    features = [*discrete, *continuous, *(d * c for d in discrete for c in continuous)]
    assert len(features) == len(function.weights) == 645
    return sum(w * f for w, f in zip(function.weights, features, strict=True))


@pytest.mark.parametrize("weights", ["gaussian", "laplace"])
def test_value(weights: str) -> None:
    space, function = synthetic.build(seed=3, weights=weights)
    for config in space.sample(10, seed=0):
        assert function(config) == pytest.approx(by_hand(function, config), abs=1e-9)
        assert synthetic.build(seed="0")[1](config) == synthetic.objective(config) != function(config)
    kept = function.weights[function.weights != 0]
    if weights == "laplace":
        assert abs(kept).min() >= 10
        assert (kept < 0).any()
        assert 0.3 < len(kept) / len(function.weights) < 0.45  # exp(-1) = 0.37


def test_options() -> None:
    space, _ = synthetic.build(cardinality="2")
    samples = space.sample(40, seed=0)
    assert {sum(c[f"b{i}"] for i in range(1, 9)) for c in samples} <= {0, 1, 2}
    three = dict(samples[0], **{f"b{i}": int(i <= 3) for i in range(1, 9)})
    assert not space.is_legal(three)
    assert synthetic.space.is_legal(three)
    assert not synthetic.build(cardinality="none")[0].rules
    for options, message in (({"weights": "cauchy"}, "cauchy"), ({"cardinality": "few"}, "cardinality")):
        with pytest.raises(ModelError, match=message):
            synthetic.build(**options)
