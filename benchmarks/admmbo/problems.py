"""Three synthetic problems of ariafar2019, Section 5, on boxes, with outcome constraints.

Functions, and corrections of the printed ones, are in :mod:`benchmarks.limits.problems.admmbo`.
Optima are from 400 starts of SLSQP on the functions themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

import mipcash as mc
from benchmarks.limits.problems.admmbo import problem_16, problem_17, problem_18
from mipcash.optimizers.optimizer import Limit


@dataclass(frozen=True)
class Problem:
    """Synthetic problem.

    Attributes:
        name: its equation in the paper.
        dimension, high: of its box [0, high]^dimension.
        limits: N.
        values: of a configuration: "loss", and "c1" .. "cN", each to be at most 0.
        best: the optimum.
    """

    name: str
    dimension: int
    high: float
    limits: int
    values: Callable[[Mapping[str, float]], dict[str, float]]
    best: float

    @property
    def outputs(self) -> list[str]:
        return ["loss", *(f"c{i + 1}" for i in range(self.limits))]

    @property
    def wanted(self) -> tuple[Limit, ...]:
        return tuple(Limit(name, high=0.0) for name in self.outputs[1:])

    @property
    def budget(self) -> int:
        """Return the budget of the paper in evaluations of single outputs: 100 (N + 1)."""
        return 100 * (self.limits + 1)

    def space(self) -> mc.Space:
        space = mc.Space(f"admmbo {self.name}")
        for d in range(self.dimension):
            space.real(f"x{d + 1}", 0.0, self.high)
        return space

    def config(self, x: np.ndarray) -> dict[str, float]:
        return {f"x{d + 1}": float(v) for d, v in enumerate(x)}

    def objective(self, x: np.ndarray) -> dict[str, float]:
        """Return the values at x, shape (dimension,)."""
        return self.values(self.config(x))

    def start(self, seed: int, points: int = 2) -> list[dict[str, float]]:
        """Return the initial points of a run, drawn uniformly from the box (n = m_i = 2)."""
        drawn = np.random.default_rng([17, seed]).uniform(0.0, self.high, size=(points, self.dimension))
        return [self.config(x) for x in drawn]


def kept(values: Mapping[str, float]) -> bool:
    """Return True if all outcome constraints are satisfied."""
    return all(v <= 0.0 for name, v in values.items() if name != "loss")


def hartmann(config: Mapping[str, float]) -> dict[str, float]:
    """Return (18), from picheny2016, with its factor and the sign of Hartmann's function."""
    told = problem_18(config)
    return told | {"c1": 1.1923 * told["c1"]}


PROBLEMS = {
    p.name: p
    for p in (
        Problem("16", 2, 6.0, 1, problem_16, 0.2532359),
        Problem("17", 2, 1.0, 2, problem_17, 0.5997881),
        Problem("18", 4, 1.0, 1, hartmann, 0.0516762),
    )
}
