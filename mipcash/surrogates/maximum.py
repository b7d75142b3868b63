"""Maximum a posteriori hyperparameters: L-BFGS-B from several starts, each hyperparameter within CLIP deviations of its prior."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from mipcash.deadline import NEVER, Deadline
from mipcash.program.forms import Vector

CLIP = 3.5
"""Bounds of each hyperparameter, in standard deviations of the prior."""


def maximum(
    objective: Callable[[Vector], tuple[float, Vector]],
    prior: tuple[Vector, Vector],
    starts: Sequence[Vector],
    iterations: int,
    deadline: Deadline = NEVER,
) -> tuple[Vector, float]:
    """Return the best point of several descents and its value; the prior's means and infinity if every descent fails.

    Args:
        objective: negative log posterior and its gradient: (n,) -> scalar, (n,).
        prior: means and standard deviations, each (n,).
        starts: starting points. Points of a length other than n come from another space and are left out; if none is left, the
            descent starts from the prior's means.
        iterations: of each descent.
        deadline: time at which the descents end; the best point evaluated until then is returned. At least one point is evaluated.
    """
    mean, sd = prior
    low, high = mean - CLIP * sd, mean + CLIP * sd
    best, best_value = mean, math.inf
    for start in [s for s in starts if len(s) == len(mean)] or [mean]:
        if deadline.passed and math.isfinite(best_value):
            break
        seen = _Seen(objective, deadline)
        try:
            found = minimize(
                seen,
                np.clip(start, low, high),
                jac=True,
                method="L-BFGS-B",
                bounds=list(zip(low, high, strict=True)),
                options={"maxiter": iterations},
            )
        except np.linalg.LinAlgError:  # the covariance is numerically singular
            continue
        except _OutOfTimeError:
            if seen.value < best_value:
                best, best_value = seen.at, seen.value
            continue
        if found.fun < best_value:
            best, best_value = found.x, float(found.fun)
    return best, best_value


class _OutOfTimeError(Exception):
    """Raised to end a descent at the deadline."""


@dataclass
class _Seen:
    """Objective that records its least value and the point; it raises an exception once the deadline has passed."""

    objective: Callable[[Vector], tuple[float, Vector]]
    deadline: Deadline
    value: float = math.inf
    at: Vector = field(default_factory=lambda: np.zeros(0))

    def __call__(self, x: Vector) -> tuple[float, Vector]:
        if self.deadline.passed and math.isfinite(self.value):
            raise _OutOfTimeError
        value, gradient = self.objective(x)
        if value < self.value:
            self.value, self.at = float(value), x.copy()
        return value, gradient
