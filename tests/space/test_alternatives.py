"""Parameters that are active where one of several conditions holds: ``when=a["x"] | b.is_(2)``."""

from __future__ import annotations

import itertools
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.errors import SpaceError
from mipcash.space.compiled import compiled
from tests.named import installed
from tests.spaces import alternatives


def test_optimum_nearest_configuration_and_description_of_a_copy() -> None:
    space = pickle.loads(pickle.dumps(alternatives()))
    said = "when (kind is 'x' or depth is 2) and (kind is 'y' or norm is 'l1' or depth is 0)"
    assert space["rate"].described().endswith(said)
    # with the size inactive, norm l1 adds 1 and the rate adds at most 1.3 - 2 / 4 with depth 2
    best = space.optimum(space["rate"] + space["norm"]["l1"] + 100 * (1 - space["size"].is_active()), "max")
    assert best.status == "optimal"
    assert (best.config["kind"], best.config["depth"], best.config["norm"]) == ("x", 2, "l1")
    assert best.value == pytest.approx(100 + 1 + 0.8)
    near = space.nearest({"kind": "z", "depth": 0, "rate": 0.3, "size": 7, "free": 0.1})
    assert near == {"kind": "z", "depth": 0, "size": 7, "free": 0.1}


@pytest.mark.parametrize("optimizer", installed("hybrid", "mivabo"))
def test_proposals_are_legal_and_their_bounds_hold(optimizer: str) -> None:
    space, options = alternatives(), {"samples": 1, "n_initial": 2}
    if optimizer == "mivabo":
        options = {"n_initial": 2}

    def loss(config: dict[str, Any]) -> float:
        rate = (config.get("rate", 1.0) - 0.4) ** 2
        return float(rate + config["depth"] / 10 + abs(config.get("size", 1) - 77) / 200 + (config["free"] - 0.2) ** 2)

    result = mc.minimize(loss, space, 4, optimizer=mc.Method(optimizer, settings=options), progress=False)
    for trial in result.history:
        assert space.is_legal(trial.config)
        if trial.proof is not None and trial.proof.config is not None and np.isfinite(trial.proof.bound):
            assert trial.proof.bound <= trial.proof.value + 1e-6


FORMULAS: dict[str, tuple[Callable[[mc.Space], Any], Callable[[Any, Any, Any], bool]]] = {
    "or of overlaps": (lambda s: s["a"].is_("x", "y") | s["a"]["x"] | s["b"][2], lambda a, b, c: a != "z" or b == 2),
    "not of and": (lambda s: ~(s["a"]["x"] & s["b"][1]), lambda a, b, c: not (a == "x" and b == 1)),
    "xor": (lambda s: s["a"]["x"] ^ s["b"][1], lambda a, b, c: (a == "x") != (b == 1)),
    "implies": (lambda s: mc.implies(s["a"]["x"], s["c"]["u"]), lambda a, b, c: a != "x" or c == "u"),
    "of activity": (lambda s: ~s["c"].is_active() | s["b"][2], lambda a, b, c: a == "z" or b == 2),
    "nested": (
        lambda s: mc.all_of(mc.any_of(s["c"]["u"], s["b"][1]), ~(s["a"]["y"] ^ s["c"].is_("u", "v"))),
        lambda a, b, c: (c == "u" or b == 1) and (a == "y") == (c is not None),
    ),
}


