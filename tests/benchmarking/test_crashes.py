"""The benchmark of crashes runs in its smoke size, and half of its space fails."""

from __future__ import annotations

from benchmarks.crashes import WAYS, markdown, objective, run, space


def test_smoke() -> None:
    results = run("smoke", lambda text: None)
    assert [r["way"] for r in results["runs"]] == list(WAYS)
    assert 0.4 <= results["share that fails"] <= 0.6
    assert all(r["failures"] == 0 for r in results["runs"] if r["way"] == "known")
    assert markdown(results).count("\n") == 7


def test_the_optimum_is_where_it_is_said_to_be() -> None:
    best = {"solver": "iterative", "solver.iterative.omega": 1.0, "precision": "single", "step": 10**-2.5, "n": 9}
    assert space(known=True).is_legal(best)
    assert objective(best) == 0.0
