"""The solvers of ADMM's subproblems by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from mipcash.errors import SpaceError
from mipcash.methods.admm.one_hot_bo import OneHotBO
from mipcash.methods.admm.theta_min import GaussianProcessTheta, RandomTheta, ThetaMin
from mipcash.methods.admm.z_min import Bandit, Exhaustive, RandomChoice, ZMin

THETA_MIN: Mapping[str, Callable[[], ThetaMin]] = {
    "gp": GaussianProcessTheta,
    "random": RandomTheta,
}
"""What ``AdmmSettings.theta_min`` takes."""
Z_MIN: Mapping[str, Callable[[], ZMin]] = {
    "bandit": Bandit,
    "gp": OneHotBO,
    "exhaustive": Exhaustive,
    "random": RandomChoice,
}
"""What ``AdmmSettings.z_min`` takes."""

S = TypeVar("S")


def theta_solver(name: str) -> ThetaMin:
    """A solver of theta-min by its name.

    Raises:
        SpaceError: there is none of that name.
    """
    return _made("theta_min", name, THETA_MIN)


def z_solver(name: str) -> ZMin:
    """A solver of z-min by its name.

    Raises:
        SpaceError: there is none of that name.
    """
    return _made("z_min", name, Z_MIN)


def _made(setting: str, name: str, catalogue: Mapping[str, Callable[[], S]]) -> S:
    if name not in catalogue:
        raise SpaceError(f"{setting} must be one of {', '.join(catalogue)}, got {name!r}")
    return catalogue[name]()
