"""Hyperparameters of learners on small data: XGBoost on monks-problem-1, and scikit-learn pipelines under their rules."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import mipcash as mc
from benchmarks.automl import ordered as pipelines
from benchmarks.peers.problem import Config, Problem, described
from mipcash.models._data import table

ROUNDS = (3, 200)
SPLITS = (0, 1, 2)


def xgboost_space() -> mc.Space:
    """Return Table 5 of Daxberger et al. with at most 200 instead of 5,000 rounds, which takes about 0.05 s."""
    s = mc.Space("xgboost on monks-problem-1")
    s.categorical("booster", ["gbtree", "gblinear"])
    s.integer("nrounds", *ROUNDS, log=True)
    s.real("alpha", 0.000985, 1009.209690, log=True)
    s.real("lambda", 0.000978, 999.020893, log=True)
    s.real("eta", 0.000979, 0.995686, log=True)
    s.integer("max_depth", 1, 15)
    s.real("min_child_weight", 1.012169, 127.041806, log=True)
    s.real("subsample", 0.100215, 0.999830)
    s.real("colsample_bytree", 0.062528, 0.999640)
    s.real("colsample_bylevel", 0.046776, 0.998424)
    return s


def xgboost(config: Config) -> float:
    """Return the mean error over three splits into 124 training and 308 held-out rows."""
    from mipcash.models.xgboost import error

    return sum(error(config, seed) for seed in SPLITS) / len(SPLITS)


@cache
def _halves(data: str) -> tuple[Any, Any, Any, Any]:
    """Return stratified training and held-out halves of the rows, x and y of each."""
    from sklearn.model_selection import train_test_split

    rows = table(data)
    x_train, x_test, y_train, y_test = train_test_split(rows.x, rows.y, test_size=0.5, random_state=0, stratify=rows.y)
    return x_train, y_train, x_test, y_test


def pipeline_loss(data: str) -> Callable[[Config], float]:
    """Return 1 - ROC AUC on the held-out half after one fit (0.1 s), computed once per configuration."""
    known: dict[str, float] = {}

    def objective(config: Config) -> float:
        key = repr(sorted(config.items()))
        if key not in known:
            known[key] = _loss(config, *_halves(data))
        return known[key]

    return objective


def _loss(config: Config, x_train: Any, y_train: Any, x_test: Any, y_test: Any) -> float:
    from sklearn.metrics import get_scorer

    with warnings.catch_warnings():  # constant columns and slow convergence are visible in the score
        warnings.simplefilter("ignore")
        model = pipelines.pipeline(config).fit(x_train, y_train)
        return 1.0 - float(get_scorer("roc_auc")(model, x_test, y_test))


def _learning(name: str, data: str) -> Problem:
    return described(name, lambda: pipelines.build(data=data, folds=2)[0], pipeline_loss(data))


PROBLEMS = (
    described("xgboost-monks", xgboost_space, xgboost),
    _learning("pipeline-heart", "heart"),
    _learning("pipeline-sonar", "sonar"),
)
