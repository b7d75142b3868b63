"""Registered benchmark: ``python -m benchmarks run peers``. Smoke runs three methods without other libraries."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers import comparisons, report, runner
from benchmarks.peers.catalogue import OURS, PEERS
from benchmarks.peers.figures import draw
from benchmarks.peers.history import RESULTS, account, reader
from benchmarks.registry import benchmark

SEEDS = {"quick": range(3), "full": range(10)}
OUT = RESULTS / "peers.json"
COLUMNS = """Rank of the best loss after 60 evaluations, mean ± standard error over the runs that all methods of a table have;
regret in units of random search's; `matches it in`: evaluations in which ours has what the peer has after 60 (median); sign test;
CPU seconds per suggestion at evaluations 50 to 60 (median); illegal suggestions per run. Repair: an illegal suggestion is
replaced by the nearest legal configuration; BoTorch and Optuna's GP are not told of it here and repeat it. Penalty: it costs an
evaluation and is told as the worst loss so far, or as 500 on vae-proxy.
"""


@benchmark("peers", "optimizers of other libraries against ours, on mixed spaces with and without rules", OUT)
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    if size == "smoke":
        with tempfile.TemporaryDirectory() as folder:
            methods, names, budget = ["random", "mutation", OURS], ["branin-cat", "ising-rules"], 12
            todo = runner.tasks(methods, names, [0])
            failed = runner.work(todo, progress, budget, Path(folder))
            found = report.collect(methods, names, budget=budget, read=reader(Path(folder)))
            return {"failed": failed, **report.summarise(found, OURS, budget)}
    methods = [OURS, *PEERS]
    todo = runner.missing(runner.tasks(methods, None, SEEDS[size]))
    failed = runner.coordinate(todo, 1, progress)
    return {"failed": failed, **collected(methods, SEEDS[size])}


def collected(methods: Sequence[str] = (OURS, *PEERS), seeds: Sequence[int] = SEEDS["full"]) -> dict[str, Any]:
    """Return the results of the histories, and draw the figures."""
    read = reader(RESULTS)
    found = report.collect(methods, seeds=seeds, read=read)
    draw(found, RESULTS / "figures")
    runs = {(m, h.convention, h.key): h for of in found.runs.values() for m, by in of.items() for h in by.values()}
    return account(runs.values()) | report.summarise(found, OURS) | comparisons.collected(seeds, read)


def markdown(results: dict[str, Any], figures: str = "") -> str:
    """The tables for the page of results.

    Args:
        figures: their folder as the page sees it; empty: no pictures.
    """
    text = report.markdown(results)
    told = {t["convention"] for t in results["tables"]} if figures else set()
    pictures = [f"![average rank after each evaluation, {c}]({figures}/rank-{c}.svg)\n" for c in sorted(told)]
    return "\n".join([*([COLUMNS] if figures else []), text, *pictures, comparisons.markdown(results)]).rstrip() + "\n"
