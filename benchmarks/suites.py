"""Suites that the runner of the peers benchmark knows by name: peers, limits, the artificial objective, the paper."""

from __future__ import annotations

from benchmarks.admm.suite import SUITE as ARTIFICIAL
from benchmarks.limits.suite import SUITE as LIMITS
from benchmarks.paper import suites as paper
from benchmarks.peers.history import RESULTS
from benchmarks.peers.problem import problems
from benchmarks.peers.suite import Suite

PEERS = "peers"
SUITES = {s.name: s for s in (Suite(PEERS, problems, RESULTS), LIMITS, ARTIFICIAL, *paper.SUITES)}


def suite(name: str = PEERS) -> Suite:
    """Return a suite by name.

    Raises:
        ValueError: no suite has this name.
    """
    if name not in SUITES:
        raise ValueError(f"there is no suite {name!r}; there are {', '.join(SUITES)}")
    return SUITES[name]
