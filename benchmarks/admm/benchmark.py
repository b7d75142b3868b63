"""The registered benchmark: ``python -m benchmarks run admm-artificial``. smoke: three methods on one instance, in seconds.

Its parts are run by ``python -m benchmarks.admm run --methods .. --instances ..``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.admm import report
from benchmarks.admm.runs import work
from benchmarks.admm.suite import BUDGET, FOLDER
from benchmarks.peers.history import History, read
from benchmarks.registry import benchmark

BANDIT, BO = "admm", "admm:z_min=gp"
SOUND, SLOW = "jopt", "skopt"
LABELS = {
    "random": "random, legal",
    SLOW: "JOPT(BO), scikit-optimize",
    SOUND: "JOPT(BO), sound: `jopt`",
    BANDIT: "AdADMM(BO,Ba): `admm`",
    BO: "AdADMM(BO,BO): `admm`, z_min='gp'",
    "optuna-tpe": "Optuna TPE",
    "smac": "SMAC3",
    "hybrid": "`hybrid`",
}
"""The methods, in the order of the tables."""
BUDGETS = {"random": 1000, SLOW: 50}
"""Evaluations of a run, where they are not those of the suite: random search costs nothing, scikit-optimize a second each."""
INSTANCES = {"quick": 5, "full": 13}
OUT = FOLDER / "admm-artificial.json"
PAPER = (
    "The papers, on their own machine and against scikit-optimize: (BO,Ba) has JOPT's final value 108 times (liu2020, Table A4) or "
    "140 times (ram2020) sooner and is 31 % or 29 % lower in the end; (BO,BO) 4 times (liu2020's text), 39 times (its Table A5) or "
    "120 times (ram2020) sooner and 27 % or 17 % lower.\n"
)
COLUMNS = """Instances of the artificial objective; 0 is the infimum. Ten initial evaluations each; CPU seconds are those of the
method, the evaluations themselves cost nothing. Ours pay for the study around them too (rules checked, state kept), which the
others' adapters do not. Medians over instances.
"""


@benchmark(
    "admm-artificial", "splitting methods on the artificial objective of their papers: evaluations and CPU seconds", OUT
)
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    if size == "smoke":
        with tempfile.TemporaryDirectory() as place:
            methods = ["random", SOUND, BANDIT]
            failed = work(methods, [0], lambda _: 14, Path(place), progress)
            return {"failed": failed, **collected(Path(place), methods, 14)}
    failed = work(list(LABELS), range(INSTANCES[size]), budget, FOLDER, progress)
    return {"failed": failed, **collected()}


def budget(method: str) -> int:
    """Evaluations of a run."""
    return BUDGETS.get(method, BUDGET)


def known(methods: Mapping[str, str] | list[str], folder: Path) -> dict[str, report.Runs]:
    """The runs that there are, those that are longer cut to their budget."""
    found = {method: {h.problem: _cut(h, budget(method)) for h in read(method, "", folder)} for method in methods}
    return {method: runs for method, runs in found.items() if runs}


def _cut(run: History, most: int) -> History:
    return replace(run, losses=run.losses[:most], legal=run.legal[:most], cpu=run.cpu[:most])


def collected(
    folder: Path = FOLDER, methods: Mapping[str, str] | list[str] = LABELS, evaluations: int = BUDGET
) -> dict[str, Any]:
    """What they come to."""
    runs = known(methods, folder)
    slow = min(evaluations, BUDGETS[SLOW])
    spent = sum(c for each in runs.values() for h in each.values() for c in h.cpu if c is not None) / 3600
    return {
        "runs": sum(map(len, runs.values())),
        "seeds": sorted({h.seed for each in runs.values() for h in each.values()}),
        "cpu_hours": {"proposals": spent},
        "rows": report.rows(runs),
        "pairs": {SOUND: report.pairs(runs, SOUND, evaluations), SLOW: report.pairs(runs, SLOW, slow)},
        "speedups": {SOUND: report.speedups(runs, SOUND, evaluations), SLOW: report.speedups(runs, SLOW, slow)},
    }


def markdown(results: dict[str, Any]) -> str:
    """The tables for the page of results."""
    number, label = report.number, lambda row: LABELS.get(row["method"], row["method"])
    parts = [COLUMNS, "Evaluations:\n"]
    parts.append(
        report.table(
            ["method", "runs", *(f"after {t}" for t in report.AT), "CPU s an ask"],
            [
                [label(r), str(r["runs"]), *(number(r["loss"][str(t)]) for t in report.AT), number(r["ask"], 2)]
                for r in results["rows"]
            ],
        )
    )
    parts.append("CPU seconds (nothing where a run had ended, or had not begun):\n")
    parts.append(
        report.table(
            ["method", *(f"{s:g} s" for s in report.SECONDS)],
            [[label(r), *(number(r["within"][str(s)]) for s in report.SECONDS)] for r in results["rows"]],
        )
    )
    for reference, rows in results["pairs"].items():
        if rows:
            parts.append(f"Paired with {LABELS[reference]}: ratio of losses at equal evaluations, geometric mean:\n")
            parts.append(
                report.table(
                    ["method", "pairs", "ratio", "better / worse", "p (Wilcoxon)"],
                    [
                        [
                            label(r),
                            str(r["runs"]),
                            number(r["ratio"]),
                            f"{r['wins']} / {r['losses']}",
                            number(r["p"], 2),
                        ]
                        for r in rows
                    ],
                )
            )
    parts.append(PAPER)
    for reference, rows in results["speedups"].items():
        if rows:
            parts.append(
                f"How many times sooner the final value of {LABELS[reference]} is reached, and how much lower:\n"
            )
            parts.append(
                report.table(
                    [
                        "method",
                        "reached",
                        "in evaluations",
                        "in CPU s",
                        "lower, equal evaluations",
                        "lower, equal CPU s",
                    ],
                    [
                        [
                            label(r),
                            f"{r['reached']} of {r['runs']}",
                            number(r["evaluations"]),
                            number(r["cpu"]),
                            percent(r["lower"]),
                            percent(r["lower_at_equal_cpu"]),
                        ]
                        for r in rows
                    ],
                )
            )
    return "\n".join(parts)


def percent(share: float | None) -> str:
    """As the tables have it."""
    return "" if share is None else f"{100 * share:.0f} %"
