"""The suite of the runner: eleven problems with rules and 1 to 11 limits; 50 evaluations, ten of them initial.

A problem ``NAME-sign`` tells of each limit only whether it is kept, -1 or 1. It is run where it is named.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from benchmarks.limits.problems import admmbo, crashes, credit, engineering, network
from benchmarks.peers.catalogue import LIMITED, OURS
from benchmarks.peers.evaluation import LOSS
from benchmarks.peers.problem import Config, Problem
from benchmarks.peers.suite import Suite

FOLDER = Path(__file__).resolve().parents[1] / "results" / "limits"
BUDGET = 50
STRICT = "botorch-strict"
METHODS = (OURS, *(m for m in LIMITED if m != STRICT), "random")


FLAT = ("vessel", "beam", "reducer", "spring-limits", "g04", "admmbo-16", "admmbo-17", "admmbo-18")
"""Problems all of whose parameters are always there."""
SIGN = "-sign"
SIGNED = ("vessel", "beam", "spring-limits", "g04", "admmbo-16", "admmbo-17")
"""Problems that there are with signs, too."""


@cache
def problems() -> dict[str, Problem]:
    """By name, in the order of the tables; those with signs last."""
    own = {p.name: p for m in (engineering, admmbo, crashes, credit, network) for p in m.PROBLEMS}
    return own | {name + SIGN: signed(own[name]) for name in SIGNED}


def signed(problem: Problem) -> Problem:
    """A problem that tells of each limit only whether it is kept."""

    def objective(config: Config) -> dict[str, float]:
        told = problem.evaluate(config)
        assert told.loss is not None
        return {LOSS: told.loss} | {l.output: 1.0 if l.violation(told.values[l.output]) else -1.0 for l in problem.kept}

    limits = dict.fromkeys(problem.limits, 0.0)
    return replace(problem, name=problem.name + SIGN, objective=objective, limits=limits)


NAMED = tuple(name + SIGN for name in SIGNED)
SUITE = Suite("limits", problems, FOLDER, budget=BUDGET, conventions=("repair",), named=NAMED)
