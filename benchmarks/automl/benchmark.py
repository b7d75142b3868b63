"""Registered benchmark ``automl``: our search of the usual space against other searches and programs on unseen rows.

Ours is the search of ``PipelineSearchCV()``: ``hybrid``, with scikit-learn's defaults first. To run parts of it:
``python -m benchmarks.automl run --space usual --results benchmarks/results/automl/usual --methods .. --data .. --seeds ..``;
``python -m benchmarks collect automl`` writes the record.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.automl import report, runner
from benchmarks.automl.record import FOLDER, runs
from benchmarks.registry import benchmark

SEEDS = {"quick": range(1), "full": range(3)}
SPACE = "usual"
KEPT = FOLDER / SPACE
OUT = FOLDER / "automl.json"
SMOKE = ("random", "hybrid")
COLUMNS = """Every configuration is fitted on the same five folds of at most 400 rows. Loss: 1 - AUC, of more than two classes one
against the rest, or 1 - R2, on a third of all rows (at most 2,000) that no search sees; seed k leaves out the k-th third.
`search said`: what cross-validation had promised. CPU seconds: medians of searching, without the last fit. Ranks and differences
with 95 % intervals over sets. p: Wilcoxon's test over sets, two-sided, by Holm's method for the comparisons of the row.
"""


@benchmark("automl", "pipelines on rows that no search sees: our default, FLAML, TPOT, TPE, SMAC3, random", OUT)
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    if size == "smoke":
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            todo = runner.tasks(SMOKE, ["wine"], [0], SPACE)
            failed = runner.work(todo, progress, 10, SPACE, folder)
            return {"failed": failed, **collected(folder)}
    methods = runner.installed(report.METHODS, progress)
    todo = runner.missing(runner.tasks(methods, None, SEEDS[size], SPACE), folder=KEPT)
    failed = runner.work(todo, progress, space=SPACE, folder=KEPT)
    return {"failed": failed, **collected()}


def collected(folder: Path = KEPT) -> dict[str, Any]:
    """Return the results of the records."""
    made = runs(report.METHODS, folder)
    every = [run for of in made.values() for run in of.values()]
    return {
        "runs": len(every),
        "seeds": sorted({run.seed for run in every}),
        "cpu_hours": {"searches": sum(run.seconds["search"] for run in every) / 3600},
        "tables": report.tables(made),
    }


def markdown(results: dict[str, Any]) -> str:
    """The tables for the page of results."""
    made = results["tables"]
    of_sets = [t for t in made if t["title"] == "The ensemble and single pipelines"][2:3]
    return "\n".join([COLUMNS, *report.markdown(made), *(line for t in of_sets for line in report.sets_markdown(t))])
