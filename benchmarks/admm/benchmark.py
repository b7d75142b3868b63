"""Registered benchmark: ``python -m benchmarks run admm-artificial``. Smoke runs three methods on one instance.

The seed is the instance. To run parts:

    python -m benchmarks.peers run --suite artificial --methods .. --problems artificial-3 --seeds 3
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.admm import report
from benchmarks.admm.suite import BUDGET, FOLDER, NAME
from benchmarks.peers import runner
from benchmarks.peers.catalogue import installed
from benchmarks.peers.history import History, account, read
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
"""Methods and their labels, in the order of the tables. The runs of scikit-optimize are by commit 1d32fc89."""
SHORT = 50
BUDGETS = {"random": 1000, SLOW: SHORT, "smac": SHORT}
"""Evaluations of a run, if they differ from the suite: random search is free, while scikit-optimize takes a second and
SMAC3 a fifth of a second for each."""
LONG = "long"
"""Folder of runs of 500 evaluations, compared with scikit-optimize at equal CPU seconds."""
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


@benchmark("admm-artificial", "splitting methods on the artificial objective of their papers: evaluations and CPU seconds", OUT)
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    if size == "smoke":
        with tempfile.TemporaryDirectory() as place:
            methods = ["random", SOUND, BANDIT]
            failed = work(methods, [0], lambda _: 14, Path(place), progress)
            return {"failed": failed, **collected(Path(place), methods, 14)}
    failed = work([name for name in LABELS if name != SLOW], range(INSTANCES[size]), budget, FOLDER, progress)
    return {"failed": failed, **collected()}


def work(
    methods: Sequence[str], instances: Sequence[int], budget: Callable[[str], int], folder: Path, progress: Callable[[str], None]
) -> int:
    """Execute the missing runs here, instance by instance, and return the number of failed runs."""
    there = installed(methods, progress)
    tasks = [runner.Task(m, f"{NAME}-{k}", k, "", NAME) for k in instances for m in there]
    return sum(runner.work(runner.missing([t], budget(t.method), folder), progress, budget(t.method), folder) for t in tasks)


def budget(method: str) -> int:
    """Return the number of evaluations of a run."""
    return BUDGETS.get(method, BUDGET)


def known(methods: Mapping[str, str] | list[str], folder: Path) -> dict[str, report.Runs]:
    """Return the existing runs, truncated to the budget of their method."""
    found = _read(methods, folder)
    return {method: {p: _cut(h, budget(method)) for p, h in runs.items()} for method, runs in found.items()}


def _read(methods: Mapping[str, str] | list[str], folder: Path) -> dict[str, dict[str, History]]:
    found = {method: {h.problem: h for h in read(method, "", folder)} for method in methods}
    return {method: runs for method, runs in found.items() if runs}


def _cut(run: History, most: int) -> History:
    return replace(run, losses=run.losses[:most], legal=run.legal[:most], cpu=run.cpu[:most])


def collected(folder: Path = FOLDER, methods: Mapping[str, str] | list[str] = LABELS, evaluations: int = BUDGET) -> dict[str, Any]:
    """Return the results of the existing runs."""
    runs = known(methods, folder)
    short = min(evaluations, SHORT)
    longer = runs | {method: runs.get(method, {}) | more for method, more in _read(methods, folder / LONG).items()}
    return account(h for each in runs.values() for h in each.values()) | {
        "rows": report.rows(runs),
        "pairs": {str(t): report.pairs(runs, SOUND, t) for t in sorted({short, evaluations})},
        "speedups": {SOUND: report.speedups(runs, SOUND, evaluations), SLOW: report.speedups(longer, SLOW, short)},
    }


def markdown(results: dict[str, Any]) -> str:
    """The tables for the page of results."""
    parts = [COLUMNS, "Evaluations:\n", _by_evaluations(results["rows"])]
    parts += ["CPU seconds (nothing where a run had ended, or had not begun):\n", _by_seconds(results["rows"])]
    for evaluations, rows in results["pairs"].items():
        head = f"Ratio of the losses to those of {LABELS[SOUND]} after {evaluations} evaluations, geometric mean:\n"
        parts += [head, _pairs(rows)] if rows else []
    parts.append(PAPER)
    for reference, rows in results["speedups"].items():
        head = (
            f"How many times sooner the final value of {LABELS[reference]} is reached (-: on half of the instances or fewer), and "
            "how much lower a method then is:\n"
        )
        parts += [head, _speedups(rows)] if rows else []
    return "\n".join(parts)


def _by_evaluations(rows: list[dict[str, Any]]) -> str:
    losses = [[report.number(r["loss"][str(t)]) for t in report.AT] for r in rows]
    lines = [[_label(r), str(r["runs"]), *known, report.number(r["ask"], 2)] for r, known in zip(rows, losses, strict=True)]
    return report.table(["method", "runs", *(f"after {t}" for t in report.AT), "CPU s an ask"], lines)


def _by_seconds(rows: list[dict[str, Any]]) -> str:
    lines = [[_label(r), *(report.number(r["within"][str(s)]) for s in report.SECONDS)] for r in rows]
    return report.table(["method", *(f"{s:g} s" for s in report.SECONDS)], lines)


def _pairs(rows: list[dict[str, Any]]) -> str:
    lines = [
        [_label(r), str(r["runs"]), report.number(r["ratio"]), f"{r['wins']} / {r['losses']}", report.number(r["p"], 2)]
        for r in rows
    ]
    return report.table(["method", "pairs", "ratio", "better / worse", "p (Wilcoxon)"], lines)


def _speedups(rows: list[dict[str, Any]]) -> str:
    head = ["method", "reached", "in evaluations", "in CPU s", "lower, equal evaluations", "lower, equal CPU s"]
    lines = [
        [
            _label(r),
            f"{r['reached']} of {r['runs']}",
            *(report.number(r[axis]) if r[axis] else "-" for axis in ("evaluations", "cpu")),
            *(percent(r[axis]) for axis in ("lower", "lower_at_equal_cpu")),
        ]
        for r in rows
    ]
    return report.table(head, lines)


def _label(row: dict[str, Any]) -> str:
    return LABELS.get(row["method"], row["method"])


def percent(share: float | None) -> str:
    """Format a share for the tables."""
    return "" if share is None else f"{100 * share:.0f} %"
