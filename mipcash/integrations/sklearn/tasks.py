"""Classification or regression, by the values of a target."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST_CLASSES = 10
"""Different numbers up to which a target is of classes."""


def looks_continuous(numbers: NDArray[np.float64]) -> bool:
    """Return whether numbers look like a regression target.

    There are more than MOST_CLASSES different ones, and some of them have fractions or more than a fifth of the rows differ.

    Args:
        numbers: shape (rows,).
    """
    different = len(np.unique(numbers))
    return different > MOST_CLASSES and (different > len(numbers) / 5 or bool((numbers % 1 != 0).any()))
