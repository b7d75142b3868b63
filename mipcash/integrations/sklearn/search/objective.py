"""The objective of a search: a configuration's estimator, fitted and scored fold by fold as scikit-learn does.

Outputs, by name, are ``loss``, the perfect score minus the score that the search optimises, and ``fit_time`` and ``score_time``
in seconds. There are also ``test_NAME`` and, if wanted, ``train_NAME`` by score. Constrained outputs are scores by their own name,
and ``MEASURES``. A search computes its ``cv_results_`` from them, so that a resumed search has the same information.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_method_params, _num_samples

from mipcash.errors import DataError, warn
from mipcash.integrations.sklearn.cross_validated import predict
from mipcash.integrations.sklearn.fitting import SILENT, FewThreads
from mipcash.integrations.sklearn.measures import latency, single, size
from mipcash.integrations.sklearn.predictions import Predictions
from mipcash.integrations.sklearn.scoring import takes_weights
from mipcash.integrations.sklearn.splits import Rows
from mipcash.optimizers.outcome import LOSS
from mipcash.study.trial import Failed
from mipcash.text import listed, shown

Splits = Sequence[tuple[Rows, Rows]]
SCORE = "score"
"""Name of the score if there is only one."""
RAISE = "raise"

MEASURES: Mapping[str, Callable[[Any, Any], float]] = {
    "latency_ms": latency,
    "single_ms": single,
    "model_bytes": lambda model, x: size(model),
}
"""Outputs that can be constrained besides scores, see ``mipcash.integrations.sklearn.measures``. The search measures the
estimator of the first fold; after the refit the estimator of all rows, which is often larger, is measured, too."""
FIT_SECONDS = "fit_seconds"
"""Fit time of all folds together, which can be constrained, too."""


@dataclass
class Data:
    """The data of the folds.

    Attributes:
        x, y: indexable; y None for unsupervised estimators.
        splits: of the search.
        fresh: other folds, by repeat; None: there are none.
        fit_params: of the estimator's ``fit``; parameters with a value per row are split.
        score_params: likewise, of the scorers.
    """

    x: Any
    y: Any
    splits: Splits
    fresh: Callable[[int], Splits] | None = None
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    score_params: Mapping[str, Any] = field(default_factory=dict)

    def of_repeat(self, repeat: int) -> Splits:
        """Return the folds of a repeat; repeat 0 gives those of the search."""
        return self.splits if repeat == 0 or self.fresh is None else self.fresh(repeat)

    def scored(self, rows: Rows) -> dict[str, Any]:
        """Return the parameters of the scorers for some rows."""
        return dict(_check_method_params(self.x, self.score_params, indices=rows))


@dataclass
class Scores:
    """Scores and measures of a fitted estimator.

    Attributes:
        scorer: ``scorer(estimator, x, y, **params)``, a number or a dict of numbers.
        metric: the score that the search optimises; ``score`` if there is only one; empty: the first of them.
        perfect: the loss is this minus the score.
        beside: scorers of the constrained scores; None for scores that ``scorer`` computes.
        measures: names of the constrained measures, of ``MEASURES`` and ``fit_seconds``.
        train: whether training rows are scored, too.
        error: the score of a fold that fails; nan: the configuration fails; ``raise``: the search fails.
    """

    scorer: Callable[..., Any]
    metric: str = SCORE
    perfect: float = 0.0
    beside: Mapping[str, Callable[..., float] | None] = field(default_factory=dict)
    measures: tuple[str, ...] = ()
    train: bool = False
    error: float | str = math.nan

    def of(self, estimator: Any, x: Any, y: Any, params: Mapping[str, Any]) -> dict[str, float]:
        """Return all scores by name.

        Raises:
            DataError: a score is no number, or the score that the search optimises is missing.
        """
        found = self.scorer(estimator, x, **params) if y is None else self.scorer(estimator, x, y, **params)
        if not isinstance(found, Mapping):
            return {SCORE: _number(SCORE, found)}
        scores = {str(name): self._known(name, value) for name, value in found.items()}
        if self.searched(scores) not in scores:
            raise DataError(
                f"the search optimises {self.metric!r}, which scoring does not return: it returns {', '.join(map(repr, scores))}; "
                "give one of them as refit="
            )
        return scores

    def _known(self, name: Any, value: Any) -> float:
        """Return a score; ``error``, with a warning, for the traceback that scikit-learn returns for one of several that failed."""
        if not isinstance(value, str) or not hasattr(self.scorer, "_scorers"):
            return _number(name, value)
        last = value.strip().splitlines()[-1]
        warn(f"the score {name!r} failed and is {self.error} (error_score=): {last}")
        return float(self.error)

    def searched(self, names: Iterable[str]) -> str:
        """Return the name of the score that the search optimises."""
        listed = list(names)
        return self.metric if self.metric and listed != [SCORE] else listed[0]


class SearchObjective:
    """An objective for ``mipcash.minimize``.

    Args:
        build: a configuration -> an unfitted estimator.
        fit: ``fit(estimator, x, y, params)``; returns it fitted.
        quiet: whether warnings of fits are suppressed.
        predictions: store of out-of-fold predictions; None: they are not kept.
        classes: columns of predicted probabilities; None: values are predicted.

    Attributes:
        config: scikit-learn's configuration, which threads and processes do not inherit.
        compared_by: what a resumed study compares; the options of its record have the rest.
    """

    def __init__(
        self,
        build: Callable[[Mapping[str, Any]], Any],
        data: Data,
        scores: Scores,
        *,
        fit: Callable[..., Any],
        quiet: bool = False,
        predictions: Predictions | None = None,
        classes: NDArray[Any] | None = None,
    ) -> None:
        import sklearn

        self.build, self.data, self.scores, self.fit, self.compared_by = build, data, scores, fit, build
        self.quiet, self.predictions, self.classes = quiet, predictions, classes
        self.config, self.threads = sklearn.get_config(), FewThreads.of(data.x)
        self.raised: BaseException | None = None
        """The last exception of a fold, if it ran in this process."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "raised": None}

    def __call__(
        self, config: Mapping[str, Any], repeat: int = 0
    ) -> Generator[dict[str, float], None, dict[str, float]]:
        """Yield the outputs of each fold, and return the outputs of all folds: scores and times are means."""
        splits = self.data.of_repeat(repeat)
        reported: list[dict[str, float]] = []
        first: tuple[Any, Any] | None = None
        joined: NDArray[np.float64] | None = None
        for train, held_out in splits:
            estimator, x, outputs, predicted = self._fold(config, train, held_out)
            if estimator is not None and first is None:
                first = (estimator, x)
            if predicted is not None:
                if joined is None:
                    joined = np.full((_num_samples(self.data.x), *predicted.shape[1:]), np.nan)
                joined[held_out] = predicted
            reported.append(outputs)
            if len(reported) == len(splits) and self.predictions is not None and joined is not None:
                self.predictions.put(config, repeat, joined)  # before the yield, since pruning may close this generator
            yield outputs
        means = {
            name: float(np.mean([fold[name] for fold in reported]))
            for name in reported[0]
            if all(name in fold for fold in reported)
        }
        return means | self._measured(first, reported)

    def fitted(self, config: Mapping[str, Any]) -> Any:
        """Return the estimator of a configuration, fitted to all rows."""
        with self._as_configured():
            return self.fit(self.build(config), self.data.x, self.data.y, self.data.fit_params)

    def measured(self, estimator: Any) -> dict[str, float]:
        """Return the constrained measures of ``MEASURES`` for an estimator that was fitted to all rows."""
        with self._as_configured():
            return {name: MEASURES[name](estimator, self.data.x) for name in self.scores.measures if name in MEASURES}

    # -- one fold -----------------------------------------------------------------------------------------------

    def _fold(
        self, config: Mapping[str, Any], train: Rows, held_out: Rows
    ) -> tuple[Any, Any, dict[str, float], NDArray[np.float64] | None]:
        """Return the fitted estimator (None if it failed), its held-out rows, the outputs and its predictions."""
        try:
            with self._as_configured():
                return self._fitted_and_scored(config, train, held_out)
        except Exception as error:
            self.raised = error
            if isinstance(self.scores.error, str) or math.isnan(self.scores.error) or isinstance(error, DataError):
                raise
            worst = float(self.scores.error)
            warn(f"a fold failed, and counts as the score {worst:g} of error_score=: {error}")
            metrics = list(getattr(self.scores.scorer, "_scorers", None) or [self.scores.metric or SCORE])
            named = [f"{of}_{name}" for name in metrics for of in ("test", "train")[: 1 + self.scores.train]]
            outputs = {LOSS: self.scores.perfect - worst, "fit_time": 0.0, "score_time": 0.0}
            return None, None, outputs | dict.fromkeys([*named, *self.scores.beside], worst), None

    def _fitted_and_scored(
        self, config: Mapping[str, Any], train: Rows, held_out: Rows
    ) -> tuple[Any, Any, dict[str, float], NDArray[np.float64] | None]:
        from sklearn.utils.metaestimators import _safe_split

        data, scores = self.data, self.scores
        estimator = self.build(config)
        if not hasattr(estimator, "fit") or isinstance(estimator, type):
            raise DataError(f"build returned {shown(estimator)}, which cannot be fitted; return an estimator")
        x, y = _safe_split(estimator, data.x, data.y, train)
        x_out, y_out = _safe_split(estimator, data.x, data.y, held_out, train)
        began = time.perf_counter()
        estimator = self.fit(estimator, x, y, _check_method_params(data.x, data.fit_params, indices=train))
        fitted = time.perf_counter()
        params = data.scored(held_out)
        found = scores.of(estimator, x_out, y_out, params)
        metric = scores.searched(found)
        outputs = {LOSS: scores.perfect - found[metric], "fit_time": fitted - began}
        outputs["score_time"] = time.perf_counter() - fitted
        outputs |= {f"test_{name}": value for name, value in found.items()}
        if scores.train:
            of_train = scores.of(estimator, x, y, data.scored(train))
            outputs |= {f"train_{name}": value for name, value in of_train.items()}
        for name, scorer in scores.beside.items():
            given = {n: v for n, v in params.items() if n == "sample_weight" and takes_weights(scorer)}
            if scorer is None and name not in found:
                raise DataError(
                    f"limits= names {name!r}, and scoring= returns {listed(found)}; limit one of these, or a measure"
                )
            outputs[name] = found[name] if scorer is None else _number(name, scorer(estimator, x_out, y_out, **given))
        if not math.isfinite(outputs[LOSS]):
            raise Failed(f"the score {metric!r} is {found[metric]}: it is not defined for what was predicted")
        predicted = None if self.predictions is None else predict(estimator, x_out, self.classes)
        return estimator, x_out, outputs, predicted

    def _measured(self, first: tuple[Any, Any] | None, reported: Sequence[Mapping[str, float]]) -> dict[str, float]:
        found = {}
        with self._as_configured():
            for name in self.scores.measures:
                if name == FIT_SECONDS:
                    found[name] = sum(fold["fit_time"] for fold in reported)
                elif first is not None:
                    found[name] = MEASURES[name](*first)
        return found

    @contextmanager
    def _as_configured(self) -> Iterator[None]:
        """Set scikit-learn's configuration to that at the start of the search."""
        import sklearn

        with sklearn.config_context(**self.config), SILENT if self.quiet else nullcontext(), self.threads:
            yield


def _number(name: Any, value: Any) -> float:
    if not hasattr(value, "__float__") or isinstance(value, str):
        raise DataError(
            f"scoring must give a number, or a dict of numbers, and gave {shown(value)} as {shown(name)}; return a float"
        )
    return float(value)
