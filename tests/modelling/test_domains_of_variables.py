"""Domains of variables in adopted models: exactly the values of the Pyomo domain within the bounds."""

from __future__ import annotations

import random
from typing import Any

import pyomo.environ as pyo
import pytest
from pyomo.core.base.range import NumericRange
from pyomo.gdp import Disjunct

import mipcash as mc
from mipcash.errors import SpaceError
from mipcash.modelling.domains import Integer, Ordinal, Real

FINITE: dict[str, tuple[Any, tuple[Any, Any], list[float]]] = {
    # name of the case: (domain, bounds, values)
    "set": (pyo.Set(initialize=[1, 2, 4]), (None, None), [1, 2, 4]),
    "set within bounds": (pyo.Set(initialize=[1, 2, 4, 8]), (2, 7), [2, 4]),
    "step within bounds": (pyo.RangeSet(0, 10, 5), (1, 10), [5, 10]),
    "backwards": (pyo.RangeSet(9, 1, -4), (None, None), [1, 5, 9]),
    "fractions": (pyo.Set(initialize=[0.5, 1.5]), (None, None), [0.5, 1.5]),
    "steps of a quarter": (pyo.RangeSet(0, 1, 0.25), (None, None), [0, 0.25, 0.5, 0.75, 1]),
    "union": (pyo.RangeSet(0, 3) | pyo.RangeSet(7, 9), (None, None), [0, 1, 2, 3, 7, 8, 9]),
    "intersection": (pyo.Integers & pyo.RangeSet(0, 9, 3), (1, None), [3, 6, 9]),
    "symmetric difference": (pyo.RangeSet(0, 5) ^ pyo.RangeSet(3, 8), (None, None), [0, 1, 2, 6, 7, 8]),
    "steps that interleave": (pyo.RangeSet(0, 12, 4) | pyo.RangeSet(0, 12, 6), (None, None), [0, 4, 6, 8, 12]),
    "binary": (pyo.Binary, (None, None), [0, 1]),
    "one value": (pyo.Set(initialize=[7]), (None, None), [7]),
    "integers": (pyo.Integers, (-2, 2), [-2, -1, 0, 1, 2]),
    "integers within fractions": (pyo.Integers, (0.5, 3.5), [1, 2, 3]),
    "integers within rounding": (pyo.Integers, (3 * (0.1 + 0.2) / 0.3, 0.1 * 3 / 0.1), [3]),
    "large integers": (pyo.Integers, (10**9, 10**9 + 2), [10**9, 10**9 + 1, 10**9 + 2]),
}


def adopted(domain: Any, bounds: tuple[Any, Any] = (None, None), **options: Any) -> mc.Space:
    m = pyo.ConcreteModel()
    m.other = pyo.Var(domain=pyo.Binary)
    m.x = pyo.Var(domain=domain, bounds=bounds)
    return mc.Space.from_pyomo(m, **options)


@pytest.mark.parametrize("what", FINITE)
def test_a_finite_domain_is_adopted_exactly(what: str) -> None:
    domain, bounds, values = FINITE[what]
    space = adopted(domain, bounds)
    assert list(space["x"].domain.values) == values
    assert [type(v) for v in space["x"].domain.values] == [
        int if all(float(v).is_integer() for v in values) else float for v in values
    ]
    assert {c["x"] for c in space.sample(20, seed=0)} <= set(values)
    between = {v + d for v in values for d in (-1, -0.5, 0.5, 1)} - set(values)
    assert all(space.is_legal({"other": 0, "x": v}) for v in values)
    assert not any(space.is_legal({"other": 0, "x": v}) for v in between)
    for sense, best in (("min", min), ("max", max)):
        assert space.optimum(space.model.x, sense).value == pytest.approx(best(values))


