"""The loss of known predictions: scores of scikit-learn without an estimator.

The usual scores are computed directly: greedy selection needs thousands of them, and scikit-learn's scorers check their inputs each
time.

Notation
    y (rows,) codes 0, 1, ... of classes, or values;   p (rows, classes) probabilities, or (rows,) values
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from mipcash.integrations.sklearn.cross_validated import CrossValidated
from mipcash.integrations.sklearn.splits import Rows
from mipcash.study.trial import Failed

Numbers = NDArray[np.float64]
Score = Callable[[Any, Numbers], float]


def accuracy(y: NDArray[np.int64], p: Numbers) -> float:
    """Return the share of rows whose most probable class is correct."""
    return float(np.mean(np.argmax(p, axis=1) == y))


def balanced_accuracy(y: NDArray[np.int64], p: Numbers) -> float:
    """Return the mean recall over the classes in y."""
    right, there = np.argmax(p, axis=1) == y, np.bincount(y)
    return float(np.mean(np.bincount(y, weights=right)[there > 0] / there[there > 0]))


def neg_log_loss(y: NDArray[np.int64], p: Numbers) -> float:
    """Return the mean logarithm of the probability of a row's class."""
    least = float(np.finfo(np.float64).eps)
    return float(np.mean(np.log(np.clip(p[np.arange(len(y)), y], least, 1.0 - least))))


def roc_auc(y: NDArray[np.int64], p: Numbers) -> float:
    """Return the area under the curve: of two classes, or the mean of one-versus-rest areas; nan if a class is missing."""
    classes = range(1, 2) if p.shape[1] == 2 else range(p.shape[1])
    return float(np.mean([_area(y == c, p[:, c]) for c in classes]))


def _area(positive: NDArray[np.bool_], p: Numbers) -> float:
    """Return the probability that a positive row is above a negative one, ties counting half (Mann and Whitney)."""
    n, m = int(positive.sum()), int((~positive).sum())
    if not n * m:
        return float("nan")
    return float((rankdata(p)[positive].sum() - n * (n + 1) / 2) / (n * m))


def neg_mean_squared_error(y: Numbers, p: Numbers) -> float:
    """Return minus the mean squared error."""
    return -float(np.mean((y - p) ** 2))


def neg_root_mean_squared_error(y: Numbers, p: Numbers) -> float:
    """Return minus the root of the mean squared error."""
    return -float(np.sqrt(np.mean((y - p) ** 2)))


def neg_mean_absolute_error(y: Numbers, p: Numbers) -> float:
    """Return minus the mean absolute error."""
    return -float(np.mean(np.abs(y - p)))


def r2(y: Numbers, p: Numbers) -> float:
    """Return 1 - squared errors over squared deviations from the mean; nan if there are no deviations."""
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
"""Scores by scikit-learn's name; each is tested against scikit-learn's scorer."""


class KnownProbabilities(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier whose rows *are* its probabilities."""

    def __init__(self, classes: Any = None) -> None:
        self.classes = classes
        self.classes_ = classes

    def predict_proba(self, x: Any) -> Any:
        """Return the rows."""
        return x

    def predict(self, x: Any) -> Any:
        """Return the most probable class."""
        return self.classes_[np.argmax(x, axis=1)]


class KnownValues(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted regressor whose rows are its values."""

    def __init__(self) -> None:
        self.fitted_ = True

    def predict(self, x: Any) -> Any:
        """Return the rows."""
        return x


@dataclass(frozen=True)
class PredictionLoss:
    """The loss of predictions for all rows: the mean over folds, as in an evaluation.

    Attributes:
        perfect: the loss is this minus the mean score.
        score: of a fold, ``score(held-out rows, their predictions)``; greater is better.
        folds: held-out rows of each.
    """

    perfect: float
    score: Callable[[Rows, Numbers], float]
    folds: tuple[Rows, ...]

    @classmethod
    def of(cls, objective: CrossValidated, repeat: int = 0) -> PredictionLoss:
        held_out = tuple(rows for _, rows in objective.splits(repeat))
        scoring, classes, y = objective.scoring, objective.classes, objective.y
        direct = DIRECT.get(scoring.name)
        if direct is not None:
            codes = y if classes is None else np.searchsorted(classes, y)
            return cls(scoring.perfect, lambda rows, p: direct(codes[rows], p), held_out)
        estimator = KnownValues() if classes is None else KnownProbabilities(classes)

        def score(rows: Rows, p: Numbers) -> float:
            return scoring.score(estimator, p, y[rows], **objective.score_params(rows))

        return cls(scoring.perfect, score, held_out)

    def __call__(self, predictions: Numbers) -> float:
        """Return the loss, inf if a score is not finite."""
        try:
            mean = float(np.mean([self.score(rows, predictions[rows]) for rows in self.folds]))
        except Failed:
            return np.inf
        return self.perfect - mean if np.isfinite(mean) else np.inf
