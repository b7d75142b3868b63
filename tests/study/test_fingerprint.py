"""What makes two spaces the same: numbers and not names, and the order in which proposals read them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
import pytest
import tiny
from pyomo.gdp import Disjunct, Disjunction

import mipcash as mc
from mipcash.errors import StorageError
from mipcash.space.compiled import declaration_of
from mipcash.study.records.fingerprint import differences, fingerprint, listing


def mutable(cap: float = 3.0, when: float = 3.0) -> mc.Space:
    """Rules and constraints over mutable Params, whose texts are the same whatever the Params hold."""
    space = mc.Space("mutable")
    x = space.integer("x", 0, 9)
    y = space.real("y", 0.0, 5.0)
    space.categorical("act", ["relu", "tanh"])
    space.model.cap = pyo.Param(initialize=cap, mutable=True)
    space.model.slope = pyo.Param([1, 2], initialize={1: when, 2: 1.0}, mutable=True)
    space.rule("bound", x <= space.model.cap)
    space.rule("slope", space.model.slope[1] * x + y <= 20)
    return space


def after(space: mc.Space, change: Callable[[Any], None]) -> mc.Space:
    change(space.model)
    return space


def constraint(value: float) -> mc.Space:
    space = mutable()
    space.model.extra = pyo.Param(initialize=value, mutable=True)
    space.model.capped = pyo.Constraint(expr=space["x"] + space["y"] <= space.model.extra)
    return space


def named_expression(value: float) -> mc.Space:
    space = mutable()
    space.model.sum = pyo.Expression(expr=value * space["x"] + space["y"])
    space.model.capped = pyo.Constraint(expr=space.model.sum <= 9)
    return space


def disjunction(value: float, xor: bool = True, inner: bool = True) -> mc.Space:
    """Two ways, each with a constraint of its own."""
    space = mutable()
    model = space.model
    model.level = pyo.Param(initialize=value, mutable=True)
    model.low, model.high = Disjunct(), Disjunct()
    model.low.small = pyo.Constraint(expr=space["x"] <= model.level)
    model.high.large = pyo.Constraint(expr=space["x"] >= 7)
    if not inner:
        model.high.large.deactivate()
    model.either = Disjunction(expr=[model.low, model.high], xor=xor)
    return space


def logical(negated: bool) -> mc.Space:
    space = mutable()
    relu = space["act"].boolean("relu")
    space.model.logic = pyo.LogicalConstraint(expr=~relu if negated else relu.implies(relu))
    return space


def fixed_boolean(value: bool | None) -> mc.Space:
    space = mutable()
    space.model.flag = pyo.BooleanVar()
    if value is not None:
        space.model.flag.fix(value)
    return space


def order(names: str, rules: str = "ab") -> mc.Space:
    space = mc.Space("order")
    for name in names:
        space.integer(name, 0, 5)
    for rule in rules:
        space.rule(rule, space[rule] <= 4)
    return space


def domain(kind: Any) -> mc.Space:
    space = mutable()
    space.model.auxiliary = pyo.Var(domain=kind, bounds=(0, 3))
    return space


def fixed_when_declared(value: float) -> mc.Space:
    space = mutable()
    space.model.v = pyo.Var(bounds=(0, 9))
    space.model.v.fix(value)
    space.rule("with a fixed one", space["x"] + space.model.v <= 9)
    space.model.v.fix(1.0)
    return space


CHANGES: list[tuple[str, mc.Space, mc.Space, str]] = [
    ("bound", mutable(3), mutable(4), r"arithmetic of rule 'bound' was .* <= 3.0 and is .* <= 4.0 now"),
    ("slope", mutable(when=3), mutable(when=2), r"arithmetic of rule 'slope' was .*6.0\*.* and is .*4.0\*"),
    ("param of a constraint", constraint(6), constraint(7), "Constraint 'capped' was .* <= 6.0 and is .* <= 7.0 now"),
    (
        "param set later",
        constraint(6),
        after(constraint(6), lambda m: m.extra.set_value(7)),
        "Constraint 'capped' was .* <= 6.0 and is .* <= 7.0 now",
    ),
    ("expression", named_expression(1.0), named_expression(2.0), "Constraint 'capped' was"),
    ("param in a disjunct", disjunction(3), disjunction(4), "Constraint 'low.small' was .* <= 3.0 and is .* <= 4.0"),
    ("a disjunct's own", disjunction(3), disjunction(3, inner=False), "Constraint 'high.large' is gone"),
    ("xor", disjunction(3), disjunction(3, xor=False), "disjunction 'either' was exactly one .* and is at least one"),
    (
        "disjunct switched off",
        disjunction(3),
        after(disjunction(3), lambda m: m.high.deactivate()),
        "disjunction 'either' was low, high and is low now",
    ),
    ("logic", logical(True), logical(False), "LogicalConstraint 'logic' was"),
    ("fixing", mutable(), after(mutable(), lambda m: m.parameters["x"].z[9].fix(0)), "the fixing of .* is new"),
    ("bounds", mutable(), after(mutable(), lambda m: m.parameters["y"].x.setub(4)), "the bounds of .*0.0, 5.0.*0.0, 4"),
    ("a fixed boolean", fixed_boolean(True), fixed_boolean(False), "fixed 'flag' was True and is False now"),
    ("a boolean set free", fixed_boolean(True), fixed_boolean(None), "fixed 'flag' was True and is not there now"),
    ("auxiliary domain", domain(pyo.Reals), domain(pyo.Integers), "variable 'auxiliary' was Reals and is Integers now"),
    ("order", order("abc"), order("bac"), "the order of the parameters was 'a', 'b', 'c' and is 'b', 'a', 'c' now"),
    ("order of rules", order("abc"), order("abc", "ba"), "the order of the rules was 'a', 'b' and is 'b', 'a' now"),
    ("frozen fixing", fixed_when_declared(2.0), fixed_when_declared(3.0), "rule 'with a fixed one' was .*7.0.*6.0"),
]


@pytest.mark.parametrize(("then", "now", "named"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_a_change_is_seen_and_named(then: mc.Space, now: mc.Space, named: str) -> None:
    before, later = listing(then), listing(now)
    assert fingerprint(before) != fingerprint(later)
    found = differences(before, later)
    assert any(re.search(named, sentence) for sentence in found), found


@pytest.mark.parametrize("make", [mutable, lambda: constraint(6), lambda: disjunction(3), lambda: order("abc")])
def test_the_same_declarations_made_again_are_the_same(make: Callable[[], mc.Space]) -> None:
    assert listing(make()) == listing(make())


def test_what_follows_from_a_named_difference_is_not_named_again() -> None:
    found = differences(listing(tiny.tiny_space(10)), listing(tiny.tiny_space(11)))
    assert len(found) == 1
    assert found[0].startswith("rule 'layers are capped' was ")
    more = tiny.tiny_space()
    more.real("dropout", 0.0, 0.5)
    found = differences(listing(tiny.tiny_space()), listing(more))
    assert found[0] == "parameter 'dropout' is new"
    assert not any("the order of" in sentence or "arithmetic" in sentence for sentence in found)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (lambda: mutable(4), "arithmetic of rule 'bound'"),
        (lambda: reordered(mutable()), "the order of the parameters was"),
    ],
)
def test_a_journal_of_other_numbers_or_another_order_is_refused(
    journal: Path, changed: Callable[[], mc.Space], named: str
) -> None:
    with mc.Study(mutable(), "random", storage=journal) as study:
        study.tell(study.ask(), 1.0)
    with pytest.raises(StorageError, match=named):
        mc.Study(changed(), "random", storage=journal)
    with mc.Study(mutable(), "random", storage=journal) as study:
        assert study.ask().number == 1


def reordered(space: mc.Space) -> mc.Space:
    declaration_of(space).parameters = dict(reversed(space.parameters.items()))
    return space
