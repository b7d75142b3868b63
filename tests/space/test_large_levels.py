"""Rules whose tolerance must not come from a level that stands for "no limit", and conditions on inactive parameters."""

from __future__ import annotations

import itertools

import pytest

import mipcash as mc

MANY = 1e10


def capped() -> mc.Space:
    space = mc.Space("cap")
    y, z = space.integer("y", 0, 5), space.real("z", 0, 1, step=0.25)
    cap = space.ordinal("cap", [1, MANY])
    space.rule("cap", y + z <= cap)
    return space


def test_a_level_without_limit_loosens_no_other_level() -> None:
    space = capped()
    legal = [
        {"y": y, "z": z, "cap": cap}
        for y, z, cap in itertools.product(range(6), (0.0, 0.25, 0.5, 0.75, 1.0), (1, MANY))
        if y + z <= cap
    ]
    assert space.count() == len(legal) == 36
    y, z, cap = (space[name] for name in ("y", "z", "cap"))
    for solver in ("auto", "highs"):
        assert space.optimum(y + z - 10 * cap.is_(MANY), "max", solver=solver).value == 1
    run = mc.minimize(lambda c: -c["y"] - c["z"] + 10 * (c["cap"] > 1), space, 20, progress=False)
    assert all(t.config in legal for t in run.history)


@pytest.mark.parametrize("most", [1e8, 1e9, MANY])
def test_a_large_constant_that_switches_a_rule_off_does_not_loosen_it(most: float) -> None:
    space = mc.Space("lot")
    amount, opened = space.real("amount", 0, 5, step=0.25), space.integer("open", 0, 1)
    space.rule("setup", amount <= most * opened)
    assert space.count() == 22
    assert not space.is_legal({"amount": 0.25, "open": 0})
    assert space.optimum(amount - 10 * opened, "max").value == 0


@pytest.mark.parametrize("high", [10, 1000])
def test_a_relation_of_when_does_not_hold_where_its_parameter_is_inactive(high: int) -> None:
    space = mc.Space("when")
    kind = space.categorical("kind", ["a", "b"])
    mode = space.categorical("mode", ["u", "v"], when=kind["a"])
    wide, n = space.integer("wide", 0, high, when=mode["u"]), space.integer("n", 0, 9)
    space.rule("few", n <= 5, when=(wide >= 0) | mode["v"])
    space.rule("some", n >= 2, when=(abs(wide - 3) <= 2) | mode["v"])
    space.rule("other", n <= 8, when=~(wide >= 4) & kind["b"])
    expected = {
        (9, "b", None): False,  # the negation holds where wide is inactive
        (8, "b", None): True,
        (0, "b", None): True,
        (6, "a", 9): False,
        (0, "a", 9): True,
        (0, "a", 4): False,
    }
    for (number, letter, value), legal in expected.items():
        config = {"n": number, "kind": letter} | ({"mode": "u", "wide": value} if letter == "a" else {})
        assert space.is_legal(config) == legal, config
    assert space.optimum(n + 10 * kind["b"], "max").value == 18
    assert all(space.is_legal(config) for config in space.sample(20))


def test_two_values_are_always_expanded() -> None:
    space = mc.Space("binary", expand_limit=1)
    h, x = space.integer("h", 0, 1), space.real("x", 0, 1)
    space.rule("low", mc.implies(h >= 1, x <= 0.5))
    assert space.optimum(x + h, "max").value == 1.5
    assert all(c["h"] == 0 or c["x"] <= 0.5 for c in space.sample(6))


def test_uniform_draws_of_wide_integers_give_the_ends_their_weight() -> None:
    space = mc.Space("wide")
    space.integer("n", 0, 65)
    drawn = [c["n"] for c in space.sample(13200, criterion="uniform")]
    assert {drawn.count(k) for k in (0, 1, 64, 65)} == {200}  # one draw per interval of a Latin hypercube
