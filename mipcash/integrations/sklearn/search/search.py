"""The common part of the searches: ``fit`` by ``mipcash.minimize``, with attributes and methods of scikit-learn's searches."""

from __future__ import annotations

import os
import tempfile
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_method_params, _num_samples, indexable

from mipcash.errors import DataError, DefectError, warn
from mipcash.integrations.sklearn.predictions import Predictions
from mipcash.integrations.sklearn.scoring import Scoring
from mipcash.integrations.sklearn.search.belonging import belonging_of, predictions_beside
from mipcash.integrations.sklearn.search.executors import FileObjective, executor_of
from mipcash.integrations.sklearn.search.folds import check_partition, fresh_of, splits_of
from mipcash.integrations.sklearn.search.limited import ensemble_of, limited_of
from mipcash.integrations.sklearn.search.objective import (
    MEASURES,
    RAISE,
    SCORE,
    Data,
    Scores,
    SearchObjective,
    Splits,
)
from mipcash.integrations.sklearn.search.results import candidates_of, check_failures, cv_results
from mipcash.space.space import Space
from mipcash.study.execution import Execution
from mipcash.study.feasibility import Violation
from mipcash.study.method import Method
from mipcash.study.minimize import run
from mipcash.study.policies.policy import TIMEOUT
from mipcash.study.result import Result
from mipcash.study.spending import Budget, Cost, Steps
from mipcash.study.study import Study
from mipcash.study.trial import Trial

OPTIONS: dict[str, Any] = {
    "n_iter": [Interval(Integral, 1, None, closed="left"), Steps, Cost],
    "optimizer": [str, HasMethods(["propose"])],
    "solver": [str, HasMethods(["solve"])],
    "limits": [dict, None],
    "random_state": ["random_state"],
    "storage": [str, os.PathLike, HasMethods(["record"]), None],
    "ensemble_size": [Interval(Integral, 1, None, closed="left"), None],
    "timeout": [Interval(Real, 0, None, closed="neither"), None],
    "evaluation_timeout": [Interval(Real, 0, None, closed="neither"), None],
    "evaluation_memory": [Interval(Real, 0, None, closed="neither"), None],
    "scoring": [str, callable, list, tuple, dict, None],
    "n_jobs": [Integral, None],
    "refit": ["boolean", str, callable],
    "cv": ["cv_object"],
    "verbose": ["verbose"],
    "error_score": [StrOptions({RAISE}), Real],
    "return_train_score": ["boolean"],
}
"""Valid types of each parameter of both searches; other parameters are checked where they are used."""


REFITS = 5
"""Maximum number of configurations that are fitted to all rows, until one is feasible."""


