"""Parameters that are active where one of several conditions holds: ``when=a["x"] | b.is_(2)``."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mipcash as mc
from mipcash.errors import SpaceError
from tests.named import installed
from tests.spaces import alternatives


def active(kind: str, depth: int, norm: str | None) -> set[str]:
    """What is active, as Python says it; ``norm`` counts where it is."""
    found = {"kind", "depth", "free"}
    either = kind == "x" or depth == 2
    if either:
        found.add("norm")
    if either and (kind == "y" or norm == "l1" or depth == 0):
        found.add("rate")
    if not (kind == "x" and depth == 2):
        found.add("size")
    return found


def settings() -> list[dict[str, Any]]:
    """Every setting of the lists, with numbers in the middle that keep the rules."""
    made = []
    for kind, depth, norm in itertools.product("xyz", range(3), ("l1", "l2")):
        on = active(kind, depth, norm)
        values = {"kind": kind, "depth": depth, "norm": norm, "rate": 0.3, "size": 50, "free": 0.5}
        made.append({name: value for name, value in values.items() if name in on})
    return [c for k, c in enumerate(made) if c not in made[:k]]


def test_activity_is_what_python_says() -> None:
    space = alternatives()
    for config in settings():
        assert space.validate(config) == [], config
        for name in config.keys() - {"kind", "depth"}:
            assert not space.is_legal({n: v for n, v in config.items() if n != name})
        for name, value in (("norm", "l1"), ("rate", 0.3), ("size", 50)):
            assert name in config or not space.is_legal({**config, name: value})
    assert space.count() == len(settings())
    for config in space.sample(15):
        assert config.keys() == active(config["kind"], config["depth"], config.get("norm"))


def test_optima_nearest_copies_and_words() -> None:
    space = pickle.loads(pickle.dumps(alternatives()))
    said = "when (kind is 'x' or depth is 2) and (kind is 'y' or norm is 'l1' or depth is 0)"
    assert space["rate"].described().endswith(said)
    # without the size there is nothing to add but the rate; 1.3 - 2 / 4 with depth 2
    best = space.optimum(space["rate"] + space["norm"]["l1"] + 100 * (1 - space["size"].is_active()), "max")
    assert best.status == "optimal"
    assert (best.config["kind"], best.config["depth"], best.config["norm"]) == ("x", 2, "l1")
    assert best.value == pytest.approx(100 + 1 + 0.8)
    near = space.nearest({"kind": "z", "depth": 0, "rate": 0.3, "size": 7, "free": 0.1})
    assert near == {"kind": "z", "depth": 0, "size": 7, "free": 0.1}


@pytest.mark.parametrize("optimizer", installed("hybrid", "mivabo"))
def test_proposals_are_legal_and_their_bounds_hold(optimizer: str) -> None:
    space, options = alternatives(), {"samples": 1, "n_initial": 3}
    if optimizer == "mivabo":
        from mipcash.methods.mivabo.decomposition.search import DecompositionSettings

        options = {"certificate": DecompositionSettings(), "n_initial": 3}

    def loss(config: dict[str, Any]) -> float:
        rate = (config.get("rate", 1.0) - 0.4) ** 2
        return float(rate + config["depth"] / 10 + abs(config.get("size", 1) - 77) / 200 + (config["free"] - 0.2) ** 2)

    result = mc.minimize(loss, space, 5, optimizer=mc.Method(optimizer, settings=options), progress=False)
    for trial in result.history:
        assert space.is_legal(trial.config)
        if trial.proof is not None and trial.proof.config is not None and np.isfinite(trial.proof.bound):
            assert trial.proof.bound <= trial.proof.value + 1e-6


# -- formulas of conditions against Python ------------------------------------------------------------------------------

LEVELS = {"a": ["x", "y", "z"], "b": [1, 2], "c": ["x", "y", "z"]}


def leaves() -> st.SearchStrategy[Any]:
    names = st.sampled_from(sorted(LEVELS))
    return names.flatmap(lambda n: st.tuples(st.just(n), st.sets(st.sampled_from(LEVELS[n]), min_size=1)))


FORMULAS = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=1, max_size=4)),
        st.tuples(st.sampled_from(["xor", "implies"]), inner, inner),
    ),
    max_leaves=12,
)


def truth(formula: Any, config: dict[str, Any], active: dict[str, bool]) -> bool:
    """A drawn formula as Python evaluates it."""
    kind, *parts = formula
    if kind == "not":
        return not truth(parts[0], config, active)
    if kind in ("and", "or"):
        return (all if kind == "and" else any)(truth(part, config, active) for part in parts[0])
    if kind in ("xor", "implies"):
        left, right = (truth(part, config, active) for part in parts)
        return left != right if kind == "xor" else right or not left
    return active[kind] if parts[0] is None else config.get(kind) in parts[0]


def declared(formula: Any, space: mc.Space) -> Any:
    """The same formula in the language of spaces."""
    kind, *parts = formula
    if kind == "not":
        return ~declared(parts[0], space)
    if kind in ("and", "or"):
        return (mc.all_of if kind == "and" else mc.any_of)(*(declared(part, space) for part in parts[0]))
    if kind == "implies":
        return mc.implies(*(declared(part, space) for part in parts))
    if kind == "xor":
        return declared(parts[0], space) ^ declared(parts[1], space)
    if parts[0] is not None:
        return space[kind].is_(*sorted(parts[0]))
    return space[kind].is_active()


def with_dependants(first: Any, second: Any, third: Any) -> mc.Space:
    """A real, a list and a wide integer; the second and third conditions may use the activity of those before."""
    space = mc.Space()
    space.categorical("a", LEVELS["a"])
    space.integer("b", 1, 2)
    space.categorical("c", LEVELS["c"], when=space["a"].is_("x", "y"))
    space.real("p", 0.5, 1.0, when=declared(first, space))
    space.categorical("q", ["u", "v"], when=declared(second, space))
    space.integer("r", 1, 500, when=declared(third, space))
    return space


def using_activity(*names: str) -> st.SearchStrategy[Any]:
    """Formulas in which the activity of parameters may occur."""
    activity = st.tuples(st.sampled_from(names), st.none())
    joined = st.tuples(st.sampled_from(["and", "or"]), st.lists(st.one_of(FORMULAS, activity), min_size=1, max_size=3))
    return st.one_of(joined, st.tuples(st.just("not"), activity))


@hypothesis.settings(max_examples=10, deadline=None)
@given(FORMULAS, using_activity("p"), using_activity("p", "q"))
def test_a_formula_in_when_is_what_python_says(first: Any, second: Any, third: Any) -> None:
    space = with_dependants(first, second, third)
    legal, best = 0, 0.0
    for a, b, c in itertools.product(LEVELS["a"], LEVELS["b"], [*LEVELS["c"], None]):
        if (c is None) != (a == "z"):
            continue
        config = {"a": a, "b": b} | ({"c": c} if c is not None else {})
        active: dict[str, bool] = {}
        for name, formula, value in (("p", first, 0.75), ("q", second, "u"), ("r", third, 9)):
            active[name] = truth(formula, config, active)
            config |= {name: value} if active[name] else {}
        assert space.validate(config) == []
        for name, value in (("p", 0.75), ("q", "u"), ("r", 9)):
            wrong = {k: v for k, v in config.items() if k != name} if name in config else config | {name: value}
            assert not space.is_legal(wrong)
        legal += 1 + active["q"]
        best = max(best, active["p"] + active["q"] / 2 + active["r"])
    assert space.count() == legal
    worth = 1 * space["p"] + space["q"].is_("u") / 2 + space["r"] / 500
    assert space.optimum(worth, "max").value == pytest.approx(best)
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


def test_many_alternatives_of_many_indicators_grow_with_the_formula() -> None:
    space = mc.Space()
    groups = [space.categorical(f"g{k}", ["x", "y", "z"]) for k in range(64)]
    alternatives = [mc.all_of(*(groups[8 * i + j]["x"] for j in range(8))) for i in range(8)]
    x = space.real("number", 0.5, 1, when=mc.any_of(*alternatives))
    space.rule("number", x + 0.1 * groups[0]["x"] <= 1)
    block = space.model.parameters["number"]
    assert len(block.parts_on) <= 64
    assert len(block.on_rows) <= 3 * 64
    assert space.optimum(x, "max").value == pytest.approx(1.0)
    assert all(space.is_legal(config) for config in space.sample(2, seed=0))
