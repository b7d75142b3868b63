"""A small network under a prediction-time limit: the model ``network``, trained for real, its latency measured.

The limit is on the median milliseconds of a prediction of 64 images on one thread, in seconds that the thread was computing
(``clock=cpu``), which other processes do not add to but slow down. That noise of the limit methods see as it is; so the
best network of every run is trained and timed once more at the end.

Needed: the extra ``torch``, and ``mnist_5k.npz`` in the folder of ``MIPCASH_DATA`` (the smoke size takes scikit-learn's digits).
"""

from __future__ import annotations

import math
from functools import partial
from importlib.util import find_spec
from statistics import mean, stdev
from typing import Any

import mipcash as mc
from benchmarks.registry import Progress, benchmark
from mipcash.models import network

Row = dict[str, Any]

LIMIT = 0.2
"""``latency_ms`` at most; three in ten random networks keep it."""
METHODS = {"hybrid": ("hybrid", True), "random": ("random", False), "hybrid, limit not told": ("hybrid", False)}
"""Name -> optimizer, and whether it is told the limit; what the others find within it is counted all the same."""
TRAINING: dict[str, dict[str, Any]] = {
    "smoke": {"data": "digits", "train_size": 100, "test_size": 100, "epochs": 1, "repeats": 3},
    "quick": {"train_size": 3000, "epochs": 4},
    "full": {"train_size": 4000, "epochs": 8},
}
BUDGET = {"smoke": 3, "quick": 25, "full": 50}
SEEDS = {"smoke": 1, "quick": 3, "full": 10}


def measure(method: str, seed: int, budget: int, training: network.Training) -> Row:
    """One run."""
    optimizer, told = METHODS[method]
    evaluate = partial(network.evaluate, settings=training)
    limits = {"latency_ms": LIMIT} if told else None
    space = network.build()[0]
    result = mc.minimize(evaluate, space, budget, optimizer=optimizer, seed=seed, limits=limits, progress=False)
    done = [t for t in result.history if t.done]
    kept = [t for t in done if t.values["latency_ms"] <= LIMIT]
    best = min(kept, key=lambda t: (t.loss, t.number), default=None)
    again = {} if best is None else evaluate(best.config)
    return {
        "method": method,
        "seed": seed,
        "budget": budget,
        "evaluations": [{"loss": t.loss, "status": t.status, "config": t.config, **t.values} for t in result.history],
        "best": None if best is None else best.loss,
        "config": None if best is None else best.config,
        "latency_ms": None if best is None else best.values["latency_ms"],
        "again_ms": again.get("latency_ms"),
        "parameters": again.get("parameters"),
        "first": min((t.number + 1 for t in kept), default=None),
        "violating": 1 - len(kept) / len(done) if done else math.nan,
        "failed": result.n_failed,
        "evaluation": result.seconds["evaluation"] / budget,
        "ask": result.seconds["ask"] / budget,
    }


@benchmark("network", "a small network under a prediction-time limit (needs torch)")
def run(size: str, progress: Progress) -> dict[str, Any]:
    if find_spec("torch") is None:
        return {
            "limit": LIMIT,
            "rows": [],
            "left_out": "Not run: torch is not installed; pip install 'mipcash[torch]'.",
        }
    training = network.settings(clock="cpu", **TRAINING[size])
    rows = list[Row]()
    for seed in range(SEEDS[size]):
        for method in METHODS:
            rows.append(measure(method, seed, BUDGET[size], training))
            progress(f"{method}, seed {seed}: {rows[-1]['best']}, first {rows[-1]['first']}")
    return {"limit": LIMIT, "training": vars(training), "rows": rows}


def markdown(results: dict[str, Any]) -> str:
    """The table for the page of results."""
    if "left_out" in results:
        return str(results["left_out"])
    rows, training = results["rows"], results["training"]
    lines = [
        f"Limit: {results['limit']:g} ms for {training['predict']} images, median of {training['repeats']}, one thread "
        f"({training['clock']} seconds). {training['train_size']} images of {training['data']}, {training['epochs']} epochs; "
        f"the error is that of {training['test_size']} others. Means over seeds ± standard error.",
        "",
        "| method | runs | evaluations | best error within the limit | share beyond it | first within it | its ms; timed again "
        "| parameters | s an evaluation | s an ask |",
        "|---" * 10 + "|",
    ]
    for method in dict.fromkeys(row["method"] for row in rows):
        of = [row for row in rows if row["method"] == method]
        found = [row for row in of if row["best"] is not None]
        never = "" if len(found) == len(of) else f" ({len(of) - len(found)} never)"
        cells = [
            method,
            str(len(of)),
            str(of[0]["budget"]),
            _mean([row["best"] for row in found], "{:.4f}"),
            _mean([row["violating"] for row in of], "{:.2f}"),
            _mean([row["first"] for row in found], "{:.1f}") + never,
            ", ".join(f"{row['latency_ms']:.3f}; {row['again_ms']:.3f}" for row in found) or "-",
            ", ".join(f"{row['parameters']:,.0f}" for row in found) or "-",
            f"{mean(row['evaluation'] for row in of):.2f}",
            f"{mean(row['ask'] for row in of):.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean(values: list[float], form: str) -> str:
    """Mean ± standard error, as far as there are so many."""
    if not values:
        return "-"
    error = f" ± {form.format(stdev(values) / math.sqrt(len(values)))}" if len(values) > 1 else ""
    return form.format(mean(values)) + error
