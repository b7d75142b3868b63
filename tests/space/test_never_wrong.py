"""Correctness of a space's results: emptiness, exhaustion, uniform samples, counts, bounds, optima and proofs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunct, Disjunction
from scipy.stats import chi2

import mipcash as mc
from mipcash.backends.registry import solvers
from mipcash.backends.task import relative_gap
from mipcash.errors import InfeasibleSpaceError, SpaceError, SpaceExhaustedError
from mipcash.study.policies.policy import BEST_OF_ALL

SOLVERS = [s.name for s in solvers() if s.installed and s.name != "highs"]


def run(space: mc.Space, budget: int) -> mc.Result:
    def loss(config: dict[str, object]) -> float:
        return sum(float(v) if isinstance(v, (int, float)) else len(str(v)) for v in config.values())

    method = mc.Method("hybrid", settings={"n_initial": 3, "samples": 1})
    return mc.minimize(loss, space, budget, optimizer=method, progress=False)


# -- emptiness ------------------------------------------------------------------------------------------------------


def cycle() -> mc.Space:
    """Empty space whose emptiness follows from the sum of its three rules, but from no pair of them."""
    space = mc.Space("cycle")
    a, b, c = (space.integer(name, 0, 9) for name in "abc")
    space.rule("ab", a + b <= 9)
    space.rule("ac", a - c >= 2)
    space.rule("bc", b + c >= 9)
    return space


def ring(n: int, steps: int) -> mc.Space:
    """Space x_0 < x_1 < ... < x_{n-1} < x_0 + steps over 0..9, which is empty for steps < n."""
    space = mc.Space("ring")
    x = [space.integer(f"x{k}", 0, 9) for k in range(n)]
    for k in range(n - 1):
        space.rule(f"step {k}", x[k + 1] - x[k] >= 1)
    space.rule("close", x[n - 1] - x[0] <= steps - 1)
    return space


@pytest.mark.parametrize("make", [cycle, lambda: ring(4, 3)], ids=["cycle", "ring"])
def test_a_cycle_of_rules_is_empty_although_no_pair_conflicts(make: Callable[[], mc.Space]) -> None:
    space = make()
    assert "is empty" in space.explain()
    assert set(space.conflict().rules) == set(space.rules)
    assert (space.count().number, space.count().exact) == (0, True)
    assert space.optimum(next(iter(space.parameters.values())), "max").status == "infeasible"
    for ask in (space.bounds, lambda: mc.Study(space).ask(), lambda: space.sample(2), lambda: space.nearest({})):
        with pytest.raises(InfeasibleSpaceError):
            ask()
    if make is cycle:
        by = {r.rule: r.by for r in space.conflict().relaxations}
        assert by == {"ab": pytest.approx(2), "ac": pytest.approx(2), "bc": pytest.approx(2)}


# -- exhaustion -----------------------------------------------------------------------------------------------------


def mixture(space: mc.Space) -> None:
    space.rule("sum", sum(space.real(f"x{i}", 0, 1) for i in range(4)) == 1)


def either(space: mc.Space) -> None:
    x = space.real("x", 0, 1)
    space.model.either = Disjunction(expr=[x <= 0.2, x >= 0.8])


def logic(space: mc.Space) -> None:
    k, l = space.categorical("k", ["a", "b"]), space.categorical("l", ["a", "b"])
    space.rule("sum", space.real("x", 0, 1) + space.real("y", 0, 1) <= 1 + k["a"])
    space.model.logic = pyo.LogicalConstraint(expr=k.boolean("a").implies(l.boolean("b")))


def pinned_beside_free(space: mc.Space) -> None:
    kind = space.categorical("kind", ["a", "b"])
    x, _ = space.real("x", 0, 1), space.real("y", 0, 1, when=kind["a"])
    space.rule("pin", x == 0.5)
    space.rule("kind", kind["a"] == 1)


def narrow(high: float, least: float, most: float) -> Callable[[mc.Space], None]:
    def declare(space: mc.Space) -> None:
        x = space.real("x", 0, high)
        space.rule("least", x >= least)
        space.rule("most", x <= most)

    return declare


NEVER = {
    "a mixture": mixture,
    "a disjunction": either,
    "logic beside reals in a rule": logic,
    "a pinned number beside a free one": pinned_beside_free,
    "500 of a billion": narrow(1e9, 0.0, 500.0),
    "a millionth": narrow(1.0, 0.5, 0.5 + 1e-6),
}


@pytest.mark.parametrize("what", NEVER)
def test_reals_are_never_exhausted(what: str) -> None:
    space = mc.Space(what)
    NEVER[what](space)
    result = run(space, 6)
    assert result.stopped == "budget"
    assert all(space.is_legal(t.config) for t in result.history)
    assert len({repr(t.config) for t in result.history}) == 6


def few_of_many(space: mc.Space) -> None:
    n = space.integer("n", 1, 100)
    space.categorical("c", ["a", "b"])
    space.rule("small", n <= 3)


def few_steps(space: mc.Space) -> None:
    space.rule("small", space.integer("k", 0, 300, step=3) <= 5)


def ring_of_few(space: mc.Space) -> None:
    x = [space.integer(name, 0, 9) for name in "xyz"]
    space.rule("up", x[1] - x[0] >= 1)
    space.rule("further up", x[2] - x[1] >= 1)
    space.rule("close", x[2] - x[0] <= 3)
    space.rule("few", sum(x) <= 6)


def pinned(space: mc.Space) -> None:
    pinned_beside_free(space)
    space.rule("pin y", space["y"] == 0.25)


def points(space: mc.Space) -> None:
    x = space.real("x", 0, 1)
    space.model.points = Disjunction(expr=[x == 0.25, x == 0.75])


def zero_and_false(space: mc.Space) -> None:
    """Declare values that are equal in Python but make different configurations."""
    space.categorical("c", [0, False, 1, True])
    space.rule("pin", space.real("x", 0, 1) == 0.5)


WHOLE: dict[str, tuple[Callable[[mc.Space], object], list[dict[str, object]]]] = {
    "wide integers": (few_of_many, [{"n": n, "c": c} for n in (1, 2, 3) for c in "ab"]),
    "a free wide integer": (lambda space: space.integer("n", 0, 7), [{"n": n} for n in range(8)]),
    "a wide integer with steps": (few_steps, [{"k": 0}, {"k": 3}]),
    "integers under rules": (
        ring_of_few,
        [
            dict(zip("xyz", c, strict=True))
            for c in itertools.product(range(10), repeat=3)
            if c[0] < c[1] < c[2] <= c[0] + 3 and sum(c) <= 6
        ],
    ),
    "pinned reals": (pinned, [{"kind": "a", "x": 0.5, "y": 0.25}]),
    "a real of a billion, pinned": (narrow(1e9, 500.0, 500.0), [{"x": 500.0}]),
    "two points": (points, [{"x": 0.25}, {"x": 0.75}]),
    "values that Python calls equal": (zero_and_false, [{"c": c, "x": 0.5} for c in (0, False, 1, True)]),
}


@pytest.mark.parametrize("what", WHOLE)
def test_finite_spaces_are_proposed_completely(what: str) -> None:
    declare, legal = WHOLE[what]
    space = mc.Space(what, expand_limit=5)
    declare(space)
    result = run(space, len(legal) + 3)
    assert sorted(repr(t.config) for t in result.history) == sorted(map(repr, legal))
    assert result.stopped == BEST_OF_ALL


def test_an_exhausted_space_stays_exhausted() -> None:
    space = mc.Space("two")
    space.rule("two", space.integer("a", 0, 3) <= 1)
    study = mc.Study(space)
    for _ in range(2):
        study.tell(study.ask(), 1.0)
    for _ in range(2):
        with pytest.raises(SpaceExhaustedError):
            study.ask()


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
    drawn = np.array([[c[f"x{i}"] for i in range(6)] for c in space.sample(400, seed=0)])
    assert np.abs(drawn.sum(axis=1) - 1.0).max() <= 1e-12
    # Dirichlet(1, ..., 1): mean 1/6, variance 5/252, P(x_i > 1/2) = 2^-5
    assert np.abs(drawn.mean(axis=0) - 1 / 6).max() < 0.03
    assert np.abs(drawn.var(axis=0) / (5 / 252) - 1.0).max() < 0.35
    assert 0.01 < (drawn > 0.5).mean() < 0.06


def test_samples_under_a_curve_are_uniform_on_the_scale_of_each_number() -> None:
    space = mc.Space("curve")
    x, y, s = space.real("x", 0, 1), space.real("y", 0.01, 1, log=True), space.real("s", 0, 1, step=0.25)
    space.rule("product", x * y <= 0.3)
    space.rule("sum", x + s <= 1.2)
    drawn = np.array([[c["x"], c["y"], c["s"]] for c in space.sample(600, seed=0)])
    rng = np.random.default_rng(0)
    all_of = np.column_stack([rng.random(10**6), 0.01 ** rng.random(10**6), rng.integers(5, size=10**6) / 4])
    legal = all_of[(all_of[:, 0] * all_of[:, 1] <= 0.3) & (all_of[:, 0] + all_of[:, 2] <= 1.2)]
    edges = [np.linspace(0, 1, 4), np.geomspace(0.01, 1, 4), np.arange(6) / 4 - 0.125]
    found, expected = (np.histogramdd(each, edges)[0].ravel() for each in (drawn, legal))
    found, expected = found[expected > 0], expected[expected > 0] * len(drawn) / len(legal)
    assert found.sum() == len(drawn)
    assert chi2.sf(((found - expected) ** 2 / expected).sum(), len(found) - 1) > 1e-3


def test_samples_keep_the_steps_of_numbers_whose_rules_end_between_two_of_them() -> None:
    space = mc.Space("between")
    n, x, s = space.integer("n", 0, 1000), space.real("x", 0, 1), space.real("s", 0, 1, step=0.25)
    space.rule("low", 2 * n >= 3)
    space.rule("high", 2 * n <= 11)
    space.rule("together", x + 0.1 * n <= 1.2)
    space.rule("third", 3 * s >= 1)
    space.rule("sum", s + x <= 1.5)
    drawn = space.sample(300, seed=0)
    assert {c["n"] for c in drawn} == {2, 3, 4, 5}
    assert {c["s"] for c in drawn} == {0.5, 0.75, 1.0}
    assert min(sum(c["n"] == k for c in drawn) for k in (2, 3, 4, 5)) > 40


def test_samples_of_a_union_cover_both_parts_evenly() -> None:
    space = mc.Space("either")
    x = space.real("x", 0, 1)
    space.model.either = Disjunction(expr=[x <= 0.2, x >= 0.8])
    drawn = np.array([c["x"] for c in space.sample(100, seed=1)])
    assert ((drawn <= 0.2) | (drawn >= 0.8)).all()
    assert 0.35 < (drawn <= 0.2).mean() < 0.65
    for low, high in ((0.0, 0.1), (0.1, 0.2), (0.8, 0.9), (0.9, 1.0)):
        assert 0.13 < ((drawn >= low) & (drawn <= high)).mean() < 0.38


def test_thin_sets_are_sampled_over_their_length() -> None:
    space = mc.Space("thin")
    x, y = space.real("x", 0, 1), space.real("y", 0, 1000)
    space.rule("low", y - 1000 * x >= -1)
    space.rule("high", y - 1000 * x <= 1)
    drawn = np.array([c["x"] for c in space.sample(60, seed=0)])
    assert drawn.min() < 0.15
    assert drawn.max() > 0.85


# -- counts, bounds, optima -----------------------------------------------------------------------------------------


def test_rules_with_tiny_coefficients_are_exact() -> None:
    space = mc.Space("small")
    a = space.integer("a", 0, 9)
    space.rule("three", 1e-7 * a == 3e-7)
    assert space.count().number == 1
    assert [space.is_legal({"a": v}) for v in range(10)] == [v == 3 for v in range(10)]
    assert space.sample(1) == [{"a": 3}]
    assert space.optimum(a, "max").value == 3
    area = mc.Space("area")
    a, b = area.integer("a", 0, 9), area.integer("b", 0, 9)
    area.rule("area", 1e-9 * a * b <= 2e-8)
    legal = {(x, y) for x in range(10) for y in range(10) if x * y <= 20}
    assert area.count().number == len(legal)
    assert area.optimum(a + b, "max").value == max(x + y for x, y in legal)
    assert {(x, y) for x in range(10) for y in range(10) if area.is_legal({"a": x, "b": y})} == legal


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_a_rule_times_a_factor_is_the_same_rule(factor: float) -> None:
    space = mc.Space("scaled")
    a, b, x = space.integer("a", 0, 9), space.integer("b", 0, 9), space.real("x", 0, 1)
    space.rule("ab", factor * (0.1 * a + 0.2 * b) <= factor * 0.3)
    space.rule("x", factor * (x + 0.01 * a) <= factor * 0.02)
    # 0.1 + 0.2 is 0.3 up to rounding, and a = 3 leaves no x, so (a, b) is one of (0, 0), (1, 0), (2, 0), (0, 1), (1, 1)
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
    assert "'low' (x >= 11580): 11579 suffices" in text
    assert "'high' (x <= 11579): 11580 suffices" in text
    (broken,) = space.validate({"x": 11580})
    assert "11580" in str(broken)
    assert "11579" in str(broken)


def test_a_rule_whose_bound_is_zero_is_relaxed_by_a_difference() -> None:
    """Its zero may be no number of the user: ``x <= y`` is kept as ``x - y <= 0``."""
    space = mc.Space("zero")
    x, y = space.integer("x", 0, 9), space.integer("y", 0, 9)
    space.rule("less", x - y <= 0)
    space.rule("more", x - y >= 2)
    assert "'less' (x - y <= 0): relax it by 2; or 'more' (x - y >= 2): 0 suffices" in space.explain()


def implied(s: mc.Space, a: Any) -> None:
    k = s.categorical("k", ["u", "v"])
    s.rule("five", mc.implies(k["u"], a >= 5))
    s.rule("seven", mc.implies(k["v"], a >= 7))
    s.rule("most", a <= 3)


def under_conditions(s: mc.Space, a: Any) -> None:
    k = s.categorical("k", ["u", "v"])
    s.rule("five", a >= 5, when=k["u"])
    s.rule("eight", a == 8, when=k["v"])
    s.rule("most", a <= 2)


def strict(s: mc.Space, a: Any) -> None:
    s.rule("below", a < 3)
    s.rule("above", a > 6)


def of_truths(s: mc.Space, a: Any) -> None:
    k = s.categorical("k", ["u", "v"])
    s.rule("not u", ~k["u"])
    s.rule("not v", ~k["v"])


@pytest.mark.parametrize(
    ("declare", "high", "said"),
    [
        (implied, 9, "'most' (a <= 3): 5 suffices"),
        (
            implied,
            None,
            "'five' (implies(k['u'], a >= 5)): relax it by 2; or 'seven' (implies(k['v'], a >= 7)): relax it by 4; or "
            "'most' (a <= 3): 5 suffices",
        ),
        (
            under_conditions,
            9,
            "'five' (a >= 5, when k is 'u'): 2 suffices; or 'eight' (a == 8, when k is 'v'): 2 suffices; or "
            "'most' (a <= 2): 5 suffices",
        ),
        (strict, 99, "'below' (a < 3): relax it by 5; or 'above' (a > 6): relax it by 5"),
        (of_truths, 9, ""),
    ],
)
def test_the_least_relaxation_is_of_the_rule_as_it_is_written(
    declare: Callable[..., None], high: int | None, said: str
) -> None:
    """Rows may be negated, conditional, or clauses over levels; a relaxation is stated only if the rule's own sides need it."""
    space = mc.Space("written")
    declare(space, space.real("a", 0, 9) if high is None else space.integer("a", 0, high))
    assert space.explain().partition("relax or drop one of them")[2].removeprefix(". The least that helps: ") == said


