"""Inequalities over tiny numbers, calls that are not repeated, and types of settings, for every optimizer or several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

import mipcash as mc
from mipcash.errors import SpaceError
from mipcash.optimizers.registry import optimizer_names


@pytest.mark.parametrize("optimizer", optimizer_names())
def test_inequalities_hold_as_python_evaluates_them(optimizer: str) -> None:
    space = mc.Space("tiny")
    x, y = space.real("x", 1e-9, 1e3, log=True), space.real("y", 1e-6, 1e6, log=True)
    space.rule("r", 1e6 * x <= y)
    method = mc.Method(optimizer, seconds_per_proposal=None)
    result = mc.minimize(lambda c: c["y"] + c["x"], space, 14, optimizer=method, progress=False)
    assert all(1e6 * t.config["x"] <= t.config["y"] for t in result.history)


@pytest.mark.parametrize("optimizer", ["cmes", "hybrid"])
@pytest.mark.parametrize("costs", [(1.0, 1.0), (1e-9, 1e9)])
def test_no_output_is_evaluated_twice_while_nothing_is_feasible(optimizer: str, costs: tuple[float, float]) -> None:
    space, calls = mc.Space("infeasible"), Counter[tuple[Any, ...]]()
    space.integer("a", 0, 5)
    space.categorical("b", ["u", "v", "w"])

    def called(output: str, value: float, config: Mapping[str, Any]) -> float:
        calls[(output, *config.values())] += 1
        return value

    outputs = {
        "loss": lambda c: called("loss", c["a"] + 1.0, c),
        "g": lambda c: called("g", 2.0 + abs(c["a"] - 3) + (c["b"] != "v"), c),
    }
    budget = mc.Budget(24, costs=dict(zip(outputs, costs, strict=True)))
    method = mc.Method(optimizer, seconds_per_proposal=None)
    mc.minimize(outputs, space, budget, optimizer=method, limits={"g": 1.5}, progress=False)
    assert set(calls.values()) == {1}
    assert len(calls) == 24


@pytest.mark.parametrize(
    ("optimizer", "settings", "message"),
    [
        ("mivabo", {"sizes": {"pairs": 5}}, "sizes takes FeatureSizes"),
        ("cmes", {"violation_probability": None}, "violation_probability must be a number, got None"),
        ("cmes", {"delta": "0.1"}, "delta must be a number, got '0.1'"),
        ("admmbo", {"factor": None}, "factor must be a number"),
        ("hybrid", {"warp": "off"}, "warp must be True or False, got 'off'"),
        ("mivabo", {"features": None}, "features must be a text, got None"),
    ],
)
def test_a_setting_of_another_type_is_refused_by_its_name(
    optimizer: str, settings: dict[str, Any], message: str
) -> None:
    space = mc.Space("s")
    space.integer("a", 0, 9)
    with pytest.raises(SpaceError, match=message):
        mc.Study(space, mc.Method(optimizer, settings=settings))
