"""The solvers of ADMM's subproblems by name.

z-min by Bayesian optimization over one-hot choices is (BO,BO) of the papers (liu2020, appendices 3 and 14).

Notation
    h (n, K)    one-hot choices whose value at this theta is known
    F (n,)      their values

It uses a Gaussian process with a Matern-5/2 kernel and a length-scale per arm, and the expected improvement. The expected
improvement is not a sum of weights, so it is compared over legal choices from the oracle: random ones and neighbours of the best.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mipcash.acquisition.acquisition import rounded
from mipcash.acquisition.analytic import LogEI
from mipcash.methods.admm.matern import MaternProcess
from mipcash.methods.admm.theta_min import ThetaMin, process_theta, random_theta
from mipcash.methods.admm.z_min import Pull, ZMin, ZProblem, bandit, random_choice
from mipcash.program.forms import Indices

LEAST = 3
"""Choices that are drawn before the first model."""
DRAWN, NEAR, BEST = 24, 24, 2
"""Choices from the oracle that are compared: random ones, and neighbours of the best."""
HELD = 10.0
"""Weight of the levels of a neighbour beside random weights of at most 1: as many of them are kept as the rules allow."""
ITERATIONS = 15
FIT = 0.5
"""Share of the time that the fit may take."""


def one_hot_bo(problem: ZProblem) -> Pull:
    """Return the choice of the largest expected improvement, as described in the module."""
    rng = problem.rng
    if len(problem.z) < LEAST:
        return Pull(problem.oracle.argmax(rng.random(problem.arms)))
    known = problem.memory.get("theta")
    process = MaternProcess.fit(
        problem.one_hot(problem.z),
        problem.values,
        noise=problem.noise,
        start=None if known is None else np.array(known, dtype=float),
        iterations=ITERATIONS,
        deadline=problem.deadline.share(FIT),
    )
    memory = {"theta": [round(t, 6) for t in process.theta.tolist()]}
    pool = _pool(problem)
    if not len(pool):
        return Pull(problem.oracle.argmax(rng.random(problem.arms)), memory)
    log_ei = LogEI(float(process.predict(process.x)[0].min()))
    believed = process.given(problem.one_hot(problem.waiting)) if len(problem.waiting) else process
    values = rounded(log_ei(*believed.predict(problem.one_hot(pool))))
    return Pull(pool[int(np.argmin(values))], memory)


def _pool(problem: ZProblem) -> Indices:
    """Return new legal choices: (c, Z)."""
    rng = problem.rng
    weights = [rng.random(problem.arms) for _ in range(DRAWN)]
    several = np.flatnonzero(problem.sizes > 1)
    ranked = problem.z[np.argsort(problem.values, kind="stable")[:BEST]]
    for k in range(NEAR if len(several) else 0):
        near = ranked[k % len(ranked)].copy()
        group = int(rng.choice(several))
        near[group] = (near[group] + rng.integers(1, problem.sizes[group])) % problem.sizes[group]
        weights.append(HELD * problem.one_hot(near[None])[0] + rng.random(problem.arms))
    found = {tuple(z.tolist()): z for z in map(problem.oracle.argmax, weights) if not problem.tried(z)}
    return np.array(list(found.values()), dtype=np.int64).reshape(len(found), len(problem.sizes))


THETA_MIN: Mapping[str, ThetaMin] = {"gp": process_theta, "random": random_theta}
"""Values of ``AdmmSettings.theta_min``."""
Z_MIN: Mapping[str, ZMin] = {"bandit": bandit, "gp": one_hot_bo, "random": random_choice}
"""Values of ``AdmmSettings.z_min``."""
