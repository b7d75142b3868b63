"""Gradient boosting with XGBoost: the ten hyperparameters of Table 5, on monks-problem-1 or another table of data.

Table 5 and Section 4 (a) of Daxberger et al., "Mixed-variable Bayesian optimization". The paper looks its errors up in
a table of OpenML runs; here XGBoost is trained (at most 1.7 s on one thread for monks-problem-1). Ranges that span
decades, from 2^-10 to 2^10 for most, are searched on the log scale.

monks-problem-1: six attributes with 3, 3, 2, 3, 4 and 2 values; the class is 1 where a1 == a2 or a5 == 1. All 432
combinations, of which 124 (as in the UCI original; drawn by ``seed``) train and the other 308 are held out. Of other
data up to 1,000 rows, at most half, train, and up to 2,000 of the others are held out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mipcash as mc
from mipcash.models._data import table
from mipcash.models._options import flag, whole
from mipcash.models._packages import needed

MONKS = "monks-problem-1"
ATTRIBUTES = (3, 3, 2, 3, 4, 2)
TRAIN_ROWS = 124
TRAIN_LIMIT, HELD_LIMIT = 1000, 2000
"""Most rows of other data to train on and to hold out: 5,000 rounds on 1,000 rows of phoneme take 1.2 s."""


def build(
    *, conditional: bool | str = False, seed: int | str = 0, data: str = MONKS
) -> tuple[mc.Space, Callable[[Mapping[str, Any]], float]]:
    """Table 5, and the held-out classification error.

    Args:
        conditional: make the parameters of trees conditional on ``booster = gbtree``, as XGBoost reads them. The
            table, and so the default, lists them as always present; the linear booster then ignores them.
        seed: of the train/test split and of XGBoost.
        data: ``monks-problem-1``, or a table as :func:`mipcash.models._data.table` finds it (a CSV file, a data set
            in the folder ``MIPCASH_DATA``, of scikit-learn or of OpenML).
    """
    space = mc.Space("xgboost")
    booster = space.categorical("booster", ["gbtree", "gblinear"])
    space.integer("nrounds", 3, 5000, log=True)
    space.real("alpha", 0.000985, 1009.209690, log=True)
    space.real("lambda", 0.000978, 999.020893, log=True)
    space.real("eta", 0.000979, 0.995686, log=True)
    trees = booster["gbtree"] if flag("conditional", conditional) else None
    space.integer("max_depth", 1, 15, when=trees)
    space.real("min_child_weight", 1.012169, 127.041806, log=True, when=trees)
    space.real("subsample", 0.100215, 0.999830, when=trees)
    space.real("colsample_bytree", 0.062528, 0.999640, when=trees)
    space.real("colsample_bylevel", 0.046776, 0.998424, when=trees)

    fixed_seed = whole("seed", seed)

    def objective(config: Mapping[str, Any]) -> float:
        return error(config, fixed_seed, data)

    return space, objective


TREE_ONLY = ("max_depth", "min_child_weight", "subsample", "colsample_bytree", "colsample_bylevel")


def error(config: Mapping[str, Any], seed: int = 0, data: str = MONKS) -> float:
    """Classification error on the held-out rows, after training on the others.

    Raises:
        ModelError: XGBoost is not installed, or there is no such data.
    """
    return learning_curve(config, [config["nrounds"]], seed, data)[0]


def import_xgboost() -> Any:
    """The package; :func:`needed` says what is raised."""
    return needed("xgboost", "the xgboost model", "xgboost")


def learning_curve(
    config: Mapping[str, Any], rounds: Sequence[int], seed: int = 0, data: str = MONKS
) -> tuple[float, ...]:
    """Held-out errors after each of several numbers of rounds, from one training.

    They equal those of trainings of their own: what XGBoost adds in a round does not depend on how many follow.

    Args:
        rounds: increasing; ``config["nrounds"]`` is not looked at.
    """
    xgboost = import_xgboost()
    x_train, y_train, x_test, y_test = split(seed, data)
    settings = {name: config[name] for name in ("booster", "alpha", "lambda", "eta")}
    classes = int(max(y_train.max(), y_test.max())) + 1
    settings |= {"objective": "binary:logistic", "nthread": 1, "seed": seed, "verbosity": 0}
    if classes > 2:
        settings |= {"objective": "multi:softmax", "num_class": classes}
    if config["booster"] == "gbtree":
        settings |= {name: config[name] for name in TREE_ONLY}
    else:
        settings["updater"] = "coord_descent"  # the default, "shotgun", depends on the timing of threads
    train, held = xgboost.DMatrix(x_train, y_train), xgboost.DMatrix(x_test)
    booster, errors, done = xgboost.Booster(settings, [train, held]), [], 0
    for until in rounds:
        for step in range(done, until):
            booster.update(train, step)
        done = until
        predicted = booster.predict(held)
        errors.append(float(np.mean((predicted if classes > 2 else predicted > 0.5) != y_test)))
    return tuple(errors)


@cache
def split(
    seed: int = 0, data: str = MONKS
) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[np.float64], NDArray[Any]]:
    """Rows (one-hot for monks-problem-1) and classes of the training set, and of the held-out set."""
    rng = np.random.default_rng(seed)
    if data != MONKS:
        found = table(data)
        order = rng.permutation(len(found.y))
        size = min(TRAIN_LIMIT, len(order) // 2)
        train, test = order[:size], order[size : size + HELD_LIMIT]
        return found.x[train], found.y[train], found.x[test], found.y[test]
    rows, labels = monks_1()
    columns = [rows[:, [j]] == np.arange(1, k + 1) for j, k in enumerate(ATTRIBUTES)]
    one_hot = np.concatenate(columns, axis=1).astype(float)
    order = rng.permutation(len(rows))
    train, test = order[:TRAIN_ROWS], order[TRAIN_ROWS:]
    return one_hot[train], labels[train], one_hot[test], labels[test]


def monks_1() -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """All 432 combinations of the attributes (values from 1), and their class by the problem's definition."""
    rows = np.array(list(product(*(range(1, k + 1) for k in ATTRIBUTES))))
    return rows, (rows[:, 0] == rows[:, 1]) | (rows[:, 4] == 1)


space, objective = build()
