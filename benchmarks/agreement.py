"""The same run on the synthetic function under every installed solver: equal proposals up to ties, each with a proof."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import mipcash as mc
from benchmarks.registry import benchmark
from mipcash.backends.registry import solvers
from mipcash.models import synthetic

STEPS = {"smoke": 11, "quick": 50, "full": 50}


def measure(solver: str, steps: int) -> dict[str, Any]:
    space, objective = synthetic.build()
    study = mc.Study(space, optimizer=mc.Method(solver=solver), seed=0)
    began = time.perf_counter()
    for _ in range(steps):
        trial = study.ask()
        study.tell(trial, objective(trial.config))
    trials = study.trials
    discrete = [tuple(v for v in t.config.values() if isinstance(v, int)) for t in trials]
    return {
        "solver": solver,
        "steps": steps,
        "best": study.result.value,
        "proven": sum(t.proof is not None and math.isfinite(t.proof.bound) for t in trials),
        "illegal": sum(not space.is_legal(t.config) for t in trials),
        "seconds": time.perf_counter() - began,
        "losses": [t.loss for t in trials],
        "discrete": discrete,
    }


@benchmark("agreement", "the same run on the synthetic function under every installed solver")
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    rows = []
    for info in solvers():
        if info.installed:
            progress(info.name)
            rows.append(measure(info.name, STEPS[size]))
    reference = rows[0]["discrete"]
    for row in rows:
        row["same"] = sum(a == b for a, b in zip(row.pop("discrete"), reference, strict=True))
    return {"rows": rows}


def markdown(results: dict[str, Any]) -> str:
    """The table for the page of results."""
    lines = ["| solver | steps | same discrete part as HiGHS | best | proven | illegal | seconds |", "|---" * 7 + "|"]
    for row in results["rows"]:
        lines.append(
            f"| {row['solver']} | {row['steps']} | {row['same']} | {row['best']:.4f} | {row['proven']} "
            f"| {row['illegal']} | {row['seconds']:.0f} |"
        )
    return "\n".join(lines)
