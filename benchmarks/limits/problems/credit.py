"""Pipeline on german credit under constraints on latency and on disparity between age groups.

The loss is the balanced error on the held-out half of the rows. Disparity is the difference in the share of predicted
good risks between debtors of up to 25 years and older ones (Perrone et al., section 5: fairness as a constraint). The
latency of a prediction is modelled, not measured, so that runs are reproducible: 5 microseconds plus 10 nanoseconds per
operation. Operations are the columns of scaling and selecting, the products of a linear model, the distances of all
neighbours, the depths of all trees. An evaluation takes 5 to 100 ms.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.peers.problem import Config, described
from mipcash.models._data import table

YOUNG = 25.0
DATA = "german"
AGE = 4
"""Column of the age among the numeric columns, which come first."""
LIMITS = {"latency_us": 9.0, "disparity": 0.03}
SCALERS = ("none", "standard", "minmax")


def space() -> mc.Space:
    _halves()  # fail early if the data are missing
    s = mc.Space("german credit under limits")
    scaler = s.categorical("scaler", list(SCALERS))
    percentile = s.integer("percentile", 10, 100)
    s.categorical("sees age", [False, True])
    s.real("threshold", 0.3, 0.8)
    estimator = s.module(
        "estimator",
        {
            "bayes": {"smoothing": mc.Real(1e-9, 1.0, log=True)},
            "logistic": {"C": mc.Real(1e-3, 1e2, log=True), "balanced": mc.Categorical([False, True])},
            "knn": {"neighbors": mc.Integer(1, 60, log=True), "weights": mc.Categorical(["uniform", "distance"])},
            "forest": {
                "trees": mc.Integer(5, 60, log=True),
                "depth": mc.Integer(1, 12),
                "leaf": mc.Integer(1, 20),
                "columns": mc.Real(0.05, 1.0),
            },
            "boosting": {"trees": mc.Integer(5, 60, log=True), "depth": mc.Integer(1, 5), "rate": mc.Real(0.01, 1.0, log=True)},
        },
    )
    s.rule("distances and products need one scale", estimator.is_("logistic", "knn") + scaler["none"] <= 1)
    s.rule("neighbours among few columns", percentile <= 50, when=estimator["knn"])
    trees, depth = estimator.parameter("forest", "trees"), estimator.parameter("forest", "depth")
    s.rule("few trees where they are deep", trees + 20 * depth <= 200, when=estimator["forest"])
    s.rule("trees need no scale", estimator.is_("forest", "boosting") <= scaler["none"])
    return s


@cache
def _halves() -> tuple[Any, ...]:
    """Return training and held-out halves, stratified: x, y of each, and a mask of the young held-out rows."""
    from sklearn.model_selection import train_test_split

    data = table(DATA)
    x, x_out, y, y_out = train_test_split(data.x, 1 - data.y, test_size=0.5, random_state=0, stratify=data.y)
    return x, y, x_out, y_out, x_out[:, AGE] <= YOUNG


_known: dict[str, dict[str, float]] = {}


def credit(config: Config) -> dict[str, float]:
    """Return the outputs of a configuration, computed once."""
    key = repr(sorted(config.items()))
    if key not in _known:
        with warnings.catch_warnings():  # slow convergence is visible in the score
            warnings.simplefilter("ignore")
            _known[key] = _evaluated(config)
    return _known[key]


def _evaluated(config: Config) -> dict[str, float]:
    from sklearn.feature_selection import SelectPercentile, f_classif
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    x, y, x_out, y_out, young = _halves()
    if not config["sees age"]:
        x, x_out = np.delete(x, AGE, axis=1), np.delete(x_out, AGE, axis=1)
    operations = 0.0
    if config["scaler"] != "none":
        scaler = (StandardScaler() if config["scaler"] == "standard" else MinMaxScaler()).fit(x)
        x, x_out = scaler.transform(x), scaler.transform(x_out)
        operations += 2 * x.shape[1]
    chosen = SelectPercentile(f_classif, percentile=config["percentile"]).fit(x, y)
    x, x_out = chosen.transform(x), chosen.transform(x_out)
    model = _estimator(config).fit(x, y)
    operations += _operations(config["estimator"], model, x)
    good = model.predict_proba(x_out)[:, 1] >= config["threshold"]
    right = [float(np.mean(good[y_out == c] == c)) for c in (0, 1)]
    return {
        "loss": 1 - sum(right) / 2,
        "latency_us": 5 + 0.01 * operations,
        "disparity": abs(float(good[young].mean() - good[~young].mean())),
    }


def _estimator(config: Config) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier

    kind = config["estimator"]
    own = {k.rpartition(".")[2]: v for k, v in config.items() if k.startswith(f"estimator.{kind}.")}
    if kind == "bayes":
        return GaussianNB(var_smoothing=own["smoothing"])
    if kind == "logistic":
        return LogisticRegression(C=own["C"], class_weight="balanced" if own["balanced"] else None, max_iter=200)
    if kind == "knn":
        return KNeighborsClassifier(own["neighbors"], weights=own["weights"], algorithm="brute")
    if kind == "forest":
        given = {"max_depth": own["depth"], "min_samples_leaf": own["leaf"], "max_features": own["columns"]}
        return RandomForestClassifier(own["trees"], random_state=0, **given)
    return GradientBoostingClassifier(n_estimators=own["trees"], max_depth=own["depth"], learning_rate=own["rate"], random_state=0)


def _operations(kind: str, model: Any, x: Any) -> float:
    """Return the number of operations of one prediction."""
    if kind == "bayes":
        return 8.0 * x.shape[1]
    if kind == "logistic":
        return 1.0 * x.shape[1]
    if kind == "knn":
        return 1.0 * x.size
    trees = [t for row in np.atleast_2d(model.estimators_) for t in row]
    return sum(2.0 * t.tree_.max_depth + 4.0 for t in trees)


PROBLEMS = (described("credit", space, credit, limits=LIMITS),)
