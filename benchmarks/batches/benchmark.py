"""The registered benchmark: ``python -m benchmarks run batches``. smoke: ours alone on two problems, in seconds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.batches import report, runner
from benchmarks.batches.methods import make_batch_method
from benchmarks.batches.runner import RESULTS, SIZES
from benchmarks.peers.history import account
from benchmarks.peers.loading import installed
from benchmarks.registry import benchmark

OURS = "hybrid"
PEERS = ("optuna-tpe", "botorch")
SEEDS = {"quick": range(2), "full": range(10)}
OUT = RESULTS / "batches.json"
COLUMNS = """60 evaluations, ten of them initial, one at a time and in batches of which all is told together. Regret in units of
random search's, mean over problems of medians over seeds ± standard error; its ratio to that of the same method one at a time;
CPU seconds a suggestion (mean). Illegal suggestions are replaced by the nearest legal configuration. Optuna: TPE with
`constant_liar=True`; BoTorch: q-log expected improvement with `X_pending`, greedily.
"""


@benchmark("batches", "evaluations in batches of 4 and 8 against one at a time, ours and other libraries", OUT)
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    if size == "smoke":
        with tempfile.TemporaryDirectory() as place:
            folder, names, budget = Path(place), ["branin-cat", "ising-rules"], 14
            todo = runner.tasks(["random", OURS], names, [0], (1, 4))
            failed = runner.work(todo, progress, budget, folder, folder)
            return {"failed": failed, **_tables([OURS], names, (1, 4), budget, folder)}
    methods = [OURS, *installed(PEERS, make_batch_method, progress)]
    ours = runner.tasks([OURS], runner.PROBLEMS, SEEDS[size], (1,))
    todo = runner.missing([*ours, *runner.tasks(methods, runner.PROBLEMS, SEEDS[size], SIZES)])
    return {"failed": runner.work(todo, progress), **collected()}


def collected() -> dict[str, Any]:
    """What the histories come to: all methods on what they have in common, and ours on all that it has."""
    found = _tables([OURS, *PEERS])
    rows = report.collect([OURS, *PEERS])
    # one at a time the peers' own histories are read, more of them than are compared
    runs = [h for (m, b), of in rows.items() if m == OURS or b > 1 for h in of.values()]
    return account(runs) | found


def _tables(
    methods: Sequence[str],
    names: Sequence[str] = runner.PROBLEMS,
    batches: Sequence[int] = (1, *SIZES),
    budget: int = runner.BUDGET,
    folder: Path = RESULTS,
) -> dict[str, Any]:
    together = report.summarise(report.collect(methods, names, batches, budget, folder), OURS, budget)
    alone = report.summarise(report.collect([OURS], names, batches, budget, folder), OURS, budget)
    return {"ours": OURS, "together": together, "alone": [] if alone == together else alone}


def markdown(results: dict[str, Any]) -> str:
    """The tables for the page of results."""
    parts = [COLUMNS, report.markdown(results["together"], results["ours"])]
    if results["alone"]:
        parts += [
            f"`{results['ours']}` alone, on all of its runs:\n",
            report.markdown(results["alone"], results["ours"]),
        ]
    return "\n".join(parts)
