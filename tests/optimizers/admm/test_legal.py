"""delta-min and z-min under rules, against all legal configurations of small spaces."""

from __future__ import annotations

import numpy as np
import pytest

import mipcash as mc
from tests.optimizers.admm.spaces import drawn, every, oracle, parts, pipeline

SEEDS = range(5)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_projection_is_the_nearest_legal_point_with_z_fixed(seed: int) -> None:
    space = drawn(seed)
    domain, variables, project = parts(space)
    configs = every(space)
    points = domain.encode(configs)
    z, theta, shown = variables.z(points), variables.theta(points), variables.shown(points)
    rng = np.random.default_rng(seed)
    for choice in np.unique(z, axis=0):
        same = np.all(z == choice, axis=1)
        for _ in range(4):
            wanted = rng.random(variables.size)
            apart = np.sum(np.where(shown, (theta - wanted) ** 2, 0.0) * variables.metric, axis=1)
            found = project(choice, wanted)
            assert found is not None
            assert space.validate(found) == []
            assert apart[configs.index(found)] == pytest.approx(apart[same].min())
            assert same[configs.index(found)]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_argmax_is_the_best_choice_that_some_legal_configuration_has(seed: int) -> None:
    space = drawn(seed)
    variables, choices = oracle(space)
    points = choices.domain.encode(every(space))
    legal = np.unique(variables.z(points), axis=0)
    starts = np.concatenate([[0], np.cumsum(variables.sizes)[:-1]])
    rng = np.random.default_rng(seed)
    for _ in range(6):
        weights = rng.random(int(variables.sizes.sum()))
        found = choices.argmax(weights)
        assert weights[starts + found].sum() == pytest.approx(weights[starts + legal].sum(axis=1).max())
        assert found.tolist() in legal.tolist()
    all_of_them = choices.every(500)
    assert all_of_them is not None
    assert sorted(all_of_them.tolist()) == legal.tolist()
    assert choices.every(len(legal) - 1) is None


def test_a_choice_that_no_configuration_has_is_told() -> None:
    _, variables, project = parts(pipeline())
    bins, linear = 1, 1
    assert project(np.array([bins, linear]), np.full(variables.size, 0.5)) is None


def test_numbers_in_rules_move_and_others_stay() -> None:
    space = mc.Space("numbers")
    kind = space.categorical("kind", ["a", "b"])
    x, y = space.real("x", 0.0, 1.0), space.real("y", 0.0, 1.0)
    n = space.integer("n", 0, 200)
    space.real("free", 1e-3, 1.0, log=True)
    space.rule("mixture", x + y + n / 200 == 1.5 - 0.5 * kind["a"])
    *_, project = parts(space)
    wanted = np.array([0.9, 0.8, 0.105, 0.25])
    found = project(np.array([0]), wanted)
    assert found is not None
    assert space.validate(found) == []
    assert found["kind"] == "a"
    moved = abs(found["x"] - 0.9) + abs(found["y"] - 0.8) + abs(found["n"] / 200 - 0.105)
    assert moved == pytest.approx(0.805, abs=6e-3)  # x + y + n / 200 was 1.805, the step of n 0.005
    assert found["free"] == pytest.approx(1e-3**0.75)


def test_orders_and_conditional_modules_are_choices() -> None:
    domain, variables, project = parts(pipeline(order=True))
    groups = [domain.program.groups[g].label for g in variables.choices]
    assert groups == ["scaler", "model", "order:scaler", "order:model"]
    config = project(np.array([0, 0, 1, 0]), np.full(variables.size, 0.5))
    assert config is not None
    assert config["order"] == ("model", "scaler")
