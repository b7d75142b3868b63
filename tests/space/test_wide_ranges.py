"""Ranges and steps so different in size that the absolute tolerances of a solver would falsify the result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunction

import mipcash as mc


def test_a_conditional_rule_over_a_wide_integer() -> None:
    space = mc.Space("switch", expand_limit=64)
    c, x = space.integer("c", 0, 2), space.real("x", 0.0, 10.0)
    w = space.integer("w", 0, 7 * 10**9)
    with pytest.raises(mc.errors.RuleError, match="'w' in it has 7,000,000,001 values, with more than 100,000,000"):
        space.rule("r", 100.0 * x - 300.0 * w >= -29994000.0, when=c.is_(0))
    w = space.integer("v", 0, 7 * 10**9, step=100)
    space.rule("r", 100.0 * x - 300.0 * w >= -29994000.0, when=c.is_(0))
    assert space.optimum(w, "max").value == 7e9
    off = 7e9 * (c.is_(1) + c.is_(2))
    assert space.optimum(w - off, "max").value == 99900


def test_a_disjunction_over_a_wide_integer() -> None:
    model = pyo.ConcreteModel()
    model.w = pyo.Var(domain=pyo.Integers, bounds=(0, 10**9))
    model.choice = Disjunction(expr=[model.w <= 5, model.w >= 10**9 - 5])
    with pytest.raises(mc.errors.RuleError, match="'w' in it has 1,000,000,001 values, with more than 100,000,000"):
        mc.Space.from_pyomo(model)


@pytest.mark.parametrize("width", [10**9, 10**12, 10**15])
def test_a_wide_integer_beside_a_real(width: int) -> None:
    space = mc.Space("share")
    w, share, away = space.integer("w", 0, width), space.real("share", 0.0, 1.0), space.real("away", 0.0, 1.0)
    space.rule("share", w <= width * share)
    space.rule("over", width * away >= w - width // 2)
    space.rule("under", width * away >= width // 2 - w)
    nearest = space.optimum(away, "min")
    assert (nearest.status, nearest.value) == ("optimal", pytest.approx(0.0, abs=1e-6))
    assert space.optimum(share - 0.5 * w / width, "max").value == pytest.approx(1.0, abs=1e-6)
    middle = {"w": width // 2, "share": 0.25, "away": 0.0}
    found = space.nearest(middle)
    assert found["share"] == pytest.approx(0.5, abs=1e-3) or found["w"] == pytest.approx(0.25 * width, rel=1e-3)


@pytest.mark.parametrize("width", [10**9, 10**12, 10**15])
def test_the_nearest_pair_of_wide_integers(width: int) -> None:
    space = mc.Space("pair")
    x, y = space.integer("x", 0, width), space.integer("y", 0, width)
    space.rule("next", x - y == 1)
    found = space.nearest({"x": width // 2, "y": width // 2 + 3})
    assert found["x"] - found["y"] == 1
    assert abs(found["x"] - width // 2) <= 1e-3 * width


def test_ends_of_a_range_that_is_narrow_beside_its_values() -> None:
    space = mc.Space("narrow")
    v = space.integer("v", 0, 2)
    x = space.real("x", 1.0, 1.0 + 1e-6, when=v >= 1)
    space.rule("r", (v[1] * x >= 1 + 0.6e-6) | (v >= 2))
    extent = space.bounds()["x"]
    assert (extent.low, extent.high, extent.proven) == (1.0, 1.0 + 1e-6, True)


def test_a_curve_within_a_millionth_of_its_ranges_is_searched_to_the_budget() -> None:
    space = mc.Space("curve")
    x, y = space.real("x", 1e-9, 1e-3, log=True), space.real("y", 1e3, 1e9, log=True)
    space.rule("product", x * y == 1)
    space.rule("cap", x <= 1e-8)
    result = mc.minimize(lambda c: c["x"], space, 10, optimizer="random", progress=False)
    assert result.stopped == "budget"
    assert len({t.config["x"] for t in result.history}) == 10


def test_an_objective_of_parts_of_very_different_sizes() -> None:
    space = mc.Space("objective", expand_limit=64)
    c = space.integer("c", 0, 1)
    x = space.real("x", 0.001, 1e6, when=c.is_(0))
    y = space.real("y", -1e9, 1e9)
    w = space.integer("w", 0, 10**9, step=10**6)
    space.rule("r", 1.5 * y - 1.5 * c <= 80.0, when=c.is_(0))
    assert space.optimum(1e6 * y + 3e6 * x - 1e6 * w, "max").value == pytest.approx(1e15)


def test_a_narrow_legal_part_of_a_wide_range_is_found() -> None:
    space = mc.Space("narrow", expand_limit=0)
    c, x = space.integer("c", 0, 1), space.real("x", 1e-6, 1e9)
    space.model.row = pyo.Constraint(expr=x - 2.0 * c <= -1.0)
    found = space.optimum(x, "max")
    assert found.status == "optimal"
    assert found.config is not None
    assert found.config["x"] == pytest.approx(1.0)


def test_an_equation_of_reals_beside_one_of_integers() -> None:
    space = mc.Space("equations", expand_limit=0)
    one, w = space.integer("one", 4, 4), space.integer("w", -7, 6993, step=1000)
    x, y = space.real("x", 0.0, 1e9), space.real("y", -1e-6, 0.0)
    space.rule("r0", 7.0 * y - 2.0 * x == -2e9)
    space.rule("r1", 0.2 * w + 0.1 * one == 1399.0)
    config = space.optimum(y, "min").config
    assert config is not None
    assert abs(7.0 * config["y"] - 2.0 * config["x"] + 2e9) <= 1e-6


def test_an_inequality_holds_as_floats_evaluate_it() -> None:
    space = mc.Space("floats", expand_limit=4)
    w, x = space.integer("w", -7, -1), space.real("x", -5.0, 0.0)
    y = space.real("y", 0.0, 1.0)
    space.rule("r0", -300.0 * x + 0.003 * w >= 1499.99)
    space.rule("r1", -2e-06 * y == -1.5e-06)
    config = space.nearest({"w": -2, "x": -2.0, "y": 0.3})
    assert -300.0 * config["x"] + 0.003 * config["w"] >= 1499.99


def test_scip_makes_no_wrong_dual_reduction() -> None:
    pytest.importorskip("pyscipopt")
    space = mc.Space("disjunctions", expand_limit=64)
    a, b = space.integer("a", 1, 4), space.integer("b", 5, 10)
    sides = [[2.0 * b - 2.0 * a == 8.0], [3.0 * b - a >= 23.5, 2.0 * a + 3.0 * b >= 25.0], [2.0 * a + 2.0 * b == 12.0]]
    space.model.first = Disjunction(expr=sides)
    space.model.second = Disjunction(expr=[[3.0 * b + a >= 30.0], [2.0 * a + b + a.is_(3, 4) == 17.0, a - b <= -6.5]])
    space.rule("r", a - b >= -8.0)
    for objective in (-40 * a + 30 * b + 2 * a * b + a * a, -40 * a + 5 * b + 3 * a * b + a * a):
        assert space.optimum(objective, solver="scip").value == space.optimum(objective, solver="highs").value


def test_an_incumbent_bounds_a_wide_range_beside_a_product_of_reals() -> None:
    """Without the bound on w from the incumbent, the relaxation over the range of 1e15 has an error of 0.2."""
    space = mc.Space("wide", expand_limit=64)
    x, y = space.real("x", 0, 1), space.real("y", 0, 1)
    w = space.integer("w", 1, 10**15 + 1, step=10**6)
    space.rule("r", x * y >= 0.00044)
    found = space.optimum(x + 2.5 * w)
    assert found.status == "optimal"
    assert found.value == pytest.approx(2.50044, abs=1e-6)
    assert found.bound <= found.value


def test_a_conditional_number_of_which_rules_leave_a_billionth_of_its_range() -> None:
    """The big-M rows between a number and its latent value have constants of 1e6 beside 1e-3."""
    space = mc.Space("wide", expand_limit=64)
    c = space.categorical("c", ["a", "b", "d"])
    x = space.real("x", 0.0, 1e-6, when=c["b"])
    y = space.real("y", 0.001, 1e6, when=c.is_("a", "b"))
    space.rule("on", c["b"] == 1)
    space.rule("above", -2.0 * y + x >= -0.0019995)
    space.rule("tied", 2.0 * x - y == -0.00099825)
    assert space.optimum(y, "max").value == pytest.approx(0.00100025, rel=1e-6)
    extents = space.bounds()
    assert (extents["x"].low, extents["x"].high) == (pytest.approx(8.75e-7, rel=1e-3), pytest.approx(1e-6))
    assert all(config["c"] == "b" for config in space.sample(2))


def test_an_optimum_below_the_resolution_of_a_wide_real_is_not_called_proven() -> None:
    """A solver resolves a term with a range of 2e9 only down to about 1, so it must not prove that 0 beats 0.1."""
    space = mc.Space("wide", expand_limit=64)
    c = space.ordinal("c", [-2, 0, 0.3])
    x = space.real("x", -1e9, 1e9, when=c.is_(0.3))
    space.model.row = pyo.Constraint(expr=200.0 * x + 2000.0 * c <= 620.0)
    found = space.optimum(x, "max")
    assert found.bound >= 0.1 - 1e-9
    assert found.status != "optimal" or found.value == pytest.approx(0.1)


def test_the_least_relaxation_is_what_its_configuration_needs() -> None:
    space = mc.Space("moved", expand_limit=4)
    v = space.real("v", 100.0, 100.05, step=0.05)
    w = space.real("w", 0.0, 0.018, step=0.003, when=v.is_(100.05))
    x = space.real("x", 100.0, 100.5, step=0.05, when=v.is_(100.05))
    space.rule("sum", 200.0 * v - 700.0 * w + 100.0 * x + 300.0 * v.is_(100.05) == 30342.9)
    space.rule("near", 0.01 * x - 20.0 * v - 0.2 * w >= -1999.99705)
    found = {r.rule: r.by for r in space.conflict().relaxations}
    assert found["near"] == pytest.approx(5e-5, rel=1e-4)


def test_a_small_relaxation_of_a_rule_with_large_terms_is_offered() -> None:
    space = mc.Space("narrow", expand_limit=4)
    v = space.real("v", 100.0, 104.5, step=1.5)
    w = space.real("w", 0.0, 0.6, step=0.1, when=v.is_(101.5))
    x = space.real("x", 0.5, 0.9, step=0.1)
    space.rule("large", x + 0.02 * w + 3000.0 * v <= 304500.606)
    space.rule("least", 0.2 * x + 0.7 * w + 0.1 * v + 0.3 * v.is_(104.5) >= 10.39)
    space.rule("other", -20.0 * v - 20.0 * w + 3.0 * x >= -2031.9)
    found = {r.rule: r.by for r in space.conflict().relaxations}
    assert found["large"] == pytest.approx(0.098, abs=1e-6)


@pytest.mark.parametrize("solver", ["auto", "highs"])
def test_a_cost_below_the_tolerance_over_a_wide_real_is_no_proven_optimum(solver: str) -> None:
    space = mc.Space("costs", expand_limit=3)
    c, one = space.integer("c", 0, 2), space.integer("one", 4, 4)
    w = space.integer("w", -7, 3993, step=1000)
    x = space.real("x", 0.0, 1e9)
    space.rule("r0", -1.0 * c - 1.0 * w + 3.0 * one + 7.0 * c.is_(0) >= -1980.0)
    space.rule("r1", 7e5 * x - 2e5 * c == -2e5, when=c.is_(1))
    found = space.optimum(1.5e-6 * x - 5e-7 * c - 1e-6 * one, "min", solver=solver)
    best = -5e-6  # of c = 2 and x = 0
    assert found.bound <= best + 1e-12
    assert found.status == "feasible" or found.value == pytest.approx(best)


def test_an_equation_with_a_small_right_side_holds_up_to_rounding() -> None:
    space = mc.Space("small", expand_limit=1)
    w = space.integer("w", -7, 699999999999993, step=10**14)
    x, y = space.real("x", 0.0, 1e9), space.real("y", 0.0, 1e6)
    space.rule("r", 100.0 * x + 10.0 * y == 1e-8)
    for config in (*space.sample(3), space.nearest({"w": w.domain.low, "x": 1e3, "y": 0.0})):
        assert 100.0 * config["x"] + 10.0 * config["y"] == pytest.approx(1e-8, rel=1e-9)


def test_costs_of_levels_far_from_zero_hide_no_small_cost() -> None:
    space = mc.Space("far", expand_limit=4)
    v = space.real("v", 100.0, 100.009, step=0.003)
    w = space.real("w", 100.0, 101.5, step=0.25)
    space.rule("r", 0.1 * w - 0.7 * v <= -59.92, when=v.is_(100.006))
    found = space.optimum(3000.0 * v - 0.001 * w, "max")
    assert found.bound >= 3000.0 * 100.009 - 0.001 * 100.0 - 1e-9
    assert found.value == pytest.approx(3000.0 * 100.009 - 0.001 * 100.0, abs=1e-6)


@pytest.mark.parametrize("exponent", [9, 12, 13, 14])
def test_the_value_of_an_optimum_is_that_of_its_configuration_beside_costs_that_cancel(exponent: int) -> None:
    space = mc.Space("levels far apart", expand_limit=3)
    c = space.ordinal("c", ["large", "huge"])
    w = space.integer("w", 1, 2 * 10**exponent + 1, step=10**exponent)
    space.rule("small", c.is_("huge") + w.is_(1) >= 2)
    found = space.optimum(-0.3 * w, "min")
    assert (found.status, found.value) == ("optimal", -0.3)
    assert -0.3 - 1e-5 <= found.bound <= -0.3


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_the_cost_of_a_product_with_an_integer_of_a_trillion_is_not_dropped(solver: str) -> None:
    if solver == "scip":
        pytest.importorskip("pyscipopt")
    space = mc.Space("trillion", expand_limit=64)
    c = space.integer("c", 0, 2, step=2)
    x, y = space.real("x", 0.0, 1.0, when=c.is_(2)), space.real("y", 0.0, 1.0)
    w = space.integer("w", 0, 10**12, step=10**6)
    space.rule("sum", -x - y == -0.635)
    space.rule("least", 3 * w - c >= 2_249_999_999_998)
    found = space.optimum(-3000 * c * w, "min", solver=solver)
    assert (found.status, found.value) == ("optimal", -6e15)
    assert found.bound <= -6e15


@pytest.mark.parametrize("span", [1023, 1024, 1025, 2048])
@pytest.mark.parametrize("low", [0, -5])
def test_a_product_of_two_integers_reaches_the_last_value_of_each(span: int, low: int) -> None:
    """One of them is written in bits, of which a span of a power of two needs one more."""
    space = mc.Space("ends")
    x, y = space.integer("x", low, low + span), space.integer("y", 0, 3000)
    space.rule("product", x * y >= (low + span) * 3000)
    assert space.optimum(x + y, "max", solver="highs").config == {"x": low + span, "y": 3000}
    assert space.count().number == 1


RANGES = [(0, 10**6), (0, 10**9), (-(10**10), 10**10), (1, 10**11), (0, 10**12), (0.0, 1.0), (0.0, 1e3), (-1e6, 1e6)]


@pytest.mark.parametrize("seed", [7, 10, 15, 16, 37, 43, 50, 52, 65, 82, 86, 89])
def test_wide_integers_under_rules_through_a_known_point(seed: int) -> None:
    """Assert that no answer is beaten by a legal point: the one that the rules were drawn through, and samples."""
    rng = np.random.default_rng(seed)
    space, planted, parts, sizes = mc.Space("planted"), dict[str, float](), list[Any](), list[float]()
    for k, (low, high) in enumerate(RANGES[j] for j in rng.choice(len(RANGES), 3, replace=False)):
        whole = isinstance(high, int)
        parts.append(space.integer(f"x{k}", int(low), int(high)) if whole else space.real(f"x{k}", low, high))
        planted[f"x{k}"] = int(rng.integers(low, high)) if whole else low + (high - low) * int(rng.integers(17)) / 16
        sizes.append(float(high))
    for j in range(2):
        factors = [
            f if isinstance(v, int) else f * max(sizes) / h
            for f, v, h in zip(rng.choice([-3, -1, 1, 2], 3).tolist(), planted.values(), sizes, strict=True)
        ]
        body = sum(f * x for f, x in zip(factors, parts, strict=True))
        value = sum(f * v for f, v in zip(factors, planted.values(), strict=True))
        space.rule(f"rule {j}", body == value if rng.random() < 0.3 else body <= value)
    assert space.validate(planted) == []
    points = [planted, *space.sample(3, seed)]
    assert all(space.is_legal(point) for point in points)
    found = space.optimum(sum(x / h for x, h in zip(parts, sizes, strict=True)), "min")
    least = min(sum(p[f"x{k}"] / h for k, h in enumerate(sizes)) for p in points)
    assert found.bound <= least + 1e-6
    assert found.value <= least + 1e-3
    nearest = space.nearest({**planted, "x0": 1, "x1": 1})
    assert space.is_legal(nearest)
    assert sum(abs(nearest[n] - v) / h for h, (n, v) in zip(sizes, planted.items(), strict=True)) <= 2.1


def test_integers_on_a_log_scale_are_sampled_on_it_under_rules_too() -> None:
    space = mc.Space("log")
    n, m = space.integer("n", 1, 10**7, log=True), space.integer("m", 1, 10**7, log=True)
    space.rule("sum", n + m <= 1.9e7)  # excludes next to nothing
    small = sum(c["n"] < 10_000 for c in space.sample(400, seed=0))
    assert 180 <= small <= 280  # 4 of 7 orders of magnitude


def test_an_objective_of_whole_numbers_is_proven_beside_wide_ranges() -> None:
    """The bound of a relaxation over 1e9 lies below the optimum by the tolerance of the solver, and is raised to a whole number."""
    space = mc.Space("chain")
    a, b, c = (space.integer(name, 0, 10**9) for name in "abc")
    space.rule("ab", a >= b + 1)
    space.rule("bc", b >= c + 1)
    for objective, least in ((a - c, 2.0), (2 * a - b - c, 3.0)):
        found = space.optimum(objective)
        assert (found.status, found.value, found.bound) == ("optimal", least, least)
    x = space.real("x", 0, 1)
    for objective, least in ((0.75 * a - 0.75 * c, 1.5), (a - c + 0.3 * x, 2.0), (0.7 * x + c - a, -(10.0**9))):
        found = space.optimum(objective)
        assert found.value == pytest.approx(least, rel=1e-12)
        assert found.bound <= least + 1e-9


@pytest.mark.parametrize("width", [50, 10**8])
def test_an_equation_without_a_multiple_is_moved_to_the_next_one(width: int) -> None:
    space = mc.Space("multiples")
    a, b = space.integer("a", 0, width), space.integer("b", 0, width)
    space.rule("odd", 6 * a - 10 * b == 3)
    assert "'odd' (6 * a - 10 * b == 3): 2 suffices" in str(space.explain())


def test_a_relaxation_beside_many_small_integers_is_found() -> None:
    """It takes a solver more nodes than wide integers may take."""
    rng, space = np.random.default_rng(1), mc.Space("weights")
    v = [space.integer(f"v{i}", 0, 3) for i in range(14)]
    for r in range(3):
        weights = rng.integers(10, 100, 14)
        total = sum(int(w) * x for w, x in zip(weights, v, strict=True))
        space.rule(f"r{r}", total <= int(weights.sum() * 0.6) if r == 2 else total == int(weights.sum() * 1.5))
    assert "'r2'" in str(space.explain()).split("The least that helps:")[1]