@pytest.mark.parametrize("what", FORMULAS)
def test_a_formula_in_when_agrees_with_python(what: str) -> None:
    """A real has the formula as condition and a categorical its negation. A wide integer depends on both."""
    condition, holds = FORMULAS[what]
    space = mc.Space()
    a, _ = space.categorical("a", ["x", "y", "z"]), space.integer("b", 1, 2)
    space.categorical("c", ["u", "v"], when=a.is_("x", "y"))
    p = space.real("p", 0.5, 1.0, when=condition(space))
    q = space.categorical("q", ["u", "v"], when=~condition(space))
    r = space.integer("r", 1, 500, when=p.is_active() & a["x"] | q["u"])
    legal, best = 0, 0.0
    for a, b, c in [*itertools.product("xy", (1, 2), "uv"), *itertools.product("z", (1, 2), [None])]:
        active = {"p": holds(a, b, c)}
        active |= {"q": not active["p"], "r": not active["p"] or a == "x"}
        values = {"c": c, "p": 0.75, "q": "u", "r": 9}
        on = {name: value for name, value in values.items() if active.get(name, c is not None)}
        config = {"a": a, "b": b} | on
        assert space.validate(config) == []
        for name in ("p", "q", "r"):
            wrong = {k: v for k, v in config.items() if k != name} if name in config else config | {name: values[name]}
            assert not space.is_legal(wrong)
        legal += 1 + active["q"]
        best = max(best, active["p"] + active["q"] / 2 + active["r"])
    assert space.count() == legal
    assert space.optimum(1 * p + q["u"] / 2 + r / 500, "max").value == pytest.approx(best)
    assert all(space.is_legal(config) for config in space.sample(3, seed=0))


def test_alternatives_that_overlap_are_one_condition() -> None:
    space = mc.Space()
    a, b = space.categorical("a", ["net", "tree"]), space.categorical("b", ["sgd", "adam"])
    x = space.real("lr", 0.5, 1, when=(a["net"] & b["sgd"]) | (a["net"] & b["adam"]))
    y = space.real("decay", 0.5, 1, when=x.is_active())
    z = space.real("twice", 0.5, 1, when=a["net"] | a["net"])
    assert space.optimum(x + y + z, "max").value == pytest.approx(3.0)
    space.rule("net only", a["net"] == 1)
    assert space.optimum(x + y + z, "max").value == pytest.approx(3.0)
    assert z.described() == "real in [0.5, 1.0], when a is 'net'"


def test_the_activity_of_a_parameter_that_always_is_active_is_a_condition() -> None:
    space = mc.Space()
    a = space.categorical("a", ["x", "y"])
    always = space.real("always", 0, 1, when=a["x"] | ~a["x"]).is_active()
    space.real("never", 0, 1, when=~always & a["x"])
    space.real("nor this", 0, 1, when=a["x"] & a["y"])
    space.real("sometimes", 0, 1, when=always & a["x"])
    space.rule("linked", mc.implies(always, a["x"] | (space["always"] >= 0.5)))
    assert (always, 1 - always) == (1, 0)
    assert {frozenset(c) for c in space.sample(8, seed=0)} == {
        frozenset({"a", "always", *n}) for n in ([], ["sometimes"])
    }
    assert not space.is_legal({"a": "y", "always": 0.3})
    assert space.bounds().keys() == {"a", "always", "sometimes"}


def test_the_activity_of_a_number_under_two_conditions_is_an_indicator() -> None:
    space = mc.Space()
    a, b = space.categorical("a", ["x", "y"]), space.categorical("b", ["x", "y"])
    number = space.real("number", 0, 1, when=a["x"] & b["x"])
    space.real("other", 0, 1, when=~number.is_active())
    space.rule("linked", ~number.is_active() | (number >= 0.5))
    assert space.is_legal({"a": "x", "b": "y", "other": 0.3})
    assert space.is_legal({"a": "x", "b": "x", "number": 0.7})
    assert not space.is_legal({"a": "x", "b": "x", "number": 0.3})
    with pytest.raises(SpaceError, match=r"not the relation number.is_active\(\) == 1"):
        space.real("third", 0, 1, when=number.is_active() != 1)


