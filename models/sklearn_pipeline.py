"""A scikit-learn pipeline on real data, for classes or numbers, under rules of what cannot work or costs too much.

``space=usual`` (the default) has the pipelines that practitioners use first (:mod:`mipcash.models._automl_usual`). scikit-learn's
defaults of its estimators are evaluated first: on the folds of the search, the answer is never worse than the best of them.

``space=a2`` is Table A2 of Liu et al., "An ADMM based framework for AutoML pipeline configuration": 8 x 11 x 7 x 11 = 6,776
compositions with 92 hyperparameters. ``space=a3`` is its Table A3, 6 x 3 x 6 = 108. Algorithms and ranges of the tables are in
:mod:`mipcash.models._automl_algorithms`, and the rules on their combinations in :mod:`mipcash.models._automl_rules`. With
``order=yes`` the modules before the estimator may stand in any order.

Texts become one column per value and missing numbers the median (the imputer and the encoder of the tables, which leave no choice).

An evaluation cross-validates the pipeline. Its outputs other than the loss, for ``--limit``, are in
:mod:`mipcash.models._pipeline_measures`. One that crashes, takes longer than ``--evaluation-timeout`` or more memory than
``--evaluation-memory`` is a failure with its cause, and the search goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mipcash as mc
from mipcash.integrations.sklearn.cross_validated import CrossValidated
from mipcash.integrations.sklearn.measures import CLOCKS
from mipcash.models._automl_algorithms import AUTO_SKLEARN, RANGES, SPACES, modules_of
from mipcash.models._automl_rules import Rules
from mipcash.models._automl_usual import USUAL, defaults_of
from mipcash.models._data import AUTO, CLASSIFICATION, REGRESSION, Table, table
from mipcash.models._group_measures import ERROR, OF
from mipcash.models._options import choice, flag, share, whole
from mipcash.models._pipeline_measures import METRICS, OF_NUMBERS, groups_of, objective_of
from mipcash.models._pipeline_parts import Call, Facts, Modules, pipeline_of, script, steps
from mipcash.models._pipeline_report import compared, share_predictions

DEFAULTS = {"budget": 40, "evaluation_timeout": 120.0, "evaluation_memory": 4000.0}


@dataclass(frozen=True)
class Pipelines:
    """The pipelines of a space: called with a configuration, it builds one.

    Attributes:
        space: of SPACES.
        regression: whether numbers are predicted.
        columns: of the data.
        ranges: of RANGES.
        order: whether the modules before the estimator may stand in any order.
        seed: of every algorithm that is random.
    """

    space: str
    regression: bool
    columns: int
    ranges: str = AUTO_SKLEARN
    order: bool = False
    seed: int = 0

    @cached_property
    def modules(self) -> Modules:
        """In the order in which they run, unless that is searched too."""
        return modules_of(self.space, self.regression, self.ranges)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "modules"}

    def declare(self, facts: Facts, *, rules: bool = True, tuned: bool = True) -> mc.Space:
        """The space.

        Args:
            facts: of the data.
            rules: False: without what is known beforehand.
            tuned: False: the algorithms alone, without their hyperparameters.
        """
        space = mc.Space("pipelines" if self.space == USUAL else f"pipelines of table {self.space.upper()}")
        declared = {
            name: space.module(name, {a: c.tuned if c and tuned else {} for a, c in algorithms.items()})
            for name, algorithms in self.modules.items()
        }
        movable = [m for name, m in declared.items() if name != "estimator"]
        order = space.ordering("order", movable) if self.order else None
        if rules:
            Rules(space, declared, facts, order, tuned).add()
        return space

    @property
    def defaults(self) -> list[dict[str, Any]]:
        """scikit-learn's defaults as configurations of the usual space, the cheapest first; [] for the tables of the papers."""
        return defaults_of(self.regression, self.columns) if self.space == USUAL and not self.order else []

    def starts(self, space: mc.Space) -> list[dict[str, Any]]:
        """Return what a search of ``space`` evaluates first: the defaults that are legal in it."""
        return [config for config in self.defaults if not space.validate(config)]

    def steps(self, config: Mapping[str, Any]) -> list[tuple[str, Call]]:
        """The steps of a configuration, as they run."""
        order = (*config["order"], "estimator") if self.order else tuple(self.modules)
        return steps(self.modules, config, order, self.seed, self.columns)

    def __call__(self, config: Mapping[str, Any]) -> Any:
        """The configuration as a ``sklearn.pipeline.Pipeline``."""
        return pipeline_of(self.steps(config))


