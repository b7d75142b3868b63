"""``CrossValidated``: an objective that cross-validates the estimator of a configuration, fold by fold."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from mipcash.display import counted
from mipcash.errors import DataError
from mipcash.integrations.sklearn.fitting import SILENT, FewThreads
from mipcash.integrations.sklearn.predictions import Predictions
from mipcash.integrations.sklearn.scoring import Scoring
from mipcash.integrations.sklearn.splits import Rows, check_folds, check_seed, folds_of
from mipcash.optimizers.outcome import LOSS
from mipcash.space.direction import MINIMIZE
from mipcash.text import shown

CLASSIFICATION, REGRESSION = "classification", "regression"


@dataclass(frozen=True)
class Fold:
    """One fit of an evaluation.

    Attributes:
        number: 0, 1, ... among the folds.
        estimator: fitted to ``train``.
        train, held_out: rows.
        x, y: all of the data; ``rows_of(x, held_out)`` selects rows.
        score: on the held-out rows.
        loss: the perfect score minus it.
        fit_seconds: wall-clock.
        predictions: of the held-out rows: probabilities, shape (rows, classes), or values, shape (rows,).
    """

    number: int
    estimator: Any = field(repr=False)
    train: Rows = field(repr=False)
    held_out: Rows = field(repr=False)
    x: Any = field(repr=False)
    y: NDArray[Any] = field(repr=False)
    score: float = 0.0
    loss: float = 0.0
    fit_seconds: float = 0.0
    predictions: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), repr=False)


class CrossValidated:
    """An objective for [`minimize`][mipcash.study.minimize.minimize]: the cross-validated loss of the estimator that a
    configuration builds.

    Called with a configuration it is a generator: it yields the outputs of each fold, so that it can be pruned, and returns
    their mean. The loss is 1 - score, and -score for scores that begin with ``neg_`` and for custom scorers. It is to be
    minimised whatever the scoring is. A second argument, ``repeat``, asks for other folds if it is above 0; none of them
    holds out the same rows as a fold of the search.

    Out-of-fold predictions of configurations that were evaluated on all folds are kept, for ensembles. The objective can be
    pickled if its parts can; predictions in memory are left out.

    Args:
        build: takes a configuration and returns an unfitted scikit-learn estimator (a pipeline, say). For processes it must be
            importable.
        x: rows of features: an array, a sparse matrix or a data frame.
        y: classes or values, shape (rows,).
        scoring: scikit-learn's name of a score, or a scorer ``scorer(estimator, x, y)``, of which greater is better.
        folds: number of folds, stratified for classes.
        seed: of the folds.
        groups: rows of one group are held out together, shape (rows,).
        task: ``classification`` or ``regression``; None: by the scoring's name and by y, whose whole numbers are classes.
        predictions: a folder for the out-of-fold predictions, which worker processes and resumed runs share; None: memory.
        measure: further outputs of one fold by name; the outcome has their mean.
        finish: further outputs of all folds together, by name.

    Raises:
        DataError: x and y do not fit together, y has missing or infinite values, or a class has fewer rows than there are folds.
            Also if the scoring does not exist, is for the other task or does not accept the values of y, or if the seed is invalid.

    Examples:
        >>> import mipcash as mc
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.neighbors import KNeighborsClassifier
        >>> x, y = load_iris(return_X_y=True)
        >>> space = mc.Space("knn")
        >>> k = space.integer("k", 1, 9)
        >>> objective = mc.CrossValidated(lambda c: KNeighborsClassifier(c["k"]), x, y, scoring="accuracy", folds=3)
        >>> result = mc.minimize(objective, space, 3, optimizer="random", progress=False)
        >>> result.value < 0.1, objective.out_of_fold(result.config).shape
        (True, (150, 3))
    """

    direction = MINIMIZE
    """Direction of the loss, which ``mc.minimize`` checks."""

    def __init__(
        self,
        build: Callable[[Mapping[str, Any]], Any],
        x: Any,
        y: Any,
        *,
        scoring: Any,
        folds: int = 5,
        seed: int = 0,
        groups: Any = None,
        task: str | None = None,
        predictions: str | os.PathLike[str] | None = None,
        measure: Callable[[Fold], Mapping[str, float]] | None = None,
        finish: Callable[[Sequence[Fold]], Mapping[str, float]] | None = None,
    ) -> None:
        if not callable(build):
            raise DataError(
                f"build must be a function of a configuration that returns an estimator, got {shown(build)}"
            )
        self.build, self.measure, self.finish = build, measure, finish
        self.x, self.y = _rows(x), _column("y", y)
        _same_length("y", len(self.y), self.x)
        self.threads = FewThreads.of(self.x)
        self.groups = None if groups is None else _column("groups", groups)
        if self.groups is not None:
            _same_length("groups", len(self.groups), self.x)
        self.scoring = Scoring.of(scoring)
        self.task = _task(task, self.scoring, self.y)
        self.seed = check_seed(seed)
        self.folds = check_folds(self.y, folds, self.classifies, self.groups)
        self.classes: NDArray[Any] | None = np.unique(self.y) if self.classifies else None
        self.scoring.check(self.y, self.classifies)
        self.keep_predictions(predictions)

    @property
    def classifies(self) -> bool:
        return self.task == CLASSIFICATION

    def splits(self, repeat: int = 0) -> list[tuple[Rows, Rows]]:
        """Return training rows and held-out rows, by fold.

        Args:
            repeat: 0 for the folds of the search, other numbers for new folds.

        Returns:
            A pair of index arrays per fold.
        """
        return folds_of(self.y, self.folds, self.seed, repeat, self.classifies, self.groups)

    def __call__(
        self, config: Mapping[str, Any], repeat: int = 0
    ) -> Generator[dict[str, float], None, dict[str, float]]:
        """Yield the outputs of each fold, and return the outputs of all folds together.

        Args:
            config: of the space.
            repeat: 0 for the folds of the search, other numbers for new folds.
        """
        done: list[Fold] = []
        means: dict[str, list[float]] = {}
        for number, (train, held_out) in enumerate(self.splits(repeat)):
            fold = self._fold(config, number, train, held_out)
            done.append(fold)
            measured = dict(self.measure(fold)) if self.measure is not None else {}
            for name, value in measured.items():
                means.setdefault(name, []).append(value)
            if number == self.folds - 1:
                self.predictions.put(config, repeat, self._joined(done))
            yield {LOSS: fold.loss, **measured}
        # the mean of the scores, not of the losses, equals that of cross_val_score to the last digit
        outputs = {LOSS: self.scoring.perfect - float(np.mean([f.score for f in done]))}
        outputs |= {name: float(np.mean(values)) for name, values in means.items()}
        return outputs | (dict(self.finish(done)) if self.finish is not None else {})

    def keep_predictions(self, folder: str | os.PathLike[str] | None) -> None:
        """Keep out-of-fold predictions in a folder from now on, which processes share, or in memory.

        Args:
            folder: the folder; None: memory.
        """
        self.predictions = Predictions(folder, self._identity() if folder is not None else "")

    def evaluate(self, config: Mapping[str, Any], repeat: int = 0) -> dict[str, float]:
        """Return the outputs over all folds at once: ``{"loss": ..., ...}``.

        Args:
            config: a configuration of the space.
            repeat: 0 for the folds of the search, other numbers for new folds.

        Returns:
            The outputs by name, the loss among them.
        """
        folds = self(config, repeat)
        while True:
            try:
                next(folds)
            except StopIteration as end:
                return dict(end.value)

    def out_of_fold(self, config: Mapping[str, Any], repeat: int = 0) -> NDArray[np.float64]:
        """Return predictions of each row by an estimator that was not fitted to it; they are computed if they are not stored.

        Args:
            config: a configuration of the space.
            repeat: 0 for the folds of the search, other numbers for new folds.

        Returns:
            Probabilities, shape (rows, classes), columns as in ``classes``; or values, shape (rows,).

        Raises:
            DataError: the file of the predictions was deleted before it could be read.
        """
        kept = self.predictions.get(config, repeat)
        if kept is None:
            self.evaluate(config, repeat)
            kept = self.predictions.get(config, repeat)
        if kept is None:  # its file was deleted meanwhile
            raise DataError(
                f"predictions were deleted from {self.predictions.folder}; give predictions= a folder of its own"
            )
        return kept

    def fit(self, config: Mapping[str, Any]) -> Any:
        """Return the estimator of a configuration, fitted to all rows.

        Args:
            config: a configuration of the space.

        Returns:
            The fitted estimator.
        """
        with SILENT:
            return self._built(config).fit(self.x, self.y)

    def score_params(self, rows: Rows) -> dict[str, Any]:
        """Return the parameters of the scorer for some rows, such as their weights.

        Args:
            rows: indices of rows.

        Returns:
            The parameters by name; none here.
        """
        return {}

    def __repr__(self) -> str:
        return f"<{self.scoring.name} over {self.folds} folds of {len(self.y)} rows>"

    # -- one fold -----------------------------------------------------------------------------------------------

    def _fold(self, config: Mapping[str, Any], number: int, train: Rows, held_out: Rows) -> Fold:
        began = time.perf_counter()
        with SILENT, self.threads:
            estimator = self._built(config).fit(rows_of(self.x, train), self.y[train])
            seconds = time.perf_counter() - began
            x = rows_of(self.x, held_out)
            predicted = predict(estimator, x, self.classes)
        score = self.scoring.score(estimator, x, self.y[held_out], f"fold {number} of {self.folds}")
        loss = self.scoring.perfect - score
        return Fold(number, estimator, train, held_out, self.x, self.y, score, loss, seconds, predicted)

    def _built(self, config: Mapping[str, Any]) -> Any:
        estimator = self.build(config)
        if not hasattr(estimator, "fit") or not hasattr(estimator, "predict"):
            raise DataError(f"build returned {shown(estimator)}, which has no fit and predict; return an estimator")
        return estimator

    def _joined(self, folds: Sequence[Fold]) -> NDArray[np.float64]:
        shape = folds[0].predictions.shape[1:]
        found = np.full((len(self.y), *shape), np.nan)
        for fold in folds:
            found[fold.held_out] = fold.predictions
        return found

    def _identity(self) -> str:
        """Return a text that is the same for the same data, folds and scoring, in every process."""
        import joblib

        reported = (self.x, self.y, self.groups, self.scoring.name, self.folds, self.seed, self.task)
        return str(joblib.hash(reported))


def rows_of(x: Any, rows: Rows) -> Any:
    """Return rows of an array, a sparse matrix or a data frame."""
    return x.iloc[rows] if hasattr(x, "iloc") else x[rows]


def predict(estimator: Any, x: Any, classes: NDArray[Any] | None) -> NDArray[np.float64]:
    """Return probabilities of ``classes``, shape (rows, classes); or values, shape (rows,), if ``classes`` is None.

    A class that the estimator was not fitted to has probability 0.
    """
    if classes is None:
        return np.asarray(estimator.predict(x), dtype=np.float64).reshape(-1)
    fitted = getattr(estimator, "classes_", classes)
    given = probabilities(estimator, x, fitted)
    found = np.zeros((len(given), len(classes)))
    found[:, np.searchsorted(classes, fitted)] = given
    return found


def probabilities(estimator: Any, x: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Return what a fitted classifier gives ``classes``, shape (rows, classes), in the order of its scores.

    Without ``predict_proba`` these are the logistic function or the softmax of ``decision_function``, so that scores of the order,
    such as ``roc_auc``, are those of the classifier. Without both, or with values of pairs of classes (``"ovo"``), of which three
    classes have three, the predicted class has probability 1.
    """
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(x), dtype=np.float64)
    if hasattr(estimator, "decision_function"):
        decided = np.asarray(estimator.decision_function(x), dtype=np.float64)
        if decided.ndim == 1:
            return np.column_stack([expit(-decided), expit(decided)])
        settings: Mapping[str, Any] = getattr(estimator, "get_params", dict)()
        pairs = any(name.endswith("decision_function_shape") and value == "ovo" for name, value in settings.items())
        if decided.shape[1] == len(classes) and not pairs:
            return np.asarray(softmax(decided, axis=1))
    return np.asarray(np.asarray(estimator.predict(x))[:, None] == classes, dtype=np.float64)


