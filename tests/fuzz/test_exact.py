"""What the harness takes for true: linear programs in fractions, legal sets, knife's edges, each against another source."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from tests.fuzz.clean import factor_value
from tests.fuzz.described import (
    Choice,
    Clause,
    Drawn,
    Helper,
    Is,
    Join,
    Parameter,
    Relation,
    Rule,
    Term,
    Value,
    build,
    source,
)
from tests.fuzz.engine import features
from tests.fuzz.kinds import KINDS, draw, unrelated
from tests.fuzz.simplex import Row, Simplex, System
from tests.fuzz.table import Table
from tests.fuzz.truth import Truth
from tests.strategies.meaning import Meaning, key

ROOT = Path(__file__).parents[2]
DRAWN = 90
"""Spaces that are drawn here; no solver is asked."""


# -- linear programs ------------------------------------------------------------------------------------------------


def random_system(rng: np.random.Generator) -> System:
    """One to four reals under up to five rows with whole coefficients: feasible, infeasible and degenerate ones."""
    k, m = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    low = rng.integers(-3, 2, k)
    rows = []
    for _ in range(m):
        a = rng.integers(-3, 4, k)
        bound = Fraction(int(rng.integers(-6, 7)))
        sense = int(rng.integers(3))
        rows.append(
            Row(tuple(map(Fraction, a.tolist())), bound if sense else None, bound if sense != 1 else None, Fraction(3))
        )
    return System(
        tuple(map(Fraction, low.tolist())), tuple(map(Fraction, (low + rng.integers(1, 5, k)).tolist())), tuple(rows)
    )


def by_highs(system: System, costs: list[int]) -> float | None:
    """The greatest ``costs . x`` by scipy; None: infeasible."""
    upper = [(r.coefficients, r.upper) for r in system.rows if r.upper is not None]
    upper += [(tuple(-a for a in r.coefficients), -r.lower) for r in system.rows if r.lower is not None]
    found = linprog(
        [-c for c in costs],
        A_ub=[[float(a) for a in row] for row, _ in upper],
        b_ub=[float(b) for _, b in upper],
        bounds=[(float(l), float(h)) for l, h in zip(system.low, system.high, strict=True)],
        method="highs",
    )
    assert found.status in (0, 2)
    return None if found.status == 2 else -float(found.fun)


def test_linear_programs_in_fractions_against_scipy() -> None:
    rng, feasible = np.random.default_rng(0), 0
    for _ in range(300):
        system = random_system(rng)
        simplex = Simplex(system)
        for _ in range(2):
            costs = rng.integers(-3, 4, len(system.low)).tolist()
            expected = by_highs(system, costs)
            assert simplex.feasible == (expected is not None)
            if expected is None:
                break
            feasible += 1
            best = simplex.best([Fraction(c) for c in costs])
            assert float(best) == pytest.approx(expected, abs=1e-7)
            x = simplex.point()
            assert sum(c * v for c, v in zip(costs, x, strict=True)) == best
            for l, v, h in zip(system.low, x, system.high, strict=True):
                assert l <= v <= h
            for row in system.rows:
                body = sum(a * v for a, v in zip(row.coefficients, x, strict=True))
                assert row.lower is None or body >= row.lower
                assert row.upper is None or body <= row.upper
    assert 100 <= feasible <= 550


def test_a_tolerance_loosens_rows_by_their_scale() -> None:
    rows = (Row((Fraction(1),), Fraction(2), None, Fraction(10)),)
    system = System((Fraction(0),), (Fraction(1),), rows)
    assert not Simplex(system).feasible
    assert not Simplex(system, Fraction(99, 1000)).feasible
    assert Simplex(system, Fraction(1, 10)).feasible


# -- legal sets -----------------------------------------------------------------------------------------------------


def scaled(drawn: Drawn) -> bool:
    """Whether some rule is so small or so large that the other oracle's absolute tolerance does not fit it."""
    relations = [r.relation for r in drawn.rules]
    relations += [r for p in drawn.choices for d in p.disjuncts for r in d]
    return any(not 0.05 <= max(abs(t.coefficient) for t in r.terms) <= 1e4 for r in relations)


def test_legal_sets_against_plain_python() -> None:
    compared = 0
    for k in range(2 * DRAWN):
        case = draw(1, k)
        if case.drawn.reals or scaled(case.drawn) or case.truth.table.size > 3000:
            continue
        other = Meaning(case.drawn)
        configs = other.enumerate()
        mine = [case.truth.table.config(c) for c in range(case.truth.table.configs)]
        assert [key(c) for c in configs] == [key(c) for c in mine]
        assert np.array_equal(other.legal(configs), case.truth.legal_configs)
        for c in range(0, len(mine), 7):
            found = case.truth.violation(mine[c])
            assert found is not None
            assert (found <= Fraction(1, 10**9)) == case.truth.legal_configs[c]
        compared += 1
    assert compared >= DRAWN // 3


