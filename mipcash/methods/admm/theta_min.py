"""theta-min on the active set (liu2020, eq. 10; with outcome constraints ram2020, eq. 27): problem, protocol, solvers by name.

Notation
    x (n, d)    coordinates of the active theta in [0, 1]^d, continuous and relaxed integers alike.
    f (n,)      the black-box part: loss, and the terms of outcome constraints (u eliminated), in units of the loss.
    F = f + sum_i w_i (x_i - b_i)^2 / 2     the objective;   w = rho times the metric, 0 for continuous hyperparameters

A solver proposes candidates. ADMM projects them onto the legal points with z fixed and evaluates the first one that is new; its
value is a row of the problem at the next ask. A solver without an ask-and-tell interface may run again from its start on the rows
in ``own``, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from mipcash.acquisition.acquisition import PLACES, rounded
from mipcash.acquisition.analytic import LogEI
from mipcash.deadline import Deadline
from mipcash.methods.admm.matern import MaternProcess
from mipcash.program.forms import Indices, Vector
from mipcash.surrogates.maximum import steady


@dataclass(frozen=True, eq=False)
class ThetaProblem:
    """Input of a solver at one ask (see the module's notation).

    Attributes:
        x: relaxed theta of the rows that are known with this z, shape (n, d), d at least 1.
        f: finite, failures at the worst value, shape (n,).
        own: rows that were asked for in this phase, in the order of their asks.
        waiting: points under evaluation, shape (p, d).
        stiffness, centre: w and b, shape (d,).
        start: the remembered theta, shape (d,).
        rng: the only source of randomness.
        memory: returned by the solver at its last ask of this phase, in JSON types; {} at the first.
        deadline: when the solver must finish.
        noise: variances of f for pruned evaluations, which models may use: shape (n,); or 0.
    """

    x: Vector
    f: Vector
    own: Indices
    waiting: Vector
    stiffness: Vector
    centre: Vector
    start: Vector
    rng: np.random.Generator
    memory: Mapping[str, Any]
    deadline: Deadline
    noise: Vector

    @property
    def d(self) -> int:
        return len(self.start)

    def penalty(self, x: Vector) -> Vector:
        """Return sum_i w_i (x_i - b_i)^2 / 2: (..., d) -> (...)."""
        return np.asarray(0.5 * ((x - self.centre) ** 2 @ self.stiffness))

    @property
    def values(self) -> Vector:
        """F of the rows: (n,)."""
        return self.f + self.penalty(self.x)


ThetaMin = Callable[[ThetaProblem], tuple[Vector, Mapping[str, Any]]]
"""A solver of theta-min: points in [0, 1]^d, (c, d), the best first, and its memory for the next ask in this phase, in JSON types.

It keeps nothing else. ADMM evaluates the first point whose legal projection is new; if there is none, the phase ends.
"""

SPARE = 24
"""Random candidates at the end, in case all before them repeat known points."""
POOL, NEAR = 192, 16
"""Random points, and perturbed ones of each of the best, from which descents of the improvement start."""
BEST = 3
STARTS, DESCENT = 2, 25
"""Number of descents by L-BFGS-B, and the iterations of each."""
SPREAD = 0.12
FIT = 0.5
"""Share of the time that the fit may take."""
EXACT = 1e-3
"""Noise of pending points at their means, as a share of the noise of an observation."""


def random_theta(problem: ThetaProblem) -> tuple[Vector, Mapping[str, Any]]:
    """Return uniform points; the remembered theta first (RND of liu2020, appendix 5)."""
    random = problem.rng.random((SPARE, problem.d))
    first = () if len(problem.own) else (problem.start[None],)
    return np.concatenate([*first, random]), {}


def process_theta(problem: ThetaProblem) -> tuple[Vector, Mapping[str, Any]]:
    """Return points by a Gaussian process on f and the expected improvement of F (liu2020, appendix 3, eq. A33 to A37).

    The quadratic is known, so it is added to the posterior and not modelled: observations stay valid when b and rho change.
    """
    if not len(problem.f):
        return random_theta(problem)
    known = problem.memory.get("theta")
    start = None if known is None else np.array(known, dtype=float)
    process = MaternProcess.fit(
        problem.x, problem.f, noise=problem.noise, start=start, deadline=problem.deadline.share(FIT)
    )
    improvement = _Improvement(problem, process.given(problem.waiting, (EXACT - 1.0) * float(np.exp(process.theta[1]))))
    pool = _pool(problem)
    pool = pool[np.argsort(improvement.values(pool), kind="stable")]
    ends = np.array([improvement.descended(x) for x in pool[:STARTS]])
    optima = ends[np.argsort(improvement.values(ends), kind="stable")]
    return np.array([*optima, *pool[:SPARE]]), {"theta": process.theta.tolist()}


def _pool(problem: ThetaProblem) -> Vector:
    """Return random points, and the best points with some of their coordinates moved."""
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
        reported = process.standardised(problem.f) + problem.penalty(problem.x) / process.scale
        if np.any(problem.noise):  # the minimum of noisy values is biased low
            reported = process.predict(problem.x)[0] + problem.penalty(problem.x) / process.scale
        self.log_ei = LogEI(float(np.min(reported)))

    def values(self, x: Vector) -> Vector:
        """Return its values: (B, d) -> (B,)."""
        mu, sd = self.process.predict(x)
        return rounded(self.log_ei(mu + self.problem.penalty(x) / self.process.scale, sd))

    def descended(self, x: Vector) -> Vector:
        """Return the end of L-BFGS-B from a point."""
        problem, scale = self.problem, self.process.scale

        def objective(x: Vector) -> tuple[float, Vector]:
            mu, sd, by_mu, by_sd = self.process.slope(x)
            value, slope, steep = self.log_ei.slope(mu + float(problem.penalty(x)) / scale, sd)
            gradient = slope * (by_mu + problem.stiffness * (x - problem.centre) / scale) + steep * by_sd
            return value, gradient

        bounds, options = [(0.0, 1.0)] * len(x), {"maxiter": DESCENT}
        found = minimize(
            steady(objective, problem.deadline), x, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        return np.asarray(np.round(np.clip(found.x, 0.0, 1.0), PLACES))


THETA_MIN: Mapping[str, ThetaMin] = {"gp": process_theta, "random": random_theta}
"""Values of ``AdmmSettings.theta_min``."""
