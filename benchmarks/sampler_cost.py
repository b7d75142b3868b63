"""CPU seconds of a study of Optuna by its sampler: ``MipcashSampler`` without a declared space, and ``TPESampler``."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from benchmarks.registry import Progress, benchmark

TRIALS = {"smoke": 12, "quick": 200, "full": 1000}


def seven(trial: Any) -> float:
    """Seven parameters, two of them conditional; the least value is 0 or below."""
    x, y, n = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 1e-4, 1, log=True), trial.suggest_int("n", 1, 50)
    kind, w = trial.suggest_categorical("kind", ["a", "b", "c"]), trial.suggest_float("w", 0, 1)
    loss = (x - 0.3) ** 2 + 0.1 * (np.log10(y) + 2) ** 2 + (n / 50 - 0.4) ** 2 + {"a": 0, "b": 0.2, "c": 0.1}[kind] + 0.05 * w
    if kind == "a":
        loss += (trial.suggest_float("p", 0, 1) - 0.7) ** 2
    if kind == "b":
        loss -= 0.01 * trial.suggest_int("q", 0, 10)
    return float(loss)


def two(trial: Any) -> float:
    """Two reals; the least value is 0."""
    x, y = trial.suggest_float("x", -5, 5), trial.suggest_float("y", -5, 5)
    return float((x - 1) ** 2 + (y + 2) ** 2 * (1 + np.sin(3 * x) ** 2))


@benchmark("sampler-cost", "CPU seconds of a study of Optuna: MipcashSampler without a declared space, TPESampler")
def run(size: str, progress: Progress) -> dict[str, Any]:
    import optuna

    from mipcash.integrations.optuna import MipcashSampler

    rows = []
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        for objective in (seven, two):
            for kind in (MipcashSampler, optuna.samplers.TPESampler):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    study, began = optuna.create_study(sampler=kind(seed=0)), time.process_time()
                    study.optimize(objective, TRIALS[size])
                row = {"objective": objective.__name__, "sampler": kind.__name__, "trials": TRIALS[size]}
                rows.append({**row, "cpu": time.process_time() - began, "best": study.best_value})
                progress(f"{objective.__name__}, {kind.__name__}: {rows[-1]['cpu']:.1f} CPU s")
    finally:
        optuna.logging.set_verbosity(verbosity)
    return {"rows": rows}


def markdown(results: dict[str, Any]) -> str:
    """The table for the page of results."""
    lines = ["| parameters | sampler | trials | CPU s | best value |", "|---" * 5 + "|"]
    lines += [
        f"| {r['objective']} | `{r['sampler']}` | {r['trials']} | {r['cpu']:.1f} | {r['best']:.2g} |" for r in results["rows"]
    ]
    return "\n".join(lines)
