"""Model ``xgboost``: Table 5, the definition of monks-problem-1, and real training."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from mipcash.errors import ModelError
from mipcash.models import xgboost

TREES: dict[str, Any] = {
    **{"booster": "gbtree", "nrounds": 200, "alpha": 0.001, "lambda": 0.01, "eta": 0.3, "max_depth": 6},
    **{"min_child_weight": 1.1, "subsample": 0.9, "colsample_bytree": 0.9, "colsample_bylevel": 0.9},
}


def test_the_space_is_table_5() -> None:
    space, linear = xgboost.space, dict(TREES, booster="gblinear")
    assert len(space.parameters) == 10
    assert space.is_legal(TREES)
    assert space.is_legal(linear)
    assert str(space.parameters["nrounds"].domain) == "integer in [3, 5000], log scale"
    assert str(space.parameters["max_depth"].domain) == "integer in [1, 15]"
    conditional, _ = xgboost.build(conditional="yes")
    assert conditional.is_legal(TREES)
    assert conditional.is_legal({k: v for k, v in linear.items() if k not in xgboost.TREE_ONLY})
    assert not conditional.is_legal(linear)


def test_monks_1_and_its_split() -> None:
    rows, labels = xgboost.monks_1()
    assert rows.shape == (432, 6)
    assert len({tuple(r) for r in rows.tolist()}) == 432
    for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
        assert label == (row[0] == row[1] or row[4] == 1)
    assert labels.sum() == 216  # half of the rows, as in the UCI original
    x_train, y_train, x_test, y_test = xgboost.split(0)
    assert (x_train.shape, x_test.shape) == ((124, 17), (308, 17))
    assert not {tuple(r) for r in x_train.tolist()} & {tuple(r) for r in x_test.tolist()}
    assert (x_train.sum(axis=1) == 6).all()
    assert len(y_train) + len(y_test) == 432
    assert not np.array_equal(x_train, xgboost.split(1)[0])


def test_training() -> None:
    pytest.importorskip("xgboost")
    error = xgboost.objective(TREES)
    assert error == xgboost.objective(TREES) < 0.1
    linear = dict(TREES, booster="gblinear")
    assert xgboost.objective(linear) == xgboost.objective(linear) > error  # a1 == a2 is not additive in the attributes
    assert 0 <= xgboost.build(seed="1")[1](TREES) < 0.2
    x_train, y_train, x_test, y_test = xgboost.split(0, "iris")
    assert (x_train.shape, x_test.shape) == ((75, 4), (75, 4))
    assert {*y_train.tolist(), *y_test.tolist()} == {0, 1, 2}
    assert xgboost.build(data="iris")[1](dict(TREES, nrounds=20)) < 0.15
    with pytest.raises(ModelError, match="there is no file"):
        xgboost.build(data="nowhere.csv")[1](TREES)


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(ModelError, match=r"mipcash\[xgboost\]"):
        xgboost.objective(TREES)
