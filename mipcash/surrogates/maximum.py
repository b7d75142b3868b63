"""Maximum a posteriori hyperparameters: L-BFGS-B from several starts, each hyperparameter within CLIP deviations of its prior.

Processors and versions of numpy differ in the last digits of a result, and a descent amplifies these differences. Therefore values
and gradients are rounded before a descent sees them (``steady``), and its end is rounded.
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
ENDS = 6
"""Decimal places of hyperparameters, which are logarithms."""
VALUE, SLOPE = 11, 8
"""Decimal places of the mantissas of a value, and of the entries of a gradient."""
SMALL = 13
"""Bits by which an entry of a gradient may be below the largest one and still have ``SLOPE`` places; smaller ones have fewer."""


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
            best, best_value = np.round(found.x, ENDS), float(found.fun)
    return best, best_value


def steady(section: Section, deadline: Deadline = NEVER) -> Section:
    """Return a section with its last digits rounded off, so that a descent hardly depends on the processor.

    Once the deadline has passed it is constant, with gradient 0, which ends any descent.
    """
    last = math.inf

    def seen(u: Vector) -> tuple[float, Vector]:
        nonlocal last
        if deadline.passed and math.isfinite(last):
            return last, np.zeros(len(u))
        value, gradient = section(u)
        last = float(f"{value:.{VALUE}e}")
        exponents = np.frexp(gradient)[1]
        exponents = np.maximum(exponents, exponents.max(initial=-2000) - SMALL)
        return last, np.ldexp(np.round(np.ldexp(gradient, -exponents), SLOPE), exponents)

    return seen


def _until(deadline: Deadline) -> Callable[[OptimizeResult], None]:
    """Return a callback that ends a descent after the iteration during which the deadline passed."""

    def stop(intermediate_result: OptimizeResult) -> None:  # scipy goes by the name
        if deadline.passed:
            raise StopIteration

    return stop
