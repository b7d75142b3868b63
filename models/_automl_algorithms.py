"""The algorithms of Tables A2 and A3 of liu2020, of classification and of regression, with their hyperparameters.

The tables give numbers of hyperparameters (c continuous, d discrete) and neither names nor ranges, which are "set using
auto-sklearn as the reference". Taken are auto-sklearn's hyperparameters with its ranges (release 0.15; of gradient boosting 0.5,
which still had scikit-learn's). Where the tables count more than it tunes, the rest is named below as *added*; where they count
fewer, those that scikit-learn no longer has are left out. What the tables leave open and what was decided:

* A2 counts 8 scalers and lists 7 numbers for 8 names: the binarizer has none. It counts 7 selectors and names 6 algorithms: the
  seventh is selection by the importances of extra trees, as auto-sklearn has it, without hyperparameters. That makes the 92 that
  are stated.
* A3 counts 3 hyperparameters of the polynomials like A2, as "1c, 2d"; here all are discrete.
* ``max_features`` of forests is a share of the columns, for regression auto-sklearn's; its exponent would need the columns that
  come in.
* ``n_components`` begins at 2 and not at 10 or 50, so that tables with few columns have components; ``reg_param`` is above 0.

For regression, algorithms that can only classify are replaced by algorithms with as many hyperparameters: Gaussian naive Bayes by
least squares, discriminant analysis by ridge regression (auto-sklearn 0.5), logistic regression by stochastic gradient descent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import mipcash as mc
from mipcash.models._automl_usual import USUAL, usual_modules
from mipcash.models._pipeline_parts import Algorithm, Call, Modules, Name, quantiles_in_percent

AUTO_SKLEARN, SMALL = "auto-sklearn", "small"
RANGES = (AUTO_SKLEARN, SMALL)
"""Ranges as auto-sklearn has them; or with bounds on what makes a fit of a few thousand rows take longer than seconds."""
CAPS: dict[str, tuple[int, int]] = {
    "n_estimators": (10, 100),
    "n_components": (2, 100),
    "n_quantiles": (10, 1000),
    "num_nodes_per_layer": (16, 64),
}
"""Of the small ranges: hyperparameter -> lowest and highest value."""

_BOOL = mc.Categorical([False, True])
_GAMMA = mc.Real(3.0517578125e-05, 8.0, log=True)
_ALPHA = mc.Real(0.01, 0.5)
_MEMBERS = mc.Integer(50, 500)
_SPLIT, _LEAF = mc.Integer(2, 20), mc.Integer(1, 20)


def _tree(tuned: dict[str, Any], columns: int) -> dict[str, Any]:
    """The depth is a factor of the columns."""
    depth = max(1, round(tuned.pop("max_depth_factor") * columns))
    return {**tuned, "max_depth": depth}


def _early(tuned: dict[str, Any], columns: int) -> dict[str, Any]:
    early = tuned.pop("early_stop")
    return {**tuned, "n_iter_no_change": 10 if early else None}


def _layers(tuned: dict[str, Any], columns: int) -> dict[str, Any]:
    depth, width = tuned.pop("hidden_layer_depth"), tuned.pop("num_nodes_per_layer")
    return {**tuned, "hidden_layer_sizes": (width,) * depth}


def _logistic(tuned: dict[str, Any], columns: int) -> dict[str, Any]:
    """Return the arguments of logistic regression; the name of the argument for the L1 norm changed with scikit-learn 1.8."""
    import sklearn

    absolute = tuned.pop("penalty") == "l1"
    if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8):
        return {**tuned, "l1_ratio": float(absolute)}
    return {**tuned, "penalty": "l1" if absolute else "l2"}


def _kernel(tuned: dict[str, Any], columns: int) -> dict[str, Any]:
    """Return the arguments with a kernel whose initial length-scale is the typical distance of standardised rows, sqrt(columns)."""
    path = {"rbf": "RBF", "matern": "Matern", "rational_quadratic": "RationalQuadratic"}[tuned.pop("kernel")]
    kernel = Call(f"sklearn.gaussian_process.kernels.{path}", {"length_scale": math.sqrt(max(columns, 1))})
    return {**tuned, "kernel": kernel}


def _ada(of: str) -> Any:
    def argued(tuned: dict[str, Any], columns: int) -> dict[str, Any]:
        tree = Call(f"sklearn.tree.DecisionTree{of}", {"max_depth": tuned.pop("max_depth")})
        return {**tuned, "estimator": tree}

    return argued


SCALERS: dict[str, Algorithm | None] = {
    "none": None,
    "normalizer": Algorithm("sklearn.preprocessing.Normalizer"),
    "quantile": Algorithm(
        "sklearn.preprocessing.QuantileTransformer",
        {
            "n_quantiles": mc.Integer(10, 2000),
            "output_distribution": mc.Categorical(["uniform", "normal"]),
        },
        random=True,
    ),
    "minmax": Algorithm("sklearn.preprocessing.MinMaxScaler", fixed={"clip": True}),
    "standard": Algorithm("sklearn.preprocessing.StandardScaler"),
    "robust": Algorithm(
        "sklearn.preprocessing.RobustScaler",
        {
            "q_min": mc.Real(0.001, 0.3),
            "q_max": mc.Real(0.7, 0.999),
            "with_centering": mc.Categorical([True, False]),  # added, as is the next
            "with_scaling": mc.Categorical([True, False]),
        },
        argued=quantiles_in_percent,
    ),
    "binarizer": Algorithm("sklearn.preprocessing.Binarizer"),
    "kbins": Algorithm(  # not auto-sklearn's
        "sklearn.preprocessing.KBinsDiscretizer",
        {"n_bins": mc.Integer(2, 20), "strategy": mc.Categorical(["uniform", "quantile", "kmeans"])},
        {"encode": "ordinal"},
        random=True,
    ),
}
_KERNELS = ["rbf", "poly", "sigmoid", "cosine"]
TRANSFORMERS: dict[str, Algorithm | None] = {
    "none": None,
    "sparse_projection": Algorithm(  # not auto-sklearn's, as the next
        "sklearn.random_projection.SparseRandomProjection",
        {"n_components": mc.Integer(2, 256), "density": mc.Real(0.01, 1.0, log=True)},
        {"dense_output": True},
        random=True,
    ),
    "gaussian_projection": Algorithm(
        "sklearn.random_projection.GaussianRandomProjection", {"n_components": mc.Integer(2, 256)}, random=True
    ),
    "rbf_sampler": Algorithm(
        "sklearn.kernel_approximation.RBFSampler",
        {"gamma": _GAMMA, "n_components": mc.Integer(2, 10000, log=True)},
        random=True,
    ),
    "nystroem": Algorithm(
        "sklearn.kernel_approximation.Nystroem",
        {
            "kernel": mc.Categorical([*_KERNELS, "chi2"]),
            "n_components": mc.Integer(2, 10000, log=True),
            "gamma": _GAMMA,
            "degree": mc.Integer(2, 5),
            "coef0": mc.Real(-1.0, 1.0),
        },
        random=True,
        argued=lambda tuned, columns: fitting_kernel(tuned),
    ),
    "truncated_svd": Algorithm(
        "sklearn.decomposition.TruncatedSVD",
        {"n_components": mc.Integer(2, 256), "algorithm": mc.Categorical(["randomized", "arpack"])},  # added
        random=True,
    ),
    "kernel_pca": Algorithm(
        "sklearn.decomposition.KernelPCA",
        {
            "n_components": mc.Integer(2, 2000),
            "kernel": mc.Categorical(_KERNELS),
            "gamma": _GAMMA,
            "degree": mc.Integer(2, 5),
            "coef0": mc.Real(-1.0, 1.0),
            "eigen_solver": mc.Categorical(["randomized", "dense"]),  # added
        },
        random=True,
    ),
    "fast_ica": Algorithm(
        "sklearn.decomposition.FastICA",
        {
            "n_components": mc.Integer(2, 2000),
            "algorithm": mc.Categorical(["parallel", "deflation"]),
            "whiten": mc.Categorical([False, "unit-variance"]),
            "fun": mc.Categorical(["logcosh", "exp", "cube"]),
            "whiten_solver": mc.Categorical(["svd", "eigh"]),  # added
        },
        random=True,
        argued=lambda tuned, columns: tuned if tuned["whiten"] else {**tuned, "n_components": None},
    ),
    "factor_analysis": Algorithm(  # not auto-sklearn's
        "sklearn.decomposition.FactorAnalysis",
        {
            "n_components": mc.Integer(2, 256),
            "svd_method": mc.Categorical(["randomized", "lapack"]),
            "rotation": mc.Categorical([None, "varimax", "quartimax"]),
        },
        {"max_iter": 200},
        random=True,
    ),
    # n_components in (0, 1) is the share of the variance to keep
    "pca": Algorithm("sklearn.decomposition.PCA", {"n_components": mc.Real(0.5, 0.9999), "whiten": _BOOL}, random=True),
    "polynomial": Algorithm(
        "sklearn.preprocessing.PolynomialFeatures",
        {"degree": mc.Integer(2, 3), "interaction_only": _BOOL, "include_bias": mc.Categorical([True, False])},
    ),
}


def fitting_kernel(tuned: dict[str, Any]) -> dict[str, Any]:
    """Without the arguments that a kernel does not take, which Nystroem passes on to it."""
    takes = {"poly": {"gamma", "degree", "coef0"}, "sigmoid": {"gamma", "coef0"}, "cosine": set[str]()}
    others = {"gamma", "degree", "coef0"} - takes.get(tuned["kernel"], {"gamma"})
    return {name: value for name, value in tuned.items() if name not in others}


def selectors(of: str) -> dict[str, Algorithm | None]:
    """Of ``Classifier`` or ``Regressor``."""
    home = "sklearn.feature_selection"
    score = {"score_func": Name(f"{home}.{'f_classif' if of == 'Classifier' else 'f_regression'}")}
    trees = Call(f"sklearn.ensemble.ExtraTrees{of}", {"n_estimators": 50, "random_state": 0})
    return {
        "none": None,
        "percentile": Algorithm(f"{home}.SelectPercentile", {"percentile": mc.Integer(1, 99)}, score),
        "fpr": Algorithm(f"{home}.SelectFpr", {"alpha": _ALPHA}, score),
        "fdr": Algorithm(f"{home}.SelectFdr", {"alpha": _ALPHA}, score),
        "fwe": Algorithm(f"{home}.SelectFwe", {"alpha": _ALPHA}, score),
        "variance_threshold": Algorithm(
            f"{home}.VarianceThreshold",
            {"threshold": mc.Real(1e-6, 1e-3, log=True)},  # added
        ),
        "importances": Algorithm(f"{home}.SelectFromModel", fixed={"estimator": trees}),
    }


def estimators(of: str) -> dict[str, Algorithm | None]:
    """Of ``Classifier`` or ``Regressor``: what both have, under the same names."""
    classes = of == "Classifier"
    criterion = mc.Categorical(["gini", "entropy"] if classes else ["squared_error", "absolute_error"])
    leaves = {"min_samples_split": _SPLIT, "min_samples_leaf": _LEAF}
    forest = {
        "n_estimators": _MEMBERS,  # added
        "criterion": criterion,
        "max_features": mc.Real(0.1, 1.0),
        **leaves,
        "bootstrap": mc.Categorical([True, False]),
    }
    weak = {"n_estimators": _MEMBERS, "learning_rate": mc.Real(0.01, 2.0, log=True), "max_depth": mc.Integer(1, 10)}
    process = {"kernel": mc.Categorical(["rbf", "matern", "rational_quadratic"])}  # added, as all of classification
    noise = {"max_iter_predict": mc.Integer(20, 200, log=True)} if classes else {"normalize_y": _BOOL}
    return {
        "gradient_boosting": Algorithm(
            f"sklearn.ensemble.GradientBoosting{of}",
            {
                "learning_rate": mc.Real(0.01, 1.0, log=True),
                "n_estimators": _MEMBERS,
                "max_depth": mc.Integer(1, 10),
                "max_leaf_nodes": mc.Integer(2, 1024, log=True),  # added, as early_stop, for a criterion that is gone
                **leaves,
                "subsample": mc.Real(0.01, 1.0),
                "max_features": mc.Real(0.1, 1.0),
                "early_stop": _BOOL,
            },
            random=True,
            argued=_early,
        ),
        "knn": Algorithm(
            f"sklearn.neighbors.KNeighbors{of}",
            {
                "n_neighbors": mc.Integer(1, 100, log=True),
                "weights": mc.Categorical(["uniform", "distance"]),
                "p": mc.Ordinal([1, 2]),
            },
        ),
        "random_forest": Algorithm(f"sklearn.ensemble.RandomForest{of}", forest, random=True),
        "extra_trees": Algorithm(f"sklearn.ensemble.ExtraTrees{of}", forest, random=True),
        "adaboost": Algorithm(f"sklearn.ensemble.AdaBoost{of}", weak, random=True, argued=_ada(of)),
        "decision_tree": Algorithm(
            f"sklearn.tree.DecisionTree{of}",
            {
                "criterion": criterion,
                "max_depth_factor": mc.Real(0.0, 2.0),
                **leaves,
                "max_features": mc.Real(0.1, 1.0),  # added, as the next
                "min_weight_fraction_leaf": mc.Real(0.0, 0.5),
            },
            random=True,
            argued=_tree,
        ),
        "gaussian_process": Algorithm(
            f"sklearn.gaussian_process.GaussianProcess{of}",
            {**process, **noise},
            {} if classes else {"alpha": 1e-2},
            random=True,
            argued=_kernel,
        ),
        "mlp": Algorithm(
            f"sklearn.neural_network.MLP{of}",
            {
                "hidden_layer_depth": mc.Integer(1, 3),
                "num_nodes_per_layer": mc.Integer(16, 264, log=True),
                "activation": mc.Categorical(["relu", "tanh"]),
                "alpha": mc.Real(1e-7, 1e-1, log=True),
                "learning_rate_init": mc.Real(1e-4, 0.5, log=True),
                "early_stopping": mc.Categorical([True, False]),
                "batch_size": mc.Ordinal([32, 64, 128, 256]),  # added
            },
            {"n_iter_no_change": 32},
            random=True,
            argued=_layers,
        ),
    }


CLASSIFIERS: dict[str, Algorithm | None] = {
    "gaussian_nb": Algorithm("sklearn.naive_bayes.GaussianNB"),
    "qda": Algorithm(
        "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis", {"reg_param": mc.Real(1e-3, 1.0, log=True)}
    ),
    **estimators("Classifier"),
    "logistic_regression": Algorithm(  # C and tol as of auto-sklearn's liblinear_svc
        "sklearn.linear_model.LogisticRegression",
        {
            "C": mc.Real(0.03125, 32768, log=True),
            "tol": mc.Real(1e-5, 1e-1, log=True),
            "penalty": mc.Categorical(["l2", "l1"]),
            "class_weight": mc.Categorical([None, "balanced"]),  # added, as the next
            "fit_intercept": mc.Categorical([True, False]),
        },
        {"solver": "saga", "max_iter": 200},
        random=True,
        argued=_logistic,
    ),
}
REGRESSORS: dict[str, Algorithm | None] = {
    "least_squares": Algorithm("sklearn.linear_model.LinearRegression"),
    "ridge": Algorithm("sklearn.linear_model.Ridge", {"alpha": mc.Real(1e-5, 10.0, log=True)}),
    **estimators("Regressor"),
    "sgd": Algorithm(
        "sklearn.linear_model.SGDRegressor",
        {
            "alpha": mc.Real(1e-7, 1e-1, log=True),
            "l1_ratio": mc.Real(1e-9, 1.0, log=True),
            "loss": mc.Categorical(["squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive"]),
            "penalty": mc.Categorical(["l2", "l1", "elasticnet"]),
            "average": _BOOL,
        },
        random=True,
    ),
}
SPACES = (USUAL, "a2", "a3")
A3 = {
    "scaler": ("none", "normalizer", "quantile", "minmax", "standard", "robust"),
    "transformer": ("none", "pca", "polynomial"),
    "estimator": (
        *("gaussian_nb", "qda", "least_squares", "ridge"),
        *("gradient_boosting", "knn", "random_forest", "extra_trees"),
    ),
}
"""The smaller space: modules with the names of their algorithms, those of classification and of regression."""


def modules_of(space: str, regression: bool, ranges: str = AUTO_SKLEARN) -> Modules:
    """The modules of a space, in the order in which they run, the estimator last.

    Args:
        space: of SPACES.
        ranges: of RANGES.
    """
    if space == USUAL:
        return usual_modules(regression)
    of = "Regressor" if regression else "Classifier"
    every: dict[str, Mapping[str, Algorithm | None]] = {
        "scaler": SCALERS,
        "transformer": TRANSFORMERS,
        "selector": selectors(of),
        "estimator": REGRESSORS if regression else CLASSIFIERS,
    }
    if space == "a3":
        every = {m: {a: c for a, c in every[m].items() if a in names} for m, names in A3.items()}
    if ranges == SMALL:
        every = {
            m: {a: None if c is None else _capped(c) for a, c in algorithms.items()} for m, algorithms in every.items()
        }
    return every


def _capped(algorithm: Algorithm) -> Algorithm:
    tuned = {name: _within(name, domain) for name, domain in algorithm.tuned.items()}
    return replace(algorithm, tuned=tuned)


def _within(name: str, domain: Any) -> Any:
    if not isinstance(domain, mc.Integer) or name not in CAPS:
        return domain
    low, high = CAPS[name]
    return replace(domain, low=low, high=min(high, domain.high), log=domain.log or name == "n_estimators")
