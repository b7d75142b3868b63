"""Outcome constraints of a search (``limits=``) on scores and measures, and the ensemble of a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mipcash.errors import DataError
from mipcash.integrations.sklearn.cross_validated import CLASSIFICATION, REGRESSION, CrossValidated
from mipcash.integrations.sklearn.ensemble import Selected, selected
from mipcash.integrations.sklearn.scoring import Scoring, weighted_scorer
from mipcash.integrations.sklearn.search.objective import FIT_SECONDS, MEASURES, SearchObjective, Splits
from mipcash.integrations.sklearn.splits import Rows
from mipcash.optimizers.outcome import LOSS
from mipcash.study.records.limits import limits_of
from mipcash.study.result import Result
from mipcash.text import did_you_mean


class Members(CrossValidated):
    """The objective of a search as a ``CrossValidated``, from which ``mipcash.ensemble`` selects; its estimators are fitted.

    Args:
        objective: of the search, with its predictions.
        scoring: that the search was given; a name is scikit-learn's.
    """

    def __init__(self, objective: SearchObjective, scoring: Any) -> None:
        data, scores = objective.data, objective.scores
        assert objective.predictions is not None
        self.objective = objective
        self.x, self.y, self.predictions = data.x, np.asarray(data.y), objective.predictions
        self.classes, self.folds = objective.classes, len(data.splits)
        self.task = REGRESSION if self.classes is None else CLASSIFICATION
        if isinstance(scoring, str) and not data.score_params:
            self.scoring = Scoring.of(scoring)
        else:
            self.scoring = Scoring(f"{scores.metric} of the search", self._score, scores.perfect)
        self.build = self._frozen

    def splits(self, repeat: int = 0) -> Splits:  # type: ignore[override]
        """Return the folds of the search."""
        return self.objective.data.of_repeat(repeat)

    def __call__(self, config: Mapping[str, Any], repeat: int = 0) -> Any:
        """Evaluate as the search does."""
        return self.objective(config, repeat)

    def score_params(self, rows: Rows) -> dict[str, Any]:
        """Return the parameters of the scorer for some rows, such as their weights."""
        return self.objective.data.scored(rows)

    def _score(self, estimator: Any, x: Any, y: Any, **params: Any) -> float:
        found = self.objective.scores.scorer(estimator, x, y, **params)
        return float(found[self.objective.scores.searched(found)] if isinstance(found, Mapping) else found)

    def _frozen(self, config: Mapping[str, Any]) -> Any:
        """Return the estimator fitted with its sample weights and frozen, so that a voting estimator does not fit it again."""
        from sklearn.frozen import FrozenEstimator

        return FrozenEstimator(self.objective.fitted(config))


def ensemble_of(result: Result, objective: SearchObjective, scoring: Any, size: int) -> tuple[Selected, Any]:
    """Return the members by weight, and the fitted ensemble."""
    members = Members(objective, scoring)
    chosen = selected(result, members, size=size)
    return chosen, chosen.fit()


def limited_of(
    given: Any, metrics: Mapping[str, Any] | None
) -> tuple[dict[str, Callable[..., float] | None], tuple[str, ...]]:
    """Return the scorers of constrained scores by name (None if ``scoring`` computes the score), and the constrained measures.

    Args:
        given: ``limits=``.
        metrics: scores that ``scoring`` computes; None: they are unknown before it is called.

    Raises:
        DataError: there is neither a score nor a measure of that name.
    """
    from sklearn.metrics import get_scorer_names

    scorers: dict[str, Callable[..., float] | None] = {}
    measures = []
    for name in (limit.output for limit in limits_of(given)):
        if name == LOSS:
            continue
        if name in (*MEASURES, FIT_SECONDS):
            measures.append(name)
        elif metrics is not None and name in metrics:
            scorers[name] = None
        elif name in get_scorer_names():
            scorers[name] = weighted_scorer(name)
        elif metrics is None:
            scorers[name] = None
        else:
            known = [*MEASURES, FIT_SECONDS, *metrics, *get_scorer_names()]
            near = did_you_mean(name, known, "")
            raise DataError(
                f"limits= names {name!r}, which is no score and none of {', '.join([*MEASURES, FIT_SECONDS])}"
                f"{f'; {near}' if near else '.'} For a measure of your own give scoring= a dict with a scorer of that name"
            )
    return scorers, tuple(measures)
