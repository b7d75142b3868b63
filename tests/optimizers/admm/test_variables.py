"""z and theta: which is which, coordinates, metric, active sets, and the projection of liu2020, eq. 4."""

from __future__ import annotations

import numpy as np
import pytest

import mipcash as mc
from tests.optimizers.admm.spaces import parts, pipeline


def labels(space: mc.Space) -> list[str]:
    """Of the coordinates of theta."""
    domain, variables, _ = parts(space)
    tuned = [domain.program.groups[g].label for g in variables.tuned]
    spread = [name for name, table in zip(tuned, variables.tables, strict=True) for _ in range(table.shape[1])]
    return [*spread, *domain.scale.labels]


def test_modules_plain_and_deciding_categories_are_choices_and_the_rest_is_theta() -> None:
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
    assert [domain.program.groups[g].label for g in variables.choices] == ["plain", "module", "deciding"]
    assert labels(space) == ["module.m.hyper"] * 3 + ["module.n.two", "layers", "width", "below"]
    assert variables.metric.tolist() == [0.5, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0]
    assert variables.levels.tolist() == [2, 2, 2, 2, 3, 8, 0]
    m, off = [0, 0, 0], [0, 1, 2]
    assert variables.active(np.array(m)).tolist() == [True, True, True, False, True, True, True]
    assert variables.active(np.array(off)).tolist() == [False, False, False, True, True, True, False]


def test_two_categories_are_as_far_apart_as_two_ends() -> None:
    space = pipeline()
    domain, variables, _ = parts(space)
    a = {"scaler": "power", "scaler.power.how": "a", "model": "linear", "model.linear.c": 0.01}
    vectors = variables.theta(domain.encode([a, a | {"scaler.power.how": "c"}, a | {"model.linear.c": 10.0}]))
    squared = (vectors - vectors[0]) ** 2 @ variables.metric
    assert squared == pytest.approx([0.0, 1.0, 1.0])


def test_without_rules_the_projection_rounds_every_coordinate() -> None:
    space = mc.Space("box")
    space.integer("small", 0, 4)
    space.integer("log", 1, 16, log=True)
    space.integer("big", 0, 1000)
    space.ordinal("levels", ["s", "m", "l"])
    space.real("x", 0.0, 2.0)
    _, variables, project = parts(space)
    theta = np.array([0.6, 0.55, 0.74, 0.12345, 0.3])
    by_label = dict(zip(labels(space), theta, strict=True))
    found = project(np.zeros(0, dtype=np.int64), theta)
    assert found is not None
    assert found["small"] == round(4 * by_label["small"])
    assert found["log"] == min(range(1, 17), key=lambda v: abs(np.log(v) / np.log(16) - by_label["log"]))
    assert found["big"] == round(1000 * by_label["big"])
    assert found["levels"] == "sml"[round(2 * by_label["levels"])]
    assert found["x"] == pytest.approx(2 * by_label["x"])
    assert variables.rounded(theta)[variables.integral] == pytest.approx(
        variables.theta(parts(space)[0].encode([found]))[0][variables.integral]
    )