@dataclass(frozen=True)
class Problem:
    """Options of :func:`build`, checked, with the data they name.

    Attributes:
        data: rows that are searched on.
        held: rows that are held out; None: none are.
        rows: numbers of the rows that are searched on.
    """

    data: Table
    pipelines: Pipelines
    metric: str
    folds: int
    seed: int
    held: Table | None
    rows: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        data: str = "digits",
        target: str = "target",
        space: str = USUAL,
        task: str = AUTO,
        metric: str | None = None,
        folds: int | str = 5,
        seed: int | str = 0,
        ranges: str = AUTO_SKLEARN,
        order: bool | str = False,
        held_out: float | str = 0.0,
        **_: Any,
    ) -> Problem:
        choice("space", space, SPACES)
        choice("ranges", ranges, RANGES if space != USUAL else (AUTO_SKLEARN,))
        loaded = table(data, target, choice("task", task, (AUTO, CLASSIFICATION, REGRESSION)))
        regression = loaded.task == REGRESSION
        allowed = [m for m in METRICS if (m in OF_NUMBERS) == regression]
        chosen = metric or ("r2" if regression else "accuracy")
        number, fixed = whole("folds", folds, low=2), whole("seed", seed)
        searched, held, rows = loaded.held_out(share("held_out", held_out), fixed)
        searched.check_folds(number)
        pipelines = Pipelines(space, regression, loaded.x.shape[1], ranges, flag("order", order), fixed)
        return cls(searched, pipelines, choice("metric", chosen, allowed), number, fixed, held, rows)


def build(
    *,
    data: str = "digits",
    target: str = "target",
    space: str = USUAL,
    task: str = AUTO,
    metric: str | None = None,
    folds: int | str = 5,
    seed: int | str = 0,
    ranges: str = AUTO_SKLEARN,
    order: bool | str = False,
    held_out: float | str = 0.0,
    protected: str | None = None,
    edges: str | None = None,
    disparity_of: str = ERROR,
    clock: str = "wall",
) -> tuple[mc.Space, CrossValidated]:
    """The space for a data set, and the cross-validated loss on it.

    Args:
        data: a name or the path of a CSV file, see :func:`mipcash.models._data.table`.
        target: the column of a CSV file that holds the class, or the number.
        space: ``usual``, ``a2`` or ``a3``.
        task: ``classification`` (of two or more classes), ``regression``, or ``auto``: what the target looks like.
        metric: accuracy (the default), balanced_accuracy, roc_auc, f1 (macro) or log_loss; of numbers r2 (the default), rmse or
            mae.
        folds: of the cross-validation, stratified for classes.
        seed: of the folds and of every algorithm that is random.
        ranges: ``auto-sklearn``, or ``small`` with bounds on what makes fits slow.
        order: whether the modules before the estimator may stand in any order.
        held_out: share of the rows, drawn by class and seed, that the search does not see and that the report measures on. The
            code of the report cross-validates on all rows.
        protected: the column of a CSV file whose groups are compared, see :meth:`mipcash.models._data.Table.grouped`.
        edges: numbers that cut it into groups, ``30,40,50``.
        disparity_of: what is compared, ``error`` or ``roc_auc``.
        clock: of the latency, ``wall`` or ``cpu``.

    Raises:
        ModelError: an option that does not fit, no such data or column, or a class with fewer rows than there are folds.
    """
    problem = Problem.of(data, target, space, task, metric, folds, seed, ranges, order, held_out)
    measured = {"protected": protected, "edges": edges, "disparity_of": disparity_of, "clock": clock}
    objective = _objective(problem.pipelines, problem, {"data": data, "target": target, **measured})
    share_predictions(objective)
    return problem.pipelines.declare(Facts.of(problem.data, problem.folds)), objective


