"""What is called empty is empty, what is called proven is proven, what is called legal is legal."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunct, Disjunction

import mipcash as mc
from mipcash.backends.registry import solvers
from mipcash.errors import InfeasibleSpaceError, SpaceError, SpaceExhaustedError
from mipcash.study.policies.policy import BEST_OF_ALL
from tests.named import installed

SOLVERS = [s.name for s in solvers() if s.installed and s.name != "highs"]


def cycle() -> mc.Space:
    """No rule and no pair of rules shows that it is empty; the sum of the three does."""
    space = mc.Space("cycle")
    a, b, c = (space.integer(name, 0, 9) for name in "abc")
    space.rule("ab", a + b <= 9)
    space.rule("ac", a - c >= 2)
    space.rule("bc", b + c >= 9)
    return space


def ring(n: int, steps: int) -> mc.Space:
    """x_0 < x_1 < ... < x_{n-1} < x_0 + steps over 0..9: empty for steps < n."""
    space = mc.Space("ring")
    x = [space.integer(f"x{k}", 0, 9) for k in range(n)]
    for k in range(n - 1):
        space.rule(f"step {k}", x[k + 1] - x[k] >= 1)
    space.rule("close", x[n - 1] - x[0] <= steps - 1)
    return space


def run(space: mc.Space, budget: int, seed: int = 0, optimizer: str = "hybrid") -> mc.Result:
    def loss(config: dict[str, object]) -> float:
        return sum(float(v) if isinstance(v, (int, float)) else len(str(v)) for v in config.values())

    return mc.minimize(loss, space, budget, optimizer=optimizer, seed=seed, progress=False)


# -- emptiness ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["highs", *SOLVERS])
def test_a_cycle_of_rules_that_no_pair_shows_to_be_empty(solver: str) -> None:
    for space, rules in ((cycle(), {"ab", "ac", "bc"}), (ring(4, 3), {"step 0", "step 1", "step 2", "close"})):
        assert "is empty" in space.explain(solver)
        assert set(space.conflict(solver).rules) == rules
        first = next(iter(space.parameters))
        for sense in ("min", "max"):
            assert space.optimum(space[first], sense, solver=solver).status == "infeasible"
        with pytest.raises(InfeasibleSpaceError):
            space.bounds(solver)
        with pytest.raises(InfeasibleSpaceError):
            mc.Study(space, optimizer=mc.Method(solver=solver)).ask()
        if solver == "highs":  # the same whoever is named
            assert (space.count().number, space.count().exact) == (0, True)
            with pytest.raises(InfeasibleSpaceError):
                space.sample(2)


def test_the_least_relaxation_of_each_rule_of_a_cycle_is_exact() -> None:
    by = {r.rule: r.by for r in cycle().conflict().relaxations}
    assert by == {"ab": pytest.approx(2), "ac": pytest.approx(2), "bc": pytest.approx(2)}


@pytest.mark.parametrize("optimizer", installed("random", "hybrid", "mivabo"))
def test_cuts_until_nothing_is_left_under_rules(optimizer: str) -> None:
    space = ring(3, 4)  # 8 * ... settings of three integers that differ by 1 or 2 at most
    legal = [c for c in itertools.product(range(10), repeat=3) if c[1] > c[0] and c[2] > c[1] and c[2] - c[0] <= 3]
    space.rule("few", space["x0"] + space["x1"] + space["x2"] <= 9)
    legal = [c for c in legal if sum(c) <= 9]
    result = run(space, len(legal) + 5, optimizer=optimizer)
    assert result.stopped == BEST_OF_ALL
    assert sorted(tuple(t.config.values()) for t in result.history) == sorted(legal)


# -- exhaustion -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_mixture_is_never_exhausted(seed: int) -> None:
    space = mc.Space("mixture")
    x = [space.real(f"x{i}", 0, 1) for i in range(6)]
    space.rule("sum", sum(x) == 1)
    assert run(space, 10, seed).stopped == "budget"


def test_one_real_in_a_disjunction_is_never_exhausted() -> None:
    space = mc.Space("either")
    x = space.real("x", 0, 1)
    space.model.either = Disjunction(expr=[x <= 0.2, x >= 0.8])
    result = run(space, 12)
    assert result.stopped == "budget"
    values = [t.config["x"] for t in result.history]
    assert any(v <= 0.2 for v in values)
    assert any(v >= 0.8 for v in values)


def test_wide_integers_are_proposed_to_the_last() -> None:
    space = mc.Space("few of many")
    n = space.integer("n", 1, 100)
    space.categorical("c", ["a", "b"])
    space.rule("small", n <= 5)
    result = run(space, 15)
    assert (result.n_done, result.stopped) == (10, BEST_OF_ALL)
    assert {(t.config["n"], t.config["c"]) for t in result.history} == set(itertools.product(range(1, 6), "ab"))
    free = mc.Space("free", expand_limit=8)
    free.integer("n", 0, 12)
    result = run(free, 20)
    assert (sorted(t.config["n"] for t in result.history), result.stopped) == (list(range(13)), BEST_OF_ALL)


def test_a_pinned_number_beside_a_free_one_is_not_exhausted_and_pinned_ones_are() -> None:
    space = mc.Space("pinned")
    kind = space.categorical("kind", ["a", "b"])
    x, y = space.real("x", 0, 1), space.real("y", 0, 1, when=kind["a"])
    space.rule("pin", x == 0.5)
    space.rule("kind", kind["a"] == 1)
    assert run(space, 8).stopped == "budget"
    space.rule("pin y", y == 0.25)
    result = run(space, 8)
    assert (result.n_done, result.stopped) == (1, BEST_OF_ALL)
    assert result.config == {"kind": "a", "x": 0.5, "y": 0.25}


def test_logic_beside_reals_in_a_rule_is_not_exhausted() -> None:
    space = mc.Space("logic")
    k, l = space.categorical("k", ["a", "b"]), space.categorical("l", ["a", "b"])
    x, y = space.real("x", 0, 1), space.real("y", 0, 1)
    space.rule("sum", x + y <= 1 + k["a"])
    space.model.logic = pyo.LogicalConstraint(expr=k.boolean("a").implies(l.boolean("b")))
    result = run(space, 10)
    assert result.stopped == "budget"
    assert all(space.is_legal(t.config) for t in result.history)


def test_two_pinned_parts_are_two_configurations() -> None:
    space = mc.Space("points")
    x = space.real("x", 0, 1)
    space.model.points = Disjunction(expr=[x == 0.25, x == 0.75])
    result = run(space, 6)
    assert (sorted(t.config["x"] for t in result.history), result.stopped) == ([0.25, 0.75], BEST_OF_ALL)


def test_values_that_python_calls_equal_are_different_configurations() -> None:
    space = mc.Space("zero and false")
    space.categorical("c", [0, False, 1, True])
    space.real("x", 0, 1)
    space.rule("pin", space["x"] == 0.5)
    result = run(space, 9)
    assert (result.n_done, result.stopped) == (4, BEST_OF_ALL)


def test_a_border_between_products_of_reals_is_part_of_the_space() -> None:
    space = mc.Space("border")
    k, x = space.integer("k", 0, 1), space.real("x", 0, 1)
    space.rule("disc", x * x <= 0.25 * k)  # at k = 0 only x = 0
    space.rule("off", k <= 0)
    assert space.is_legal({"k": 0, "x": 0.0})
    (config,) = space.sample(1)
    assert config["k"] == 0
    assert config["x"] <= 4e-5  # its square is within the tolerance of the rule


# -- volume ---------------------------------------------------------------------------------------------------------


def test_samples_of_a_mixture_have_the_moments_of_a_uniform_simplex() -> None:
    space = mc.Space("mixture")
    x = [space.real(f"x{i}", 0, 1) for i in range(6)]
    space.rule("sum", sum(x) == 1)
    drawn = np.array([[c[f"x{i}"] for i in range(6)] for c in space.sample(200, seed=0)])
    assert np.abs(drawn.sum(axis=1) - 1.0).max() <= 1e-12
    # Dirichlet(1, ..., 1): mean 1/6, variance 5/252, P(x_i > 1/2) = 2^-5
    assert np.abs(drawn.mean(axis=0) - 1 / 6).max() < 0.03
    assert np.abs(drawn.var(axis=0) / (5 / 252) - 1.0).max() < 0.35
    assert 0.01 < (drawn > 0.5).mean() < 0.06


def test_samples_of_a_union_cover_both_parts_evenly() -> None:
    space = mc.Space("either")
    x = space.real("x", 0, 1)
    space.model.either = Disjunction(expr=[x <= 0.2, x >= 0.8])
    drawn = np.array([c["x"] for c in space.sample(200, seed=1)])
    assert ((drawn <= 0.2) | (drawn >= 0.8)).all()
    assert 0.35 < (drawn <= 0.2).mean() < 0.65
    for low, high in ((0.0, 0.1), (0.1, 0.2), (0.8, 0.9), (0.9, 1.0)):
        assert 0.13 < ((drawn >= low) & (drawn <= high)).mean() < 0.38


def test_samples_of_wide_integers_under_an_equation_are_spread() -> None:
    space = mc.Space("split")
    n, m = space.integer("n", 0, 200), space.integer("m", 0, 200)
    space.rule("whole", n + m == 200)
    drawn = [c["n"] for c in space.sample(60, seed=0)]
    assert np.ptp(drawn) > 120
    assert len(set(drawn)) > 30
    stepped = mc.Space("stepped")
    k = stepped.integer("k", 0, 300, step=3)
    stepped.rule("small", k <= 5)
    assert {c["k"] for c in stepped.sample(20, seed=0)} == {0, 3}
    assert (run(stepped, 5).n_done, run(stepped, 5).stopped) == (2, BEST_OF_ALL)


def test_thin_sets_are_sampled_over_their_length() -> None:
    space = mc.Space("thin")
    x, y = space.real("x", 0, 1), space.real("y", 0, 1000)
    space.rule("low", y - 1000 * x >= -1)
    space.rule("high", y - 1000 * x <= 1)
    drawn = np.array([c["x"] for c in space.sample(60, seed=0)])
    assert drawn.min() < 0.15
    assert drawn.max() > 0.85


# -- counts, bounds, optima -----------------------------------------------------------------------------------------


def test_counts_through_disjunctions_and_chains_of_auxiliaries() -> None:
    space = mc.Space("either")
    a, b = (space.integer(name, 0, 5) for name in "ab")
    space.model.either = Disjunction(expr=[a >= 3, b >= 3])
    assert (space.count().number, space.count().exact) == (27, True)
    chain = mc.Space("chain")
    a, b = (chain.integer(name, 0, 5) for name in "ab")
    u, v = chain.auxiliary("u", 0, 5), chain.auxiliary("v", 0, 5)
    chain.rule("a", a == u)
    chain.rule("middle", u == v)
    chain.rule("b", v == b)
    assert (chain.count().number, chain.count().exact) == (6, True)


@pytest.mark.parametrize(("width", "least"), [(1e6, 1.0), (1e3, 1e-3), (1e6, 1e-3), (1e9, 1.0)])
@pytest.mark.parametrize("solver", ["highs", "gurobi", "scip", "cplex"])
def test_large_ranges_that_conditions_switch_off(width: float, least: float, solver: str) -> None:
    if solver not in ("highs", *SOLVERS):
        pytest.skip(f"{solver} is not installed")
    space = mc.Space("large")
    k, l = space.categorical("k", ["x", "y"]), space.categorical("l", ["x", "y"])
    a, b = space.real("a", 0, width, when=k["x"]), space.real("b", 0, width, when=l["x"])
    space.rule("some", a + b >= least)
    assert space.explain(solver) == "space 'large' is not empty"
    for config in space.sample(6, seed=0):
        assert config.get("a", 0.0) + config.get("b", 0.0) >= least
    for expression, best in ((a + b, least), (k["x"] + l["x"], 1.0)):
        found = space.optimum(expression, solver=solver)
        assert found.status == "optimal"
        assert found.value == pytest.approx(best, rel=1e-6)
        assert found.bound <= found.value
        assert found.config.get("a", 0.0) + found.config.get("b", 0.0) >= least
    bounds = space.bounds(solver)
    assert bounds["a"].high == width
    assert bounds["k"].values == ("x", "y")
    assert (space.count().number, space.count().exact) == (3, True)


def test_small_and_large_coefficients_say_what_they_say() -> None:
    space = mc.Space("small")
    a = space.integer("a", 0, 9)
    space.rule("three", 1e-7 * a == 3e-7)
    assert space.count().number == 1
    assert [space.is_legal({"a": v}) for v in range(10)] == [v == 3 for v in range(10)]
    assert space.sample(1) == [{"a": 3}]
    assert space.optimum(a, "max").value == 3
    area = mc.Space("area")
    a, b = area.integer("a", 0, 50), area.integer("b", 0, 50)
    area.rule("area", 1e-9 * a * b <= 1e-7)
    legal = {(x, y) for x in range(51) for y in range(51) if x * y <= 100}
    assert area.count().number == len(legal)
    assert area.optimum(a + b, "max").value == max(x + y for x, y in legal)
    assert all((c["a"], c["b"]) in legal for c in area.sample(50))
    assert all(area.is_legal({"a": x, "b": y}) == ((x, y) in legal) for x in range(0, 51, 5) for y in range(0, 51, 5))


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_a_rule_times_a_factor_is_the_same_rule(factor: float) -> None:
    space = mc.Space("scaled")
    a, b, x = space.integer("a", 0, 9), space.integer("b", 0, 9), space.real("x", 0, 1)
    space.rule("ab", factor * (0.1 * a + 0.2 * b) <= factor * 0.3)
    space.rule("x", factor * (x + 0.01 * a) <= factor * 0.02)
    # 0.1 + 0.2 is 0.3 to within a rounding; a = 3 leaves x nothing: (0, 0), (1, 0), (2, 0), (0, 1), (1, 1)
    assert space.count().number == 5
    assert space.is_legal({"a": 1, "b": 1, "x": 0.0})
    assert not space.is_legal({"a": 1, "b": 1, "x": 0.0100001})
    assert space.optimum(x, "max").value == pytest.approx(0.02, abs=1e-9)


def test_messages_show_all_digits() -> None:
    space = mc.Space("digits")
    x = space.integer("x", 0, 20000)
    space.rule("low", x >= 11580)
    space.rule("high", x <= 11579)
    text = space.explain()
    assert "'low' (>= 11580): 11579 suffices" in text
    assert "'high' (<= 11579): 11580 suffices" in text
    (broken,) = space.validate({"x": 11580})
    assert "11580" in str(broken)
    assert "11579" in str(broken)


def test_nearest_uses_the_documented_distance() -> None:
    space = mc.Space("near")
    a, o = space.integer("a", 0, 8), space.ordinal("o", [1, 10, 100, 1000])
    c, x = space.categorical("c", ["p", "q"]), space.real("x", 0, 10)
    space.rule("either", a + 8 * c["q"] + 4 * o.is_(1000) >= 8)
    given = {"a": 5, "o": 100, "c": "p", "x": 3.0}
    legal = [
        (abs(v - 5) / 8 + abs(i - 2) / 3 + float(k != "p"), v, i, k)
        for v, i, k in itertools.product(range(9), range(4), "pq")
        if v + 8 * (k == "q") + 4 * (i == 3) >= 8
    ]
    _, v, i, k = min(legal)
    assert space.nearest(given) == {"a": v, "o": (1, 10, 100, 1000)[i], "c": k, "x": 3.0}
    space.rule("x", x >= 4.5)
    assert space.nearest(given)["x"] == 4.5


def test_the_sense_of_an_objective_is_its_own() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 1))
    model.most = pyo.Objective(expr=model.x, sense=pyo.maximize)
    space = mc.Space.from_pyomo(model)
    assert space.optimum(model.most).value == 1.0
    assert space.optimum(model.most, "max").value == 1.0
    with pytest.raises(SpaceError, match="to be maximized"):
        space.optimum(model.most, "min")


def test_names_of_logic_are_the_users() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 1))
    model.reactor, model.off = Disjunct(), Disjunct()
    model.reactor.c = pyo.Constraint(expr=model.x >= 0.8)
    model.off.c = pyo.Constraint(expr=model.x >= 0.9)
    model.which = Disjunction(expr=[model.reactor, model.off])
    model.most = pyo.Constraint(expr=model.x <= 0.5)
    space = mc.Space.from_pyomo(model)
    assert set(space.conflict().rules) == {"which", "reactor.c", "off.c", "most"}
    assert "_pyomo" not in space.explain()
    text = "; ".join(map(str, space.validate({"x": 0.4})))
    assert "'which'" in text
    assert "_pyomo" not in text


# -- numbers --------------------------------------------------------------------------------------------------------


def numbers_under_rules() -> mc.Space:
    space = mc.Space("numbers")
    kind = space.categorical("kind", ["a", "b"])
    x, y, z = space.real("x", 0, 1), space.real("y", 0.1, 1000.0), space.real("z", 1e-3, 10.0, log=True)
    w, n = space.real("w", 0, 5, when=kind["a"]), space.integer("n", 0, 400)
    space.rule("linear", 3 * x + y + 0.7 * z <= 100.3)
    space.rule("forced", x <= 5 * kind["a"])
    space.rule("equation", 0.3 * y + 1.7 * z == 4.9)
    space.rule("w", w <= 0.3 * n + x)
    space.rule("product", x * n <= 70)
    return space


@pytest.mark.parametrize("optimizer", installed("random", "hybrid", "mivabo", "jopt"))
def test_proposed_numbers_are_clean(optimizer: str) -> None:
    space = numbers_under_rules()
    result = mc.minimize(
        lambda c: c["z"] - c["x"] - c.get("w", 0.0), space, 11, optimizer=optimizer, seed=1, progress=False
    )
    for config in [t.config for t in result.history] + (space.sample(10, seed=2) if optimizer == "random" else []):
        x, y, z, n, w = config["x"], config["y"], config["z"], config["n"], config.get("w", 0.0)
        assert 3 * x + y + 0.7 * z <= 100.3
        assert abs(0.3 * y + 1.7 * z - 4.9) <= 1e-9 * 4.9
        assert w <= 0.3 * n + x
        assert x * n <= 70
        assert x == 0.0 or config["kind"] == "a"
        for value, low, high in ((x, 0.0, 1.0), (y, 0.1, 1000.0), (z, 1e-3, 10.0)):
            assert low <= value <= high
            assert value in (low, high) or (value - low > 1e-12 * low and high - value > 1e-10 * high)


def test_bounds_of_a_log_scale_are_exact() -> None:
    domain = mc.Real(1e-3, 999.0, log=True)
    assert (domain.from_unit(0.0), domain.from_unit(1.0)) == (1e-3, 999.0)
    space = mc.Space("log")
    space.real("x", 1e-3, 999.0, log=True)
    result = mc.minimize(lambda c: -c["x"], space, 15, progress=False)
    assert result.config["x"] == 999.0


# -- proofs ---------------------------------------------------------------------------------------------------------


def test_a_proof_names_who_proved_it() -> None:
    space = mc.Space("proofs")
    a, b = space.integer("a", 0, 9), space.integer("b", 0, 9)
    space.rule("sum", a + b <= 12)
    assert space.optimum(a * b, "max").solver == "enumeration"
    assert space.optimum(a * b, "max", solver="highs").solver == "highs"
    for name in SOLVERS:
        if name != "auto":
            assert space.optimum(a * b, "max", solver=name).solver == name
    trial = mc.Study(space).ask()
    assert trial.proof.solver == "enumeration"


def test_a_gap_at_zero_reads_sensibly() -> None:
    from mipcash.backends.task import relative_gap

    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(0.0, -1e-11) == 0.0
    assert relative_gap(0.0, -3.0) == 1.0
    assert relative_gap(1.0, -1.0) == 2.0
    assert relative_gap(100.0, 99.0) == pytest.approx(0.01)
    assert relative_gap(3.0, -math.inf) == math.inf
    assert all(0.0 <= relative_gap(v, b) <= 2.0 for v in (-5.0, 0.0, 1e-7, 3.0) for b in (-9.0, -1e-7, 0.0) if b <= v)


def test_an_exhausted_space_says_so_and_stays_so() -> None:
    space = mc.Space("two")
    a = space.integer("a", 0, 3)
    space.rule("two", a <= 1)
    study = mc.Study(space)
    for _ in range(2):
        study.tell(study.ask(), 1.0)
    for _ in range(2):
        with pytest.raises(SpaceExhaustedError):
            study.ask()
    assert math.isfinite(study.result.value)
