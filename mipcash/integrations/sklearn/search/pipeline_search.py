"""``PipelineSearchCV``: whole pipelines, their algorithms and hyperparameters, searched under rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal
from importlib import import_module
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import assert_all_finite, check_array, check_consistent_length, column_or_1d
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import has_fit_parameter

from mipcash.errors import DataError, SpaceError
from mipcash.integrations.sklearn.cross_validated import CLASSIFICATION, REGRESSION, looks_continuous, refuse_missing
from mipcash.integrations.sklearn.scoring import Scoring, weighted_scorer
from mipcash.integrations.sklearn.search.folds import check_classes
from mipcash.integrations.sklearn.search.modules import ModulePipelines
from mipcash.integrations.sklearn.search.objective import SCORE, Splits
from mipcash.integrations.sklearn.search.preparation import preparation_of
from mipcash.integrations.sklearn.search.search import OPTIONS, SpaceSearch
from mipcash.space.space import Space

PREPARE = "prepare"
"""Name of the step."""


@dataclass(frozen=True)
class Prepared:
    """Builds pipelines that begin with a preparation.

    Attributes:
        preparation: unfitted; None: there is none.
        build: configuration -> pipeline.
        starts: configurations to evaluate first.
    """

    preparation: Any
    build: Callable[[Mapping[str, Any]], Any]
    starts: Sequence[Mapping[str, Any]] = ()

    def __call__(self, config: Mapping[str, Any]) -> Any:
        from sklearn.base import clone
        from sklearn.pipeline import Pipeline

        found = self.build(config)
        if self.preparation is None:
            return found
        return Pipeline([(PREPARE, clone(self.preparation)), *found.steps])


SPACES = ("usual", "a2", "a3")
MODEL = "mipcash.models.sklearn_pipeline"
"""Module that declares their spaces; imported by name, as all models are."""
DEFAULT = {CLASSIFICATION: "accuracy", REGRESSION: "r2"}
"""Default scores: the ``score`` of scikit-learn's estimators."""


