"""Registered benchmark: ``python -m benchmarks run admmbo``. Smoke runs two methods from one start, in seconds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.admmbo import report
from benchmarks.admmbo.problems import PROBLEMS
from benchmarks.admmbo.runner import APART, METHODS, RANDOM, Run, Task, read, work
from benchmarks.registry import benchmark

RESULTS = Path(__file__).resolve().parents[1] / "results" / "admmbo"
RUNS = RESULTS / "runs.jsonl"
STARTS = {"quick": (5, 0), "full": (100, 25)}
"""Numbers of starts of all methods, and of other penalties."""
COLUMNS = """Two random points, then as in ariafar2019, Section 5.1: M = 50, rho = 0.1, epsilon = 0.01, 20 steps of each subproblem
in the first iteration, 2 in the others. Counts are evaluations of single outputs, of which a joint one is N + 1; "apart": ADMMBO
evaluates one output at a time, "together": all, and shares the steps. Regret: the least loss that keeps the limits among all
configurations of which any output was evaluated, less the optimum. CPU seconds: mean of a proposal.
"""
RHOS = (1e-4, 0.01, 0.1, 0.5, 1.0, 2.0)
"""Values of rho, at M = 20 (Section 5.7, Figure 7)."""
PENALTIES = (0.001, 0.01, 0.1, 1.0, 2.0, 100.0, 1000.0)
"""Values of M, at rho = 0.1 (Figure 8)."""
SENSITIVE = "17"
"""Problem for the values of rho and M."""


@benchmark(
    "admmbo", "ADMMBO on the problems of its paper: feasible, converged, stopped; and other penalties", RESULTS / "admmbo.json"
)
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    if size == "smoke":
        todo = [Task("17", APART, 0), Task("17", RANDOM, 0), Task("17", APART, 0, {"penalty": 1.0})]
        with tempfile.TemporaryDirectory() as place:
            return results(work(todo, Path(place) / "runs.jsonl", progress, 36))
    RESULTS.mkdir(parents=True, exist_ok=True)
    todo = interleaved(*STARTS[size]) if size == "full" else compared(range(STARTS[size][0]))
    return results(work(todo, RUNS, progress))


def compared(starts: Sequence[int]) -> list[Task]:
    """Return all methods on all problems, start by start, so that a part of the runs is balanced."""
    return [Task(p, m, s) for s in starts for p in PROBLEMS for m in METHODS]


def varied(starts: Sequence[int]) -> list[Task]:
    """Return the runs with other values of rho and M."""
    settings = [{"rho": rho, "penalty": 20.0} for rho in RHOS] + [{"penalty": m} for m in PENALTIES]
    return [Task(SENSITIVE, APART, s, each) for s in starts for each in settings]


def interleaved(starts: int, varied_starts: int) -> list[Task]:
    """Return both kinds of runs interleaved, so that an interrupted execution has a share of each."""
    todo = []
    for s in range(starts):
        todo += compared([s])
        if s % 3 == 2 and s // 3 < varied_starts:
            todo += varied([s // 3])
    return todo


def collected() -> dict[str, Any]:
    """Return the results of the existing runs."""
    return results(read(RUNS))


def results(runs: Sequence[Run]) -> dict[str, Any]:
    plain, other = ([r for r in runs if bool(r.task.settings) == varied] for varied in (False, True))
    rows = {"compared": report.rows(plain), "varied": report.rows(other)}
    spent = sum(r["cpu_hours"] for each in rows.values() for r in each)
    seeds = sorted({r.task.seed for r in runs})
    return {"runs": len(runs), "seeds": seeds, "cpu_hours": {"proposals": spent}, **rows}


def markdown(results: dict[str, Any]) -> str:
    """The tables for the page of results."""
    return COLUMNS + "\n" + report.markdown(results["compared"], results["varied"])
