"""The legal set of numbers at fixed levels: rounding against fractions, walks against rejection, moves against enumeration."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyomo.environ as pyo
import pytest
from scipy.optimize import linprog
from scipy.stats import kstest

import mipcash as mc
from mipcash.program.forms import Vector
from mipcash.space.compiled import compiled
from mipcash.space.numbers import legal_numbers
from mipcash.space.numbers.assembly import Row, _with_equations, projected
from mipcash.space.numbers.lattice import directions_of
from mipcash.space.numbers.legal_numbers import LegalNumbers
from mipcash.space.numbers.part import NumberRules

INF = np.inf


def part(
    low: Sequence[float],
    high: Sequence[float],
    rows: Sequence[tuple[Sequence[float], float, float]],
    products: Sequence[tuple[int, Sequence[Sequence[float]]]] = (),
    step: Sequence[float] | None = None,
    log: Sequence[bool] | None = None,
    slack: float = 1e-6,
) -> NumberRules:
    """Rules ``low <= a . x + x'Qx <= high`` over k numbers."""
    k, m = len(low), len(rows)
    a, b = np.array(low, dtype=float), np.array(high, dtype=float)
    return NumberRules(
        tuple(f"x{i}" for i in range(k)),
        a,
        b,
        np.zeros(k) if step is None else np.array(step, dtype=float),
        np.zeros(k, dtype=bool) if log is None else np.array(log),
        1e-9 * (b - a),
        np.array([row[0] for row in rows], dtype=float).reshape(m, k),
        np.array([q for _, q in products], dtype=float).reshape(len(products), k, k),
        np.array([r for r, _ in products], dtype=np.int64),
        np.array([row[1] for row in rows], dtype=float),
        np.array([row[2] for row in rows], dtype=float),
        np.full(m, slack),
        np.zeros(m),
        np.array([np.count_nonzero(row[0]) <= 2 and r not in dict(products) for r, row in enumerate(rows)], dtype=bool),
        tuple(f"r{r}" for r in range(m)),
    )


def drawn(seed: int, curved: bool = False) -> tuple[NumberRules, Vector]:
    """Rules over two reals, a stepped real and an integer; and a point that satisfies the first two rules with no room to spare."""
    rng = np.random.default_rng(seed)
    low, high = np.array([-1.0, 0.0, 0.0, -3.0]), np.array([2.0, 0.7, 1.2, 6.0])
    at = rng.uniform(low, high)
    at[2:] = np.round(rng.uniform(0, 1, 2) * [12, 9]) * [0.1, 1.0] + low[2:]
    c = rng.integers(-5, 6, (4, 4)) / 10
    c[rng.random((4, 4)) < 0.3] = 0.0
    c[0, :2], c[1, 1] = (c[0, 0] or 0.3, 0.0), c[1, 1] or 0.2
    square = np.zeros((4, 4))
    square[0, 1] = square[1, 0] = 0.5 * curved
    value = c @ at + np.array([0, at @ square @ at, 0, 0])
    ends = value + np.array([0.0, 0.0, 0.4, 0.4])
    rows = [(row, value[0] if r == 0 else -INF, ends[r]) for r, row in enumerate(c)]
    return part(low, high, rows, [(1, square)] if curved else [], step=[0, 0, 0.1, 1]), at


def exact(rules: NumberRules, x: Vector) -> list[tuple[Fraction, Fraction]]:
    """For each rule, the exact value of its body and the sum of the sizes of its terms."""
    found = []
    for r, c in enumerate(rules.linear.tolist()):
        terms = [Fraction(a) * Fraction(b) for a, b in zip(c, x.tolist(), strict=True)]
        for q in rules.quadratic[rules.products == r]:
            terms += [Fraction(v) * Fraction(x[i]) * Fraction(x[j]) for (i, j), v in np.ndenumerate(q) if v]
        found.append((sum(terms, Fraction(0)), sum(map(abs, terms), Fraction(0))))
    return found


