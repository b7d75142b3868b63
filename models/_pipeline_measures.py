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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipcash.integrations.sklearn.cross_validated import CrossValidated, Fold
from mipcash.models._data import Table, table

METRICS = {
    "accuracy": ("accuracy", 1.0),
    "balanced_accuracy": ("balanced_accuracy", 1.0),
    "f1": ("f1_macro", 1.0),
    "roc_auc": ("roc_auc_ovr", 1.0),
    "log_loss": ("neg_log_loss", 0.0),
    "r2": ("r2", 1.0),
    "rmse": ("neg_root_mean_squared_error", 0.0),
    "mae": ("neg_mean_absolute_error", 0.0),
}
OF_NUMBERS = ("r2", "rmse", "mae")
"""Metrics of regression; the others are of classes."""
"""Metric -> scikit-learn's scorer, and the perfect score; the loss is the perfect score minus the mean score."""
PROTECTED = {"german": "x9"}
"""Data -> the column that is protected unless another is given: of German credit, personal status and sex."""
BATCH, REPEATS = 1000, 5
"""Rows that are predicted at once, and how often, for the latency."""


def groups_of(data: str, target: str, protected: str | None) -> NDArray[np.int64] | None:
    """Groups by the protected column, shape (rows,); None: no column is protected."""
    column = protected or PROTECTED.get(data)
    return None if column is None else table(data, target).groups(column)


def objective_of(
    build: Callable[[Mapping[str, Any]], Any],
    data: Table,
    metric: str,
    folds: int,
    seed: int,
    groups: NDArray[np.int64] | None = None,
) -> CrossValidated:
    """What cross-validates the pipelines that configurations build, and measures them."""
    scoring, perfect = METRICS[metric]
    made = CrossValidated(
        build, data.x, data.y, scoring=scoring, folds=folds, seed=seed, task=data.task, finish=Beside(groups)
    )
    assert made.scoring.perfect == perfect
    return made


@dataclass(frozen=True)
class Beside:
    """What is measured of all folds together.

    Attributes:
        groups: of the rows, where a column is protected.
    """

    groups: NDArray[np.int64] | None = None

    def __call__(self, folds: Sequence[Fold]) -> dict[str, float]:
        """Outputs beside the loss, see the module's description."""
        first = folds[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outputs = {
                "fit_seconds": sum(f.fit_seconds for f in folds),
                "latency_ms": latency(first.estimator, first.x),
            }
            if self.groups is not None:
                wrong = np.zeros(len(first.y))
                for fold in folds:
                    wrong[fold.held_out] = fold.estimator.predict(fold.x[fold.held_out]) != fold.y[fold.held_out]
                outputs["disparity"] = disparity(wrong, self.groups)
        return outputs


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