@pytest.mark.parametrize("what", ["set", "step within bounds", "backwards", "fractions", "union", "large integers"])
def test_a_finite_domain_of_an_auxiliary_variable_is_adopted_exactly(what: str) -> None:
    """The parameter equals the auxiliary variable, so the domain of that variable decides its legal values."""
    domain, bounds, values = FINITE[what]
    m = pyo.ConcreteModel()
    grid = sorted({w for v in values for w in (v - 1, v - 0.5, v, v + 0.5, v + 1)})
    m.y = pyo.Var(domain=pyo.Set(initialize=grid))
    m.x = pyo.Var(domain=domain, bounds=bounds)
    m.same = pyo.Constraint(expr=m.y == m.x)
    space = mc.Space.from_pyomo(m, auxiliary=["x"])
    assert list(space.parameters) == ["y"]
    assert [v for v in grid if space.is_legal({"y": v})] == values
    assert {c["y"] for c in space.sample(10, seed=0)} <= set(values)
    for sense, best in (("min", min), ("max", max)):
        assert space.optimum(m.y, sense).value == pytest.approx(best(values))


def test_an_auxiliary_variable_of_the_live_model_keeps_its_domain() -> None:
    space = mc.Space("live")
    a = space.integer("a", 0, 8)
    space.sample(1)
    space.model.h = pyo.Var(domain=pyo.Set(initialize=[1, 2, 4]))
    space.model.tie = pyo.Constraint(expr=a == 2 * space.model.h)
    assert [k for k in range(9) if space.is_legal({"a": k})] == [2, 4, 8]
    assert {c["a"] for c in space.sample(15)} == {2, 4, 8}
    space.model.h.setub(3)
    assert [k for k in range(9) if space.is_legal({"a": k})] == [2, 4]
    assert {c["a"] for c in space.sample(8)} == {2, 4}


def test_random_sets_against_their_members() -> None:
    rng = random.Random(5)
    for _ in range(15):
        ranges = []
        for _ in range(rng.randint(1, 3)):
            start, step = rng.randint(-6, 6), rng.choice([0, 1, 1, 2, 3])
            ranges.append(NumericRange(start, start + step * rng.randint(0, 4), step))
        low, high = rng.choice([None, -4, -0.5]), rng.choice([None, 4, 7.5])
        members = [v for v in range(-8, 25) if any(v in r for r in ranges)]
        members = [v for v in members if (low is None or v >= low) and (high is None or v <= high)]
        if not members:
            with pytest.raises(SpaceError, match="'x' can take no value"):
                adopted(pyo.RangeSet(ranges=ranges), (low, high))
            continue
        domain = adopted(pyo.RangeSet(ranges=ranges), (low, high))["x"].domain
        assert list(domain.values) == members


def test_a_wide_domain_with_a_step_becomes_an_integer() -> None:
    for domain in (pyo.RangeSet(0, 10000, 5), pyo.Set(initialize=range(0, 10001, 5))):
        space = adopted(domain)
        assert space["x"].domain == Integer(0, 10000, 5)
        assert all(c["x"] % 5 == 0 for c in space.sample(8, seed=1))
        assert not space.is_legal({"other": 0, "x": 13})
        m = space.model
        m.row = pyo.Constraint(expr=m.x + 3 * m.other >= 4998)
        samples = space.sample(8, seed=1)
        assert all(c["x"] % 5 == 0 and c["x"] >= 4995 for c in samples)
        assert space.optimum(m.x).value == pytest.approx(4995)
        assert space.optimum(m.x, "max").value == pytest.approx(10000)


SEMI = pyo.RangeSet(ranges=[NumericRange(0, 0, 0), NumericRange(2, 5, 0)])


@pytest.mark.parametrize("end", [10**9, 10**12, 10**15])
def test_bounds_of_a_wide_integer_are_adopted_exactly(end: int) -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(domain=pyo.Integers, bounds=(-end, end))
    model.c = pyo.Constraint(expr=model.x >= 3 - end)
    domain = mc.Space.from_pyomo(model).parameters["x"].domain
    assert (domain.low, domain.high) == (-end, end)


