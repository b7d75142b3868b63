"""Outcome constraints in the form of other libraries: a number for each bound, positive if it is violated."""

from __future__ import annotations

import math

from benchmarks.peers.evaluation import Evaluation
from benchmarks.peers.problem import Problem

WORKS = "works"
"""Name of the side for crashes: 1 after a crash, -1 otherwise."""


class Sides:
    """Sides of a problem's limits, in units of the bound unless that is 0.

    Attributes:
        names: of the sides, in the order of a row; ``works`` last, on a problem that may crash.
    """

    def __init__(self, problem: Problem) -> None:
        self._sides = [
            (limit.output, sign, end, abs(end) or 1.0)
            for limit in problem.kept
            for sign, end in ((-1.0, limit.low), (1.0, limit.high))
            if math.isfinite(end)
        ]
        self.crashes = problem.crashes
        self.names = [f"{output} {'>=' if sign < 0 else '<='} {end:g}" for output, sign, end, _ in self._sides]
        self.names += [WORKS] if self.crashes else []

    def row(self, evaluation: Evaluation) -> list[float | None]:
        """Return the value of each side, None if a crash leaves it unknown."""
        if evaluation.loss is None:
            return [None] * len(self._sides) + [1.0]
        made: list[float | None] = [sign * (evaluation.values[output] - end) / unit for output, sign, end, unit in self._sides]
        return made + ([-1.0] if self.crashes else [])


def bilog(value: float) -> float:
    """Return Eriksson and Poloczek's transformation of a constraint: 0 stays, and large values are compressed."""
    return math.copysign(math.log1p(abs(value)), value)
