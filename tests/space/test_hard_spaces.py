"""Spaces that solvers get wrong at their tolerances: large and small coefficients, narrow gaps, big-M constants."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunct, Disjunction

import mipcash as mc
from mipcash.backends.registry import solvers
from mipcash.errors import InfeasibleSpaceError, SpaceError
from mipcash.space.compiled import compiled

SOLVERS = [s.name for s in solvers() if s.installed and s.name != "auto"]
CONTINUOUS = [s for s in SOLVERS if s not in ("enumeration", "toulbar2")]


def test_an_equation_without_an_integer_solution_is_infeasible() -> None:
    for solver in SOLVERS:
        space = mc.Space("whole")
        c = space.categorical("c", ["a", "b"])
        space.rule("r", 0.5 * c["a"] == -0.3)
        assert "is empty" in space.explain(solver)
        assert space.optimum(c["a"], solver=solver).status == "infeasible"


def test_coefficients_of_many_magnitudes_in_one_rule() -> None:
    space = mc.Space("magnitudes", expand_limit=8)
    p0 = space.ordinal("p0", [-2, 0, 2])
    p1 = space.ordinal("p1", [0.1, 3], when=p0.is_(0, 2))
    p2 = space.ordinal("p2", [0.25, 1, 100])
    p3 = space.integer("p3", -1, 41, step=3, when=p2.is_(100, 0.25))
    space.rule("r0", 2 * p0 + 0.1 * p1 + 1e-6 * p3 + 0.5 * p2 * p3 <= 0.3)
    space.rule("r1", 1e-6 * p0 + 3 * p1 + 1e5 * p3 + p2 <= 0.5)
    space.rule("r2", -2 * p3 * p2 - p2 + 0.1 * p1 * p2 + 3e-9 * p0 <= 5)
    expression = 3 * space["p0"] * space["p3"] + 1e-6 * space["p1"]
    best = np.inf
    for p0, p1, p2, p3 in itertools.product([-2, 0, 2], [0.1, 3], [0.25, 1, 100], range(-1, 42, 3)):
        config = {"p0": p0, "p2": p2} | ({"p1": p1} if p0 >= 0 else {}) | ({"p3": p3} if p2 != 1 else {})
        if space.is_legal(config):
            best = min(best, 3 * p0 * config.get("p3", 0) + 1e-6 * config.get("p1", 0))
    for solver in ("highs", "auto"):
        assert space.optimum(expression, solver=solver).value == pytest.approx(best, abs=1e-12)


def test_a_range_of_a_billion() -> None:
    space = mc.Space("billion")
    k = space.categorical("k", ["a", "b"])
    x, y = space.real("x", 0, 1e9, when=k["a"]), space.real("y", 0, 1e9, when=k["b"])
    z = space.real("z", 0, 1)
    space.rule("r", x + z + y >= 1e9 + 1)
    space.rule("q", x <= 1e9 - 0.5)
    assert space.is_legal({"k": "b", "y": 1e9, "z": 1.0})
    for solver in CONTINUOUS:
        assert space.explain(solver) == "space 'billion' is not empty"
    assert (space.count().number, space.count().exact) == (1, True)


@pytest.mark.parametrize("gap", [1e-6, 3e-9])
def test_gaps_below_a_solvers_tolerance_are_empty_and_legal_slack_is_not(gap: float) -> None:
    space = mc.Space("gap")
    x = space.real("x", 0, 1)
    space.rule("above", x >= 0.3 + gap)
    space.rule("below", x <= 0.3)
    assert "'above', 'below' cannot hold together" in space.explain()
    assert space.optimum(x).status == "infeasible"
    with pytest.raises(InfeasibleSpaceError):
        space.sample(1)
    near = mc.Space("near")
    x = near.real("x", 0, 1)
    near.rule("above", x >= 0.3 + 1e-9)
    near.rule("below", x <= 0.3)
    assert near.is_legal({"x": 0.3 + 0.5e-9})
    assert near.is_legal(near.sample(1)[0])


def test_an_inactive_real_is_zero_even_beside_tiny_bounds() -> None:
    space = mc.Space("switch")
    k = space.categorical("k", ["a", "b"])
    x, y = space.real("x", 0, 1e6, when=k["a"]), space.real("y", 0, 1)
    space.rule("t", y <= 1e-7 + x)
    space.rule("u", y >= 1e-6 * k["b"] + 5e-8)
    for solver in CONTINUOUS:
        assert space.optimum(k["b"], "max", solver=solver).value == 0.0
    assert space.count().number == 1
    assert all(c["k"] == "a" for c in space.sample(5))


def test_counts_with_wide_integers_under_conditions() -> None:
    space = mc.Space("wide")
    p0, p1 = space.ordinal("p0", [0.1, 1]), space.categorical("p1", [0, 3])
    p2, p3 = space.ordinal("p2", [0.3, 1]), space.integer("p3", 4, 78, when=p0.is_(1))
    space.rule("r1", 1e5 * p3 - 2 * p2 <= 5, when=[p1.is_(0)])
    assert (space.count().number, space.count().exact) == (6, True)
    empty = mc.Space("empty")
    a, b = empty.integer("a", -3, 258, step=3), empty.integer("b", -1, 86)
    empty.rule("r1", 1e5 * b * b >= 0.3)
    empty.rule("r2", 1e-6 * a + 3 * b <= -2)
    empty.rule("r0", 3 * a + 1e5 * b >= 0.5)
    assert "is empty" in empty.explain()


def test_integers_that_violate_a_rule_by_less_than_a_solver_tolerance_are_infeasible() -> None:
    space = mc.Space("narrow", expand_limit=4)
    v, c = space.integer("v", 0, 2), space.ordinal("c", [0.1, 16])
    w0, w1 = space.integer("w0", 1, 22, step=3, when=1 - v.is_(0)), space.integer("w1", 0, 15, step=3)
    space.rule("r0", -0.7 * w0 + 0.2 * v <= -6.8)
    space.rule("r4", 3.0 * c * c >= 768.0)
    space.rule("r5", -3.5 * w0 + 2.5 * c >= -5.5)
    space.rule("r6", 2.0 * w0 + 7.0 * c - w1 - (1 - c.is_(16)) >= 136.0)
    space.rule("r7", 0.0015 * c + 0.001 * w0 - 0.0025 * v >= 0.033)
    space.rule(
        "r8", -300.0 * w1 - 0.01 * v + 3000.0 * c - 2.0 * w0.is_active() <= 47997.98
    )  # violated by at least 0.01
    for solver in CONTINUOUS:
        assert space.optimum(v, "max", solver=solver).status == "infeasible"
    with pytest.raises(InfeasibleSpaceError):
        space.bounds()


def test_an_optimum_that_presolve_of_highs_loses() -> None:
    space = mc.Space("lost", expand_limit=0)
    c0, c1 = space.ordinal("c0", ["middle", "large", "small"]), space.integer("c1", 1, 4, step=3)
    v0 = space.categorical(
        "v0", [1, None], when=(~c0.is_("large") & c0.is_("small")) | c0.is_("large") | c0.is_("middle")
    )
    v1 = space.ordinal("v1", ["small", "large"])
    v2 = space.integer("v2", 1, 7, step=3, when=v1.is_("small") & c0.is_("middle", "small"))
    v3 = space.ordinal(
        "v3", ["small", "middle", "huge"], when=v0.is_active() & v1.is_("large") & ~v0.is_(1) & v0.is_(None)
    )
    space.rule("r0", v2 - 2 * c1 >= 2, when=(c0.is_("small") | v3.is_active()) & v2.is_active())
    space.rule("r1", -v2 + c1 + 3 * v1.is_("large") <= 3)
    for solver in CONTINUOUS:
        assert space.bounds(solver=solver)["c0"].values == ("middle", "large", "small")


def test_bounds_that_only_a_product_determines() -> None:
    space = mc.Space("ends")
    x0 = space.real("x0", 1e-6, 1e9)
    x1 = space.real("x1", 1e-3, 1e6)
    space.rule("r0", 0.2 * x1 * x0 >= 2e9)
    space.rule("r1", 1.1 * x1 * x1 >= 1.1e6)
    space.rule("r2", 1000 * x1 + 0.002 * x0 <= 375750000.625)
    end = space.bounds()["x1"]
    assert (end.low, end.proven) == (1000.0, True)


def test_a_range_of_a_millionth_beside_one_of_a_million_has_the_right_end() -> None:
    space = mc.Space("beside")
    c, x = space.categorical("c", ["a", "b"]), space.real("x", -1e-6, 0.0)
    y = space.real("y", 0.001, 1e6, log=True)
    space.rule("b", 0.7 * c["a"] <= 0.0)
    for solver in CONTINUOUS:
        assert space.optimum(2 * y - 20 * x, solver=solver).config["x"] == 0.0


def test_a_level_that_moves_a_wide_range_by_three_millionths_of_it_counts() -> None:
    space = mc.Space("wide", expand_limit=1)
    c, w = space.integer("c", -3, -2), space.integer("w", 1, 7001, step=1000)
    x, y = space.real("x", 0.001, 1e6, log=True), space.real("y", 0.0, 1e6)
    space.rule("r0", 3 * w + 4 + c <= 6005)
    space.rule("r1", c + w <= 999)
    space.rule("r2", x - y + 3 * c == -5.9995)
    for solver in CONTINUOUS:
        assert space.optimum(x, solver=solver).value == pytest.approx(0.001)


def test_equations_that_only_their_tolerances_reconcile() -> None:
    space = mc.Space("reconciled")
    x = space.real("x", 1e-6, 1e9, log=True)
    space.rule("r0", 0.01 * x == 1e-8)
    space.rule("r1", -7e-6 * x == -7e-12)
    space.rule("r2", -2e5 * x == -0.200001)  # violated by 1e-6, within the tolerance of 2e-4
    assert space.is_legal({"x": 1e-6})
    for solver in CONTINUOUS:
        assert space.optimum(7 * x, solver=solver).value == pytest.approx(7e-6)
        assert space.conflict(solver).rules == ()


def test_an_equation_whose_tolerance_leaves_a_narrow_range_in_one_of_two_cases() -> None:
    switched = mc.Space("switched", expand_limit=4)
    c, x = switched.ordinal("c", [0.1, 16]), switched.real("x", -5.0, 0.0)
    switched.rule("r", 1e-6 * x * (1 - c.is_(0.1)) == -5e-6)
    for solver in CONTINUOUS:
        assert switched.optimum(x, solver=solver).config == {"c": 16, "x": -5.0}
    active = mc.Space("active", expand_limit=3)
    a, b = active.integer("a", -3, 0, step=3), active.integer("b", 1, 3)
    v = active.real("v", 0.0, 1.0, when=~b.is_(3))
    active.rule("r0", 0.002 * v + 0.1 * a == -0.3)
    active.rule("r1", b.is_(2) + v.is_active() <= 1.5)
    assert active.count().number == 2  # b = 1 and b = 3
    for solver in CONTINUOUS:
        assert active.optimum(b, "max", solver=solver).value == 3.0


def test_a_wide_real_beside_one_level_counts_in_the_objective() -> None:
    space = mc.Space("beside")
    c, x = space.categorical("c", ["a", "b"]), space.real("x", -1e9, 1e9)
    y = space.real("y", 1e-3, 1e6)
    space.rule("r", -1e-6 * x - 1e-6 * y >= 999.24994, when=c.is_("a"))
    for solver in CONTINUOUS:
        found = space.optimum(3.0 * y * c.is_("b"), solver=solver)
        assert (found.value, found.bound) == (0.0, 0.0)
    narrow = mc.Space("narrow")
    c, x, y = narrow.integer("c", 5, 7), narrow.real("x", 1.0, 1.000001, log=True), narrow.real("y", 0.0, 1e9)
    for solver in CONTINUOUS:
        assert narrow.optimum(0.7 * x * 5 - 0.3 * y, "max", solver=solver).value == pytest.approx(3.5000035, abs=1e-10)


def test_a_product_whose_rules_leave_one_corner() -> None:
    space = mc.Space("corner")
    x, y = space.real("x", 1e-6, 1e9), space.real("y", 1e-6, 1e9)
    space.rule("r0", -2.0 * y * x + 3000.0 * x + 0.1 * y <= -1.7499973749000003e18)
    space.rule("r1", -3.0 * x * x >= -2.2968750000000008e18)
    assert space.is_legal({"x": 8.75e8, "y": 1e9})
    assert space.optimum(x).value == pytest.approx(8.75e8)
    assert space.explain() == "space 'corner' is not empty"


def test_numbers_that_only_a_tolerance_tells_apart_are_one_configuration() -> None:
    space = mc.Space("one")
    space.categorical("c", ["a", "b"])
    x, y = space.real("x", -1e-6, 0.0), space.real("y", -1e-6, 0.0)
    space.rule("p", -2.0 * y * y + y >= -8.9e-7)
    space.rule("q", 0.5 * y + 3.0 * x >= 0.0)
    run = mc.minimize(lambda c: c["x"] + (c["c"] == "a"), space, 5, optimizer="random", progress=False)
    assert [trial.config["c"] for trial in run.history] in (["a", "b"], ["b", "a"])


def test_a_rule_that_rounding_violates_leaves_samples_spread() -> None:
    space = mc.Space("missed", expand_limit=3)
    v, x = space.integer("v", 5, 9), space.real("x", 0.0, 10.0)
    space.rule("least", 0.3 * v >= 2.7)  # 0.3 * 9 is 2.6999999999999997
    space.rule("most", 500.0 * x + 1000.0 * v <= 14000.0)
    drawn = [c["x"] for c in space.sample(20, seed=0)]
    assert len(set(drawn)) == 20
    assert max(drawn) <= 10.0


def test_an_optimal_status_means_a_small_gap_beside_a_range_of_two_billion() -> None:
    space = mc.Space("tight", expand_limit=3)
    c, w = space.integer("c", 1, 7, step=3), space.integer("w", -7, 1999999993, step=1000000000)
    space.rule("r", w.is_(1999999993) + (1 - c.is_(4, 7)) <= 0)
    for solver in ("auto", "enumeration"):
        found = space.optimum(c - w, "max", solver=solver)
        assert found.value == 14.0
        assert found.status == "feasible" or found.bound - found.value <= 1e-6 * found.value


def test_numbers_close_to_a_bound_are_moved_to_it() -> None:
    space = mc.Space("mixture")
    x, y, z = space.real("x", 0.0, 1.0), space.real("y", -5.0, 0.0), space.real("z", 0.5, 2.5)
    space.rule("sum", x + y + z == -0.5)
    inner = compiled(space)
    legal = inner.legal_numbers(np.zeros(0, dtype=np.int64), np.full(inner.program.n, np.nan))
    assert legal is not None
    for near in ([1.1e-14, -1.0000000000000107, 0.5], [3e-13, -1.0 - 3e-13, 0.5]):
        assert legal.clean(np.array(near)).tolist() == [0.0, -1.0, 0.5]


def test_nearest_counts_changed_activity_and_moves_wide_integers_little() -> None:
    space = mc.Space("switched")
    k = space.categorical("k", ["a", "b", "c"])
    x = space.real("x", 0, 10, when=k.is_("a", "b"))
    space.rule("not a", k["a"] <= 0)
    space.rule("far", x >= 4, when=k["b"])
    assert space.nearest({"k": "a", "x": 0.5}) == {"k": "b", "x": 4.0}  # the distance is 1.35; without x it is 2
    wide = mc.Space("wide")
    n, x = wide.integer("n", 0, 12345678), wide.real("x", 0, 1)
    wide.rule("most", n <= 1234567)
    wide.rule("sum", x + n <= 1234567.25)
    assert wide.nearest({"n": 1234568, "x": 0.5}) == {"n": 1234566, "x": 0.5}


def test_log_scales_are_sampled_on_their_scale() -> None:
    space = mc.Space("log")
    a, b = space.real("a", 1e-4, 1, log=True), space.real("b", 1e-4, 1, log=True)
    space.rule("loose", a + b <= 5)
    drawn = np.log10([c["a"] for c in space.sample(100, seed=0)])
    assert -2.5 < np.median(drawn) < -1.5
    assert np.percentile(drawn, 10) < -3.2
    assert np.percentile(drawn, 90) > -0.8


def test_products_at_a_bound_stay_there() -> None:
    space = mc.Space("slab")
    x, n = space.real("x", 0, 1), space.integer("n", 1, 200)
    space.rule("most", n * x <= 7)
    space.rule("least", n * x >= 6.9)
    assert space.optimum(x, "max").config == {"x": 1.0, "n": 7}
    assert space.nearest({"x": 0.5, "n": 14}) == {"x": 0.5, "n": 14}


def test_nested_disjunctions_keep_all_legal_configurations() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(domain=pyo.Integers, bounds=(0, 3))
    model.b = pyo.BooleanVar()
    model.off, model.on = Disjunct(), Disjunct()
    model.which = Disjunction(expr=[model.off, model.on])
    model.on.k = pyo.Constraint(expr=model.x >= 1)
    model.on.one, model.on.two = Disjunct(), Disjunct()
    model.on.inner = Disjunction(expr=[model.on.one, model.on.two])
    model.on.one.c = pyo.Constraint(expr=model.x <= 4)  # holds everywhere
    model.on.two.c = pyo.Constraint(expr=model.x <= 2)
    model.logic = pyo.LogicalConstraint(expr=model.b.equivalent_to(model.on.one.indicator_var))
    space = mc.Space.from_pyomo(model)
    legal = [c for x in range(4) for b in (False, True) if space.is_legal(c := {"x": x, "b": b})]
    assert space.count().number == len(legal)
    assert space.optimum(model.x, "max").value == max(c["x"] for c in legal)


def test_deactivated_members_of_logic_stay_off() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(domain=pyo.Integers, bounds=(0, 3))
    model.p = pyo.BooleanVar([1, 2])
    model.d = Disjunction(expr=[[model.x <= 1], [model.x >= 1]])
    model.logic = pyo.LogicalConstraint([1, 2])
    model.logic[1], model.logic[2] = model.p[1], model.p[2].lor(model.p[1])
    model.logic[1].deactivate()
    space = mc.Space.from_pyomo(model)
    assert space.count().number == 12
    assert space.is_legal({"x": 0, "p[1]": False, "p[2]": True})


def test_constant_logic_is_ignored_if_true_and_refused_if_false() -> None:
    model = pyo.ConcreteModel()
    model.p, model.q = pyo.BooleanVar(), pyo.BooleanVar()
    model.always = pyo.LogicalConstraint(expr=model.p.implies(model.p))
    assert mc.Space.from_pyomo(model).count().number == 4
    space = mc.Space("never")
    k = space.categorical("k", ["a", "b"])
    space.model.never = pyo.LogicalConstraint(expr=k.boolean("a").xor(k.boolean("a")))
    with pytest.raises(SpaceError, match="'never' can never hold"):
        space.count()


def test_an_indexed_objective_is_its_one_active_member() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 1))
    model.most = pyo.Objective([1, 2], rule=lambda m, i: i * m.x, sense=pyo.maximize)
    space = mc.Space.from_pyomo(model)
    with pytest.raises(SpaceError, match="2 active members"):
        space.optimum(model.most)
    model.most[1].deactivate()
    assert space.optimum(model.most).value == 2.0


def test_samples_of_numbers_bound_by_equations_are_spread() -> None:
    space = mc.Space("bound")
    n, m = space.integer("n", 0, 100), space.integer("m", 0, 300, step=3)
    x = space.real("x", 0, 1000)
    space.rule("all", 2 * n + m + x == 500)
    space.rule("more", n + x >= 100)
    drawn = space.sample(40, seed=0)
    assert all(space.is_legal(c) and c["m"] % 3 == 0 for c in drawn)
    assert np.ptp([c["n"] for c in drawn]) > 60
    assert np.ptp([c["m"] for c in drawn]) > 150


def test_a_number_at_the_bound_of_a_rule_is_exact() -> None:
    space = mc.Space("ends")
    x, y = space.real("x", 0, 10), space.real("y", 0, 1)
    space.rule("x", 3 * x >= 13.5)
    space.rule("y", 0.1 * y <= 0.03)
    assert space.optimum(x).config["x"] == 4.5
    most = space.optimum(y, "max").config["y"]
    assert 0.1 * most <= 0.03
    assert most == pytest.approx(0.3, abs=1e-15)
    assert space.nearest({"x": 1.0, "y": 0.9}) == {"x": 4.5, "y": most}


def test_a_coefficient_far_below_the_largest_one_counts() -> None:
    space = mc.Space("costs")
    c = space.categorical("c", ["a", "b"])
    x0 = space.real("x0", 1.0, 1.000001, log=True)
    x1 = space.real("x1", 0.0, 10000.0)
    x2 = space.real("x2", 1e-6, 1e9, when=c["a"])
    space.rule("r0", -3.5 * x1 + 3.5 * x0 + x2.is_active() >= 4.0)
    for solver in CONTINUOUS:
        found = space.optimum(1e6 * x0 - 1e6 * x1 - 7e6 * x2 - 3e6 * c["b"], "max", solver=solver)
        assert found.value == pytest.approx(999994, abs=1e-3), solver
        assert found.bound >= 999994 - 1e-3, solver


def test_a_run_ends_if_configurations_differ_only_within_tolerance() -> None:
    space = mc.Space("close")
    c = space.integer("c", -3, -2)
    x0, x1 = space.real("x0", -1e-6, 0.0), space.real("x1", -1e-6, 0.0)
    # only the tolerance of the rules leaves a legal range: x0 * x1 <= 6.6e-13 at x1 <= -7.5e-7
    space.rule("r0", -0.0015 * x0 * x1 + 0.0025 * c >= -0.0050000000000009846)
    space.rule("r1", -7.0 * x1 + 2.0 * c >= -3.99999475)
    space.rule("r3", 1e5 * x0 - 7e5 * x1 == 0.43500000000000005)
    for optimizer in ("random", "hybrid"):
        result = mc.minimize(lambda c: c["x0"], space, 8, seed=0, optimizer=optimizer, progress=False)
        assert result.stopped == "space exhausted within the solver's tolerance"
        assert all(space.is_legal(t.config) for t in result.history)


def test_rules_and_objectives_in_picofarads_are_those_in_farads() -> None:
    found = []
    for unit in (1.0, 1e-12):
        space = mc.Space("filter")
        values = [unit * v for v in (0.1, 0.22, 0.47, 0.82)]
        first, second = space.ordinal("first", values), space.ordinal("second", values)
        third = space.real("third", 0.05 * unit, 0.5 * unit)
        space.rule("total", first + second + third <= 1.1 * unit)
        space.rule("square", first * first + second * second <= unit**2)
        best = space.optimum(first + second, "max", solver="highs")
        found.append((int(space.count()), best.status, pytest.approx(best.value / unit), space.explain()))
    assert found[0] == found[1]
    assert found[0][:2] == (13, "optimal")


def test_a_small_equation_beside_a_wide_integer_is_exact() -> None:
    space = mc.Space("wide")
    wide, few = space.integer("wide", 1, 2**45), space.integer("few", 0, 60)
    assert space.rule("product", wide * few == 7).slack == 1e-9
    assert not space.is_legal({"wide": 6, "few": 1})
    assert space.count() == 2
    odd = mc.Space("odd")
    odd.rule("product", 2 * odd.integer("wide", 1, 2**50) * odd.integer("few", 1, 3) == 7)
    assert odd.count() == 0


@pytest.mark.parametrize("unit", [1.0, 1e-10, 1e-30])
def test_an_optimum_is_as_near_in_any_unit(unit: float) -> None:
    space = mc.Space("products")
    x, y, z = (space.real(name, 0, 10) for name in "xyz")
    space.rule("area", x * y >= 7)
    space.rule("sum", x + y >= 5.5)
    space.rule("volume", x * z + y <= 20)
    found = space.optimum(unit * (x + 2 * y - z))
    assert found.value / unit == pytest.approx(0.583565, abs=1e-5)
    assert found.bound <= found.value
    assert found.gap == pytest.approx((found.value - found.bound) / found.value)


@pytest.mark.parametrize(
    "given",
    [{"seed": -1}, {"seed": 1.5}, {"seed": None}, {"threads": "2"}, {"threads": 1.5}, {"gap": "a"}, {"gap": True}],
)
def test_arguments_of_optimum_that_are_no_numbers_are_refused(given: dict[str, Any]) -> None:
    space = mc.Space("one")
    with pytest.raises(SpaceError, match=f"{next(iter(given))} must be"):
        space.optimum(space.integer("a", 0, 3), **given)
