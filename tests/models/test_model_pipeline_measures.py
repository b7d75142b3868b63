"""Measures of a pipeline that can be constrained: latency, size, and differences between groups."""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.errors import ModelError
from mipcash.integrations.sklearn import measures
from mipcash.integrations.sklearn.cross_validated import Fold
from mipcash.models import _group_measures as grouped
from mipcash.models import sklearn_pipeline
from mipcash.models._data import Groups, table
from mipcash.models._group_measures import GroupMeasures
from tests.slow import FakeClock


class Guess:
    """Predictor of ones that takes time on a clock. Its first call is slower, and every fourth call is disturbed."""

    def __init__(self, rows: int, clock: FakeClock) -> None:
        self.rows, self.clock, self.calls = rows, clock, 0

    def predict(self, x: Any) -> Any:
        self.calls += 1
        assert len(x) == self.rows
        self.clock.now += 0.2 if self.calls == 1 else 0.03 if self.calls % 4 == 0 else 0.004
        return np.ones(len(x))


def test_the_latency_is_the_median_without_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    monkeypatch.setattr(measures, "time", SimpleNamespace(perf_counter=clock))
    for measure, rows in ((measures.latency, measures.BATCH), (measures.single, 1)):
        guess = Guess(rows, clock)
        assert measure(guess, np.zeros((7, 2)), clock) == pytest.approx(4.0)
        assert guess.calls == 1 + measures.LEAST
    calls: list[int] = []
    measures.timed(calls.append, iter(range(1000)), clock)
    assert calls == list(range(1 + measures.MOST)), "what takes no time is called often"
    assert {"wall": time.perf_counter, "cpu": time.process_time} == measures.CLOCKS


# -- groups -----------------------------------------------------------------------------------------------------------


def folds_of(y: Any, told: Any, cuts: Sequence[Any]) -> list[Fold]:
    return [Fold(k, None, np.zeros(0, int), cut, None, y, predictions=told[cut]) for k, cut in enumerate(cuts)]


RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, 200)
SECOND = np.clip(0.3 * Y + RNG.random(200) * 0.8, 0, 1)
P = np.column_stack([1 - SECOND, SECOND])
GROUPS = Groups("age", ("young", "middle", "old"), RNG.integers(0, 3, 200))
CODES = GROUPS.codes


@pytest.mark.parametrize("of", grouped.OF)
def test_disparities_are_those_of_the_paper(of: str) -> None:
    """Compare with Eqs. A43 and A44, computed row by row and group by group."""
    from sklearn.metrics import roc_auc_score

    def epsilon(rows: Any) -> float:
        if of == "roc_auc":
            return float(roc_auc_score(Y[rows], P[rows, 1]))
        return sum(float((P[r, 1] > 0.5) != Y[r]) for r in rows) / len(rows)

    def p_of(held_out: Any) -> float:
        values = [epsilon([r for r in held_out if CODES[r] == g]) for g in range(3)]
        return max(values) - min(values)

    cuts = np.array_split(np.random.default_rng(1).permutation(200), 4)
    outputs = GroupMeasures(GROUPS, of)(folds_of(Y, P, cuts))
    assert outputs["disparity"] == pytest.approx(p_of(range(200)), abs=1e-12)
    assert outputs["disparity_folds"] == pytest.approx(float(np.mean([p_of(c) for c in cuts])), abs=1e-12)
    rates = []
    for g in range(3):
        rows = [r for r in range(200) if CODES[r] == g and Y[r] == 0]
        rates.append(sum(P[r, 1] > 0.5 for r in rows) / len(rows))
    assert outputs["fpr_disparity"] == pytest.approx(max(rates) - min(rates), abs=1e-12)


def test_with_more_classes_the_largest_difference_counts() -> None:
    y = np.array([0, 1, 2] * 4)
    codes = np.array([0] * 6 + [1] * 6)
    told = np.eye(3)[np.where((codes == 1) & (y == 0), 2, y)]  # in group 1 every 0 is predicted as 2
    outputs = GroupMeasures(Groups("g", ("a", "b"), codes))(folds_of(y, told, [np.arange(12)]))
    assert outputs["fpr_disparity"] == pytest.approx(0.5)
    assert outputs["disparity"] == pytest.approx(1 / 3)
    assert grouped.area(y, np.eye(3)[y]) == 1.0


