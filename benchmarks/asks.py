"""CPU seconds of a proposal of ``hybrid`` in two spaces of pipelines after 100 observations: median, mean and worst.

``structured`` losses are a function of the parameters and of some of their pairs (:mod:`benchmarks.proxies`). With
random losses (``noise``) the model learns nothing, and the search is more random. Each proposal is repeated as often as
the size says, and the least time counts, since other work on the machine only adds to it. The first proposal, which
fits from scratch, is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import mean, median
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.automl import ordered
from benchmarks.proxies import proxy
from benchmarks.registry import benchmark
from mipcash.models import artificial
from mipcash.optimizers.optimizer import Observation, Request
from mipcash.optimizers.outcome import DONE
from mipcash.optimizers.registry import make_optimizer

WANTED = {"sklearn_pipeline": 0.05, "artificial": 0.1}
"""Target CPU seconds of a proposal, by space."""
SPACES: dict[str, Callable[[], mc.Space]] = {"sklearn_pipeline": lambda: ordered.build()[0], "artificial": lambda: artificial.space}
LOSSES = ("structured", "noise")
OBSERVATIONS = {"smoke": 20, "quick": 100, "full": 100}
PROPOSALS = {"smoke": 2, "quick": 25, "full": 97}
REPEATS = {"smoke": 1, "quick": 3, "full": 5}


def losses_of(kind: str, space: mc.Space) -> Callable[[dict[str, Any]], float]:
    """Return the objective of a kind of losses."""
    if kind == "structured":
        return proxy(space, 0)
    rng = np.random.default_rng(5)
    return lambda config: float(rng.normal())


def measured(name: str, kind: str, size: str) -> dict[str, Any]:
    """Return the CPU seconds of each proposal except the first."""
    space = SPACES[name]()
    objective, optimizer = losses_of(kind, space), make_optimizer("hybrid", space)
    history = [Observation(c, DONE, objective(c)) for c in space.sample(OBSERVATIONS[size], 0)]
    cpu, state = list[float](), dict[str, Any]()
    for k in range(PROPOSALS[size]):
        seconds = []
        for _ in range(REPEATS[size] if k else 1):
            request = Request(history, np.random.default_rng(k), state)
            began = time.process_time()
            proposal = optimizer.ask(request)
            seconds.append(time.process_time() - began)
        cpu += [min(seconds)] if k else []
        state = dict(proposal.state)
        assert space.is_legal(proposal.config)
        history.append(Observation(proposal.config, DONE, objective(proposal.config)))
    return {"space": name, "losses": kind, "observations": OBSERVATIONS[size], "cpu": cpu, "wanted": WANTED[name]}


@benchmark("asks", "seconds of an ask in two spaces of pipelines after 100 observations")
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    rows = []
    for name in WANTED:
        for kind in LOSSES:
            progress(f"{name}, {kind}")
            rows.append(measured(name, kind, size))
    return {"rows": rows}


def markdown(results: dict[str, Any]) -> str:
    """The table for the page of results."""
    lines = ["| space | losses | observations | median | mean | worst | wanted |", "|---" * 7 + "|"]
    for row in results["rows"]:
        cpu = row["cpu"]
        figures = " | ".join(f"{of(cpu):.3f}" for of in (median, mean, max))
        lines.append(f"| {row['space']} | {row['losses']} | {row['observations']} | {figures} | {row['wanted']:g} |")
    return "\n".join(lines)
