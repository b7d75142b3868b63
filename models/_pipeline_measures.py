"""What an evaluation of a pipeline gives: the loss, and what may be limited beside it.

* ``loss``: the perfect score minus the mean score over stratified folds,
* ``fit_seconds``: seconds that the fits of all folds took,
* ``latency_ms``: milliseconds in which BATCH rows are predicted at once by the pipeline of the first fold: the median of REPEATS
  calls after one that does not count. It depends on the machine and on what else runs there,
* ``disparity``, where a column is protected: the error rate of the group that is worst off minus that of the group that is best off
  (liu2020, Eq. A43, with the zero-one loss), over the held-out predictions of all folds together. The mean over folds (Eq. A44)
  would mostly tell how small the smallest group is in a fold. The column stays among the features.
"""

from __future__ import annotations

import statistics
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipcash.models._data import Table, table

METRICS = {
    "accuracy": ("accuracy", 1.0),
    "balanced_accuracy": ("balanced_accuracy", 1.0),
    "f1": ("f1_macro", 1.0),
    "roc_auc": ("roc_auc_ovr", 1.0),
    "log_loss": ("neg_log_loss", 0.0),
}
"""Metric -> scikit-learn's scorer, and the perfect score; the loss is the perfect score minus the mean score."""
PROTECTED = {"german": "x9"}
"""Data -> the column that is protected unless another is given: of German credit, personal status and sex."""
BATCH, REPEATS = 1000, 5
"""Rows that are predicted at once, and how often, for the latency."""


def groups_of(data: str, target: str, protected: str | None) -> NDArray[np.int64] | None:
    """Groups by the protected column, shape (rows,); None: no column is protected."""
    column = protected or PROTECTED.get(data)
    return None if column is None else table(data, target).groups(column)


@dataclass(frozen=True)
class Measured:
    """What an evaluation gives.

    Attributes:
        score: mean over the folds.
        outputs: the loss and what is beside it, see the module's description.
    """

    score: float
    outputs: dict[str, float]


def evaluate(
    model: Any, data: Table, metric: str, folds: int, seed: int, groups: NDArray[np.int64] | None = None
) -> Measured:
    """A pipeline over the stratified folds."""
    from sklearn.model_selection import StratifiedKFold, cross_validate

    cv = StratifiedKFold(folds, shuffle=True, random_state=seed)
    scoring, perfect = METRICS[metric]
    with warnings.catch_warnings():  # constant columns and slow convergence show in the score
        warnings.simplefilter("ignore")
        result = cross_validate(
            model, data.x, data.y, cv=cv, scoring=scoring, error_score="raise", return_estimator=True
        )
        score, seconds = float(result["test_score"].mean()), float(result["fit_time"].sum())
        fitted = result["estimator"]
        outputs = {"loss": perfect - score, "fit_seconds": seconds, "latency_ms": latency(fitted[0], data.x)}
        if groups is not None:
            wrong = data.y.astype(float)
            for (_, held_out), one in zip(cv.split(data.x, data.y), fitted, strict=True):
                wrong[held_out] = one.predict(data.x[held_out]) != data.y[held_out]
            outputs["disparity"] = disparity(wrong, groups)
    return Measured(score, outputs)


def latency(model: Any, x: NDArray[np.float64]) -> float:
    """Milliseconds in which BATCH rows are predicted: the median of REPEATS calls, after one that fills caches."""
    rows = x[np.arange(BATCH) % len(x)]
    seconds = []
    for _ in range(1 + REPEATS):
        began = time.perf_counter()
        model.predict(rows)
        seconds.append(time.perf_counter() - began)
    return 1000.0 * statistics.median(seconds[1:])


def disparity(wrong: NDArray[np.float64], groups: NDArray[np.int64]) -> float:
    """The highest error rate of a group minus the lowest (liu2020, Eq. A43).

    Args:
        wrong: 1 where a row is predicted wrongly, else 0, shape (rows,).
        groups: codes 0, 1, ... of the groups, shape (rows,).
    """
    rates = np.bincount(groups, weights=wrong) / np.bincount(groups)
    return float(rates.max() - rates.min())
