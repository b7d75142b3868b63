"""The registered benchmark: ``python -m benchmarks run peers``. smoke: three methods without other libraries, in seconds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.peers import report, runner
from benchmarks.peers.figures import draw
from benchmarks.peers.history import RESULTS
from benchmarks.peers.method import PEERS
from benchmarks.registry import benchmark

OURS = "hybrid"
SEEDS = {"quick": range(3), "full": range(10)}


@benchmark("peers", "optimizers of other libraries against ours, on mixed spaces with and without rules")
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    if size == "smoke":
        with tempfile.TemporaryDirectory() as folder:
            methods, names, budget = ["random", "mutation", OURS], ["branin-cat", "ising-rules"], 12
            todo = runner.tasks(methods, names, [0])
            failed = runner.work(todo, progress, budget, Path(folder))
            found = report.collect(methods, names, budget=budget, folder=Path(folder))
            return {"failed": failed, **_plain(report.summarise(found, OURS, budget))}
    methods = [OURS, *PEERS]
    todo = runner.missing(runner.tasks(methods, None, SEEDS[size]))
    failed = runner.coordinate(todo, 1, progress)
    found = report.collect(methods, seeds=SEEDS[size], folder=RESULTS)
    draw(found, RESULTS / "figures")
    return {"failed": failed, **_plain(report.summarise(found, OURS))}


def _plain(summary: dict[str, Any]) -> dict[str, Any]:
    return summary | {"tables": [asdict(t) for t in summary["tables"]]}


def markdown(results: dict[str, Any]) -> str:
    """The tables for the README."""
    tables = [report.Table(**(t | {"rows": [report.Row(**r) for r in t["rows"]]})) for t in results["tables"]]
    return report.markdown(results | {"tables": tables})
