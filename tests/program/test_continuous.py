"""Spaces with reals: random spaces against linear programs in exact fractions, products of two reals against grids."""

from __future__ import annotations

import collections
import math
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.backends.registry import make_backend
from mipcash.backends.task import SolverSettings, Task
from mipcash.program.forms import QuadraticForm
from mipcash.program.legality import legality_at
from mipcash.space.compiled import compiled
from mipcash.space.domain import Domain
from tests.fuzz.cases import cases
from tests.fuzz.questions import begin, interview
from tests.fuzz.record import Record
from tests.slow import SOLVES, counted

SPACES_PER_KIND = 8


@pytest.mark.parametrize("kind", ["mixtures", "real products", "everything"])
def test_mixed_spaces_against_linear_programs(kind: str) -> None:
    """Compare all methods with :mod:`tests.fuzz`, which solves one linear program per discrete configuration."""
    seen: collections.Counter[str] = collections.Counter()
    for case in cases(SPACES_PER_KIND, 0, (kind,), reals=True):
        record = Record(case.k, kind)
        asked = begin(case, record, seed=0)
        assert asked is not None
        interview(asked, ("default",))
        assert not "\n".join(map(str, record.disagreements))
        if not case.truth.empty:
            with pytest.MonkeyPatch.context() as patch:
                calls = counted(patch, *SOLVES)
                asked.space.sample(6, seed=1)
            assert len(calls) <= 30
        seen["empty" if case.truth.empty else "feasible"] += 1
        seen["bound by rules"] += bool(case.truth.cells)
    for found in ("feasible", "empty", "bound by rules"):
        assert seen[found] >= 1, (found, seen)


# -- products of two reals ------------------------------------------------------------------------------------------

CURVED = {
    "hyperbola above": (lambda x, y, k: x * y, ">=", 1.0),
    "outside a disc": (lambda x, y, k: x * x + y * y, ">=", 2.5),
    "saddle": (lambda x, y, k: x * y - x + 0.5 * y + k, "<=", 1.2),
    "square and integer": (lambda x, y, k: x * x - k * y, "<=", 0.3),
}


def curved_space(name: str) -> mc.Space:
    body, sense, bound = CURVED[name]
    space = mc.Space(name)
    x, y, k = space.real("x", -1.0, 2.0), space.real("y", 0.0, 3.0), space.integer("k", 0, 2)
    value = body(x, y, k)
    space.rule("curve", value <= bound if sense == "<=" else value >= bound)
    return space


@pytest.mark.parametrize("name", CURVED)
def test_programs_with_products_of_reals_admit_exactly_the_legal_points(name: str) -> None:
    body, sense, bound = CURVED[name]
    space = curved_space(name)
    program = compiled(space).program
    backend = make_backend("highs")
    zero = QuadraticForm.zero(program.n)
    latent = {n.label: n.latent for n in program.numbers}
    rng = np.random.default_rng(0)
    verdicts = collections.Counter()
    for _ in range(40):
        values = {"x": float(rng.uniform(-1, 2)), "y": float(rng.uniform(0, 3))}
        k = int(rng.integers(3))
        if rng.random() < 0.5:  # near the border
            values["y"] = _border(lambda y, x=values["x"], k=k: body(x, y, k) - bound, values["y"])
            values["y"] = float(np.clip(values["y"] + rng.normal() * 1e-6, 0, 3))
        value = body(values["x"], values["y"], k)
        slack = bound - value if sense == "<=" else value - bound
        if abs(slack) < 1e-7:
            continue
        fixed = {latent[n]: v for n, v in values.items()} | {program.groups[0].start + k: 1.0}
        status = backend.solve(Task(program, zero, fixed), SolverSettings()).status
        assert status == ("optimal" if slack > 0 else "infeasible"), (values, k, slack)
        verdicts[status] += 1
        assert space.is_legal(values | {"k": k}) == (slack > 0)
        levels = np.array([[k]])
        checked = legality_at(program, values)
        assert checked.complete
        assert bool(checked.check(levels)[0]) == (slack > 0)
    assert min(verdicts["optimal"], verdicts["infeasible"]) >= 5, verdicts


def _border(function: Any, start: float) -> float:
    grid = np.linspace(0, 3, 400)
    values = np.array([function(y) for y in grid])
    return float(grid[np.argmin(np.abs(values))]) if np.any(values > 0) and np.any(values < 0) else start


@pytest.mark.parametrize("name", CURVED)
def test_optima_under_products_of_reals_against_a_grid(name: str) -> None:
    body, sense, bound = CURVED[name]
    space = curved_space(name)
    x, y = np.meshgrid(np.linspace(-1, 2, 301), np.linspace(0, 3, 301))
    for cx, cy, ck in ((1.0, 1.0, 0.3), (-1.0, 2.0, -0.2), (1.0, -0.5, 0.1)):
        best = math.inf
        for k in range(3):
            value = body(x, y, k)
            inside = value <= bound if sense == "<=" else value >= bound
            if inside.any():
                best = min(best, float((cx * x + cy * y + ck * k)[inside].min()))
        solution = space.optimum(cx * space["x"] + cy * space["y"] + ck * space["k"])
        assert solution.status == "optimal"
        assert solution.value - 1e-5 <= solution.bound <= best + 1e-9
        assert best - 0.06 <= solution.value <= best + 1e-6  # the grid is a little too coarse to be optimal
        assert space.is_legal(solution.config)


