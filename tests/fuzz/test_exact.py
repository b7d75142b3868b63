"""Tests of the brute force of the harness: linear programs in fractions, legal sets and borderline assignments."""

from __future__ import annotations

import itertools
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from tests.fuzz.cases import cases
from tests.fuzz.clean import factor_value
from tests.fuzz.described import (
    Choice,
    Condition,
    Drawn,
    Is,
    Join,
    Parameter,
    Part,
    Relation,
    Rule,
    Term,
    Value,
    build,
    source,
)
from tests.fuzz.engine import features
from tests.fuzz.kinds import KINDS, draw, unrelated
from tests.fuzz.points import key
from tests.fuzz.simplex import Row, Simplex, System
from tests.fuzz.table import Config, Table
from tests.fuzz.truth import ALLOWED, Truth

ROOT = Path(__file__).parents[2]
DRAWN = 90
"""Number of spaces drawn here; no solver is called."""


# -- linear programs ------------------------------------------------------------------------------------------------


def random_system(rng: np.random.Generator) -> System:
    """Return a random system of one to four reals and up to five whole rows, perhaps infeasible or degenerate."""
    k, low, rows = int(rng.integers(1, 5)), rng.integers(-3, 2, 4), []
    for _ in range(int(rng.integers(1, 6))):
        bound, sense = Fraction(int(rng.integers(-6, 7))), int(rng.integers(3))
        a = tuple(map(Fraction, rng.integers(-3, 4, k).tolist()))
        rows.append(Row(a, bound if sense else None, bound if sense != 1 else None, Fraction(3)))
    high = low + rng.integers(1, 5, 4)
    return System(tuple(map(Fraction, low[:k].tolist())), tuple(map(Fraction, high[:k].tolist())), tuple(rows))


def by_highs(system: System, costs: list[int]) -> float | None:
    """Return the greatest ``costs . x`` by SciPy; None if the system is infeasible."""
    upper = [(r.coefficients, r.upper) for r in system.rows if r.upper is not None]
    upper += [(tuple(-a for a in r.coefficients), -r.lower) for r in system.rows if r.lower is not None]
    bounds = [(float(l), float(h)) for l, h in zip(system.low, system.high, strict=True)]
    rows, sides = [[float(a) for a in row] for row, _ in upper], [float(b) for _, b in upper]
    found = linprog([-c for c in costs], rows, sides, bounds=bounds, method="highs")
    assert found.status in (0, 2)
    return None if found.status == 2 else -float(found.fun)


def test_linear_programs_in_fractions_against_scipy() -> None:
    rng, feasible = np.random.default_rng(0), 0
    for _ in range(150):
        system = random_system(rng)
        simplex, costs = Simplex(system), rng.integers(-3, 4, len(system.low)).tolist()
        expected = by_highs(system, costs)
        assert simplex.feasible == (expected is not None)
        if expected is None:
            continue
        feasible += 1
        best = simplex.best([Fraction(c) for c in costs])
        assert float(best) == pytest.approx(expected, abs=1e-7)
        x = simplex.point()
        assert sum(c * v for c, v in zip(costs, x, strict=True)) == best
        assert all(l <= v <= h for l, v, h in zip(system.low, x, system.high, strict=True))
        for row in system.rows:
            body = sum(a * v for a, v in zip(row.coefficients, x, strict=True))
            assert row.lower is None or body >= row.lower
            assert row.upper is None or body <= row.upper
    assert 30 <= feasible <= 120


def test_a_tolerance_loosens_rows_by_their_scale() -> None:
    rows = (Row((Fraction(1),), Fraction(2), None, Fraction(10)),)
    system = System((Fraction(0),), (Fraction(1),), rows)
    assert not Simplex(system).feasible
    assert not Simplex(system, Fraction(99, 1000)).feasible
    assert Simplex(system, Fraction(1, 10)).feasible


# -- brute force in plain Python ------------------------------------------------------------------------------------


def holds(drawn: Drawn, condition: Condition, config: Config) -> bool:
    if isinstance(condition, Join):
        found = [holds(drawn, part, config) for part in condition.parts]
        return not found[0] if condition.kind == "~" else (all if condition.kind == "&" else any)(found)
    return bool(factor_value(drawn, condition, config))


