"""Maximum a posteriori hyperparameters: L-BFGS-B from several starts, each within some deviations of the prior."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize

from mipcash.program.forms import Vector

CLIP = 3.5
"""Standard deviations of the prior within which a hyperparameter is kept."""


def maximum(
    objective: Callable[[Vector], tuple[float, Vector]],
    prior: tuple[Vector, Vector],
    starts: Sequence[Vector],
    iterations: int,
) -> tuple[Vector, float]:
    """The best of several descents; the prior's means where none succeeds.

    Args:
        objective: negative log posterior and its gradient: (n,) -> scalar, (n,).
        prior: means and standard deviations, each (n,).
        starts: those of another length than n, from another space, are left out; none left: the prior's means.
        iterations: of each descent.
    """
    mean, sd = prior
    low, high = mean - CLIP * sd, mean + CLIP * sd
    best, best_value = mean, math.inf
    for start in [s for s in starts if len(s) == len(mean)] or [mean]:
        try:
            found = minimize(
                objective,
                np.clip(start, low, high),
                jac=True,
                method="L-BFGS-B",
                bounds=list(zip(low, high, strict=True)),
                options={"maxiter": iterations},
            )
        except np.linalg.LinAlgError:  # a covariance that is singular to the last digit
            continue
        if found.fun < best_value:
            best, best_value = found.x, float(found.fun)
    return best, best_value
