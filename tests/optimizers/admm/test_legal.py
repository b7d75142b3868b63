"""z and theta: which is which, and delta-min and z-min under rules against all legal configurations of small spaces."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.methods.admm.legal import LegalChoices, Projection
from mipcash.methods.admm.variables import Variables
from mipcash.space.domain import Domain
from tests.optimizers.admm.spaces import pipeline


def parts(space: mc.Space) -> tuple[Domain, Variables, Projection]:
    domain = Domain.of(space)
    variables = Variables.of(domain)
    return domain, variables, Projection(domain, variables)


def oracle(space: mc.Space) -> tuple[Variables, LegalChoices]:
    domain, variables, project = parts(space)
    return variables, LegalChoices(domain, variables, project, np.full(variables.size, 0.5))


def drawn(seed: int) -> mc.Space:
    """A small discrete space: modules, plain categories, integers, an order sometimes, and rules that bind them."""
    rng = np.random.default_rng(seed)
    space = mc.Space(f"drawn {seed}")
    first = space.module("first", {"a": {"n": mc.Integer(0, 3)}, "b": {"k": mc.Categorical(list("xyz"))}, "c": {}})
    second = space.categorical("second", ["p", "q", "r"][: int(rng.integers(2, 4))])
    m, n = space.integer("m", 0, 3), space.ordinal("n", [1, 2, 4])
    if rng.random() < 0.5:
        other = space.module("other", {"u": {}, "v": {"w": mc.Integer(1, 2)}}, when=second["p"])
        if rng.random() < 0.5:
            space.rule("u needs c", other["u"] <= first["c"])
    if rng.random() < 0.5:
        space.ordering("order", [first, second])
    space.rule("sum", m + n + first["a"]["n"] <= int(rng.integers(3, 7)))
    space.rule("apart", first["a"] + second["q"] <= 1)
    if rng.random() < 0.5:
        space.rule("equal", m >= 2, when=first["b"])
    return space


def every(space: mc.Space) -> list[dict[str, Any]]:
    """All legal configurations of a drawn space, by trying all that is active."""
    found: list[dict[str, Any]] = [{}]
    for name, parameter in space.parameters.items():
        domain = parameter.domain
        values = list(domain.values) if hasattr(domain, "values") else list(itertools.permutations(domain.members))
        found = [
            c | {name: v} if on else c for c in found for on in (_is_active(name, c),) for v in (values if on else [0])
        ]
    return [config for config in found if space.is_legal(config)]


def _is_active(name: str, config: dict[str, Any]) -> bool:
    module, *rest = name.split(".")
    return config.get(module) == rest[0] if rest else name != "other" or config["second"] == "p"


@pytest.mark.parametrize("seed", [0, 4])
def test_the_projection_is_the_nearest_legal_point_with_z_fixed(seed: int) -> None:
    space = drawn(seed)
    domain, variables, project = parts(space)
    configs = every(space)
    points = domain.encode(configs)
    z, theta, shown = variables.z(points), variables.theta(points), variables.shown(points)
    rng = np.random.default_rng(seed)
    for choice in np.unique(z, axis=0):
        same = np.all(z == choice, axis=1)
        for _ in range(2):
            wanted = rng.random(variables.size)
            apart = np.sum(np.where(shown, (theta - wanted) ** 2, 0.0) * variables.metric, axis=1)
            found = project(choice, wanted)
            assert found is not None
            assert space.validate(found) == []
            assert apart[configs.index(found)] == pytest.approx(apart[same].min())
            assert same[configs.index(found)]


@pytest.mark.parametrize("seed", [0, 4])
def test_the_argmax_is_the_best_choice_that_some_legal_configuration_has(seed: int) -> None:
    space = drawn(seed)
    variables, choices = oracle(space)
    points = choices.domain.encode(every(space))
    legal = np.unique(variables.z(points), axis=0)
    starts = np.concatenate([[0], np.cumsum(variables.sizes)[:-1]])
    rng = np.random.default_rng(seed)
    for _ in range(4):
        weights = rng.random(int(variables.sizes.sum()))
        found = choices.argmax(weights)
        assert weights[starts + found].sum() == pytest.approx(weights[starts + legal].sum(axis=1).max())
        assert found.tolist() in legal.tolist()
    all_of_them = choices.every(500)
    assert all_of_them is not None
    assert sorted(all_of_them.tolist()) == legal.tolist()
    assert choices.every(len(legal) - 1) is None


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


def test_modules_orders_plain_and_deciding_categories_are_choices_and_the_rest_is_theta() -> None:
    space = mc.Space("kinds")
    space.categorical("plain", ["a", "b"])
    module = space.module(
        "module", {"m": {"hyper": mc.Categorical(list("xyz"))}, "n": {"two": mc.Categorical(list("xy"))}}
    )
    deciding = space.categorical("deciding", ["s", "t"], when=module["m"])
    space.real("below", 0.0, 1.0, when=deciding["s"])
    layers = space.integer("layers", 0, 2)
    space.integer("width", 1, 8, when=layers.is_(1, 2))
    domain, variables, _ = parts(space)
    groups = domain.program.groups
    assert [groups[g].label for g in variables.choices] == ["plain", "module", "deciding"]
    tuned = zip(variables.tuned, variables.tables, strict=True)
    labels = [*(groups[g].label for g, table in tuned for _ in range(table.shape[1])), *domain.scale.labels]
    assert labels == ["module.m.hyper"] * 3 + ["module.n.two", "layers", "width", "below"]
    assert variables.metric.tolist() == [0.5, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0]
    assert variables.levels.tolist() == [2, 2, 2, 2, 3, 8, 0]
    m, off = [0, 0, 0], [0, 1, 2]
    assert variables.active(np.array(m)).tolist() == [True, True, True, False, True, True, True]
    assert variables.active(np.array(off)).tolist() == [False, False, False, True, True, True, False]
    domain, variables, project = parts(pipeline(order=True))
    groups = domain.program.groups
    assert [groups[g].label for g in variables.choices] == ["scaler", "model", "order:scaler", "order:model"]
    bins, linear, free = 1, 1, np.full(variables.size, 0.5)
    config = project(np.array([0, 0, 1, 0]), free)
    assert config is not None
    assert config["order"] == ("model", "scaler")
    assert project(np.array([bins, linear, 0, 1]), free) is None  # a rule forbids both
