"""theta-min on the active set (liu2020, eq. 10; with limits ram2020, eq. 27): its problem, its protocol, and the solvers by name.

Notation
    x (n, d)    coordinates of the active theta in [0, 1]^d, continuous and relaxed integers alike
    f (n,)      the black-box part: loss, and what limits add to it (u eliminated), in units of the loss
    F = f + sum_i w_i (x_i - b_i)^2 / 2     what is minimised;   w = rho times the metric, 0 for continuous hyperparameters

A solver proposes; ADMM projects its candidates onto the legal points with z fixed, the first that is new is evaluated, and its
value comes back as a row of the problem at the next ask. A solver that is no ask-and-tell one may run again from its start on
the rows in ``own``, in their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy.optimize import minimize

from mipcash.acquisition.analytic import LogEI
from mipcash.deadline import NEVER, Deadline
from mipcash.methods.admm.matern import MaternProcess
from mipcash.program.forms import Indices, Vector


@dataclass(frozen=True, eq=False)
class ThetaProblem:
    """What a solver is given at one ask (see the module's notation).

    Attributes:
        x: relaxed theta of the rows that are known with this z, shape (n, d), d at least 1.
        f: finite, what failed at the worst, shape (n,).
        own: rows that were asked for in this phase, in the order of their asks.
        waiting: what is being evaluated, shape (p, d).
        stiffness, centre: w and b, shape (d,).
        start: the remembered theta, shape (d,).
        levels: number of values of each coordinate, 0 of a continuous one or of one with more than can be told, shape (d,).
        rng: the only randomness.
        memory: what the solver returned at its last ask of this phase, of JSON's types; {} at the first.
        deadline: when it must be done.
        noise: variances of f where evaluations were stopped before their last fit, which models may take: shape (n,); or 0.
    """

    x: Vector
    f: Vector
    own: Indices
    waiting: Vector
    stiffness: Vector
    centre: Vector
    start: Vector
    levels: Indices
    rng: np.random.Generator
    memory: Mapping[str, Any] = field(default_factory=dict)
    deadline: Deadline = NEVER
    noise: Vector | float = 0.0

    @property
    def d(self) -> int:
        return len(self.start)

    def penalty(self, x: Vector) -> Vector:
        """sum_i w_i (x_i - b_i)^2 / 2: (..., d) -> (...)."""
        return np.asarray(0.5 * ((x - self.centre) ** 2 @ self.stiffness))

    @property
    def values(self) -> Vector:
        """F of the rows: (n,)."""
        return self.f + self.penalty(self.x)


@dataclass(frozen=True, eq=False)
class Candidates:
    """What a solver answers.

    Attributes:
        x: points in [0, 1]^d, the best first, shape (c, d); ADMM evaluates the first whose legal projection is new. None left: the
            solver is done, and the phase ends.
        memory: for its next ask in this phase, of JSON's types.
    """

    x: Vector
    memory: Mapping[str, Any] = field(default_factory=dict)


class ThetaMin(Protocol):
    """A solver of theta-min: keeps nothing between asks but what it returns."""

    def __call__(self, problem: ThetaProblem) -> Candidates:
        """Points to evaluate next."""


SPARE = 24
"""Random candidates behind the others: where all before them repeat what is known."""
POOL, NEAR = 192, 16
"""Random points, and perturbed ones of each of the best, from which descents of the improvement start."""
BEST = 3
STARTS, DESCENT = 2, 25
"""Descents by L-BFGS-B, and the iterations of each."""
SPREAD = 0.12
FIT = 0.5
"""Share of the time that the fit may take."""
EXACT = 1e-3
"""Noise of what is pending at its mean, in shares of that of an observation."""


@dataclass(frozen=True)
class RandomTheta:
    """Uniform points; the remembered theta first (RND of liu2020, appendix 5)."""

    def __call__(self, problem: ThetaProblem) -> Candidates:
        random = problem.rng.random((SPARE, problem.d))
        first = () if len(problem.own) else (problem.start[None],)
        return Candidates(np.concatenate([*first, random]))


@dataclass(frozen=True)
class GaussianProcessTheta:
    """A Gaussian process on f and the expected improvement of F (liu2020, appendix 3, eq. A33 to A37).

    The quadratic is known, and is added to the posterior instead of being learned: as b and rho move, no observation is lost.
    """

    def __call__(self, problem: ThetaProblem) -> Candidates:
        if not len(problem.f):
            return RandomTheta()(problem)
        known = problem.memory.get("theta")
        start = None if known is None else np.array(known, dtype=float)
        process = MaternProcess.fit(
            problem.x, problem.f, noise=problem.noise, start=start, deadline=problem.deadline.share(FIT)
        )
        improvement = _Improvement(
            problem, process.given(problem.waiting, (EXACT - 1.0) * float(np.exp(process.theta[1])))
        )
        pool = self._pool(problem)
        pool = pool[np.argsort(improvement.values(pool), kind="stable")]
        ends = [improvement.descended(x) for x in pool[:STARTS]]
        optima = [x for _, x in sorted(ends, key=lambda end: end[0])]
        return Candidates(np.array([*optima, *pool[:SPARE]]), {"theta": process.theta.tolist()})

    def _pool(self, problem: ThetaProblem) -> Vector:
        """Random points, and the best with some of their coordinates moved."""
        rng, d = problem.rng, problem.d
        best = problem.x[np.argsort(problem.values, kind="stable")[:BEST]]
        near = np.repeat(np.concatenate([problem.start[None], best]), NEAR, axis=0)
        moved = rng.random(near.shape) < max(0.3, 2.0 / d)
        near = np.clip(near + moved * SPREAD * rng.normal(size=near.shape), 0.0, 1.0)
        return np.concatenate([rng.random((POOL, d)), near])


class _Improvement:
    """Minus the logarithm of the expected improvement of F, on the scale of the process."""

    def __init__(self, problem: ThetaProblem, process: MaternProcess) -> None:
        self.problem, self.process = problem, process
        told = process.standardised(problem.f) + problem.penalty(problem.x) / process.scale
        if np.any(problem.noise):  # the least of many estimates is too low
            told = process.predict(problem.x)[0] + problem.penalty(problem.x) / process.scale
        self.log_ei = LogEI(float(np.min(told)))

    def values(self, x: Vector) -> Vector:
        """(B, d) -> (B,)."""
        mu, sd = self.process.predict(x)
        return self.log_ei(mu + self.problem.penalty(x) / self.process.scale, sd)

    def descended(self, x: Vector) -> tuple[float, Vector]:
        """The end of a descent by L-BFGS-B: its value, and the point."""
        problem, scale, deadline = self.problem, self.process.scale, self.problem.deadline

        def objective(x: Vector) -> tuple[float, Vector]:
            mu, sd, by_mu, by_sd = self.process.slope(x)
            value, slope, steep = self.log_ei.slope(mu + float(problem.penalty(x)) / scale, sd)
            gradient = slope * (by_mu + problem.stiffness * (x - problem.centre) / scale) + steep * by_sd
            return (value, np.zeros(len(x))) if deadline.passed else (value, gradient)

        found = minimize(
            objective, x, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * len(x), options={"maxiter": DESCENT}
        )
        return float(found.fun), np.clip(found.x, 0.0, 1.0)
