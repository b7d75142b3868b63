"""Validation: ``validate`` names exactly the violated rules and the invalid values."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import mipcash as mc
from mipcash.space.compiled import compiled


@pytest.fixture
def space() -> mc.Space:
    space = mc.Space("validated")
    layers = space.integer("layers", 0, 4)
    space.integer("units", 16, 64, step=16)
    space.ordinal("size", ["s", "m", "l"])
    act = space.categorical("act", ["relu", None, True, 1, (1, 2)])
    space.real("lr", 0.01, 1.0, log=True)
    space.integer("wide", 1, 10_000)
    space.integer("k", 1, 9, when=layers.is_(1, 2))
    space.real("drop", 0.0, 0.5, when=[layers.is_(1, 2), act["relu"]])
    space.rule("units grow", space["units"] >= 16 * layers)
    space.rule("k small", space["k"] <= 5)
    space.rule("wide enough", space["wide"] >= 10 * layers, when=act["relu"])
    space.rule("drop slow", space["drop"] + space["lr"] <= 1.2)
    return space


GOOD = {"layers": 1, "units": 32, "size": "m", "act": "relu", "lr": 0.1, "wide": 99, "k": 2, "drop": 0.25}


def names(space: mc.Space, **changes: object) -> list[str]:
    config = GOOD | changes
    return sorted(v.name for v in space.validate({n: v for n, v in config.items() if v != "absent"}))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"layers": "absent"}, ["layers"]),
        ({"k": "absent"}, ["k"]),
        ({"drop": "absent"}, ["drop"]),
        ({"depth": 3}, ["depth"]),
        ({"layers": 0}, ["drop", "k"]),
        ({"act": None}, ["drop"]),
        ({"layers": 3, "k": "absent", "drop": "absent"}, ["units grow"]),
        ({"k": 6}, ["k small"]),
        ({"k": 6, "wide": 9}, ["k small", "wide enough"]),
        ({"wide": 9, "act": None, "drop": "absent"}, []),
        ({"drop": 0.5, "lr": 0.8}, ["drop slow"]),
        ({"units": 17}, ["units"]),
        ({"units": 32.0}, []),
        ({"units": 32.5}, ["units"]),
        ({"units": True}, ["units"]),
        ({"layers": True}, ["layers"]),
        ({"layers": None}, ["layers"]),
        ({"layers": math.nan}, ["layers"]),
        ({"lr": math.nan}, ["lr"]),
        ({"lr": 0.0}, ["lr"]),
        ({"lr": "0.1"}, ["lr"]),
        ({"lr": np.float64(0.1)}, []),
        ({"layers": np.int64(1), "units": np.int32(32), "k": np.int8(2)}, []),
        ({"layers": np.bool_(True)}, ["layers"]),
        ({"act": np.bool_(True), "drop": "absent"}, []),
        ({"size": "xl"}, ["size"]),
        ({"act": False, "drop": "absent"}, ["act"]),
        ({"act": True, "drop": "absent"}, []),
        ({"act": np.int64(1), "drop": "absent"}, []),
        ({"act": (1, 2), "drop": "absent"}, []),
        ({"act": "None", "drop": "absent"}, ["act"]),
        ({"wide": 10_001}, ["wide"]),
    ],
)
def test_every_problem_is_named(space: mc.Space, changes: dict[str, object], expected: list[str]) -> None:
    found = names(space, **changes)
    if changes.get("layers") in (None, "1") or "act" in expected or (expected == ["layers"] and "layers" in changes):
        # an invalid value that conditions depend on must be named; the conditional parameters may be named too
        assert set(expected) <= set(found) <= {*expected, "k", "drop"}
    else:
        assert found == expected


def test_messages_contain_the_numbers_and_a_configuration_must_be_a_mapping(space: mc.Space) -> None:
    text = "; ".join(map(str, space.validate(GOOD | {"units": 80, "k": 7, "size": "xl"})))
    for part in ("80", "[16, 64]", "'k small'", "7", "<= 5", "'xl'", "'s'"):
        assert part in text
    assert [v.name for v in space.validate([1, 2])] == ["configuration"]  # type: ignore[arg-type]
    assert not space.is_legal({})


def test_true_and_one_are_different_values(space: mc.Space) -> None:
    program, rest = compiled(space).program, {n: x for n, x in GOOD.items() if n not in ("drop", "act")}
    numbers = {"lr": 0.1, "wide": 99.0}
    given = (True, np.bool_(True), 1, np.int64(1), None)
    decoded = [program.decode(program.encode(rest | {"act": v}), numbers)["act"] for v in given]
    assert [type(v) for v in decoded] == [bool, bool, int, int, type(None)]


def test_large_integers_are_distinguished() -> None:
    """A tolerance relative to the bound must not let neighbours of a large integer through."""
    space = mc.Space("large")
    a, b = space.integer("a", 1, 5000), space.integer("b", 1, 5000)
    space.rule("cells", a * b <= 1_000_000)
    assert space.is_legal({"a": 1000, "b": 1000})
    assert not space.is_legal({"a": 1001, "b": 1000})
    solution = space.optimum(a + 0 * b, "max")
    assert solution.value == 5000
    space.rule("square", a - b == 0)
    assert space.optimum(a, "max").config == {"a": 1000, "b": 1000}


# -- indicators and hyperparameters of algorithms ----------------------------------------------------------------------


def pipeline() -> mc.Space:
    space = mc.Space("pipeline")
    scaler = space.module("scaler", {"none": {}, "standard": {"k": mc.Integer(1, 3)}})
    model = space.module("model", {"rf": {"n": mc.Integer(1, 4), "kind": mc.Categorical(["a", "b"])}, "svm": {}})
    space.ordering("order", [scaler, model])
    return space


def test_a_hyperparameter_is_reached_through_its_algorithm() -> None:
    space = pipeline()
    model, order = space["model"], space["order"]
    n = model["rf"]["n"]
    assert n is space["model.rf.n"] is model.parameter("rf", "n")
    assert model["rf"]["kind"]["b"] is space["model.rf.kind"]["b"]
    space.rule("few", n <= 2)
    space.rule("b needs one", model["rf"]["kind"]["b"] + n <= 2)
    space.rule("later is larger", order.position("model") <= n, when=model["rf"])
    found = 0
    space.rule("unscaled", space["scaler"]["none"] == 1)
    for first in (True, False):
        names = ("model", "scaler") if first else ("scaler", "model")
        for chosen, n_value, kind in itertools.product(["rf", "svm"], [1, 2, 3, 4, None], ["a", "b", None]):
            given = {"scaler": "none", "model": chosen, "model.rf.n": n_value, "model.rf.kind": kind}
            config = {"order": names, **{name: value for name, value in given.items() if value is not None}}
            forest = chosen == "rf" and n_value is not None and kind is not None
            fits = forest or (chosen == "svm" and n_value is None and kind is None)
            if forest:
                fits = n_value <= 2 and (kind == "b") + n_value <= 2 and (1 if first else 2) <= n_value
            assert space.is_legal(config) == fits, config
            found += fits
    assert space.count().number == found


def test_an_algorithm_alone_is_its_indicator() -> None:
    space = pipeline()
    rf = space["model"]["rf"]
    assert rf is space.model.parameters["model"].z[0] is space["model"].is_("rf")
    space.rule("no forest", rf == 0)
    assert {c["model"] for c in space.sample(5)} == {"svm"}


def test_a_missing_parameter_is_not_taken_for_a_rule_of_its_name() -> None:
    space = mc.Space("names")
    a, b = space.integer("a", 0, 5), space.integer("b", 0, 5)
    space.rule("a", (a <= 3) | (b >= 2))
    assert [v.message for v in space.validate({"b": 1})] == ["parameter 'a' is missing; it takes integer in [0, 5]"]
    assert [v.message for v in space.validate({"a": 4, "b": 1})] == [
        "rule 'a' is violated: (a <= 3) | (b >= 2) does not hold"
    ]