@pytest.mark.parametrize("curved", [False, True])
def test_a_cleaned_point_satisfies_the_rules_in_whatever_order_they_are_summed(curved: bool) -> None:
    moved = 0
    for seed in range(60):
        rules, at = drawn(seed, curved)
        near = at + np.random.default_rng(seed).normal(size=4) * 2e-8 * (rules.high - rules.low)
        found = rules.clean(near)
        assert found is not None
        assert rules.legal(found)
        assert (found >= rules.low).all()
        assert (found <= rules.high).all()
        assert found[2:] == pytest.approx(at[2:], abs=1e-12), "steps stay where they were"
        assert np.abs(found - at).max() <= 2e-6
        moved += not np.array_equal(found, rules._snapped(near))
        for r, (value, size) in enumerate(exact(rules, found)):
            if rules.equal[r]:
                assert abs(value - Fraction(rules.row_low[r])) <= Fraction(1.2e-15) * (1 + size)
                continue
            assert value <= Fraction(rules.row_high[r]) + (0 if r > 1 or not rules.plain[r] else Fraction(2e-16) * size)
            terms = (rules.linear[r] * found)[rules.linear[r] != 0.0].tolist() + [found[0] * found[1]] * (
                r == 1 and curved
            )
            assert all(sum(order) <= rules.row_high[r] for order in itertools.permutations(terms))
    assert moved >= 30


@pytest.mark.parametrize("seed", range(12))
def test_a_rule_whose_terms_are_exact_holds_up_to_its_bound(seed: int) -> None:
    """Sums of products of halves are exact floats: the rules hold there as fractions tell, with no room left."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-2, 3, (3, 3)).astype(float)
    square, c = np.triu(matrix) + np.triu(matrix, 1).T, rng.integers(-3, 4, 3).astype(float)
    points = rng.integers(-4, 5, (60, 3)) / 2
    low, high = sorted(float(c @ x + x @ square @ x) for x in points[:2])
    if low == high:
        high += 1.0
    rules = part([-2] * 3, [2] * 3, [(c, low, high), ([1, 1, 1], -3.5, INF)], [(0, square)])
    kept = [rules._kept(x) for x in points]
    for x, found in zip(points, kept, strict=True):
        terms = [a * x[i] for i, a in enumerate(c)]
        terms += [(1 if i == j else 2) * square[i, j] * x[i] * x[j] for i in range(3) for j in range(i, 3)]
        assert found == (low <= sum(map(Fraction, terms)) <= high and sum(map(Fraction, x)) >= Fraction(-3.5))
    assert any(kept)
    assert not all(kept)


def test_a_cleaned_point_keeps_bounds_and_zeros() -> None:
    rules = part([-1, 1, 0], [3, 5, 4], [([1, 1, 1], -INF, 7)])
    found = rules.clean(np.array([1e-10, 5 - 1e-10, 1e-10]))
    assert found is not None
    assert found.tolist() == [0.0, 5.0, 0.0]
    found = rules.clean(np.array([0.1 + 0.2, 1.0 + 3e-9, 2.5]))
    assert found is not None
    assert found.tolist() == [0.1 + 0.2, 1.0, 2.5]
    assert rules.clean(np.array([1.0, 5.0, 2.0])) is not None, "the other numbers are moved"
    assert part([0, 0], [1, 1], [([1, 1], 3, INF)]).clean(np.array([1.0, 1.0])) is None


def test_bodies_gradients_and_violations_against_their_definition() -> None:
    rng = np.random.default_rng(1)
    square = rng.integers(-2, 3, (3, 3)).astype(float)
    rules = part([-2] * 3, [2] * 3, [([1, -2, 0.5], -1, 1), ([0.5, 0, 1], 0.25, INF)], [(1, square + square.T)])
    for x in rng.uniform(-2, 2, (20, 3)):
        body = [rules.linear[0] @ x, rules.linear[1] @ x + x @ (square + square.T) @ x]
        assert rules.body(x) == pytest.approx(body)
        steps = np.eye(3) * 1e-6
        slopes = np.array([(rules.body(x + h) - rules.body(x - h)) / 2e-6 for h in steps]).T
        assert rules.gradient(x) == pytest.approx(slopes, abs=1e-7)
        outside = [max(0.0, -1 - body[0], body[0] - 1), max(0.0, 0.25 - body[1])]
        assert rules.missed(x) == pytest.approx(sum(outside) / 1e-6)
        assert rules.legal(x) == (sum(outside) == 0.0)


def test_tolerances_of_equations_inequalities_and_rules_over_integers() -> None:
    """With tolerance 0 inequalities hold as they are, equations within half of their slack, rules over integers within all."""
    rules = part(
        [0] * 3, [4] * 3, [([1, 0, 0], -INF, 2), ([1, 1, 0], 3, 3), ([0, 0, 1], -INF, 1.99)], step=[0, 0, 1], slack=0.02
    )
    for tolerance, beyond, off in ((1.0, 0.019, 0.019), (0.0, 0.0, 0.0099), (0.7, 0.0139, 0.0139)):
        for over, away in ((beyond, -off), (beyond, off), (-0.5, off)):
            x = np.array([2 + over, 1 - over + away, 2.0])
            assert rules.legal(x, tolerance)
            assert not rules.legal(x + np.array([0.0015, -0.0015, 0]) * (over >= 0), tolerance) or over < 0
            assert not rules.legal(x + np.array([0, np.sign(away) * 0.0015, 0]), tolerance)
            assert not rules.legal(np.array([*x[:2], 3.0]), tolerance)
    assert not rules.legal(np.array([-1e-6, 3, 0]))
    assert not rules.legal(np.array([0.0, 3, 4.1]))


def test_the_ends_of_a_number_under_rules_over_it_alone_are_floats_that_satisfy_them() -> None:
    for c, bound in itertools.product((0.1, 0.3, -0.7, 3.0, -49.0), (0.3, 0.7, 1.1, 5.0)):
        below = part([-100.0], [100.0], [([c], -INF, bound)])
        above = part([-100.0], [100.0], [([c], bound, INF)])
        ends = [float(below.ends[int(c > 0)][0]), float(above.ends[int(c < 0)][0])]
        for end, side, satisfied in ((ends[0], c > 0, below), (ends[1], c < 0, above)):
            assert c * end <= bound if satisfied is below else c * end >= bound
            after = np.nextafter(end, INF if side else -INF)
            assert c * after > bound or satisfied is above or c * np.nextafter(after, after * 2) > bound
            assert abs(end - bound / c) <= 8 * np.spacing(abs(bound / c))
        assert below.ends[int(c < 0)][0] == (-100.0 if c > 0 else 100.0)


@pytest.mark.parametrize("seed", range(10))
def test_a_part_of_the_rules_is_those_rules(seed: int) -> None:
    rules, at = drawn(seed, curved=True)
    rows = np.array([1, 3])
    some = rules.part(rows)
    assert some.names == ("r1", "r3")
    x = at + np.random.default_rng(seed).normal(size=4)
    assert some.body(x) == pytest.approx(rules.body(x)[rows])
    assert rules.part(np.array([0, 2])).body(x) == pytest.approx(rules.body(x)[[0, 2]])
    assert [*some.curved] == [True, False]
    assert some.key == rules.part(rows).key != rules.part(np.array([0, 3])).key


# -- moves of integers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_moves_keep_equations_and_span_the_solutions(seed: int) -> None:
    """Over integers under one or two equations, the moves have whole numbers of steps and the rank of all solutions."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-3, 4, (1 + seed % 2, 4)).astype(float)
    rows[0][rows[0] == 0] = 1.0
    step = rng.choice([0.5, 1.0, 2.0], 4)
    moves = directions_of(rows, np.ones(4, dtype=bool), step)
    counts = moves / step
    assert np.array_equal(counts, np.round(counts))
    assert np.abs(rows @ moves.T).max(initial=0.0) <= 1e-12
    every = np.array(list(itertools.product(range(-2, 3), repeat=4)))
    kept = every[np.abs(rows @ (every * step).T).max(axis=0) == 0]
    rank = np.linalg.matrix_rank(kept)
    assert np.linalg.matrix_rank(counts) >= rank if len(counts) else rank == 0


