"""artificial: the formula, the counts of the paper, and the five properties that it claims, with where they do not hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from mipcash.errors import ModelError
from mipcash.models import artificial

SAMPLES = artificial.space.sample(60, seed=0)
FINE = {"scaler": "robust", "transformer": "kernel_pca", "selector": "fpr", "estimator": "decision_tree"}


def by_hand(f: artificial.Objective, config: Mapping[str, Any]) -> float:
    """The list of the appendix, one line after the other, with variances drawn as v e."""
    value = 0.0
    for module in artificial.MODULES:
        algorithm = config[module]
        prefix = f"{module}.{algorithm}."
        theta = [
            config[prefix + name] / domain.high
            for name, domain in artificial.MODULES[module][algorithm].domains.items()
        ]
        fixed = f.fixed[module, algorithm]
        weighted = sum(w * t for w, t in zip(fixed.weights, theta, strict=True)) if theta else fixed.weights[0]
        v = abs(weighted / (sum(theta) if theta else 1))
        value = max(abs(value + v * e) for e in fixed.draws)
    return value


def chosen(algorithms: Mapping[str, str], value: Callable[[str, float], float]) -> dict[str, Any]:
    """A configuration with these algorithms; ``value(name, high)`` gives their hyperparameters."""
    config: dict[str, Any] = dict(algorithms)
    for module, algorithm in algorithms.items():
        for name, domain in artificial.MODULES[module][algorithm].domains.items():
            config[f"{module}.{algorithm}.{name}"] = value(name, domain.high)
    return config


def test_the_space_is_table_a2() -> None:
    sizes = [len(algorithms) for algorithms in artificial.MODULES.values()]
    assert sizes == [8, 11, 7, 11]
    assert math.prod(sizes) == 6776
    counts = [c for algorithms in artificial.MODULES.values() for c in algorithms.values()]
    assert len(counts) == 37
    assert sum(len(c.domains) for c in counts) == 92
    assert sum(not c.domains for c in counts) == 9
    assert len(artificial.space.parameters) == 4 + 92


def test_value() -> None:
    for config in SAMPLES:
        if all(artificial.unit(config, m).sum() or not len(artificial.unit(config, m)) for m in artificial.MODULES):
            assert artificial.objective(config) == pytest.approx(by_hand(artificial.objective, config), rel=1e-12)


def test_one_pipeline_has_one_value() -> None:
    again = artificial.build(instance="0")[1]
    assert [again(c) for c in SAMPLES] == [artificial.objective(c) for c in reversed(SAMPLES)][::-1]
    other = artificial.build(instance=1)[1]
    assert all(other(c) != artificial.objective(c) for c in SAMPLES)


def test_it_is_not_convex_and_jumps_between_algorithms() -> None:
    rng = np.random.default_rng(0)
    above = 0
    for _ in range(200):
        low, high = (chosen(FINE, lambda name, high: rng.random() if name.startswith("c") else 0) for _ in range(2))
        middle = {n: v if isinstance(v, str) else (v + high[n]) / 2 for n, v in low.items()}
        ends = artificial.objective(low), artificial.objective(high)
        above += artificial.objective(middle) > max(ends)
    assert above > 0  # a convex function lies below its chords
    half = chosen(FINE, lambda name, high: 0.5 * high if name.startswith("c") else high // 2)
    assert len({artificial.objective(half | {"scaler": a}) for a in ("none", "normalizer", "minmax", "standard")}) == 4


def test_only_the_hyperparameters_of_what_is_chosen_count() -> None:
    for config in SAMPLES[:10]:
        active = set(config)
        foreign = {p.label: 0.3 for p in artificial.space.parameters.values() if p.label not in active}
        assert artificial.objective(config | foreign) == artificial.objective(config)


def test_a_hyperparameter_of_its_own_does_not_count() -> None:
    """Where the text breaks: w theta / theta is w, for the algorithms with one hyperparameter."""
    alone = chosen(FINE, lambda name, high: 1)
    assert artificial.objective(alone | {"selector.fpr.c1": 0.1}) == pytest.approx(
        artificial.objective(alone), rel=1e-12
    )
    assert artificial.objective(alone | {"scaler.robust.c1": 0.1}) != artificial.objective(alone)


def test_small_changes_are_small_away_from_zero() -> None:
    for config in SAMPLES:
        reals = [n for n in config if n.rpartition(".")[2].startswith("c") and n.count(".") == 2]
        near = config | {n: min(1.0, config[n] + 1e-7) for n in reals}
        if all(
            artificial.unit(config, m).sum() > 0.01 or not len(artificial.unit(config, m)) for m in artificial.MODULES
        ):
            assert artificial.objective(near) == pytest.approx(artificial.objective(config), abs=1e-3)


def test_small_changes_are_not_small_at_zero() -> None:
    """Where the text breaks: v has no limit at theta = 0; along the diagonal it has the one that is taken."""
    fixed = artificial.objective.fixed["estimator", "decision_tree"]
    ends = {round(fixed.deviation(1e-9 * np.eye(6)[k]), 12) for k in range(6)}
    assert ends == {round(abs(float(w)), 12) for w in fixed.weights}
    assert fixed.deviation(np.zeros(6)) == pytest.approx(fixed.deviation(np.full(6, 1e-9)))
    assert math.isfinite(artificial.objective(chosen(FINE, lambda name, high: 0)))


def test_a_module_depends_on_the_one_before() -> None:
    config = chosen(FINE, lambda name, high: 0.5 * high if name.startswith("c") else high)
    other = config | {"scaler": "standard"}
    assert all(
        a != b for a, b in zip(artificial.objective.outputs(config), artificial.objective.outputs(other), strict=True)
    )
    space, objective = artificial.build(order="yes")
    first = next(c for c in space.sample(20, seed=0) if len(set(c["order"])) == 3)
    turned = first | {"order": tuple(reversed(first["order"]))}
    assert objective(turned) != objective(first)
    assert space.is_legal(turned)


def test_zero_is_within_reach() -> None:
    """Weights of both signs: the deviation passes through 0, and a module hands on what it gets."""
    fixed = artificial.Fixed(np.array([1.0, -1.0]), np.ones(10))
    assert fixed.deviation(np.array([0.5, 0.5])) == 0.0
    assert fixed.output(0.7, np.array([0.5, 0.5])) == 0.7


def test_limits_have_outputs_of_their_own() -> None:
    _, objective = artificial.build(limits="2")
    config = SAMPLES[0]
    outputs = objective(config)
    assert list(outputs) == ["loss", "g1", "g2"]
    assert outputs["loss"] == artificial.objective(config)
    assert len(set(outputs.values())) == 3
    assert min(outputs.values()) > 0


def test_options_are_checked() -> None:
    with pytest.raises(ModelError, match="instance"):
        artificial.build(instance="first")
    with pytest.raises(ModelError, match="order"):
        artificial.build(order="maybe")