def _task(task: str | None, scoring: Scoring, y: NDArray[Any]) -> str:
    from sklearn.utils.multiclass import type_of_target

    if task not in (None, CLASSIFICATION, REGRESSION):
        raise DataError(f"task must be {CLASSIFICATION!r} or {REGRESSION!r}, got {shown(task)}")
    first = shown(y[:1].tolist()[0])  # as a Python value, for messages
    continuous = type_of_target(y) not in ("binary", "multiclass")
    if task is None:
        task = REGRESSION if scoring.of_numbers or continuous else CLASSIFICATION
        if task == REGRESSION and scoring.name in _of_classes():
            raise DataError(
                f"{scoring.name} scores classes, and y holds numbers such as {first}; use a score of regression, such as "
                "'r2' or 'neg_root_mean_squared_error', or make classes of y"
            )
    if task == CLASSIFICATION and continuous:
        raise DataError(f"y holds numbers such as {first}, which are no classes; use task={REGRESSION!r}")
    if task == REGRESSION and not np.issubdtype(y.dtype, np.number):
        raise DataError(f"y holds {first}, and regression needs numbers; use task={CLASSIFICATION!r}")
    return task


def _of_classes() -> frozenset[str]:
    """Return the names of scores that accept classes only."""
    from sklearn.metrics import get_scorer_names

    begin = ("accuracy", "average_prec", "balanced_acc", "f1", "jaccard", "matthews", "neg_brier", "neg_log", "neg_neg")
    more = ("precision", "recall", "roc_auc", "top_k", "d2_log_loss", "d2_brier", "positive_likelihood")
    return frozenset(n for n in get_scorer_names() if n.startswith((*begin, *more)))