def test_no_joint_move_is_made_of_coefficients_that_are_not_rational() -> None:
    rows = np.array([[1.0, 2.0, 2.0**0.5, 1.0], [0.5, 2.0**0.5, 1.0, 3.0]])
    moves = directions_of(rows, np.ones(4, dtype=bool), np.ones(4))
    assert np.abs(rows @ moves.T).max(initial=0.0) <= 1e-9
    near = rows.copy()
    near[0, 2], near[1, 1] = 1.5, 1.25
    assert len(directions_of(near, np.ones(4, dtype=bool), np.ones(4))) == 2


def test_a_move_takes_the_reals_of_its_equations_along() -> None:
    rows = np.array([[2.0, 1.0, 0.0, 1.0], [0.0, 1.0, 3.0, 0.0]])
    moves = directions_of(rows, np.array([True, True, True, False]), np.array([0.5, 1.0, 1.0, 0.0]))
    assert np.abs(rows @ moves.T).max() <= 1e-12
    found = {tuple(np.round(m, 9).tolist()) for m in moves}
    assert (0.5, 0.0, 0.0, -1.0) in found, "one integer moves, the real with it"
    assert (0.0, 3.0, -1.0, -3.0) in found, "two integers are exchanged in the second equation"


# -- projections ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(15))
def test_tolerances_are_projected_with_their_rows(seed: int) -> None:
    """Inequalities loosened by their tolerances have projections loosened by the tolerances of these."""
    rng, k, q = np.random.default_rng(seed), 2, 2
    rows = [Row(np.eye(k + q)[k + j], -3.0, 3.0, 0.0, 0.0, "") for j in range(q)]
    for n in range(4):
        c, slack = rng.choice([-2.0, -1.0, 1.0, 3.0], k + q), float(rng.uniform(0.1, 0.9))
        rows.append(Row(c, -INF, float(rng.integers(-2, 5)), slack, 0.0, f"r{n}"))
    loose = [Row(r.c, r.low - r.slack, r.high + r.slack, 0.0, 0.0, r.name) for r in rows]
    left, wide = projected(rows, k), projected(loose, k)
    assert left is not None
    assert wide is not None
    inside = apart = 0
    for x in rng.uniform(-4.0, 4.0, (200, k)):
        bodies = [float(r.c[:k] @ x) for r in left]
        margin = min(min(b - r.low + r.slack, r.high + r.slack - b) for b, r in zip(bodies, left, strict=True))
        other = min(min(float(r.c[:k] @ x) - r.low, r.high - float(r.c[:k] @ x)) for r in wide)
        if abs(margin) > 1e-9:
            assert margin > 0 or other < 0
            apart += (margin > 0) != (other > 0)
        inside += margin > 0
    assert inside > 0
    assert apart <= 0.1 * inside, "rows with the same coefficients have the larger tolerance"


