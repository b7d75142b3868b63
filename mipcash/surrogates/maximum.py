"""Maximum a posteriori hyperparameters: L-BFGS-B from several starts, each hyperparameter within CLIP deviations of its prior.

A descent multiplies differences in last digits, which processors and versions of numpy have, up to those of its steps. Therefore no
descent sees these digits (``steady``), and its end is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from mipcash.deadline import NEVER, Deadline
from mipcash.program.forms import Vector
from mipcash.surrogates.protocols import Section

CLIP = 3.5
"""Bounds of each hyperparameter, in standard deviations of the prior."""
PLACES = 6
"""Decimal places of hyperparameters, which are logarithms."""
VALUE, SLOPE = 11, 8
"""Digits of a value, and of a gradient relative to its largest entry, that a descent sees."""


def maximum(
    objective: Section,
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
        deadline: time at which the descents end, each after its iteration. At least one iteration is made.
    """
    mean, sd = prior
    low, high = mean - CLIP * sd, mean + CLIP * sd
    best, best_value = mean, math.inf
    for start in [s for s in starts if len(s) == len(mean)] or [mean]:
        if deadline.passed and math.isfinite(best_value):
            break
        try:
            found = minimize(
                steady(objective),
                np.clip(start, low, high),
                jac=True,
                method="L-BFGS-B",
                bounds=list(zip(low, high, strict=True)),
                options={"maxiter": iterations},
                callback=_until(deadline),
            )
        except np.linalg.LinAlgError:  # the covariance is numerically singular
            continue
        if found.fun < best_value:
            best, best_value = found.x, float(found.fun)
    return np.round(best, PLACES), best_value


def steady(section: Section, deadline: Deadline = NEVER) -> Section:
    """Return a function for a descent that takes the same path on every processor: without its last digits.

    Once the deadline has passed it is constant, with gradient 0, which ends any descent.
    """
    last = math.inf

    def seen(u: Vector) -> tuple[float, Vector]:
        nonlocal last
        if deadline.passed and math.isfinite(last):
            return last, np.zeros(len(u))
        value, gradient = section(u)
        part, exponent = math.frexp(value)
        last = math.ldexp(round(part, VALUE), exponent)
        unit = math.ldexp(1.0, min(math.frexp(float(np.abs(gradient).max(initial=0.0)))[1], 1000))
        return last, np.round(gradient / unit, SLOPE) * unit

    return seen


def _until(deadline: Deadline) -> Callable[[OptimizeResult], None]:
    """Return a callback that ends a descent after the iteration during which the deadline passed."""

    def stop(intermediate_result: OptimizeResult) -> None:  # scipy goes by the name
        if deadline.passed:
            raise StopIteration

    return stop