def test_reals_against_rules_in_plain_python() -> None:
    """The violation of random points, and that a legal row has a legal point: the dictionary's own."""
    rng, seen = np.random.default_rng(0), 0
    for k in range(DRAWN // 3):
        case = draw(2, k, ("mixtures", "large ranges", "real products"))
        table = case.truth.table
        for c in rng.permutation(table.configs)[:6]:
            config = random_config_of(case.truth, rng, int(c))
            worst = max(violation_of(case.drawn, r, config) for r in case.drawn.rules)
            found = case.truth.violation(config)
            assert found is not None
            edge = max(float(b.edge) for j in case.truth.judged for bodies in j.alternatives for b in bodies)
            assert max(float(found), -1.0) == pytest.approx(max(worst, -1.0), rel=1e-9, abs=0.1 * edge)
        for row, cell in case.truth.cells.items():
            config = random_config_of(case.truth, rng, row)
            names, simplex = cell.branches[0]
            config |= {n: float(v) for n, v in zip(names, simplex.point(), strict=True)}
            found = case.truth.violation(config)
            assert found is not None
            assert float(found) <= 1e-9
            seen += 1
    assert seen >= 50


def random_config_of(truth: Truth, rng: np.random.Generator, c: int) -> dict[str, object]:
    config = truth.table.config(c)
    return config | {p.name: float(rng.uniform(p.low, p.high)) for p in truth.table.active_reals(c)}


def violation_of(drawn: Drawn, rule: Rule, config: dict[str, object]) -> float:
    if any(not factor_value(drawn, w, config) for w in rule.when):
        return -1.0
    total = 0.0
    for term in rule.relation.terms:
        total += term.coefficient * float(np.prod([factor_value(drawn, f, config) for f in term.factors]))
    gap = total - rule.relation.bound
    reaches = [(abs(t.coefficient), reach_of(drawn, t)) for t in rule.relation.terms]
    sizes = [c * size for c, size in reaches]
    others = abs(rule.relation.bound) + sum(sizes) - max(sizes)
    scale = max(c * min(1.0, size) for c, size in reaches) + 2e-6 * others
    return {"<=": gap, ">=": -gap, "==": abs(gap)}[rule.relation.sense] / scale


def reach_of(drawn: Drawn, term: Term) -> float:
    """How large what a coefficient multiplies can be."""
    named = {p.name: p for p in drawn.parameters}
    values = [named[f.name] for f in term.factors if isinstance(f, Value) and f.name in named]
    ends = [max(map(abs, p.values or (p.low, p.high))) for p in values]
    return float(np.prod(ends)) or 1.0


def numbers(*names: str) -> tuple[Parameter, ...]:
    return tuple(Parameter(n, "integer", tuple(range(10)), 0, 9) for n in names)


def rule(name: str, terms: dict[str, float], sense: str, bound: float) -> Rule:
    return Rule(name, Relation(tuple(Term(c, (Value(n),)) for n, c in terms.items()), sense, bound))


def truth_of(drawn: Drawn) -> Truth:
    found = Truth.free(Table(drawn))
    for part in drawn.parts:
        found = found.plus(part)
    return found


def test_a_triangle_is_empty_though_no_two_of_its_rules_contradict() -> None:
    sides = (
        rule("r0", {"a": 1.0, "b": 1.0}, "<=", 9.0),
        rule("r1", {"a": 1.0, "c": -1.0}, ">=", 2.0),
        rule("r2", {"b": 1.0, "c": 1.0}, ">=", 9.0),
    )
    found = truth_of(Drawn(numbers("a", "b", "c"), (), sides))
    assert found.empty
    assert unrelated(found)
    assert not found.only({"r0", "r1"}).empty
    assert found.relaxation("r0") == 2.0


def test_borders_and_knife_edges() -> None:
    three_tenths = {"a": 0.1, "b": 0.2}
    border = truth_of(Drawn(numbers("a", "b"), (), (rule("r0", three_tenths, ">=", 0.1 + 0.2),)))
    assert border.legal_configs[border.table.find({"a": 1, "b": 1})]
    assert not border.knife
    edge = truth_of(Drawn(numbers("a", "b"), (), (rule("r0", three_tenths, ">=", 0.3 + 1e-9),)))
    assert edge.knife
    clear = truth_of(Drawn(numbers("a", "b"), (), (rule("r0", three_tenths, ">=", 0.3 + 1e-6),)))
    assert not clear.knife
    assert not clear.legal_configs[clear.table.find({"a": 1, "b": 1})]
    x, y = Parameter("x", "real", (), 0.0, 1.0), Parameter("y", "real", (), 0.0, 1.0)
    sums = [rule("r0", {"x": 1.0, "y": 1.0}, ">=", 2.0 + off) for off in (1e-12, 1e-9, 1e-6)]
    found = [truth_of(Drawn((x, y), (), (each,))) for each in sums]
    assert [(t.empty, t.knife) for t in found] == [(False, False), (True, True), (True, False)]


def test_indicators_of_disjuncts() -> None:
    listed = tuple((rule("", {n: 1.0}, ">=", 8.0).relation,) for n in ("a", "b"))
    either, both, first = 36, 4, 20  # of 100: a or b from 8 on, both of them, a alone

    def count(**how: object) -> int:
        choice = Choice("choice_0", listed, **how)  # type: ignore[arg-type]
        return truth_of(Drawn(numbers("a", "b"), (), (choice,))).settings("ab")

    assert count(fixed=(None, None)) == count(exactly=False) == either
    assert count(fixed=(True, None)) == count(fixed=(None, False)) == count(fixed=(True, False), exactly=False) == first
    assert count(fixed=(True, True)) == count(fixed=(False, False), exactly=False) == 0
    assert count(fixed=(True, True), exactly=False) == both
    assert count(implied=((0, 1),)) == first  # b's, as a's indicator would bring both
    assert count(exactly=False, implied=((0, 1), (1, 0))) == both


def test_formulas_of_conditions() -> None:
    a, b = Is("a", (0,)), Is("b", (0, 1))
    for joined, there in (
        (Join("&", (a, b)), 2),
        (Join("|", (a, b, a)), 28),
        (Join("~", (Join("|", (a, b)),)), 72),
        (Join("&", (a, Join("~", (a,)))), 0),
    ):
        drawn = Drawn((*numbers("a", "b"), replace(*numbers("c"), when=(joined,))))
        assert int(Table(drawn).on["c"].sum()) == 10 * there
        configs = Meaning(drawn).enumerate()
        assert sum("c" in c for c in configs) == 10 * there


def test_helpers_disjunctions_and_clauses() -> None:
    a, b, u = "a", "b", Helper("u", 0, 9)
    chain = (rule("r0", {a: 1.0, "u": -1.0}, "==", 0.0), rule("r1", {"u": 1.0, b: -1.0}, "==", 0.0))
    assert truth_of(Drawn(numbers(a, b), (u,), chain)).settings("ab") == 10
    listed = tuple((rule("", {n: 1.0}, ">=", 8.0).relation,) for n in (a, b))
    assert truth_of(Drawn(numbers(a, b), (), (Choice("choice_0", listed),))).settings("ab") == 36
    clause = Clause("logic_0", "implies", ((a, 0, True), (b, 0, True)))
    assert truth_of(Drawn(numbers(a, b), (), (clause,))).settings("ab") == 91


# -- drawing --------------------------------------------------------------------------------------------------------


def test_drawn_spaces_are_not_trivial() -> None:
    cases = [draw(0, k) for k in range(DRAWN)]
    left = [int(c.truth.legal_configs.sum()) for c in cases]
    assert sum(n <= 5 for n in left) >= DRAWN // 3
    assert sum(n == 0 for n in left) >= DRAWN // 5
    assert sum(n > 5 for n in left) >= DRAWN // 5
    assert sum(unrelated(c.truth) for c in cases) >= DRAWN // 10
    assert {c.kind for c in cases} == set(KINDS)
    seen = {f for c in cases for f in features(c)}
    assert seen >= {
        "numbers",
        "logic",
        "helpers",
        "wide integers",
        "disjunctions",
        "conditional parameters",
        "orderings",
        "when: eight alternatives",
        "when: repeated",
        "when: negated formula",
        "when: three levels",
        "when: is_active of a number",
        "when: is_active of several conditions",
        "never active",
        "expand_limit 0 to 3",
        "ranges below 1e-5",
        "ranges above 1e8",
        "single points",
        "products of two reals",
        "hard labels",
        "fixed indicators",
        "free indicators",
        "implied indicators",
    }
    sizes = [abs(t.coefficient) for c in cases for r in c.drawn.rules for t in r.relation.terms]
    assert min(sizes) <= 1e-6
    assert max(sizes) >= 1e6


def test_spaces_are_the_same_in_another_process() -> None:
    code = "from tests.fuzz.kinds import draw; from tests.fuzz.described import source\n"
    code += "print(''.join(source(draw(0, k).drawn) for k in range(12)), end='')"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert other.stdout == "".join(source(draw(0, k).drawn) for k in range(12))


def test_every_kind_is_declared_as_it_is_drawn() -> None:
    for kind in KINDS:
        drawn = draw(0, 0, (kind,)).drawn
        space = build(drawn)
        assert set(space.parameters) == {p.name for p in drawn.parameters}  # ConfigSpace sorts its own
        assert {r.name for r in drawn.rules if not r.direct} <= set(space.rules)
