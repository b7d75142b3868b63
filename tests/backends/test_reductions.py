"""Reductions: an optimum is kept, starts stay legal, rows stay valid, the way back leads back; HiGHS agrees with brute force."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import highspy
import numpy as np
import pytest

import mipcash as mc
from mipcash.backends.highs import HighsBackend, _load
from mipcash.backends.reductions.dominated_levels import DominatedLevels, dominated_levels
from mipcash.backends.reductions.product_columns import ProductColumns
from mipcash.backends.reductions.pruned_products import PrunedProducts
from mipcash.backends.reductions.reduction import InTurn, Reduction, reduced
from mipcash.backends.reductions.rlt_rows import RltRows
from mipcash.backends.reductions.scaling import ScaledTask, Scaling
from mipcash.backends.reductions.tightening import Tightening
from mipcash.backends.task import Cut, SolverSettings, Task
from mipcash.errors import SolverError
from mipcash.program.forms import QuadraticForm
from mipcash.program.program import BinaryProgram
from mipcash.program.rewriting import with_products, without_rules
from mipcash.space.compiled import compiled
from tests.backends.tasks import SPACES, all_points, bits, no_good, optimum, random_form
from tests.fuzz.cases import on_drawn_spaces
from tests.fuzz.described import Drawn, build
from tests.fuzz.points import TooLargeError

EXACT = SolverSettings(gap=0.0)


def cardinality(n: int, k: int, at_most: bool = False) -> mc.Space:
    """n bits of which k, or at most k, are 1."""
    space = mc.Space("cardinality")
    chosen = [space.integer(f"b{i}", 0, 1) for i in range(n)]
    total = sum(chosen[1:], chosen[0])
    space.rule("cardinality", total <= k if at_most else total == k)
    return space


def ordering(n: int) -> mc.Space:
    """n modules in any order."""
    space = mc.Space("ordering")
    space.ordering("order", [space.module(f"m{k}", {"none": {}, "some": {}}) for k in range(n)])
    return space


RULED = {
    "cardinality": lambda: cardinality(8, 3),
    "at most": lambda: cardinality(8, 3, at_most=True),
    "ordering": lambda: ordering(3),
    **SPACES,
}


def legal_points(program: BinaryProgram) -> np.ndarray:
    """Every legal point; none where there are too many, or nothing to choose."""
    try:
        return all_points(program) if program.n_z else np.zeros((0, program.n))
    except TooLargeError:
        return np.zeros((0, program.n))


def random_task(program: BinaryProgram, legal: np.ndarray, rng: np.random.Generator) -> Task:
    """A weakly coupled form (dead ends are frequent there), sometimes a fixing, cuts, a start that obeys them."""
    form = random_form(program, rng, float(rng.choice([0.0, 0.3, 1.0])))
    form = replace(form, values=form.values * rng.choice([0.1, 0.5]))
    fixed, cuts = {}, []
    if rng.random() < 0.5:
        fixed = {int(rng.integers(program.n_z)): float(rng.integers(2))}
    for _ in range(int(rng.integers(3))):
        cuts.append(no_good(program, legal[rng.integers(len(legal))]))
    if rng.random() < 0.3:
        columns = np.unique(rng.integers(program.n_z, size=3))
        cuts.append(Cut(columns, rng.integers(-1, 2, size=len(columns)).astype(float), -1.0, 1.0))
    task = Task(program, form, fixed, cuts)
    some = rng.permutation(legal)[:30]
    left = some[[math.isfinite(optimum(task, point[None])) for point in some]]
    return replace(task, start=left[rng.integers(len(left))]) if len(left) else task


def check_dominated(program: BinaryProgram, number: int) -> int:
    """Closing levels keeps an optimum and the starts; returns how many were closed."""
    legal, rng, closed = legal_points(program), np.random.default_rng(number), 0
    for _ in range(4 if len(legal) else 0):
        task = random_task(program, legal, rng)
        easier = DominatedLevels().apply(task)
        gone = [column for column in easier.task.fixed if column not in task.fixed]
        assert gone == [column for column, _ in dominated_levels(task) if column not in task.fixed]
        left = legal[np.all(legal[:, gone] < 0.5, axis=1)] if gone else legal
        assert optimum(task, left) == pytest.approx(optimum(task, legal), abs=1e-9)
        if task.start is not None:
            start = easier.task.start
            assert start is not None
            assert np.min(np.abs(left - start).max(axis=1)) < 1e-9, "not a legal point"
            assert math.isfinite(optimum(task, start[None]))
            assert task.form.value(start) <= task.form.value(task.start) + 1e-9
        closed += len(gone)
    return closed


CHAINS: dict[str, Callable[[], list[Reduction]]] = {
    "dominated levels": lambda: [DominatedLevels()],
    "product columns": lambda: [ProductColumns()],
    "RLT rows": lambda: [ProductColumns(), RltRows()],
    "pruned products": lambda: [PrunedProducts(4)],
    "tightening": lambda: [ProductColumns(), Tightening()],
    "scaling": lambda: [ProductColumns(), Scaling()],
    "scaling without product columns": lambda: [Scaling(linear=False)],
    "all": lambda: [PrunedProducts(8), DominatedLevels(), ProductColumns(), RltRows(), Tightening(), Scaling()],
}


@pytest.mark.parametrize("space", RULED)
@pytest.mark.parametrize("chain", CHAINS)
def test_a_reduction_and_its_way_back(space: str, chain: str) -> None:
    """Every legal point has its place in the easier task, comes back no dearer, and the least value there bounds the one here."""
    program = compiled(RULED[space]()).program
    legal, rng, exact = legal_points(program), np.random.default_rng(4), "prune" not in chain and chain != "all"
    for _ in range(3):
        task = replace(random_task(program, legal, rng), start=None)
        inside = [p for p in rng.permutation(legal)[:80] if math.isfinite(optimum(task, p[None]))]
        reductions, bounds = CHAINS[chain](), []
        for point in inside:
            easier = reduced(replace(task, start=point), reductions)
            assert_legal_there(easier)
            assert easier.task.start is not None
            back = easier.columns(easier.task.start)
            assert np.min(np.abs(legal - back).max(axis=1)) < 1e-9, "not a legal point"
            assert math.isfinite(optimum(task, back[None]))
            bounds.append(easier.bound(easier.task.form.value(easier.task.start)))
            assert bounds[-1] <= task.form.value(point) + 1e-9
        if bounds and exact:
            assert min(bounds) >= optimum(task, legal) - 1e-9


def assert_legal_there(easier: InTurn) -> None:
    """The start keeps the fixings, the cuts and the rows of the easier task, as far as its columns follow from it."""
    task, last = easier.task, easier.steps[-1] if easier.steps else easier
    program, start = task.program, task.start
    assert start is not None
    for column, value in task.fixed.items():
        assert start[column] == pytest.approx(value, abs=1e-9)
    for cut in task.cuts:
        assert cut.low - 1e-6 <= cut.values @ start[cut.columns] <= cut.high + 1e-6
    columns = last.start if isinstance(last, ScaledTask) else program.lifted(start)
    assert columns is not None
    known = np.isfinite(columns)
    assert np.all(columns[known] >= program.low[known] - 1e-9)
    assert np.all(columns[known] <= program.high[known] + 1e-9)
    rows = np.abs(program.matrix[:, ~known]).sum(axis=1) == 0
    body = program.matrix[rows][:, known] @ columns[known]
    assert np.all(body >= program.row_low[rows] - 1e-7)
    assert np.all(body <= program.row_high[rows] + 1e-7)


def test_closing_levels_keeps_an_optimum() -> None:
    closed = []

    @on_drawn_spaces(50, 11, range(50))
    def run(drawn: Drawn, number: int) -> None:
        closed.append(check_dominated(compiled(build(drawn)).program, number))

    run()
    assert sum(c > 0 for c in closed) > 12


@pytest.mark.parametrize("space", RULED)
def test_dominated_levels_under_rules(space: str) -> None:
    program = compiled(RULED[space]()).program
    closed = sum(check_dominated(program, number) for number in range(8))
    assert (
        closed > 0 or space == "cardinality"
    )  # where every level has its own place in an equation, none replaces another


def test_without_couplings_one_level_is_left() -> None:
    program = compiled(bits(6)).program
    form = random_form(program, np.random.default_rng(0), 0.0)
    assert len(dominated_levels(Task(program, form))) == 6


def test_a_rule_keeps_what_the_costs_would_close() -> None:
    program = compiled(cardinality(4, 2)).program
    form = random_form(program, np.random.default_rng(0), 0.0)
    assert dominated_levels(Task(program, form)) == []
    free = without_rules(program, {"cardinality"})
    assert len(dominated_levels(Task(free, form))) == 4


def test_a_required_level_stays() -> None:
    program = compiled(bits(3)).program
    form = QuadraticForm(0.0, np.arange(6.0), *QuadraticForm.zero(6).rows[None].repeat(2, axis=0), np.zeros(0))
    closed = {column for column, _ in dominated_levels(Task(program, form, {1: 1.0, 2: 0.0}))}
    assert closed == {5}


@pytest.mark.parametrize("space", RULED)
def test_rlt_rows_hold_at_every_legal_point(space: str) -> None:
    program = compiled(RULED[space]()).program
    full = with_products(program, program.couplings(random_form(program, np.random.default_rng(1), 1.0)))
    tight = RltRows().rewritten(full)
    assert tight.matrix.shape[0] > full.matrix.shape[0] or space == "wide"
    for point in all_points(program):
        columns = tight.lifted(point)
        known = np.isfinite(columns)
        rows = np.abs(tight.matrix[:, ~known]).sum(axis=1) == 0
        body = tight.matrix[rows][:, known] @ columns[known]
        assert np.all(body >= tight.row_low[rows] - 1e-9)
        assert np.all(body <= tight.row_high[rows] + 1e-9)


def relaxation(program: BinaryProgram, form: QuadraticForm) -> float:
    """Optimum of the linear relaxation."""
    highs = _load(replace(program, integer=np.zeros(program.n_columns)))
    highs.changeColsCost(program.n_columns, np.arange(program.n_columns, dtype=np.int32), program.cost(form))
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(highs.getInfo().objective_function_value) + form.constant


@pytest.mark.parametrize("space", ["cardinality", "at most", "ordering"])
def test_rlt_rows_tighten_the_relaxation(space: str) -> None:
    program, better = compiled(RULED[space]()).program, 0
    legal, rng = all_points(program), np.random.default_rng(2)
    for _ in range(5):
        form = random_form(program, rng, 1.0)
        full = with_products(program, program.couplings(form))
        loose, tight = relaxation(full, form), relaxation(RltRows().rewritten(full), form)
        assert loose - 1e-7 <= tight <= optimum(Task(program, form), legal) + 1e-7
        better += tight > loose + 1e-6
    assert better >= 2


@pytest.mark.parametrize("option", ["dominated_levels", "rlt_rows", None])
def test_highs_alone_agrees_with_brute_force(option: str | None) -> None:
    """With one of the two switched off, and with both on."""

    @on_drawn_spaces(25, 13, range(25))
    def run(drawn: Drawn, number: int) -> None:
        check_highs(compiled(build(drawn)).program, number, {option: "off"} if option else {})

    run()
    for number, space in enumerate(RULED):
        check_highs(compiled(RULED[space]()).program, number, {option: "off"} if option else {})


def check_highs(program: BinaryProgram, number: int, options: dict[str, str]) -> None:
    legal, rng = legal_points(program), np.random.default_rng(number)
    backend = HighsBackend(options)
    for _ in range(3 if len(legal) else 0):
        task = random_task(program, legal, rng)
        answer, best = backend.solve(task, EXACT), optimum(task, legal)
        if best == math.inf:
            assert answer.status == "infeasible"
            continue
        assert answer.status == "optimal"
        assert answer.value == pytest.approx(best, abs=1e-5)
        assert best - 1e-4 <= answer.bound <= answer.value + 1e-12
        assert np.min(np.abs(legal - answer.columns).max(axis=1)) < 1e-5, "the incumbent is not legal"


def test_a_switch_is_on_or_off() -> None:
    with pytest.raises(SolverError, match=r"dominated_levels='maybe'.*'on' or 'off'"):
        HighsBackend({"dominated_levels": "maybe"})
