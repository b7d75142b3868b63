"""SMAC3 without outcome constraints: an infeasible point gets the worst loss of the initial design plus a penalty.

The penalty is the range of the losses of the initial design, times the sum of the violations, each compressed (bilog).
For a crash it is twice that range. So every feasible point is reported with a lower loss than any infeasible one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from benchmarks.limits.sides import Sides, bilog
from benchmarks.peers.evaluation import Evaluation
from benchmarks.peers.method import Evaluated
from benchmarks.peers.methods.smac_facade import SmacMethod
from benchmarks.peers.problem import Problem
from benchmarks.peers.shape import Shape


class PenalisedSmacMethod(SmacMethod):
    """Method described in the module's docstring."""

    takes_limits: ClassVar[bool] = True

    def begin(self, problem: Problem, shape: Shape, seed: int, initial: Evaluated, budget: int) -> None:
        self.sides = Sides(problem)
        losses = [e.loss for _, e in initial if e.loss is not None] or [0.0]
        self.worst, self.range = max(losses), max(losses) - min(losses) or 1.0
        self.start(problem, shape, seed, [(c, self._cost(e)) for c, e in initial], budget)

    def learn(self, config: dict[str, Any], evaluation: Evaluation, violations: Mapping[str, float]) -> None:
        self.observe(config, self._cost(evaluation), violations)

    def _cost(self, evaluation: Evaluation) -> float:
        if evaluation.loss is None:
            return self.worst + 2 * self.range
        if evaluation.kept:
            return min(evaluation.loss, self.worst)
        broken = sum(bilog(v) for v in self.sides.row(evaluation) if v is not None and v > 0)
        return self.worst + self.range * broken
