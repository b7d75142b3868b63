"""``mipcash.ensemble``: a fitted scikit-learn estimator made of several configurations of a run.

Members are selected greedily by the out-of-fold predictions of the search, without further evaluations.

The ensemble is one of scikit-learn's voting estimators, which averages the members' probabilities or values.

Greedy ensemble selection with replacement (Caruana et al. 2004; liu2020, Appendix 8).

Notation
    m = 1..M members of the library, best first;   p_m their out-of-fold predictions, shape (rows,) or (rows, classes).
    n_m >= 0 count of a member;   the ensemble after t steps predicts (1 / t) sum_m n_m p_m, with sum_m n_m = t

Each step adds the member that minimises the loss of the ensemble, with ties broken by the member's own loss. The first step
therefore adds the best single member. After ``size`` steps, the ensemble of the step with the lowest loss is kept, the largest one
if there are ties. On the out-of-fold predictions, it is never worse than the best single member.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import VotingClassifier, VotingRegressor

from mipcash.display import counted
from mipcash.errors import DataError, MipcashError, ObjectiveError, warn
from mipcash.integrations.sklearn.cross_validated import CrossValidated, cross_validated_of, probabilities
from mipcash.integrations.sklearn.fitting import SILENT
from mipcash.integrations.sklearn.predicted import PredictionLoss
from mipcash.study.arguments import whole_number
from mipcash.study.reading import stops
from mipcash.text import shown

if TYPE_CHECKING:
    from mipcash.study.result import Result
    from mipcash.study.trial import Trial


Predicted = NDArray[np.float64]


@dataclass(frozen=True)
class Selection:
    """Members and their counts.

    Attributes:
        counts: n_m, shape (M,).
        losses: after 1, 2, ... steps, including those after the kept ensemble, shape (size,).
    """

    counts: NDArray[np.int64]
    losses: NDArray[np.float64]

    @property
    def weights(self) -> NDArray[np.float64]:
        """Shares of the members, shape (M,); they sum to 1."""
        return np.asarray(self.counts / self.counts.sum())

    @property
    def loss(self) -> float:
        """Loss of the kept ensemble."""
        return float(self.losses[self.counts.sum() - 1])


def select(predictions: Sequence[Predicted], loss: Callable[[Predicted], float], size: int) -> Selection:
    """Select an ensemble.

    Args:
        predictions: p_m, best member first; at least one.
        loss: of the predictions of an ensemble; ensembles with a loss that is not finite are avoided.
        size: steps.
    """
    total, taken, losses = np.zeros_like(predictions[0]), list[int](), list[float]()
    for step in range(1, size + 1):
        tried = [loss((total + p) / step) for p in predictions]
        best = int(np.argmin(np.where(np.isfinite(tried), tried, np.inf)))
        total = total + predictions[best]
        taken.append(best)
        losses.append(tried[best])
    kept = size - int(np.argmin(losses[::-1]))
    return Selection(np.bincount(taken[:kept], minlength=len(predictions)), np.array(losses))


class WithProbabilities(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A wrapper for a classifier without ``predict_proba``; see ``mipcash.integrations.sklearn.cross_validated.probabilities``.

    Args:
        estimator: the classifier.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, x: Any, y: Any) -> WithProbabilities:
        """Fit a clone of the classifier."""
        self.estimator_ = clone(self.estimator).fit(x, y)
        self.classes_ = self.estimator_.classes_
        return self

    def predict(self, x: Any) -> Any:
        """Return the predicted classes."""
        return self.estimator_.predict(x)

    def predict_proba(self, x: Any) -> Any:
        """Return probabilities, shape (rows, classes)."""
        return probabilities(self.estimator_, x, self.classes_)


BEST = 25
"""Maximum number of candidate members: worse configurations add noise to the selection."""
SAME = 1e-6
"""Share of a loss, or of 1 if the loss is smaller, within which a recomputed loss counts as the same."""
ALIKE = 0.1
"""The same for random estimators; other data or labels mostly differ by more."""


@dataclass(frozen=True)
class Member:
    """A configuration in an ensemble.

    Attributes:
        trial: its evaluation.
        weight: its share of the ensemble's prediction; the weights of all members sum to 1.
    """

    trial: Trial
    weight: float

    @property
    def name(self) -> str:
        """``trial_12``: its name in the estimator."""
        return f"trial_{self.trial.number}"


@dataclass(frozen=True)
class Selected:
    """An ensemble before it is fitted.

    Attributes:
        objective: evaluated the members.
        members: by weight.
        selection: the greedy selection.
    """

    objective: CrossValidated
    members: tuple[Member, ...]
    selection: Selection

    def loss(self, repeat: int = 0) -> float:
        """Return the cross-validated loss on the folds of the search (``repeat=0``) or on new folds (repeat > 0).

        Members were selected by the loss on the folds of the search, so that it is optimistic. Predictions on new folds that are
        not stored cost the fits of an evaluation per member.
        """
        predicted = (m.weight * self.objective.out_of_fold(m.trial.config, repeat) for m in self.members)
        return PredictionLoss.of(self.objective, repeat)(np.sum(list(predicted), axis=0))

    def unfitted(self) -> Any:
        """Return the ensemble as a scikit-learn estimator: a ``VotingClassifier`` of probabilities, or a ``VotingRegressor``."""
        members = [(m.name, self.objective.build(dict(m.trial.config))) for m in self.members]
        if self.objective.classifies:
            members = [(n, e if hasattr(e, "predict_proba") else WithProbabilities(e)) for n, e in members]
        weights = [m.weight for m in self.members]
        if self.objective.classifies:
            return VotingClassifier(members, voting="soft", weights=weights)
        return VotingRegressor(members, weights=weights)

    def fit(self) -> Any:
        """Return the ensemble, fitted to all rows."""
        with SILENT:
            return self.unfitted().fit(self.objective.x, self.objective.y)

    def __str__(self) -> str:
        parts = ", ".join(f"{m.weight:.3g} of trial {m.trial.number}" for m in self.members)
        return f"{counted(len(self.members), 'member')}: {parts}"


def ensemble(result: Result, objective: Any = None, *, size: int = 32, best: int = BEST) -> Any:
    """Fit an ensemble of the best configurations of a run.

    Greedy selection with replacement (Caruana et al. 2004) over out-of-fold predictions of the search. On these predictions the
    ensemble is never worse than the best single configuration; on new rows it is mostly better. Members are fitted to all rows.

    Each member satisfies the outcome constraints of the run. The ensemble need not: its latencies, for instance, add up.

    Args:
        result: of a run over a [`mipcash.CrossValidated`][mipcash.integrations.sklearn.cross_validated.CrossValidated].
        objective: that objective, if the result does not contain it because it was read from a journal.
        size: steps of the selection; a member may be added several times.
        best: number of candidate members: configurations with the lowest losses.

    Returns:
        scikit-learn's ``VotingClassifier`` (probabilities are averaged) or ``VotingRegressor``, with ``weights`` beside
        ``estimators`` named ``trial_NUMBER``.

    Raises:
        ObjectiveError: the objective is not cross-validated.
        DataError: ``scoring`` needs more than predictions: the estimator, or its rows.
        DataError: predictions had to be computed again, and their losses are not those of the run: other data or labels. Only
            losses are compared, so a few other labels go unnoticed with random estimators. Stored predictions, in the objective of
            the run or in its folder, belong to the run's own labels and are not checked.
        MipcashError: no evaluation succeeded, or none is feasible.
        TypeError: ``result`` is no result of a run.
        ValueError: ``size`` or ``best`` is no whole number of at least 1.

    Examples:
        >>> import mipcash as mc
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.neighbors import KNeighborsClassifier
        >>> x, y = load_iris(return_X_y=True)
        >>> space = mc.Space("knn")
        >>> k = space.integer("k", 1, 9)
        >>> objective = mc.CrossValidated(lambda c: KNeighborsClassifier(c["k"]), x, y, scoring="accuracy", folds=3)
        >>> model = mc.ensemble(mc.minimize(objective, space, 3, optimizer="random", progress=False), size=4)
        >>> model.predict(x[:1]), model.predict_proba(x[:1]).shape
        (array([0]), (1, 3))
    """
    return selected(result, objective, size=size, best=best).fit()


def selected(result: Result, objective: Any = None, *, size: int = 32, best: int = BEST) -> Selected:
    """Return the members of ``ensemble``, before they are fitted."""
    for name, value in (("size", size), ("best", best)):
        whole_number(name, value, 1)
    if not hasattr(result, "feasibility"):
        raise TypeError(
            f"result must be what mc.minimize returned, got {shown(result)}; mc.ensemble(result, objective)"
        )
    given = result.objective if objective is None else objective
    found = cross_validated_of(given)
    if found is None:
        what = "the result brings no objective" if given is None else f"the objective is {shown(given)}"
        raise ObjectiveError(
            f"an ensemble is made of out-of-fold predictions, and {what}; minimize a mc.CrossValidated, or give it: "
            "mc.ensemble(result, objective)"
        )
    library = _library(result)[:best]
    if not library:
        none = "satisfies all constraints" if result.n_done else "succeeded"
        raise MipcashError(f"there is nothing to make an ensemble of: no evaluation of {result.space!r} {none} yet")
    lost = {t.number for t in library if found.predictions.get(t.config) is None}
    trials, predictions = _predictions(found, library, len(lost))
    loss = PredictionLoss.of(found)
    _check_scored(loss, predictions)
    _check_alike([(t, loss(p)) for t, p in zip(trials, predictions, strict=True) if t.number in lost])
    selection = select(predictions, loss, int(size))
    members = [Member(t, float(w)) for t, w in zip(trials, selection.weights, strict=True) if w > 0.0]
    return Selected(found, tuple(sorted(members, key=lambda m: -m.weight)), selection)


def _library(result: Result) -> list[Trial]:
    """Return candidate members: legal and feasible configurations, each once, best first."""
    kept = (result.history[result.feasibility.tells(row)] for row in result.feasibility.kept)
    ranked = sorted((t for t in kept if t.done and t.loss is not None), key=lambda t: (t.minimised, t.number))
    first: dict[str, Trial] = {}
    for trial in ranked:
        first.setdefault(repr(sorted(trial.config.items())), trial)
    return list(first.values())


def _check_scored(loss: PredictionLoss, predictions: Sequence[NDArray[np.float64]]) -> None:
    """Check that predictions alone have a score.

    Raises:
        DataError: those of no configuration have one.
    """
    try:
        known, why = any(math.isfinite(loss(p)) for p in predictions), "it is not finite"
    except Exception as error:
        known, why = False, f"{type(error).__name__}: {error}"
    if not known:
        raise DataError(
            f"an ensemble is selected by the score of out-of-fold predictions, and scoring= has none for them ({why}); give a "
            "scorer that looks at neither the estimator nor its rows, such as make_scorer makes"
        )


def _check_alike(again: list[tuple[Trial, float]]) -> None:
    """Check that recomputed losses, best first, are those of the run, so that the objective is that of the run.

    The best one is most informative: a model that hardly fits has nearly the same loss on any labels.

    Raises:
        DataError: most losses differ, and the best one is not even similar.
    """

    def off(trial: Trial, loss: float, share: float) -> bool:
        return trial.loss is not None and not abs(loss - trial.loss) <= share * max(1.0, abs(trial.loss))

    others = sum(off(t, loss, SAME) for t, loss in again)
    if 2 * others > len(again) and off(*again[0], ALIKE):
        trial, loss = again[0]
        raise DataError(
            f"the objective is not that of the run: the loss of trial {trial.number} was {trial.loss:.6g} there and is {loss:.6g} "
            f"when it is computed again, and those of {others} of {counted(len(again), 'configuration')} differ; give the "
            "mc.CrossValidated with the data, labels, scoring, folds and seed that the run had"
        )


def _predictions(
    objective: CrossValidated, library: list[Trial], lost: int
) -> tuple[list[Trial], list[NDArray[np.float64]]]:
    """Return trials and their out-of-fold predictions, without configurations that fail when they are evaluated again.

    Args:
        lost: number of trials whose predictions are not stored.

    Raises:
        MipcashError: all fail.
    """
    if lost:
        fits = counted(lost * objective.folds, "fit")
        warn(
            f"out-of-fold predictions of {counted(lost, 'configuration')} are not here any more and are computed again "
            f"({fits}); CrossValidated(predictions=FOLDER) keeps them for other processes and for later, and so does a search "
            "that has storage= and ensemble_size= from the beginning"
        )
    found = list(_computed(objective, library))
    if not found:
        raise MipcashError(
            "there is nothing to make an ensemble of: every configuration fails when it is evaluated again"
        )
    return [t for t, _ in found], [p for _, p in found]


def _computed(objective: CrossValidated, library: list[Trial]) -> Iterator[tuple[Trial, NDArray[np.float64]]]:
    for trial in library:
        try:
            predicted = objective.out_of_fold(trial.config)
        except BaseException as error:
            if stops(error):
                raise
            continue
        if np.all(np.isfinite(predicted)):  # a fold that counts as error_score predicts nothing
            yield trial, predicted
