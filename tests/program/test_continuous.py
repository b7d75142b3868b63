"""Spaces with reals: optima, samples and legality against linear programs and grids that know nothing of mipcash.

Where every rule holds at most one real per term, the reals of a fixed discrete configuration range over a polytope:
its rows are read off the plain-Python meaning of the rules (value at zero and at the unit vectors) and solved by
``scipy.optimize.linprog``, one linear program per discrete configuration.
"""

from __future__ import annotations

import collections
import functools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.optimize import linprog

import mipcash as mc
from mipcash.backends.registry import make_backend
from mipcash.backends.task import SolverSettings, Task
from mipcash.program.forms import QuadraticForm
from mipcash.program.legality import legality_at
from mipcash.space.compiled import compiled
from mipcash.space.domain import Domain
from tests.fuzz.described import Drawn, Parameter, Relation, Rule, Term, Value, build, expression
from tests.slow import SOLVES, counted
from tests.strategies.distinct import check_distinct
from tests.strategies.meaning import Meaning
from tests.strategies.spaces import SMALL_EXPAND_LIMIT, draw_condition, draw_factor, draw_terms

PARTS = 2
SPACES_PER_PART = 30


# -- drawn spaces ---------------------------------------------------------------------------------------------------


@st.composite
def mixed(draw: st.DrawFn) -> tuple[Drawn, tuple[Term, ...], int]:
    """Two reals (the second sometimes conditional), a wide integer, one or two small parameters, linear and mixed rules."""
    parameters = [
        Parameter("k", "integer", (0, 1, 2, 3), 0, 3),
        Parameter("c", "categorical", ("a", "b", None)[: draw(st.integers(2, 3))]),
    ]
    if draw(st.booleans()):
        low = draw(st.integers(-2, 2))
        when = draw_condition(draw, parameters, SMALL_EXPAND_LIMIT)
        parameters.append(Parameter("w", "integer", tuple(range(low, low + 7)), low, low + 6, when=when))
    for name in ("x", "y"):
        low = draw(st.sampled_from((-2.0, 0.0, 0.5)))
        high = low + draw(st.sampled_from((1.0, 3.0)))
        when = draw_condition(draw, parameters[:3], SMALL_EXPAND_LIMIT)
        parameters.append(Parameter(name, "real", (), low, high, when=when))
    drawn = Drawn(tuple(parameters), expand_limit=SMALL_EXPAND_LIMIT)
    rules = []
    for k in range(draw(st.integers(1, 3))):
        terms = [Term(draw(st.sampled_from((1.0, -1.0, 2.0, 0.5))), (Value(draw(st.sampled_from("xy"))),))]
        if draw(st.booleans()):
            terms.append(
                Term(
                    draw(st.sampled_from((1.0, -1.0, 3.0))),
                    (Value(draw(st.sampled_from("xy"))), _discrete(draw, drawn)),
                )
            )
        terms.append(Term(draw(st.sampled_from((1.0, -2.0))), (_discrete(draw, drawn),)))
        if draw(st.integers(0, 3)) == 0:
            terms.append(
                Term(draw(st.sampled_from((1.0, -1.0))), (Value("x" if terms[0].factors == (Value("y"),) else "y"),))
            )
        if len({repr(t.factors) for t in terms}) < len(terms):
            continue
        sense = draw(st.sampled_from(("<=", ">=", "<=", ">=", "==")))
        rules.append(
            Rule(
                f"rule {k}",
                Relation(tuple(terms), sense, draw(st.integers(-4, 6)) / 2),
                draw_condition(draw, parameters[:2], 4),
            )
        )
    drawn = Drawn(tuple(parameters), parts=tuple(rules), expand_limit=SMALL_EXPAND_LIMIT)
    objective = [Term(draw(st.sampled_from((1.0, -1.0, 0.5))), (Value(n),)) for n in ("x", "y")]
    small = Drawn(tuple(p for p in parameters if p.kind != "real" and p.name != "w"), expand_limit=SMALL_EXPAND_LIMIT)
    objective += draw_terms(draw, small, quadratic=True, most=2)
    return drawn, tuple(objective), draw(st.integers(0, 2**32))


def _discrete(draw: Any, drawn: Drawn) -> Any:
    discrete = Drawn(tuple(p for p in drawn.parameters if p.kind != "real"), expand_limit=SMALL_EXPAND_LIMIT)
    return draw_factor(draw, discrete, tuned_only=True)


