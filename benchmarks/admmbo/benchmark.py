"""The registered benchmark: ``python -m benchmarks run admmbo``. smoke: two methods from one start, in seconds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.admmbo import report
from benchmarks.admmbo.plan import compared, interleaved
from benchmarks.admmbo.runner import APART, RANDOM, Run, Task, read, work
from benchmarks.registry import benchmark

RESULTS = Path(__file__).resolve().parents[1] / "results" / "admmbo"
RUNS, EARLY = RESULTS / "runs.jsonl", RESULTS / "early.jsonl"
"""Whole runs, and runs from further starts that were broken off early."""
STARTS = {"quick": (5, 0), "full": (100, 25)}
"""From which all methods run, and other penalties."""
COLUMNS = """Two random points, then as in ariafar2019, Section 5.1: M = 50, rho = 0.1, epsilon = 0.01, 20 steps of each subproblem
in the first iteration, 2 in the others. Counts are evaluations of single outputs, of which a joint one is N + 1; "apart": ADMMBO
evaluates one output at a time, "together": all, and shares the steps. Regret: the least loss that keeps the limits among all
configurations of which any output was evaluated, less the optimum. CPU seconds: mean of a proposal.
"""
SUMMARY = "ADMMBO on the problems of its paper: feasible, converged, stopped; and other penalties"


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
    return results(work(todo, RUNS, progress), read(EARLY))


def collected() -> dict[str, Any]:
    """What the runs that there are come to, be it a part."""
    return results(read(RUNS), read(EARLY))


def results(runs: Sequence[Run], early: Sequence[Run] = ()) -> dict[str, Any]:
    plain, other = ([r for r in runs if bool(r.task.settings) == varied] for varied in (False, True))
    rows = {"compared": report.rows(plain, early), "varied": report.rows(other)}
    spent = sum(r["cpu_hours"] for each in rows.values() for r in each)
    seeds = sorted({r.task.seed for r in runs})
    return {"runs": len(runs), "seeds": seeds, "cpu_hours": {"proposals": spent}, **rows}


def markdown(results: dict[str, Any]) -> str:
    """The tables for the page of results."""
    return COLUMNS + "\n" + report.markdown(results["compared"], results["varied"])
