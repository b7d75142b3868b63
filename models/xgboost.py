"""Gradient boosting with XGBoost on monks-problem-1: the ten hyperparameters of Table 5.

Table 5 and Section 4 (a) of Daxberger et al., "Mixed-variable Bayesian optimization". The paper looks its errors up in
a table of OpenML runs; here XGBoost is trained (at most 1.7 s on one thread). Ranges that span decades, from
2^-10 to 2^10 for most, are searched on the log scale.

monks-problem-1: six attributes with 3, 3, 2, 3, 4 and 2 values; the class is 1 where a1 == a2 or a5 == 1. All 432
combinations, of which 124 (as in the UCI original; drawn by ``seed``) train and the other 308 are held out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mipcash as mc
from mipcash.errors import ModelError
from mipcash.models._options import flag, whole

ATTRIBUTES = (3, 3, 2, 3, 4, 2)
TRAIN_ROWS = 124


def build(
    *, conditional: bool | str = False, seed: int | str = 0
) -> tuple[mc.Space, Callable[[Mapping[str, Any]], float]]:
    """Table 5, and the held-out classification error.

    Args:
        conditional: make the parameters of trees conditional on ``booster = gbtree``, as XGBoost reads them. The
            table, and so the default, lists them as always present; the linear booster then ignores them.
        seed: of the train/test split and of XGBoost.
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
        return error(config, fixed_seed)

    return space, objective


TREE_ONLY = ("max_depth", "min_child_weight", "subsample", "colsample_bytree", "colsample_bylevel")


def error(config: Mapping[str, Any], seed: int = 0) -> float:
    """Classification error on the held-out rows, after training on the others."""
    try:
        import xgboost
    except ImportError:
        raise ModelError("the xgboost model needs the package xgboost; pip install 'mipcash[xgboost]'") from None
    settings = {name: config[name] for name in ("booster", "alpha", "lambda", "eta")}
    settings |= {"objective": "binary:logistic", "nthread": 1, "seed": seed, "verbosity": 0}
    if config["booster"] == "gbtree":
        settings |= {name: config[name] for name in TREE_ONLY}
    else:
        settings["updater"] = "coord_descent"  # the default, "shotgun", depends on the timing of threads
    x_train, y_train, x_test, y_test = split(seed)
    booster = xgboost.train(settings, xgboost.DMatrix(x_train, y_train), num_boost_round=config["nrounds"])
    predicted = booster.predict(xgboost.DMatrix(x_test)) > 0.5
    return float(np.mean(predicted != y_test))


@cache
def split(seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64], NDArray[np.bool_]]:
    """One-hot rows and classes of the training set, and of the held-out set."""
    rows, labels = monks_1()
    one_hot = np.concatenate([rows[:, [j]] == np.arange(1, k + 1) for j, k in enumerate(ATTRIBUTES)], axis=1).astype(
        float
    )
    order = np.random.default_rng(seed).permutation(len(rows))
    train, test = order[:TRAIN_ROWS], order[TRAIN_ROWS:]
    return one_hot[train], labels[train], one_hot[test], labels[test]


def monks_1() -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """All 432 combinations of the attributes (values from 1), and their class by the problem's definition."""
    rows = np.array(list(product(*(range(1, k + 1) for k in ATTRIBUTES))))
    return rows, (rows[:, 0] == rows[:, 1]) | (rows[:, 4] == 1)


space, objective = build()
