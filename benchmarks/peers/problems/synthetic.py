"""Random linear function of Daxberger et al., appendices A.1 (no rule) and A.2 (at most two bits), as bundled."""

from __future__ import annotations

from functools import partial

from benchmarks.peers.problem import Problem
from mipcash.models.synthetic import build

SOURCE = "Daxberger et al., Mixed-variable Bayesian optimization, appendix A"
SEED = 11
TOLERANCES = {"gaussian": 1e-4, "laplace": 1e-3}
"""Tolerances of optima by weights. Losses with Laplace weights are about twenty times as large."""


def _problem(name: str, optimum: float, weights: str, cardinality: int | None = None, held_out: bool = False) -> Problem:
    make = partial(build, seed=SEED, cardinality=cardinality, weights=weights)
    return Problem(
        name=name,
        space=lambda: make()[0],
        objective=make()[1],
        group="free" if cardinality is None else "rules",
        optimum=optimum,
        certificate="branch and bound",
        source=SOURCE,
        held_out=held_out,
        tolerance=TOLERANCES[weights],
    )


PROBLEMS = (
    _problem("synthetic", -18.872352503389276, "gaussian"),
    _problem("synthetic-card2", -11.669331931264113, "gaussian", cardinality=2),
    _problem("synthetic-laplace", -360.4731962386553, "laplace", held_out=True),
)
