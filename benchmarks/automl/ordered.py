"""Pipelines whose modules can have any order: scaler, transformer and selector, then an estimator.

The modules of Table A3 of Liu et al., "An ADMM based framework for AutoML pipeline configuration", with the selectors
of their Table A2 and two estimators more. Ranges are auto-sklearn's, with exceptions. Ensembles have 10 to 100 members,
so that an evaluation takes about a second. There are at most 1,000 quantiles and 2^10 leaves, and no scores by mutual
information (slow). ``max_features`` is a share of the columns. ``reg_param`` stays above 0, which keeps discriminant
analysis regular.

The rules are expert knowledge: which algorithm needs non-negative or scaled inputs and which modules may come between
them. They also bound the columns of polynomial features, and exclude equivalent orders and values.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import mipcash as mc
from mipcash.integrations.sklearn.cross_validated import CrossValidated
from mipcash.models._automl_algorithms import CLASSIFIERS, SCALERS, TRANSFORMERS, selectors
from mipcash.models._data import table
from mipcash.models._pipeline_measures import objective_of
from mipcash.models._pipeline_parts import (
    Algorithm,
    Facts,
    Modules,
    Name,
    idle_last,
    most_inputs,
    no_more_leaves_than_room,
    pipeline_of,
    steps,
)
from mipcash.models._pipeline_parts import before as stands_before


def _scores(tuned: dict[str, Any], columns: int) -> dict[str, Any]:
    return {**tuned, "score_func": Name(f"sklearn.feature_selection.{tuned['score_func']}")}


_FOREST = {
    "n_estimators": mc.Integer(10, 100, log=True),
    "criterion": mc.Categorical(["gini", "entropy"]),
    "max_features": mc.Real(0.05, 1.0),
    "min_samples_split": mc.Integer(2, 20),
    "min_samples_leaf": mc.Integer(1, 20),
    "bootstrap": mc.Categorical([True, False]),
}
MODULES: Modules = {
    "scaler": {n: SCALERS[n] for n in ("none", "normalizer", "quantile", "minmax", "standard", "robust")}
    | {
        "quantile": Algorithm(
            "sklearn.preprocessing.QuantileTransformer",
            {"n_quantiles": mc.Integer(10, 1000, log=True), "output_distribution": mc.Categorical(["uniform", "normal"])},
            random=True,
        )
    },
    "transformer": {n: TRANSFORMERS[n] for n in ("none", "pca", "polynomial")},
    "selector": {
        "none": None,
        "percentile": Algorithm(
            "sklearn.feature_selection.SelectPercentile",
            {"percentile": mc.Integer(1, 99), "score_func": mc.Categorical(["f_classif", "chi2"])},
            argued=_scores,
        ),
        **{n: selectors("Classifier")[n] for n in ("fpr", "fdr", "fwe", "variance_threshold")},
    },
    "estimator": {
        "gaussian_nb": CLASSIFIERS["gaussian_nb"],
        "multinomial_nb": Algorithm(
            "sklearn.naive_bayes.MultinomialNB", {"alpha": mc.Real(1e-2, 100, log=True), "fit_prior": mc.Categorical([True, False])}
        ),
        "qda": CLASSIFIERS["qda"],
        "logistic_regression": Algorithm(
            "sklearn.linear_model.LogisticRegression",
            {"C": mc.Real(0.03125, 32768, log=True), "class_weight": mc.Categorical([None, "balanced"])},
            {"max_iter": 200},
        ),
        "knn": CLASSIFIERS["knn"],
        "random_forest": Algorithm("sklearn.ensemble.RandomForestClassifier", _FOREST, random=True),
        "extra_trees": Algorithm("sklearn.ensemble.ExtraTreesClassifier", _FOREST, random=True),
        "gradient_boosting": Algorithm(
            "sklearn.ensemble.GradientBoostingClassifier",
            {
                "learning_rate": mc.Real(0.01, 1, log=True),
                "n_estimators": mc.Integer(10, 100, log=True),
                "max_depth": mc.Integer(1, 10),
                "max_leaf_nodes": mc.Integer(2, 1024, log=True),
                "min_samples_split": mc.Integer(2, 20),
                "min_samples_leaf": mc.Integer(1, 20),
                "subsample": mc.Real(0.1, 1.0),
                "max_features": mc.Real(0.1, 1.0),
            },
            random=True,
        ),
    },
}
"""Module -> algorithm -> class of scikit-learn. None stands for an inactive module."""


def declare(facts: Facts) -> mc.Space:
    """Return the space of pipelines for data of these sizes."""
    space = mc.Space("scikit-learn pipeline")
    scaler, transformer, selector, estimator = modules = [
        space.module(name, {a: c.tuned if c else {} for a, c in algorithms.items()}) for name, algorithms in MODULES.items()
    ]
    preprocessors = modules[:3]
    order = space.ordering("order", preprocessors)
    before = partial(stands_before, space, order)

    # Sizes: scikit-learn would clip the quantiles with a warning and refuse the neighbors.
    quantiles = scaler.parameter("quantile", "n_quantiles")
    neighbors = estimator.parameter("knn", "n_neighbors")
    space.rule("quantiles: at most the rows of a fold", quantiles <= facts.fold_rows, when=scaler["quantile"])
    space.rule("neighbors: at most the rows of a fold", neighbors <= facts.fold_rows, when=estimator["knn"])
    depth = estimator.parameter("gradient_boosting", "max_depth")
    leaves = estimator.parameter("gradient_boosting", "max_leaf_nodes")
    no_more_leaves_than_room(space, estimator["gradient_boosting"], depth, leaves)

    idle_last(space, order, preprocessors)

    # Scales: in unscaled columns, PCA and the solver of logistic regression mostly see the units.
    centered = scaler.parameter("robust", "with_centering")[True]
    scaled = scaler.parameter("robust", "with_scaling")[True]
    space.rule("robust does something", centered + scaled >= 1, when=scaler["robust"])
    one_scale = scaler.is_("quantile", "minmax", "standard") + scaled
    space.rule("pca needs columns of one scale", transformer["pca"] <= one_scale)
    before("pca comes after the scaler", scaler, transformer, [transformer["pca"]])
    space.rule("logistic regression needs columns of one scale", estimator["logistic_regression"] <= one_scale)
    # Components are already sorted. Keeping fewer of them replaces a selection.
    before("pca comes after the selector", selector, transformer, [transformer["pca"], 1 - selector["none"]])
    # The norm of a row is over all its columns. With a single column it would leave a constant.
    before("normalizer comes before the selector", scaler, selector, [scaler["normalizer"], 1 - selector["none"]])
    # Standardised columns have equal variances: a threshold would keep all or none.
    equal = scaler.is_("standard", "quantile")
    before("variances differ before scaling only", selector, scaler, [selector["variance_threshold"], equal])
    # Rows of norm 1 have small entries, so a larger threshold would leave no column.
    threshold = selector.parameter("variance_threshold", "threshold")
    small = [selector["variance_threshold"], scaler["normalizer"]]
    space.rule("normalized columns vary little", threshold <= 1e-4, when=small)

    # Signs: counting algorithms refuse negative inputs.
    uniform = scaler.parameter("quantile", "output_distribution")["uniform"]
    normal = scaler.parameter("quantile", "output_distribution")["normal"]
    chi2 = selector.parameter("percentile", "score_func")["chi2"]
    for makes_negative, what in ((scaler["standard"], "standard"), (normal, "normal quantiles"), (centered, "robust")):
        space.rule(f"multinomial_nb: no negative inputs from {what}", estimator["multinomial_nb"] + makes_negative <= 1)
        before(f"chi2: no negative inputs from {what}", selector, scaler, [chi2, makes_negative])
    space.rule("multinomial_nb: no negative inputs from pca", estimator["multinomial_nb"] + transformer["pca"] <= 1)
    if not facts.nonnegative:
        space.rule("multinomial_nb: negative data", estimator["multinomial_nb"] <= scaler["minmax"] + uniform)
        space.rule("chi2: negative data", chi2 <= scaler["minmax"] + uniform)
        before("chi2: scaled before, as the data has negatives", scaler, selector, [chi2])

    # Columns: k columns make C(k + degree, degree) polynomial features, too many unless columns are selected before.
    # Discriminant analysis needs fewer columns than the smallest class has rows, so degree 1 counts for it as well.
    trees = ["random_forest", "extra_trees", "gradient_boosting"]
    others = [a for a in MODULES["estimator"] if a not in (*trees, "qda")]
    degree = transformer.parameter("polynomial", "degree")
    percentile = selector.parameter("percentile", "percentile")
    for family, limit, degrees in ((others, 500, (2, 3)), (trees, 60, (2, 3)), (["qda"], facts.fold_class_rows - 1, (1, 2, 3))):
        for d in degrees:
            k = most_inputs(d, limit)
            if k >= facts.columns:
                continue
            what = f"{'/'.join(family)}, degree {d}"
            when = [estimator.is_(*family)]
            if d > 1:
                when.append(degree.is_(d))
                before(f"{what}: polynomials of selected columns", selector, transformer, when)
            space.rule(f"{what}: of a percentile", selector["percentile"] >= 1, when=when)
            space.rule(f"{what}: of at most {k} columns", percentile * facts.columns / 100 <= k, when=when)
    return space


def build(
    *, data: str = "breast_cancer", metric: str = "accuracy", folds: int = 5, seed: int = 0
) -> tuple[mc.Space, CrossValidated]:
    """Return the space and the cross-validated loss; see :func:`mipcash.models.sklearn_pipeline.build`."""
    loaded = table(data, "target")
    objective = objective_of(partial(pipeline, seed=seed), loaded, metric, folds, seed)
    return declare(Facts.of(loaded, folds)), objective


def pipeline(config: Mapping[str, Any], seed: int = 0) -> Any:
    """Return the configuration as a ``sklearn.pipeline.Pipeline``."""
    return pipeline_of(steps(MODULES, config, (*config["order"], "estimator"), seed))
