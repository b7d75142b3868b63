"""What every backend must do, whichever solver is behind it: parametrised over the solvers installed here."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import mipcash as mc
from mipcash.backends.registry import make_backend, solvers
from mipcash.backends.task import Answer, Backend, Cut, SolverSettings, Task
from mipcash.errors import SolverError
from mipcash.program.forms import QuadraticForm
from mipcash.program.program import BinaryProgram
from mipcash.space.compiled import compiled
from tests.backends.tasks import form_of

INSTALLED = [s.name for s in solvers() if s.installed and s.usable]
EXACT = SolverSettings(gap=0.0)


DISCRETE_ONLY = {"enumeration", "toulbar2"}
"""Solvers that have no continuous variables; they must say so (SolverError) and not answer wrongly."""


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


def test_the_default_is_installed() -> None:
    assert {"auto", "highs", "enumeration"} <= set(INSTALLED)


# -- programs -------------------------------------------------------------------------------------------------------


def small() -> mc.Space:
    space = mc.Space("small")
    a, b, c = space.integer("a", 0, 3), space.integer("b", 0, 3), space.categorical("c", ["x", "y", "z"])
    d = space.integer("d", 1, 3, when=c["x"])
    space.rule("sum", a + b + d <= 6)
    space.rule("product", a * b <= 4)
    space.rule("y", a >= 1, when=c["y"])
    return space


def large(groups: int = 14, levels: int = 8) -> mc.Space:
    """Unstructured on purpose: dense couplings over it take far longer than the limits used here."""
    space = mc.Space("large")
    for g in range(groups):
        space.integer(f"p{g}", 0, levels - 1)
    return space


def legal_points(space: mc.Space, most: int = 6) -> np.ndarray:
    """z of every legal configuration of :func:`small` with a + b up to ``most``, by plain Python."""
    program, rows = compiled(space).program, []
    for a, b, c in itertools.product(range(4), range(4), "xyz"):
        for d in (1, 2, 3) if c == "x" else (0,):
            if a + b <= most and a + b + d <= 6 and a * b <= 4 and (c != "y" or a >= 1):
                rows.append(program.one_hot(program.encode({"a": a, "b": b, "c": c} | ({"d": d} if d else {}))))
    return np.array(rows)


def random_form(program: BinaryProgram, seed: int, density: float = 1.0) -> QuadraticForm:
    rng = np.random.default_rng(seed)
    linear = np.zeros(program.n)
    linear[: program.n_z] = rng.normal(size=program.n_z)
    matrix = np.triu(rng.normal(size=(program.n, program.n)), 1)
    matrix[rng.random(matrix.shape) > density] = 0.0
    matrix[program.n_z :] = matrix[:, program.n_z :] = 0.0
    return program.folded(form_of(float(rng.normal()), linear, matrix))


def values(form: QuadraticForm, z: np.ndarray) -> np.ndarray:
    n = z.shape[1]
    return form.constant + z @ form.linear[:n] + (z[:, form.rows] * z[:, form.cols]) @ form.values


def certify(answer: Answer, form: QuadraticForm, z: np.ndarray, program: BinaryProgram) -> None:
    """Optimal, legal, and the bound proves it."""
    best = values(form, z).min()
    assert answer.status == "optimal"
    assert answer.value == pytest.approx(best, abs=1e-6)
    assert best - 1e-5 <= answer.bound <= answer.value
    assert answer.columns is not None
    assert answer.columns.shape == (program.n,)
    assert any(np.array_equal(answer.columns[: program.n_z], row) for row in z)


# -- answers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("density", [0.0, 0.2, 1.0])
def test_optimum_is_the_enumerated_one(backend: Backend, density: float) -> None:
    space = small()
    program, z = compiled(space).program, legal_points(space)
    assert 20 < len(z) < 96
    for seed in range(8):
        form = random_form(program, seed, density)
        certify(backend.solve(Task(program, form), EXACT), form, z, program)
        negated = form.scaled(-1.0)
        certify(backend.solve(Task(program, negated), EXACT), negated, z, program)


def test_same_answer_twice_and_between_other_programs(backend: Backend) -> None:
    first, second = small(), small()
    second.rule("more", second["a"] + second["b"] >= 3)
    forms = [random_form(compiled(first).program, seed, 0.3) for seed in range(12)]
    z = legal_points(first)
    alone = [backend.solve(Task(compiled(first).program, f), EXACT).value for f in forms]
    for _ in range(2):
        for k, form in enumerate(forms):  # more extensions than a backend is likely to keep
            other = backend.solve(Task(compiled(second).program, form), EXACT)
            again = backend.solve(Task(compiled(first).program, form), EXACT)
            certify(again, form, z, compiled(first).program)
            assert again.value == pytest.approx(alone[k], abs=1e-9)
            assert other.value >= again.value - 1e-9


def test_empty_objective_and_constant(backend: Backend) -> None:
    program = compiled(small()).program
    answer = backend.solve(Task(program, QuadraticForm.zero(program.n)), EXACT)
    assert (answer.status, answer.value, answer.bound) == ("optimal", 0.0, 0.0)
    constant = QuadraticForm(
        -3.5, *[getattr(QuadraticForm.zero(program.n), f) for f in ("linear", "rows", "cols", "values")]
    )
    answer = backend.solve(Task(program, constant), EXACT)
    assert (answer.status, answer.value, answer.bound) == ("optimal", -3.5, pytest.approx(-3.5))


def test_infeasible(backend: Backend) -> None:
    space = small()
    space.rule("impossible", space["a"] + space["b"] >= 7)
    for seed in range(2):
        answer = backend.solve(Task(compiled(space).program, random_form(compiled(space).program, seed)), EXACT)
        assert (answer.status, answer.columns) == ("infeasible", None)
        assert math.isnan(answer.value)
        assert answer.bound == math.inf


def test_fixed_columns_hold_and_are_released(backend: Backend) -> None:
    space = small()
    program, z = compiled(space).program, legal_points(space)
    form = random_form(program, 3)
    for column in range(program.n_z):
        for value in (0.0, 1.0):
            kept = z[z[:, column] == value]
            answer = backend.solve(Task(program, form, {column: value}), EXACT)
            if len(kept):
                certify(answer, form, kept, program)
            else:
                assert answer.status == "infeasible"
    certify(backend.solve(Task(program, form), EXACT), form, z, program)


def test_cuts_hold_and_are_removed(backend: Backend) -> None:
    """No-good cuts walk through all legal points in order of value; afterwards nothing is left of them."""
    space = small()
    space.rule("few", space["a"] + space["b"] <= 1)
    program, z = compiled(space).program, legal_points(space, 1)
    assert len(z) == 13
    form = random_form(program, 5, 0.4)
    cuts: list[Cut] = []
    found = []
    while True:
        answer = backend.solve(Task(program, form, {}, tuple(cuts)), EXACT)
        if answer.status == "infeasible":
            break
        assert answer.columns is not None
        found.append(answer.value)
        at = np.flatnonzero(answer.columns[: program.n_z] > 0.5)
        cuts.append(Cut(at, np.ones(len(at)), -math.inf, len(at) - 1.0))
        assert len(cuts) <= len(z)
    assert found == pytest.approx(sorted(values(form, z)), abs=1e-5)
    certify(backend.solve(Task(program, form), EXACT), form, z, program)


@pytest.mark.parametrize("kind", ["best", "worst", "partial", "illegal"])
def test_warm_starts_never_change_the_optimum(backend: Backend, kind: str) -> None:
    space = small()
    program, z = compiled(space).program, legal_points(space)
    for seed in range(4):
        form = random_form(program, seed, 0.5)
        order = np.argsort(values(form, z))
        start = np.zeros(program.n)
        start[: program.n_z] = z[order[-1 if kind == "worst" else 0]]
        if kind == "partial":
            start[program.n_z // 2 :] = np.nan
        if kind == "illegal":
            start[: program.n_z] = 0.0
            start[[g.start for g in program.groups]] = 1.0
            start[program.groups[0].start : program.groups[0].stop] = 1.0
        certify(backend.solve(Task(program, form, start=start), EXACT), form, z, program)


def test_single_levels(backend: Backend) -> None:
    space = mc.Space("single")
    a, b = space.integer("a", 2, 2), space.categorical("b", ["only"])
    space.rule("r", a * a + b["only"] <= 5)
    form = random_form(compiled(space).program, 0)
    answer = backend.solve(Task(compiled(space).program, form), EXACT)
    assert answer.status == "optimal"
    assert answer.value == pytest.approx(values(form, np.ones((1, 2)))[0])
    space.rule("s", a * b["only"] <= 1)
    assert backend.solve(Task(compiled(space).program, form), EXACT).status == "infeasible"


@pytest.mark.parametrize("name", [n for n in INSTALLED if n not in DISCRETE_ONLY])
def test_all_continuous(name: str) -> None:
    backend = make_backend(name)
    space = mc.Space("continuous")
    x, y = space.real("x", 0, 4), space.real("y", 0, 4)
    space.rule("line", x + 2 * y <= 6)
    space.rule("other", 3 * x + y <= 9)
    solution = space.optimum(x + y, "max", solver=backend)
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(2.4 + 1.8)
    assert solution.bound == pytest.approx(4.2)
    assert solution.config == {"x": pytest.approx(2.4), "y": pytest.approx(1.8)}
    bare = mc.Space("bare")
    bare.real("x", -1, 4)
    assert bare.optimum(2 * bare["x"] + 1, "min", solver=backend).value == pytest.approx(-1.0)
    program = mc.Space("no columns")
    program.real("x", 0, 1)
    empty = backend.solve(Task(compiled(program).program, QuadraticForm.zero(compiled(program).program.n)), EXACT)
    assert (empty.status, empty.value, empty.bound) == ("optimal", 0.0, 0.0)


def test_limits_give_incumbent_and_bound_never_an_exception(backend: Backend) -> None:
    program = compiled(large()).program
    form = random_form(program, 1)
    for limit in (0.0, 1e-6, 0.05):
        answer = backend.solve(Task(program, form), SolverSettings(time_limit=limit))
        assert answer.status in (("unknown", "feasible") if limit < 0.05 else ("unknown", "feasible", "optimal"))
        assert (answer.columns is None) == (answer.status == "unknown")
        if answer.columns is None:
            assert math.isnan(answer.value)
        else:
            assert answer.bound <= answer.value == pytest.approx(form.value(answer.columns))
            levels = np.add.reduceat(answer.columns[: program.n_z], [g.start for g in program.groups])
            assert np.array_equal(levels, np.ones(len(program.groups)))
    start = np.zeros(program.n)
    start[[g.start for g in program.groups]] = 1.0
    # a fast solver may prove the optimum within the limit; what it returns is no worse than the start either way
    answer = backend.solve(Task(program, form, start=start), SolverSettings(time_limit=0.25))
    assert answer.status in ("feasible", "unknown", "optimal")
    assert answer.bound <= answer.value or math.isnan(answer.value)
    if answer.columns is not None:
        assert answer.value <= form.value(start) + 1e-9


def test_the_time_limit_counts_anew_for_each_solve(backend: Backend) -> None:
    """A clock that runs on over the solves of one instance would end this with a time limit."""
    program = compiled(large(6, 5)).program
    form = random_form(program, 2, 0.15)
    first = backend.solve(Task(program, form), SolverSettings(gap=0.0))
    settings, spent = SolverSettings(time_limit=max(0.1, 4 * first.seconds), gap=0.0), 0.0
    while spent < 1.5 * settings.time_limit:
        spent += backend.solve(Task(program, form), settings).seconds
    late = (backend.solve(Task(program, form), settings) for _ in range(20))
    assert any(a.status == "optimal" and a.value == pytest.approx(first.value, abs=1e-6) for a in late)


def test_a_limited_solve_leaves_no_trace(backend: Backend) -> None:
    space = small()
    program, z = compiled(space).program, legal_points(space)
    form = random_form(program, 7)
    for _ in range(3):
        backend.solve(Task(program, form, {0: 1.0}), SolverSettings(time_limit=0.0, node_limit=0))
        certify(backend.solve(Task(program, form), EXACT), form, z, program)


def test_the_space_hands_limits_through(backend: Backend) -> None:
    space = large()
    rng = np.random.default_rng(0)
    names = list(space.parameters)
    expression = sum(
        float(rng.normal()) * space[p].is_(int(v)) * space[q].is_(int(w))
        for p, q in itertools.combinations(names, 2)
        for v, w in rng.integers(8, size=(6, 2))
    )
    minimum = space.optimum(expression, "min", solver=backend, time_limit=0.25)
    maximum = space.optimum(expression, "max", solver=backend, time_limit=0.25)
    for solution in (minimum, maximum):
        assert solution.status in ("feasible", "unknown", "optimal")
        if solution.config is not None:
            assert space.is_legal(solution.config)
            assert solution.gap >= 0
    if minimum.config is not None:
        assert minimum.bound <= minimum.value
    if maximum.config is not None:
        assert maximum.bound >= maximum.value
    if minimum.config is not None and maximum.config is not None:
        assert minimum.value <= maximum.value
