"""Maximum a posteriori hyperparameters: L-BFGS-B from several starts, each within some deviations of the prior."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from mipcash.deadline import NEVER, Deadline
from mipcash.program.forms import Vector

CLIP = 3.5
"""Standard deviations of the prior within which a hyperparameter is kept."""


def maximum(
    objective: Callable[[Vector], tuple[float, Vector]],
    prior: tuple[Vector, Vector],
    starts: Sequence[Vector],
    iterations: int,
    deadline: Deadline = NEVER,
) -> tuple[Vector, float]:
    """The best of several descents; the prior's means where none succeeds.

    Args:
        objective: negative log posterior and its gradient: (n,) -> scalar, (n,).
        prior: means and standard deviations, each (n,).
        starts: those of another length than n, from another space, are left out; none left: the prior's means.
        iterations: of each descent.
        deadline: when the descents end; the best that was seen by then counts. One value at least is looked at.
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
        except np.linalg.LinAlgError:  # a covariance that is singular to the last digit
            continue
        except _OutOfTimeError:
            if seen.value < best_value:
                best, best_value = seen.at, seen.value
            continue
        if found.fun < best_value:
            best, best_value = found.x, float(found.fun)
    return best, best_value


class _OutOfTimeError(Exception):
    """Ends a descent."""


@dataclass
class _Seen:
    """An objective that remembers its least value, and where, until a deadline."""

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
