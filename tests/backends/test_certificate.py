"""Tests of certified answers: fake solvers that return illegal points, and linear programs that are refined."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import mipcash as mc
from mipcash.backends.certificate import certified, kept
from mipcash.backends.highs import HighsBackend
from mipcash.backends.polytope import Polytope
from mipcash.backends.task import FEASIBLE, INFEASIBLE, OPTIMAL, Answer, Cut, SolverSettings, Task
from mipcash.errors import SolverError
from mipcash.program.forms import QuadraticForm
from mipcash.space.compiled import compiled
from mipcash.space.minimiser import ANCHORS
from tests.fuzz.simplex import Row, Simplex, System

SETTINGS = SolverSettings(time_limit=20.0)


def switched(width: float = 100.0) -> mc.Space:
    """Space with two conditional reals; a solver's tolerance may violate the rows that switch them off."""
    space = mc.Space("switched")
    k, l = space.categorical("k", ["on", "off"]), space.categorical("l", ["on", "off"])
    a, b = space.real("a", 0, width, when=k["on"]), space.real("b", 0, width, when=l["on"])
    space.rule("some", a + b >= 1)
    return space


def total(space: mc.Space) -> QuadraticForm:
    """Return the objective a + b."""
    program = compiled(space).program
    linear = np.zeros(program.n)
    for number in program.numbers:
        linear[number.column] = 1.0
    return QuadraticForm(0.0, linear, *(np.zeros(0, dtype=np.int64),) * 2, np.zeros(0))


def point(space: mc.Space, **values: float) -> np.ndarray:
    """Return base columns with values by name, such as ``k=on`` for a level; the remaining columns are zero."""
    names = list(compiled(space).program.names)
    columns = np.zeros(compiled(space).program.n)
    for name, value in values.items():
        columns[names.index(name)] = value
    return columns


def lying(
    space: mc.Space, columns: np.ndarray, value: float
) -> tuple[Callable[[Task, SolverSettings], Answer], list[int]]:
    """Return a solver that reports an illegal point as optimal until a cut excludes it, and the cuts of each call."""
    honest, asked = HighsBackend(), list[int]()

    def solve(task: Task, settings: SolverSettings) -> Answer:
        asked.append(len(task.cuts))
        if all(c.low <= c.values @ columns[c.columns] <= c.high for c in task.cuts) and not task.fixed:
            return Answer(OPTIMAL, columns.copy(), value, value, 0.0, "liar")
        return honest.solve(task, settings)

    return solve, asked


def test_illegal_levels_are_excluded_and_the_task_is_solved_again() -> None:
    space = switched()
    names = compiled(space).program.names
    off = {name: 1.0 for name in names if name in ("k=off", "l=off")}
    lie = point(space, **off) + np.where(
        [name.endswith(("[a].x", "[b].x")) for name in names[: compiled(space).program.n]], 0.5, 0.0
    )
    solve, asked = lying(space, lie, 1.0)
    task = Task(compiled(space).program, total(space))
    assert kept(task, lie) is None
    answer = certified(task, SETTINGS, solve, "liar")
    assert asked == [0, 1], "the levels were excluded and the task was solved again"
    assert answer.status == OPTIMAL
    assert answer.value == pytest.approx(1.0, abs=1e-8)
    assert kept(task, answer.columns) is not None
    assert answer.columns[[list(names).index(n) for n in ("k=off", "l=off")]].sum() < 2


def test_the_gap_of_a_later_answer_is_checked_as_that_of_the_first() -> None:
    space = switched()
    space.categorical("many", range(20))  # more levels than attempts
    names = compiled(space).program.names
    solve, asked = lying(space, point(space, **{n: 1.0 for n in names if n in ("k=off", "l=off", "many=0")}), 0.0)

    def unclosed(task: Task, settings: SolverSettings) -> Answer:
        found = solve(task, settings)
        return found if not task.cuts or task.fixed else replace(found, bound=-3.0)

    answer = certified(Task(compiled(space).program, total(space)), SETTINGS, unclosed, "liar")
    assert asked[:2] == [0, 1]
    assert answer.status == FEASIBLE
    assert answer.bound < answer.value


