"""What a learning curve that was stopped would have come to, by what whole ones did.

Notation
    (v_i, L_i)  of whole evaluations: the loss by fit k and the loss at the end, n of them
    m           the isotonic regression of L on v: what is better at fit k is not expected to end worse

    told        m(v), between the v_i linear; beyond the worst of them its end, going on by the slope from the best to the worst
    V           mean square of L_i - m_{-i}(v_i), each held against the others

The difference to the incumbent at fit k alone would say too little: curves that lie close together after one epoch are far apart at
the end, and the worst would be told as nearly as good as the incumbent of the day.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Pairs = Sequence[tuple[float, float]]
"""``(v_i, L_i)``."""


@dataclass(frozen=True)
class Outlook:
    """At one fit.

    Attributes:
        pairs: of the whole evaluations, at least two, by increasing v.
        variance: V.
    """

    pairs: tuple[tuple[float, float], ...]
    variance: float

    @classmethod
    def of(cls, pairs: Pairs) -> Outlook:
        """With its variance; of fewer than three pairs it is that of the ends."""
        ordered = sorted(pairs)
        ends = [end for _, end in ordered]
        if len(ordered) < 3:
            return cls(tuple(ordered), float(np.var(ends)))
        apart = [end - expected(v, ordered[:k] + ordered[k + 1 :]) for k, (v, end) in enumerate(ordered)]
        return cls(tuple(ordered), math.fsum(d * d for d in apart) / len(apart))

    def __call__(self, v: float) -> float:
        """What is told of a curve that was at v."""
        return expected(v, self.pairs)


def expected(v: float, pairs: Pairs) -> float:
    """m(v).

    Args:
        v: the loss by fit k.
        pairs: by increasing v, at least one.
    """
    from scipy.optimize import isotonic_regression  # every worker process imports this module; few of them come here

    values, ends = np.array(pairs, dtype=float).T
    at, place, weights = np.unique(values, return_inverse=True, return_counts=True)
    fitted = isotonic_regression(np.bincount(place, ends) / weights, weights=weights).x
    if v <= at[-1] or len(at) == 1:
        return float(np.interp(v, at, fitted)) + max(0.0, v - float(at[-1]))
    slope = (fitted[-1] - fitted[0]) / (at[-1] - at[0])
    return float(fitted[-1] + slope * (v - at[-1]))
