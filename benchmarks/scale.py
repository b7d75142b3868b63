"""What a proposal of ``hybrid`` costs where there is much: 1,000 observations, and 200 one-hot binaries.

CPU seconds of this process. The first proposal fits all hyperparameters from scratch and encodes all observations; those
after it start from where it ended, as in a run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from statistics import median
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.proxies import proxy
from benchmarks.registry import benchmark
from mipcash.optimizers.base import Observation, Request
from mipcash.optimizers.outcome import DONE
from mipcash.optimizers.registry import make_optimizer
from mipcash.space.compiled import compiled

OBSERVATIONS = {"smoke": 20, "quick": 1000, "full": 1000}
PROPOSALS = {"smoke": 2, "quick": 6, "full": 30}
BINARIES, LEVELS = {"smoke": 40, "quick": 200, "full": 200}, 4
LIMITS = {"vae": 2.0, "sklearn_pipeline": 2.0, "binaries": 5.0}
"""Seconds that a proposal may take."""


def wide(binaries: int) -> mc.Space:
    """Categories of LEVELS levels, half of which may take their first one, and two numbers."""
    space = mc.Space(f"{binaries} binaries")
    names = [f"c{k}" for k in range(binaries // LEVELS)]
    first = [space.categorical(name, [f"level {l}" for l in range(LEVELS)])["level 0"] for name in names]
    space.real("x", 0.0, 1.0)
    space.real("y", 0.0, 1.0)
    space.rule("half of them at most", sum(first) <= len(names) // 2)
    return space


def measure(name: str, space: mc.Space, observations: int, proposals: int) -> dict[str, Any]:
    """CPU seconds of proposals after so many legal observations."""
    objective, optimizer = proxy(space, 0), make_optimizer("hybrid", space)
    history = [Observation(c, DONE, objective(c)) for c in space.sample(observations, 0)]
    seconds, state = [], dict[str, Any]()
    for k in range(proposals):
        began = time.process_time()
        proposal = optimizer.ask(Request(history, np.random.default_rng(k), state))
        seconds.append(time.process_time() - began)
        state = dict(proposal.state)
        assert space.is_legal(proposal.config)
        history.append(Observation(proposal.config, DONE, objective(proposal.config)))
    return {"space": name, "binaries": compiled(space).program.n_z, "observations": observations, "seconds": seconds}


@benchmark("scale", "seconds per proposal with 1,000 observations and with 200 one-hot binaries")
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    rows = []
    for name in LIMITS:
        progress(name)
        space = wide(BINARIES[size]) if name == "binaries" else import_module(f"mipcash.models.{name}").space
        observations = min(200, OBSERVATIONS[size]) if name == "binaries" else OBSERVATIONS[size]
        rows.append(measure(name, space, observations, PROPOSALS[size]))
    return {"rows": rows}


def markdown(results: dict[str, Any]) -> str:
    """The table for the page of results."""
    lines = ["| space | binaries | observations | first | median | worst of the others | wanted |", "|---" * 7 + "|"]
    for row in results["rows"]:
        first, *others = row["seconds"]
        lines.append(
            f"| {row['space']} | {row['binaries']} | {row['observations']} | {first:.2f} | {median(others):.2f} "
            f"| {max(others):.2f} | {LIMITS[row['space']]:g} |"
        )
    return "\n".join(lines)
