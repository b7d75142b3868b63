"""Disjuncts whose indicator is fixed, or that are deactivated, against brute force."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunct, Disjunction

import mipcash as mc
from mipcash.errors import InfeasibleSpaceError

SIDE = range(6)


def make_model(xor: bool) -> Any:
    """Return a model with two alternatives, the second of which contains a choice between two."""
    model = pyo.ConcreteModel()
    model.x, model.y = pyo.Var(domain=pyo.Integers, bounds=(0, 5)), pyo.Var(domain=pyo.Integers, bounds=(0, 5))
    model.a, model.b = Disjunct(), Disjunct()
    model.a.sum = pyo.Constraint(expr=pyo.inequality(1, model.x + model.y, 2))
    model.b.difference = pyo.Constraint(expr=model.x - model.y >= 1)
    model.b.c, model.b.d = Disjunct(), Disjunct()
    model.b.c.low = pyo.Constraint(expr=model.y <= 1)
    model.b.d.high = pyo.Constraint(expr=model.y >= 3)
    model.b.inner = Disjunction(expr=[model.b.c, model.b.d], xor=xor)
    model.outer = Disjunction(expr=[model.a, model.b], xor=xor)
    return model


def legal(held: dict[str, int], xor: bool) -> list[tuple[int, int]]:
    """Return the pairs (x, y) that are legal for some values of the indicators, given the held ones."""

    def holds(x: int, y: int, on: dict[str, int]) -> bool:
        some = (lambda n: n == 1) if xor else (lambda n: n >= 1)
        inner = not on["b"] or some(on["c"] + on["d"])
        rules = {"a": 1 <= x + y <= 2, "b": x - y >= 1, "c": y <= 1 or not on["b"], "d": y >= 3 or not on["b"]}
        return some(on["a"] + on["b"]) and inner and all(rules[name] for name, value in on.items() if value)

    choices = [dict(zip("abcd", bits, strict=True)) for bits in itertools.product((0, 1), repeat=4)]
    fitting = [on for on in choices if all(on[name] == value for name, value in held.items())]
    return [(x, y) for x in SIDE for y in SIDE if any(holds(x, y, on) for on in fitting)]


CHANGES: dict[str, tuple[dict[str, int], Callable[[Any], None]]] = {
    "none": ({}, lambda m: None),
    "a off": ({"a": 0}, lambda m: m.a.indicator_var.fix(False)),
    "a on": ({"a": 1}, lambda m: m.a.indicator_var.fix(True)),
    "a off by its binary": ({"a": 0}, lambda m: m.a.binary_indicator_var.fix(0)),
    "a deactivated": ({"a": 0}, lambda m: m.a.deactivate()),
    "b off": ({"b": 0, "c": 0, "d": 0}, lambda m: m.b.indicator_var.fix(False)),
    "b on": ({"b": 1}, lambda m: m.b.indicator_var.fix(True)),
    "c off": ({"c": 0}, lambda m: m.b.c.indicator_var.fix(False)),
    "b and c on": (
        {"b": 1, "c": 1},
        lambda m: (m.b.indicator_var.fix(True), m.b.c.indicator_var.fix(True))[0],
    ),
    "d deactivated": ({"d": 0}, lambda m: m.b.d.deactivate()),
}


@pytest.mark.parametrize(("name", "later", "xor"), [*((n, True, True) for n in CHANGES), ("a on", False, False)])
def test_fixed_indicators_agree_with_brute_force(name: str, later: bool, xor: bool) -> None:
    held, change = CHANGES[name]
    model = make_model(xor)
    if not later:
        change(model)
    space = mc.Space.from_pyomo(model)
    if later:
        assert space.is_legal({"x": 1, "y": 0})
        change(model)
    expected = legal(held, xor)
    assert [(x, y) for x in SIDE for y in SIDE if space.is_legal({"x": x, "y": y})] == expected
    assert space.count() == len(expected)
    best = space.optimum(space["x"] + 2 * space["y"], "maximize")
    assert best.value == max(x + 2 * y for x, y in expected)


def test_a_model_with_all_alternatives_off_is_infeasible() -> None:
    model = make_model(True)
    model.a.indicator_var.fix(False)
    model.b.indicator_var.fix(False)
    space = mc.Space.from_pyomo(model)
    assert not space.is_legal({"x": 1, "y": 0})
    with pytest.raises(InfeasibleSpaceError):
        space.sample()
