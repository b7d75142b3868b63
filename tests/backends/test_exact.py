"""Every installed solver against enumeration: rules with products, helpers, wide integers, orderings; fixings, cuts, starts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mipcash.backends.registry import make_backend, solvers
from mipcash.backends.task import Backend, SolverSettings, Task
from mipcash.space.compiled import compiled
from tests.backends.tasks import SPACES, all_points, bits, no_good, optimum, random_form

EXACT = SolverSettings(gap=0.0)
NAMES = [s.name for s in solvers() if s.installed and s.name != "enumeration"]
"""All but enumeration, which refuses most of what is asked here (:mod:`tests.backends.test_enumeration`)."""
FORMS = (
    [(n, {}) for n in NAMES]
    + [("auto", {"solver": "highs"})]
    + [(n, {"form": "quadratic"}) for n in ("gurobi", "cplex", "scip") if n in NAMES]
)


@pytest.fixture(params=FORMS, ids=lambda p: "-".join([p[0], *p[1].values()]))
def backend(request: pytest.FixtureRequest) -> Backend:
    return make_backend(*request.param)


@pytest.mark.parametrize("space", SPACES)
def test_enumeration_agrees(backend: Backend, space: str) -> None:
    program = compiled(SPACES[space]()).program
    legal, rng = all_points(program), np.random.default_rng(len(space))
    assert len(legal) > 20
    for _ in range(2):
        task = Task(program, random_form(program, rng))
        seen = [_solved(backend, task, legal)]
        task = Task(program, task.form, cuts=[no_good(program, seen[0])])
        seen.append(_solved(backend, task, legal))
        column = int(rng.integers(program.n_z))
        value = float(rng.integers(2))
        _solved(backend, Task(program, task.form, {column: value}, task.cuts), legal)
        # a start changes nothing but the time, legal or not
        _solved(backend, Task(program, task.form, start=seen[1]), legal)
        partial = np.where(np.arange(program.n) < program.n_z, seen[1], np.nan)
        _solved(backend, Task(program, task.form, start=partial), legal)
        # nothing of the above is left behind
        _solved(backend, Task(program, task.form), legal)


def _solved(backend: Backend, task: Task, legal: np.ndarray) -> np.ndarray | None:
    answer, best = backend.solve(task, EXACT), optimum(task, legal)
    if best == math.inf:
        assert answer.status == "infeasible"
        assert answer.columns is None
        return None
    assert answer.status == "optimal"
    assert answer.value == pytest.approx(best, abs=1e-5)
    assert answer.value == pytest.approx(task.form.value(answer.columns), abs=1e-9)
    assert best - 1e-4 <= answer.bound <= answer.value + 1e-12
    assert np.min(np.abs(legal - answer.columns).max(axis=1)) < 1e-5, "the incumbent is not legal"
    for column, value in task.fixed.items():
        assert answer.columns[column] == pytest.approx(value)
    return answer.columns


def test_numbers_can_be_fixed(backend: Backend) -> None:
    program = compiled(SPACES["wide"]()).program
    legal, rng = all_points(program), np.random.default_rng(0)
    for _ in range(3):
        fixed = {
            n.latent: float(rng.integers(program.low[n.latent], program.high[n.latent] + 1)) for n in program.numbers
        }
        _solved(backend, Task(program, random_form(program, rng), fixed), legal)


def test_a_node_limit_yields_incumbent_and_bound_and_is_forgotten(backend: Backend) -> None:
    program = compiled(bits(15)).program  # one node is too few for most
    form, start = random_form(program, np.random.default_rng(1), 1.0), np.zeros(program.n)
    start[program.starts] = 1.0
    limited = SolverSettings(node_limit=1)
    for task in (Task(program, form), Task(program, form, start=start)):
        answer = backend.solve(task, limited)
        assert answer.status in ("feasible", "unknown", "optimal")
        assert not math.isnan(answer.bound)
        if answer.columns is not None:
            assert answer.bound <= answer.value == pytest.approx(form.value(answer.columns))
            assert task.start is None or answer.value <= form.value(start) + 1e-6
        assert backend.solve(task, limited).status == answer.status
    assert backend.solve(Task(program, form), EXACT).status == "optimal"


def test_the_same_task_gets_the_same_answer_whatever_came_before(backend: Backend) -> None:
    program = compiled(SPACES["layers"]()).program
    rng = np.random.default_rng(3)
    form, other = random_form(program, rng), random_form(program, rng)
    first = backend.solve(Task(program, form), EXACT)
    backend.solve(Task(program, other), EXACT)
    again = backend.solve(Task(program, form), EXACT)
    assert np.array_equal(first.columns, again.columns)
    assert first.value == again.value
