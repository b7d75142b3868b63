"""Tests of the brute force of the harness: linear programs in fractions, legal sets and borderline assignments."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from tests.fuzz.described import (
    Choice,
    Drawn,
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

ROOT = Path(__file__).parents[2]
DRAWN = 90
"""Number of spaces drawn here; no solver is called."""


# -- linear programs ------------------------------------------------------------------------------------------------


def test_a_tolerance_loosens_rows_by_their_scale() -> None:
    rows = (Row((Fraction(1),), Fraction(2), None, Fraction(10)),)
    system = System((Fraction(0),), (Fraction(1),), rows)
    assert not Simplex(system).feasible
    assert not Simplex(system, Fraction(99, 1000)).feasible
    assert Simplex(system, Fraction(1, 10)).feasible


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
