"""scikit-learn's own estimator checks: all of them on one search, the fast ones on the other; and odd targets and tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import estimator_checks_generator
from threadpoolctl import threadpool_limits

import mipcash as mc
from mipcash.integrations.sklearn import PipelineSearchCV, SpaceSearchCV
from mipcash.integrations.sklearn.search.preparation import _as_texts

FEW = {"n_iter": 1, "cv": 2, "error_score": "raise", "random_state": 0, "optimizer": "random"}
MODELS = mc.Space()
MODELS.module("model", {"LogisticRegression": {"C": mc.Ordinal([0.1, 1.0])}})
ESTIMATORS = {"LogisticRegression": LogisticRegression(max_iter=30)}
SEARCHES = [
    (
        SpaceSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, **FEW),
        ("y_2d", "array_api"),
    ),  # both checks concern the wrapped estimator
    (
        PipelineSearchCV(MODELS, estimators=ESTIMATORS, task="classification", **FEW),
        # "overwrite_params" compares hashes, which differ between copies of a Space; the other checks take seconds each
        ("overwrite_params", "train", "sparse", "classes", "array", "invariance", "equivalence", "y_2d", "types"),
    ),
]
CHECKS = [
    pytest.param(search, check, id=f"{type(search).__name__}-{check.func.__name__}")
    for made, without in SEARCHES
    for search, check in estimator_checks_generator(made)
    if not any(part in check.func.__name__ for part in without)
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("search", "check"), CHECKS)
def test_checks_of_scikit_learn(search: Any, check: Any) -> None:
    with threadpool_limits(1):  # idle threads would slow down other tests
        check(search)


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
def test_a_target_of_one_column_has_a_score_as_in_fit() -> None:
    x, y = load_iris(return_X_y=True)
    texts = pd.DataFrame({"species": np.array(["a", "b", "c"], dtype=object)[y]})
    search = PipelineSearchCV(MODELS, estimators=ESTIMATORS, task="classification", **FEW).fit(x, texts)
    expected = search.score(x, texts["species"])
    assert search.score(x, texts.astype(object)) == expected
    assert search.score(x, texts.to_numpy(dtype=object)) == expected


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, int, np.int64])
def test_whole_numbers_of_every_type_are_one_category(kind: Any) -> None:
    column = pd.DataFrame({"c": pd.Series([kind(1), kind(2)], dtype=object)})
    assert _as_texts(column)["c"].tolist() == ["1", "2"]
