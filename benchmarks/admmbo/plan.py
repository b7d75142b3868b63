"""Which runs are done: all methods from every start, and ADMMBO at other penalties from some of them."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.admmbo.problems import PROBLEMS
from benchmarks.admmbo.runner import APART, METHODS, Task

RHOS = (1e-4, 0.01, 0.1, 0.5, 1.0, 2.0)
"""rho, at M = 20 (Section 5.7, Figure 7)."""
PENALTIES = (0.001, 0.01, 0.1, 1.0, 2.0, 100.0, 1000.0)
"""M, at rho = 0.1 (Figure 8)."""
SENSITIVE = "17"
"""The problem of both."""


def compared(starts: Sequence[int]) -> list[Task]:
    """All methods on all problems, start by start, so that a part of it is balanced."""
    return [Task(p, m, s) for s in starts for p in PROBLEMS for m in METHODS]


def varied(starts: Sequence[int]) -> list[Task]:
    """Other values of rho and of M."""
    settings = [{"rho": rho, "penalty": 20.0} for rho in RHOS] + [{"penalty": m} for m in PENALTIES]
    return [Task(SENSITIVE, APART, s, each) for s in starts for each in settings]


def interleaved(starts: int, varied_starts: int) -> list[Task]:
    """Both, in the order in which they are done: where a run is broken off, a share of each is there."""
    todo = []
    for s in range(starts):
        todo += compared([s])
        if s % 3 == 2 and s // 3 < varied_starts:
            todo += varied([s // 3])
    return todo