def test_a_semi_continuous_variable() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(domain=SEMI, bounds=(None, 4.5))
    m.k = pyo.Var(domain=pyo.Integers, bounds=(0, 3))
    m.tie = pyo.Constraint(expr=m.k * m.x >= 1.5 - m.x)
    space = mc.Space.from_pyomo(m)
    assert space["x"].domain == Real(0, 4.5)
    samples = space.sample(8, seed=0)
    assert all(2 - 1e-6 <= c["x"] <= 4.5 + 1e-6 for c in samples)
    m.tie.deactivate()
    samples = space.sample(15, seed=0)
    assert all(abs(c["x"]) <= 1e-9 or 2 - 1e-6 <= c["x"] <= 4.5 + 1e-6 for c in samples)
    for x, legal in ((0.0, True), (0.5, False), (1.9, False), (2.0, True), (3.3, True), (4.5, True), (4.6, False)):
        assert space.is_legal({"x": x, "k": 1}) == legal
    assert "the domain of x" in str(space.validate({"x": 1.0, "k": 1})[0])
    assert space.optimum(m.x).value == pytest.approx(0)
    m.floor = pyo.Constraint(expr=m.x >= 0.1)
    assert space.optimum(m.x).value == pytest.approx(2)


def test_touching_intervals_are_one() -> None:
    ranges = [NumericRange(0, 1, 0, (True, False)), NumericRange(1, 1, 0), NumericRange(1, 2, 0, (False, True))]
    assert adopted(pyo.RangeSet(ranges=ranges))["x"].domain == Real(0, 2)
    assert adopted(pyo.PositiveReals, (0.5, 3))["x"].domain == Real(0.5, 3)


@pytest.mark.parametrize(
    ("domain", "bounds", "cause"),
    [
        (pyo.Set(initialize=["a", "b"]), (None, None), "not a set of numbers"),
        (pyo.Any, (0, 1), "not a set of numbers"),
        (pyo.EmptySet, (None, None), "no value"),
        (pyo.Integers, (0.2, 0.8), "no value"),
        (pyo.Reals, (2, 1), "no value"),
        (pyo.Reals, (0, None), "finite bounds"),
        (pyo.Integers, (None, 3), "finite bounds"),
        (pyo.PositiveReals, (None, 3), "setlb"),
        (pyo.NegativeReals, (-3, 0), "setub"),
        (pyo.Set(initialize=[k * k for k in range(2000)]), (None, None), "2000 values"),
        (pyo.Integers - pyo.Set(initialize=[3]), (0, 10**6), "1000000 values"),
        (pyo.RangeSet(ranges=[NumericRange(2 * k, 2 * k + 1, 0) for k in range(70)]), (None, None), "70 values"),
    ],
)
def test_an_unsupported_domain_is_refused_by_name(domain: Any, bounds: Any, cause: str) -> None:
    m = pyo.ConcreteModel()
    m.unit = pyo.Block()
    m.unit.x = pyo.Var(domain=domain, bounds=bounds)
    with pytest.raises(SpaceError, match=r"'unit\.x'") as caught:
        mc.Space.from_pyomo(m)
    assert cause in str(caught.value)


def test_an_indexed_variable_may_have_a_domain_for_each_index() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2, 3], domain=lambda m, i: {1: pyo.Binary, 2: pyo.Set(initialize=[1, 4]), 3: pyo.Reals}[i])
    m.x[3].setlb(0)
    m.x[3].setub(1)
    m.alias = pyo.Reference(m.x[:])
    space = mc.Space.from_pyomo(m)
    assert {k: p.domain for k, p in space.parameters.items()} == {
        "x[1]": Integer(0, 1),
        "x[2]": Integer(1, 4, 3),
        "x[3]": Real(0, 1),
    }


