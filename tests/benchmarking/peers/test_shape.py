"""What other libraries are told of a space agrees with the space."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import mipcash as mc
from benchmarks.peers.problem import problems
from benchmarks.peers.shape import Shape


@pytest.mark.parametrize("name", ["vae-proxy", "speed-reducer", "gear-rules", "nvs09-rules", "xgboost-monks"])
def test_codes_go_back_and_forth(name: str) -> None:
    space = problems()[name].space()
    shape = Shape(space)
    for config in space.sample(10, seed=3):
        again = shape.decode(shape.codes(config))
        assert again.keys() == config.keys()
        assert space.is_legal(again)
        assert shape.active(shape.full(config)) == config
        assert not shape.violations(config)


def small() -> mc.Space:
    space = mc.Space("small")
    a, b = space.integer("a", 0, 3), space.integer("b", 0, 3)
    c, x = space.categorical("c", ["u", "v", "w"]), space.real("x", -1.0, 3.0)
    space.real("y", 0.1, 10.0, log=True, when=c["v"])
    space.rule("linear", a + 2 * b + x <= 6)
    space.rule("bilinear", a * b <= 4)
    space.rule("conditional", a <= 1, when=c["w"])
    return space


def test_linear_rules_and_forbidden_values() -> None:
    space = small()
    shape = Shape(space)
    (linear,) = shape.linear_rules()
    rng = np.random.default_rng(0)
    for _ in range(50):
        config = {d.name: d.draw(rng) for d in shape.dimensions}
        codes = {d.name: d.code(config[d.name]) for d in shape.dimensions}
        body = linear.constant + sum(s * codes[n] for n, s in linear.slopes.items())
        assert body == pytest.approx(config["a"] + 2 * config["b"] + config["x"])
    assert linear.upper == 6
    forbidden = dict(shape.forbidden())
    assert set(forbidden) == {"bilinear", "conditional"}
    assert {(f["a"], f["b"]) for f in forbidden["bilinear"]} == {
        (a, b) for a, b in product(range(4), repeat=2) if a * b > 4
    }
    assert {(f["a"], f["c"]) for f in forbidden["conditional"]} == {(2, "w"), (3, "w")}


def test_violations_are_measured() -> None:
    shape = Shape(small())
    config = {"a": 3, "b": 3, "c": "w", "x": 3.0}
    found = shape.violations(config)
    assert set(found) == {"linear", "bilinear", "conditional"}
    assert found["linear"] == pytest.approx(6 / 13)
    assert found["conditional"] == pytest.approx(2 / 3)
    assert "y" not in shape.active({**config, "y": 1.0})
    assert shape.dimensions[4].parents == (("c", ("v",)),)
