"""scikit-learn's own checks of estimators, on both searches."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

import mipcash as mc
from mipcash.integrations.sklearn import PipelineSearchCV, SpaceSearchCV

# GridSearchCV is excused from the first, too
EXCUSED = {"check_supervised_y_2d": "a column as y is left to the estimator, which warns in another place"}
COPIED = {"check_estimators_overwrite_params": "the check compares hashes, and copies of a Space have others"}
FEW = {"n_iter": 2, "cv": 2, "error_score": "raise", "random_state": 0, "optimizer": "random"}


def space_of(**model: Any) -> mc.Space:
    space = mc.Space()
    space.module("scale", ["MaxAbsScaler", "none"])
    space.module("model", model)
    return space


SEARCHES = [
    SpaceSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, **FEW),
    PipelineSearchCV(
        space_of(LogisticRegression={"C": mc.Ordinal([0.1, 1.0])}),
        estimators={"LogisticRegression": LogisticRegression(max_iter=30)},
        task="classification",
        **FEW,
    ),
]


def excused(search: Any) -> dict[str, str]:
    return EXCUSED if isinstance(search, SpaceSearchCV) else COPIED


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(SEARCHES, expected_failed_checks=excused)
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    with threadpool_limits(1):  # threads that wait for work take time from other tests
        check(estimator)
