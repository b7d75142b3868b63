"""Wall-clock of a run with 1, 2 and 4 workers, where an evaluation takes a second: asleep, or of a core.

``busy`` is the share of the workers' time in which they evaluated. On a machine that does other things meanwhile, and where
there are more workers than cores, a second of a core takes longer than a second; ``busy`` says then what proposals cost.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.registry import benchmark

EVALUATIONS = {"smoke": 4, "quick": 24, "full": 48}
SECONDS = {"smoke": 0.02, "quick": 1.0, "full": 1.0}
WORKERS = {"smoke": (1, 2), "quick": (1, 2, 4), "full": (1, 2, 4)}
WANTED = {("sleep", 2): 1.9, ("sleep", 4): 3.5, ("numpy", 2): 1.9, ("python", 2): 1.9, ("limited", 2): 1.9}
"""Times as fast as one worker."""


class Takes:
    """A loss that is known at once, and a second that is spent."""

    def __init__(self, how: str, seconds: float) -> None:
        self.how, self.seconds = how, seconds

    def __call__(self, config: Mapping[str, Any]) -> float:
        began = time.thread_time()
        if self.how == "sleep":
            time.sleep(self.seconds)
        matrix = np.full((200, 200), 0.5)
        while self.how != "sleep" and time.thread_time() - began < self.seconds:
            if self.how == "numpy":
                np.sin(matrix, out=matrix)  # without the GIL
            else:
                sum(k * k for k in range(1000))
        return float(
            (config["lr"] - 0.01) ** 2 + 1 / (config["layers"] * config["width"]) + 0.1 * config.get("drop", 0.3)
        )


KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "sleep": ("sleeps, in threads", {}),
    "numpy": ("numpy, in threads", {}),
    "python": ("pure Python, in a process pool", {}),
    "limited": ("pure Python, with `evaluation_timeout=`", {"evaluation_timeout": 600.0}),
}


def network() -> mc.Space:
    """The space of the README."""
    space = mc.Space("network")
    layers = space.integer("layers", 1, 3)
    width = space.ordinal("width", [16, 32, 64, 128])
    act = space.categorical("activation", ["relu", "tanh", "selu"])
    space.real("lr", 1e-4, 1e-1, log=True)
    space.real("drop", 0.0, 0.5, when=layers.is_(2, 3))
    space.rule("memory", layers * width <= 200)
    space.rule("selu only when deep", act["selu"] <= layers / 3)
    return space


def measure(kind: str, workers: int, evaluations: int, seconds: float) -> dict[str, Any]:
    """One run."""
    arguments = dict(KINDS[kind][1])
    if kind == "python":
        arguments["executor"] = lambda: ProcessPoolExecutor(workers, mp_context=get_context("forkserver"))
    objective = Takes("python" if kind == "limited" else kind, seconds)
    load, began, cpu = os.getloadavg()[0], time.perf_counter(), time.process_time()
    execution = mc.Execution(workers=workers, **arguments)
    result = mc.minimize(objective, network(), evaluations, execution=execution, progress=False)
    wall = time.perf_counter() - began
    assert result.n_done == evaluations, result.problem()
    asks = [t.seconds["ask"] for t in result.history]
    return {
        "kind": kind,
        "workers": workers,
        "evaluations": evaluations,
        "seconds": seconds,
        "wall": wall,
        "evaluating": result.seconds["evaluation"],
        "asks": asks,
        "cpu": time.process_time() - cpu,
        "load": load,
        "best": result.value,
    }


@benchmark("workers", "wall-clock of a run with 1, 2 and 4 workers")
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    rows = []
    measure("sleep", 1, EVALUATIONS["smoke"] + 4, 0.0)  # what is imported and compiled once is no worker's time
    for kind in KINDS:
        for workers in WORKERS[size]:
            progress(f"{kind}, {workers} workers")
            rows.append(measure(kind, workers, EVALUATIONS[size], SECONDS[size]))
    return {"rows": rows}


def markdown(results: dict[str, Any]) -> str:
    """The table for the page of results."""
    rows = results["rows"]
    alone = {row["kind"]: row["wall"] for row in rows if row["workers"] == 1}
    lines = [
        "| an evaluation | workers | seconds | times as fast | wanted | busy | ask, mean s | load before |",
        "|---" * 8 + "|",
    ]
    for row in rows:
        kind, workers = row["kind"], row["workers"]
        wanted = WANTED.get((kind, workers))
        lines.append(
            f"| {KINDS[kind][0]} | {workers} | {row['wall']:.1f} | {alone[kind] / row['wall']:.2f} "
            f"| {'' if wanted is None else f'{wanted:g}'} | {row['evaluating'] / workers / row['wall']:.0%} "
            f"| {np.mean(row['asks']):.2f} | {row['load']:.1f} |"
        )
    return "\n".join([*lines, *(["", results["left_out"]] if "left_out" in results else [])])
