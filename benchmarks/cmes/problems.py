"""Ten hyperparameter problems with one outcome constraint, in the shape of Perrone et al. (2019), Table 1.

The kinds of model and constraint, the parameters by type and the share of feasible configurations are the paper's. The
data are scikit-learn's, a few hundred rows each. The models are small, so an evaluation is a real training in
hundredths of a second. Gradient boosting is scikit-learn's (paper: XGBoost), and logistic regression on polynomials of
a random projection stands for the factorization machine. The size of a model is 8 bytes for each number that it keeps.

As in the paper, the threshold is a quantile of 400 random configurations. The last four problems tune the share of
positives, by drawing training rows with replacement.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mipcash as mc

Array = NDArray[np.float64]
Config = dict[str, Any]
ROWS = 240
"""Maximum number of training rows, and of validation rows."""


@dataclass(frozen=True)
class Problem:
    """Loss to minimise while a value stays at or below a threshold.

    Attributes:
        name: of the problem.
        data: training data.
        limit: name of the constrained value.
        shape: reals, integers and categories among the parameters.
        feasible: the paper's share of feasible configurations.
        threshold: upper bound of that value.
        space: makes the space.
        evaluate: returns a configuration's loss and value.
    """

    name: str
    data: str
    limit: str
    shape: tuple[int, int, int]
    feasible: float
    threshold: float
    space: Callable[[], mc.Space]
    evaluate: Callable[[Config], tuple[float, float]]


# -- data -----------------------------------------------------------------------------------------------------------


@cache
def rows(name: str) -> tuple[Array, Array, Array, Array]:
    """Return standardised training and validation rows and targets: x, y, x', y'."""
    from sklearn import datasets

    if name == "diabetes":
        x, y = datasets.load_diabetes(return_X_y=True)
        y = (y - y.mean()) / y.std()
    elif name == "cancer":
        x, y = datasets.load_breast_cancer(return_X_y=True)
        x = x[:, :10]  # the means only; with all thirty columns every model is right
    elif name in ("digits", "parity"):
        x, y = datasets.load_digits(return_X_y=True)
        x = x.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(len(x), 16)  # average over blocks to 4 x 4 pixels
        y = np.isin(y, (3, 8) if name == "digits" else (1, 3, 5, 7, 9)).astype(float)
    else:
        x, y = datasets.load_wine(return_X_y=True)
        x, y = x[:, :4], (y == 1).astype(float)
    order = np.random.default_rng(0).permutation(len(x))[: 2 * ROWS]
    x, y = x[order].astype(float), y[order].astype(float)
    half = len(x) // 2
    mean, sd = x[:half].mean(axis=0), x[:half].std(axis=0) + 1e-9
    x = (x - mean) / sd
    return x[:half], y[:half], x[half:], y[half:]


def weighted(x: Array, y: Array, share: float) -> tuple[Array, Array]:
    """Return as many rows, drawn with replacement, with the given share of positives."""
    rng = np.random.default_rng(1)
    count = int(np.clip(round(share * len(y)), 1, len(y) - 1))
    positive, negative = np.flatnonzero(y > 0.5), np.flatnonzero(y <= 0.5)
    drawn = rng.permutation(np.concatenate([rng.choice(positive, count), rng.choice(negative, len(y) - count)]))
    return x[drawn], y[drawn]


def errors(truth: Array, said: Array) -> tuple[float, float]:
    """Return the error rates of positives and of negatives."""
    return float(np.mean(said[truth > 0.5] <= 0.5)), float(np.mean(said[truth <= 0.5] > 0.5))


def unexplained(truth: Array, said: Array) -> float:
    """Return 1 - R^2."""
    return float(np.mean((truth - said) ** 2) / np.var(truth))


def one_minus_auc(truth: Array, score: Array) -> float:
    from sklearn.metrics import roc_auc_score

    return 1.0 - float(roc_auc_score(truth, score))


# -- spaces ---------------------------------------------------------------------------------------------------------


def _space(name: str, **domains: Any) -> Callable[[], mc.Space]:
    return partial(mc.Space.from_sklearn, domains, name)


LEAF, PRUNE, SHARE = mc.Real(0.002, 0.2, log=True), mc.Real(1e-5, 1e-1, log=True), {"positives": mc.Real(0.1, 0.9)}
boosting_space = _space(
    "boosting", rate=mc.Real(0.01, 1.0, log=True), subsample=mc.Real(0.2, 1.0), features=mc.Real(0.1, 1.0), leaf=LEAF, prune=PRUNE,
    trees=mc.Integer(1, 30), depth=mc.Integer(1, 5),
)  # fmt: skip
tree_space = _space("tree", leaf=LEAF, prune=PRUNE, depth=mc.Integer(1, 12), criterion=mc.Categorical(["gini", "entropy"]))
forest_space = _space(
    "forest", features=mc.Real(0.1, 1.0), trees=mc.Integer(1, 12), depth=mc.Integer(1, 10), bootstrap=mc.Categorical(["yes", "no"])
)
neighbours_space = _space(
    "neighbours", kept=mc.Real(0.05, 1.0), k=mc.Integer(1, 30), metric=mc.Categorical(["manhattan", "euclidean", "chebyshev"]),
    weights=mc.Categorical(["uniform", "distance"]), columns=mc.Categorical(["1", "2", "4", "8"]),
)  # fmt: skip
plain_network, weighted_network = (
    _space(
        "network", rate=mc.Real(1e-4, 1e-1, log=True), decay=mc.Real(1e-6, 1.0, log=True), momentum=mc.Real(0.5, 0.99),
        second=mc.Real(0.9, 0.9999), epsilon=mc.Real(1e-9, 1e-3, log=True), **share, layers=mc.Integer(1, 3),
        width=mc.Integer(2, 24), next=mc.Integer(2, 24), batch=mc.Integer(16, 64), epochs=mc.Integer(1, 10),
        activation=mc.Categorical(["relu", "tanh", "logistic"]),
    )
    for share in ({}, SHARE)
)  # fmt: skip
factors_space = _space(
    "factors", penalty=mc.Real(1e-5, 1.0, log=True), rate=mc.Real(1e-3, 1.0, log=True), **SHARE, rank=mc.Integer(1, 8),
    degree=mc.Integer(1, 2), epochs=mc.Integer(1, 20), loss=mc.Categorical(["log_loss", "modified_huber", "hinge"]),
)  # fmt: skip


# -- models under a size limit ----------------------------------------------------------------------------------------


def boosting(config: Config) -> tuple[float, float]:
    from sklearn.ensemble import GradientBoostingClassifier

    x, y, xt, yt = rows("digits")
    model = GradientBoostingClassifier(
        learning_rate=config["rate"],
        subsample=config["subsample"],
        max_features=config["features"],
        min_samples_leaf=config["leaf"],
        ccp_alpha=config["prune"],
        n_estimators=config["trees"],
        max_depth=config["depth"],
        random_state=0,
    ).fit(x, y)
    nodes = sum(tree.tree_.node_count for tree in model.estimators_.ravel())
    return one_minus_auc(yt, model.predict_proba(xt)[:, 1]), 40.0 * nodes


def tree(config: Config) -> tuple[float, float]:
    from sklearn.tree import DecisionTreeClassifier

    x, y, xt, yt = rows("digits")
    model = DecisionTreeClassifier(
        min_samples_leaf=config["leaf"],
        ccp_alpha=config["prune"],
        max_depth=config["depth"],
        criterion=config["criterion"],
        random_state=0,
    ).fit(x, y)
    return one_minus_auc(yt, model.predict_proba(xt)[:, 1]), 40.0 * model.tree_.node_count


def forest(data: str) -> Callable[[Config], tuple[float, float]]:
    def evaluate(config: Config) -> tuple[float, float]:
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        x, y, xt, yt = rows(data)
        kind = RandomForestRegressor if data == "diabetes" else RandomForestClassifier
        model = kind(
            max_features=config["features"],
            n_estimators=config["trees"],
            max_depth=config["depth"],
            bootstrap=config["bootstrap"] == "yes",
            random_state=0,
        ).fit(x, y)
        size = 40.0 * sum(t.tree_.node_count for t in model.estimators_)
        if data == "diabetes":
            return unexplained(yt, model.predict(xt)), size
        return one_minus_auc(yt, model.predict_proba(xt)[:, 1]), size

    return evaluate


def neighbours(config: Config) -> tuple[float, float]:
    from sklearn.neighbors import KNeighborsClassifier

    x, y, xt, yt = rows("cancer")
    projection = np.random.default_rng(3).normal(size=(x.shape[1], int(config["columns"])))
    count = max(config["k"], round(config["kept"] * len(x)))
    model = KNeighborsClassifier(config["k"], weights=config["weights"], metric=config["metric"])
    model.fit(x[:count] @ projection, y[:count])
    score = model.predict_proba(xt @ projection)
    positive = score[:, -1] if score.shape[1] > 1 else np.zeros(len(xt))
    return one_minus_auc(yt, positive), 8.0 * (count * (projection.shape[1] + 1) + projection.size)


def network(data: str) -> Callable[[Config], tuple[float, float]]:
    def evaluate(config: Config) -> tuple[float, float]:
        from sklearn.neural_network import MLPClassifier, MLPRegressor

        x, y, xt, yt = rows(data)
        regression = data == "diabetes"
        if not regression:
            x, y = weighted(x, y, config["positives"])
        widths = (config["width"], config["next"], config["next"])[: config["layers"]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # with few epochs the training does not converge, as intended
            model = (MLPRegressor if regression else MLPClassifier)(
                hidden_layer_sizes=widths,
                activation=config["activation"],
                alpha=config["decay"],
                batch_size=config["batch"],
                learning_rate_init=config["rate"],
                max_iter=config["epochs"],
                beta_1=config["momentum"],
                beta_2=config["second"],
                epsilon=config["epsilon"],
                random_state=0,
            ).fit(x, y)
        if regression:
            size = 8.0 * sum(c.size for c in (*model.coefs_, *model.intercepts_))
            return unexplained(yt, model.predict(xt)), size
        return errors(yt, model.predict(xt))

    return evaluate


def factors(config: Config) -> tuple[float, float]:
    from sklearn.linear_model import SGDClassifier
    from sklearn.preprocessing import PolynomialFeatures

    x, y, xt, yt = rows("wine")
    x, y = weighted(x, y, config["positives"])
    projection = np.random.default_rng(5).normal(size=(x.shape[1], config["rank"])) / x.shape[1] ** 0.5
    terms = PolynomialFeatures(config["degree"], include_bias=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SGDClassifier(
            loss=config["loss"],
            alpha=config["penalty"],
            eta0=config["rate"],
            learning_rate="invscaling",
            max_iter=config["epochs"],
            random_state=0,
        ).fit(terms.fit_transform(x @ projection), y)
    return errors(yt, model.predict(terms.transform(xt @ projection)))


SIZE, NEGATIVES = "model size, bytes", "error on negatives"
PROBLEMS = (
    Problem("boosting-digits", "digits", SIZE, (5, 2, 0), 0.72, 5400, boosting_space, boosting),
    Problem("tree-digits", "digits", SIZE, (2, 1, 1), 0.48, 520, tree_space, tree),
    Problem("forest-diabetes", "diabetes", SIZE, (1, 2, 1), 0.26, 3360, forest_space, forest("diabetes")),
    Problem("forest-cancer", "cancer", SIZE, (1, 2, 1), 0.80, 11080, forest_space, forest("cancer")),
    Problem("network-diabetes", "diabetes", SIZE, (5, 5, 1), 0.79, 4632, plain_network, network("diabetes")),
    Problem("neighbours-cancer", "cancer", SIZE, (1, 1, 3), 0.29, 2528, neighbours_space, neighbours),
    Problem("network-cancer", "cancer", NEGATIVES, (6, 5, 1), 0.30, 0.0353, weighted_network, network("cancer")),
    Problem("network-digits", "digits", NEGATIVES, (6, 5, 1), 0.38, 0.146, weighted_network, network("digits")),
    Problem("factors-wine", "wine", NEGATIVES, (3, 3, 1), 0.39, 0.0546, factors_space, factors),
    Problem("network-parity", "parity", NEGATIVES, (6, 5, 1), 0.74, 0.676, weighted_network, network("parity")),
)
