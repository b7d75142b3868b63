"""The pipelines that practitioners reach for first: the space of ``PipelineSearchCV`` if none is given.

Ranges follow published portfolios (auto-sklearn 2, FLAML's zero-shot defaults, AutoGluon's presets) on the scale on which they are
usually searched: C and the factor of gamma by decades about scikit-learn's defaults, numbers of leaves and rows of leaves by
doublings. ``gamma`` is a factor of 1 / columns, so that 1 is ``gamma="scale"`` on standardised columns. A support vector classifier
is calibrated by three folds, as it has no probabilities of its own.

``defaults_of`` returns configurations close to scikit-learn's defaults of the estimators, the cheapest first, behind a
``StandardScaler`` where they need one. What differs: support vector and network regressors see a standardised target, support
vector classifiers are calibrated, discriminant analysis has the solver that takes a shrinkage, and histogram gradient boosting does
not stop early. A search evaluates first those that its data allow. Networks for regression are seeded by 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import mipcash as mc
from mipcash.models._pipeline_parts import Algorithm, Call, Name

USUAL = "usual"
CALIBRATION_FOLDS = 3
NEEDS_SCALE = ("logistic_regression", "ridge", "elastic_net", "svm", "mlp")
"""Estimators whose penalties, kernels or steps see the units of the columns."""
INTERACTING = ("knn", "svm", "extra_trees", "random_forest", "hist_gradient_boosting", "mlp")
"""Estimators that find interactions by themselves: polynomial features cost them many times the columns and bring little."""

_BOOL = mc.Categorical([False, True])
_SHARE, _LEAF = mc.Real(0.01, 1.0, log=True), mc.Integer(1, 32, log=True)
_STANDARD_TARGET = Call("sklearn.preprocessing.StandardScaler")


def _support_vectors(classes: bool) -> Any:
    def argued(tuned: dict[str, Any], columns: int) -> dict[str, Any]:
        machine = {**tuned, "gamma": tuned["gamma"] / max(1, columns)}
        if classes:
            return {"estimator": Call("sklearn.svm.SVC", machine), "ensemble": False, "cv": CALIBRATION_FOLDS}
        return {"regressor": Call("sklearn.svm.SVR", machine), "transformer": _STANDARD_TARGET}

    return argued


def _network(classes: bool) -> Any:
    def argued(tuned: dict[str, Any], columns: int) -> dict[str, Any]:
        layers = (tuned.pop("width"),) * tuned.pop("layers")
        arguments = {**tuned, "hidden_layer_sizes": layers}
        if classes:
            return arguments
        network = Call("sklearn.neural_network.MLPRegressor", {**arguments, "random_state": 0})
        return {"regressor": network, "transformer": _STANDARD_TARGET}

    return argued


def _estimators(classes: bool) -> dict[str, Algorithm | None]:
    """Return the algorithms that classification and regression have in common, under the same names."""
    of = "Classifier" if classes else "Regressor"
    target = "sklearn.compose.TransformedTargetRegressor"
    forest: dict[str, Any] = {"max_features": _SHARE, "min_samples_leaf": _LEAF}
    machine: dict[str, Any] = {
        "kernel": mc.Categorical(["rbf", "linear"]),
        "C": mc.Real(1e-3, 1e3, log=True),
        "gamma": mc.Real(1e-3, 1e2, log=True),
    }
    if classes:
        forest["criterion"] = mc.Categorical(["gini", "entropy"])
    else:
        machine["epsilon"] = mc.Real(1e-3, 1.0, log=True)
    return {
        "knn": Algorithm(
            f"sklearn.neighbors.KNeighbors{of}",
            {
                "n_neighbors": mc.Integer(1, 100, log=True),
                "weights": mc.Categorical(["uniform", "distance"]),
                "p": mc.Ordinal([1, 2]),
            },
        ),
        "svm": Algorithm(
            "sklearn.calibration.CalibratedClassifierCV" if classes else target,
            machine,
            argued=_support_vectors(classes),
        ),
        "extra_trees": Algorithm(f"sklearn.ensemble.ExtraTrees{of}", forest, {"n_estimators": 100}, random=True),
        "random_forest": Algorithm(f"sklearn.ensemble.RandomForest{of}", forest, {"n_estimators": 100}, random=True),
        "hist_gradient_boosting": Algorithm(
            f"sklearn.ensemble.HistGradientBoosting{of}",
            {
                "learning_rate": mc.Real(0.01, 1.0, log=True),
                "max_iter": mc.Integer(50, 500, log=True),
                "max_leaf_nodes": mc.Integer(3, 255, log=True),
                "min_samples_leaf": mc.Integer(2, 200, log=True),
                "l2_regularization": mc.Real(1e-9, 1e2, log=True),
                "early_stopping": _BOOL,
            },
            random=True,
        ),
        "mlp": Algorithm(
            "sklearn.neural_network.MLPClassifier" if classes else target,
            {
                "layers": mc.Integer(1, 2),
                "width": mc.Integer(16, 128, log=True),
                "alpha": mc.Real(1e-7, 1.0, log=True),
                "learning_rate_init": mc.Real(1e-4, 1e-1, log=True),
                "early_stopping": _BOOL,
            },
            random=classes,
            argued=_network(classes),
        ),
    }


CLASSIFIERS: dict[str, Algorithm | None] = {
    "gaussian_nb": Algorithm("sklearn.naive_bayes.GaussianNB", {"var_smoothing": mc.Real(1e-12, 1.0, log=True)}),
    "lda": Algorithm(
        "sklearn.discriminant_analysis.LinearDiscriminantAnalysis", {"shrinkage": mc.Real(0.0, 1.0)}, {"solver": "lsqr"}
    ),
    "qda": Algorithm(
        "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis", {"reg_param": mc.Real(1e-3, 1.0, log=True)}
    ),
    "logistic_regression": Algorithm(
        "sklearn.linear_model.LogisticRegression",
        {"C": mc.Real(1e-4, 1e4, log=True), "class_weight": mc.Categorical([None, "balanced"])},
        {"max_iter": 1000},
    ),
    **_estimators(classes=True),
}
REGRESSORS: dict[str, Algorithm | None] = {
    "ridge": Algorithm("sklearn.linear_model.Ridge", {"alpha": mc.Real(1e-5, 1e5, log=True)}),
    "elastic_net": Algorithm(
        "sklearn.linear_model.ElasticNet", {"alpha": mc.Real(1e-4, 1e2, log=True), "l1_ratio": mc.Real(0.0, 1.0)}
    ),
    **_estimators(classes=False),
}


def usual_modules(regression: bool) -> dict[str, Mapping[str, Algorithm | None]]:
    """Modules of the space, in the order in which they run."""
    score = Name(f"sklearn.feature_selection.{'f_regression' if regression else 'f_classif'}")
    return {
        "scaler": {
            "none": None,
            "standard": Algorithm("sklearn.preprocessing.StandardScaler"),
            "minmax": Algorithm("sklearn.preprocessing.MinMaxScaler", fixed={"clip": True}),
            "quantile": Algorithm(
                "sklearn.preprocessing.QuantileTransformer",
                {
                    "n_quantiles": mc.Integer(10, 1000, log=True),
                    "output_distribution": mc.Categorical(["normal", "uniform"]),
                },
                random=True,
            ),
        },
        "selector": {
            "none": None,
            "percentile": Algorithm(
                "sklearn.feature_selection.SelectPercentile", {"percentile": mc.Integer(5, 95)}, {"score_func": score}
            ),
        },
        "transformer": {
            "none": None,
            "pca": Algorithm(
                "sklearn.decomposition.PCA", {"n_components": mc.Real(0.5, 0.9999), "whiten": _BOOL}, random=True
            ),
            "polynomial": Algorithm(
                "sklearn.preprocessing.PolynomialFeatures",
                {"interaction_only": _BOOL},
                {"degree": 2, "include_bias": False},
            ),
        },
        "estimator": REGRESSORS if regression else CLASSIFIERS,
    }


def defaults_of(regression: bool, columns: int) -> list[dict[str, Any]]:
    """scikit-learn's defaults as configurations of the space, the cheapest first."""
    root = min(1.0, max(_SHARE.low, (math.isqrt(columns) + 0.5) / columns))  # as many columns as their square root
    forest = {"max_features": 1.0 if regression else root, "min_samples_leaf": 1}
    criterion = {} if regression else {"criterion": "gini"}
    listed: list[tuple[str, dict[str, Any]]] = [
        *([("ridge", {"alpha": 1.0})] if regression else [("logistic_regression", {"C": 1.0, "class_weight": None})]),
        *([] if regression else [("gaussian_nb", {"var_smoothing": 1e-9}), ("lda", {"shrinkage": 0.0})]),
        ("knn", {"n_neighbors": 5, "weights": "uniform", "p": 2}),
        ("svm", {"kernel": "rbf", "C": 1.0, "gamma": 1.0, **({"epsilon": 0.1} if regression else {})}),
        ("extra_trees", {**criterion, **forest}),
        ("random_forest", {**criterion, **forest}),
        (
            "hist_gradient_boosting",
            {
                **{"learning_rate": 0.1, "max_iter": 100, "max_leaf_nodes": 31, "min_samples_leaf": 20},
                **{"l2_regularization": 1e-9, "early_stopping": False},
            },
        ),
        (
            "mlp",
            {"layers": 1, "width": 100, "alpha": 1e-4, "learning_rate_init": 1e-3, "early_stopping": False},
        ),
    ]
    return [
        {
            **{
                "scaler": "standard" if name in (*NEEDS_SCALE, "knn") else "none",
                "selector": "none",
                "transformer": "none",
            },
            **{"estimator": name, **{f"estimator.{name}.{hyper}": value for hyper, value in tuned.items()}},
        }
        for name, tuned in listed
    ]
