"""Suite of the runner: eleven problems with rules and 1 to 11 constraints; 50 evaluations, ten of them initial."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from benchmarks.limits.problems import admmbo, crashes, credit, engineering, network
from benchmarks.peers.catalogue import LIMITED, OURS
from benchmarks.peers.problem import Problem
from benchmarks.peers.suite import Suite

FOLDER = Path(__file__).resolve().parents[1] / "results" / "limits"
BUDGET = 50
METHODS = (OURS, *LIMITED, "random")
FLAT = ("vessel", "beam", "reducer", "spring-limits", "g04", "admmbo-16", "admmbo-17", "admmbo-18")
"""Problems without conditional parameters."""


@cache
def problems() -> dict[str, Problem]:
    """Return the problems by name, in the order of the tables."""
    return {p.name: p for m in (engineering, admmbo, crashes, credit, network) for p in m.PROBLEMS}


SUITE = Suite("limits", problems, FOLDER, budget=BUDGET, conventions=("repair",))
