"""Limits as other libraries take them: a number for each side of a limit, above 0 where it is broken."""

from __future__ import annotations

import math

from benchmarks.peers.evaluation import Evaluation
from benchmarks.peers.problem import Problem

WORKS = "works"
"""The side of a problem that may crash: 1 where it did, -1 where it did not."""


class Sides:
    """The sides of a problem's limits, in units of the bound where that is not 0.

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
        """By side; None where a crash leaves it unknown."""
        if evaluation.loss is None:
            return [None] * len(self._sides) + [1.0]
        made: list[float | None] = [sign * (evaluation.values[output] - end) / unit for output, sign, end, unit in self._sides]
        return made + ([-1.0] if self.crashes else [])


def bilog(value: float) -> float:
    """Eriksson and Poloczek's transformation of a limit: 0 stays, and what is large is compressed."""
    return math.copysign(math.log1p(abs(value)), value)