def pipelines_of(
    x: NDArray[np.float64],
    y: NDArray[Any],
    trained: Sequence[NDArray[np.int64]],
    *,
    space: str = USUAL,
    ranges: str = AUTO_SKLEARN,
    seed: int = 0,
) -> tuple[mc.Space, Pipelines]:
    """The space for data at hand, and what builds its pipelines: for searches that evaluate them themselves.

    Args:
        x: shape (rows, columns), without missing values.
        y: classes 0, 1, ... as integers, or floats to regress on.
        trained: rows that each fold is fitted to.
        space: ``usual``, ``a2`` or ``a3``.
        ranges: see :func:`build`.
        seed: of every algorithm that is random.
    """
    data = Table(x, y, "")
    pipelines = Pipelines(choice("space", space, SPACES), data.task == REGRESSION, x.shape[1], ranges, seed=seed)
    return pipelines.declare(Facts.of_folds(data, trained)), pipelines


def code(config: Mapping[str, Any], **options: Any) -> str:
    """The configuration as scikit-learn code that runs on its own; the options are those of :func:`build`."""
    problem = Problem.of(**options)
    folds = {"n_splits": problem.folds, "shuffle": True, "random_state": problem.seed}
    kind = "KFold" if problem.pipelines.regression else "StratifiedKFold"
    cv = Call(f"sklearn.model_selection.{kind}", folds)
    return script(problem.pipelines.steps(config), problem.data.source, cv, METRICS[problem.metric][0])


def starts(**options: Any) -> list[dict[str, Any]]:
    """scikit-learn's defaults that the data allow, the cheapest first; the options are those of :func:`build`."""
    problem = Problem.of(**options)
    return problem.pipelines.starts(problem.pipelines.declare(Facts.of(problem.data, problem.folds)))


def report(result: Any, **options: Any) -> str:
    """The best pipeline as code, and its score and that of an ensemble beside those of the best default.

    The best default is that with the lowest loss of those that the search evaluated and that keep the outcome constraints. For the
    tables of the papers, a linear model and a forest stand in its place.
    """
    problem = Problem.of(**options)
    first = problem.pipelines.defaults
    defaults = [
        t
        for t in result.history
        if t.config in first and not t.repeat and t.loss is not None and not result.violations(t)
    ]
    models = {"best pipeline found": problem.pipelines(result.config)}
    if defaults:
        best = min(defaults, key=lambda trial: trial.loss)
        models[f"best of {len(defaults)} defaults: {best.config['estimator']}"] = problem.pipelines(best.config)
    else:
        models |= _two_defaults(problem)
    lines = compared(result, models, lambda build: _objective(build, problem, options), problem.held)
    return "\n".join([code(result.config, **options), "", *lines])


def _two_defaults(problem: Problem) -> dict[str, Any]:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    regression = problem.pipelines.regression
    linear = Ridge() if regression else LogisticRegression()
    forest = RandomForestRegressor if regression else RandomForestClassifier
    return {
        f"StandardScaler + {type(linear).__name__}, defaults": make_pipeline(StandardScaler(), linear),
        f"{forest.__name__}, defaults": forest(random_state=problem.seed),
    }


def _objective(
    build: Callable[[Mapping[str, Any]], Any], problem: Problem, options: Mapping[str, Any]
) -> CrossValidated:
    """Return the objective that cross-validates the pipelines of ``build``; the options are those of :func:`build`."""
    data, target = options.get("data", "digits"), options.get("target", "target")
    groups = groups_of(data, target, options.get("protected"), options.get("edges"), problem.data.task)
    groups = groups and replace(groups, codes=groups.codes[problem.rows])
    told = choice("disparity_of", options.get("disparity_of", ERROR), OF)
    timed = choice("clock", options.get("clock", "wall"), CLOCKS)
    return objective_of(build, problem.data, problem.metric, problem.folds, problem.seed, groups, told, timed)
