"""The three synthetic problems of ariafar2019, Section 5, on boxes, with limits that only an evaluation tells.

(17) is printed without the sign of its first limit: 3/2 - x1 - 2 x2 - sin(2 pi (x1^2 - 2 x2)) / 2 <= 0 is that of gramacy2016, from
which it is taken. (18) is printed so that it admits the corner 0; the Hartmann function of four variables, at most 0, is
meant: then the optimum lies on the limit. Optima are from 400 starts of SLSQP on the functions themselves (``optimum``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

import mipcash as mc
from mipcash.optimizers.base import Limit

Values = Mapping[str, float]


@dataclass(frozen=True)
class Problem:
    """One problem.

    Attributes:
        name: its equation in the paper.
        dimension, high: of its box [0, high]^dimension.
        limits: N.
        objective: x, (dimension,) -> "loss", and "c1" .. "cN", each to be at most 0.
        best: the optimum.
    """

    name: str
    dimension: int
    high: float
    limits: int
    objective: Callable[[np.ndarray], Values]
    best: float

    @property
    def outputs(self) -> list[str]:
        return ["loss", *(f"c{i + 1}" for i in range(self.limits))]

    @property
    def wanted(self) -> tuple[Limit, ...]:
        return tuple(Limit(name, high=0.0) for name in self.outputs[1:])

    @property
    def budget(self) -> int:
        """Evaluations of single outputs in the paper: 100 (N + 1)."""
        return 100 * (self.limits + 1)

    def space(self) -> mc.Space:
        space = mc.Space(f"admmbo {self.name}")
        for d in range(self.dimension):
            space.real(f"x{d + 1}", 0.0, self.high)
        return space

    def config(self, x: np.ndarray) -> dict[str, float]:
        return {f"x{d + 1}": float(v) for d, v in enumerate(x)}

    def values(self, config: Mapping[str, float]) -> dict[str, float]:
        return dict(self.objective(np.array([config[f"x{d + 1}"] for d in range(self.dimension)])))

    def start(self, seed: int, points: int = 2) -> list[dict[str, float]]:
        """The initial points of a run, drawn evenly from the box (n = m_i = 2)."""
        drawn = np.random.default_rng([17, seed]).uniform(0.0, self.high, size=(points, self.dimension))
        return [self.config(x) for x in drawn]


def kept(values: Values) -> bool:
    """Whether all limits are kept."""
    return all(v <= 0.0 for name, v in values.items() if name != "loss")


def small_region(x: np.ndarray) -> Values:
    """(16), from gardner2014."""
    return {
        "loss": math.sin(x[0]) + float(x[1]),
        "c1": math.sin(x[0]) * math.sin(x[1]) + 0.95,
    }


def two_limits(x: np.ndarray) -> Values:
    """(17), from gramacy2016."""
    a, b = float(x[0]), float(x[1])
    return {
        "loss": a + b,
        "c1": 1.5 - a - 2.0 * b - 0.5 * math.sin(2.0 * math.pi * (a * a - 2.0 * b)),
        "c2": a * a + b * b - 1.5,
    }


A = np.array([[10.0, 0.05, 3.0, 17.0], [3.0, 10.0, 3.5, 8.0], [17.0, 17.0, 1.7, 0.05], [3.5, 0.1, 10.0, 10.0]])
P = np.array(
    [
        [0.131, 0.232, 0.234, 0.404],
        [0.169, 0.413, 0.145, 0.882],
        [0.556, 0.830, 0.352, 0.873],
        [0.012, 0.373, 0.288, 0.574],
    ]
)
E = np.array([1.0, 1.2, 3.0, 3.2])


def hartmann(x: np.ndarray) -> Values:
    """(18), from picheny2016, with the sign of Hartmann's function."""
    inside = float(E @ np.exp(-np.sum(A * (x[:, None] - P) ** 2, axis=0)))
    return {"loss": float(x.sum()), "c1": 1.1923 * (1.1 - inside)}


PROBLEMS = {
    p.name: p
    for p in (
        Problem("16", 2, 6.0, 1, small_region, 0.2532359),
        Problem("17", 2, 1.0, 2, two_limits, 0.5997881),
        Problem("18", 4, 1.0, 1, hartmann, 0.0516762),
    )
}


def optimum(problem: Problem, starts: int = 400) -> float:
    """The least loss that keeps the limits, by descents from random starts."""
    rng, found = np.random.default_rng(0), math.inf
    for start in rng.uniform(0.0, problem.high, size=(starts, problem.dimension)):
        end = minimize(
            lambda x: problem.objective(x)["loss"],
            start,
            method="SLSQP",
            bounds=[(0.0, problem.high)] * problem.dimension,
            constraints=[
                {"type": "ineq", "fun": lambda x, n=name: -problem.objective(x)[n]} for name in problem.outputs[1:]
            ],
        )
        if end.success and all(problem.objective(end.x)[n] <= 1e-9 for n in problem.outputs[1:]):
            found = min(found, float(end.fun))
    return found
