"""Registered benchmark: ``python -m benchmarks run cmes``, which resumes the kept runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

from benchmarks.cmes.methods import METHODS
from benchmarks.cmes.problems import PROBLEMS
from benchmarks.cmes.runs import START, Run, read, work
from benchmarks.records import FOLDER
from benchmarks.registry import benchmark

BUDGET = {"smoke": 8, "quick": 25, "full": 25}
"""Evaluations; the paper has 25 too."""
SEEDS = {"smoke": range(1), "quick": range(4), "full": range(20)}
RUNS = FOLDER / "cmes" / "runs.jsonl"
SMOKE = ("cMES real", "cMES", "cEI", "random")
BINARY, REAL = "Binary feedback (paper, Table 2)", "Real-valued feedback (paper, Table 3)"
JOINT, DRAWS = "Joint and marginal draws of the minimum (paper, Table 4)", "Draws of the minimum (paper, Table 5)"
SIGMA = "sigma(delta)"
TABLES: Mapping[str, tuple[str, ...]] = {
    BINARY: ("cMES", "cEI", "cMES observe", "cEI observe", "AP", "random"),
    REAL: ("cMES real", "cEI real", "AP", "random"),
    JOINT: ("cMES", "cMES, marginal", "cMES observe", "cMES observe, marginal"),
    "The same, real-valued": ("cMES real", "cMES real, marginal"),
    DRAWS: ("cMES, 2 draws", "cMES", "cMES, 40 draws"),
    SIGMA: ("cMES", "cMES, p = 0.9"),
}
TOLD = {
    BINARY: [(3.08, 46.75), (3.43, 33.01), (3.63, 53.31), (3.26, 40.44), (3.38, 27.87), (4.21, 49.83)],
    REAL: [(2.68, 44.59), (3.0, 40.84), (2.79, 27.87), (3.45, 49.83)],
}
PAPER = {title: dict(zip(TABLES[title], told, strict=True)) for title, told in TOLD.items()}
"""Average rank and infeasible fraction in per cent. Table 3 also has PESC (3.09, 48.96), not implemented here."""


@benchmark("cmes", "constrained max-value entropy search and rivals on ten problems of hyperparameters under a limit")
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    names, problems = (SMOKE, PROBLEMS[1:2]) if size == "smoke" else (tuple(METHODS), PROBLEMS)
    path = None if size == "smoke" else RUNS
    return collected(work(names, SEEDS[size], BUDGET[size], progress, path, problems))


def collected(runs: Sequence[Run] | None = None) -> dict[str, Any]:
    """Return the tables of runs (None: the kept runs), over the problems and seeds that all methods of a table have."""
    runs = read(RUNS) if runs is None else runs
    tables = []
    for title, names in TABLES.items():
        present = [name for name in names if any(r.method == name for r in runs)]
        if len(present) > 1:
            tables.append({"title": title, **_table(title, present, runs)})
    budget = max((len(r.losses) for r in runs), default=0)
    done: dict[str, Any] = {"runs": len(runs), "seeds": sorted({r.seed for r in runs}), "evaluations": budget, "start": START}
    done["cpu_hours"] = {"proposals": sum(r.cpu for r in runs) / 3600}
    return {**done, "tables": tables, "problems": _problems(runs)}


def _table(title: str, names: Sequence[str], runs: Sequence[Run]) -> dict[str, Any]:
    by = {r.key: r for r in runs}
    cells = sorted({(r.problem, r.seed) for r in runs})
    whole = [c for c in cells if all((name, *c) in by for name in names)]
    placed = np.array([ranks([by[(name, *c)] for name in names]) for c in whole])  # (cells, methods, evaluations)
    rows = []
    for k, name in enumerate(names):
        mine = [by[(name, *c)] for c in whole]
        broken = [1.0 - np.mean(r.kept) for r in mine]
        average, last = placed[:, k].mean(axis=1), placed[:, k, -1]
        rows.append(
            {
                "method": name,
                "rank": _with_error(average),
                "last": _with_error(last),
                "unfeasible": _with_error(broken),
                "cpu": float(np.median([r.cpu / max(1, len(r.losses) - START) for r in mine])),
                "paper": PAPER.get(title, {}).get(name),
            }
        )
    return {"cells": len(whole), "seeds": sorted({s for _, s in whole}), "rows": rows}


def ranks(runs: Sequence[Run]) -> np.ndarray:
    """Return ranks of the best feasible loss by evaluation, shape (methods, evaluations). Ties share a rank."""
    best = np.array([r.best for r in runs])
    return np.asarray(rankdata(best, axis=0))


def _with_error(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0


def _problems(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return for each problem its description, the best feasible loss, and the median best loss of each method."""
    rows = []
    for problem in PROBLEMS:
        mine = [r for r in runs if r.problem == problem.name]
        if mine:
            median = {n: float(np.median([r.best[-1] for r in mine if r.method == n])) for n in _names(mine)}
            rows.append(
                {
                    "problem": problem.name,
                    "limit": problem.limit,
                    "threshold": problem.threshold,
                    "shape": problem.shape,
                    "feasible": problem.feasible,
                    "best": min(r.best[-1] for r in mine),
                    "medians": {n: v if math.isfinite(v) else None for n, v in median.items()},
                }
            )
    return rows


def _names(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(r.method for r in runs))


def markdown(results: dict[str, Any]) -> str:
    """The tables for the page of results."""
    lines = [
        f"{results['runs']} runs of {results['evaluations']} evaluations, the first {results['start']} of them random and the "
        "same for all. Ranks of the best loss that keeps the limit, mean ± standard error over problems and seeds: over all "
        "evaluations, as in the paper, and after the last. The problems have the paper's shape, not its data; PESC is not "
        "implemented."
    ]
    for table in results["tables"]:
        seeds = ", ".join(map(str, table["seeds"]))
        lines += ["", f"**{table['title']}**: {table['cells']} cells, seeds {seeds}", ""]
        lines += ["| method | rank | paper | after the last | unfeasible | paper | CPU s an ask |", "|---" * 7 + "|"]
        for row in table["rows"]:
            rank, share = (f"{v:.2f}" for v in row["paper"]) if row["paper"] else ("", "")
            lines.append(
                f"| {row['method']} | {_text(row['rank'])} | {rank} | {_text(row['last'])} "
                f"| {100 * row['unfeasible'][0]:.1f} % | {share and share + ' %'} | {row['cpu']:.3f} |"
            )
    lines += ["", "Best loss that keeps the limit, medians over the seeds:", ""]
    names = list(results["problems"][0]["medians"]) if results["problems"] else []
    lines += [f"| problem | feasible | best known | {' | '.join(names)} |", "|---" * (3 + len(names)) + "|"]
    for row in results["problems"]:
        cells = " | ".join("-" if row["medians"].get(n) is None else f"{row['medians'][n]:.4f}" for n in names)
        lines.append(f"| {row['problem']} | {row['feasible']:.0%} | {row['best']:.4f} | {cells} |")
    return "\n".join(lines)


def _text(value: tuple[float, float]) -> str:
    return f"{value[0]:.2f} ± {value[1]:.2f}"
