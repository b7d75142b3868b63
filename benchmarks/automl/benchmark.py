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
from benchmarks.automl.data import ALL, ROWS, USUAL_SETS, is_there, split
from benchmarks.automl.record import FOLDER, runs
from benchmarks.registry import benchmark

SPACE = "usual"
SIZES: dict[str, tuple[int, Path]] = {"at most 400 rows": (ROWS, FOLDER / SPACE), "all rows": (ALL, FOLDER / f"{SPACE}-all")}
"""Maximum number of rows to search on, and folder of the runs. With all rows, only sets with more than ROWS are run."""
SEEDS = {"quick": range(1), "full": range(3)}
OUT = FOLDER / "automl.json"
SMOKE = ("random", "hybrid")
COLUMNS = """Every configuration is fitted on the same five folds. Loss: 1 - AUC, of more than two classes one against the rest, or
1 - R2, on a third of all rows (at most 2,000) that no search sees; seed k leaves out the k-th third. `search said`: what
cross-validation had promised. CPU seconds: medians of searching, without the last fit. Ranks (of the runs that all methods have)
and differences (of the runs that a method shares with the reference) with 95 % intervals over sets. p: Wilcoxon's test over sets,
two-sided, by Holm's method for the comparisons of the rows with equal `after`.
"""


@benchmark("automl", "pipelines on rows that no search sees: our default, FLAML, TPOT, TPE, SMAC3, random", OUT)
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    if size == "smoke":
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            todo = runner.tasks(SMOKE, ["wine"], [0], SPACE)
            failed = runner.work(todo, progress, 10, SPACE, folder)
            return {"failed": failed, **collected({"at most 400 rows": (ROWS, folder)})}
    methods, failed = runner.installed(report.METHODS, progress), 0
    large = [name for name in USUAL_SETS if is_there(name) and len(split(name, 0, ALL).y) > ROWS]
    for rows, folder in SIZES.values():
        wanted = runner.tasks(methods, large if rows == ALL else None, SEEDS[size], SPACE)
        failed += runner.work(runner.missing(wanted, folder=folder), progress, space=SPACE, folder=folder, rows=rows)
    return {"failed": failed, **collected()}


def collected(sizes: dict[str, tuple[int, Path]] = SIZES) -> dict[str, Any]:
    """Return the results of the records."""
    made = {rows: runs(report.METHODS, folder) for rows, (_, folder) in sizes.items()}
    every = [run for of in made.values() for by_key in of.values() for run in by_key.values()]
    return {
        "runs": len(every),
        "seeds": sorted({run.seed for run in every}),
        "cpu_hours": {"searches": sum(run.seconds["search"] for run in every) / 3600},
        "tables": [table for rows, of in made.items() for table in report.tables(of, rows)],
    }


def markdown(results: dict[str, Any]) -> str:
    """The tables for the page of results."""
    return "\n".join([COLUMNS, *report.markdown(results["tables"])])
