"""``SpaceSearchCV``: the parameters of any estimator, searched under rules."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods

from mipcash.errors import SpaceError
from mipcash.integrations.sklearn.search.objective import Splits
from mipcash.integrations.sklearn.search.search import OPTIONS, SpaceSearch
from mipcash.modelling.domains import Categorical, Ordinal
from mipcash.modelling.parameters import ModuleParameter
from mipcash.space.space import Space
from mipcash.text import did_you_mean


class SpaceSearchCV(SpaceSearch):
    """Search the parameters of an estimator, or of a pipeline, under the rules of a space.

    A replacement for ``RandomizedSearchCV`` or ``GridSearchCV``.

    Args:
        estimator: with ``fit``; scored by ``scoring``, or by its own ``score``.
        space: a [`mipcash.Space`][mipcash.space.space.Space] whose parameters are named as those of the estimator
            (``step__parameter`` of a pipeline), or the argument of ``RandomizedSearchCV``
            ([`mipcash.Space.from_sklearn`][mipcash.space.space.Space.from_sklearn]). An inactive parameter keeps the
            estimator's own value. The hyperparameters of a module have the estimator's names; the module itself is set only if
            the estimator has a parameter of its name.
        n_iter: number of configurations that are evaluated, those of a resumed storage included; or ``mc.Steps(200)``. A storage
            with at least as many configurations is not searched any further.
        scoring, cv, refit, error_score, return_train_score, n_jobs, verbose: as in ``RandomizedSearchCV``. If a fold of a
            configuration fails, the configuration has failed and its other folds are not fitted; a number as ``error_score`` is
            its score instead. Workers are processes, or those of ``joblib.parallel_config``.
        limits: outcome constraints, each an upper end or ``(low, high)`` with None for no end: scores by name
            (scikit-learn's, or of ``scoring``), ``latency_ms``, ``single_ms``, ``model_bytes``, ``fit_seconds``; see
            [`mipcash.integrations.sklearn.measures`][mipcash.integrations.sklearn.measures]. The search measures a model of
            the first fold. ``latency_ms``, ``single_ms`` and ``model_bytes`` are measured again on the estimator that was
            refitted to all rows. If that estimator violates a limit, the next best configuration that was feasible on the
            folds is refitted, at most five configurations in all. If all of them violate a limit, the first is returned with a
            warning.
        optimizer, settings, solver: as in [`mipcash.Method`][mipcash.study.method.Method].
        storage: as in [`mipcash.minimize`][mipcash.study.minimize.minimize], but no ``Journal``. Evaluations in the
            storage are not repeated. A storage belongs to one data set, ``cv``, ``scoring`` and estimator, and is refused with
            another.
        pruning: as in [`mipcash.minimize`][mipcash.study.minimize.minimize]: configurations that are clearly worse are not
            fitted to all folds.
        confirm: as in [`mipcash.minimize`][mipcash.study.minimize.minimize]: finalists are evaluated on other folds, and the
            best one there is returned. These evaluations count in ``n_iter``.
        ensemble_size: steps of a greedy selection (Caruana et al. 2004); then ``best_estimator_`` is an ensemble of the best
            configurations. It need not satisfy the limits that each member satisfies; a warning says so if it does not. A score
            that needs more than predictions has no ensemble, and a warning.
        random_state: of the search; an int makes the search reproducible (with one worker). None: random, except that a search with
            a storage has a fixed seed.
        timeout: seconds of the search. No evaluation starts after it, and those that run are interrupted, unless none has finished
            yet. The refit follows. A single worker is then a process of joblib, too. Threads, and workers of Dask, complete their
            evaluations.
        evaluation_timeout, evaluation_memory: seconds and megabytes after which an evaluation is ended and has failed. Evaluations
            then run in processes of their own.

    Attributes:
        cv_results_: as in ``RandomizedSearchCV``, with ``status`` and, under limits, ``feasible`` and ``limited_NAME``. A limited
            measure also has ``refit_NAME``: its value after the refit, nan for configurations that were not refitted. All other
            attributes of ``RandomizedSearchCV`` exist, too.
        refit_measures_: the limited measures of ``best_estimator_`` by name, such as ``{"latency_ms": 13.1}``.
        result_: the [`mipcash.Result`][mipcash.study.result.Result].
        space_: the space that was searched.
        ensemble_: the members and their weights, if ``ensemble_size`` is given.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.integrations.sklearn import SpaceSearchCV
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> x, y = load_iris(return_X_y=True)
        >>> space = {"C": mc.Real(0.01, 100.0, log=True), "kernel": ["rbf", "linear"]}
        >>> search = SpaceSearchCV(SVC(), space, n_iter=4, cv=3, random_state=0).fit(x, y)
        >>> search.best_score_ > 0.9, sorted(search.best_params_)
        (True, ['C', 'kernel'])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit"])],
        "space": [Space, dict, list, tuple],
        **OPTIONS,
    }

    def __init__(
        self,
        estimator: Any,
        space: Space | Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
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

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Search, and fit the best estimator to all rows.

        Args:
            X: rows that the estimator accepts.
            y: target; None for unsupervised estimators.
            params: of the estimator's ``fit``, of the scorers and the splitter (``groups``), as in ``RandomizedSearchCV``.

        Returns:
            The search itself.

        Raises:
            SpaceError: the space has a parameter that the estimator lacks.
            DataError: an unknown scoring or limit, all configurations failed, or none is feasible.
        """
        return self._search(X, y, params)

    def _prepared(self, x: Any, y: Any, splits: Splits, seed: int) -> tuple[Space, Any]:
        space = deepcopy(self.space) if isinstance(self.space, Space) else Space.from_sklearn(self.space)
        self._names = names_of(space, self.estimator)
        return space, WithParameters(self.estimator, self._names)

    def _params(self, config: Mapping[str, Any]) -> dict[str, Any]:
        return parameters_of(config, self._names)


@dataclass(frozen=True)
class WithParameters:
    """Builds the estimator of a configuration.

    Attributes:
        estimator: whose parameters are set.
        names: parameter of the space -> of the estimator; None: it sets no parameter.
    """

    estimator: Any
    names: Mapping[str, str | None] = field(default_factory=dict)

    def __call__(self, config: Mapping[str, Any]) -> Any:
        # values are cloned, too: the value for a pipeline's step is an estimator
        return clone(self.estimator).set_params(**clone(parameters_of(config, self.names), safe=False))


def parameters_of(config: Mapping[str, Any], names: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the parameters that a configuration sets, by the estimator's names."""
    found = {}
    for name, value in config.items():
        if (reported := names[name]) is not None:
            found[reported] = value
    return found


def names_of(space: Space, estimator: Any) -> dict[str, str | None]:
    """Return parameter of a space -> of an estimator; None for a module that only determines which parameters are active.

    Raises:
        SpaceError: the estimator lacks one, or the space is empty.
    """
    if not space.parameters:
        raise SpaceError(f"space {space.name!r} has no parameters; declare some, such as space.real('C', 0.1, 100)")
    modules = {n: p for n, p in space.parameters.items() if isinstance(p, ModuleParameter)}
    own = {
        f"{module}.{algorithm}.{hyper}": hyper
        for module, parameter in modules.items()
        for algorithm, hypers in parameter.hyperparameters.items()
        for hyper in hypers
    }
    choices = (p.domain.values for p in space.parameters.values() if isinstance(p.domain, (Categorical, Ordinal)))
    chosen = [v for values in choices for v in values if hasattr(v, "get_params")]
    found: dict[str, str | None] = {}
    for name in space.parameters:
        reported = own.get(name, name)
        if _has(estimator, reported, chosen):
            found[name] = reported
        elif name in modules:
            found[name] = None
        else:
            raise SpaceError(_lacks(space, name, reported, estimator))
    return found


def _has(estimator: Any, name: str, chosen: Sequence[Any]) -> bool:
    """Return True if an estimator has a parameter, or may have it: ``clf__C`` of a step that is a choice."""
    known = estimator.get_params()
    if name in known:
        return True
    step, _, rest = name.partition("__")
    return bool(rest) and step in known and any(rest in e.get_params() for e in chosen)


def _lacks(space: Space, name: str, reported: str, estimator: Any) -> str:
    hint = did_you_mean(reported, estimator.get_params())
    of = f" (here {reported!r})" if reported != name else ""
    return f"parameter {name!r} of space {space.name!r}{of} is no parameter of {type(estimator).__name__}; {hint}"
