"""z-min (liu2020, eq. 12; with outcome constraints ram2020, eq. 29): its problem, its protocol, and the solvers by name.

Notation
    z (Z,)      the choice: a level of each of Z groups (modules, plain categories, positions in an order; "off" is the last level
                of a group that may be inactive).   Its one-hot vector has K entries, the arms j = 1..K.
    F (n,)      f~(z, theta) with the terms of outcome constraints, of choices at the theta of this phase.
    n_j, r_j    pulls and rewards of arm j, over all iterations.
    omega (K,)  a weight per arm

Every choice comes from ``argmax``: the z of the largest sum of weights that some legal configuration has, by a MILP over all rules
(eq. A38 with rules and with the permutation constraints of orders). ADMM completes it with theta and projects that onto the legal
points with z fixed.

z-min by Bayesian optimization over one-hot choices is (BO,BO) of the papers (liu2020, appendices 3 and 14). It uses a Gaussian
process with a Matern-5/2 kernel and a length-scale per arm, and the expected improvement. The expected improvement is not a sum of
weights, so it is compared over legal choices: those of random weights, and neighbours of the best.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mipcash.acquisition.acquisition import rounded
from mipcash.acquisition.analytic import LogEI
from mipcash.deadline import Deadline
from mipcash.methods.admm.matern import MaternProcess
from mipcash.program.forms import Indices, Vector

LEAST = 3
"""Choices that are drawn before the first model."""
DRAWN, NEAR, BEST = 24, 24, 2
"""Legal choices that are compared: random ones, and neighbours of the best."""
HELD = 10.0
"""Weight of the levels of a neighbour beside random weights of at most 1: as many of them are kept as the rules allow."""
ITERATIONS = 15
FIT = 0.5
"""Share of the time that the fit may take."""


@dataclass(frozen=True, eq=False)
class ZProblem:
    """Input of a solver at one ask (see the module's notation).

    Attributes:
        sizes: levels of each group, off included, shape (Z,); K is their sum.
        z: choices whose value at this theta is known, shape (n, Z): the answer of theta-min first, then the pulls.
        values: F, failures at the worst value, shape (n,).
        waiting: choices under evaluation, shape (p, Z).
        counts, rewards: n_j and r_j, shape (K,).
        prior: alpha_0 = delta_0 of the bandit.
        argmax: the legal choice, (Z,), of the largest sum of weights, (K,).
        rng: the only source of randomness.
        memory: returned by the solver at its last ask of this phase, in JSON types; {} at the first.
        deadline: when the solver must finish.
        noise: variances of F for pruned evaluations, which models may use: shape (n,); or 0. The bandit needs none, since its
            rewards are drawn.
    """

    sizes: Indices
    z: Indices
    values: Vector
    waiting: Indices
    counts: Vector
    rewards: Vector
    prior: float
    argmax: Callable[[Vector], Indices]
    rng: np.random.Generator
    memory: Mapping[str, Any]
    deadline: Deadline
    noise: Vector

    @property
    def arms(self) -> int:
        """Number of arms K."""
        return int(self.sizes.sum())

    def one_hot(self, z: Indices) -> Vector:
        """Return choices as their arms: (m, Z) -> (m, K)."""
        return one_hot(self.sizes, z)

    def tried(self, z: Indices) -> bool:
        """Return True if the value of one choice, (Z,), is known or pending."""
        return any(bool(np.all(rows == z, axis=1).any()) for rows in (self.z, self.waiting) if len(rows))


def one_hot(sizes: Indices, z: Indices) -> Vector:
    """Return choices, (m, Z), as their arms, (m, K)."""
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    made = np.zeros((len(z), int(sizes.sum())))
    np.put_along_axis(made, starts + z, 1.0, axis=1)
    return made


Memory = Mapping[str, Any]
ZMin = Callable[[ZProblem], tuple[Indices, Memory]]
"""A solver of z-min: a legal choice, and its memory for the next ask in this phase, in JSON types. It keeps nothing else.

A choice of known value counts as a pull without an evaluation.
"""


def bandit(problem: ZProblem) -> tuple[Indices, Memory]:
    """Return a choice by Thompson sampling of a combinatorial bandit with probabilistic rewards.

    liu2020, Algorithm A1, lines 4 to 8. The counts, lines 9 to 14, are in the state of ADMM
    (``mipcash.methods.admm.state.AdmmState.credited``).
    """
    alpha = problem.prior + problem.rewards
    delta = problem.prior + problem.counts - problem.rewards
    return problem.argmax(problem.rng.beta(alpha, delta)), {}


def random_choice(problem: ZProblem) -> tuple[Indices, Memory]:
    """Return the legal choice of the largest sum of uniform weights (the random z-min of liu2020, appendix 5)."""
    return problem.argmax(problem.rng.random(problem.arms)), {}


def one_hot_bo(problem: ZProblem) -> tuple[Indices, Memory]:
    """Return the choice of the largest expected improvement, (BO,BO) of the papers."""
    rng = problem.rng
    if len(problem.z) < LEAST:
        return random_choice(problem)
    known = problem.memory.get("theta")
    start, limits = None if known is None else np.array(known, dtype=float), (ITERATIONS, problem.deadline.share(FIT))
    process = MaternProcess.fit(problem.one_hot(problem.z), problem.values, problem.noise, start, *limits)
    memory = {"theta": [round(t, 6) for t in process.theta.tolist()]}
    pool = _pool(problem)
    if not len(pool):
        return problem.argmax(rng.random(problem.arms)), memory
    log_ei = LogEI(float(process.predict(process.x)[0].min()))
    believed = process.given(problem.one_hot(problem.waiting)) if len(problem.waiting) else process
    values = rounded(log_ei(*believed.predict(problem.one_hot(pool))))
    return pool[int(np.argmin(values))], memory


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
    found = {tuple(z.tolist()): z for z in map(problem.argmax, weights) if not problem.tried(z)}
    return np.array(list(found.values()), dtype=np.int64).reshape(len(found), len(problem.sizes))


Z_MIN: Mapping[str, ZMin] = {"bandit": bandit, "gp": one_hot_bo, "random": random_choice}
"""Values of ``AdmmSettings.z_min``."""
