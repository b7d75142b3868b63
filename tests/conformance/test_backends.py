"""Contract of every backend, parametrised over the solvers installed here."""

from __future__ import annotations

import functools
import itertools
import math
import os

import numpy as np
import pytest

import mipcash as mc
from mipcash.backends.registry import make_backend, solvers
from mipcash.backends.task import Backend, Cut, SolverSettings, Task
from mipcash.errors import SolverError
from mipcash.program.forms import QuadraticForm
from mipcash.program.program import BinaryProgram
from mipcash.space.compiled import compiled
from tests.backends import tasks
from tests.backends.tasks import all_points, no_good, optimum, random_form
from tests.spaces import conv_net, loss

INSTALLED = [s.name for s in solvers() if s.installed]
EXPECTED = {"auto", "enumeration", "highs"} | (
    {"gurobi", "cplex", "scip", "toulbar2"} if os.environ.get("CI") else set()
)
VARIANTS = ["auto solver=highs", *(f"{n} form=quadratic" for n in ("gurobi", "cplex", "scip") if n in INSTALLED)]
EXACT = SolverSettings(gap=0.0)
DISCRETE_ONLY = {"enumeration", "toulbar2"}
"""Solvers without continuous variables; they must raise a SolverError instead of answering wrongly."""


def test_the_expected_solvers_are_installed() -> None:
    """In continuous integration every solver is installed."""
    assert set(INSTALLED) >= EXPECTED


@pytest.mark.parametrize("name", [n for n in INSTALLED if n in DISCRETE_ONLY])
def test_discrete_solvers_refuse_reals(name: str) -> None:
    space = mc.Space("mixed")
    x, k = space.real("x", 0, 4), space.integer("k", 0, 4)
    space.rule("line", x + k <= 3.5)
    with pytest.raises(SolverError, match=name):
        space.optimum(x + k, "max", solver=make_backend(name))


@pytest.fixture(params=INSTALLED)
def backend(request: pytest.FixtureRequest) -> Backend:
    return make_backend(request.param)


def small() -> mc.Space:
    space = mc.Space("small")
    a, b, c = space.integer("a", 0, 3), space.integer("b", 0, 3), space.categorical("c", ["x", "y", "z"])
    d = space.integer("d", 1, 3, when=c["x"])
    space.rule("sum", a + b + d <= 6)
    space.rule("product", a * b <= 4)
    space.rule("y", a >= 1, when=c["y"])
    return space


def large(groups: int = 14, levels: int = 8) -> mc.Space:
    """Space without rules; dense couplings over it take far longer to solve than the limits used here."""
    space = mc.Space("large")
    for g in range(groups):
        space.integer(f"p{g}", 0, levels - 1)
    return space


def first_levels(program: BinaryProgram) -> np.ndarray:
    start = np.zeros(program.n)
    start[program.starts] = 1.0
    return start


def solved(backend: Backend, task: Task, legal: np.ndarray) -> np.ndarray | None:
    """Assert that the answer is legal and proven optimal, or infeasible if no point remains; return its columns."""
    answer, best = backend.solve(task, EXACT), optimum(task, legal)
    if best == math.inf:
        assert (answer.status, answer.columns, answer.bound) == ("infeasible", None, math.inf)
        assert math.isnan(answer.value)
        return None
    assert answer.status == "optimal"
    assert answer.columns is not None
    assert answer.value == pytest.approx(best, abs=1e-5)
    assert answer.value == pytest.approx(task.form.value(answer.columns), abs=1e-9)
    assert best - 1e-4 <= answer.bound <= answer.value + 1e-12
    assert np.min(np.abs(legal - answer.columns).max(axis=1)) < 1e-5, "the incumbent is not legal"
    for column, value in task.fixed.items():
        assert answer.columns[column] == pytest.approx(value)
    return answer.columns


SPACES = {"small": small, **tasks.SPACES}
ASKED = [
    *((n, space) for n in INSTALLED for space in SPACES if n != "enumeration" or space == "small"),
    *((n, space) for n in VARIANTS for space in ("layers", "wide")),
]
"""Solvers and spaces. Enumeration refuses most of these tasks; tests/backends/test_enumeration.py tests it."""


