"""The usual scores of known predictions, computed directly: greedy selection asks for thousands, and scikit-learn's scorers check
their inputs each time.

Notation
    y (rows,) codes 0, 1, ... of classes, or values;   p (rows, classes) probabilities, or (rows,) values
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Numbers = NDArray[np.float64]
Score = Callable[[Any, Numbers], float]


def accuracy(y: NDArray[np.int64], p: Numbers) -> float:
    """Share of rows whose most probable class is theirs."""
    return float(np.mean(np.argmax(p, axis=1) == y))


def balanced_accuracy(y: NDArray[np.int64], p: Numbers) -> float:
    """Mean over the classes that are there of the share of their rows that is right."""
    right, there = np.argmax(p, axis=1) == y, np.bincount(y)
    return float(np.mean(np.bincount(y, weights=right)[there > 0] / there[there > 0]))


def neg_log_loss(y: NDArray[np.int64], p: Numbers) -> float:
    """Mean logarithm of the probability of a row's class."""
    least = float(np.finfo(np.float64).eps)
    return float(np.mean(np.log(np.clip(p[np.arange(len(y)), y], least, 1.0 - least))))


def roc_auc(y: NDArray[np.int64], p: Numbers) -> float:
    """Area under the curve: of two classes, or the mean over classes of each against the others; nan where one is not there."""
    classes = range(1, 2) if p.shape[1] == 2 else range(p.shape[1])
    return float(np.mean([_area(y == c, p[:, c]) for c in classes]))


def _area(positive: NDArray[np.bool_], p: Numbers) -> float:
    """The probability that a positive row lies above another, ties counting half (Mann and Whitney)."""
    n, m = int(positive.sum()), int((~positive).sum())
    if not n * m:
        return float("nan")
    return float((rankdata(p)[positive].sum() - n * (n + 1) / 2) / (n * m))


def neg_mean_squared_error(y: Numbers, p: Numbers) -> float:
    """Minus the mean square of the errors."""
    return -float(np.mean((y - p) ** 2))


def neg_root_mean_squared_error(y: Numbers, p: Numbers) -> float:
    """Minus its root."""
    return -float(np.sqrt(np.mean((y - p) ** 2)))


def neg_mean_absolute_error(y: Numbers, p: Numbers) -> float:
    """Minus the mean size of the errors."""
    return -float(np.mean(np.abs(y - p)))


def r2(y: Numbers, p: Numbers) -> float:
    """1 - squared errors over squared deviations from the mean."""
    around = float(np.sum((y - np.mean(y)) ** 2))
    return 1.0 - float(np.sum((y - p) ** 2)) / around if around else float("nan")


DIRECT: dict[str, Score] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "neg_log_loss": neg_log_loss,
    "roc_auc": roc_auc,
    "roc_auc_ovr": roc_auc,
    "neg_mean_squared_error": neg_mean_squared_error,
    "neg_root_mean_squared_error": neg_root_mean_squared_error,
    "neg_mean_absolute_error": neg_mean_absolute_error,
    "r2": r2,
}
"""By scikit-learn's name; each is tested against its scorer."""
