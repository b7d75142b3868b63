"""Registered benchmark: ``python -m benchmarks run limits``. Smoke runs ours and random search on three problems.

To run parts: ``python -m benchmarks.peers run --suite limits --methods .. --problems .. --seeds ..``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.limits import report
from benchmarks.limits.suite import FLAT, FOLDER, METHODS, SUITE
from benchmarks.peers import runner
from benchmarks.peers.catalogue import OURS, installed
from benchmarks.peers.history import Reader, account, reader
from benchmarks.registry import benchmark

SEEDS = {"quick": range(2), "full": range(5)}
OUT = FOLDER / "limits.json"
COLUMNS = """50 evaluations, ten of them initial (legal samples, the same for all other libraries' methods; ours makes its own).
`rank` of the best loss that keeps all limits, ± standard error; regret: 0 is the optimum, 1 what random search comes to, at most
2, which a run that never keeps the limits counts as; `first kept`: the evaluation that first keeps all limits (51: never, whose
number stands beside it); `violating`: share of evaluations that break a limit or crash; `illegal`: suggestions per run that
break a known rule, each replaced by the nearest legal configuration.
"""


@benchmark("limits", "limits that only an evaluation tells, beside rules: ours and other libraries' methods", OUT)
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    if size == "smoke":
        with tempfile.TemporaryDirectory() as place:
            folder, names, budget = Path(place), ["admmbo-17", "solvers", "spring-limits"], 12
            methods = [OURS, "random"]
            todo = runner.tasks(methods, names, [0], SUITE.conventions, SUITE.name)
            failed = runner.work(todo, progress, budget, folder)
            made = report.table("smoke", methods, OURS, names, budget=budget, read=reader(folder))
            return {"failed": failed, "tables": [made]}
    wanted = runner.tasks(installed(METHODS, progress), None, SEEDS[size], SUITE.conventions, SUITE.name)
    failed = runner.work(runner.missing(wanted, SUITE.budget, FOLDER), progress, SUITE.budget, FOLDER)
    return {"failed": failed, **collected()}


def collected(read: Reader | None = None) -> dict[str, Any]:
    """Return the results of the histories."""
    read = read or reader(FOLDER)
    cheap = [m for m in METHODS if m not in ("botorch-constrained", "optuna-gp-constrained")]
    tables = [
        report.table("All methods", METHODS, OURS, read=read),
        report.table("All methods, problems without conditions", METHODS, OURS, FLAT, read=read),
        report.table("Without BoTorch", [m for m in METHODS if m != "botorch-constrained"], OURS, read=read),
        report.table("Without BoTorch and Optuna's GP", cheap, OURS, read=read),
    ]
    kept: list[dict[str, Any]] = []
    for made in tables:  # fewer methods only if they have more common runs
        same = [t["pairs"] for t in kept if made and set(t["problems"]) == set(made["problems"])]
        if made and made["pairs"] > max(same, default=0):
            kept.append(made)
    runs = [h for m in METHODS for rule in ("", "repair") for h in read(m, rule)]
    return account(runs) | {"tables": kept}


def markdown(results: dict[str, Any]) -> str:
    """The tables for the page of results."""
    return "\n".join([COLUMNS, *(report.markdown(t) for t in results["tables"] if t)])