class Polytope:
    """The reals of one discrete configuration: bounds, rows, and the objective, affine in the active reals."""

    def __init__(self, drawn: Drawn, config: dict[str, Any], objective: tuple[Term, ...]) -> None:
        self.meaning, self.config = Meaning(drawn), config
        self.names = [p.name for p in drawn.reals if p.name in config]
        self.bounds = [(drawn[n].low, drawn[n].high) for n in self.names]
        rows = [r.relation for r in drawn.rules if all(self.meaning.holds(w, config) for w in r.when)]
        self.rows = [(*self.affine(r.terms), r.sense, r.bound) for r in rows]
        self.cost, self.constant = self.affine(objective)

    def affine(self, terms: tuple[Term, ...]) -> tuple[np.ndarray, float]:
        def at(values: dict[str, float]) -> float:
            return float(sum(self.meaning.term(t, self.config | values, {}) for t in terms))

        zero = at(dict.fromkeys(self.names, 0.0))
        return np.array([at(dict.fromkeys(self.names, 0.0) | {n: 1.0}) - zero for n in self.names]), zero

    def optimum(self, sign: float) -> float | None:
        """``min sign * objective`` over the polytope; None if it is empty."""
        if not self.names:
            return sign * self.constant if self.slack({}) >= -1e-9 else None
        rows = tuple((tuple(row), sense, bound - constant) for row, constant, sense, bound in self.rows)
        found = least(tuple(sign * self.cost), rows, tuple(self.bounds))
        return None if found is None else found + sign * self.constant

    def slack(self, values: dict[str, float]) -> float:
        """By how much the tightest rule or bound holds (negative: it is broken)."""
        x = np.array([values[n] for n in self.names])
        found = [math.inf]
        for row, constant, sense, bound in self.rows:
            gap = bound - constant - float(row @ x if len(x) else 0.0)
            found.append({"<=": gap, ">=": -gap, "==": -abs(gap)}[sense])
        for n, (low, high) in zip(self.names, self.bounds, strict=True):
            found += [values[n] - low, high - values[n]]
        return min(found)


@functools.lru_cache(maxsize=10_000)
def least(
    cost: tuple[float, ...], rows: tuple[tuple[tuple[float, ...], str, float], ...], bounds: tuple[Any, ...]
) -> float | None:
    """``min cost . x`` by scipy; None if no x keeps the rows. Many configurations have the same rows."""
    a_ub, b_ub, a_eq, b_eq = [], [], [], []
    for row, sense, bound in rows:
        if sense == "==":
            a_eq.append(row)
            b_eq.append(bound)
        else:
            side = 1.0 if sense == "<=" else -1.0
            a_ub.append([side * a for a in row])
            b_ub.append(side * bound)
    result = linprog(cost, a_ub or None, b_ub or None, a_eq or None, b_eq or None, bounds=bounds, method="highs")
    assert result.status in (0, 2)
    return None if result.status == 2 else float(result.fun)


@pytest.mark.parametrize("part", range(PARTS))
def test_mixed_spaces_against_linear_programs(part: int) -> None:
    seen: collections.Counter[str] = collections.Counter()

    def check(drawn: Drawn, objective: tuple[Term, ...], number: int) -> None:
        check_space(drawn, objective, np.random.default_rng(number), seen)

    check_distinct(mixed(), check, SPACES_PER_PART, 100 + part)
    for kind in ("feasible", "empty", "equation", "mixed", "legal points", "illegal points", "conditional"):
        assert seen[kind] >= 3, (kind, seen)


def check_space(
    drawn: Drawn, objective: tuple[Term, ...], rng: np.random.Generator, seen: collections.Counter[str]
) -> None:
    polytopes = [Polytope(drawn, c, objective) for c in Meaning(drawn).enumerate()]
    space = build(drawn)
    body = expression(drawn, objective, space)
    empty = False
    for sense, sign in (("min", 1.0), ("max", -1.0)):
        optima = [v for p in polytopes if (v := p.optimum(sign)) is not None]
        solution = space.optimum(body, sense)
        if not optima:
            assert solution.status == "infeasible"
            empty = True
            continue
        assert solution.status == "optimal"
        assert sign * solution.value == pytest.approx(min(optima), abs=2e-5)
        assert sign * solution.bound <= sign * solution.value + 1e-9
        assert solution.config is not None
        assert _polytope(polytopes, solution.config).slack(solution.config) >= -1e-5
    if not empty:
        with pytest.MonkeyPatch.context() as patch:
            calls = counted(patch, *SOLVES)
            samples = space.sample(6, seed=int(rng.integers(1000)))
        assert len(calls) <= 30
        assert len(samples) == 6
        for config in samples:
            assert _polytope(polytopes, config).slack(config) >= -1e-5
    for _ in range(12):
        polytope = polytopes[int(rng.integers(len(polytopes)))]
        values = {n: float(rng.uniform(*b)) for n, b in zip(polytope.names, polytope.bounds, strict=True)}
        slack = polytope.slack(values)
        if abs(slack) > 1e-4:
            assert space.is_legal(polytope.config | values) == (slack > 0)
            seen["legal points" if slack > 0 else "illegal points"] += 1
    seen["feasible"] += not empty
    seen["empty"] += empty
    seen["equation"] += any(r.relation.sense == "==" for r in drawn.rules)
    seen["mixed"] += any(len(t.factors) == 2 for r in drawn.rules for t in r.relation.terms)
    seen["conditional"] += any(p.kind == "real" and p.when for p in drawn.parameters)


