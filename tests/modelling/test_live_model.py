"""Live model ``space.model``: added, deactivated and fixed components count from the next call on."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunction

import mipcash as mc
from mipcash.errors import RuleError, SpaceError


def agree(space: mc.Space, domains: dict[str, list[object]], legal: object) -> None:
    """Assert that the solver, the samples and ``is_legal`` agree with a predicate on a full grid."""
    grid = [dict(zip(domains, values, strict=True)) for values in itertools.product(*domains.values())]
    expected = [c for c in grid if legal(**c)]  # type: ignore[operator]
    assert [c for c in grid if space.is_legal(c)] == expected
    if not expected:
        assert space.optimum(0 * next(iter(space.parameters.values()))).status == "infeasible"
        return
    samples = space.sample(12, seed=1)
    assert all(c in expected for c in samples)
    for name in domains:
        if all(isinstance(v, int) and not isinstance(v, bool) for v in domains[name]):
            values = [c[name] for c in expected]
            for sense, best in (("min", min), ("max", max)):
                solution = space.optimum(1 * space[name], sense)
                assert solution.value == pytest.approx(best(values))
                assert solution.config in expected


def pair() -> tuple[mc.Space, dict[str, list[object]]]:
    space = mc.Space("pair")
    space.integer("a", 0, 4)
    space.integer("b", 0, 4)
    space.rule("sum", space["a"] + space["b"] <= 6)
    return space, {"a": list(range(5)), "b": list(range(5))}


def test_a_constraint_added_after_a_call_counts() -> None:
    space, domains = pair()
    agree(space, domains, lambda a, b: a + b <= 6)
    space.model.more = pyo.Constraint(expr=space["a"] * space["b"] >= 2)
    agree(space, domains, lambda a, b: a + b <= 6 and a * b >= 2)
    assert "more" in str(space.validate({"a": 1, "b": 1})[0])
    space.model.more.set_value(space["a"] * space["b"] >= 4)
    agree(space, domains, lambda a, b: a + b <= 6 and a * b >= 4)
    space.model.more.deactivate()
    agree(space, domains, lambda a, b: a + b <= 6)


def test_deactivating_and_activating_a_rule_counts() -> None:
    space, domains = pair()
    agree(space, domains, lambda a, b: a + b <= 6)
    space.model.rules["sum"].deactivate()
    agree(space, domains, lambda a, b: True)
    space.model.rules["sum"].activate()
    space.rule("if", space["b"] == 3, when=space["a"].is_(2))
    agree(space, domains, lambda a, b: a + b <= 6 and (a != 2 or b == 3))
    for index in list(space.model.rules):
        if isinstance(index, tuple):
            space.model.rules[index].deactivate()
    agree(space, domains, lambda a, b: a + b <= 6)


def test_fixing_and_narrowing_numbers_counts() -> None:
    for in_a_rule in (False, True):
        space = mc.Space("numbers", expand_limit=4)
        n, x, on = space.integer("n", 0, 20), space.real("x", 0.0, 1.0), space.categorical("on", [False, True])
        space.real("y", 1.0, 2.0, when=on[True])
        if in_a_rule:
            space.rule("all", n + x + space["y"] <= 100)
        assert len({c["n"] for c in space.sample(8, seed=0)}) > 1
        space.model.parameters["n"].x.fix(7)
        space.model.parameters["x"].x.setub(0.25)
        samples = space.sample(8, seed=0)
        assert {c["n"] for c in samples} == {7}
        assert max(c["x"] for c in samples) <= 0.25 + 1e-6
        assert not space.is_legal({"n": 8, "x": 0.1, "on": False})
        assert not space.is_legal({"n": 7, "x": 0.5, "on": False})
        assert space.is_legal({"n": 7, "x": 0.1, "on": True, "y": 1.5})
        assert space.optimum(n + x, "max").value == pytest.approx(7.25)
        space.model.parameters["y"].x.fix(1.5)
        assert all(c.get("y") == pytest.approx(1.5) for c in space.sample(4, seed=2))
        assert not space.is_legal({"n": 7, "x": 0.1, "on": False})


def test_fixing_an_auxiliary_variable_counts() -> None:
    space, domains = pair()
    auxiliary = space.auxiliary("h", 0, 4)
    space.rule("even", space["a"] == 2 * auxiliary)
    agree(space, domains, lambda a, b: a + b <= 6 and a % 2 == 0)
    space.model.parameters["h"].x.fix(1)
    agree(space, domains, lambda a, b: a + b <= 6 and a == 2)


def test_mutable_params_and_variables_of_the_user_count_in_constraints() -> None:
    """A variable that the user adds is existentially quantified, like an auxiliary variable."""
    space, domains = pair()
    space.model.most = pyo.Param(initialize=5, mutable=True)
    space.model.limit = pyo.Constraint(expr=space["a"] + 2 * space["b"] <= space.model.most)
    agree(space, domains, lambda a, b: a + b <= 6 and a + 2 * b <= 5)
    space.model.most.set_value(3)
    agree(space, domains, lambda a, b: a + b <= 6 and a + 2 * b <= 3)
    space.model.t = pyo.Var(bounds=(0.0, 1.5))
    space.model.near = pyo.Constraint(expr=space["a"] - space["b"] == space.model.t)
    agree(space, domains, lambda a, b: a + 2 * b <= 3 and 0 <= a - b <= 1.5)


def test_a_rule_refuses_a_changed_param() -> None:
    space, domains = pair()
    space.model.most = pyo.Param(initialize=5, mutable=True)
    space.rule("most", (space["a"] + 2 * space["b"] <= space.model.most) | (space["b"] >= 9))
    agree(space, domains, lambda a, b: a + b <= 6 and a + 2 * b <= 5)
    space.model.most.set_value(3)
    with pytest.raises(
        RuleError, match=r"'most' was declared with most = 5, which it keeps, and most is now 3; .* Constraint"
    ):
        space.count()
    space.model.rules.deactivate()
    assert space.count() > 0


# -- adopted models -------------------------------------------------------------------------------------------------


def adopted() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel("adopted")
    m.flag = pyo.Var(domain=pyo.Binary)
    m.n = pyo.Var(domain=pyo.Integers, bounds=(-1, 3))
    m.sure = pyo.BooleanVar()
    m.auxiliary = pyo.Var(domain=pyo.Integers, bounds=(0, 3))
    m.even = pyo.Constraint(expr=m.n + 1 == 2 * m.auxiliary)
    m.tie = pyo.Constraint(expr=m.n * m.flag <= 1)
    return m


def test_an_adopted_model_is_live() -> None:
    space = mc.Space.from_pyomo(adopted(), auxiliary=["auxiliary"])
    assert sorted(space.parameters) == ["flag", "n", "sure"]
    domains: dict[str, list[object]] = {"flag": [0, 1], "n": [-1, 0, 1, 2, 3], "sure": [False, True]}
    agree(space, domains, lambda flag, n, sure: (n + 1) % 2 == 0 and n * flag <= 1)
    m = space.model
    m.later = pyo.LogicalConstraint(expr=m.sure)
    agree(space, domains, lambda flag, n, sure: sure and (n + 1) % 2 == 0 and n * flag <= 1)
    m.flag.fix(1)
    agree(space, domains, lambda flag, n, sure: flag == 1 and sure and (n + 1) % 2 == 0 and n <= 1)
    space.rule("declared on top", space["n"] <= 0)
    agree(space, domains, lambda flag, n, sure: flag == 1 and sure and n == -1)


def test_models_that_cannot_be_adopted_are_refused() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, None))
    with pytest.raises(SpaceError, match=r"'x'.*finite bounds"):
        mc.Space.from_pyomo(m)
    with pytest.raises(SpaceError, match="nobody"):
        mc.Space.from_pyomo(adopted(), auxiliary=["nobody"])
    with pytest.raises(SpaceError, match="ConcreteModel"):
        mc.Space.from_pyomo(pyo.AbstractModel())
    m = pyo.ConcreteModel()
    m.rules = pyo.Var(bounds=(0, 1))
    with pytest.raises(SpaceError, match="rules"):
        mc.Space.from_pyomo(m)


def test_constraints_and_disjunctions_of_the_model_are_printed() -> None:
    model = pyo.ConcreteModel("plant")
    model.x, model.y = pyo.Var(bounds=(0, 10)), pyo.Var(domain=pyo.Integers, bounds=(0, 4))
    model.line = pyo.Constraint(expr=model.x + model.y <= 8)
    model.either = Disjunction(expr=[[model.x <= 1, model.y >= 2], [model.x >= 5]])
    space = mc.Space.from_pyomo(model)
    space.rule("few", space["y"] <= 3)
    text = str(space)
    for line in (
        "rule 'few'           y <= 3",
        "constraint 'line'    x + y <= 8",
        "constraint 'either'  (x <= 1 and y >= 2) or (x >= 5)",
    ):
        assert line in text


def test_a_constraint_of_the_model_may_have_the_name_of_a_rule() -> None:
    space = mc.Space("memory")
    a, b = space.integer("a", 0, 5), space.integer("b", 0, 5)
    space.rule("memory", (a <= 3) | (b >= 2))
    space.model.memory = pyo.Constraint(expr=a + b <= 4)
    legal = [(i, j) for i in range(6) for j in range(6) if (i <= 3 or j >= 2) and i + j <= 4]
    assert space.count() == len(legal)
    assert all(space.is_legal({"a": i, "b": j}) for i, j in legal)


def test_named_expressions_and_domains_of_the_user_count() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var([1, 2], domain=pyo.Integers, bounds=(0, 3))
    model.e = pyo.Expression([1, 2], rule=lambda m, i: m.x[i])
    model.c = pyo.Constraint(expr=model.e[1] + model.e[2] <= 3)
    space = mc.Space.from_pyomo(model)
    assert space.count().number == 10
    model.e[1].set_value(2 * model.x[1])
    assert space.count().number == 6
    unit = pyo.ConcreteModel()
    unit.x = pyo.Var(bounds=(0, 1))  # a real over the range of a binary
    space = mc.Space.from_pyomo(unit)
    assert space.is_legal({"x": 0.5})
    unit.x.domain = pyo.Binary
    with pytest.raises(SpaceError, match="the domain of 'x' was changed"):
        space.is_legal({"x": 0.5})


def test_a_rule_refuses_a_changed_param_of_its_condition() -> None:
    space = mc.Space("conditional")
    a, y = space.integer("a", 0, 9), space.real("y", 0, 1)
    space.model.p = pyo.Param(initialize=5, mutable=True)
    space.rule("r", y <= 0.5, when=a >= space.model.p)
    assert not space.is_legal({"a": 6, "y": 0.9})
    space.model.p = 7
    with pytest.raises(RuleError, match="rule 'r' was declared with p = 5"):
        space.is_legal({"a": 6, "y": 0.9})


def test_bounds_by_a_param_are_followed() -> None:
    model = pyo.ConcreteModel("p")
    model.cap = pyo.Param(initialize=100, mutable=True)
    model.w = pyo.Var(domain=pyo.NonNegativeIntegers, bounds=(0, model.cap))
    model.s = pyo.Var(domain=pyo.RangeSet(0, 0) | pyo.RangeSet(20, 300, 0), bounds=(0, model.cap))
    model.z = pyo.Var(domain=pyo.Binary)
    model.c = pyo.Constraint(expr=model.w >= 10 * model.z)
    space = mc.Space.from_pyomo(model)
    model.cap = 50.5
    assert {n: space.bounds()[n].high for n in "ws"} == {"w": 50, "s": 50.5}
    assert space.optimum(model.w, "max").value == 50
    assert not space.is_legal({"w": 80, "s": 0.0, "z": True})
    model.cap = 200
    with pytest.raises(SpaceError, match="widened"):
        space.bounds()


@pytest.mark.parametrize("change", [
    lambda m: m.y.fix(5), lambda m: m.w.fix(501), lambda m: m.w.fix(2.5), lambda m: m.y.fix(None),
    lambda m: (m.y.setlb(2), m.y.setub(1)), lambda m: (m.w.setlb(5.2), m.w.setub(5.8)), lambda m: m.x[1].fix(7),
])  # fmt: skip
def test_a_variable_that_can_take_no_value_is_named(change: Callable[[Any], object]) -> None:
    model = pyo.ConcreteModel("p")
    model.x = pyo.Var([1, 2], domain=pyo.Integers, bounds=(0, 5))
    model.y, model.w = pyo.Var(bounds=(0, 3)), pyo.Var(domain=pyo.Integers, bounds=(0, 500))
    model.c = pyo.Constraint(expr=model.x[1] + model.x[2] <= 6)
    space = mc.Space.from_pyomo(model)
    change(model)
    for ask in (space.count, space.explain, space.sample):
        with pytest.raises(SpaceError, match="can take no value"):
            ask()


def test_a_parameter_deleted_from_the_model_is_named() -> None:
    model = pyo.ConcreteModel("p")
    model.x, model.y = pyo.Var(domain=pyo.Integers, bounds=(0, 9)), pyo.Var(bounds=(0, 1))
    model.c = pyo.Constraint(expr=model.x <= 7)
    space = mc.Space.from_pyomo(model)
    model.del_component(model.y)
    with pytest.raises(SpaceError, match="a parameter was deleted from the model, 'y'"):
        space.count()


def test_bounds_that_rounding_moved_and_references_to_blocks_are_adopted() -> None:
    model = pyo.ConcreteModel("p")
    model.x = pyo.Var(domain=pyo.Integers, bounds=(0.1 * 3 * 1e9, 300000100))
    model.b = pyo.Block([1, 2])
    model.b[1].others = pyo.Reference(model.b[:])
    model.c = pyo.Constraint(expr=model.x <= 300000050)
    space = mc.Space.from_pyomo(model)
    assert space.optimum(model.x).value == 300000000
    assert space.validate({"x": 300000000}) == []
