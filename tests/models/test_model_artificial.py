"""Model ``artificial``: the formula and the counts of the paper."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from mipcash.errors import ModelError
from mipcash.models import artificial

SAMPLES = artificial.space.sample(30, seed=0)


def by_hand(f: artificial.Objective, config: Mapping[str, Any]) -> float:
    """Compute the formula of the appendix term by term, with variances drawn as v e."""
    value = 0.0
    for module, algorithms in artificial.MODULES.items():
        algorithm = config[module]
        domains = algorithms[algorithm].domains
        theta = [config[f"{module}.{algorithm}.{name}"] / domain.high for name, domain in domains.items()]
        fixed = f.fixed[module, algorithm]
        weighted = sum(w * t for w, t in zip(fixed.weights, theta, strict=True)) if theta else fixed.weights[0]
        v = abs(weighted / (sum(theta) if theta else 1))
        value = max(abs(value + v * e) for e in fixed.draws)
    return value


def test_the_space_is_table_a2() -> None:
    sizes = [len(algorithms) for algorithms in artificial.MODULES.values()]
    assert sizes == [8, 11, 7, 11]
    assert math.prod(sizes) == 6776
    counts = [len(c.domains) for algorithms in artificial.MODULES.values() for c in algorithms.values()]
    assert (len(counts), sum(counts), counts.count(0)) == (37, 92, 9)
    assert len(artificial.space.parameters) == 4 + 92


def test_value() -> None:
    again, other = artificial.build(instance="0")[1], artificial.build(instance=1)[1]
    for config in SAMPLES:
        value = artificial.objective(config)
        assert again(config) == value != other(config)
        if all(artificial.unit(config, m).sum() or not len(artificial.unit(config, m)) for m in artificial.MODULES):
            assert value == pytest.approx(by_hand(artificial.objective, config), rel=1e-12)
        foreign = {p.label: 0.3 for p in artificial.space.parameters.values() if p.label not in config}
        assert artificial.objective(config | foreign) == value


def test_the_value_with_all_hyperparameters_at_zero() -> None:
    """Assert a value where the deviation has no limit. The model uses the limit along the diagonal."""
    fixed = artificial.objective.fixed["estimator", "decision_tree"]
    assert fixed.deviation(np.zeros(6)) == pytest.approx(fixed.deviation(np.full(6, 1e-9)))
    zero = artificial.Fixed(np.array([1.0, -1.0]), np.ones(10))
    assert zero.output(0.7, np.array([0.5, 0.5])) == 0.7  # the module passes on its input


def test_options() -> None:
    space, objective = artificial.build(order="yes")
    first = next(c for c in space.sample(20, seed=0) if len(set(c["order"])) == 3)
    turned = first | {"order": tuple(reversed(first["order"]))}
    assert space.is_legal(turned)
    assert objective(turned) != objective(first)
    outputs = artificial.build(limits="2")[1](SAMPLES[0])
    assert list(outputs) == ["loss", "g1", "g2"]
    assert outputs["loss"] == artificial.objective(SAMPLES[0])
    assert len(set(outputs.values())) == 3
    for option, value in (("instance", "first"), ("order", "maybe")):
        with pytest.raises(ModelError, match=option):
            artificial.build(**{option: value})
