"""Registered benchmark ``automl``: our default against FLAML, TPOT, TPE, SMAC3 and random search on unseen rows.

To run parts of it: ``python -m benchmarks.automl run --methods .. --data .. --seeds ..``;
``python -m benchmarks collect automl`` writes the record.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.automl import report, runner
from benchmarks.automl.data import USUAL_SETS
from benchmarks.automl.record import FOLDER, runs
from benchmarks.registry import benchmark

SEEDS = {"quick": range(1), "full": range(3)}
OUT = FOLDER / "automl.json"
SMOKE = ("random", "hybrid")
COLUMNS = """40 configurations of every method, each fitted on the same five folds of at most 400 rows: 200 fits. Loss: 1 - AUC,
of more than two classes one against the rest, on a third of all rows (at most 2,000) that no search sees; seed k leaves out the
k-th third. `search said`: what cross-validation had promised; `fits`: those that did not fail; CPU seconds: medians of searching,
without the last fit. Ranks ± standard error over sets; differences likewise; two-sided tests.
"""


@benchmark("automl", "pipelines on rows that no search sees: our default, FLAML, TPOT, TPE, SMAC3, random", OUT)
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    if size == "smoke":
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            todo = runner.tasks(SMOKE, ["wine"], [0])
            failed = runner.work(todo, progress, 3, folder=folder)
            return {"failed": failed, **collected(folder)}
    methods = runner.installed(report.METHODS, progress)
    todo = runner.missing(runner.tasks(methods, None, SEEDS[size]))
    failed = runner.work(todo, progress)
    return {"failed": failed, **collected()}


def collected(folder: Path = FOLDER) -> dict[str, Any]:
    """Return the results of the records."""
    found = runs(report.METHODS, folder)
    mine = {(name, seed) for name in USUAL_SETS for seed in SEEDS["full"]}  # others are those of ``admm-real``
    made = {m: {key: run for key, run in of.items() if key in mine} for m, of in found.items()}
    every = [run for of in made.values() for run in of.values()]
    tables = {title: report.table(made, contenders) for title, contenders in report.TABLES.items()}
    return {
        "runs": len(every),
        "seeds": sorted({run.seed for run in every}),
        "cpu_hours": {"searches": sum(run.seconds["search"] for run in every) / 3600},
        "tables": tables,
    }


def markdown(results: dict[str, Any]) -> str:
    """The tables for the page of results."""
    lines = [COLUMNS]
    for k, (title, made) in enumerate(results["tables"].items()):
        lines += report.markdown(title, made)
        lines += report.sets_markdown(made) if k == 0 else []
    return "\n".join(lines)
