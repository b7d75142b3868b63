"""Settings of ADMM, with the defaults and the papers' values, and rewards of the bandit's pulls: r~ of liu2020, eq. A39."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mipcash.errors import SpaceError, check_settings
from mipcash.methods.admm.theta_min import THETA_MIN
from mipcash.methods.admm.z_min import Z_MIN
from mipcash.program.forms import Vector

RANK = "rank"
"""Reward: the share of the known values that are worse, plus half of the equal ones."""


@dataclass(frozen=True)
class AdmmSettings:
    """Settings of the optimizer ``admm``.

    Args:
        n_initial: size of the initial design, which covers the algorithms; the papers use no initial design.
        theta_min: solver of theta-min: ``gp`` (BO of the papers) or ``random``.
        z_min: solver of z-min: ``bandit`` (Ba of the papers), ``gp`` (BO over one-hot choices) or ``random``.
        first: I, evaluations of each subproblem in the first iteration; the papers have 16, too many for a budget of 40.
        growth: F, the increase of I with every iteration; 0: I is fixed.
        most: the largest I.
        rho: penalty of the augmented term, on the unit scale of hyperparameters and in units of the loss. At 0, theta is not
            pulled towards the last projection. The papers have 1, for unscaled losses.
        limit_rho: penalty of the outcome constraints; None: rho.
        free_slack: True: z-min minimises over u, too. The papers keep the u of theta-min, so a choice that satisfies a
            constraint by a wider margin is drawn back to the constraint's boundary.
        warm_start: True: theta-min is fitted to every evaluation with its z (BO* of ram2020). False: to those of its phase
            alone.
        prior: alpha_0 = delta_0 of the bandit; the papers have 10, which hardly moves in a hundred pulls.
        f_hat: the loss of reward 0 (liu2020, eq. A39), if losses lie between 0 and it; ``rank``: rewards by rank, for losses of
            any scale.
        unit: scale of the loss, for rho; None: the range of the losses at the start without the worst tenth. The papers have 1.
        tolerance: norm of all residuals at which the optimizer asks to stop; None: never. Stopping there costs performance,
            because the residuals are small in regions that were not tried.

    Raises:
        SpaceError: a setting is out of range, or there is no such solver of a subproblem.

    Examples:
        >>> from mipcash.methods.admm import AdmmSettings
        >>> settings = AdmmSettings(first=4, growth=2, most=8)
        >>> [settings.steps(iteration) for iteration in range(4)]
        [4, 6, 8, 8]
    """

    n_initial: int = 6
    theta_min: str = "gp"
    z_min: str = "bandit"
    first: int = 4
    growth: int = 2
    most: int = 128
    rho: float = 0.01
    limit_rho: float | None = 10.0
    free_slack: bool = True
    warm_start: bool = True
    prior: float = 1.0
    f_hat: float | str = RANK
    unit: float | None = None
    tolerance: float | None = None

    def __post_init__(self) -> None:
        check_settings(self, above_0=("limit_rho", "unit", "prior"), n_initial=1, first=1, growth=0, rho=0, tolerance=0)
        check_settings(self, most=self.first)
        check_settings(self, choices={"theta_min": THETA_MIN, "z_min": Z_MIN})
        if self.rho == math.inf:
            raise SpaceError("AdmmSettings: rho must be finite")
        known = isinstance(self.f_hat, (int, float)) and not isinstance(self.f_hat, bool)
        if self.f_hat != RANK and not (known and 0.0 < float(self.f_hat) < math.inf):
            raise SpaceError(f"f_hat must be {RANK!r} or a finite loss above 0, got {self.f_hat!r}")

    def steps(self, iteration: int) -> int:
        """Return I of an iteration, from 0: adaptive precision (liu2020, appendix 13).

        Args:
            iteration: number of the iteration, from 0.

        Returns:
            The number of evaluations of each subproblem.
        """
        return min(self.first + self.growth * iteration, self.most)

    @property
    def slack_rho(self) -> float:
        """Penalty of the outcome constraints; it is above 0, since they would have no effect otherwise."""
        return self.limit_rho if self.limit_rho is not None else self.rho or 1.0

    @classmethod
    def paper(cls, **changes: Any) -> AdmmSettings:
        """Return AdADMM-F16(BO,Ba) of the papers: I from 16 to 256, Beta(10, 10), f_hat = 0.7, cold starts, unscaled losses.

        Losses lie between 0 and 1: minimise 1 - accuracy, for rewards of an accuracy that is maximised are all 1.

        Args:
            changes: settings that differ from the papers'.

        Returns:
            The settings.
        """
        own: dict[str, Any] = {
            "n_initial": 1,
            "first": 16,
            "growth": 16,
            "most": 256,
            "warm_start": False,
            "prior": 10.0,
            "f_hat": 0.7,
            "unit": 1.0,
            "free_slack": False,
            "rho": 1.0,
            "limit_rho": None,
        }
        return cls(**(own | changes))


def reward(value: float, known: Vector, f_hat: float | str, unit: float = 1.0) -> float:
    """Return a reward in [0, 1].

    Args:
        value: of the pull, in units of the loss.
        known: all known values, including that of the pull, (n,).
        f_hat: RANK, or the loss at which the reward is 0; a loss of 0 then has reward 1.
        unit: a loss of 1 in the units of the values.
    """
    if isinstance(f_hat, str):
        return float(np.mean(known > value) + 0.5 * np.mean(known == value))
    return float(1.0 - np.clip(value / max(f_hat / unit, 1e-12), 0.0, 1.0))