def configurations(drawn: Drawn) -> list[Config]:
    """Return the configurations that domains and conditions allow, without reals."""
    found: list[Config] = [{}]
    for p in (p for p in drawn.parameters if p.kind != "real"):
        on = [all(holds(drawn, w, c) for w in drawn.conditions(p)) for c in found]
        found = [
            c | ({p.name: v} if o else {}) for c, o in zip(found, on, strict=True) for v in (p.values if o else "-")
        ]
    return found


def legal(drawn: Drawn, config: Config) -> bool:
    """Return True if some values of the auxiliary variables satisfy all parts."""
    names = [h.name for h in drawn.auxiliaries]
    ranges = itertools.product(*(range(h.low, h.high + 1) for h in drawn.auxiliaries))
    found = (config | dict(zip(names, values, strict=True)) for values in ranges)
    return any(all(keeps(drawn, part, c) for part in drawn.parts) for c in found)


def keeps(drawn: Drawn, part: Part, config: Config) -> bool:
    if isinstance(part, Rule):
        return not all(holds(drawn, w, config) for w in part.when) or related(drawn, part.relation, config)
    if isinstance(part, Choice):
        return any(all(related(drawn, r, config) for r in relations) for relations in part.alternatives)
    truths = [holds(drawn, Is(n, (l,), not wanted), config) for n, l, wanted in part.literals]
    *first, last = truths
    return {"any": any(truths), "xor": truths[0] != truths[1], "implies": last or not all(first)}[part.kind]


def related(drawn: Drawn, relation: Relation, config: Config) -> bool:
    terms = ((t.coefficient, *(factor_value(drawn, f, config) for f in t.factors)) for t in relation.terms)
    gap = sum(float(np.prod(factors)) for factors in terms) - relation.bound
    return {"<=": gap, ">=": -gap, "==": abs(gap)}[relation.sense] <= 1e-9


def test_legal_sets_against_plain_python() -> None:
    for case in cases(30, 1):
        configs = configurations(case.drawn)
        assert list(map(key, configs)) == [key(case.truth.table.config(c)) for c in range(len(configs))]
        assert [legal(case.drawn, c) for c in configs] == case.truth.legal_configs.tolist()
        for c in range(0, len(configs), 7):
            found = case.truth.violation(configs[c])
            assert found is not None
            assert (found <= ALLOWED) == case.truth.legal_configs[c]


