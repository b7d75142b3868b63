"""The benchmark of priors runs in its smoke size; its optimum is the enumerated one."""

from __future__ import annotations

import itertools

import pytest

from benchmarks.priors import PRIORS, ising, markdown, optimum, run


def test_the_optimum_is_the_enumerated_one():
    space, objective = ising(7, 3)
    names = list(space.parameters)
    values = [objective(dict(zip(names, bits, strict=True))) for bits in itertools.product([0, 1], repeat=7)]
    assert optimum(7, 3) == pytest.approx(min(values))


def test_smoke():
    results = run("smoke", lambda text: None)
    assert {r["prior"] for r in results["errors"]} == set(PRIORS)
    assert all(0.0 < r["error"] < 3.0 for r in results["errors"])
    assert all(r["best"] >= -1e-9 for r in results["runs"])
    whole, thinner = (
        next(r for r in results["solves"] if r["prior"].startswith("horseshoe") and bool(r["left out"]) == o)
        for o in (False, True)
    )
    assert thinner["pairs"] <= whole["pairs"]
    assert all(r["status"] == "optimal" for r in results["solves"])
    assert "ising 8" in markdown(results)