def _polytope(polytopes: list[Polytope], config: dict[str, Any]) -> Polytope:
    discrete = {n: v for n, v in config.items() if n not in ("x", "y")}
    (found,) = [
        p
        for p in polytopes
        if {n: repr(v) for n, v in p.config.items() if n not in ("x", "y")} == {n: repr(v) for n, v in discrete.items()}
        and set(p.names) == set(config) & {"x", "y"}
    ]
    return found


# -- products of two reals ------------------------------------------------------------------------------------------

CURVED = {
    "hyperbola below": (lambda x, y, k: x * y, "<=", 1.0),
    "hyperbola above": (lambda x, y, k: x * y, ">=", 1.0),
    "disc": (lambda x, y, k: x * x + y * y, "<=", 2.5),
    "outside a disc": (lambda x, y, k: x * x + y * y, ">=", 2.5),
    "saddle": (lambda x, y, k: x * y - x + 0.5 * y + k, "<=", 1.2),
    "square and integer": (lambda x, y, k: x * x - k * y, "<=", 0.3),
}


def curved_space(name: str) -> mc.Space:
    body, sense, bound = CURVED[name]
    space = mc.Space(name)
    x, y, k = space.real("x", -1.0, 2.0), space.real("y", 0.0, 3.0), space.integer("k", 0, 2)
    value = body(x, y, k)
    space.rule("curve", value <= bound if sense == "<=" else value >= bound)
    return space


@pytest.mark.parametrize("name", CURVED)
def test_programs_with_products_of_reals_admit_what_is_legal(name: str) -> None:
    body, sense, bound = CURVED[name]
    space = curved_space(name)
    program = compiled(space).program
    backend = make_backend("highs")
    zero = QuadraticForm.zero(program.n)
    latent = {n.label: n.latent for n in program.numbers}
    rng = np.random.default_rng(0)
    verdicts = collections.Counter()
    for _ in range(60):
        values = {"x": float(rng.uniform(-1, 2)), "y": float(rng.uniform(0, 3))}
        k = int(rng.integers(3))
        if rng.random() < 0.5:  # near the border
            values["y"] = _border(lambda y, x=values["x"], k=k: body(x, y, k) - bound, values["y"])
            values["y"] = float(np.clip(values["y"] + rng.normal() * 1e-6, 0, 3))
        value = body(values["x"], values["y"], k)
        slack = bound - value if sense == "<=" else value - bound
        if abs(slack) < 1e-7:
            continue
        fixed = {latent[n]: v for n, v in values.items()} | {program.groups[0].start + k: 1.0}
        status = backend.solve(Task(program, zero, fixed), SolverSettings()).status
        assert status == ("optimal" if slack > 0 else "infeasible"), (values, k, slack)
        verdicts[status] += 1
        assert space.is_legal(values | {"k": k}) == (slack > 0)
        levels = np.array([[k]])
        checked = legality_at(program, values)
        assert checked.complete
        assert bool(checked.check(levels)[0]) == (slack > 0)
    assert min(verdicts["optimal"], verdicts["infeasible"]) >= 8, verdicts


def _border(function: Any, start: float) -> float:
    grid = np.linspace(0, 3, 400)
    values = np.array([function(y) for y in grid])
    return float(grid[np.argmin(np.abs(values))]) if np.any(values > 0) and np.any(values < 0) else start