def test_inaccurate_numbers_of_an_answer_are_corrected() -> None:
    space = switched()
    names = list(compiled(space).program.names)
    lie = point(space, **{"k=on": 1.0, "l=off": 1.0})
    for name in names[: compiled(space).program.n]:
        if name.endswith("[a].x") or name == "a~":
            lie[names.index(name)] = 0.9
    solve, _ = lying(space, lie, 0.9)
    answer = certified(Task(compiled(space).program, total(space)), SETTINGS, solve, "liar")
    assert answer.value == pytest.approx(1.0, abs=1e-9)
    assert answer.bound <= answer.value
    assert answer.status in (OPTIMAL, FEASIBLE)
    assert kept(Task(compiled(space).program, total(space)), answer.columns) is not None


def answered(space: mc.Space, columns: np.ndarray) -> Answer:
    """Return the certified answer of a solver that reports these columns as optimal for every task."""
    program = compiled(space).program
    lie = Answer(OPTIMAL, columns, 0.0, 0.0, 0.0)
    return certified(Task(program, QuadraticForm.zero(program.n)), SETTINGS, lambda task, settings: lie, "liar")


def test_a_solver_that_is_always_wrong_is_corrected() -> None:
    space = mc.Space("reals")
    x = space.real("x", 0, 1)
    space.rule("high", x >= 0.5)
    space.rule("low", x <= 0.6)
    n = compiled(space).program.n
    right = answered(space, np.zeros(n)).columns
    assert right is not None
    assert 0.5 <= right[0] <= 0.6, "the numbers alone were wrong: a linear program finds right ones"
    space.rule("none", x >= 0.7)
    assert answered(space, np.full(n, 0.65)).status == INFEASIBLE, "the linear program over the numbers proves it"
    whole = mc.Space("whole", expand_limit=2)
    whole.rule("high", whole.integer("n", 0, 9) >= 4)
    found = answered(whole, np.zeros(compiled(whole).program.n))
    assert (found.status, found.columns) == (OPTIMAL, [4.0]), "its range is split until interval arithmetic decides"
    whole.rule("low", whole["n"] <= 3)
    assert answered(whole, np.zeros(compiled(whole).program.n)).status == INFEASIBLE


def test_cuts_and_fixings_are_part_of_the_check() -> None:
    space = mc.Space("discrete")
    space.integer("a", 0, 3)
    program = compiled(space).program
    form = QuadraticForm.zero(program.n)
    first = program.one_hot(np.array([0]))
    cut = Cut(np.array([0]), np.ones(1), -math.inf, 0.0)
    assert kept(Task(program, form), first) is not None
    assert kept(Task(program, form, cuts=[cut]), first) is None
    assert kept(Task(program, form, {1: 1.0}), first) is None
    nothing = Cut(np.zeros(0, dtype=np.int64), np.zeros(0), -math.inf, -1.0)
    assert HighsBackend().solve(Task(program, form, cuts=[nothing]), SETTINGS).status == INFEASIBLE


def test_linear_programs_are_exact_beyond_the_solvers_tolerance() -> None:
    def least(width: float, *, low: float, n: int) -> np.ndarray | None:
        """Return n numbers in [0, width] with the least sum that is at least ``low``."""
        row = np.array([low]), np.array([np.inf])
        return Polytope(np.zeros(n), np.full(n, width), np.ones((1, n)), *row).minimise(np.ones(n))

    rng = np.random.default_rng(0)
    for width in 10.0 ** rng.uniform(0, 8, size=20):
        low = width * 10.0 ** rng.uniform(-13, -9)
        found = least(width, low=low, n=2)
        assert found is not None
        assert found.sum() == pytest.approx(low, rel=1e-9)
    assert least(1.0, low=2.0, n=1) is None
    nothing = Polytope(np.zeros(0), np.zeros(0), np.zeros((1, 0)), np.array([1.0]), np.array([np.inf]))
    assert nothing.minimise(np.zeros(0)) is None


