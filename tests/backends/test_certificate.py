"""No answer that breaks a row leaves a backend: fake solvers that lie, scaled programs, linear programs that are refined."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

import mipcash as mc
from mipcash.backends.certificate import certified, kept
from mipcash.backends.highs import HighsBackend
from mipcash.backends.polytope import Polytope
from mipcash.backends.reductions.scaling import ScaledProgram
from mipcash.backends.reductions.tightening import tightened
from mipcash.backends.task import FEASIBLE, INFEASIBLE, OPTIMAL, Answer, Cut, SolverSettings, Task
from mipcash.errors import SolverError
from mipcash.program.forms import QuadraticForm
from mipcash.space.compiled import compiled

SETTINGS = SolverSettings(time_limit=20.0)


def switched(width: float = 100.0) -> mc.Space:
    """A real that a choice switches off: the row that a solver's tolerance breaks."""
    space = mc.Space("switched")
    k, l = space.categorical("k", ["on", "off"]), space.categorical("l", ["on", "off"])
    a, b = space.real("a", 0, width, when=k["on"]), space.real("b", 0, width, when=l["on"])
    space.rule("some", a + b >= 1)
    return space


def total(space: mc.Space) -> QuadraticForm:
    """a + b."""
    program = compiled(space).program
    linear = np.zeros(program.n)
    for number in program.numbers:
        linear[number.column] = 1.0
    return QuadraticForm(0.0, linear, *(np.zeros(0, dtype=np.int64),) * 2, np.zeros(0))


def point(space: mc.Space, **values: float) -> np.ndarray:
    """Base columns by name, levels by ``k=on``; unsaid: zero."""
    names = list(compiled(space).program.names)
    columns = np.zeros(compiled(space).program.n)
    for name, value in values.items():
        columns[names.index(name)] = value
    return columns


def lying(
    space: mc.Space, columns: np.ndarray, value: float
) -> tuple[Callable[[Task, SolverSettings], Answer], list[int]]:
    """A solver that returns an illegal point as optimal until a cut excludes its levels, then tells the truth."""
    honest, asked = HighsBackend(), list[int]()

    def solve(task: Task, settings: SolverSettings) -> Answer:
        asked.append(len(task.cuts))
        if all(c.low <= c.values @ columns[c.columns] <= c.high for c in task.cuts) and not task.fixed:
            return Answer(OPTIMAL, columns.copy(), value, value, 0.0, "liar")
        return honest.solve(task, settings)

    return solve, asked


def test_an_answer_that_breaks_a_row_is_ruled_out_where_its_levels_are_illegal() -> None:
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


def test_an_answer_whose_numbers_are_off_is_mended_and_its_status_stays_honest() -> None:
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


def test_a_solver_that_only_lies_is_an_error_and_never_a_status() -> None:
    space = mc.Space("reals")
    x = space.real("x", 0, 1)
    space.rule("high", x >= 0.5)
    space.rule("low", x <= 0.6)
    columns = np.zeros(compiled(space).program.n)
    answer = certified(
        Task(compiled(space).program, QuadraticForm.zero(compiled(space).program.n)),
        SETTINGS,
        lambda task, settings: Answer(OPTIMAL, columns.copy(), 0.0, 0.0, 0.0),
        "liar",
    )
    assert 0.5 <= answer.columns[0] <= 0.6, "the numbers alone were wrong: a linear program finds right ones"
    space.rule("none", x >= 0.7)
    wrong = np.full(compiled(space).program.n, 0.65)
    answer = certified(
        Task(compiled(space).program, QuadraticForm.zero(compiled(space).program.n)),
        SETTINGS,
        lambda task, settings: Answer(OPTIMAL, wrong.copy(), 0.0, 0.0, 0.0),
        "liar",
    )
    assert answer.status == INFEASIBLE, "the linear program over the numbers proves it"
    whole = mc.Space("whole", expand_limit=2)
    n = whole.integer("n", 0, 9)
    whole.rule("high", n >= 4)
    with pytest.raises(SolverError, match=r"'liar' returns points that break the program's rows \(rule 'high' by 4\)"):
        certified(
            Task(compiled(whole).program, QuadraticForm.zero(compiled(whole).program.n)),
            SETTINGS,
            lambda task, settings: Answer(OPTIMAL, np.zeros(task.program.n), 0.0, 0.0, 0.0),
            "liar",
        )


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