def test_eight_alternatives_of_eight_indicators_need_few_rows() -> None:
    space = mc.Space("many")
    parts = [space.categorical(f"c{k}", ["a", "b", "c"]) for k in range(8)]
    alternatives = [
        mc.all_of(*(p.is_("abc"[(i + k) % 3], "abc"[i % 3]) for k, p in enumerate(parts))) for i in range(8)
    ]
    x = space.real("x", 0, 1, when=mc.any_of(*alternatives))
    space.rule("used", x >= 0.5)
    program = compiled(space).program
    assert program.matrix.shape[0] < 300  # 8^8 rows if the alternatives were multiplied out
    assert program.n_columns < 200
    best = space.optimum(x, "max")
    assert (best.status, best.value) == ("optimal", 1.0)
    assert "x" in best.config


def test_a_run_ends_with_the_last_configuration_of_overlapping_alternatives() -> None:
    space = mc.Space("last")
    net, solver = space.categorical("net", ["A", "B"]), space.categorical("solver", ["sgd", "adam"])
    deep = space.integer("deep", 0, 1, when=(net["A"] & solver["sgd"]) | (net["A"] & solver["adam"]))
    wide = space.integer("wide", 0, 1, when=deep.is_active())
    space.rule("A", net["A"] == 1)
    assert space.count().number == 8
    result = mc.minimize(lambda c: c["deep"] + c["wide"], space, 20, seed=0, progress=False)
    assert (result.n_evaluations, len({str(t.config) for t in result.history})) == (8, 8)
    assert result.stopped.startswith("space exhausted")
    assert space.optimum(deep + wide, "max").value == 2


@pytest.mark.parametrize("how", ["<=", "<", ">=", ">", "=="])
def test_a_relation_over_one_discrete_parameter_is_a_condition(how: str) -> None:
    compared = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt, "==": operator.eq}[how]
    space = mc.Space("relations")
    n, k = space.integer("n", 1, 4), space.categorical("k", ["a", "b"])
    space.real("x", 0, 1, when=compared(n, 2) if how != "==" else n == 2)
    inner = space.integer("inner", 0, 3, when=k["a"])
    space.real("y", 0, 1, when=inner <= 1)  # where ``inner`` is inactive, so is y
    found = space.sample(60, seed=0)
    assert all(("x" in c) == compared(c["n"], 2) for c in found)
    assert all(("y" in c) == (c.get("inner", 9) <= 1) for c in found)
    assert space.count() == 4 * 5


def test_a_relation_in_when_of_a_rule_is_false_if_its_parameter_is_inactive() -> None:
    for formula in (False, True):
        space = mc.Space("rules")
        k, x = space.categorical("k", ["a", "b", "c"]), space.integer("x", 0, 3)
        inner = space.integer("inner", 0, 3, when=k["a"])
        rule = space.rule("few", x <= 1, when=(inner <= 1) | k["c"] if formula else inner <= 1)
        # number of x: two for each of inner 0 and 1, four for each of inner 2 and 3, four for b, four or two for c
        assert space.count() == 4 + 8 + 4 + (2 if formula else 4)
        assert ("inner <= 1" if formula else "inner is 0 or 1") in str(rule)
        for how in (True, False):
            config = {"k": "b", "x": 3} if how else {"k": "a", "inner": 1, "x": 3}
            assert space.is_legal(config) is how
    body = mc.Space("body")
    k, x = body.categorical("k", ["a", "b"]), body.integer("x", 0, 3)
    inner = body.integer("inner", 0, 3, when=k["a"])
    body.rule("few", mc.implies(inner <= 1, x <= 1))
    assert body.count() == 4 + 8 + 2  # an inactive parameter is 0 in the relation of a rule


def test_a_relation_that_levels_do_not_decide_is_refused_with_a_way_out() -> None:
    space = mc.Space("refused")
    n, x = space.integer("n", 1, 4), space.real("x", 0, 1)
    for relation in (x >= 0.5, n + x >= 2):
        with pytest.raises(
            SpaceError, match=r"over one discrete parameter .*Declare a categorical parameter for the cases"
        ):
            space.real("y", 0, 1, when=relation)
    with pytest.raises(SpaceError, match="auxiliary variable 'u' has no indicators"):
        space.auxiliary("u", 0, 1).is_(1)