def test_an_answer_without_levels_raises_or_goes_to_the_fallback_solver() -> None:
    space = mc.Space("levels")
    c = space.categorical("c", ["a", "b"])
    space.rule("a", c["b"] <= 0)
    program = compiled(space).program
    task = Task(program, QuadraticForm.zero(program.n))
    nothing = Answer(OPTIMAL, np.zeros(program.n), 0.0, 0.0, 0.0)

    def solve(task: Task, settings: SolverSettings) -> Answer:
        return replace(nothing, status=INFEASIBLE, columns=None) if task.cuts else nothing

    with pytest.raises(SolverError, match="'liar' returns points that violate"):
        certified(task, SETTINGS, solve, "liar")
    answer = certified(task, SETTINGS, solve, "liar", HighsBackend().solve)
    assert (answer.status, program.levels_of(answer.columns).tolist()) == (OPTIMAL, [0])


def test_a_vertex_is_optimal_in_small_costs_beside_large_ones() -> None:
    """Linear programs with costs that differ by up to twelve magnitudes, against the exact optimum in fractions."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        k, m = int(rng.integers(2, 6)), int(rng.integers(0, 4))
        low, high = rng.integers(-3, 1, k).astype(float), rng.integers(1, 4, k).astype(float)
        matrix = rng.integers(-3, 4, (m, k)).astype(float)
        inside = low + (high - low) * rng.integers(0, 5, k) / 4
        row_high = matrix @ inside + rng.integers(0, 3, m)
        cost = np.sign(rng.normal(size=k)) * 10.0 ** -rng.choice([0, 0, 6, 10, 12], size=k)
        found = Polytope(low, high, matrix, np.full(m, -np.inf), row_high).minimise(cost)
        assert found is not None
        rows = tuple(
            Row(tuple(map(Fraction, a)), None, Fraction(b), Fraction(1)) for a, b in zip(matrix, row_high, strict=True)
        )
        exact = Simplex(System(tuple(map(Fraction, low)), tuple(map(Fraction, high)), rows))
        best = -exact.best([-Fraction(c) for c in cost])
        value = sum(Fraction(c) * Fraction(v) for c, v in zip(cost, found, strict=True))
        # a vertex is exact up to rounding; a cost that is ignored would be worth 0.1 of itself at least
        assert float(value - best) <= 0.05 * float(np.abs(cost).min()) + 1e-15


@pytest.mark.parametrize("cost", [(0.0, 2000.0), (0.0, 0.0), (1.0, -1.0)])
def test_a_range_far_below_another_one_does_not_empty_an_equation(cost: tuple[float, float]) -> None:
    """HiGHS drops the entry 1e-12 that a range of 1e-6 has in a row beside one of 1e6."""
    low, high = np.array([0.0, 1.0]), np.array([1e6, 1.000001])
    side = np.array([-1.0000005])
    found = Polytope(low, high, np.array([[1.0, -1.0]]), side, side).minimise(np.array(cost))
    assert found is not None
    assert found[0] - found[1] == pytest.approx(-1.0000005, abs=1e-15)


class Wrong:
    """A backend that claims that nothing is below a bound, or, after it has given starts, that there is nothing."""

    name = "wrong"

    def __init__(self, status: str) -> None:
        self.status, self.calls = status, 0

    def solve(self, task: Task, settings: SolverSettings) -> Answer:
        self.calls += 1
        if self.status == INFEASIBLE and self.calls > ANCHORS:
            return Answer(INFEASIBLE, None, math.nan, math.inf, 0.0, self.name)
        return replace(HighsBackend().solve(task, settings), status=OPTIMAL, bound=100.0, prover=self.name)


@pytest.mark.parametrize("status", [OPTIMAL, INFEASIBLE])
def test_a_claim_that_a_known_configuration_refutes_is_dropped(status: str) -> None:
    space = mc.Space("few")
    a, b = space.integer("a", 0, 4), space.integer("b", 0, 4)
    space.rule("sum", a + b <= 6)
    with pytest.warns(UserWarning, match="solver 'wrong' claims that .*, and a legal configuration has"):
        found = space.optimum(a + b, "max", solver=Wrong(status))
    assert (found.status, found.value) == ("feasible", 6.0)
