"""Problems with rules and limits: optima that keep both, attained and never beaten; losses and limits reproducible."""

from __future__ import annotations

import numpy as np
import pytest

import mipcash as mc
from benchmarks.limits.problems import admmbo, crashes
from benchmarks.limits.sides import WORKS, Sides
from benchmarks.limits.suite import problems
from benchmarks.peers.problem import Problem, optima
from mipcash.errors import ModelError

NAMES = list(problems())
OPTIMA = optima()
SLOW = ("credit", "network")
"""Those that fit a model."""
LOOSE = 1e-7
"""A configuration at its limits is beside them by rounding."""


def space_of(problem: Problem) -> mc.Space:
    try:
        return problem.space()
    except ModelError as error:
        pytest.skip(f"{problem.name} needs data that is not here: {error}")


def sides(problem: Problem, config: dict) -> list[float]:
    return [1.0 if v is None else v for v in Sides(problem).row(problem.evaluate(config))]


def test_there_are_enough_of_each_shape() -> None:
    listed = problems().values()
    assert len(listed) >= 8
    assert {len(p.kept) for p in listed} >= {1, 2, 3, 4, 11}
    assert any(p.crashes for p in listed)


@pytest.mark.parametrize("name", NAMES)
def test_rules_and_limits_bind_and_no_sample_beats_the_optimum(name: str) -> None:
    problem = problems()[name]
    space = space_of(problem)
    assert space.rules
    configs = space.sample(10 if name in SLOW else 40, seed=1)
    found = [problem.evaluate(c) for c in configs]
    assert [problem.evaluate(c) for c in configs[:5]] == found[:5]
    assert not all(e.kept for e in found)
    assert all(e.loss is not None for e in found) or problem.crashes
    counted = [e.counted for e in found if e.counted is not None]
    assert min(counted, default=np.inf) >= problem.optimum - problem.tolerance
    assert problem.reference is not None
    assert problem.reference > problem.optimum


@pytest.mark.parametrize("name", [n for n in NAMES if n in OPTIMA])
def test_optima_are_attained_by_what_keeps_rules_and_limits(name: str) -> None:
    problem, config = problems()[name], OPTIMA[name]
    assert problem.space().is_legal(config)
    assert problem.evaluate(config).loss == pytest.approx(problem.optimum, abs=problem.tolerance)
    assert max(sides(problem, config)) <= LOOSE


def test_the_papers_own_problems() -> None:
    assert admmbo.problem_17({"x1": 0.1951, "x2": 0.4047})["loss"] == pytest.approx(0.5998, abs=1e-4)
    assert max(list(admmbo.problem_17({"x1": 0.1952, "x2": 0.4048}).values())[1:]) <= 0
    rng = np.random.default_rng(0)
    drawn = [admmbo.problem_16(dict(zip(("x1", "x2"), x, strict=True)))["c1"] for x in rng.uniform(0, 6, (20_000, 2))]
    assert 0.01 < np.mean(np.array(drawn) <= 0) < 0.03
    assert admmbo.hartman([0.0, 0.0, 0.0, 0.0]) < 1.1 < admmbo.hartman([0.2, 0.4, 0.3, 0.5])


def test_a_crash_tells_nothing_but_that_it_crashed() -> None:
    problem = problems()["solvers"]
    config = {
        "blocks": 12,
        "bits": 32,
        "method": "iterative",
        "method.iterative.preconditioner": "ilu",
        "method.iterative.restart": 20,
        "method.iterative.tolerance": 1e-4,
    }
    assert crashes.space().is_legal(config)
    crashed = problem.evaluate(config)
    assert (crashed.loss, crashed.counted, crashed.outputs, crashed.kept) == (None, None, None, False)
    row = Sides(problem).row(crashed)
    assert Sides(problem).names[-1] == WORKS
    assert row[-1] == 1.0
    assert set(row[:-1]) == {None}
    runs = problem.evaluate(config | {"blocks": 5})
    assert runs.outputs is not None
    assert Sides(problem).row(runs)[-1] == -1.0


def test_both_ends_of_a_limit_are_sides_in_units_of_the_bound() -> None:
    problem = problems()["g04"]
    config = problem.space().sample(1, 0)[0]
    told, made = problem.evaluate(config), Sides(problem)
    row = dict(zip(made.names, made.row(told), strict=True))
    assert len(row) == 6
    assert row["b >= 90"] == pytest.approx((90 - told.values["b"]) / 90)
    assert row["b <= 110"] == pytest.approx((told.values["b"] - 110) / 110)
    assert told.kept == (max(row.values()) <= 0)
