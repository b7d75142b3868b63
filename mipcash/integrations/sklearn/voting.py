"""scikit-learn's voting estimators, of members whose probabilities or values are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import VotingClassifier, VotingRegressor


class SureClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier without probabilities, which is sure of what it predicts.

    Args:
        estimator: it.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, x: Any, y: Any) -> SureClassifier:
        """Fit a clone of it."""
        self.estimator_ = clone(self.estimator).fit(x, y)
        self.classes_ = self.estimator_.classes_
        return self

    def predict(self, x: Any) -> Any:
        """Its classes."""
        return self.estimator_.predict(x)

    def predict_proba(self, x: Any) -> Any:
        """1 for the predicted class, shape (rows, classes)."""
        return np.asarray(self.predict(x)[:, None] == self.classes_, dtype=float)


def voting(members: Sequence[tuple[str, Any]], weights: Sequence[float], classifies: bool) -> Any:
    """An unfitted ensemble of named members."""
    made = VotingClassifier if classifies else VotingRegressor
    options = {"voting": "soft"} if classifies else {}
    return made(list(members), weights=list(weights), **options)
