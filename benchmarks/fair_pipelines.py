"""Pipelines under constraints on latency and on differences between groups: Figures 2 and 3 of liu2020 (ram2020: Figure 2).

A run that is told the constraints is compared with one that is not, whose configurations are filtered afterwards. One
threshold varies, and the other one stays: share of evaluated pipelines that satisfy both, and least loss, 1 - AUC, among
them. The papers use Home Credit Default Risk, which needs an account; these are German credit by age and page-blocks by
the height of a block. Latency is the CPU time per row; the disparity is that of error rates (liu2020, eq. A43).

Needed: ``german.csv.gz`` and ``page-blocks0.csv.gz`` in the folder of ``MIPCASH_DATA``. The smoke size uses
scikit-learn's breast cancer.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

import mipcash as mc
from benchmarks.raw import append_line, lines
from benchmarks.records import FOLDER
from benchmarks.registry import Progress, benchmark
from mipcash.integrations.sklearn.cross_validated import CrossValidated
from mipcash.models._automl_algorithms import SMALL
from mipcash.models._data import Groups, Table, table
from mipcash.models._pipeline_measures import objective_of
from mipcash.models._pipeline_parts import Facts
from mipcash.models.sklearn_pipeline import Pipelines

Limits = dict[str, float]
LATENCY, DISPARITY = "latency_ms", "disparity"
FOLDS, ROWS = 3, 500
BUDGET = {"smoke": 3, "quick": 25, "full": 25}
SEEDS = {"smoke": 1, "quick": 2, "full": 10}
TOLD = {"smoke": ("hybrid",), "quick": ("hybrid", "admm"), "full": ("hybrid", "admm")}
"""Optimizers whose runs are told the constraints, and not."""
METHODS = {"hybrid": "`hybrid`", "admm": "AdADMM(BO,Ba): `admm`", "random": "random, legal"}
RUNS = FOLDER / "fair-pipelines" / "runs.jsonl"


@dataclass(frozen=True)
class Case:
    """Data set with its groups and thresholds.

    Attributes:
        name: of the data set.
        groups: description, for the table.
        protected: column of the groups.
        edges: values that cut the column; None: quarters.
        latencies, disparities: thresholds, in milliseconds per 1,000 rows and as differences of error rates. The middle
            ones stay while the others vary.
    """

    name: str
    groups: str
    protected: str
    edges: str | None
    latencies: tuple[float, ...]
    disparities: tuple[float, ...]

    @property
    def limits(self) -> list[Limits]:
        """Pairs of thresholds."""
        latency, disparity = self.latencies[len(self.latencies) // 2], self.disparities[len(self.disparities) // 2]
        pairs = dict.fromkeys([(t, disparity) for t in self.latencies] + [(latency, d) for d in self.disparities])
        return [{LATENCY: t, DISPARITY: d} for t, d in pairs]


CASES = (
    Case("german", "age: below 30, 30 to 40, 40 to 50, from 50", "x13", "30,40,50", (3, 5, 7), (0.09, 0.11, 0.13)),
    Case("page-blocks0", "height of the block, quarters", "x1", None, (1.4, 2, 3), (0.08, 0.12, 0.16)),
)
STAND_IN = Case("breast_cancer", "mean radius, halves", "0", None, (5,), (0.05, 0.1))


@dataclass(frozen=True)
class Run:
    """Result of a run.

    Attributes:
        data, optimizer, limits, seed: what was run. None: the run was not told the constraints.
        cpu: CPU seconds, evaluations included.
        evaluations: outputs of each evaluation; None for a failure.
    """

    data: str
    optimizer: str
    limits: Limits | None
    seed: int
    cpu: float
    evaluations: list[Limits | None]

    @property
    def key(self) -> str:
        return json.dumps([self.data, self.optimizer, self.limits, self.seed])

    def feasible(self, limits: Limits) -> list[float]:
        """Return the losses of the evaluations that satisfy the constraints."""
        return [e["loss"] for e in self.evaluations if e and all(e[name] <= most for name, most in limits.items())]


def problem(case: Case, seed: int) -> tuple[mc.Space, CrossValidated]:
    """Return the space and the objective. The rows are the same for all seeds, the folds are not."""
    whole = table(case.name)
    if case is STAND_IN:
        radius = whole.x[:, int(case.protected)]
        groups = Groups("mean radius", ("small", "large"), (radius > np.median(radius)).astype(np.int64))
    else:
        groups = whole.grouped(case.protected, case.edges)
    rows = np.arange(len(whole.y))
    if len(rows) > ROWS:
        rows = np.sort(train_test_split(rows, train_size=ROWS, stratify=whole.y, random_state=0)[0])
    data = Table(whole.x[rows], whole.y[rows], whole.source)
    pipelines = Pipelines("a3", False, data.x.shape[1], SMALL, seed=seed)
    kept = replace(groups, codes=groups.codes[rows])
    objective = objective_of(pipelines, data, "roc_auc", FOLDS, seed, kept, clock="cpu")
    return pipelines.declare(Facts.of(data, FOLDS)), objective


def run_one(case: Case, optimizer: str, limits: Limits | None, seed: int, budget: int) -> Run:
    """Run an optimizer that is told the constraints, or is not."""
    space, objective = problem(case, seed)
    began = time.process_time()
    with threadpool_limits(1):
        result = mc.minimize(objective, space, budget, optimizer=optimizer, seed=seed, limits=limits, progress=False)
    outputs = [
        None if t.loss is None else {"loss": t.loss, **{n: float(t.outcome[n].value) for n in (LATENCY, DISPARITY)}}  # type: ignore[arg-type]
        for t in result.history
    ]
    return Run(case.name, optimizer, limits, seed, time.process_time() - began, outputs)


def plan(size: str) -> Iterable[tuple[Case, str, Limits | None, int]]:
    """Return all runs, seed by seed, so that an interruption leaves complete seeds."""
    for seed in range(SEEDS[size]):
        for case in (STAND_IN,) if size == "smoke" else CASES:
            yield case, "random", None, seed
            for optimizer in TOLD[size]:
                for limits in (None, *case.limits):
                    yield case, optimizer, limits, seed


@benchmark("fair-pipelines", "pipelines under constraints on latency and on differences between groups, told or filtered")
def run(size: str, progress: Progress) -> dict[str, Any]:
    return results(work(plan(size), BUDGET[size], progress, None if size == "smoke" else RUNS))


def work(todo: Iterable[tuple[Case, str, Limits | None, int]], budget: int, progress: Progress, path: Path | None) -> list[Run]:
    """Execute the runs that a file lacks (None: keep no runs), and return all of them."""
    there = {r.key: r for r in read(path)} if path else {}
    for case, optimizer, limits, seed in todo:
        key = Run(case.name, optimizer, limits, seed, 0.0, []).key
        if key not in there:
            there[key] = made = run_one(case, optimizer, limits, seed, budget)
            progress(f"{case.name}, {optimizer}, {limits}, seed {seed}: {made.cpu:.0f} CPU s")
            if path:
                append_line(path, json.dumps(asdict(made)))
    return list(there.values())


def read(path: Path) -> list[Run]:
    """Return the runs of a file; empty if there is no file."""
    return [Run(**json.loads(line)) for line in lines(path)]


def collected() -> dict[str, Any]:
    """Return the results of the kept runs."""
    return results(read(RUNS))


def results(runs: Sequence[Run]) -> dict[str, Any]:
    """Return for each data set and pair of thresholds the share of feasible evaluations and the best feasible loss of each run."""
    rows = []
    for case in (STAND_IN, *CASES):
        of = [r for r in runs if r.data == case.name]
        for limits in case.limits if of else ():
            for optimizer, told in [(o, t) for o in METHODS for t in (True, False)]:
                mine = [r for r in of if r.optimizer == optimizer and r.limits == (limits if told else None)]
                if mine:
                    found = {str(r.seed): r.feasible(limits) for r in mine}
                    rows.append(
                        {
                            **{"data": case.name, "groups": case.groups, "limits": limits, "optimizer": optimizer, "told": told},
                            "share": {s: len(v) / len(r.evaluations) for (s, v), r in zip(found.items(), mine, strict=True)},
                            "best": {s: min(v, default=None) for s, v in found.items()},
                        }
                    )
    hours = {"runs, evaluations included": sum(r.cpu for r in runs) / 3600}
    return {"runs": len(runs), "seeds": sorted({r.seed for r in runs}), "cpu_hours": hours, "rows": rows}


def markdown(results: Mapping[str, Any]) -> str:
    """The tables for the page of results."""
    made = [
        f"Space A3 with small ranges, {BUDGET['full']} evaluations of {FOLDS} folds a run, at most {ROWS} rows of each data set. "
        "Means ± standard errors over seeds. *Told*: the optimizer knows the constraints; *filtered*: it does not, and the "
        "configurations that violate them are left out afterwards."
    ]
    for name in dict.fromkeys(row["data"] for row in results["rows"]):
        of = [row for row in results["rows"] if row["data"] == name]
        made += ["", f"**{name}**, groups by {of[0]['groups']}", ""]
        made += ["| µs a row | disparity | method | share that satisfies both | best loss | runs without any |", "|---" * 6 + "|"]
        for row in of:
            best = [v for v in row["best"].values() if v is not None]
            method = METHODS[row["optimizer"]] + (", told" if row["told"] else ", filtered")
            cells = [
                f"{row['limits'][LATENCY]:g}",
                f"{row['limits'][DISPARITY]:g}",
                method,
                mean_and_error(row["share"].values(), 2),
            ]
            cells += [mean_and_error(best, 4), f"{len(row['best']) - len(best)} of {len(row['best'])}"]
            made.append(f"| {' | '.join(cells)} |")
    return "\n".join(made)


def mean_and_error(values: Iterable[float], digits: int) -> str:
    """Format a mean ± its standard error."""
    all_of = list(values)
    if not all_of:
        return "-"
    error = f" ± {np.std(all_of, ddof=1) / math.sqrt(len(all_of)):.{digits}f}" if len(all_of) > 1 else ""
    return f"{np.mean(all_of):.{digits}f}{error}"
