"""Tables of evaluations: round trip, resumption, and the nearest entry."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.paper import table
from mipcash.models import xgboost

QUICK = {"nrounds": 20, "alpha": 0.01, "eta": 0.3}


def test_errors_are_those_of_trainings_of_their_own() -> None:
    pytest.importorskip("xgboost")
    config = table.shape().space.sample(1, np.random.default_rng(4))[0] | QUICK | {"booster": "gbtree"}
    curve = xgboost.learning_curve(config, [3, 11, 20], 0)
    assert curve == tuple(xgboost.error(config | {"nrounds": n}, 0) for n in (3, 11, 20))


def test_the_nearest_is_found_on_the_log_scale() -> None:
    shape = table.shape()
    rows = shape.space.sample(2, np.random.default_rng(0))
    one = {d.name: d.middle() for d in shape.dimensions}
    rows = [one | {"alpha": 0.001}, one | {"alpha": 1000.0}]
    columns = {
        d.name: np.array([d.index(r[d.name]) if d.listed else r[d.name] for r in rows]) for d in shape.dimensions
    }
    made = table.Table(columns, np.array([1, 2], np.int16), {"held": 10})
    middle = math.sqrt(0.001 * 1000.0)
    assert made(one | {"alpha": middle * 0.9}) == 0.1
    assert made(one | {"alpha": middle * 1.1}) == 0.2


def test_the_bundled_tables() -> None:
    for path in table.FOLDER.glob("*.npz"):
        assert path.stat().st_size < 2_000_000
    kept = table.load("monks")
    assert len(kept) >= 20_000
    assert kept.errors.min() < 0.02
    assert kept.errors[77] == kept(kept.config(77))
    for config in table.shape().space.sample(40, 1):  # the nearest row is that of a plain search
        values = {d.name: np.array([table._raw(d, config[d.name])]) for d in table.shape().dimensions}
        point = np.column_stack([code for d in table.shape().dimensions for code in table._codes(d, values[d.name])])
        assert kept.nearest(config) == int(np.argmin(((kept.points - point) ** 2).sum(axis=1)))


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no table .*phoneme"):
        table.load("phoneme", tmp_path)
