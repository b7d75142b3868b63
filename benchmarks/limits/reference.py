"""``python -m benchmarks.limits.reference [PROBLEM ...]``: the loss of each problem whose regret is one.

The median over 20 runs of 50 legal samples of the best loss that keeps the limits. Where half of the runs find none: the
median loss of all samples that keep the limits, drawn until there are 20.
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.limits.suite import BUDGET, SUITE
from benchmarks.peers.problem import Problem

RUNS = 20
MOST = 40
"""Batches of so many runs are drawn at most."""


def reference(problem: Problem) -> float:
    """What random search comes to."""
    space, kept = problem.space(), list[float]()
    for batch in range(MOST):
        best = []
        for run in range(RUNS):
            drawn = [problem.evaluate(c).counted for c in space.sample(BUDGET, np.random.default_rng([9, batch, run]))]
            found = [v for v in drawn if v is not None]
            kept += found
            best.append(min(found, default=np.inf))
        if batch == 0 and np.isfinite(np.median(best)):
            return float(np.median(best))
        if len(kept) >= RUNS:
            break
    return float(np.median(kept))


def main(names: list[str]) -> None:
    """Print the references."""
    for problem in SUITE.chosen(names or None):
        print(f"{problem.name:16} {reference(problem):.6g}  (stored: {problem.reference})", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
