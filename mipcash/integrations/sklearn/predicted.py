"""The loss of predictions that are known already: scores of scikit-learn without an estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from mipcash.integrations.sklearn.cross_validated import CrossValidated
from mipcash.integrations.sklearn.scores import DIRECT
from mipcash.integrations.sklearn.splits import Rows
from mipcash.study.trial import Failed


class KnownProbabilities(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier whose rows *are* its probabilities."""

    def __init__(self, classes: Any = None) -> None:
        self.classes = classes
        self.classes_ = classes

    def predict_proba(self, x: Any) -> Any:
        """The rows."""
        return x

    def predict(self, x: Any) -> Any:
        """The most probable class."""
        return self.classes_[np.argmax(x, axis=1)]


class KnownValues(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted regressor whose rows are its values."""

    def __init__(self) -> None:
        self.fitted_ = True

    def predict(self, x: Any) -> Any:
        """The rows."""
        return x


@dataclass(frozen=True)
class PredictionLoss:
    """The loss of predictions for all rows: the mean over folds, as an evaluation's.

    Attributes:
        perfect: the loss is this minus the mean score.
        score: of a fold, ``score(y, predictions)``; greater is better.
        y: classes (their codes, where the score is a direct one) or values, shape (rows,).
        folds: held-out rows of each.
    """

    perfect: float
    score: Callable[[NDArray[Any], NDArray[np.float64]], float]
    y: NDArray[Any]
    folds: tuple[Rows, ...]

    @classmethod
    def of(cls, objective: CrossValidated, repeat: int = 0) -> PredictionLoss:
        held_out = tuple(rows for _, rows in objective.splits(repeat))
        scoring, classes, y = objective.scoring, objective.classes, objective.y
        direct = DIRECT.get(scoring.name)
        if direct is None:
            estimator = KnownValues() if classes is None else KnownProbabilities(classes)
            return cls(scoring.perfect, lambda y, p: scoring.score(estimator, p, y), y, held_out)
        return cls(scoring.perfect, direct, y if classes is None else np.searchsorted(classes, y), held_out)

    def __call__(self, predictions: NDArray[np.float64]) -> float:
        """Inf where a score is not finite."""
        try:
            mean = float(np.mean([self.score(self.y[rows], predictions[rows]) for rows in self.folds]))
        except Failed:
            return np.inf
        return self.perfect - mean if np.isfinite(mean) else np.inf
