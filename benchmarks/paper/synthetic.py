"""Appendix A.1 (no rule; Gaussian and pruned Laplace weights) and A.2 (at most two of eight bits), of the bundled model.

The paper runs 16 random initialisations and does not say how many functions are behind them; here four draws of the
function with four initialisations each. Normalised error: (best - least) / (most - least), with the least and the
greatest value of each function (legal settings only in A.2) instead of those observed.
"""

from __future__ import annotations

from functools import partial

from benchmarks.peers.problem import Problem
from benchmarks.peers.problems.synthetic import TOLERANCES
from mipcash.models.synthetic import build

FIRST = 2019
"""Seed of the first function, different from that of the peers benchmark, which was used for tuning."""
FUNCTIONS = 4
SETTINGS: dict[str, tuple[str, int | None]] = {
    "a1-gaussian": ("gaussian", None),
    "a1-laplace": ("laplace", None),
    "a2-cardinality": ("gaussian", 2),
}
RANGES: dict[str, tuple[float, float]] = {
    "a1-gaussian-0": (-19.83914665806078, 27.828239408534458),
    "a1-gaussian-1": (-26.11078314309349, 22.65856525451107),
    "a1-gaussian-2": (-25.750360961813985, 31.869573826422325),
    "a1-gaussian-3": (-22.883223013088557, 23.899671539152262),
    "a1-laplace-0": (-283.99350899685004, 254.61392039965338),
    "a1-laplace-1": (-348.2346979197034, 292.6960200882322),
    "a1-laplace-2": (-258.53881136532436, 389.7016978859033),
    "a1-laplace-3": (-427.6172757718768, 430.38409486547766),
    "a2-cardinality-0": (-10.638926311389191, 14.200231987380173),
    "a2-cardinality-1": (-9.828517639456669, 13.327209223688662),
    "a2-cardinality-2": (-10.733977612320082, 11.283148573670772),
    "a2-cardinality-3": (-11.755314419297456, 10.815046376137527),
}
"""Least and greatest value, from enumeration of the bits and branch and bound over the reals."""


def _problem(name: str, draw: int) -> Problem:
    weights, cardinality = SETTINGS[name]
    make = partial(build, seed=FIRST + draw, cardinality=cardinality, weights=weights)
    full = f"{name}-{draw}"
    return Problem(
        name=full,
        space=lambda: make()[0],
        objective=make()[1],
        group="free" if cardinality is None else "rules",
        optimum=RANGES[full][0],
        certificate="branch and bound",
        source="Daxberger et al., appendix " + ("A.1" if cardinality is None else "A.2"),
        tolerance=TOLERANCES[weights],
    )


def problems() -> dict[str, Problem]:
    """Return the problems by name: ``a1-gaussian-0`` to ``a2-cardinality-3``."""
    made = [_problem(name, draw) for name in SETTINGS for draw in range(FUNCTIONS)]
    return {p.name: p for p in made}