class SpaceSearch(BaseSearchCV):  # type: ignore[misc]
    """Base class of both searches; see ``SpaceSearchCV`` and ``PipelineSearchCV`` for their parameters."""

    _parameter_constraints: ClassVar[dict[str, Any]] = OPTIONS
    _quiet = False

    def _keep(self, arguments: Mapping[str, Any]) -> None:
        """Keep the arguments of ``__init__`` unchanged, as scikit-learn demands."""
        for name in self._get_param_names():
            setattr(self, name, arguments[name])

    # -- steps that subclasses override -------------------------------------------------------------------------

    @abstractmethod
    def _prepared(self, x: Any, y: Any, splits: Splits, seed: int) -> tuple[Space, Callable[[Mapping[str, Any]], Any]]:
        """Return the space, and a function from a configuration to an unfitted estimator."""

    def _check(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Return x and y in the form that the search accepts."""
        return x, y

    def _params(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return a configuration as ``params`` of ``cv_results_``."""
        return dict(config)

    @staticmethod
    def _fit_one(estimator: Any, x: Any, y: Any, params: Mapping[str, Any]) -> Any:
        return estimator.fit(x, **params) if y is None else estimator.fit(x, y, **params)

    # -- fit ----------------------------------------------------------------------------------------------------

    def _search(self, x: Any, y: Any, params: Mapping[str, Any]) -> Self:
        """Run ``fit``: the search, the table, the refit."""
        self._validate_params()
        self.__dict__.pop("ensemble_", None)  # of an earlier fit with another ensemble_size
        x, y = self._check(*indexable(x, y))
        self._scoring()
        scorers, metric = self._get_scorers()
        routed = self._get_routed_params_for_fit(dict(_check_method_params(x, params=params)))
        seed = self._seed()
        cv = check_cv(self.cv, y, classifier=self._classifies())
        self._check_folds(y, cv)
        splits = splits_of(cv, x, y, routed.splitter.split)
        self.n_splits_ = len(splits)
        self.multimetric_ = metric != SCORE or isinstance(self.scoring, (list, tuple, dict))
        space, build = self._prepared(x, y, splits, seed)
        fresh = fresh_of(cv, splits, x, y, routed.splitter.split, seed) if self.confirm else None
        data = Data(x, y, splits, fresh, dict(routed.estimator.fit), dict(routed.scorer.score))
        beside, measures = limited_of(self.limits, self._metrics(scorers))
        scores = Scores(
            scorers,
            self._metric(metric),
            self._perfect(metric),
            beside,
            measures,
            self.return_train_score,
            self.error_score,
        )
        with tempfile.TemporaryDirectory(prefix="mipcash-") as folder:
            objective = self._objective(build, data, scores, Path(folder))
            self.result_ = replace(self._minimize(objective, space, seed, Path(folder)), objective=None)
            self.space_ = space
            self._tabulate(scores, x)
            self.scorer_ = getattr(scorers, "_scorers", scorers)
            self._refit(objective)
        return self

    def _objective(self, build: Any, data: Data, scores: Scores, folder: Path) -> SearchObjective:
        predictions, classes = None, None
        if self.ensemble_size is not None:
            if np.ndim(data.y) != 1 and np.shape(data.y)[1:] != (1,):
                raise DataError("ensemble_size= needs one target, a class or a number per row; leave it out")
            check_partition(data.splits, _num_samples(data.x))
            in_memory = self.storage is None and not (self._elsewhere() or executor_of(self.n_jobs, self.timeout)[2])
            kept = (
                folder if self.storage is None or hasattr(self.storage, "record") else predictions_beside(self.storage)
            )
            predictions = Predictions(None if in_memory else kept, _identity(data))
            classes = np.unique(data.y) if self._classifies() else None
        return SearchObjective(
            build, data, scores, fit=self._fit_one, quiet=self._quiet, predictions=predictions, classes=classes
        )

    def _minimize(self, objective: SearchObjective, space: Space, seed: int, folder: Path) -> Result:
        workers, executor, _ = executor_of(self.n_jobs, self.timeout)
        apart = self._elsewhere()
        belonging = self._belonging(objective)
        local = callable(executor) and not apart  # Dask's workers may be on other machines
        called = FileObjective(objective, folder / "objective.pkl") if local else objective

        def stop(study: Any, trial: Trial) -> bool:
            # a ``DataError`` is about the arguments of ``fit``, not about a configuration
            if trial.failed and isinstance(objective.raised, DataError):
                raise objective.raised
            if trial.failed and self.error_score == RAISE:
                if objective.raised is None and not apart:
                    list(objective(trial.config, trial.repeat))  # raised in another process, it is raised again here
                raise objective.raised or DataError(f"a configuration failed: {trial.message}")
            return False

        try:
            with Study(
                space,
                Method(self.optimizer, self.settings, self.solver),
                seed=seed,
                limits=self.limits,
                storage=self.storage,
                pruning=self.pruning,
                options=belonging,
            ) as study:
                starts = [dict(config) for config in getattr(objective.build, "starts", ())]
                if all(trial.config in starts for trial in study.trials):  # the search has proposed nothing yet
                    for config in starts[: int(self.n_iter)] if isinstance(self.n_iter, Integral) else starts:
                        study.enqueue(config)
                return run(
                    study,
                    called,
                    Budget(self.n_iter, self.timeout),
                    execution=Execution(
                        workers,
                        None if apart else executor,
                        evaluation_timeout=self.evaluation_timeout,
                        evaluation_memory=self.evaluation_memory,
                    ),
                    confirm=self.confirm,
                    progress=None if self.verbose else False,
                    callbacks=stop,
                )
        except DefectError as error:
            if self.error_score == RAISE and objective.raised is not None:
                raise objective.raised from None
            raise DataError(
                f"every evaluation fails, for a reason that does not depend on the configuration:\n{error}"
                + _of_texts(objective.data.x, str(error))
            ) from error

    def _belonging(self, objective: SearchObjective) -> dict[str, str]:
        """Return the identity of the scores for the storage; empty without a storage."""
        if self.storage is None:
            return {}
        return belonging_of(objective.data, self._scoring_given(), objective.scores.metric, self._built_of())

    def _tabulate(self, scores: Scores, x: Any) -> None:
        trials = candidates_of(self.result_)
        check_failures(trials, _of_texts(x, "".join(t.message for t in trials if t.failed)))
        params = [self._params(t.config) for t in trials]
        self.cv_results_ = cv_results(trials, params, self.result_, scores, self.n_splits_)
        if f"mean_test_{SCORE}" not in self.cv_results_:
            self.multimetric_ = True
            if callable(self.scoring):  # the names of its scores are known now
                self._check_refit_for_multimetric(_metrics_in(self.cv_results_))
        if self.multimetric_ and self.refit is False:
            return
        if callable(self.refit):
            self.best_index_ = self._select_best_index(self.refit, scores.metric, self.cv_results_)
        else:
            best = self.result_.best
            if best is None and not self.refit:
                return
            if best is None:
                raise DataError(_nothing(self.result_))
            self.best_index_ = next(k for k, t in enumerate(trials) if t.number == best.number)
        self._choose(self.best_index_, scores)

    def _choose(self, index: int, scores: Scores) -> None:
        """Set the attributes of the best configuration."""
        self.best_index_ = index
        if not callable(self.refit):
            metric = scores.searched(_metrics_in(self.cv_results_))
            self.best_score_ = float(self.cv_results_[f"mean_test_{metric}"][index])
        self.best_params_ = dict(self.cv_results_["params"][index])

    def _refit(self, objective: SearchObjective) -> None:
        if not self.refit:
            return
        if self.ensemble_size is None or not self._refit_ensemble(objective, int(self.ensemble_size)):
            self._refit_best(objective)
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_

    def _refit_ensemble(self, objective: SearchObjective, size: int) -> bool:
        """Select an ensemble and fit it to all rows. Return False, with a warning, if none can be selected."""
        began = time.time()
        try:
            self.ensemble_, self.best_estimator_ = ensemble_of(self.result_, objective, self._scoring_given(), size)
        except DataError as error:
            warn(f"there is no ensemble, only its best configuration: {error}")
            return False
        self.refit_time_ = time.time() - began
        self.refit_measures_ = objective.measured(self.best_estimator_)
        if broken := self._violations(self.refit_measures_):
            warn(f"the ensemble violates the limits: {'; '.join(map(str, broken))}")
        return True

    def _refit_best(self, objective: SearchObjective) -> None:
        """Fit the best configuration to all rows, or the next best one if the refitted estimator violates limits on measures."""
        trials, limited = candidates_of(self.result_), [n for n in objective.scores.measures if n in MEASURES]
        columns = {name: np.full(len(trials), np.nan) for name in limited}
        order, first = self._refit_order(trials, movable=bool(limited)), None
        for index in order:
            began = time.time()
            estimator = objective.fitted(trials[index].config)
            seconds, measures = time.time() - began, objective.measured(estimator)
            for name, value in measures.items():
                columns[name][index] = value
            broken = self._violations(measures)
            first = first or (index, estimator, seconds, measures, broken)
            if not broken:
                break
        assert first is not None
        if broken:
            index, estimator, seconds, measures, broken = first
            warn(self._violated(index, broken, len(order)))
        self.cv_results_ |= {f"refit_{name}": column for name, column in columns.items()}
        self.best_estimator_, self.refit_time_, self.refit_measures_ = estimator, seconds, measures
        self._choose(index, objective.scores)

    def _refit_order(self, trials: Sequence[Trial], movable: bool) -> list[int]:
        """Return rows of ``cv_results_`` in the order of refits, the best first; only the best one if ``refit`` chose it."""
        if not movable or callable(self.refit):
            return [self.best_index_]
        rows = {trial.number: k for k, trial in enumerate(trials) if self.cv_results_["feasible"][k]}
        ranked = [rows[number] for number in self.result_.feasibility.ranked if number in rows]
        return [self.best_index_, *(k for k in ranked if k != self.best_index_)][:REFITS]

    def _violations(self, measures: Mapping[str, float]) -> list[Violation]:
        """Return the outcome constraints that measures of a refitted estimator violate."""
        limits = [limit for limit in self.result_.under if limit.output in measures]
        found = [
            Violation(limit, measures[limit.output], by=limit.violation(measures[limit.output])) for limit in limits
        ]
        return [violation for violation in found if violation.by]

    def _violated(self, index: int, broken: Sequence[Violation], refitted: int) -> str:
        reported = [f"{b} (on folds: {self.cv_results_[f'limited_{b.limit.output}'][index]:.6g})" for b in broken]
        others = "" if refitted == 1 else f"; so do the next best that were refitted, {refitted - 1} of them"
        return (
            f"the best configuration violates the limits after its refit to all rows: {'; '.join(reported)}{others}. "
            "It is returned; give a lower limit, so that there is room for the difference between a fold and all rows"
        )

    # -- options ------------------------------------------------------------------------------------------------

    def _classifies(self) -> bool:
        return bool(is_classifier(self.estimator))

    def _check_folds(self, y: Any, cv: Any) -> None:
        """Do nothing: scikit-learn warns of classes that are rarer than folds."""

    def _elsewhere(self) -> bool:
        """Return True if evaluations run in processes that can be ended."""
        return self.evaluation_timeout is not None or self.evaluation_memory is not None

    def _scoring(self) -> None:
        """Check that the names of scores exist, and that a function is a scorer."""
        if isinstance(self.scoring, FunctionType) and self.scoring.__module__.startswith("sklearn.metrics"):
            name = self.scoring.__name__
            raise DataError(
                f"scoring={name} is a metric, and a scorer takes an estimator, X and y; give make_scorer({name})"
            )
        listed: Any = self.scoring.values() if isinstance(self.scoring, dict) else self.scoring
        for name in listed if isinstance(self.scoring, (list, tuple, dict)) else [listed]:
            if isinstance(name, str):
                Scoring.of(name)

    def _built_of(self) -> Any:
        """Return what, besides the space, determines the estimator of a configuration."""
        return self.estimator

    def _scoring_given(self) -> Any:
        """Return ``scoring`` with defaults filled in."""
        return self.scoring

    def _scoring_name(self) -> Any:
        """Return scikit-learn's name of the score that the search optimises; None if there is none."""
        if isinstance(self.scoring, dict):
            return self.scoring.get(self.refit)
        if isinstance(self.scoring, (list, tuple)):
            return self.refit if self.refit in self.scoring else None
        return self.scoring

    def _metric(self, metric: Any) -> str:
        """Return the name of the score that the search optimises; empty for the first of the scores that are computed."""
        if callable(self.scoring) and not isinstance(self.refit, bool):
            metric = self.refit
        if callable(self.scoring) and self.refit is False:
            return ""
        return metric if isinstance(metric, str) else ""

    def _perfect(self, metric: Any) -> float:
        name = self._scoring_name()
        return Scoring.of(name).perfect if isinstance(name, str) else 0.0

    def _metrics(self, scorers: Any) -> Mapping[str, Any] | None:
        """Return scorers by name, or None if ``scoring`` is a function, whose scores are unknown before the call."""
        if callable(self.scoring):
            return None
        return getattr(scorers, "_scorers", {SCORE: scorers})  # type: ignore[no-any-return]

    def _seed(self) -> int:
        """Return ``random_state`` as an integer; None means 0 with a storage, and a random seed without one."""
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        if self.random_state is None and self.storage is not None:
            return 0
        return int(check_random_state(self.random_state).randint(2**31 - 1))


def _of_texts(x: Any, failure: str) -> str:
    """Return a sentence on the columns of a table that are no numbers; empty if that is not why estimators fail."""
    if "could not convert" not in failure:
        return ""
    kinds: Any = getattr(x, "dtypes", {})
    names = [repr(n) for n, kind in kinds.items() if kind.kind not in "biufc"] if hasattr(kinds, "items") else []
    if getattr(x, "ndim", 0) == 2 and getattr(getattr(x, "dtype", None), "kind", "") == "O":
        names = [str(k) for k, column in enumerate(x.T) if any(isinstance(v, str) for v in column)]
    if not names:
        return ""
    return (
        f"\nColumns that are no numbers: {', '.join(names)}. Encode them in the estimator, such as by "
        f"make_column_transformer((OneHotEncoder(handle_unknown='ignore'), [{', '.join(names)}]), remainder='passthrough')"
    )


def _metrics_in(table: Mapping[str, Any]) -> list[str]:
    begin = "mean_test_"
    return [name.removeprefix(begin) for name in table if name.startswith(begin)]


def _identity(data: Data) -> str:
    import joblib

    return str(joblib.hash((data.x, data.y, data.splits)))


def _nothing(result: Result) -> str:
    near = result.nearest
    if result.under and near is not None:
        return (
            f"no configuration satisfies all constraints: {near}; loosen limits=, raise n_iter, or set refit=False and read "
            "search.result_.limits"
        )
    ended = f" (stopped: {result.stopped})" if result.stopped else ""
    cure = "raise timeout=, since none was evaluated in it" if result.stopped == TIMEOUT else "raise n_iter="
    return f"no configuration has a score{ended}; {result.problem() or cure}"
