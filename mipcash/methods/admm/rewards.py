"""What a pull of the bandit earns: the r~ of liu2020, eq. A39, with an f-hat that is given or follows what is known."""

from __future__ import annotations

import numpy as np

from mipcash.program.forms import Vector

RANK = "rank"
"""The share of the values known so far that are worse, half of the equal ones included."""
QUANTILE = "quantile"
"""Where a value lies between the least (1) and the 0.9 quantile (0) of those known so far."""
WORTHLESS = 0.9


def reward(value: float, known: Vector, f_hat: float | str, unit: float = 1.0) -> float:
    """A reward in [0, 1].

    Args:
        value: of the pull, in units of the loss.
        known: all values known so far, its own included, (n,).
        f_hat: RANK, QUANTILE, or the loss that earns nothing; then 0 earns 1.
        unit: a loss of 1 in the units of the values.
    """
    if f_hat == RANK:
        return float(np.mean(known > value) + 0.5 * np.mean(known == value))
    least, nothing = float(known.min()), float(np.quantile(known, WORTHLESS))
    if not isinstance(f_hat, str):
        least, nothing = 0.0, f_hat / unit
    return float(1.0 - np.clip((value - least) / max(nothing - least, 1e-12), 0.0, 1.0))
