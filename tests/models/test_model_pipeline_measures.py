"""What may be limited beside the loss of a pipeline: latency, size, and how differently it does by groups."""

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

# -- times and sizes ------------------------------------------------------------------------------------------------


class Guess:
    """Predicts 1 for all, and takes a while by a clock; its first call takes longer, and one in four is disturbed."""

    def __init__(self, rows: int, clock: FakeClock) -> None:
        self.rows, self.clock, self.calls = rows, clock, 0

    def predict(self, x: Any) -> Any:
        self.calls += 1
        assert len(x) == self.rows
        self.clock.now += 0.2 if self.calls == 1 else 0.03 if self.calls % 4 == 0 else 0.004
        return np.ones(len(x))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    made = FakeClock()
    monkeypatch.setattr(measures, "time", SimpleNamespace(perf_counter=made))
    return made


def test_the_latency_is_the_median_without_the_first_call(clock: FakeClock) -> None:
    for measure, rows in ((measures.latency, measures.BATCH), (measures.single, 1)):
        guess = Guess(rows, clock)
        assert measure(guess, np.zeros((7, 2)), clock) == pytest.approx(4.0)
        assert guess.calls == 1 + measures.LEAST


def test_what_takes_no_time_is_called_often(clock: FakeClock) -> None:
    calls: list[int] = []
    measures.timed(calls.append, iter(range(1000)), clock)
    assert calls == list(range(1 + measures.MOST))


def test_clocks_are_those_of_the_wall_and_of_the_process() -> None:
    assert {"wall": time.perf_counter, "cpu": time.process_time} == measures.CLOCKS


# -- groups ---------------------------------------------------------------------------------------------------------


def folds_of(y: Any, told: Any, cuts: Sequence[Any]) -> list[Fold]:
    return [Fold(k, None, np.zeros(0, int), cut, None, y, predictions=told[cut]) for k, cut in enumerate(cuts)]


@pytest.fixture
def told() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    second = np.clip(0.3 * y + rng.random(200) * 0.8, 0, 1)
    groups = Groups("age", ("young", "middle", "old"), rng.integers(0, 3, 200))
    return {"y": y, "told": np.column_stack([1 - second, second]), "groups": groups, "order": rng.permutation(200)}


@pytest.mark.parametrize("of", grouped.OF)
def test_disparities_are_those_of_the_paper(told: dict[str, Any], of: str) -> None:
    """Against Eq. A43 and A44, row by row and group by group."""
    from sklearn.metrics import roc_auc_score

    y, p, codes = told["y"], told["told"], told["groups"].codes

    def epsilon(rows: Any) -> float:
        if of == "roc_auc":
            return float(roc_auc_score(y[rows], p[rows, 1]))
        return sum(float((p[r, 1] > 0.5) != y[r]) for r in rows) / len(rows)

    def p_of(held_out: Any) -> float:
        values = [epsilon([r for r in held_out if codes[r] == g]) for g in range(3)]
        return max(values) - min(values)

    cuts = np.array_split(told["order"], 4)
    outputs = GroupMeasures(told["groups"], of)(folds_of(y, p, cuts))
    assert outputs["disparity"] == pytest.approx(p_of(range(200)), abs=1e-12)
    assert outputs["disparity_folds"] == pytest.approx(float(np.mean([p_of(c) for c in cuts])), abs=1e-12)
    rates = []
    for g in range(3):
        rows = [r for r in range(200) if codes[r] == g and y[r] == 0]
        rates.append(sum(p[r, 1] > 0.5 for r in rows) / len(rows))
    assert outputs["fpr_disparity"] == pytest.approx(max(rates) - min(rates), abs=1e-12)


def test_of_more_classes_the_largest_difference_counts() -> None:
    y = np.array([0, 1, 2] * 4)
    codes = np.array([0] * 6 + [1] * 6)
    told = np.eye(3)[np.where((codes == 1) & (y == 0), 2, y)]  # of group 1 the 0s are taken for 2s
    outputs = GroupMeasures(Groups("g", ("a", "b"), codes))(folds_of(y, told, [np.arange(12)]))
    assert outputs["fpr_disparity"] == pytest.approx(0.5)
    assert outputs["disparity"] == pytest.approx(1 / 3)
    assert grouped.area(y, np.eye(3)[y]) == 1.0


def test_a_metric_that_a_group_lacks_fails_with_its_cause(told: dict[str, Any]) -> None:
    y, codes = told["y"].copy(), told["groups"].codes
    y[codes == 2] = 1  # the old have one class: no area, and no false positives
    measured = GroupMeasures(told["groups"], "roc_auc")
    with pytest.raises(
        ModelError, match=r"roc_auc is not defined for the group 'old' of column 'age': .*disparity_of=error"
    ):
        measured.check(y)
    GroupMeasures(told["groups"]).check(y)
    outputs = GroupMeasures(told["groups"])(folds_of(y, told["told"], [np.arange(200)]))
    assert outputs["disparity"] >= 0.0
    assert "the rate of false positives is not defined for the group 'old'" in str(outputs["fpr_disparity"])
    young = np.flatnonzero(codes == 0)
    within = GroupMeasures(told["groups"])(folds_of(told["y"], told["told"], [young, np.flatnonzero(codes > 0)]))
    assert "no row of it is held out; use wider groups, or fewer folds" in str(within["disparity_folds"])
    assert within["disparity"] >= 0.0


