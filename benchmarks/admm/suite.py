"""Suite of the runner: instances of the artificial objective, each with its number as seed.

4 modules, 37 algorithms, 92 hyperparameters, no rules (:mod:`mipcash.models.artificial`). A run of instance k has seed
k, so that initial designs differ too.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import mipcash as mc
from benchmarks.peers.problem import LOWER_BOUND, Problem
from benchmarks.peers.suite import Suite
from mipcash.models import artificial

FOLDER = Path(__file__).resolve().parents[1] / "results" / "admm"
NAME = "artificial"
INSTANCES = 30
BUDGET = 100


@cache
def problems() -> dict[str, Problem]:
    """Return the problems by name: ``artificial-0`` and so on."""
    return {p.name: p for p in (_problem(k) for k in range(INSTANCES))}


def _problem(instance: int) -> Problem:
    def space() -> mc.Space:
        return artificial.build(instance=instance)[0]

    return Problem(
        f"{NAME}-{instance}",
        space,
        artificial.Objective(instance),
        "free",
        0.0,
        LOWER_BOUND,
        "ram2020, appendix B; liu2020, appendix 15",
    )


SUITE = Suite(NAME, problems, FOLDER, budget=BUDGET)
