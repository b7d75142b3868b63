"""Many workers on one process that proposes: 100 threads whose evaluations sleep, compared with one worker.

Notation
    w workers, evaluations of about e seconds;   asked_k, started_k, ended_k of trial k: when its proposal started, and its
    evaluation started and ended, by the clock of the objective, in the order of starts

    busy          share of w (last start - w-th start) in which an evaluation ran; before that the workers get their first trials
    fill          w-th start - first start
    wait          started_{w + k} - ended_k, of the k-th evaluation to end: a worker's time between two evaluations
    stale         proposals that do not know some outcome that came before their evaluation began
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.registry import Progress, benchmark
from mipcash.study.storage.registry import read_study

CASES = {"smoke": ((8, 0.05, 24),), "quick": ((100, 10.0, 300),), "full": ((100, 30.0, 500), (100, 10.0, 500))}
"""Workers, seconds of an evaluation, budget."""
OPTIMIZERS = {"smoke": ("hybrid",), "quick": ("hybrid",), "full": ("hybrid", "random")}
STEPS = (100, 200, 300, 500)
"""Evaluations after which the regret is read."""


def declared() -> mc.Space:
    """Return a space of four reals, two integers under a rule and a category; the least loss is 0."""
    space = mc.Space("workers")
    for k in range(4):
        space.real(f"x{k}", 0.0, 1.0)
    n, m = space.integer("n", 1, 50), space.integer("m", 1, 50)
    space.categorical("c", list("abcde"))
    space.rule("together", n + m <= 60)
    return space


class Asleep:
    """Objective that sleeps for 0.8 to 1.2 times some seconds, by the configuration, and notes when it began and ended."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.times = seconds, dict[int, tuple[float, float]]()

    def __call__(self, config: Mapping[str, Any], trial: mc.Trial) -> float:
        began = time.time()
        time.sleep(self.seconds * (0.8 + 0.4 * (1e6 * config["x0"] % 1.0)))
        self.times[trial.number] = began, time.time()
        apart = sum((config[f"x{k}"] - 0.3 - 0.1 * k) ** 2 for k in range(4))
        return float(apart + abs(config["n"] - 17) / 50 + abs(config["m"] - 30) / 50 + 0.2 * (config["c"] != "d"))


@benchmark("many-workers", "100 workers of one run: how busy, how many stale proposals, regret beside one worker")
def run(size: str, progress: Progress) -> dict[str, Any]:
    rows = []
    for workers, seconds, budget in CASES[size]:
        for optimizer in OPTIMIZERS[size]:
            rows.append(one(optimizer, workers, seconds, budget))
            progress(f"{optimizer}, {workers} workers, {seconds:g} s: {rows[-1]['busy']:.0%} busy")
    budget = max(b for _, _, b in CASES[size])
    return {"rows": [*rows, *(one(optimizer, 1, 0.0, budget) for optimizer in OPTIMIZERS[size])]}


def one(optimizer: str, workers: int, seconds: float, budget: int) -> dict[str, Any]:
    """Return the measures of one run."""
    objective = Asleep(seconds)
    with tempfile.TemporaryDirectory() as folder:
        storage = str(Path(folder) / "run.db")
        mc.minimize(objective, declared(), budget, optimizer=optimizer, execution=workers, seed=0, storage=storage, progress=False)
        rows = read_study(storage)[1]
    starts, ends = np.array([objective.times[r.number] for r in rows]).T
    asked = [r.proposed - json.loads(r.seconds)["ask"] for r in rows]
    first, filled, last = np.sort(starts)[[0, workers - 1, -1]]
    running = np.clip(ends, filled, last) - np.clip(starts, filled, last)
    busy = np.sum(running) / max(workers * (last - filled), 1e-9)
    waits = np.sort(starts)[workers:] - np.sort(ends)[: budget - workers]
    stale = [bool(np.any((a < ends) & (ends < s))) for a, s in zip(asked, starts, strict=True)]
    best = np.minimum.accumulate([rows[k].loss for k in np.argsort(ends, kind="stable")])
    return {
        **{"optimizer": optimizer, "workers": workers, "seconds": seconds, "budget": budget, "busy": float(busy)},
        **{"fill": float(filled - first), "proposals_a_second": float((budget - workers) / max(last - filled, 1e-9))},
        **{"wait": float(waits.max(initial=0.0)), "stale": sum(stale)},
        "regret": {str(n): float(best[n - 1]) for n in STEPS if n <= budget},
    }


def markdown(results: dict[str, Any]) -> str:
    """The table for the page of results."""
    head = "| optimizer | workers | s an evaluation | evaluations | fill, s | busy | proposals a second | longest wait, s | stale |"
    lines = [f"{head} regret after {' / '.join(map(str, STEPS))} |", "|---" * 10 + "|"]
    for r in results["rows"]:
        several = r["workers"] > 1
        shares = (
            [f"{r['fill']:.1f}", f"{r['busy']:.1%}", f"{r['proposals_a_second']:.1f}", f"{r['wait']:.1f}"] if several else [""] * 4
        )
        regret = " / ".join(f"{v:.2g}" for v in r["regret"].values())
        lines.append(
            f"| `{r['optimizer']}` | {r['workers']} | {r['seconds']:g} | {r['budget']} | "
            + " | ".join(shares)
            + f" | {r['stale']} | {regret} |"
        )
    return "\n".join(lines)