# -- on data --------------------------------------------------------------------------------------------------------


def ages(path: Path, rare: bool = False, missing: bool = False) -> str:
    """Classes that can be told of the young and not of the old; of the oldest all are alike."""
    rng = np.random.default_rng(0)
    rows = []
    for k in range(120):
        a, age = rng.normal(), 20 + k % 40
        label = (a > 0) if age < 40 else bool(rng.random() < 0.5)
        label = label or (rare and age >= 55)
        rows.append(
            f"{a:.4f},{'' if missing and k == 7 else age},{'red' if k % 2 else 'blue'},{'yes' if label else 'no'}"
        )
    path.write_text("\n".join(["a,age,colour,target", *rows]))
    return str(path)


def config_of(space: mc.Space) -> dict[str, Any]:
    picked = space["scaler"]["standard"] + space["transformer"]["none"] + space["estimator"]["knn"]
    return dict(space.optimum(picked, "max").config)


def test_they_come_with_an_evaluation_and_can_be_limited(tmp_path: Path) -> None:
    options = {"data": ages(tmp_path / "d.csv"), "space": "a3", "folds": 3}
    space, plain = sklearn_pipeline.build(**options)
    config = config_of(space)
    told = plain.evaluate(config)
    assert told.keys() == {"loss", "fit_seconds", "latency_ms", "single_ms", "model_bytes"}
    train, _ = plain.splits()[0]
    fitted = plain.build(config).fit(plain.x[train], plain.y[train])
    assert told["model_bytes"] == pytest.approx(len(pickle.dumps(fitted, protocol=5)), rel=0.01)
    _, objective = sklearn_pipeline.build(**options, protected="age", edges="40", disparity_of="roc_auc", clock="cpu")
    both = objective.evaluate(config)
    assert both["loss"] == told["loss"]
    assert 0.1 < both["disparity_folds"] <= 1.0
    result = mc.minimize(objective, space, 3, optimizer="random", limits={"disparity_folds": 0.0}, progress=False)
    assert result.config is None
    assert result.n_done == 3


def test_a_group_that_has_no_such_value_fails_the_limit_and_not_the_run(tmp_path: Path) -> None:
    data = ages(tmp_path / "d.csv", rare=True)
    with pytest.raises(ModelError, match="roc_auc is not defined for the group 'from 55'"):
        sklearn_pipeline.build(data=data, space="a3", folds=3, protected="age", edges="40,55", disparity_of="roc_auc")
    space, objective = sklearn_pipeline.build(data=data, space="a3", folds=3, protected="age", edges="40,55")
    result = mc.minimize(objective, space, 2, optimizer="random", limits={"fpr_disparity": 0.5}, progress=False)
    assert "false positives is not defined for the group 'from 55' of column 'age'" in str(
        result.history[0].outcome["fpr_disparity"].message
    )
    assert result.history[0].loss is not None


def test_edges_cut_groups(tmp_path: Path) -> None:
    data = table(ages(tmp_path / "d.csv", missing=True))
    groups = data.grouped("age", "30,40")
    assert groups.names == ("30 to 40", "below 30", "from 40", "missing")
    assert np.bincount(groups.codes).tolist() == [30, 29, 60, 1]
    for edges, why in (("40,30", "ascending"), ("x", "ascending"), ("", "ascending")):
        with pytest.raises(ModelError, match=why):
            data.grouped("age", edges)
    with pytest.raises(ModelError, match="holds texts, which edges='3' do not cut"):
        data.grouped("colour", "3")
    with pytest.raises(ModelError, match="give protected=COLUMN too"):
        sklearn_pipeline.build(data=str(tmp_path / "d.csv"), edges="30")
    numbers = tmp_path / "n.csv"
    numbers.write_text("a,g,target\n" + "\n".join(f"{k},{k % 2},{k * 1.5}" for k in range(40)))
    with pytest.raises(ModelError, match="the target holds numbers; leave protected= out"):
        sklearn_pipeline.build(data=str(numbers), protected="g")


def test_a_column_that_is_protected_unasked_is_none_of_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIPCASH_DATA", str(tmp_path))
    rows = "".join(f"{k},{'ab'[k % 2]},{k % 2}\n" for k in range(40))
    (tmp_path / "german.csv").write_text("a,x9,target\n" + rows)
    _, objective = sklearn_pipeline.build(data="german", task="regression")
    assert objective.finish.grouped is None
    _, objective = sklearn_pipeline.build(data="german")
    assert objective.finish.grouped is not None
    with pytest.raises(ModelError, match="leave protected= out"):
        sklearn_pipeline.build(data="german", task="regression", protected="x9")