def test_a_metric_that_a_group_lacks_fails_with_its_cause() -> None:
    y = np.where(CODES == 2, 1, Y)  # the old have one class, so AUC and false positives are undefined
    message = r"roc_auc is not defined for the group 'old' of column 'age': .*disparity_of=error"
    with pytest.raises(ModelError, match=message):
        GroupMeasures(GROUPS, "roc_auc").check(y)
    GroupMeasures(GROUPS).check(y)
    outputs = GroupMeasures(GROUPS)(folds_of(y, P, [np.arange(200)]))
    assert outputs["disparity"] >= 0.0
    assert "the rate of false positives is not defined for the group 'old'" in str(outputs["fpr_disparity"])
    within = GroupMeasures(GROUPS)(folds_of(Y, P, [np.flatnonzero(CODES == 0), np.flatnonzero(CODES > 0)]))
    assert "no row of it is held out; use wider groups, or fewer folds" in str(within["disparity_folds"])
    assert within["disparity"] >= 0.0


# -- on data ----------------------------------------------------------------------------------------------------------


def ages(path: Path, rare: bool = False, missing: bool = False) -> str:
    """Write a table whose classes are predictable for the young only. If ``rare``, the oldest rows have one class."""
    rng = np.random.default_rng(0)
    rows = ["a,age,colour,target"]
    for k in range(120):
        a, age = rng.normal(), 20 + k % 40
        label = (a > 0) if age < 40 else bool(rng.random() < 0.5)
        label = label or (rare and age >= 55)
        shown = "" if missing and k == 7 else age
        rows.append(f"{a:.4f},{shown},{'red' if k % 2 else 'blue'},{'yes' if label else 'no'}")
    path.write_text("\n".join(rows))
    return str(path)


def test_measures_come_with_an_evaluation_and_can_be_limited(tmp_path: Path) -> None:
    options = {"data": ages(tmp_path / "d.csv"), "space": "a3", "folds": 3}
    space, plain = sklearn_pipeline.build(**options)
    picked = space["scaler"]["standard"] + space["transformer"]["none"] + space["estimator"]["knn"]
    config = dict(space.optimum(picked, "max").config)
    told = plain.evaluate(config)
    assert told.keys() == {"loss", "fit_seconds", "latency_ms", "single_ms", "model_bytes"}
    train, _ = plain.splits()[0]
    fitted = plain.build(config).fit(plain.x[train], plain.y[train])
    assert told["model_bytes"] == pytest.approx(len(pickle.dumps(fitted, protocol=5)), rel=0.01)
    _, objective = sklearn_pipeline.build(**options, protected="age", edges="40", disparity_of="roc_auc", clock="cpu")
    both = objective.evaluate(config)
    assert both["loss"] == told["loss"]
    assert 0.1 < both["disparity_folds"] <= 1.0
    result = mc.minimize(objective, space, 2, optimizer="random", limits={"disparity_folds": 0.0}, progress=False)
    assert (result.config, result.n_done) == (None, 2)


def test_an_undefined_disparity_fails_one_output_and_not_the_run(tmp_path: Path) -> None:
    options = {"data": ages(tmp_path / "d.csv", rare=True), "space": "a3", "folds": 3}
    options |= {"protected": "age", "edges": "40,55"}
    with pytest.raises(ModelError, match="roc_auc is not defined for the group 'from 55'"):
        sklearn_pipeline.build(**options, disparity_of="roc_auc")
    space, objective = sklearn_pipeline.build(**options)
    result = mc.minimize(objective, space, 1, optimizer="random", limits={"fpr_disparity": 0.5}, progress=False)
    (trial,) = result.history
    cause = "false positives is not defined for the group 'from 55' of column 'age'"
    assert cause in str(trial.outcome["fpr_disparity"].message)
    assert trial.loss is not None


def test_options_of_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = table(ages(tmp_path / "d.csv", missing=True))
    groups = data.grouped("age", "30,40")
    assert groups.names == ("30 to 40", "below 30", "from 40", "missing")
    assert np.bincount(groups.codes).tolist() == [30, 29, 60, 1]
    for edges in ("40,30", "x", ""):
        with pytest.raises(ModelError, match="ascending"):
            data.grouped("age", edges)
    with pytest.raises(ModelError, match="holds texts, which edges='3' do not cut"):
        data.grouped("colour", "3")
    with pytest.raises(ModelError, match="give protected=COLUMN too"):
        sklearn_pipeline.build(data=str(tmp_path / "d.csv"), edges="30")
    # the default protected column is ignored in regression
    monkeypatch.setenv("MIPCASH_DATA", str(tmp_path))
    rows = "".join(f"{k},{'ab'[k % 2]},{k % 2}\n" for k in range(40))
    (tmp_path / "german.csv").write_text("a,x9,target\n" + rows)
    assert sklearn_pipeline.build(data="german", task="regression")[1].finish.grouped is None
    assert sklearn_pipeline.build(data="german")[1].finish.grouped is not None
    with pytest.raises(ModelError, match="leave protected= out"):
        sklearn_pipeline.build(data="german", task="regression", protected="x9")
