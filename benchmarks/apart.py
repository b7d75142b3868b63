"""Outputs that are evaluated apart: regret at equal cost of ``hybrid`` that chooses what to evaluate, and that evaluates all.

Problems of :mod:`benchmarks.limits`: mixed spaces with known rules and limits. The loss costs 60 or 1, every limited output 1; the
budget is that of a number of evaluations of all outputs. Regret: of the best configuration of which the loss and all limits are
known and kept, after 40, 60, 80 and 100 % of the budget; nothing kept yet counts as the largest regret of that problem and costs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.limits.suite import problems
from benchmarks.peers.problem import Config, Problem
from benchmarks.registry import Progress, Results, benchmark
from mipcash.optimizers.optimizer import Limit
from mipcash.study.records.limits import limits_of

WAYS = ("together", "apart")
SHARES = (0.4, 0.6, 0.8, 1.0)
SIZES: dict[str, dict[str, Any]] = {
    "smoke": {"problems": ("admmbo-17",), "evaluations": {60: 4, 1: 5}, "seeds": 1},
    "quick": {"problems": ("admmbo-17", "beam", "vessel", "solvers"), "evaluations": {60: 15, 1: 20}, "seeds": 3},
    "full": {
        "problems": ("admmbo-17", "beam", "vessel", "spring-limits", "g04", "solvers"),
        "evaluations": {60: 20, 1: 30},
        "seeds": 10,
    },
}


def output(problem: Problem, name: str) -> Callable[[Config], Any]:
    """One output of a problem as a function of its own."""

    def function(config: Config) -> Any:
        told: Any = problem.objective(config)
        return told[name] if isinstance(told, Mapping) else told

    return function


def kept_by_cost(
    trials: Iterable[mc.Trial], costs: Mapping[str, float], limits: Sequence[Limit]
) -> list[tuple[float, float]]:
    """What was spent after each trial, and the best loss by then of what is known to keep all limits."""
    known: dict[str, dict[str, float]] = {}
    spent, best, curve = 0.0, math.inf, []
    for trial in trials:
        if trial.pending:
            continue
        spent += sum(costs[name] for name in trial.evaluate or costs)
        told = known.setdefault(repr(trial.config), {})
        told.update({"loss": trial.loss} if trial.loss is not None else {}, **trial.values)
        if "loss" in told and not any(limit.violation(told.get(limit.output)) for limit in limits):
            best = min(best, told["loss"])
        curve.append((spent, best))
    return curve


def measured(problem: Problem, ratio: float, evaluations: int, way: str, seed: int) -> dict[str, Any]:
    """One run: regrets at the shares, cost until the first feasible, in evaluations of all outputs, and what was evaluated."""
    limits = limits_of(problem.limits)
    costs = {"loss": float(ratio), **{limit.output: 1.0 for limit in limits}}
    whole, began = sum(costs.values()), time.process_time()
    given = {"seed": seed, "limits": problem.limits, "progress": False}
    given["optimizer"] = mc.Method(seconds_per_proposal=None)
    if way == "together":
        result = mc.minimize(problem.objective, problem.space(), evaluations, **given)
    else:
        functions = {name: output(problem, name) for name in costs}
        result = mc.minimize(functions, problem.space(), mc.Budget(mc.Cost(evaluations * whole), costs=costs), **given)
    seconds = time.process_time() - began
    curve = kept_by_cost(result.history, costs, limits)
    ends = [share * evaluations * whole * (1 + 1e-9) for share in SHARES]
    found = [min((best for spent, best in curve if spent <= end), default=math.inf) for end in ends]
    told = [t for t in result.history if not t.pending]
    first = next((spent / whole for spent, best in curve if math.isfinite(best)), None)
    return {
        "regret": [max(0.0, best - problem.optimum) if math.isfinite(best) else None for best in found],
        "first": first,
        "losses": sum("loss" in (t.evaluate or ("loss",)) for t in told),
        "proposals": len(told),
        "cpu": seconds,
    }


@benchmark("apart", "regret at equal cost where outputs are evaluated apart")
def run(size: str, progress: Progress) -> Results:
    chosen = SIZES[size]
    rows = []
    for ratio, evaluations in chosen["evaluations"].items():
        for name in chosen["problems"]:
            for way in WAYS:
                for seed in range(chosen["seeds"]):
                    row = measured(problems()[name], ratio, evaluations, way, seed)
                    rows.append({"problem": name, "ratio": ratio, "way": way, "seed": seed, **row})
                    progress(f"{name} {ratio}:1 {way} {seed}: {row['regret'][-1]}")
    return {"size": size, "evaluations": {str(r): n for r, n in chosen["evaluations"].items()}, "runs": rows}


def markdown(results: Results) -> str:
    """Geometric mean of the regret over seeds, by problem, costs and way; ratios of the two with a standard error."""
    rows = results["runs"]
    lines = ["| problem | loss : limit | | 40 % | 60 % | 80 % | all | first feasible | losses | proposals | CPU s |"]
    lines.append("|---" * 11 + "|")
    for ratio, name in dict.fromkeys((r["ratio"], r["problem"]) for r in rows):
        cell = [r for r in rows if (r["ratio"], r["problem"]) == (ratio, name)]
        for way in WAYS:
            runs = [r for r in cell if r["way"] == way]
            regrets = np.exp(np.mean([_logs(r, cell) for r in runs], axis=0))
            told = [
                np.mean([math.nan if r[k] is None else r[k] for r in runs])
                for k in ("first", "losses", "proposals", "cpu")
            ]
            numbers = " | ".join(f"{x:.2g}" for x in regrets)
            lines.append(f"| {name} | {ratio} : 1 | {way} | {numbers} | " + " | ".join(f"{x:.1f}" for x in told) + " |")
    lines.append("")
    for ratio in dict.fromkeys(r["ratio"] for r in rows):
        logs = np.array(_paired(rows, ratio)) / math.log(10.0)
        error = logs.std(axis=0, ddof=1) / math.sqrt(len(logs)) if len(logs) > 1 else np.zeros(len(SHARES))
        said = ", ".join(f"{m:+.2f} ± {e:.2f}" for m, e in zip(logs.mean(axis=0), error, strict=True))
        lines.append(f"log10 of the regret apart over together, {ratio} : 1, {len(logs)} pairs: {said}.")
    return "\n".join(lines)


def _paired(rows: Sequence[Mapping[str, Any]], ratio: int) -> list[np.ndarray]:
    """Differences of the logarithms of regrets, apart less together, by problem and seed."""
    found = []
    for row in rows:
        if row["ratio"] == ratio and row["way"] == "apart":
            cell = [r for r in rows if (r["ratio"], r["problem"]) == (ratio, row["problem"])]
            other = next(r for r in cell if r["way"] == "together" and r["seed"] == row["seed"])
            found.append(_logs(row, cell) - _logs(other, cell))
    return found


def _logs(row: Mapping[str, Any], cell: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Logarithms of regrets; nothing kept is the largest of its cell, and what is below a millionth of it is that."""
    known = [x for r in cell for x in r["regret"] if x is not None]
    most = max(known, default=1.0) or 1.0
    return np.log([max(1e-6 * most, most if x is None else x) for x in row["regret"]])
