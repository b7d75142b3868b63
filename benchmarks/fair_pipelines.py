"""Pipelines under limits on latency and on differences between groups, as in Fig. 2 and 3 of liu2020 (ram2020: Fig. 2).

A run that is told the limits (CST) is compared with one that is not and filtered afterwards (UCST), at thresholds of one limit
while the other stays: the share of evaluated pipelines that keep both, and the least loss, 1 - AUC, among these. The papers take
Home Credit Default Risk, which cannot be had without an account; here German credit by age and page-blocks by the height of a
block. What is found is evaluated once more on fresh folds, where a limit that was kept by chance shows.

Latency is the CPU time per row, so that what else the machine does adds nothing; the disparity that of error rates (Eq. A43).
Needed: ``german.csv.gz`` and ``page-blocks0.csv.gz`` in the folder of ``MIPCASH_DATA``; the smoke size takes scikit-learn's
breast cancer.

Every run is kept in a file of its own, in a folder of its code's version, until all are there, so that a benchmark that was stopped
goes on; ``python -m benchmarks.fair_pipelines`` makes the record of a quick run out of what is there.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import mipcash as mc
from benchmarks.records import FOLDER, keep_part
from benchmarks.registry import Progress, benchmark
from mipcash.errors import ModelError
from mipcash.integrations.sklearn.cross_validated import CrossValidated
from mipcash.models._automl_algorithms import SMALL
from mipcash.models._data import Groups, Table, table
from mipcash.models._pipeline_measures import objective_of
from mipcash.models._pipeline_parts import Facts
from mipcash.models.automl import Pipelines

Row = dict[str, Any]
LATENCY, DISPARITY = "latency_ms", "disparity"
FOLDS = 3
SPACE = {"smoke": "a3", "quick": "a3", "full": "a2"}
ROWS = {"smoke": 90, "quick": 500, "full": 100_000}
"""Rows at most, drawn by class."""
BUDGET = {"smoke": 3, "quick": 25, "full": 100}
SEEDS = {"smoke": 1, "quick": 2, "full": 10}
METHODS = {"hybrid": "`hybrid`", "admm": "AdADMM(BO,Ba): `admm`"}
"""Told the limits, and not told."""
TOLD = {"smoke": ("hybrid",), "quick": ("hybrid",), "full": ("hybrid", "admm")}
RANDOM = "random"


@dataclass(frozen=True)
class Case:
    """A set of data with its groups and thresholds.

    Attributes:
        name: of the set.
        groups: what the groups are, for the table.
        protected: the column.
        edges: that cut it; None: into quarters.
        latencies, disparities: thresholds, in microseconds per row and as differences of error rates; the middle ones stay while
            the others vary.
    """

    name: str
    groups: str
    protected: str
    edges: str | None
    latencies: tuple[float, ...]
    disparities: tuple[float, ...]

    @property
    def limits(self) -> list[dict[str, float]]:
        """All pairs of thresholds that are compared."""
        fixed = self.latencies[len(self.latencies) // 2], self.disparities[len(self.disparities) // 2]
        pairs = dict.fromkeys([(t, fixed[1]) for t in self.latencies] + [(fixed[0], d) for d in self.disparities])
        return [{LATENCY: t, DISPARITY: d} for t, d in pairs]


CASES = {
    "german": Case(
        "german", "age: below 30, 30 to 40, 40 to 50, from 50", "x13", "30,40,50", (3, 5, 7), (0.09, 0.11, 0.13)
    ),
    "page-blocks0": Case("page-blocks0", "height of the block, quarters", "x1", None, (1.4, 2, 3), (0.08, 0.12, 0.16)),
}
STAND_IN = Case("breast_cancer", "mean radius, halves", "0", None, (5,), (0.05, 0.1))
"""Of the smoke size, which has no files."""


def problem(case: Case, size: str, seed: int) -> tuple[mc.Space, CrossValidated]:
    """The space and the objective; the rows are the same for all seeds, the folds are not."""
    whole = table(case.name)
    if case is STAND_IN:
        above = whole.x[:, int(case.protected)] > np.median(whole.x[:, int(case.protected)])
        groups = Groups("mean radius", ("small", "large"), above.astype(np.int64))
    else:
        groups = whole.grouped(case.protected, case.edges)
    rows = np.sort(_drawn(whole.y, ROWS[size]))
    data = Table(whole.x[rows], whole.y[rows], whole.source)
    pipelines = Pipelines(SPACE[size], False, data.x.shape[1], SMALL, seed=seed)
    kept = replace(groups, codes=groups.codes[rows])
    objective = objective_of(pipelines, data, "roc_auc", FOLDS, seed, kept, clock="cpu")
    return pipelines.declare(Facts.of(data, FOLDS)), objective


def _drawn(y: Any, most: int) -> Any:
    if len(y) <= most:
        return np.arange(len(y))
    from sklearn.model_selection import train_test_split

    return train_test_split(np.arange(len(y)), train_size=most, stratify=y, random_state=0)[0]


def measure(case: Case, size: str, optimizer: str, limits: dict[str, float] | None, seed: int) -> Row:
    """One run: what each evaluation gave, and the best under each pair of thresholds on fresh folds."""
    space, objective = problem(case, size, seed)
    began = time.process_time()
    with threadpool_limits(1):
        result = mc.minimize(
            objective, space, BUDGET[size], optimizer=optimizer, seed=seed, limits=limits, progress=False
        )
        seconds = time.process_time() - began
        told = [_outputs(t.outcome, t.loss) for t in result.history]
        bests = []
        for pair in [limits] if limits else case.limits:
            found = best(told, pair)
            fresh = None if found is None else objective.evaluate(result.history[found].config, repeat=1)
            outputs = None if fresh is None else {k: float(fresh[k]) for k in ("loss", LATENCY, DISPARITY)}
            bests.append({"limits": pair, "number": found, "fresh": outputs})
    return {
        "data": case.name,
        "optimizer": optimizer,
        "limits": limits,
        "seed": seed,
        "cpu": seconds,
        "failed": result.n_failed,
        "evaluations": told,
        "bests": bests,
    }


def _outputs(outcome: Any, loss: float | None) -> dict[str, float] | None:
    """What an evaluation gave; None: it has failed."""
    if loss is None:
        return None
    return {"loss": loss, **{name: float(outcome[name].value) for name in (LATENCY, DISPARITY)}}


def keeps(outputs: dict[str, float] | None, limits: dict[str, float]) -> bool:
    return outputs is not None and all(outputs[name] <= most for name, most in limits.items())


def best(told: list[dict[str, float] | None], limits: dict[str, float]) -> int | None:
    """The number of the evaluation of least loss that keeps the limits; None: none does."""
    kept = [k for k, outputs in enumerate(told) if keeps(outputs, limits)]
    return min(kept, key=lambda k: told[k]["loss"], default=None)  # type: ignore[index]


def plan(size: str) -> Iterable[tuple[Case, str, dict[str, float] | None, int]]:
    """All runs, seed by seed."""
    cases = [STAND_IN] if size == "smoke" else list(CASES.values())
    for seed in range(SEEDS[size]):
        for case in cases:
            yield case, RANDOM, None, seed
            for optimizer in TOLD[size]:
                yield case, optimizer, None, seed
                for limits in case.limits:
                    yield case, optimizer, limits, seed


@benchmark("fair-pipelines", "pipelines under limits on latency and on differences between groups, told or filtered")
def run(size: str, progress: Progress) -> dict[str, Any]:
    if size != "smoke":
        try:
            for name in CASES:
                table(name)
        except ModelError as error:
            return {"rows": [], "left_out": f"Not run: {error}."}
    rows = []
    for case, optimizer, limits, seed in plan(size):
        row = _kept(case, size, optimizer, limits, seed)
        rows.append(row)
        kept = sum(keeps(e, limits or case.limits[0]) for e in row["evaluations"])
        progress(f"{case.name}, {optimizer}, {limits}, seed {seed}: {kept} keep, {row['cpu']:.0f} s")
    return _results(size, rows)


def collected(size: str) -> dict[str, Any]:
    """What is there of a run: of each set the seeds of which all runs are."""
    rows = []
    for case in CASES.values():
        for seed in range(SEEDS[size]):
            files = [_file(size, c, o, limits, s) for c, o, limits, s in plan(size) if (c, s) == (case, seed)]
            if all(file.is_file() for file in files):
                rows += [json.loads(file.read_text(encoding="utf-8")) for file in files]
    return {**_results(size, rows), "runs": len(rows)}


def _results(size: str, rows: list[Row]) -> dict[str, Any]:
    return {"size": size, "space": SPACE[size], "rows_of_data": ROWS[size], "budget": BUDGET[size], "rows": rows}


def _file(size: str, case: Case, optimizer: str, limits: dict[str, float] | None, seed: int) -> Path:
    at = "-".join(f"{v:g}" for v in limits.values()) if limits else "free"
    folder = Path(tempfile.gettempdir()) / f"mipcash-fair-pipelines-{size}-{version()}"
    return folder / f"{case.name}-{optimizer}-{at}-{seed}.json"


@cache
def version() -> str:
    """A digest of what a run depends on: the code, these settings, the packages that fit, and where the data come from."""
    told = hashlib.sha256()
    for root in (Path(mc.__file__).parent, Path(table.__code__.co_filename).parent):
        for path in sorted(root.rglob("*.py")):
            told.update(path.read_bytes())
    told.update(Path(__file__).read_bytes())
    packages = [metadata.version(name) for name in ("scikit-learn", "numpy", "scipy", "highspy")]
    told.update(repr((packages, os.environ.get("MIPCASH_DATA", ""))).encode())
    return told.hexdigest()[:12]


def _kept(case: Case, size: str, optimizer: str, limits: dict[str, float] | None, seed: int) -> Row:
    """A run out of its file, where it is there already."""
    if size == "smoke":
        return measure(case, size, optimizer, limits, seed)
    file = _file(size, case, optimizer, limits, seed)
    if file.is_file():
        found: Row = json.loads(file.read_text(encoding="utf-8"))
        return found
    row = measure(case, size, optimizer, limits, seed)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(row), encoding="utf-8")
    return row


# -- the table ------------------------------------------------------------------------------------------------------

PAPER = (
    "The papers (Home Credit, an hour a run, ten trials; latencies of 1 to 20 microseconds, disparities of the AUC of 0.05 to "
    "0.15; figures without numbers): told runs have the lower loss and the larger share at every threshold, and the filtered "
    "ones come near as limits relax.\n"
)


def markdown(results: dict[str, Any]) -> str:
    """The tables for the page of results."""
    if "left_out" in results:
        return str(results["left_out"])
    rows = results["rows"]
    lines = [
        f"Space {results['space'].upper()} with small ranges, {results['budget']} evaluations of {FOLDS} folds a run, at most "
        f"{results['rows_of_data']} rows of each set. Means over seeds ± standard error; *never*: seeds in which "
        "nothing kept the limits. Fresh folds: the same pipeline on folds that the search did not see, and in how many of the "
        "seeds it keeps both limits there.",
        "",
        PAPER,
    ]
    for name in dict.fromkeys(row["data"] for row in rows):
        case = STAND_IN if name == STAND_IN.name else CASES[name]
        of = [row for row in rows if row["data"] == name]
        seeds = len({row["seed"] for row in of})
        lines += [f"**{name}**, groups by {case.groups}; seeds: {seeds}", "", HEAD, "|---" * HEAD.count("| ") + "|"]
        for limits in case.limits:
            lines += [_line(of, limits, optimizer, told) for optimizer, told in _methods(of)]
        lines += ["", _seconds(of), ""]
    return "\n".join(lines)


HEAD = "| µs a row | disparity | method | share that keeps both | best loss | on fresh folds | keeps both there |"


def _methods(rows: list[Row]) -> list[tuple[str, bool]]:
    used = [o for o in METHODS if any(row["optimizer"] == o for row in rows)]
    return [*((o, told) for o in used for told in (True, False)), (RANDOM, False)]


def _line(rows: list[Row], limits: dict[str, float], optimizer: str, told: bool) -> str:
    of = [r for r in rows if r["optimizer"] == optimizer and r["limits"] == (limits if told else None)]
    shares = [sum(keeps(e, limits) for e in r["evaluations"]) / len(r["evaluations"]) for r in of]
    found = [(r, b) for r in of for b in r["bests"] if b["limits"] == limits and b["number"] is not None]
    never = "" if len(found) == len(of) else f" ({len(of) - len(found)} never)"
    name = METHODS.get(optimizer, "random, legal") + (", told" if told else ", filtered")
    cells = [
        f"{limits[LATENCY]:g}",
        f"{limits[DISPARITY]:g}",
        name,
        _mean(shares, "{:.2f}"),
        _mean([r["evaluations"][b["number"]]["loss"] for r, b in found], "{:.4f}") + never,
        _mean([b["fresh"]["loss"] for _, b in found], "{:.4f}"),
        f"{sum(keeps(b['fresh'], limits) for _, b in found)} of {len(of)}",
    ]
    return f"| {' | '.join(cells)} |"


def _seconds(rows: list[Row]) -> str:
    told = [
        f"{o} {mean(r['cpu'] for r in rows if r['optimizer'] == o):.0f}"
        for o in dict.fromkeys(r["optimizer"] for r in rows)
    ]
    failed = sum(r["failed"] for r in rows)
    return f"CPU seconds a run: {', '.join(told)}; {failed} evaluations of {sum(len(r['evaluations']) for r in rows)} failed."


def _mean(values: list[float], form: str) -> str:
    """Mean ± standard error, as far as there are so many."""
    if not values:
        return "-"
    error = f" ± {form.format(stdev(values) / math.sqrt(len(values)))}" if len(values) > 1 else ""
    return form.format(mean(values)) + error


if __name__ == "__main__":
    keep_part("fair-pipelines", lambda: collected("quick"), FOLDER / "fair-pipelines.json")
