"""What solvers prove: words for it, and how close is close."""

from __future__ import annotations

import math

OPTIMAL = "optimal"
"""The incumbent is proven optimal within the gap asked for."""
FEASIBLE = "feasible"
"""A limit stopped the solver: an incumbent and a bound, no proof."""
INFEASIBLE = "infeasible"
"""Proven: no legal configuration exists (under the cuts and fixings given)."""
UNKNOWN = "unknown"
"""A limit stopped the solver before it found an incumbent."""


ABSOLUTE_GAP = 1e-9
"""Difference between value and bound that counts as none."""
SOLVED = 1e-12
"""Absolute gap at which solvers may stop, in units of the largest cost."""


def relative_gap(value: float, bound: float) -> float:
    """How far a bound is from a value, relative to the larger of them, so between 0 and 2 also around 0; inf without one."""
    apart = abs(value - bound)
    if math.isinf(apart):
        return math.inf
    return apart / max(abs(value), abs(bound)) if apart > ABSOLUTE_GAP else 0.0
