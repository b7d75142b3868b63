"""``admm-settings``: rho over four decades and f-hat, on the artificial objective."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.admm import report
from benchmarks.admm.benchmark import known
from benchmarks.admm.runs import work
from benchmarks.admm.suite import BUDGET, FOLDER
from benchmarks.peers.history import account
from benchmarks.registry import benchmark

PAPER = "admm:rho=1.0"
LABELS = {
    PAPER: "rho = 1, the papers'; f-hat by rank, I = 4 + 2 t, warm starts",
    "admm": "the default, rho = 0.01",
    "admm:rho=0.0": "rho = 0",
    "admm:rho=0.1": "rho = 0.1",
    "admm:rho=10.0": "rho = 10",
    "admm:rho=100.0": "rho = 100",
    "admm:rho=1.0,f_hat=quantile": "rho = 1, f-hat: 0.9 quantile of what is known",
    "admm:rho=1.0,f_hat=0.7": "rho = 1, f-hat = 0.7, the papers'",
    "admm:rho=1.0,f_hat=5.0": "rho = 1, f-hat = 5",
    "random": "random search",
}
INSTANCES = {"quick": 3, "full": 13}
OUT = FOLDER / "admm-settings.json"
COLUMNS = """Median loss over instances; ratio: of the losses on the same instance to those of rho = 1, geometric mean. In ram2020
(appendix D) ADMM is "fairly robust" to rho from its figure, over 20 trials and in wall-clock time.
"""


@benchmark("admm-settings", "rho over four decades and f-hat of ADMM on the artificial objective", OUT)
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    if size == "smoke":
        with tempfile.TemporaryDirectory() as place:
            methods = [PAPER, "admm:rho=100.0,f_hat=quantile"]
            failed = work(methods, [0], lambda _: 13, Path(place), progress)
            return {"failed": failed, **collected(Path(place), methods, 13)}
    failed = work(list(LABELS), range(INSTANCES[size]), lambda _: BUDGET, FOLDER, progress)
    return {"failed": failed, **collected()}


def collected(
    folder: Path = FOLDER, methods: Mapping[str, str] | list[str] = LABELS, evaluations: int = BUDGET
) -> dict[str, Any]:
    """What the runs that there are come to."""
    runs = known(methods, folder)
    return account(h for each in runs.values() for h in each.values()) | {
        "rows": report.rows(runs),
        "pairs": report.pairs(runs, PAPER, evaluations),
    }


def markdown(results: dict[str, Any]) -> str:
    """The table for the page of results."""
    paired = {r["method"]: r for r in results["pairs"]}
    lines = []
    for row in results["rows"]:
        pair = paired.get(row["method"])
        compared = ["", "", "", ""]
        if pair is not None:
            won = f"{pair['wins']} / {pair['losses']}"
            compared = [str(pair["runs"]), report.number(pair["ratio"]), won, report.number(pair["p"], 2)]
        losses = [report.number(row["loss"][str(t)]) for t in report.AT]
        lines.append([LABELS.get(row["method"], row["method"]), str(row["runs"]), *losses, *compared])
    head = ["settings", "runs", *(f"after {t}" for t in report.AT), "pairs", "ratio", "better / worse", "p (Wilcoxon)"]
    return COLUMNS + "\n" + report.table(head, lines)
