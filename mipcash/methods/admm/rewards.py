"""Rewards of the bandit's pulls: r~ of liu2020, eq. A39, with a given f-hat or one that follows the known values."""

from __future__ import annotations

import numpy as np

from mipcash.program.forms import Vector

RANK = "rank"
"""Reward: the share of the known values that are worse, plus half of the equal ones."""


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
