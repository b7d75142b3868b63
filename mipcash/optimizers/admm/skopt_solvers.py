"""Subproblems by scikit-optimize, which the papers call BO: its Gaussian process with its defaults (0.3 to 1 s an ask).

It is made again at every ask and told all rows. Its ten random points leave six of I = 16.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mipcash.optimizers.admm.optional import needed
from mipcash.optimizers.admm.theta_min import SPARE, Candidates, ThetaProblem
from mipcash.optimizers.admm.z_min import Pull, ZProblem
from mipcash.program.forms import Vector

RANDOM = 10
"""Random points before its first model (the default of ``gp_minimize``); known rows count among them."""
NAMES = "theta_min='skopt' or z_min='skopt'"


@dataclass(frozen=True)
class SkoptTheta:
    """theta-min over [0, 1]^d.

    Raises:
        MipcashError: scikit-optimize is not installed.
    """

    def __post_init__(self) -> None:
        needed("skopt", NAMES, "skopt")

    def __call__(self, problem: ThetaProblem) -> Candidates:
        rows = np.clip(problem.x, 0.0, 1.0).tolist()
        asked = _asked([(0.0, 1.0)] * problem.d, rows, problem.values, problem.rng)
        return Candidates(np.concatenate([np.array([asked], dtype=float), problem.rng.random((SPARE, problem.d))]))


@dataclass(frozen=True)
class SkoptChoice:
    """z-min over categories, one-hot; what it asks for is moved to the legal choice that shares the most levels.

    Raises:
        MipcashError: scikit-optimize is not installed.
    """

    def __post_init__(self) -> None:
        needed("skopt", NAMES, "skopt")

    def __call__(self, problem: ZProblem) -> Pull:
        category = needed("skopt.space", NAMES, "skopt").Categorical
        spaces = [category(list(range(int(n)))) if n > 1 else category([0]) for n in problem.sizes]
        asked = _asked(spaces, problem.z.tolist(), problem.values, problem.rng)
        wanted = problem.one_hot(np.array([asked], dtype=np.int64))[0]
        return Pull(problem.oracle.argmax(wanted + 1e-3 * problem.rng.random(problem.arms)))


def _asked(spaces: Sequence[Any], rows: list[Any], values: Vector, rng: np.random.Generator) -> list[Any]:
    made = needed("skopt", NAMES, "skopt").Optimizer(
        spaces,
        "GP",
        n_initial_points=RANDOM,
        random_state=np.random.RandomState(int(rng.integers(2**31))),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if rows:
            made.tell(rows, [float(v) for v in values])
        return list(made.ask())