def test_an_equation_passes_its_tolerance_and_size_on() -> None:
    equation = Row(np.array([1.0, 0.0, 2.0]), 4.0, 4.0, 0.1, 3.0, "equation")
    above = Row(np.array([0.0, 1.0, -6.0]), -INF, 5.0, 0.5, 1.0, "above")
    bounds = Row(np.array([0.0, 0.0, 1.0]), 0.0, 10.0, 0.0, 0.0, "")
    left = projected([equation, above, bounds], 2)
    assert left is not None
    found = {r.name: r for r in left}
    # above + 3 equation: 3 x + y <= 17, as a row whose first coefficient is 1; x = 4 - 2 t with t in [0, 10]
    assert found["above"].c.tolist() == pytest.approx([1.0, 1 / 3, 0.0])
    assert (found["above"].high, found["above"].slack) == pytest.approx((17 / 3, (0.5 + 3 * 0.1) / 3))
    assert found["above"].size == pytest.approx((1.0 + 3 * (4.0 + 3.0)) / 3)
    assert (found[""].low, found[""].high, found[""].slack) == pytest.approx((-16.0, 4.0, 0.1))
    tenth, three = (Row(np.array([c, 1.0]), 0.0, 0.0, 0.0, 0.0, "") for c in (0.1, 0.3))
    assert 0.3 - 3 * 0.1 != 0.0
    assert three.plus(-3.0, tenth).c.tolist() == [0.0, -2.0], "what is left of a coefficient is a rounding error"


def test_opposite_inequalities_are_one_equation() -> None:
    """Whatever their order and sign, also with a bound of zero and beside other bounds of the same body."""
    for rows, equations in (
        ([([1, 2], -INF, 3), ([1, 0], 0.5, INF), ([1, 2], 3, INF)], 1),
        ([([1, 2], 3, INF), ([1, 2], -INF, 3)], 1),
        ([([1, 2], -INF, 3), ([-1, -2], -INF, -3), ([1, -1], -INF, 0), ([1, -1], 0, INF)], 2),
        ([([1, 2], -INF, 3), ([1, 2], -INF, 2), ([1, 2], 2, INF)], 1),
        ([([1, 2], -INF, 3), ([1, 2], 2.5, INF), ([1, 2], -INF, 3)], 0),
        ([([1, 2], -INF, 3), ([1, 2], -3, INF), ([-1, -2], 3, INF)], 1),
    ):
        before = part([-4, -4], [4, 4], rows)
        after = _with_equations(before)
        assert np.count_nonzero(after.equal) == equations
        assert len(after.row_low) == len(rows) - equations
        for a, end in np.random.default_rng(0).uniform(-4, 4, (60, 2)):
            for x in (np.array([a, end]), np.array([a, (3 - a) / 2]), np.array([a, (-3 - a) / 2]), np.array([a, a])):
                assert before.legal(x) == after.legal(x)


