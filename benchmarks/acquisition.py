"""What one proposal costs on the bundled spaces: a 60-step run, seconds by part.

The objective is analytic, so that a run costs only its proposals. Every proposal is checked against the rules as declared.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from importlib import import_module
from typing import Any

import mipcash as mc
from benchmarks.proxies import proxy
from benchmarks.registry import benchmark

PARTS = ("surrogate", "search", "polish", "mip")
STEPS = {"smoke": 12, "quick": 60, "full": 60}
SEEDS = {"smoke": 1, "quick": 1, "full": 5}


def measure(name: str, seed: int, steps: int, solver: str = "auto solver=highs") -> dict[str, Any]:
    """Median seconds per part over the proposals after the initial design."""
    space = import_module(f"mipcash.models.{name}").space
    study = mc.Study(space, mc.Method("hybrid", solver=solver), seed=seed)
    objective = proxy(space, seed)
    illegal = 0
    for _ in range(steps):
        trial = study.ask()
        illegal += not space.is_legal(trial.config)
        study.tell(trial, objective(trial.config))
    fitted = [t for t in study.trials if t.origin == "log-ei"]
    totals = [sum(t.seconds.get(part, 0.0) for part in PARTS) for t in fitted]
    return {
        "space": name,
        "seed": seed,
        "steps": steps,
        "proposals": len(fitted),
        "median": {part: statistics.median(t.seconds.get(part, 0.0) for t in fitted) for part in PARTS},
        "total_median": statistics.median(totals),
        "total_worst": max(totals),
        "proven": sum(t.proof is not None and math.isfinite(t.proof.bound) for t in fitted) / len(fitted),
        "illegal": illegal,
    }


@benchmark("acquisition", "seconds per proposal by part, on the vae and sklearn_pipeline spaces")
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    rows = []
    for name in ("vae", "sklearn_pipeline"):
        for seed in range(SEEDS[size]):
            progress(f"{name}, seed {seed}")
            rows.append(measure(name, seed, STEPS[size]))
    return {"rows": rows}


def markdown(results: dict[str, Any]) -> str:
    """The table for the page of results."""
    head = "| space | seed | steps | " + " | ".join(PARTS) + " | total | worst | proven | illegal |"
    lines = [head, "|---" * (head.count("|") - 1) + "|"]
    for row in results["rows"]:
        parts = " | ".join(f"{row['median'][p]:.3f}" for p in PARTS)
        lines.append(
            f"| {row['space']} | {row['seed']} | {row['steps']} | {parts} | {row['total_median']:.2f} "
            f"| {row['total_worst']:.2f} | {row['proven']:.0%} | {row['illegal']} |"
        )
    return "\n".join(lines)