class PipelineSearchCV(SpaceSearch):
    """Search pipelines: which algorithms, in which order, with which hyperparameters.

    Args:
        space: None or ``"usual"``: scaling, selection, PCA or polynomial features, and then linear models, support vector machines,
            nearest neighbours, naive Bayes, discriminant analysis, forests, histogram gradient boosting or a small network, for
            the task at hand. Configurations near scikit-learn's defaults, of nine classifiers or seven regressors as far as the
            data allow them, are evaluated first. Texts become columns and missing numbers medians. ``"a3"``, ``"a2"``: Tables A3
            and A2 of Liu et al. (2020). Or a
            [`mipcash.Space`][mipcash.space.space.Space] whose modules are the steps, in the order of their declaration (or of
            an ordering), and whose algorithms are estimators; the last module predicts.
        build: ``build(configuration)`` returns an unfitted estimator, if the modules of the space do not define it.
        estimators: algorithm (or ``module.algorithm``) of the space -> estimator, or its class; other algorithms are scikit-learn's
            classes by name, and ``none`` omits a step.
        task: ``classification``, ``regression``, or None: inferred from y and the scoring. Give it if the search
            itself is passed to another function of scikit-learn, which asks before there is a y.
        n_iter, cv, limits, optimizer, settings, solver: as in
            [`SpaceSearchCV`][mipcash.integrations.sklearn.search.space_search.SpaceSearchCV].
        scoring: as in [`SpaceSearchCV`][mipcash.integrations.sklearn.search.space_search.SpaceSearchCV]; None means the
            accuracy or r2.
        random_state: of the search and of the algorithms.
        n_jobs, storage, pruning, confirm, ensemble_size, refit: as in ``SpaceSearchCV``.
        timeout, evaluation_timeout, evaluation_memory, error_score, return_train_score, verbose: as in ``SpaceSearchCV``.

    Attributes:
        best_params_: the best configuration of the space. The other attributes are those of
            [`SpaceSearchCV`][mipcash.integrations.sklearn.search.space_search.SpaceSearchCV].

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.integrations.sklearn import PipelineSearchCV
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.neighbors import KNeighborsClassifier
        >>> from sklearn.preprocessing import StandardScaler
        >>> x, y = load_iris(return_X_y=True)
        >>> space = mc.Space("pipeline")
        >>> scale = space.module("scale", ["standard", "none"])
        >>> model = space.module("model", {"knn": {"n_neighbors": mc.Integer(1, 9)}})
        >>> steps = {"standard": StandardScaler, "knn": KNeighborsClassifier}
        >>> search = PipelineSearchCV(space, estimators=steps, n_iter=3, cv=3, random_state=0).fit(x, y)
        >>> search.best_score_ > 0.9, search.predict(x[:1])
        (True, array([0]))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "space": [Space, StrOptions(set(SPACES)), None],
        "build": [callable, None],
        "estimators": [dict, None],
        "task": [StrOptions({CLASSIFICATION, REGRESSION}), None],
        **OPTIONS,
    }
    _quiet = True

    def __init__(
        self,
        space: Space | str | None = None,
        *,
        build: Callable[[Mapping[str, Any]], Any] | None = None,
        estimators: Mapping[str, Any] | None = None,
        task: str | None = None,
        n_iter: Any = 40,
        scoring: Any = None,
        cv: Any = None,
        limits: Any = None,
        optimizer: Any = "hybrid",
        settings: Any = None,
        solver: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        storage: Any = None,
        pruning: Any = False,
        confirm: Any = None,
        ensemble_size: int | None = None,
        refit: Any = True,
        timeout: float | None = None,
        evaluation_timeout: float | None = None,
        evaluation_memory: float | None = None,
        error_score: Any = math.nan,
        return_train_score: bool = False,
        verbose: int = 0,
    ) -> None:
        self._keep(locals())

    @property
    def estimator(self) -> Any:
        """An estimator of the task, as a placeholder for pipelines before one is fitted."""
        task = self.task or getattr(self, "task_", None)
        return {CLASSIFICATION: DummyClassifier, REGRESSION: DummyRegressor}.get(task or "", Undecided)()

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Search, and fit the best pipeline to all rows.

        Args:
            X: rows: an array or a data frame.
            y: classes or numbers, shape (rows,).
            sample_weight: shape (rows,); passed to the steps of a pipeline that accept weights, and to scorers as scikit-learn
                routes it. Other steps are fitted without weights.
            params: ``groups``, and what splitter and scorers request.

        Returns:
            The search itself.

        Raises:
            SpaceError: an algorithm that is no estimator, or a hyperparameter that it lacks.
            DataError: an unknown scoring or limit, a class with fewer rows than folds, all configurations failed, or none is
                feasible.
        """
        if sample_weight is not None:
            check_consistent_length(X, sample_weight)
            params["sample_weight"] = sample_weight
        return self._search(X, y, params)

    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Return the score of rows, as in scikit-learn, but with numbers in an array of objects as in ``fit``.

        Args:
            X: table or array of the rows.
            y: their targets.
            params: for the scorer.

        Returns:
            The score.
        """
        if y is not None and (given := np.asarray(y)).dtype.kind == "O":
            y = _of_one_type(column_or_1d(given))
        return float(super().score(X, y, **params))

    # -- overridden steps of the search -------------------------------------------------------------------------

    def _check(self, x: Any, y: Any) -> tuple[Any, Any]:
        if y is None:
            raise DataError(
                "PipelineSearchCV requires y to be passed, but the target y is None; give classes or numbers"
            )
        if (given := np.asarray(y)).dtype.kind == "O":
            refuse_missing("y", given.ravel())
        y = _of_one_type(column_or_1d(y, warn=True))
        if y.dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        self.task_ = self.task or self._task_of(y)
        if self.task_ == CLASSIFICATION:
            try:
                check_classification_targets(y)
            except ValueError as error:
                raise DataError(f"{error} For numbers give task={REGRESSION!r}, and a score of regression") from error
        elif y.dtype.kind not in "biuf":
            raise DataError(f"y holds {y[:1].tolist()[0]!r}, and regression needs numbers; use task={CLASSIFICATION!r}")
        if len(y) and isinstance(name := self._scoring_name(), str):
            Scoring.of(name).check(y, self.task_ == CLASSIFICATION)
        return x, y

    def _task_of(self, y: Any) -> str:
        name = self._scoring_name() if self.scoring is not None else None
        if isinstance(name, str):
            self._scoring()
        numeric = y.dtype.kind in "iuf"
        if isinstance(name, str):
            return REGRESSION if Scoring.of(name).of_numbers and numeric else CLASSIFICATION
        numbers = np.asarray(y, dtype=np.float64) if numeric else np.zeros(0)
        # scikit-learn's classifiers refuse fractions as classes
        return REGRESSION if (numbers % 1 != 0).any() or looks_continuous(numbers) else CLASSIFICATION

    def _check_folds(self, y: Any, cv: Any) -> None:
        if self._classifies():
            check_classes(y, cv)

    def _prepared(self, x: Any, y: Any, splits: Splits, seed: int) -> tuple[Space, Any]:
        if self.build is not None:
            if not isinstance(self.space, Space):
                raise SpaceError("build= makes an estimator of a configuration; give space= too, which says of which")
            if self.estimators:
                raise SpaceError("build= makes the estimators; leave out estimators=, which has no effect beside it")
            return deepcopy(self.space), self.build  # a space caches results
        seed = seed % 2**32
        if self.estimators and not isinstance(self.space, Space):
            own = self.space or SPACES[0]
            raise SpaceError(
                f"estimators= is for the algorithms of a space= of your own; the space {own!r} has estimators"
            )
        if isinstance(self.space, Space):
            return deepcopy(self.space), ModulePipelines.of(self.space, self.estimators, self.task_, seed)
        preparation = preparation_of(x)
        numbers = x if preparation is None else preparation.fit_transform(x)
        numbers = check_array(numbers, dtype=np.float64)
        reported = np.unique(y, return_inverse=True)[1].astype(np.int64) if self._classifies() else np.asarray(y, float)
        space, build = import_module(MODEL).pipelines_of(
            numbers, reported, [train for train, _ in splits], space=self.space or SPACES[0], seed=seed
        )
        return space, Prepared(preparation, build, build.starts(space))

    @staticmethod
    def _fit_one(estimator: Any, x: Any, y: Any, params: Mapping[str, Any]) -> Any:
        """Fit an estimator; weights are passed to the steps that accept them."""
        import sklearn

        weights = params.get("sample_weight")
        if weights is None:
            return estimator.fit(x, y)
        steps = (
            {f"{name}__": step for name, step in estimator.steps}
            if isinstance(estimator, Pipeline)
            else {"": estimator}
        )
        inner = {
            name: getattr(step, "regressor", None) or step for name, step in steps.items()
        }  # inside ``TransformedTargetRegressor``
        reported = {
            f"{n}sample_weight": weights for n, step in inner.items() if has_fit_parameter(step, "sample_weight")
        }
        with sklearn.config_context(enable_metadata_routing=False):  # the steps request no metadata
            return estimator.fit(x, y, **reported)

    def _built_of(self) -> Any:
        return {"task": self.task_, "build": self.build, "estimators": self.estimators}

    def _scoring_given(self) -> Any:
        return self._scoring_name() if self.scoring is None else self.scoring

    def _scoring_name(self) -> Any:
        if self.scoring is None:
            return DEFAULT.get(str(self.task or getattr(self, "task_", "")), DEFAULT[CLASSIFICATION])
        return super()._scoring_name()

    def _get_scorers(self) -> tuple[Any, Any]:
        if self.scoring is None:
            return weighted_scorer(self._scoring_name()), SCORE
        found: tuple[Any, Any] = super()._get_scorers()
        return found

    # -- metadata -----------------------------------------------------------------------------------------------

    def _get_routed_params_for_fit(self, params: Mapping[str, Any]) -> Any:
        import sklearn
        from sklearn.utils import Bunch
        from sklearn.utils.metadata_routing import process_routing

        weights = {name: params[name] for name in ("sample_weight",) if params.get(name) is not None}
        if sklearn.get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **params)
            routed.estimator = Bunch(fit=weights)
            return routed
        unknown = [name for name in params if name not in ("sample_weight", "groups")]
        if unknown:
            raise TypeError(
                f"fit of PipelineSearchCV takes sample_weight and groups, got {unknown[0]!r}; what scorers and splitters request "
                "is passed on with sklearn.set_config(enable_metadata_routing=True)"
            )
        return super()._get_routed_params_for_fit(dict(params))

    def get_metadata_routing(self) -> Any:
        """Return the routing: ``sample_weight`` of this search, and metadata of scorers and splitter.

        Returns:
            scikit-learn's ``MetadataRouter``.
        """
        from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

        scorer, _ = self._get_scorers()
        router = MetadataRouter(owner=self).add_self_request(self)
        to_scorer = MethodMapping().add(caller="score", callee="score").add(caller="fit", callee="score")
        router.add(scorer=scorer, method_mapping=to_scorer)
        return router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.no_validation = False
        tags.target_tags.required = True
        for of_task in filter(None, (tags.classifier_tags, tags.regressor_tags)):
            of_task.poor_score = False  # True for the placeholder estimator
        if self.build is None and not isinstance(self.space, Space):
            tags.input_tags.sparse = False
            tags.input_tags.allow_nan = True
        return tags


def _of_one_type(y: Any) -> Any:
    """Return an array of objects that are numbers or bools as such.

    Raises:
        DataError: it holds objects of several types, or of a type that is neither a text nor a number.
    """
    if y.dtype.kind != "O":
        return y
    if all(isinstance(v, (Real, Decimal, np.bool_)) for v in y):
        found = np.array(y.tolist())
        return found.astype(float) if found.dtype.kind == "O" else found
    if not all(isinstance(v, str) for v in y):
        types = ", ".join(sorted({type(v).__name__ for v in y}))
        raise DataError(f"y holds values of type {types}; give numbers, bools or texts, such as y.astype(str)")
    return y


class Undecided(BaseEstimator):  # type: ignore[misc]
    """An estimator of unknown task."""

    def fit(self, X: Any, y: Any) -> Undecided:
        """Do nothing."""
        return self

    def predict(self, X: Any) -> Any:
        """Raise ``NotImplementedError``."""
        raise NotImplementedError