def test_constants_are_no_parameters() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0.3, 0.1 + 0.2))
    m.y = pyo.Var(bounds=(2, 2))
    m.f = pyo.Var(bounds=(0, 1))
    m.f.fix(0.25)
    m.a = pyo.Var(domain=pyo.Integers, bounds=(0, 4))
    m.flag, m.set_flag = pyo.BooleanVar(), pyo.BooleanVar()
    m.set_flag.fix(True)
    m.implied = pyo.LogicalConstraint(expr=m.set_flag.implies(m.flag))
    m.row = pyo.Constraint(expr=m.a <= m.y + m.f)
    space = mc.Space.from_pyomo(m)
    assert list(space.parameters) == ["a", "flag"]
    assert {tuple(c.values()) for c in space.sample(30)} == {(0, True), (1, True), (2, True)}


def test_variables_of_deactivated_blocks_are_no_parameters() -> None:
    m = pyo.ConcreteModel()
    m.a = pyo.Var(domain=pyo.Integers, bounds=(0, 2))
    m.unit = pyo.Block()
    m.unit.x = pyo.Var()
    m.unit.row = pyo.Constraint(expr=m.unit.x == m.a)
    m.unit.deactivate()
    space = mc.Space.from_pyomo(m)
    assert list(space.parameters) == ["a"]
    assert len(space.sample(20)) == 20
    m.unit.activate()
    with pytest.raises(SpaceError, match=r"'unit\.x' was part of a deactivated block"):
        space.sample(1)
    m.unit.deactivate()
    m.uses = pyo.Constraint(expr=m.unit.x >= m.a)
    with pytest.raises(SpaceError, match=r"'uses' uses 'unit\.x', which was part of a deactivated block"):
        space.sample(1)


def test_variables_of_disjuncts_are_named_or_refused() -> None:
    m = pyo.ConcreteModel()
    m.a = pyo.Var(domain=pyo.Integers, bounds=(0, 2))
    m.d = Disjunct()
    m.d.x = pyo.Var(bounds=(0, 1))
    m.d.deactivate()
    assert list(mc.Space.from_pyomo(m.clone()).parameters) == ["a"]
    m.d.activate()
    with pytest.raises(SpaceError, match=r"'d\.x' belongs to a Disjunct.*auxiliary="):
        mc.Space.from_pyomo(m)


def test_auxiliary_may_name_blocks_and_indexed_variables() -> None:
    m = pyo.ConcreteModel()
    m.a = pyo.Var(domain=pyo.Integers, bounds=(0, 2))
    m.x = pyo.Var([1, 2], bounds=(0, 1))
    m.unit = pyo.Block()
    m.unit.y = pyo.Var(bounds=(0, 1))
    assert list(mc.Space.from_pyomo(m, auxiliary=["x", "unit"]).parameters) == ["a"]


def test_a_refused_model_is_left_as_it_was() -> None:
    m = pyo.ConcreteModel()
    m.a = pyo.Var(domain=pyo.Set(initialize=[1, 2, 4]))
    m.x = pyo.Var(domain=SEMI)
    m.y = pyo.Var(bounds=(2, 2))
    m.flag = pyo.BooleanVar()
    m.bad = pyo.Constraint(expr=pyo.exp(m.x) <= 3)
    domains = {v.name: (v.domain, v.bounds, v.fixed) for v in m.component_data_objects(pyo.Var)}
    names = [c.name for c in m.component_objects()]
    with pytest.raises(SpaceError, match="'bad'"):
        mc.Space.from_pyomo(m)
    assert {v.name: (v.domain, v.bounds, v.fixed) for v in m.component_data_objects(pyo.Var)} == domains
    assert [c.name for c in m.component_objects()] == names
    assert m.flag.get_associated_binary() is None
    m.bad.deactivate()
    space = mc.Space.from_pyomo(m)
    assert list(space.parameters) == ["a", "x", "flag"]
    assert isinstance(space["a"].domain, Ordinal)
    assert len(space.sample(5)) == 5
