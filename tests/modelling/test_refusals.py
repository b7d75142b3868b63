"""What cannot be part of a space is refused where it is declared: with the name, the cause and the cure.

A refused declaration leaves nothing behind, neither in the space nor in its Pyomo model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo
import pytest

import mipcash as mc
from mipcash.errors import MipcashError, RuleError, SpaceError
from mipcash.space.compiled import declaration_of


def base() -> mc.Space:
    space = mc.Space("base")
    space.integer("layers", 0, 3)
    space.categorical("act", ["relu", "tanh"])
    space.real("lr", 1e-3, 1.0, log=True)
    space.module("scaler", {"none": {}, "standard": {"k": mc.Integer(1, 3)}})
    space.module("selector", {"none": {}, "best": {}})
    space.rule("taken", space["layers"] <= 2)
    return space


def everything(space: mc.Space) -> tuple[object, ...]:
    """All that a declaration could leave behind."""
    kinds = (pyo.Var, pyo.BooleanVar, pyo.Constraint, pyo.Expression, pyo.Block)
    components = [d.name for d in space.model.component_data_objects(kinds, descend_into=pyo.Block)]
    declaration = declaration_of(space)
    return (
        tuple(space.parameters),
        tuple(space.auxiliaries),
        tuple(space.rules),
        len(declaration.groups),
        len(declaration.numbers),
        tuple(declaration.conditions),
        tuple(components),
        tuple(map(str, space.model.parameters)),
    )


Declare = Callable[[mc.Space], Any]

REFUSED: dict[str, tuple[Declare, type[Exception], str, str]] = {
    # what: (declaration, exception, the name that must be in the message, a word of cause or cure)
    "duplicate integer": (lambda s: s.integer("layers", 0, 1), SpaceError, "layers", "exists already"),
    "duplicate real": (lambda s: s.real("act", 0, 1), SpaceError, "act", "exists already"),
    "duplicate module": (lambda s: s.module("scaler", {"a": {}}), SpaceError, "scaler", "exists already"),
    "duplicate auxiliary": (lambda s: s.auxiliary("layers", 0, 1), SpaceError, "layers", "exists already"),
    "duplicate ordering": (
        lambda s: s.ordering("scaler", [s["scaler"], s["selector"]]),
        SpaceError,
        "scaler",
        "exists already",
    ),
    "duplicate rule": (lambda s: s.rule("taken", s["layers"] <= 1), RuleError, "taken", "another name"),
    "hyperparameter that exists": (
        lambda s: (s.integer("m.a.k", 0, 1), s.module("m", {"a": {"k": mc.Integer(0, 1)}})),
        SpaceError,
        "m.a.k",
        "exists already",
    ),
    "empty name": (lambda s: s.integer("", 0, 1), SpaceError, "''", "name"),
    "name that is no string": (lambda s: s.integer(3, 0, 1), SpaceError, "3", "name"),
    "rule without name": (lambda s: s.rule("", s["layers"] <= 1), RuleError, "''", "name"),
    "empty categorical": (lambda s: s.categorical("c", []), SpaceError, "'c'", "empty"),
    "empty ordinal": (lambda s: s.ordinal("o", []), SpaceError, "'o'", "empty"),
    "empty module": (lambda s: s.module("m", {}), SpaceError, "'m'", "empty"),
    "value twice": (lambda s: s.categorical("c", ["a", "b", "a"]), SpaceError, "'c'", "twice"),
    "string for a list": (lambda s: s.categorical("c", "abc"), SpaceError, "'c'", "list"),
    "nan value": (lambda s: s.ordinal("o", [1.0, math.nan]), SpaceError, "'o'", "finite"),
    "integer low above high": (lambda s: s.integer("i", 3, 1), SpaceError, "'i'", "low > high"),
    "real low above high": (lambda s: s.real("r", 3, 1), SpaceError, "'r'", "low > high"),
    "constant real": (lambda s: s.real("r", 1, 1), SpaceError, "'r'", "constant"),
    "log integer at zero": (lambda s: s.integer("i", 0, 8, log=True), SpaceError, "'i'", "low > 0"),
    "log real below zero": (lambda s: s.real("r", -1, 8, log=True), SpaceError, "'r'", "low > 0"),
    "unbounded integer": (lambda s: s.integer("i", 0, math.inf), SpaceError, "'i'", "finite"),
    "integer without bound": (lambda s: s.integer("i", 0, None), SpaceError, "'i'", "both bounds"),
    "unbounded real": (lambda s: s.real("r", -math.inf, 0), SpaceError, "'r'", "finite"),
    "nan bound": (lambda s: s.real("r", math.nan, 1), SpaceError, "'r'", "finite"),
    "fractional integer": (lambda s: s.integer("i", 0.5, 3), SpaceError, "'i'", "whole"),
    "step of zero": (lambda s: s.integer("i", 0, 3, step=0), SpaceError, "'i'", "step"),
    "unbounded auxiliary": (lambda s: s.auxiliary("a", 0, math.inf), SpaceError, "'a'", "finite"),
    "domain of a hyperparameter": (lambda s: s.module("m", {"x": {"k": (1, 3)}}), SpaceError, "m.x.k", "mc.Integer"),
    "ordering of one": (lambda s: s.ordering("o", [s["scaler"]]), SpaceError, "'o'", "two modules"),
    "ordering with a module twice": (
        lambda s: s.ordering("o", [s["scaler"], s["scaler"]]),
        SpaceError,
        "'o'",
        "twice",
    ),
    "ordering of strangers": (
        lambda s: s.ordering("o", ["scaler", "nobody"]),
        SpaceError,
        "nobody",
        "declare it first",
    ),
    "ordering of another space's module": (
        lambda s: s.ordering("o", [s["scaler"], base()["selector"]]),
        SpaceError,
        "selector",
        "another space",
    ),
    "degree three": (
        lambda s: s.rule("cube", s["layers"] * s["layers"] * s["lr"] <= 1),
        RuleError,
        "cube",
        "degree above two",
    ),
    "function of a parameter": (lambda s: s.rule("exp", pyo.exp(s["lr"]) <= 1), RuleError, "exp", "ordinal"),
    "plain bool": (lambda s: s.rule("bool", 1 <= 2), RuleError, "bool", "plain Python bool"),
    "not a relation": (lambda s: s.rule("sum", s["layers"] + 1), RuleError, "sum", "relation"),
    "chain": (lambda s: s.rule("deep", s["layers"] <= (s["lr"] >= 2)), RuleError, "deep", "one rule per relation"),
    "strict": (lambda s: s.rule("strict", s["lr"] < 0.5), RuleError, "strict", "Write <= or >="),
    "unequal reals": (lambda s: s.rule("unequal", s["lr"] != 0.5), RuleError, "unequal", "no last number"),
    "nan in a rule": (lambda s: s.rule("nan", s["layers"] * math.nan <= 2), RuleError, "nan", "finite"),
    "nan bound of a rule": (lambda s: s.rule("nan", s["layers"] <= math.nan), RuleError, "nan", "nan"),
    "nothing left": (lambda s: s.rule("zero", s["layers"] - s["layers"] <= 2), RuleError, "zero", "no parameter"),
    "unknown category": (lambda s: s.rule("r", s["act"]["selu"] <= 0), SpaceError, "selu", "relu"),
    "unknown algorithm": (lambda s: s["scaler"].parameter("robust", "k"), SpaceError, "robust", "standard"),
    "unknown hyperparameter": (lambda s: s["scaler"].parameter("standard", "q"), SpaceError, "'q'", "k"),
    "unknown parameter": (lambda s: s["depth"], SpaceError, "depth", "layers"),
    "another space": (lambda s: s.rule("alien", base()["layers"] <= s["layers"]), RuleError, "alien", "another space"),
    "another space's condition": (
        lambda s: s.integer("i", 0, 1, when=base()["act"]["relu"]),
        SpaceError,
        "'i'",
        "another space",
    ),
    "categorical in a comparison": (lambda s: s.rule("r", s["act"] <= 1), SpaceError, "act", "indicators"),
    "categorical in arithmetic": (lambda s: s.rule("r", s["layers"] + s["act"] <= 1), SpaceError, "act", "indicators"),
    "categorical equality": (lambda s: s.rule("r", s["act"] == "relu"), SpaceError, "act", "indicators"),
    "indicator of a real": (lambda s: s.integer("i", 0, 1, when=s["lr"].is_(0.1)), SpaceError, "lr", "not expanded"),
    "when is a parameter": (lambda s: s.integer("i", 0, 1, when=s["layers"]), SpaceError, "'i'", "is_("),
    "when is a choice": (lambda s: s.integer("i", 0, 1, when=s["act"]), SpaceError, "'i'", "is_("),
    "when is a bool": (lambda s: s.integer("i", 0, 1, when=True), SpaceError, "'i'", "is_("),
    "when is a relation": (lambda s: s.integer("i", 0, 1, when=s["layers"] <= 1), SpaceError, "'i'", "relation"),
    "when is too large": (
        lambda s: s.integer("i", 0, 1, when=s["act"]["relu"] + s["layers"].is_(1)),
        SpaceError,
        "'i'",
        "0/1",
    ),
    "when of a rule is a relation": (
        lambda s: s.rule("w", s["layers"] <= 1, when=s["layers"] >= 1),
        SpaceError,
        "'w'",
        "relation",
    ),
    "when uses a stranger": (lambda s: s.real("r", 0, 1, when=stranger(s)), SpaceError, "'r'", "is_("),
}


def stranger(space: mc.Space) -> Any:
    """A binary of the model that no configuration decides."""
    space.model.stranger = pyo.Var(domain=pyo.Binary)
    return 1 * space.model.stranger


@pytest.mark.parametrize("what", REFUSED)
def test_refused_with_cause_and_cure_and_nothing_is_left_behind(what: str) -> None:
    declare, kind, name, cause = REFUSED[what]
    space = base()
    before = everything(space)
    with pytest.raises(kind) as caught:
        declare(space)
    assert isinstance(caught.value, MipcashError)
    assert name in str(caught.value)
    assert cause in str(caught.value)
    if what not in ("when uses a stranger", "hyperparameter that exists"):  # they declare something first
        assert everything(space) == before
        assert space.is_legal({"layers": 1, "act": "relu", "lr": 0.1, "scaler": "none", "selector": "none"})


def test_a_refused_module_leaves_nothing_behind() -> None:
    space = base()
    space.integer("m.a.k", 0, 1)
    before = everything(space)
    with pytest.raises(SpaceError, match=r"m\.a\.k"):
        space.module("m", {"a": {"k": mc.Integer(0, 1)}})
    assert everything(space) == before


def test_bounds_that_a_live_model_could_refuse() -> None:
    space = base()
    before = everything(space)
    space.model.free = pyo.Var()
    with pytest.raises(RuleError, match="unbounded"):
        space.rule("conditional", space.model.free <= space["layers"], when=space["act"]["relu"])
    del space.model.free
    assert everything(space) == before


def test_unknown_sense_and_negative_samples() -> None:
    space = base()
    with pytest.raises(SpaceError, match="upwards"):
        space.optimum(space["layers"], "upwards")
    with pytest.raises(SpaceError, match="-1"):
        space.sample(-1)
    with pytest.raises(MipcashError, match="no parameters"):
        mc.Space("bare").sample(1)
