"""Tests of toulbar2: random spaces against HiGHS, refused programs, and valid bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mipcash as mc
from mipcash.backends.highs import HighsBackend
from mipcash.backends.task import Cut, SolverSettings, Task
from mipcash.errors import SolverError
from mipcash.program.forms import QuadraticForm
from mipcash.space.compiled import compiled
from tests.backends.tasks import all_points, bits, no_good, random_form
from tests.fuzz.cases import on_drawn_spaces
from tests.fuzz.described import Drawn, build

pytest.importorskip("pytoulbar2")
from mipcash.backends.toulbar2.backend import Toulbar2Backend

EXACT = SolverSettings(gap=0.0)


@on_drawn_spaces(15, 11, range(15))
def test_answers_on_random_spaces_agree_with_highs(drawn: Drawn, number: int) -> None:
    program = compiled(build(drawn)).program
    if not program.n_z:
        return
    rng = np.random.default_rng(number)
    form, cuts, fixed = random_form(program, rng), [], {}
    ours, theirs = Toulbar2Backend(), HighsBackend()
    for _ in range(2):
        task = Task(program, form, fixed, cuts)
        answer, expected = ours.solve(task, EXACT), theirs.solve(task, EXACT)
        assert answer.status == expected.status
        if answer.columns is None:
            return
        assert answer.value == pytest.approx(expected.value, abs=1e-5)
        assert expected.value - 1e-5 <= answer.bound <= answer.value
        for row in program.base_rows:
            assert row.low - 2e-6 <= row.form.value(answer.columns) <= row.high + 2e-6
        cuts = [no_good(program, answer.columns)]
        fixed = {n.latent: float(program.low[n.latent]) for n in program.numbers}


@on_drawn_spaces(15, 12, range(15))
def test_a_network_extended_by_cuts_answers_like_a_new_network(drawn: Drawn, number: int) -> None:
    program = compiled(build(drawn)).program
    if not program.n_z:
        return
    form = random_form(program, np.random.default_rng(number))
    fixed = {n.latent: float(program.low[n.latent]) for n in program.numbers}
    growing, cuts = Toulbar2Backend(), list[Cut]()
    for k in range(8):
        task = Task(program, form, fixed, cuts)
        answer, anew = growing.solve(task, EXACT), Toulbar2Backend().solve(task, EXACT)
        assert answer.status == anew.status
        assert (answer.value, answer.bound) == pytest.approx((anew.value, anew.bound), nan_ok=True)
        if answer.columns is None or anew.columns is None:
            assert answer.columns is anew.columns
            return
        assert answer.columns.tolist() == anew.columns.tolist()
        cuts = [*cuts, no_good(program, answer.columns)]
        if k == 4:  # remove the first cut
            cuts = cuts[1:]


def test_reals_are_refused_unless_fixed_and_so_are_wide_integers() -> None:
    space = mc.Space("mixed")
    x, k, c = space.real("x", 0, 4), space.integer("k", 0, 4), space.categorical("c", ["a", "b"])
    y = space.real("y", 1, 2, when=c["a"])
    space.rule("line", x + k + y <= 4.5)
    space.rule("product", x * k + y * c["a"] <= 5)
    program = compiled(space).program
    form = QuadraticForm.zero(program.n)
    form = QuadraticForm(0.0, -np.arange(program.n, dtype=float), form.rows, form.cols, form.values)
    with pytest.raises(
        SolverError, match=r"toulbar2 cannot take 'x', which is continuous and not fixed.*solver='highs'"
    ):
        Toulbar2Backend().solve(Task(program, form), EXACT)
    for at in ({"x": 2.25, "y": 1.5}, {"x": 0.3, "y": 1.2}):
        task = Task(program, form, {n.latent: at[n.label] for n in program.numbers})
        answer, expected = Toulbar2Backend().solve(task, EXACT), HighsBackend().solve(task, EXACT)
        assert answer.status == expected.status == "optimal"
        assert answer.value == pytest.approx(expected.value, abs=1e-5)
    wide = mc.Space("wide")
    n, k = wide.integer("n", 1, 100_000), wide.integer("k", 0, 3)
    wide.rule("sum", n + k <= 70_000)
    with pytest.raises(SolverError, match=r"'n': it has 100,000 values"):
        wide.optimum(k, "max", solver=Toulbar2Backend())


@pytest.mark.parametrize("scale", [1e-9, 1e12])
def test_bounds_are_valid_at_any_scale(scale: float) -> None:
    program = compiled(bits(10)).program
    form = random_form(program, np.random.default_rng(5), 1.0).scaled(scale)
    points = all_points(program)
    values = points @ form.linear + (points[:, form.rows] * points[:, form.cols]) @ form.values + form.constant
    answer = Toulbar2Backend().solve(Task(program, form), EXACT)
    assert answer.bound <= values.min() <= answer.value + 1e-12 * scale
    assert answer.value - answer.bound <= 1e-9 * np.ptp(values)
    # a coarse gap allows coarse integer costs
    coarse = Toulbar2Backend().solve(Task(program, form), replace(EXACT, gap=0.05))
    assert coarse.bound <= values.min() <= coarse.value + 1e-12 * scale
    assert coarse.value - values.min() <= 1e-4 * np.ptp(values)


def test_a_start_is_the_incumbent_when_time_is_up() -> None:
    program = compiled(bits(60)).program
    form = random_form(program, np.random.default_rng(1), 1.0)
    start = np.zeros(program.n)
    start[program.starts] = 1.0
    answer = Toulbar2Backend().solve(Task(program, form, start=start), SolverSettings(time_limit=0.001))
    assert answer.columns is not None
    assert answer.bound <= answer.value <= form.value(start)


def test_a_question_without_a_time_limit_is_answered() -> None:
    space = mc.Space("two")
    product = space.integer("a", 0, 3) * space.integer("b", 0, 3)
    assert space.optimum(product, "max", solver="toulbar2", time_limit=None).value == 9.0
