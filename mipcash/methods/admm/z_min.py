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
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mipcash.deadline import NEVER, Deadline
from mipcash.methods.admm.legal import LegalChoices
from mipcash.program.forms import Indices, Vector


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
        oracle: the legal choices.
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
    oracle: LegalChoices
    rng: np.random.Generator
    memory: Mapping[str, Any] = field(default_factory=dict)
    deadline: Deadline = NEVER
    noise: Vector | float = 0.0

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


@dataclass(frozen=True, eq=False)
class Pull:
    """Output of a solver.

    Attributes:
        z: a legal choice, (Z,). A choice of known value counts as a pull without an evaluation.
        memory: for its next ask in this phase, in JSON types.
    """

    z: Indices
    memory: Mapping[str, Any] = field(default_factory=dict)


ZMin = Callable[[ZProblem], Pull]
"""A solver of z-min: the choice to evaluate next. It keeps nothing between asks except the memory that it returns."""


def bandit(problem: ZProblem) -> Pull:
    """Return a choice by Thompson sampling of a combinatorial bandit with probabilistic rewards.

    liu2020, Algorithm A1, lines 4 to 8. The counts, lines 9 to 14, are in the state of ADMM
    (``mipcash.methods.admm.state.AdmmState.credited``).
    """
    alpha = problem.prior + problem.rewards
    delta = problem.prior + problem.counts - problem.rewards
    return Pull(problem.oracle.argmax(problem.rng.beta(alpha, delta)))


def random_choice(problem: ZProblem) -> Pull:
    """Return the legal choice of the largest sum of uniform weights (the random z-min of liu2020, appendix 5)."""
    return Pull(problem.oracle.argmax(problem.rng.random(problem.arms)))