def test_a_point_is_moved_into_the_part_that_is_nearest_relative_to_the_ranges() -> None:
    legal = LegalNumbers(
        tuple(part([10, 0], [11, 10], [(row, end, INF)]) for row, end in (([1, 0], 10.9), ([0, 1], 6)))
    )
    moved = legal.clean(np.array([10.5, 5.0]))
    assert moved is not None
    assert moved.tolist() == pytest.approx([10.5, 6.0])


# -- walks ------------------------------------------------------------------------------------------------------------

SETS = {
    "an oblique triangle": part([0, 0], [1, 1], [([1, 2], -INF, 1.1), ([3, 1], 0.4, INF)]),
    "a band on log scales": part([1e-4, 1], [1, 50], [([20, 1], -INF, 21), ([-1, 0], -INF, -5e-4)], log=[True, True]),
    "steps": part([0, -2], [9, 2.5], [([1, 2], -INF, 6), ([1, -1], 1, INF)], step=[1, 0.5]),
    "an equation with a step": part([0, 0, 0], [4, 2, 3], [([1, 1, 1], 4, 4), ([0, 1, -1], -INF, 0.5)], step=[1, 0, 0]),
    "a thin slab of integers": part([0, 0], [20, 100], [([5, -1], -INF, 1), ([-10, 2], -INF, 2)], step=[1, 1]),
    "a thin slab with a real": part([0, 0], [20, 100], [([5, -1], -2, 1)], step=[1, 0]),
    "outside a product": part([0, 0], [3, 3], [([0, 0], 1.5, INF)], [(0, [[0, 0.5], [0.5, 0]])]),
}


def by_rejection(rules: NumberRules, count: int, rng: np.random.Generator) -> Vector:
    """Uniform draws of a set: the last number from an equation, all others from their ranges."""
    found: list[Vector] = []
    while len(found) < count:
        x = rng.uniform(rules.low, rules.high)
        x[rules.log] = np.exp(rng.uniform(np.log(rules.low[rules.log]), np.log(rules.high[rules.log])))
        values = np.floor((rules.high - rules.low) / np.where(rules.integer, rules.step, 1) + 1e-9)
        x = np.where(rules.integer, rules.low + rng.integers(0, values + 1) * rules.step, x)
        for r in np.flatnonzero(rules.equal):
            x[-1] = (rules.row_low[r] - rules.linear[r, :-1] @ x[:-1]) / rules.linear[r, -1]
        if rules.legal(x):
            found.append(x)
    return np.array(found)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("boxed", [True, False])
