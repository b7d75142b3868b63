"""What a proposal of ``hybrid`` costs under 0, 1, 4 and 11 limits: CPU seconds, beside those without limits.

A mixed space of 13 parameters under two rules. Outputs are smooth functions of their own; each limit is kept by four fifths of the
first observations, or by as many as leave some that keep all. The goal: m limits cost at most (1 + m) times the seconds without.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.proxies import proxy
from benchmarks.registry import benchmark
from mipcash.optimizers.optimizer import Limit, Observation, Request
from mipcash.optimizers.outcome import DONE
from mipcash.optimizers.registry import make_optimizer

LIMITS = (0, 1, 4, 11)
OBSERVATIONS = {"smoke": (20,), "quick": (20, 50, 100), "full": (20, 50, 100)}
PROPOSALS = {"smoke": 2, "quick": 13, "full": 37}
"""In a row; the first, which fits from scratch, is left out."""


def mixed() -> mc.Space:
    """Four categories, three integers, six reals, one of them conditional."""
    space = mc.Space("mixed")
    kinds = [space.categorical(f"kind{k}", ["a", "b", "c", "d"]) for k in range(4)]
    counts = [space.integer(f"count{k}", 1, 12) for k in range(3)]
    for k in range(5):
        space.real(f"real{k}", 0.0, 1.0)
    space.real("extra", 0.0, 1.0, when=kinds[0]["b"])
    space.rule("two of a at most", sum(kind["a"] for kind in kinds) <= 2)
    space.rule("few in all", sum(counts) <= 24)
    return space


def measured(observations: int, limits: int, proposals: int) -> dict[str, Any]:
    """CPU seconds of each proposal."""
    space = mixed()
    loss, outputs = proxy(space, 0), {f"g{k}": proxy(space, k + 1) for k in range(limits)}

    def observed(config: dict[str, Any]) -> Observation:
        return Observation(config, DONE, loss(config), {name: g(config) for name, g in outputs.items()})

    history = [observed(config) for config in space.sample(observations, 0)]
    share = max(0.8, 1.0 - 1.0 / max(1, limits))
    bounds = tuple(Limit(n, high=float(np.quantile([o.values[n] for o in history], share))) for n in outputs)
    optimizer, cpu, state = make_optimizer("hybrid", space), list[float](), dict[str, Any]()
    for k in range(proposals):
        request = Request(history, np.random.default_rng(k), state, limits=bounds)
        began = time.process_time()
        proposal = optimizer.ask(request)
        cpu.append(time.process_time() - began)
        state = dict(proposal.state)
        assert space.is_legal(proposal.config)
        history.append(observed(proposal.config))
    return {"observations": observations, "limits": limits, "cpu": cpu}


@benchmark("limit_asks", "seconds of an ask under 0, 1, 4 and 11 limits")
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    rows = []
    for observations in OBSERVATIONS[size]:
        for limits in LIMITS:
            progress(f"{observations} observations, {limits} limits")
            rows.append(measured(observations, limits, PROPOSALS[size]))
    return {"rows": rows}


def markdown(results: dict[str, Any]) -> str:
    """The table for the page of results."""
    lines = ["| observations | limits | median | worst | times those without | of (1 + m) |", "|---" * 6 + "|"]
    without = {r["observations"]: median(r["cpu"][1:]) for r in results["rows"] if r["limits"] == 0}
    for row in results["rows"]:
        seconds, m = row["cpu"][1:], row["limits"]
        times = median(seconds) / without[row["observations"]]
        lines.append(
            f"| {row['observations']} | {m} | {median(seconds):.3f} | {max(seconds):.3f} | {times:.1f} | {times / (1 + m):.2f} |"
        )
    return "\n".join(lines)
