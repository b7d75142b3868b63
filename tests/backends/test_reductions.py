"""Tests of reductions: optima and starts are preserved, rows stay valid, and HiGHS agrees with brute force."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import mipcash as mc
from mipcash.backends.highs import HighsBackend
from mipcash.backends.reductions.product_columns import ProductColumns
from mipcash.backends.reductions.pruned_products import PrunedProducts
from mipcash.backends.reductions.reduction import Composed, Reduction, reduced
from mipcash.backends.reductions.scaling import ScaledTask, Scaling
from mipcash.backends.reductions.tightening import Tightening
from mipcash.backends.task import Cut, SolverSettings, Task
from mipcash.program.forms import QuadraticForm
from mipcash.program.program import BinaryProgram
from mipcash.space.compiled import compiled
from tests.backends.tasks import SPACES, all_points, bits, no_good, optimum, random_form
from tests.fuzz.cases import on_drawn_spaces
from tests.fuzz.described import Drawn, build
from tests.fuzz.points import TooLargeError

EXACT = SolverSettings(gap=0.0)


def cardinality(n: int, k: int, at_most: bool = False) -> mc.Space:
    """Space of n bits of which k, or at most k, are 1."""
    space = mc.Space("cardinality")
    chosen = [space.integer(f"b{i}", 0, 1) for i in range(n)]
    total = sum(chosen[1:], chosen[0])
    space.rule("cardinality", total <= k if at_most else total == k)
    return space


def ordering() -> mc.Space:
    """Space of three modules in any order."""
    space = mc.Space("ordering")
    space.ordering("order", [space.module(f"m{k}", {"none": {}, "some": {}}) for k in range(3)])
    return space


RULED = {
    "cardinality": lambda: cardinality(8, 3),
    "at most": lambda: cardinality(8, 3, at_most=True),
    "ordering": ordering,
    **SPACES,
}


def legal_points(program: BinaryProgram) -> np.ndarray:
    """Return every legal point; no points if there are too many, or no binaries."""
    try:
        return all_points(program) if program.n_z else np.zeros((0, program.n))
    except TooLargeError:
        return np.zeros((0, program.n))


def random_task(program: BinaryProgram, legal: np.ndarray, rng: np.random.Generator) -> Task:
    """Random task with a weakly coupled form, sometimes a fixing and cuts, and a start that satisfies them."""
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


CHAINS: dict[str, Callable[[], list[Reduction]]] = {
    "product columns": lambda: [ProductColumns()],
    "pruned products": lambda: [PrunedProducts(4)],
    "tightening": lambda: [ProductColumns(), Tightening(), Scaling()],
    "scaling without product columns": lambda: [Scaling(linear=False)],
    "all": lambda: [PrunedProducts(8), ProductColumns(), Tightening(), Scaling()],
}


@pytest.mark.parametrize("space", ["cardinality", "ordering", "layers", "wide"])
@pytest.mark.parametrize("chain", CHAINS)
def test_reductions_preserve_optima_and_map_points_back(space: str, chain: str) -> None:
    """Every legal point maps to a legal point of the reduced task, and back to a legal point.

    The bound from a point is at most its value. Without pruning, the bounds are at least the optimum.
    """
    program = compiled(RULED[space]()).program
    legal, rng, exact = legal_points(program), np.random.default_rng(4), "prune" not in chain and chain != "all"
    for _ in range(2):
        task = replace(random_task(program, legal, rng), start=None)
        inside = [p for p in rng.permutation(legal) if math.isfinite(optimum(task, p[None]))][:30]
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


def assert_legal_there(easier: Composed) -> None:
    """Assert that the start satisfies fixings, cuts and rows of the reduced task, as far as its columns are known."""
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


def test_products_are_pruned_to_the_budget() -> None:
    program = compiled(bits(4)).program
    form = random_form(program, np.random.default_rng(0), 1.0)
    for budget in (0, 9, 24):
        pruned = PrunedProducts(budget).apply(Task(program, form))
        assert sum(int(program.sizes[g] * program.sizes[h]) for g, h in program.couplings(pruned.task.form)) <= budget
        assert (pruned.bound(0.0) == 0.0) == (budget == 24)
    rows, cols = np.meshgrid(np.arange(2), np.arange(2, 4), indexing="ij")
    additive = (np.arange(2.0)[:, None] + np.array([5.0, 0.0])).ravel()
    form = QuadraticForm(0.0, np.zeros(program.n), rows.ravel(), cols.ravel(), additive)
    pruned = PrunedProducts(0).apply(Task(program, form))
    assert (len(pruned.task.form.rows), pruned.bound(0.0)) == (0, 0.0), "additive blocks need no product columns"


@on_drawn_spaces(20, 13, range(20))
def test_highs_alone_agrees_with_brute_force(drawn: Drawn, number: int) -> None:
    check_highs(compiled(build(drawn)).program, number)


@pytest.mark.parametrize("space", ["cardinality", "at most", "ordering"])
def test_highs_alone_agrees_under_rules(space: str) -> None:
    check_highs(compiled(RULED[space]()).program, 1)


def check_highs(program: BinaryProgram, number: int) -> None:
    legal, rng = legal_points(program), np.random.default_rng(number)
    backend = HighsBackend()
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
