"""Copies and pickles of a space: they equal the original and are independent of it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunction

import mipcash as mc
from mipcash.errors import RuleError
from mipcash.study.records.fingerprint import listing

Copy = Callable[[mc.Space], mc.Space]


def pickled(space: mc.Space) -> mc.Space:
    return pickle.loads(pickle.dumps(space))


COPIED: list[Copy] = [copy.deepcopy, copy.copy, pickled]


def declared() -> mc.Space:
    """Space with every kind of parameter, conditions, rules over all of them, and components of its Pyomo model."""
    space = mc.Space("everything", expand_limit=16)
    layers = space.integer("layers", 1, 3)
    act = space.categorical("act", ["relu", "tanh"])
    width = space.ordinal("width", [16, 32, 64])
    wide = space.integer("wide", 0, 1000, step=10)
    lr = space.real("lr", 1e-4, 1e-1, log=True)
    drop = space.real("drop", 0.1, 0.5, when=[layers.is_(2, 3), act["relu"]])
    auxiliary = space.auxiliary("helper", 0, 3)
    first = space.module("first", {"forest": {"n": mc.Integer(1, 9)}, "line": {}})
    second = space.module("second", {"pca": {"k": mc.Integer(1, 4)}, "none": {}})
    order = space.ordering("order", [first, second])
    space.rule("memory", layers * width <= 128)
    space.rule("wide", wide - 100 * layers >= 50)
    space.rule("drop", drop + lr <= 0.4, when=drop.is_active())
    space.rule("helper", auxiliary == layers)
    space.rule("order", order.position(first) * first["forest"]["n"] <= 10)
    space.model.extra = pyo.Constraint(expr=width + 10 * act["tanh"] <= 64)
    space.model.either = Disjunction(expr=[[layers <= 1], [width >= 32]])
    return space


def adopted() -> mc.Space:
    model = pyo.ConcreteModel("adopted")
    model.a = pyo.Var(domain=pyo.Integers, bounds=(0, 3))
    model.b = pyo.Var(bounds=(0.0, 2.0))
    model.c = pyo.Var(domain=pyo.Binary)
    model.h = pyo.Var(domain=pyo.Integers, bounds=(0, 2))
    model.sets = pyo.Set(initialize=[0, 1])
    model.limit = pyo.Constraint(model.sets, rule=lambda m, i: m.a + m.b * (i + 1) <= 3 + i)
    model.help = pyo.Constraint(expr=model.h >= model.a - model.c)
    model.s = pyo.Var([0, 1], domain=pyo.Integers, bounds=(0, 2))
    model.special = pyo.SOSConstraint(var=model.s, sos=1)
    return mc.Space.from_pyomo(model, auxiliary=["h"])


@pytest.mark.parametrize(("make", "copied"), [*((declared, copied) for copied in COPIED), (adopted, copy.deepcopy)])
def test_a_copy_is_the_same_space(make: Callable[[], mc.Space], copied: Copy) -> None:
    """A Pyomo model with a lambda cannot be pickled, with or without mipcash, so it is only copied."""
    space = make()
    space.sample(3)
    other = copied(space)
    assert listing(other) == listing(space)
    assert other.sample(3, seed=3) == space.sample(3, seed=3)
    assert [v.message for v in other.validate({})] == [v.message for v in space.validate({})]
    assert list(other.parameters) == list(space.parameters)
    assert not any(other[label] is space[label] for label in space.parameters)


@pytest.mark.parametrize("copied", COPIED)
def test_a_rule_of_the_copy_does_not_reach_the_original(copied: Copy) -> None:
    space = declared()
    space.sample(1)
    before, other = listing(space), copied(space)
    other.rule("shallow", other["layers"] + other["first"]["forest"]["n"] <= 2)
    other.real("more", 0, 1)
    other.model.parameters["act"].z[0].fix(0)
    assert all(c["layers"] <= 2 and c["act"] == "tanh" and "more" in c for c in other.sample(3))
    assert listing(space) == before
    assert "shallow" not in space.rules
    assert {c["act"] for c in space.sample(4)} == {"relu", "tanh"}
    space.rule("deep", space["layers"] >= 2)
    assert "deep" not in other.rules
    with pytest.raises(RuleError, match=r"'foreign' uses 'layers' of another space .*space\['name'\]"):
        other.rule("foreign", space["layers"] <= 2)


def test_results_trials_and_solutions_can_be_pickled() -> None:
    space = declared()
    study = mc.Study(space)
    study.tell(study.ask(), {"loss": 1.0, "size": 2.0})
    study.tell(study.ask(), mc.Failed("out of memory"))
    for thing in (study.result, *study.trials, space.optimum(space["lr"]), space.bounds(), mc.Failed("why")):
        again = pickle.loads(pickle.dumps(thing))
        assert repr(again) == repr(thing)
        assert repr(copy.deepcopy(thing)) == repr(thing)


def test_copying_a_study_is_refused_with_the_alternatives() -> None:
    study = mc.Study(declared())
    for take in (copy.deepcopy, copy.copy, pickle.dumps):
        with pytest.raises(TypeError, match=r"holds its journal.*study\.result.*storage="):
            take(study)


def test_the_repr_of_an_adopted_model_counts_its_constraints() -> None:
    space = adopted()
    assert repr(space) == "<space 'adopted': 5 parameters (4 integer, 1 real), 4 constraints of the model>"
    space.rule("few", space["a"] <= 2)
    assert repr(space).endswith(", 1 rule and 4 constraints of the model>")
    space.model.limit.deactivate()
    assert repr(copy.deepcopy(space)).endswith("1 rule and 2 constraints of the model>")
    assert repr(mc.Space("plain")) == "<space 'plain': 0 parameters, 0 rules>"
