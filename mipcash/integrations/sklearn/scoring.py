"""Scores of scikit-learn as losses: ``loss = perfect - score``.

The perfect score is 1 for most of scikit-learn's names (``accuracy``, ``roc_auc``, ``r2`` ...), so that the loss of the best
possible model is 0. It is 0 for the names that begin with ``neg_`` and for custom scorers: their loss is -score.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mipcash.errors import DataError
from mipcash.integrations.sklearn.fitting import SILENT
from mipcash.study.trial import Failed
from mipcash.text import shown

OF_NUMBERS = ("r2", "explained_variance", "max_error", "d2_absolute_error_score")
"""Scores of regression, besides those with the following prefixes."""
ERRORS = ("neg_mean_", "neg_root_", "neg_median_", "neg_max_")


def weighted_scorer(name: str) -> Any:
    """Return scikit-learn's scorer of a name; if metadata is routed, it requests the weights of rows that its score takes."""
    import sklearn
    from sklearn.metrics import get_scorer

    found = get_scorer(name)
    routed = sklearn.get_config()["enable_metadata_routing"]
    return found.set_score_request(sample_weight=True) if routed and takes_weights(found) else found


def takes_weights(scorer: Any) -> bool:
    """Return True if a scorer takes ``sample_weight``."""
    return bool(getattr(scorer, "_accept_sample_weight", bool)())


@dataclass(frozen=True)
class Scoring:
    """A score as a loss to be minimised.

    Attributes:
        name: scikit-learn's name.
        scorer: ``scorer(estimator, x, y, **params)``, greater is better.
        perfect: the loss is this minus the score.
    """

    name: str
    scorer: Callable[..., float]
    perfect: float

    @classmethod
    def of(cls, scoring: Any) -> Scoring:
        """Make it from scikit-learn's name or a scorer.

        Raises:
            DataError: there is no such score, or it is neither a name nor callable.
        """
        if callable(scoring):
            return cls(str(getattr(scoring, "__name__", scoring)), scoring, 0.0)
        from sklearn.metrics import get_scorer, get_scorer_names

        names = list(get_scorer_names())
        if not isinstance(scoring, str):
            raise DataError(
                f"scoring must be a name that scikit-learn knows, such as 'accuracy' or 'roc_auc', or a scorer "
                f"scorer(estimator, x, y); got {shown(scoring)}"
            )
        if scoring not in names:
            close = difflib.get_close_matches(scoring, names, n=3) or ["accuracy", "roc_auc", "neg_log_loss", "r2"]
            raise DataError(
                f"scikit-learn has no scoring {scoring!r}; did you mean {' or '.join(map(repr, close))}? "
                "(sklearn.metrics.get_scorer_names() lists all)"
            )
        return cls(scoring, get_scorer(scoring), 0.0 if scoring.startswith("neg_") else 1.0)

    @property
    def of_numbers(self) -> bool:
        """True if it is a score of regression, by its name."""
        return self.name in OF_NUMBERS or self.name.startswith(ERRORS)

    def check(self, y: Any, classifies: bool) -> None:
        """Check that the score accepts such a target, by scoring a dummy model.

        Raises:
            DataError: the score does not accept it, for example ``roc_auc`` with three classes, or ``f1`` with texts as classes.
        """
        from sklearn.dummy import DummyClassifier, DummyRegressor
        from sklearn.metrics import get_scorer_names

        if self.name not in get_scorer_names():
            return
        x = [[0.0]] * len(y)
        model = (DummyClassifier() if classifies else DummyRegressor()).fit(x, y)
        try:
            with SILENT:
                self.scorer(model, x, y)
        except ValueError as error:
            such = ", such as 'accuracy', 'roc_auc_ovr' or 'f1_macro'" if classifies else ""
            raise DataError(f"{self.name} does not take what y holds: {error}; use another{such}") from error

    def score(self, estimator: Any, x: Any, y: Any, where: str = "", **params: Any) -> float:
        """Return the score of a fitted estimator.

        Args:
            where: of the score, for the message.
            params: of the scorer, such as weights of the rows.

        Raises:
            Failed: the score is not finite, for example on a fold with one class.
        """
        with SILENT:
            found = float(self.scorer(estimator, x, y, **params))
        if not math.isfinite(found):
            raise Failed(
                f"{self.name} is {found}{where and f' on {where}'}: it is not defined for what was predicted there; use fewer "
                "folds, or another scoring"
            )
        return found
