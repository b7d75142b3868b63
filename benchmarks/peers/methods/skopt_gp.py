"""scikit-optimize: one Gaussian process over all parameters, with one-hot categories (JOPT(BO) of liu2020).

Its defaults, which ``gp_minimize`` has: an anisotropic Matern-5/2 kernel by the likelihood, a portfolio of three
acquisition functions, 10,000 random points and five descents. It knows neither conditions nor rules; inactive
parameters are set to the middle.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import skopt
from skopt.space import Categorical, Integer, Real

from benchmarks.peers.method import Initial, Method
from benchmarks.peers.problem import Problem
from benchmarks.peers.shape import Dimension, Shape


class SkoptMethod(Method):
    """Method described in the module's docstring."""

    packages: ClassVar[tuple[str, ...]] = ("scikit-optimize",)

    def start(self, problem: Problem, shape: Shape, seed: int, initial: Initial, budget: int) -> None:
        self.shape = shape
        self.optimizer = skopt.Optimizer(
            [dimension(d) for d in shape.dimensions], "GP", n_initial_points=0, random_state=np.random.RandomState(seed)
        )
        points, losses = [self._point(c) for c, _ in initial], [loss for _, loss in initial]
        self._tell(points, losses)

    def suggest(self) -> dict[str, Any]:
        with warnings.catch_warnings():  # warnings about repeated points
            warnings.simplefilter("ignore")
            asked = self.optimizer.ask()
        values = {d.name: _value(d, v) for d, v in zip(self.shape.dimensions, asked, strict=True)}
        return self.shape.active(values)

    def observe(self, config: dict[str, Any], loss: float, violations: Mapping[str, float]) -> None:
        self._tell([self._point(config)], [loss])

    def _tell(self, points: list[list[Any]], losses: list[float]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.optimizer.tell(points, losses)

    def _point(self, config: Mapping[str, Any]) -> list[Any]:
        full = self.shape.full(config)
        return [_raw(d, full[d.name]) for d in self.shape.dimensions]


def dimension(d: Dimension) -> Any:
    """Return a dimension. Ordinals and categories are represented by their index."""
    if d.kind == "categorical":
        return Categorical(list(range(len(d.values))), name=d.name)
    prior = "log-uniform" if d.log else "uniform"
    if d.kind == "real":
        return Real(d.low, d.high, prior=prior, name=d.name)
    if d.kind == "integer" and d.step == 1:
        return Integer(int(d.low), int(d.high), prior=prior, name=d.name)
    return Integer(0, max(1, len(d.choices) - 1), name=d.name)


def _raw(d: Dimension, value: Any) -> Any:
    if d.kind == "real":
        return min(d.high, max(d.low, float(value)))
    return int(value) if d.kind == "integer" and d.step == 1 else d.index(value)


def _value(d: Dimension, raw: Any) -> Any:
    if d.kind == "real":
        return float(raw)
    return int(raw) if d.kind == "integer" and d.step == 1 else d.choices[min(int(raw), len(d.choices) - 1)]