@pytest.mark.parametrize("name", ["outside a disc", "saddle"])
def test_samples_and_walks_stay_legal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body, sense, bound = CURVED[name]
    space = curved_space(name)
    calls = counted(monkeypatch, *SOLVES)
    samples = space.sample(15, seed=1)
    assert len(calls) <= 60
    for c in samples:
        value = body(c["x"], c["y"], c["k"])
        assert value <= bound + 1e-5 if sense == "<=" else value >= bound - 1e-5
    assert np.ptp([c["x"] for c in samples]) > 0.8, "samples are spread over the legal set"
    domain = Domain.of(space)
    program = domain.program
    columns = domain.minimise(QuadraticForm.zero(program.n), SolverSettings()).columns
    assert columns is not None
    levels, at = program.levels_of(columns), {n.label: n.column for n in program.numbers}
    rules = domain.legal_numbers(levels, columns)
    assert rules is not None
    k = domain.space.configuration(levels, columns)["k"]
    start = np.array([columns[at[label]] for label in rules.labels])
    assert rules.legal(start)
    ends = []
    for number in range(12):
        end = rules.walk(start, 30, np.random.default_rng(number))
        assert rules.legal(end)
        where = dict(zip(rules.labels, end.tolist(), strict=True))
        value = body(where["x"], where["y"], k)
        assert value <= bound + 1e-6 if sense == "<=" else value >= bound - 1e-6
        ends.append(end)
    assert np.all(np.ptp(np.array(ends), axis=0) > 0.2), "a walk moves"


def test_wide_integers_in_linear_and_quadratic_rules() -> None:
    """Optima over integers of thousands of values, beside reals and in products, are exact to the unit."""
    space = mc.Space("wide")
    rounds, depth = space.integer("rounds", 3, 5000, log=True), space.integer("depth", 1, 12)
    leaves, eta = space.integer("leaves", 2, 3000), space.real("eta", 0.001, 1.0, log=True)
    space.rule("work", rounds * depth <= 6001)
    space.rule("cells", rounds * leaves <= 1_000_003)
    space.rule("rate", rounds * eta <= 400)
    best = max(
        r + d for d in range(1, 13) for r in range(3, 5001) if r * d <= 6001 and r * 0.001 <= 400 and 2 * r <= 1_000_003
    )
    assert space.optimum(rounds + depth, "max").value == best
    most = max(5 * l + r for l in range(2, 3001) for r in (min(5000, 1_000_003 // l),))
    solution = space.optimum(rounds + 5 * leaves, "max")
    assert solution.value == most
    assert solution.config is not None
    assert solution.config["rounds"] * solution.config["leaves"] <= 1_000_003
    for c in space.sample(12, seed=0):
        assert c["rounds"] * c["depth"] <= 6001
        assert c["rounds"] * c["leaves"] <= 1_000_003
        assert c["rounds"] * c["eta"] <= 400 + 1e-5


def test_completed_points_have_the_products_of_their_numbers() -> None:
    space = mc.Space("products")
    x, y = space.real("x", 0, 10), space.real("y", 0, 10)
    space.categorical("k", ["a", "b"])
    space.rule("product", x * y <= 6)
    program = compiled(space).program
    (product,) = program.bilinear
    found = legality_at(program, {"x": 2.0, "y": 2.5}).completed(np.array([1]))
    assert found[[product.first, product.second, product.column]] == pytest.approx([2.0, 2.5, 5.0 * product.scale])


def test_the_width_that_linear_rules_leave_to_each_number() -> None:
    space = mc.Space("widths")
    x, y, z = space.real("x", 0, 10), space.real("y", -10, 10), space.real("z", 0, 10)
    space.rule("sum", 2 * x + 4 * y <= 4)
    space.rule("difference", 3 * z - 6 * y >= 6)
    space.rule("low", y >= 0.5)
    found = compiled(space)
    legal = found.legal_numbers(np.zeros(0, dtype=np.int64), np.zeros(found.program.n))
    assert legal is not None
    widths = dict(zip(legal.labels, legal.parts[0]._left_at(np.zeros(3)).tolist(), strict=True))
    assert widths == pytest.approx({"x": 1.0, "y": 0.5, "z": 7.0})


def test_a_point_on_the_bound_of_a_rule_of_two_terms_stays_on_it() -> None:
    """Its sum can be evaluated in one order only, so it needs no distance for rounding."""
    space = mc.Space("bound")
    x, y = space.real("x", 0, 1), space.real("y", 0, 1)
    space.rule("share", 0.7 * x - 0.3 * y <= 0.2)
    best, near = space.optimum(0.7 * x - 0.3 * y, "max").config, space.nearest({"x": 1.0, "y": 0.0})
    assert [0.7 * c["x"] - 0.3 * c["y"] for c in (best, near)] == [0.2, 0.2]