@pytest.mark.parametrize(("name", "space"), ASKED)
def test_the_optimum_is_the_enumerated_one(name: str, space: str) -> None:
    """Spaces have product rules, auxiliary variables, wide integers or orderings.

    Cuts, fixings and starts do not affect later solves.
    """
    backend, program = make_backend(name), compiled(SPACES[space]()).program
    legal, rng = all_points(program), np.random.default_rng(len(space))
    assert len(legal) > 20
    form = random_form(program, rng)
    found = solved(backend, Task(program, form), legal)
    cuts = [no_good(program, found)]
    second = solved(backend, Task(program, form, cuts=cuts), legal)
    solved(backend, Task(program, form, {int(rng.integers(program.n_z)): 0.0}, cuts), legal)
    solved(backend, Task(program, form, {int(rng.integers(program.n_z)): 1.0}, cuts), legal)
    if program.numbers:
        values = {
            n.latent: float(rng.integers(program.low[n.latent], program.high[n.latent] + 1)) for n in program.numbers
        }
        solved(backend, Task(program, form, values), legal)
    # a legal, partial or illegal start does not change the optimum
    partial = np.where(np.arange(program.n) < program.n_z // 2, second, np.nan)
    for start in (second, partial, first_levels(program), np.ones(program.n), np.zeros(program.n)):
        solved(backend, Task(program, form, start=start), legal)
    solved(backend, Task(program, random_form(program, rng, 0.0)), legal)
    solved(backend, Task(program, form), legal)


def test_answers_are_repeatable_between_solves_of_another_program(backend: Backend) -> None:
    first, second = small(), small()
    second.rule("more", second["a"] + second["b"] >= 3)
    program, other = compiled(first).program, compiled(second).program
    forms = [random_form(program, np.random.default_rng(seed), 0.3) for seed in range(3)]
    legal = {id(p): all_points(p) for p in (program, other)}
    alone = [solved(backend, Task(program, f), legal[id(program)]) for f in forms]
    for form, before in zip(forms, alone, strict=True):
        solved(backend, Task(other, form), legal[id(other)])
        assert np.array_equal(solved(backend, Task(program, form), legal[id(program)]), before)


def test_cuts_hold_for_one_solve_only(backend: Backend) -> None:
    """No-good cuts enumerate all legal points in order of value. They do not affect a later solve without cuts."""
    space = small()
    space.rule("few", space["a"] + space["b"] <= 1)
    program, cuts = compiled(space).program, list[Cut]()
    legal, form = all_points(program), random_form(program, np.random.default_rng(5), 0.4)
    while (found := solved(backend, Task(program, form, {}, tuple(cuts)), legal)) is not None:
        cuts.append(no_good(program, found))
    assert len(cuts) == len(legal) == 13
    solved(backend, Task(program, form), legal)


def test_degenerate_programs(backend: Backend) -> None:
    """Empty and constant objectives, groups with a single level, and an infeasible program."""
    program = compiled(small()).program
    nothing = QuadraticForm.zero(program.n)
    for constant in (0.0, -3.5):
        form = QuadraticForm(constant, nothing.linear, nothing.rows, nothing.cols, nothing.values)
        answer = backend.solve(Task(program, form), EXACT)
        assert (answer.status, answer.value, answer.bound) == ("optimal", constant, pytest.approx(constant))
    single = mc.Space("single")
    a, b = single.integer("a", 2, 2), single.categorical("b", ["only"])
    single.rule("r", a * a + b["only"] <= 5)
    program = compiled(single).program
    form = random_form(program, np.random.default_rng(0))
    assert solved(backend, Task(program, form), np.ones((1, 2))) is not None
    single.rule("s", a * b["only"] <= 1)
    assert solved(backend, Task(compiled(single).program, form), np.zeros((0, 2))) is None


@pytest.mark.parametrize("name", [n for n in INSTALLED if n not in DISCRETE_ONLY])
def test_programs_without_discrete_parameters(name: str) -> None:
    backend = make_backend(name)
    space = mc.Space("continuous")
    x, y = space.real("x", 0, 4), space.real("y", 0, 4)
    space.rule("line", x + 2 * y <= 6)
    space.rule("other", 3 * x + y <= 9)
    solution = space.optimum(x + y, "max", solver=backend)
    assert solution.status == "optimal"
    assert (solution.value, solution.bound) == pytest.approx((4.2, 4.2))
    assert solution.config == {"x": pytest.approx(2.4), "y": pytest.approx(1.8)}
    bare = mc.Space("bare")
    bare.real("x", -1, 4)
    assert bare.optimum(2 * bare["x"] + 1, "min", solver=backend).value == pytest.approx(-1.0)
    program = compiled(bare).program
    empty = backend.solve(Task(program, QuadraticForm.zero(program.n)), EXACT)
    assert (empty.status, empty.value, empty.bound) == ("optimal", 0.0, 0.0)


# -- limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limit", [SolverSettings(time_limit=0.0), SolverSettings(time_limit=0.05), SolverSettings(node_limit=1)]
)
def test_solves_at_a_limit_return_incumbent_and_bound(backend: Backend, limit: SolverSettings) -> None:
    program = compiled(large() if limit.node_limit is None else tasks.bits(13)).program
    form, start = random_form(program, np.random.default_rng(1), 1.0), first_levels(program)
    for task in (Task(program, form), Task(program, form, start=start)):
        answer = backend.solve(task, limit)
        # a fast solver may prove the optimum within the limit
        assert answer.status in ("unknown", "feasible", "optimal")
        assert answer.status != "optimal" or limit.time_limit != 0.0
        assert (answer.columns is None) == (answer.status == "unknown")
        assert not math.isnan(answer.bound)
        if answer.columns is None:
            assert math.isnan(answer.value)
        else:
            assert answer.bound <= answer.value == pytest.approx(form.value(answer.columns))
            assert task.start is None or limit.node_limit is None or answer.value <= form.value(start) + 1e-6
            levels = np.add.reduceat(answer.columns[: program.n_z], program.starts)
            assert np.array_equal(levels, np.ones(len(program.groups)))