def _rows(x: Any) -> Any:
    """Return data whose rows can be selected; some formats of sparse matrices do not allow it."""
    if hasattr(x, "tocsr"):
        return x.tocsr()
    return x if hasattr(x, "shape") else np.asarray(x)


def _column(name: str, values: Any) -> NDArray[Any]:
    found = np.asarray(values)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise DataError(f"{name} must have one value per row, got an array of shape {found.shape}")
    refuse_missing(name, found)
    if np.issubdtype(found.dtype, np.floating) and not np.isfinite(found).all():
        raise DataError(f"{name} has {counted(int(np.isinf(found).sum()), 'infinite value')}; drop those rows")
    return found


def refuse_missing(name: str, values: NDArray[Any]) -> None:
    """Refuse None, nan, and pandas' NA and NaT among values, shape (rows,).

    Raises:
        DataError: there is one.
    """
    if np.issubdtype(values.dtype, np.floating):
        missing = int(np.isnan(values).sum())
    else:
        same = [v == v for v in values.tolist()]  # NA == NA is NA
        missing = sum(
            v is None or not isinstance(s, (bool, np.bool_)) or not s for v, s in zip(values, same, strict=True)
        )
    if missing:
        raise DataError(f"{name} has {counted(missing, 'missing value')}; drop those rows")


def _same_length(name: str, length: int, x: Any) -> None:
    if x.shape[0] != length:
        raise DataError(f"{name} has {length} values and x {x.shape[0]} rows; give one value per row")


def cross_validated_of(objective: Any) -> CrossValidated | None:
    """Return the cross-validated objective that an objective is or contains, else None."""
    found = objective if isinstance(objective, CrossValidated) else getattr(objective, "cross_validated", None)
    return found if isinstance(found, CrossValidated) else None


MOST_CLASSES = 10
"""Maximum number of different values of a numerical target with classes."""


def looks_continuous(numbers: NDArray[np.float64]) -> bool:
    """Return True if numbers look like a regression target.

    This needs more than MOST_CLASSES different numbers, some of them with fractions or more of them than a fifth of the rows.

    Args:
        numbers: shape (rows,).
    """
    different = len(np.unique(numbers))
    return different > MOST_CLASSES and (different > len(numbers) / 5 or bool((numbers % 1 != 0).any()))
