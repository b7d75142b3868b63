"""Greedy ensemble selection with replacement (Caruana et al. 2004; liu2020, Appendix 8).

Notation
    m = 1..M members of the library, best first;   p_m their out-of-fold predictions, shape (rows,) or (rows, classes)
    n_m >= 0 how often a member is taken;   the ensemble after t steps predicts (1 / t) sum_m n_m p_m, with sum_m n_m = t

Each step takes the member that makes the loss lowest, of equals the best by itself. The first is therefore the best single one.
The steps end after ``size``, and the ensemble with the lowest loss on the way is kept, of equals the largest: on the predictions
that it is selected by it is never worse than the best single member.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Predicted = NDArray[np.float64]


@dataclass(frozen=True)
class Selection:
    """Members and how often each was taken.

    Attributes:
        counts: n_m, shape (M,).
        losses: after 1, 2, ... steps, the kept one's and later ones, shape (size,).
    """

    counts: NDArray[np.int64]
    losses: NDArray[np.float64]

    @property
    def weights(self) -> NDArray[np.float64]:
        """Shares of the members, shape (M,); they add up to 1."""
        return np.asarray(self.counts / self.counts.sum())

    @property
    def loss(self) -> float:
        """Of the kept ensemble."""
        return float(self.losses[self.counts.sum() - 1])


def select(predictions: Sequence[Predicted], loss: Callable[[Predicted], float], size: int) -> Selection:
    """Select an ensemble.

    Args:
        predictions: p_m, best member first; at least one.
        loss: of the predictions of an ensemble; where it is not finite, that ensemble is not taken.
        size: steps.
    """
    total, taken, losses = np.zeros_like(predictions[0]), list[int](), list[float]()
    for step in range(1, size + 1):
        tried = [loss((total + p) / step) for p in predictions]
        best = int(np.argmin(np.where(np.isfinite(tried), tried, np.inf)))
        total = total + predictions[best]
        taken.append(best)
        losses.append(tried[best])
    kept = size - int(np.argmin(losses[::-1]))
    return Selection(np.bincount(taken[:kept], minlength=len(predictions)), np.array(losses))
