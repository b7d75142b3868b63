"""Outputs of an evaluation of a pipeline: the loss, and outputs for outcome constraints.

* ``loss``: the perfect score minus the mean score over the folds,
* ``fit_seconds``: seconds that the fits of all folds took,
* ``latency_ms``, ``single_ms``, ``model_bytes``: of the pipeline of the first fold, see
  :mod:`mipcash.integrations.sklearn.measures`,
* with a protected column ``disparity``, ``disparity_folds`` and ``fpr_disparity``: :mod:`mipcash.models._group_measures`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mipcash.errors import ModelError
from mipcash.integrations.sklearn.cross_validated import CrossValidated, Fold
from mipcash.integrations.sklearn.measures import CLOCKS, latency, single, size
from mipcash.models._data import CLASSIFICATION, Groups, Table, table
from mipcash.models._group_measures import ERROR, GroupMeasures

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
"""Metric -> scikit-learn's scorer, and the perfect score; the loss is the perfect score minus the mean score."""
OF_NUMBERS = ("r2", "rmse", "mae")
"""Metrics of regression; the others are of classes."""
PROTECTED = {"german": "x9"}
"""Data -> the column that is protected unless another is given: of German credit, personal status and sex."""


def groups_of(
    data: str, target: str, protected: str | None, edges: str | None = None, task: str = CLASSIFICATION
) -> Groups | None:
    """Groups by the protected column; None: no column is protected.

    That of PROTECTED counts for classes alone: groups are not compared by numbers.

    Raises:
        ModelError: there is no such column, it has one value, or edges are given without one.
    """
    column = protected or (PROTECTED.get(data) if task == CLASSIFICATION else None)
    if column is None:
        if edges:
            raise ModelError(f"option edges={edges!r} cuts the groups of a column; give protected=COLUMN too")
        return None
    return table(data, target, "auto").grouped(column, edges)


def objective_of(
    build: Callable[[Mapping[str, Any]], Any],
    data: Table,
    metric: str,
    folds: int,
    seed: int,
    groups: Groups | None = None,
    disparity_of: str = ERROR,
    clock: str = "wall",
) -> CrossValidated:
    """Return the objective that cross-validates and measures the pipelines built from configurations.

    Raises:
        ModelError: groups are given for regression, or the disparity's metric is not defined for a group.
    """
    scoring, perfect = METRICS[metric]
    grouped = None
    if groups is not None:
        if data.task != CLASSIFICATION:
            raise ModelError(
                f"groups of {groups.column!r} are compared by how well their classes are told, and the target holds numbers; "
                "leave protected= out"
            )
        grouped = GroupMeasures(groups, disparity_of)
        grouped.check(data.y)
    beside = Beside(grouped, clock)
    made = CrossValidated(build, data.x, data.y, scoring=scoring, folds=folds, seed=seed, task=data.task, finish=beside)
    assert made.scoring.perfect == perfect
    return made


@dataclass(frozen=True)
class Beside:
    """Measures of all folds together.

    Attributes:
        grouped: measures of the groups of rows, if a column is protected.
        clock: name of one of CLOCKS.
    """

    grouped: GroupMeasures | None = None
    clock: str = "wall"

    def __call__(self, folds: Sequence[Fold]) -> dict[str, Any]:
        """Outputs beside the loss, see the module's description."""
        first, clock = folds[0], CLOCKS[self.clock]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outputs: dict[str, Any] = {
                "fit_seconds": sum(f.fit_seconds for f in folds),
                "latency_ms": latency(first.estimator, first.x, clock),
                "single_ms": single(first.estimator, first.x, clock),
                "model_bytes": size(first.estimator),
            }
        if self.grouped is not None:
            outputs |= self.grouped(folds)
        return outputs
