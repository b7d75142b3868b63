"""Solvers that call their objective themselves, asked one point at a time: they run again on what is known, up to a new point.

Such a solver must do the same again for the same values. Where it asks for what was asked for before and has no row, because
the legal configuration nearest to it was known already, it is told the value of the row nearest to it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mipcash.optimizers.admm.theta_min import SPARE, Candidates, ThetaProblem
from mipcash.program.forms import Vector

SAME = 1e-9
"""Largest difference of a coordinate between a point that is asked for and its row."""
ASKED = "asked"
"""In the memory: the points that were asked for."""


class _NewPoint(BaseException):
    """Ends a run at a point without a value; no ``except Exception`` of a solver may catch it."""

    def __init__(self, x: Vector) -> None:
        super().__init__()
        self.x = x


def replayed(problem: ThetaProblem, run: Callable[[Callable[[Vector], float]], None]) -> Candidates:
    """The first point that a run asks for and nobody knows, random ones behind it; none where the run ends before.

    Args:
        run: minimises the function that it is given over [0, 1]^d; it may stop whenever it likes.
    """
    asked = [np.array(x, dtype=float) for x in problem.memory.get(ASKED, ())]
    values = problem.values

    def known(x: Vector) -> float:
        x = np.clip(np.asarray(x, dtype=float), 0.0, 1.0)
        distances = np.abs(problem.x - x).max(axis=1) if len(values) else np.zeros(0)
        if len(values) and (distances.min() <= SAME or any(np.abs(x - a).max() <= SAME for a in asked)):
            return float(values[int(distances.argmin())])
        raise _NewPoint(x)

    try:
        run(known)
    except _NewPoint as new:
        memory = {ASKED: [a.tolist() for a in (*asked, new.x)]}
        return Candidates(np.concatenate([new.x[None], problem.rng.random((SPARE, problem.d))]), memory)
    return Candidates(np.zeros((0, problem.d)), dict(problem.memory))
