"""Hypervolume by evaluations: our optimizer, random search, and BoTorch's expected hypervolume improvement.

All start from ten configurations: ours from its own design, BoTorch from legal samples. An illegal suggestion of
BoTorch is replaced by the nearest legal configuration. Hypervolumes are reported as shares of that of the best known
front, which is made of all runs of the record and of 1,000 legal samples.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.fronts.problems import PROBLEMS, FrontProblem
from benchmarks.peers.loading import installed, loaded
from benchmarks.peers.method import INITIAL
from benchmarks.peers.shape import Shape
from benchmarks.registry import Progress, benchmark
from mipcash.optimizers.pareto import hypervolume, on_front

BUDGET = {"smoke": 12, "quick": 45, "full": 45}
SEEDS = {"smoke": 1, "quick": 3, "full": 5}
SAMPLES = {"smoke": 200, "quick": 1_000, "full": 1_000}
AFTER = (15, 25, 35)
BOTORCH = "botorch-nehvi"
METHODS = ("hybrid", "random", BOTORCH)


def signs(problem: FrontProblem) -> np.ndarray:
    """Return the signs that put the objectives in minimisation form."""
    return np.array([1.0 if d == "minimize" else -1.0 for d in problem.objectives.values()])


def row(problem: FrontProblem, outcome: Mapping[str, float]) -> list[float]:
    return [outcome[name] for name in problem.objectives]


def ours(problem: FrontProblem, optimizer: str, seed: int, budget: int) -> tuple[list[list[float]], list[float], int]:
    """Return the values by evaluation, the CPU seconds by proposal and the number of illegal proposals."""
    settings = {} if optimizer == "random" else {"n_initial": INITIAL}
    study = mc.Study(problem.space(), mc.Method(optimizer, settings=settings), direction=dict(problem.objectives), seed=seed)
    rows, cpu = [], []
    for _ in range(budget):
        began = time.process_time()
        trial = study.ask()
        cpu.append(time.process_time() - began)
        outcome = problem.objective(trial.config)
        study.tell(trial, outcome)
        rows.append(row(problem, outcome))
    return rows, cpu, 0


def botorch(problem: FrontProblem, seed: int, budget: int) -> tuple[list[list[float]], list[float], int]:
    """Return the same as :func:`ours` for BoTorch."""
    space = problem.space()
    method = loaded(BOTORCH, "benchmarks.fronts.botorch_nehvi", "FrontBotorchMethod")
    reference = np.array([problem.reference[name] for name in problem.objectives])
    method.start(None, Shape(space), seed, [], budget)
    method.aim(-signs(problem), reference, seed)
    rows: list[list[float]] = []
    cpu: list[float] = []
    illegal = 0
    for config in space.sample(INITIAL, np.random.default_rng(np.random.SeedSequence([seed, 5]))):
        rows.append(row(problem, problem.objective(config)))
        method.learn(config, np.array(rows[-1]))
    while len(rows) < budget:
        began = time.process_time()
        config = method.suggest()
        cpu.append(time.process_time() - began)
        if space.validate(config):
            illegal += 1
            method.skip(config, {})
            config = dict(space.nearest(config))
        rows.append(row(problem, problem.objective(config)))
        method.learn(config, np.array(rows[-1]))
    return rows, cpu, illegal


@benchmark("fronts", "hypervolume of several objectives under rules: ours, random search and BoTorch's qLogNEHVI")
def run(size: str, progress: Progress) -> dict[str, Any]:
    methods = [m for m in METHODS if m != BOTORCH]
    if size != "smoke":
        methods += installed(
            [BOTORCH], lambda name: loaded(name, "benchmarks.fronts.botorch_nehvi", "FrontBotorchMethod"), progress
        )
    runs = []
    for name, problem in PROBLEMS.items():
        for seed in range(SEEDS[size]):
            for method in methods:
                made = botorch(problem, seed, BUDGET[size]) if method == BOTORCH else ours(problem, method, seed, BUDGET[size])
                rows, cpu, illegal = made
                asks = cpu[INITIAL:] if method != BOTORCH else cpu
                runs.append(
                    {
                        "problem": name,
                        "method": method,
                        "seed": seed,
                        "values": rows,
                        "illegal": illegal,
                        "cpu": statistics.median(asks),
                    }
                )
                progress(f"{name} {method} seed {seed}: {volumes(problem, rows)[-1]:.6g}, {runs[-1]['cpu']:.2f} s an ask")
    best = {name: best_known(problem, runs, SAMPLES[size]) for name, problem in PROBLEMS.items()}
    return {
        "runs": len(runs),
        "seeds": list(range(SEEDS[size])),
        "budget": BUDGET[size],
        "best": best,
        "rows": summarised(runs, best),
    }


def volumes(problem: FrontProblem, rows: list[list[float]]) -> list[float]:
    """Return the hypervolume after each evaluation."""
    values = signs(problem) * np.array(rows)
    reference = signs(problem) * np.array([problem.reference[name] for name in problem.objectives])
    return [hypervolume(values[: k + 1], reference) for k in range(len(values))]


def best_known(problem: FrontProblem, runs: list[dict[str, Any]], samples: int) -> float:
    """Return the hypervolume of all evaluated configurations and of legal samples."""
    drawn = [row(problem, problem.objective(c)) for c in problem.space().sample(samples, seed=7)]
    seen = [r for run in runs if run["problem"] == problem.name for r in run["values"]]
    values = np.array(drawn + seen)
    front = values[on_front(signs(problem) * values)]
    return volumes(problem, front.tolist())[-1]


def summarised(runs: list[dict[str, Any]], best: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return one row per problem and method: mean shares of the best known hypervolume."""
    found = []
    for name in best:
        for method in dict.fromkeys(r["method"] for r in runs):
            mine = [r for r in runs if r["problem"] == name and r["method"] == method]
            shares = [[v / best[name] for v in volumes(PROBLEMS[name], r["values"])] for r in mine]
            last = [s[-1] for s in shares]
            found.append(
                {
                    "problem": name,
                    "method": method,
                    "runs": len(mine),
                    "after": {str(k): statistics.fmean(s[k - 1] for s in shares) for k in AFTER if len(shares[0]) >= k},
                    "last": statistics.fmean(last),
                    "deviation": statistics.stdev(last) if len(last) > 1 else 0.0,
                    "illegal": statistics.fmean(r["illegal"] for r in mine),
                    "cpu": statistics.fmean(r["cpu"] for r in mine),
                }
            )
    return found


def markdown(results: dict[str, Any]) -> str:
    """The table for the page of results."""
    after = sorted({int(k) for r in results["rows"] for k in r["after"]})
    head = [f"after {k}" for k in after]
    columns = " | ".join([*head, f"after {results['budget']}", "illegal", "CPU s"])
    lines = [
        f"Shares of the best known hypervolume, means of {len(results['seeds'])} seeds, ± the standard deviation after "
        f"{results['budget']} evaluations; illegal suggestions a run; CPU seconds of an ask, medians.",
        "",
        f"| problem | method | runs | {columns} |",
        "|---" * (len(head) + 6) + "|",
    ]
    for r in results["rows"]:
        cells = [f"{r['after'].get(str(k), float('nan')):.3f}" for k in after]
        cells += [f"{r['last']:.3f} ± {r['deviation']:.3f}", f"{r['illegal']:.1f}", f"{r['cpu']:.2f}"]
        lines.append(f"| {r['problem']} | {r['method']} | {r['runs']} | {' | '.join(cells)} |")
    return "\n".join(lines)