@pytest.mark.parametrize("name", CURVED)
def test_optima_under_products_of_reals_against_a_grid(name: str) -> None:
    body, sense, bound = CURVED[name]
    space = curved_space(name)
    x, y = np.meshgrid(np.linspace(-1, 2, 301), np.linspace(0, 3, 301))
    for cx, cy, ck in ((1.0, 1.0, 0.3), (-1.0, 2.0, -0.2), (1.0, -0.5, 0.1)):
        best = math.inf
        for k in range(3):
            value = body(x, y, k)
            inside = value <= bound if sense == "<=" else value >= bound
            if inside.any():
                best = min(best, float((cx * x + cy * y + ck * k)[inside].min()))
        solution = space.optimum(cx * space["x"] + cy * space["y"] + ck * space["k"])
        assert solution.status == "optimal"
        assert solution.value - 1e-5 <= solution.bound <= best + 1e-9
        assert best - 0.06 <= solution.value <= best + 1e-6  # the grid is a little too coarse to be optimal
        assert space.is_legal(solution.config)


@pytest.mark.parametrize("name", CURVED)
def test_samples_and_walks_stay_legal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body, sense, bound = CURVED[name]
    space = curved_space(name)
    calls = counted(monkeypatch, *SOLVES)
    samples = space.sample(25, seed=1)
    assert len(calls) <= 100
    for c in samples:
        value = body(c["x"], c["y"], c["k"])
        assert value <= bound + 1e-5 if sense == "<=" else value >= bound - 1e-5
    assert np.ptp([c["x"] for c in samples]) > 0.8, "samples are spread over the legal set"
    domain = Domain.of(space)
    program = domain.program
    columns = domain.minimise(QuadraticForm.zero(program.n), SolverSettings()).columns
    assert columns is not None
    levels, at = program.levels_of(columns), {n.label: n.column for n in program.numbers}
    rules = domain.legal_numbers(levels, columns)
    assert rules is not None
    k = domain.space.configuration(levels, columns)["k"]
    start = np.array([columns[at[label]] for label in rules.labels])
    assert rules.legal(start)
    ends = []
    for number in range(30):
        end = rules.walk(start, 30, np.random.default_rng(number))
        assert rules.legal(end)
        where = dict(zip(rules.labels, end.tolist(), strict=True))
        value = body(where["x"], where["y"], k)
        assert value <= bound + 1e-6 if sense == "<=" else value >= bound - 1e-6
        ends.append(end)
    assert np.all(np.ptp(np.array(ends), axis=0) > 0.2), "a walk moves"


def test_equations_between_reals() -> None:
    space = mc.Space("mixture")
    parts = [space.real(f"p{k}", 0.0, 1.0) for k in range(4)]
    n = space.integer("n", 1, 3)
    space.rule("sum", sum(parts) == 1)
    space.rule("scaled", parts[0] * n == 0.6)
    samples = space.sample(60, seed=0)
    for c in samples:
        assert sum(c[f"p{k}"] for k in range(4)) == pytest.approx(1, abs=2e-6)
        assert c["p0"] * c["n"] == pytest.approx(0.6, abs=2e-6)
    assert {c["n"] for c in samples} == {1, 2, 3}
    assert np.ptp([c["p2"] for c in samples]) > 0.3
    assert space.optimum(parts[1], "max").value == pytest.approx(0.8)


def test_wide_integers_in_linear_and_quadratic_rules() -> None:
    """Integers of thousands of values beside reals and in products: exact to the unit."""
    space = mc.Space("wide")
    rounds, depth = space.integer("rounds", 3, 5000, log=True), space.integer("depth", 1, 12)
    leaves, eta = space.integer("leaves", 2, 3000), space.real("eta", 0.001, 1.0, log=True)
    space.rule("work", rounds * depth <= 6001)
    space.rule("cells", rounds * leaves <= 1_000_003)
    space.rule("rate", rounds * eta <= 400)
    best = max(
        r + d for d in range(1, 13) for r in range(3, 5001) if r * d <= 6001 and r * 0.001 <= 400 and 2 * r <= 1_000_003
    )
    assert space.optimum(rounds + depth, "max").value == best
    most = max(5 * l + r for l in range(2, 3001) for r in (min(5000, 1_000_003 // l),))
    solution = space.optimum(rounds + 5 * leaves, "max")
    assert solution.value == most
    assert solution.config is not None
    assert solution.config["rounds"] * solution.config["leaves"] <= 1_000_003
    for c in space.sample(30, seed=0):
        assert c["rounds"] * c["depth"] <= 6001
        assert c["rounds"] * c["leaves"] <= 1_000_003
        assert c["rounds"] * c["eta"] <= 400 + 1e-5
