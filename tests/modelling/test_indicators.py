"""Indicators lead on to hyperparameters, and are read as they are written."""

from __future__ import annotations

import itertools

import pyomo.environ as pyo
import pytest

import mipcash as mc
from mipcash.errors import RuleError, SpaceError
from mipcash.modelling.wording import shortened, written


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


@pytest.mark.parametrize(
    ("look_up", "message"),
    [
        (lambda s: s["model"]["rf"]["m"], r"'rf' of module 'model' has no hyperparameter 'm'; it has \['n', 'kind'\]"),
        (lambda s: s["model"]["svm"]["n"], r"'svm' of module 'model' has no hyperparameter 'n'; it has none"),
        (lambda s: s["model"]["rx"]["n"], r"module 'model' has no algorithm 'rx'; it has \['rf', 'svm'\]"),
        (lambda s: s["model"].parameter("rx", "n"), r"module 'model' has no algorithm 'rx'; it has \['rf', 'svm'\]"),
        (lambda s: s["model.rf.kind"]["a"]["n"], r"1 where parameter 'model.rf.kind' takes 'a'.*no|nothing to look up"),
        (lambda s: s["order"].at("model", 1)["n"], r"order.at\('model', 1\).*only an algorithm of a module"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(look_up: object, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        look_up(pipeline())  # type: ignore[operator]


def test_an_indicator_is_no_sequence() -> None:
    rf = pipeline()["model"]["rf"]
    with pytest.raises(RuleError, match="no list"):
        list(rf)
    with pytest.raises(RuleError, match="no meaning"):
        "n" in rf  # noqa: B015


def test_expressions_are_read_as_they_are_written() -> None:
    space = pipeline()
    a, b = space.integer("a", 1, 3), space.real("b", 0, 1)
    c = space.categorical("c", ["x", "y"])
    both = space.real("d", 1, 2, when=[c["x"], a.is_(2, 3)])
    order, model = space["order"], space["model"]
    for expression, text in [
        (a <= 2, "a <= 2"),
        (a >= 2, "a >= 2"),
        (a * b <= 200, "a * b <= 200"),
        (c["x"] <= a / 3, "c['x'] <= a / 3"),
        (a + b - 2 * c["x"] == 1, "a + b - 2 * c['x'] == 1"),
        (-a >= -3, "-a >= -3"),
        ((a - 1) * (b + 2) <= 3, "(a - 1) * (b + 2) <= 3"),
        (a - (b - 1) <= 2, "a - (b - 1) <= 2"),
        (2 * (a + b) <= 1.5, "2 * (a + b) <= 1.5"),
        (a**2 <= 4, "a**2 <= 4"),
        (pyo.inequality(1, a, 2), "1 <= a <= 2"),
        (model["rf"]["n"] <= 2, "model.rf.n <= 2"),
        (model.is_("rf", "svm") <= 1, "model.is_('rf', 'svm') <= 1"),
        (order.at(model, 2) == 1, "order.at('model', 2) == 1"),
        (both.is_active() <= 1, "d.is_active() <= 1"),
        (pyo.exp(a) <= 1, "exp(a) <= 1"),
        (a * b * a <= 1, "a * b * a <= 1"),
        (a / 4 <= 1, "a / 4 <= 1"),
    ]:
        assert written(expression) == text


def test_long_texts_keep_their_ends() -> None:
    text = " + ".join(f"p{i}" for i in range(200)) + " <= 7"
    assert len(shortened(text)) == 120
    assert shortened(text).startswith("p0 + p1")
    assert shortened(text).endswith("p199 <= 7")
    assert shortened("a  <=  3") == "a <= 3"
