"""Optuna's TPE and Gaussian process sampler with a constraint for each side of a limit.

A crash violates a separate constraint. In the loss and the other constraints it counts as the worst value so far. The
samplers ignore failed trials and would suggest them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from benchmarks.limits.sides import Sides
from benchmarks.peers.evaluation import Evaluation
from benchmarks.peers.method import Evaluated
from benchmarks.peers.methods.optuna_samplers import GPMethod, TPEMethod
from benchmarks.peers.problem import Problem
from benchmarks.peers.shape import Shape


class ConstrainedTPEMethod(TPEMethod):
    """TPE with constraints: infeasible trials are separated from feasible ones by the sum of the violations."""

    takes_limits: ClassVar[bool] = True

    def begin(self, problem: Problem, shape: Shape, seed: int, initial: Evaluated, budget: int) -> None:
        self.open(shape, seed, len(initial))
        self.sides = Sides(problem)
        self.worst = [0.0] * (1 + len(self.sides.names))
        known = [e for _, e in initial if e.loss is not None]
        if known:
            rows = [[e.loss, *self.sides.row(e)] for e in known]
            self.worst = [max(column) for column in zip(*rows, strict=True)]  # type: ignore[type-var]
        for config, evaluation in initial:
            self.learn(config, evaluation, {})

    def learn(self, config: dict[str, Any], evaluation: Evaluation, violations: Mapping[str, float]) -> None:
        told = [evaluation.loss, *self.sides.row(evaluation)]
        row = [w if v is None else v for v, w in zip(told, self.worst, strict=True)]
        self.worst = [max(v, w) for v, w in zip(row, self.worst, strict=True)]
        rules = {"rules": sum(violations.values()) or -1e-3} if self.shape.rules else {}
        self.add(config, row[0], {**dict(zip(self.sides.names, row[1:], strict=True)), **rules})


class ConstrainedGPMethod(ConstrainedTPEMethod, GPMethod):
    """Gaussian processes for the loss and for each side, with log expected improvement and log probabilities."""

    packages: ClassVar[tuple[str, ...]] = GPMethod.packages
    flat: ClassVar[bool] = True
    revision: ClassVar[int] = GPMethod.revision
    sampler = GPMethod.sampler

    def repaired(self, config: dict[str, Any], violations: Mapping[str, float], evaluation: Evaluation) -> None:
        self.learn(config, evaluation, violations)
