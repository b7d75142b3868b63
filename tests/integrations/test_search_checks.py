"""scikit-learn's own estimator checks: all of them on one search, the fast ones on the other."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import estimator_checks_generator
from threadpoolctl import threadpool_limits

import mipcash as mc
from mipcash.integrations.sklearn import PipelineSearchCV, SpaceSearchCV

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
