"""Variables z and theta of ADMM, and delta-min and z-min under rules against the enumeration of small spaces."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mipcash as mc
from mipcash.methods.admm.legal import Projection
from mipcash.methods.admm.variables import Variables
from mipcash.space.domain import Domain
from tests.optimizers.admm.test_admm import pipeline


def parts(space: mc.Space) -> tuple[Domain, Variables, Projection]:
    domain = Domain.of(space)
    variables = Variables.of(domain)
    return domain, variables, Projection(domain, variables)


def test_both_subproblems_agree_with_the_enumeration_of_legal_configurations() -> None:
    """The projection is the nearest legal point with z fixed. The argmax is the best legal choice."""
    space = mc.Space("small")
    first = space.module("first", {"a": {"n": mc.Integer(0, 3)}, "b": {"k": mc.Categorical(list("xyz"))}, "c": {}})
    second, m = space.categorical("second", list("pqr")), space.integer("m", 0, 3)
    order = space.ordering("order", [first, second])
    space.rule("sum", m + first["a"]["n"] + second["p"] <= 4)
    space.rule("apart", first["a"] + second["q"] <= 1)
    space.rule("scale first", order.position(first) <= order.position(second) + first["b"])
    space.rule("equal", m >= 2, when=first["b"])
    inner = [("a", {"first.a.n": n}) for n in range(4)] + [("b", {"first.b.k": k}) for k in "xyz"] + [("c", {})]
    configs = [
        {"first": module, **own, "second": plain, "m": m, "order": order}
        for module, own in inner
        for plain, m, order in itertools.product("pqr", range(4), itertools.permutations(("first", "second")))
    ]
    configs = [c for c in configs if space.is_legal(c)]
    domain, variables, project = parts(space)
    points, rng = domain.encode(configs), np.random.default_rng(0)
    z, theta, shown = variables.z(points), variables.theta(points), variables.shown(points)
    legal = np.unique(z, axis=0)
    for choice in legal:
        same, wanted = np.all(z == choice, axis=1), rng.random(variables.size)
        apart = np.sum(np.where(shown, (theta - wanted) ** 2, 0.0) * variables.metric, axis=1)
        found = project(choice, wanted)
        assert found is not None
        assert apart[configs.index(found)] == pytest.approx(apart[same].min())
        assert same[configs.index(found)]
    starts = np.concatenate([[0], np.cumsum(variables.sizes)[:-1]])
    for _ in range(6):
        weights = rng.random(int(variables.sizes.sum()))
        best = project.argmax(weights, np.full(variables.size, 0.5))
        assert weights[starts + best].sum() == pytest.approx(weights[starts + legal].sum(axis=1).max())
        assert best.tolist() in legal.tolist()


def test_the_projection_moves_only_the_numbers_in_rules() -> None:
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
    assert moved == pytest.approx(0.805, abs=6e-3)  # x + y + n / 200 was 1.805, and the step of n is 0.005
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
    assert project(np.array([bins, linear, 0, 1]), free) is None  # a rule forbids bins with linear
