"""Refusals of the live model: unsupported components are refused by name at declaration, before any solve."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunct, Disjunction

import mipcash as mc
from mipcash.errors import RuleError, SpaceError
from mipcash.space.compiled import declaration_of


def reals() -> Any:
    m = pyo.ConcreteModel()
    m.unit = pyo.Block()
    m.unit.x = pyo.Var(bounds=(0, 2))
    m.unit.y = pyo.Var(bounds=(1, 5))
    m.k = pyo.Var(domain=pyo.Integers, bounds=(0, 4))
    m.f = pyo.Var(domain=pyo.Set(initialize=[0.5, 1.5]))
    m.b = pyo.BooleanVar()
    return m


# -- constraints ----------------------------------------------------------------------------------------------------

OTHER = reals()
BAD: dict[str, tuple[Callable[[Any], Any], str]] = {
    "function": (lambda m: pyo.exp(m.unit.x) <= 2, "degree above two"),
    "degree three": (lambda m: m.unit.x * m.k * m.k <= 2, "degree above two"),
    "division": (lambda m: m.unit.x / m.unit.y <= 2, "degree above two"),
    "other model": (lambda m: m.unit.x + OTHER.unit.x <= 2, "another space"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_constraint_is_refused_by_name_at_declaration_in_a_disjunct_and_later(what: str) -> None:
    make, cause = BAD[what]

    def refused(name: str, ask: Callable[[], object]) -> None:
        with pytest.raises(RuleError) as caught:
            ask()
        assert name in str(caught.value)
        assert cause in str(caught.value)
        assert "_pyomo" not in str(caught.value)

    m = reals()
    m.unit.bad = pyo.Constraint([7], rule=lambda b, i: make(m))
    refused("unit.bad[7]", lambda: mc.Space.from_pyomo(m))
    m.unit.bad.deactivate()
    mc.Space.from_pyomo(m)
    n = reals()
    n.unit.on, n.unit.off = Disjunct(), Disjunct()
    n.unit.on.bad = pyo.Constraint(expr=make(n))
    n.unit.either = Disjunction(expr=[n.unit.on, n.unit.off])
    refused("unit.on.bad", lambda: mc.Space.from_pyomo(n))
    later = reals()
    space = mc.Space.from_pyomo(later)
    space.sample(1)
    later.unit.bad = pyo.Constraint(expr=make(later))
    refused("unit.bad", lambda: space.sample(1))
    later.unit.del_component("bad")
    space.sample(1)


def test_a_constraint_with_a_deleted_variable_is_refused_by_name() -> None:
    m = reals()
    m.row = pyo.Constraint(expr=m.unit.x + m.k <= 3)
    m.unit.del_component("x")
    with pytest.raises(RuleError, match=r"'row' uses .*on no model any more"):
        mc.Space.from_pyomo(m)


# -- logic ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "cause"),
    [
        (lambda m: (m.k >= 2).implies(m.b), "holds the relation"),
        (lambda m: pyo.lor(m.b, m.unit.x <= 1), "holds the relation"),
        (lambda m: pyo.atleast(m.k, m.b, m.b), "not a constant"),
        (lambda m: pyo.all_different(m.k, m.f), "AllDifferentExpression"),
        (lambda m: pyo.count_if(m.b) == 1, "holds the relation"),
    ],
)
def test_logic_that_cannot_be_transformed_is_refused(make: Callable[[Any], Any], cause: str) -> None:
    m = reals()
    m.unit.logic = pyo.LogicalConstraint(expr=make(m))
    with pytest.raises(RuleError, match=r"'unit\.logic'") as caught:
        mc.Space.from_pyomo(m)
    assert cause in str(caught.value)


def test_a_disjunct_without_a_disjunction_is_refused() -> None:
    m = reals()
    m.unit.d = Disjunct()
    m.unit.d.row = pyo.Constraint(expr=m.k <= 1)
    with pytest.raises(RuleError, match=r"'unit\.d' is in no active Disjunction"):
        mc.Space.from_pyomo(m)
    m.unit.empty = Disjunct()
    m.either = Disjunction(expr=[m.unit.d, m.unit.empty])
    mc.Space.from_pyomo(m)


def test_an_unbounded_auxiliary_variable_is_refused_by_name_if_it_is_used() -> None:
    m = reals()
    m.unit.t = pyo.Var(within=pyo.NonNegativeReals)
    space = mc.Space.from_pyomo(m, auxiliary=["unit.t"])
    assert len(space.sample(3)) == 3
    m.unit.row = pyo.Constraint(expr=m.unit.x <= m.unit.t)
    with pytest.raises(SpaceError, match=r"'unit\.t' needs finite bounds, because constraint 'unit\.row'"):
        space.sample(1)


# -- special ordered sets -------------------------------------------------------------------------------------------

NAMES = ("a", "b", "c", "d")


def legal_pattern(values: tuple[int, ...], n: int) -> bool:
    on = [i for i, v in enumerate(values) if v]
    return not on or on[-1] - on[0] < n


@pytest.mark.parametrize(
    ("n", "expand_limit", "later"),
    [(1, 64, True), (2, 2, True), (3, 2, False)],
)
def test_special_ordered_sets_agree_with_enumeration(n: int, expand_limit: int, later: bool) -> None:
    """The sets contain expanded or wide integers, and weights determine their order."""
    m = pyo.ConcreteModel()
    for name, (low, high) in zip(NAMES, ((0, 2), (-1, 1), (0, 1), (0, 3)), strict=True):
        setattr(m, name, pyo.Var(domain=pyo.Integers, bounds=(low, high)))
    order = pyo.SOSConstraint(rule=lambda m: ([m.c, m.a, m.d, m.b], [30, 10, 40, 20]), sos=n)
    if not later:
        m.order = order
    space = mc.Space.from_pyomo(m, expand_limit=expand_limit)
    if later:
        assert len(space.sample(3)) == 3
        m.order = order
    grid = list(itertools.product(range(3), range(-1, 2), range(2), range(4)))
    expected = {v for v in grid if legal_pattern(v, n)}
    assert {v for v in grid if space.is_legal(dict(zip(NAMES, v, strict=True)))} == expected
    assert {tuple(c[k] for k in NAMES) for c in space.sample(15, seed=0)} <= expected
    value = space.optimum(m.a - 2 * m.b + 3 * m.c + m.d, "max").value
    assert value == pytest.approx(max(a - 2 * b + 3 * c + d for a, b, c, d in expected))
    bad = next(v for v in grid if v not in expected)
    assert "'order'" in str(space.validate(dict(zip(NAMES, bad, strict=True)))[0])
    m.a.fix(2)
    fixed = {v for v in expected if v[0] == 2}
    assert {v for v in grid if space.is_legal(dict(zip(NAMES, v, strict=True)))} == fixed
    m.a.unfix()
    m.order.deactivate()
    assert all(space.is_legal(dict(zip(NAMES, v, strict=True))) for v in grid)
    assert not declaration_of(space).parts.derived
    m.order.activate()
    assert {v for v in grid if space.is_legal(dict(zip(NAMES, v, strict=True)))} == expected


def test_unsupported_special_ordered_sets_are_refused() -> None:
    m = pyo.ConcreteModel()
    m.a = pyo.Var(bounds=(0, 1))
    m.unit = pyo.Block()
    m.unit.x = pyo.Var([1, 2])
    m.unit.order = pyo.SOSConstraint(var=m.unit.x, sos=1)
    with pytest.raises(
        SpaceError, match=r"SOSConstraint 'unit\.order' holds 'unit\.x\[1\]', which has no finite bounds"
    ):
        mc.Space.from_pyomo(m, auxiliary=["unit.x"])
    m.unit.x.setlb(1)
    m.unit.x.setub(2)
    with pytest.raises(RuleError, match=r"'unit\.order' cannot hold"):
        mc.Space.from_pyomo(m, auxiliary=["unit.x"])
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(300), bounds=(0, 1))
    m.order = pyo.SOSConstraint(var=m.x, sos=1)
    with pytest.raises(RuleError, match=r"'order' has 300 variables"):
        mc.Space.from_pyomo(m)
    m = reals()
    m.d, m.e = Disjunct(), Disjunct()
    m.d.order = pyo.SOSConstraint(rule=lambda b: [m.unit.x, m.k], sos=1)
    m.either = Disjunction(expr=[m.d, m.e])
    with pytest.raises(SpaceError, match=r"'d\.order' is part of a Disjunct"):
        mc.Space.from_pyomo(m)


@pytest.mark.parametrize("form", ["SOS2", "LOG", "INC"])
def test_piecewise_functions(form: str) -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(domain=pyo.Integers, bounds=(0, 3))
    m.y = pyo.Var(bounds=(0, 9))
    m.curve = pyo.Piecewise(m.y, m.x, pw_pts=[0.0, 1.0, 3.0], pw_constr_type="EQ", f_rule=[0, 1, 5], pw_repn=form)
    space = mc.Space.from_pyomo(m)
    assert list(space.parameters) == ["x", "y"]
    for x, y in ((0, 0.0), (1, 1.0), (2, 3.0), (3, 5.0)):
        assert space.is_legal({"x": x, "y": y})
        assert not space.is_legal({"x": x, "y": y + 0.5})
    assert space.optimum(3 * m.x - 2 * m.y, "max").value == pytest.approx(1)


# -- changes of the live model --------------------------------------------------------------------------------------


def grid_values(space: mc.Space, name: str, values: range) -> list[int]:
    legal = [v for v in values if space.is_legal({name: v})]
    assert {c[name] for c in space.sample(10)} <= set(legal)
    return legal


def test_bounds_narrowed_on_the_live_model() -> None:
    m = pyo.ConcreteModel()
    m.n = pyo.Var(domain=pyo.Integers, bounds=(0, 9))
    space = mc.Space.from_pyomo(m)
    assert grid_values(space, "n", range(10)) == list(range(10))
    m.n.setub(4.5)
    m.n.setlb(2)
    assert grid_values(space, "n", range(10)) == [2, 3, 4]
    assert space.optimum(m.n, "max").value == pytest.approx(4)
    assert "'n restricted on the model'" in str(space.validate({"n": 7})[0])
    m.n.setlb(0)
    m.n.setub(9)
    assert grid_values(space, "n", range(10)) == list(range(10))
    m.n.setub(12)
    with pytest.raises(SpaceError, match="bounds of 'n' were widened"):
        space.sample(1)


def test_levels_narrowed_on_the_live_model() -> None:
    space = mc.Space("levels")
    space.integer("n", 0, 4)
    space.model.parameters["n"].z[1].setub(0)
    assert grid_values(space, "n", range(5)) == [0, 2, 3, 4]
    assert "'n[1] restricted on the model'" in str(space.validate({"n": 1})[0])
    space.model.parameters["n"].z[1].setub(1)
    space.model.parameters["n"].z[3].setlb(1)
    assert grid_values(space, "n", range(5)) == [3]
    space.model.parameters["n"].z[3].setlb(0)
    space.model.parameters["n"].z[2].fix(0)
    assert "'n[2] restricted on the model'" in str(space.validate({"n": 2})[0])
    space.model.parameters["n"].z[2].unfix()
    space["n"].boolean(3).fix(False)
    assert grid_values(space, "n", range(5)) == [0, 1, 2, 4]


def test_a_boolean_fixed_on_the_live_model() -> None:
    m = pyo.ConcreteModel()
    m.b, m.c = pyo.BooleanVar(), pyo.BooleanVar()
    space = mc.Space.from_pyomo(m)
    pairs = list(itertools.product((False, True), repeat=2))
    for logic in (False, True):
        if logic:
            m.implied = pyo.LogicalConstraint(expr=m.b.implies(m.c))
        for fixed in (True, False):
            m.b.fix(fixed)
            expected = {(b, c) for b, c in pairs if b == fixed and (c or not (logic and b))}
            assert {(b, c) for b, c in pairs if space.is_legal({"b": b, "c": c})} == expected
            assert {tuple(c.values()) for c in space.sample(20)} == expected
        m.b.unfix()
    assert {tuple(c.values()) for c in space.sample(20)} == {(False, False), (False, True), (True, True)}


def test_a_domain_changed_or_a_variable_freed_on_the_live_model_is_refused() -> None:
    m = reals()
    m.unit.y.fix(1)
    space = mc.Space.from_pyomo(m)
    assert "unit.y" not in space.parameters
    space.sample(1)
    m.unit.y.unfix()
    with pytest.raises(SpaceError, match=r"'unit\.y' was fixed when the space was declared"):
        space.sample(1)
    m.unit.y.fix(1)
    m.unit.x.domain = pyo.Integers
    with pytest.raises(SpaceError, match=r"domain of 'unit\.x' was changed"):
        space.sample(1)
