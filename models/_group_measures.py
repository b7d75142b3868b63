"""Differences of a classifier between groups of rows: the group disparity of liu2020, appendix 12, and of false positives.

Notation
    G_j         the rows of group j, by a protected column, which stays among the features
    eps(G)      the metric on the held-out rows of G: the rate of errors (zero-one loss), or as in the paper the area under the ROC
                curve; for more than two classes the mean of one against the rest
    disparity        max_j eps(G_j) - min_j eps(G_j), held-out rows of all folds together            Eq. A43
    disparity_folds  the mean over folds of the same within the held-out rows of a fold              Eq. A44
    fpr_disparity    as A43, for the rate of false positives: rows of other classes predicted as positive. Of two classes the last
                     is the positive one; of more classes each is in turn, and the largest disparity counts.

Within a fold the smallest group may have few rows, so A44 is mostly noise. Over all folds, scores of different fits are ranked
together, so for the area under the ROC curve A44 is the one to constrain. If a group lacks what a metric needs, the output is a
failure with its cause, and other outputs remain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipcash.errors import ModelError
from mipcash.integrations.sklearn.cross_validated import Fold
from mipcash.models._data import Groups
from mipcash.study.trial import Failed

ERROR, ROC_AUC = "error", "roc_auc"
OF = (ERROR, ROC_AUC)
"""Metrics that groups are compared by."""

Metric = Callable[[NDArray[np.int64], NDArray[np.float64]], float]
"""Of classes 0, 1, ..., shape (rows,), and their probabilities, shape (rows, classes); nan where it is not defined."""


def error_rate(y: NDArray[np.int64], told: NDArray[np.float64]) -> float:
    """Share of rows whose likeliest class is another."""
    return float(np.mean(told.argmax(axis=1) != y)) if len(y) else np.nan


def area(y: NDArray[np.int64], told: NDArray[np.float64]) -> float:
    """Area under the ROC curve; of more than two classes the mean over one against the rest."""
    from sklearn.metrics import roc_auc_score

    last = told.shape[1] - 1
    positives = range(last, last + 1) if last == 1 else range(last + 1)
    if any((y == c).all() or not (y == c).any() for c in positives):
        return np.nan
    return float(np.mean([roc_auc_score(y == c, told[:, c]) for c in positives]))


def false_positives(positive: int) -> Metric:
    """The rate of rows of other classes that are taken for one."""

    def rate(y: NDArray[np.int64], told: NDArray[np.float64]) -> float:
        others = y != positive
        return float(np.mean(told[others].argmax(axis=1) == positive)) if others.any() else np.nan

    return rate


@dataclass(frozen=True)
class GroupMeasures:
    """Differences between groups, of the folds of an evaluation.

    Attributes:
        groups: of all rows.
        of: of OF, what ``disparity`` compares.
    """

    groups: Groups
    of: str = ERROR

    @property
    def metric(self) -> Metric:
        return error_rate if self.of == ERROR else area

    def check(self, y: NDArray[np.int64]) -> None:
        """Check that the metric is defined for each group, whatever a pipeline predicts.

        Raises:
            ModelError: it is not defined for a group.
        """
        told = np.eye(int(y.max()) + 1)[y]
        _, lacking = self._spread(self.metric, y, told, self.groups.codes)
        if lacking is not None:
            raise ModelError(
                f"{self._why(self.of, lacking, int((self.groups.codes == lacking).sum()))}; use wider groups (edges=), another "
                f"column, or disparity_of={ERROR}"
            )

    def __call__(self, folds: Sequence[Fold]) -> dict[str, Any]:
        """The outputs, see the module's description; one that is not defined is a failure."""
        codes, y = self.groups.codes, folds[0].y
        held = np.concatenate([f.held_out for f in folds])
        told = np.concatenate([f.predictions for f in folds])
        together = y[held], told, codes[held]
        within = [self._told(self.of, self.metric, y[f.held_out], f.predictions, codes[f.held_out]) for f in folds]
        last = told.shape[1] - 1
        rates = [
            self._told("the rate of false positives", false_positives(c), *together)
            for c in (range(last, last + 1) if last == 1 else range(last + 1))
        ]
        return {
            "disparity": self._told(self.of, self.metric, *together),
            "disparity_folds": _first_failed(within) or float(np.mean(within)),
            "fpr_disparity": _first_failed(rates) or max(rates),
        }

    def _told(self, name: str, metric: Metric, y: Any, told: Any, codes: Any) -> Any:
        """A spread, or why there is none."""
        spread, lacking = self._spread(metric, y, told, codes)
        if lacking is None:
            return spread
        return Failed(f"{self._why(name, lacking, int((codes == lacking).sum()))}; use wider groups, or fewer folds")

    def _spread(self, metric: Metric, y: Any, told: Any, codes: Any) -> tuple[float, int | None]:
        """The highest value of a group minus the lowest, and the first group that has none."""
        values = [metric(y[codes == g], told[codes == g]) for g in range(len(self.groups.names))]
        lacking = next((g for g, value in enumerate(values) if np.isnan(value)), None)
        return max(values) - min(values), lacking

    def _why(self, name: str, group: int, rows: int) -> str:
        has = f"its {rows} rows lack a class" if rows else "no row of it is held out"
        return (
            f"{name} is not defined for the group {self.groups.names[group]!r} of column {self.groups.column!r}: {has}"
        )


def _first_failed(values: Sequence[Any]) -> Failed | None:
    return next((v for v in values if isinstance(v, Failed)), None)