@pytest.mark.parametrize("width", [1.0, 1e6])
def test_tightening_and_scaling_change_nothing_that_is_legal(width: float) -> None:
    space = mc.Space("switched")
    k, l = space.categorical("k", ["on", "off"]), space.categorical("l", ["on", "off", "also on"])
    a, b = space.real("a", 0, width, when=k["on"]), space.real("b", 0, width, when=l.is_("on", "also on"))
    space.rule("some", a + b >= width / 8)
    space.rule("less", a <= width / 2)
    space.rule("both", a + 2 * b <= width)
    program, rng = compiled(space).program, np.random.default_rng(0)
    scaling = ScaledProgram.of(tightened(program))
    there = scaling.program
    assert np.abs(there.matrix).max() <= 2.0
    assert np.all(np.log2(scaling.columns) == np.round(np.log2(scaling.columns)))
    seen = {True: 0, False: 0}
    for _ in range(1500):
        columns = np.where(
            program.integer > 0, 0.0, rng.uniform(program.low, program.high) * rng.choice([0, 0.4, 1], program.n)
        )
        for group in program.groups:
            columns[group.start + rng.integers(group.size)] = 1.0
        for number in program.numbers:
            on = all(bool(c.holds(columns[: program.n_z])) for c in number.conditions)
            columns[number.column] = columns[number.latent] if on else 0.0
        body = program.matrix @ columns
        legal = bool(
            np.all((body >= program.row_low - program.row_slack) & (body <= program.row_high + program.row_slack))
        )
        scaled = columns / scaling.columns
        body = there.matrix @ scaled
        inside = np.all((scaled >= there.low - 1e-8) & (scaled <= there.high + 1e-8))
        kept_there = bool(inside and np.all((body >= there.row_low - 1e-8) & (body <= there.row_high + 1e-8)))
        assert legal == kept_there
        seen[legal] += 1
    assert min(seen.values()) > 30
    (column,) = [n.column for n in program.numbers if n.label == "a"]
    assert there.high[column] * scaling.columns[column] == pytest.approx(width / 2, rel=1e-6), "the rule bounds a"


def test_rows_of_simple_fractions_become_whole() -> None:
    space = mc.Space("fractions")
    a, b, c = (space.integer(n, 0, 4) for n in "abc")
    space.rule("decimal", 0.03 * a + 1.0 * b - 0.001 * c == 1.089)
    space.rule("small", 1e-7 * a + 3e-7 * b <= 8e-7)
    space.rule("border", 0.1 * a + 0.2 * b <= 0.6)
    program = ScaledProgram.of(tightened(compiled(space).program)).program
    ruled = [r for r, rule in enumerate(program.row_rule) if rule]
    assert len(ruled) == 3
    matrix = program.matrix.toarray()[ruled]
    assert np.array_equal(matrix, np.round(matrix))
    for bound in (program.row_low[ruled], program.row_high[ruled]):
        assert all(math.isinf(v) or v == round(v) for v in bound)
    legal = [
        s for s in itertools.product(range(5), repeat=3)
        if 30 * s[0] + 1000 * s[1] - s[2] == 1089 and s[0] + 3 * s[1] <= 8 and s[0] + 2 * s[1] <= 6
    ]  # fmt: skip
    assert space.count().number == len(legal)


def test_linear_programs_are_exact_beyond_the_solvers_tolerance() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        width = 10.0 ** rng.uniform(0, 8)
        least = width * 10.0 ** rng.uniform(-13, -9)
        found = Polytope(
            np.zeros(2), np.full(2, width), np.ones((1, 2)), np.array([least]), np.array([np.inf])
        ).minimise(np.ones(2))
        assert found is not None
        assert found.sum() == pytest.approx(least, rel=1e-9)
    assert (
        Polytope(np.zeros(1), np.ones(1), np.ones((1, 1)), np.array([2.0]), np.array([np.inf])).minimise(np.ones(1))
        is None
    )
    nothing = Polytope(np.zeros(0), np.zeros(0), np.zeros((1, 0)), np.array([1.0]), np.array([np.inf]))
    assert nothing.minimise(np.zeros(0)) is None