def test_reals_against_plain_python() -> None:
    """Compare random points. For every legal row, check that the point of its dictionary is legal."""
    rng, inside, seen = np.random.default_rng(0), 0, 0
    for case in cases(30, 2, ("mixtures", "real products", "logic", "everything"), reals=True):
        table, bound = case.truth.table, list(case.truth.cells.items())
        for c in rng.permutation(table.configs)[:6].tolist() + [row // table.repeats for row, _ in bound[:6]]:
            config = table.config(c) | {p.name: float(rng.uniform(p.low, p.high)) for p in table.active_reals(c)}
            found = case.truth.violation(config)
            assert found is not None
            assert (found <= ALLOWED) == legal(case.drawn, config)
            inside += found <= ALLOWED
        for row, cell in bound:
            c, (names, simplex) = row // table.repeats, cell.branches[0]
            config = table.config(c) | {p.name: p.low for p in table.active_reals(c)}
            config |= dict(zip(names, map(float, simplex.point()), strict=True))
            assert legal(case.drawn, config)
            seen += 1
    assert min(inside, seen) >= 20


# -- spaces declared by hand ----------------------------------------------------------------------------------------


def numbers(*names: str) -> tuple[Parameter, ...]:
    return tuple(Parameter(n, "integer", tuple(range(10)), 0, 9) for n in names)


def rule(name: str, terms: dict[str, float], sense: str, bound: float) -> Rule:
    return Rule(name, Relation(tuple(Term(c, (Value(n),)) for n, c in terms.items()), sense, bound))


def truth_of(drawn: Drawn) -> Truth:
    found = Truth.free(Table(drawn))
    for part in drawn.parts:
        found = found.plus(part)
    return found


TRIANGLE = (
    rule("r0", {"a": 1.0, "b": 1.0}, "<=", 9.0),
    rule("r1", {"a": 1.0, "c": -1.0}, ">=", 2.0),
    rule("r2", {"b": 1.0, "c": 1.0}, ">=", 9.0),
)


def test_a_triangle_is_empty_though_no_two_of_its_rules_contradict() -> None:
    found = truth_of(Drawn(numbers("a", "b", "c"), (), TRIANGLE))
    assert found.empty
    assert unrelated(found)
    assert not found.only({"r0", "r1"}).empty
    assert found.relaxation("r0") == 2.0


def test_assignments_on_the_border_are_legal_and_borderline_ones_are_detected() -> None:
    def found(bound: float) -> Truth:
        return truth_of(Drawn(numbers("a", "b"), (), (rule("r0", {"a": 0.1, "b": 0.2}, ">=", bound),)))

    border, edge, clear = found(0.1 + 0.2), found(0.3 + 1e-9), found(0.3 + 1e-6)
    assert (border.knife, edge.knife, clear.knife) == (False, True, False)
    assert border.legal_configs[border.table.find({"a": 1, "b": 1})]
    assert not clear.legal_configs[clear.table.find({"a": 1, "b": 1})]
    reals = Parameter("x", "real", (), 0.0, 1.0), Parameter("y", "real", (), 0.0, 1.0)
    sums = [rule("r0", {"x": 1.0, "y": 1.0}, ">=", 2.0 + off) for off in (1e-12, 1e-9, 1e-6)]
    mixed = [truth_of(Drawn(reals, (), (each,))) for each in sums]
    assert [(t.empty, t.knife) for t in mixed] == [(False, False), (True, True), (True, False)]


def test_indicators_of_disjuncts() -> None:
    listed = tuple((rule("", {n: 1.0}, ">=", 8.0).relation,) for n in ("a", "b"))
    either, both, first = 36, 4, 20  # of 100: a or b at least 8, both, only a

    def count(**how: object) -> int:
        choice = Choice("choice_0", listed, **how)  # type: ignore[arg-type]
        return truth_of(Drawn(numbers("a", "b"), (), (choice,))).settings("ab")

    assert count(fixed=(None, None)) == count(exactly=False) == either
    assert count(fixed=(True, None)) == count(fixed=(None, False)) == count(fixed=(True, False), exactly=False) == first
    assert count(fixed=(True, True)) == count(fixed=(False, False), exactly=False) == 0
    assert count(fixed=(True, True), exactly=False) == both
    assert count(implied=((0, 1),)) == first  # only b: the indicator of a implies that of b
    assert count(exactly=False, implied=((0, 1), (1, 0))) == both


def test_extremes_with_coefficients_of_different_magnitudes() -> None:
    terms = (Term(0.5, (Value("a"),)), Term(-3e6, (Value("b"),)), Term(0.0625, (Value("c"),)))
    assert truth_of(Drawn(numbers("a", "b", "c"), (), ())).extremes(terms) == (-27_000_000, Fraction(81, 16))


# -- drawing --------------------------------------------------------------------------------------------------------


def test_drawn_spaces_are_not_trivial() -> None:
    drawn = [draw(0, k) for k in range(DRAWN)]
    left = [int(c.truth.legal_configs.sum()) for c in drawn]
    assert sum(n <= 5 for n in left) >= DRAWN // 3
    assert sum(n == 0 for n in left) >= DRAWN // 5
    assert sum(n > 5 for n in left) >= DRAWN // 5
    assert sum(unrelated(c.truth) for c in drawn) >= DRAWN // 10
    drawn += [draw(0, k, ("everything", "from_pyomo")) for k in range(6)]  # rare kinds
    assert {c.kind for c in drawn} == set(KINDS)
    found = [features(c) for c in drawn]
    assert not [name for name in found[0] if not any(there[name] for there in found)]
    sizes = [abs(t.coefficient) for c in drawn for r in c.drawn.rules for t in r.relation.terms]
    assert min(sizes) <= 1e-6
    assert max(sizes) >= 1e6


def test_spaces_are_the_same_in_another_process() -> None:
    code = "from tests.fuzz.kinds import draw; from tests.fuzz.described import source\n"
    code += "print(''.join(source(draw(0, k).drawn) for k in range(12)), end='')"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert other.stdout == "".join(source(draw(0, k).drawn) for k in range(12))


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_is_declared_as_it_is_drawn(kind: str) -> None:
    drawn = draw(0, 0, (kind,)).drawn
    space = build(drawn)
    assert set(space.parameters) == {p.name for p in drawn.parameters}  # ConfigSpace sorts its parameters
    assert {r.name for r in drawn.rules if not r.direct} <= set(space.rules)