def test_a_limited_solve_does_not_affect_later_solves(backend: Backend) -> None:
    program = compiled(small()).program
    legal, form = all_points(program), random_form(program, np.random.default_rng(7))
    for _ in range(2):
        backend.solve(Task(program, form, {0: 1.0}), SolverSettings(time_limit=0.0, node_limit=0))
        solved(backend, Task(program, form), legal)


def test_the_time_limit_applies_to_each_solve_separately(backend: Backend) -> None:
    """A clock that accumulated over the solves of one instance would reach the time limit."""
    program = compiled(large(4, 4)).program
    form = random_form(program, np.random.default_rng(2), 0.15)
    first = backend.solve(Task(program, form), SolverSettings(gap=0.0))
    settings, spent = SolverSettings(time_limit=max(0.1, 4 * first.seconds), gap=0.0), 0.0
    while spent < 1.5 * settings.time_limit:
        spent += backend.solve(Task(program, form), settings).seconds
    late = (backend.solve(Task(program, form), settings) for _ in range(20))
    assert any(a.status == "optimal" and a.value == pytest.approx(first.value, abs=1e-6) for a in late)


@pytest.mark.parametrize("name", ["highs", "auto"])
def test_the_space_passes_the_time_limit_to_the_solver(name: str) -> None:
    space, rng = large(), np.random.default_rng(0)
    expression = sum(
        float(rng.normal()) * space[p].is_(int(v)) * space[q].is_(int(w))
        for p, q in itertools.combinations(space.parameters, 2)
        for v, w in rng.integers(8, size=(6, 2))
    )
    found = {}
    for sense, sign in (("min", 1), ("max", -1)):
        solution = space.optimum(expression, sense, solver=make_backend(name), time_limit=0.1)
        assert solution.status in ("feasible", "unknown", "optimal")
        if solution.config is not None:
            assert space.is_legal(solution.config)
            assert solution.gap >= 0
            assert sign * solution.bound <= sign * solution.value
            found[sense] = solution.value
    assert len(found) < 2 or found["min"] <= found["max"]


# -- runs -----------------------------------------------------------------------------------------------------------


@functools.cache
def trials_of_a_run(solver: str) -> list[mc.Trial]:
    """Return trials of a run that is long enough for runs that diverge at a tie to find equally good points."""
    settings = mc.settings.HybridSettings(n_initial=4)
    study = mc.Study(conv_net(), seed=2, optimizer=mc.Method(settings=settings, solver=solver))
    for _ in range(10):
        trial = study.ask()
        study.tell(trial, loss(trial.config))
    return list(study.trials)


@pytest.mark.parametrize("solver", [n for n in INSTALLED if n not in ("highs", "enumeration")])
def test_a_run_agrees_with_highs_and_every_proposal_has_a_proof(solver: str) -> None:
    least, reference = (min(t.loss for t in trials_of_a_run(s) if t.loss is not None) for s in (solver, "highs"))
    assert least == pytest.approx(reference, abs=0.25)
    for trial in trials_of_a_run(solver):
        assert trial.proof is not None
        # optimal if the proposal also has the best prediction, feasible if the acquisition explores
        assert trial.proof.status in ("optimal", "feasible")
        assert -math.inf < trial.proof.bound <= trial.proof.value + 1e-6
