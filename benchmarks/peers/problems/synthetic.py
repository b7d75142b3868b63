"""Random linear function of Daxberger et al., appendices A.1 (no rule) and A.2 (at most two bits), as bundled."""

from __future__ import annotations

from functools import partial

from benchmarks.peers.problem import Problem, described
from mipcash.models.synthetic import build

SEED = 11
TOLERANCES = {"gaussian": 1e-4, "laplace": 1e-3}
"""Tolerances of optima by weights. Losses with Laplace weights are about twenty times as large."""


def _problem(name: str, weights: str = "gaussian", cardinality: int | None = None) -> Problem:
    make = partial(build, seed=SEED, cardinality=cardinality, weights=weights)
    return described(name, lambda: make()[0], make()[1])


PROBLEMS = (_problem("synthetic"), _problem("synthetic-card2", cardinality=2), _problem("synthetic-laplace", "laplace"))
