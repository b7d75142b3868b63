"""The benchmark of answers runs in its smoke size."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.ensembles import ANSWERS, compared, markdown, run


def test_smoke() -> None:
    results = run("smoke", lambda text: None)
    assert [r["optimizer"] for r in results["rows"]] == ["hybrid", "random"]
    for row in results["rows"]:
        found = row["answers"]
        assert list(found) == list(ANSWERS)
        assert found["lowest loss"]["search"] <= min(found[a]["search"] for a in ("recommended", "confirmed"))
        assert found["ensemble"]["search"] <= found["lowest loss"]["search"] + 1e-3  # ties of probabilities apart
    assert "| random | ensemble |" in markdown(results)


def test_runs_are_compared_in_pairs() -> None:
    def row(one: float, other: float) -> dict[str, Any]:
        return {"answers": {"lowest loss": {"held out": one}, "ensemble": {"held out": other}}}

    found = compared([row(0.3, 0.2), row(0.3, 0.3), row(0.1, 0.2), row(0.4, 0.2)], "ensemble")
    assert (found["better"], found["equal"], found["worse"]) == (2, 1, 1)
    assert found["mean"] == pytest.approx(-0.05)