def test_draws_are_uniform(name: str, boxed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws from the bounding box and, where these are switched off, by walks have the distribution of rejection."""
    rules, rng = SETS[name], np.random.default_rng(0)
    if not boxed:
        monkeypatch.setattr(legal_numbers, "_from_box", lambda part, rng: None)
    wanted, legal = by_rejection(rules, 1500, rng), LegalNumbers((rules,))
    drawn = np.array([legal.spread(wanted[0], rng) for _ in range(400)])
    assert all(legal.legal(x) for x in drawn)
    noise = rng.uniform(0, 1e-3, (1900, 1))  # ties of numbers with steps are broken at random
    for of in (*np.eye(len(rules.low)), np.ones(len(rules.low)) / (rules.high - rules.low)):
        both = (np.concatenate([drawn, wanted]) @ of)[:, None] + noise
        assert kstest(both[:400, 0], both[400:, 0]).pvalue > 1e-3


def test_the_ranges_that_rules_leave_are_those_of_linear_programs() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        at, c = rng.uniform(0, 2, 2), rng.integers(-3, 4, (2, 2)).astype(float)
        rules = part([0, 0], [2, 2], [(row, -INF, float(row @ at) + 0.1) for row in c])
        for k, cost in enumerate(np.eye(2)):
            ends = [linprog(s * cost, rules.linear, rules.row_high, bounds=[(0, 2)] * 2).fun * s for s in (1.0, -1.0)]
            assert rules.room[k] >= ends[1] - ends[0] - 1e-9
            assert rules.polytope.tightened[0][k] <= ends[0] + 1e-9
        corners = rules.corners
        assert corners is not None
        assert all(rules.legal(x) for x in corners)
        assert rules.centre is not None
        assert rules.legal(rules.centre)


UNIONS = {
    "overlapping": ([([1, 1], -INF, 0.8), ([0, 1], -INF, 0.5)], [([1, 1], 0.7, INF), ([1, 0], 0.6, INF)]),
    "apart": ([([1, 0], -INF, 0.3), ([1, 2], -INF, 1.2)], [([1, 0], 0.5, INF), ([1, -1], -INF, 0.2)]),
}


@pytest.mark.parametrize("name", [*SETS, *UNIONS])
def test_a_walk_keeps_the_uniform_distribution(name: str) -> None:
    """A walk of three steps from uniform points ends at uniform points: also across the parts of a union."""
    rng = np.random.default_rng(3)
    parts = [part([0, 0], [1, 1], rows) for rows in UNIONS[name]] if name in UNIONS else [SETS[name]]
    legal = LegalNumbers(tuple(parts))
    if name in UNIONS:
        uniform = rng.uniform(0, 1, (6000, 2))
        started = uniform[[legal.legal(x) for x in uniform]]
    else:
        started = by_rejection(parts[0], 2500, rng)
    ended = np.array([legal.walk(x, 3, rng) for x in started[:1200]])
    assert all(legal.legal(x) for x in ended)
    assert (ended != started[: len(ended)]).any(axis=1).mean() > 0.5
    noise = rng.uniform(0, 1e-3, len(started))
    for of in (*np.eye(len(parts[0].low)), np.ones(len(parts[0].low)) / (parts[0].high - parts[0].low)):
        assert kstest(ended @ of + noise[: len(ended)], started[len(ended) :] @ of + noise[len(ended) :]).pvalue > 1e-3


@pytest.mark.parametrize("seed", range(24))
def test_the_parts_are_the_numbers_with_some_auxiliary_values(seed: int) -> None:
    """Of clauses over auxiliary binaries, rules that they switch on, and a real auxiliary variable, against all their values."""
    rng = np.random.default_rng(seed)
    model = pyo.ConcreteModel()
    model.x, model.y, model.t = (pyo.Var(bounds=(0, high)) for high in (4, 4, 2))
    model.level, model.s, model.listed = (
        pyo.Var(domain=pyo.Binary),
        pyo.Var(range(4), domain=pyo.Binary),
        pyo.ConstraintList(),
    )
    x, y, level, s, t, add = model.x, model.y, model.level, model.s, model.t, model.listed.add
    clause = rng.permutation(4)[: rng.integers(2, 5)].tolist()
    met = int(rng.random() < 0.3)  # the clause also holds by the level
    add(sum(s[i] for i in clause) + met * level >= 1)
    pair = rng.permutation(4)[:2].tolist() if rng.random() < 0.5 else []
    if pair:
        add(s[pair[0]] + s[pair[1]] == 1)
    ends, signs = rng.integers(1, 9, 4) / 2.0, rng.choice([-1, 1], (4, 2))
    for i in range(4):
        add(s[i] * (int(signs[i, 0]) * x + int(signs[i, 1]) * y - float(ends[i] - 2)) <= 0)
    tied, equal = rng.integers(0, 2, 2).tolist()
    add(t >= (x - 2.5 + s[0] if tied else 0))
    add(t + tied * y <= 4.25)
    if equal:
        add(2 * x + y == 3 + level)
    space = mc.Space.from_pyomo(model, auxiliary=["s", "t"])
    now, seen = compiled(space), set[bool]()
    for chosen in (0, 1):
        legal = now.legal_numbers(np.array([chosen]), np.full(now.program.n, np.nan))
        points = rng.uniform(0, 4, (150, 2))
        if equal:
            points[:, 1] = 3 + chosen - 2 * points[:, 0]
            points = points[(points[:, 1] >= 0) & (points[:, 1] <= 4)]
        for a, b in points:
            wanted = False
            for values in itertools.product((0, 1), repeat=4):
                held = sum(values[i] for i in clause) + met * chosen >= 1
                held &= not pair or values[pair[0]] + values[pair[1]] == 1
                held &= all(not v or g @ (a, b) <= e - 2 for v, g, e in zip(values, signs, ends, strict=True))
                wanted |= bool(held and (not tied or max(0.0, a - 2.5 + values[0]) <= min(2.0, 4.25 - b)))
            seen.add(wanted)
            assert (legal is not None and legal.legal(np.array([a, b]))) == wanted
    assert True in seen or not space.count().number