def test_a_sum_of_indicators_of_several_parameters_may_be_relaxed() -> None:
    space = mc.Space("sum")
    a, b = space.categorical("a", ["p", "q"]), space.categorical("b", ["s", "t"])
    space.rule("both", a["p"] + b["s"] == 2)
    space.rule("one", 1 - a["q"] + b["s"] <= 1)
    assert [(r.rule, r.by) for r in space.conflict().relaxations] == [("both", 1.0), ("one", 1.0)]


def test_a_pyomo_objective_keeps_its_sense() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 1))
    model.most = pyo.Objective(expr=model.x, sense=pyo.maximize)
    space = mc.Space.from_pyomo(model)
    assert space.optimum(model.most).value == 1.0
    assert space.optimum(model.most, "max").value == 1.0
    with pytest.raises(SpaceError, match="has the direction maximize"):
        space.optimum(model.most, "min")


def test_messages_about_logic_use_the_names_of_the_user() -> None:
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


def test_bounds_of_a_log_scale_are_exact() -> None:
    domain = mc.Real(1e-3, 999.0, log=True)
    assert (domain.from_unit(0.0), domain.from_unit(1.0)) == (1e-3, 999.0)
    space = mc.Space("log")
    space.real("x", 1e-3, 999.0, log=True)
    assert space.optimum(space["x"], "max").config == {"x": 999.0}


# -- proofs ---------------------------------------------------------------------------------------------------------


def test_a_proof_names_its_solver() -> None:
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


def test_the_relative_gap_is_defined_at_zero() -> None:
    pairs = ((0.0, 0.0), (0.0, -1e-11), (0.0, -3.0), (1.0, -1.0), (100.0, 99.0), (3.0, -math.inf))
    assert [relative_gap(value, bound) for value, bound in pairs] == [0.0, 0.0, 1.0, 2.0, 0.01, math.inf]
