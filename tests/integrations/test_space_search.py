"""``SpaceSearchCV``: scikit-learn's conventions compared with GridSearchCV, rules, conditions and error messages."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, ShuffleSplit, TimeSeriesSplit, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import mipcash as mc
from mipcash.errors import DataError
from mipcash.integrations.sklearn import SpaceSearchCV
from mipcash.integrations.sklearn.search import objective

X, Y = load_iris(return_X_y=True)
GRID = {"max_depth": [1, 2, 3], "criterion": ["gini", "entropy"]}
TREE = DecisionTreeClassifier(random_state=0)
WEIGHTS, GROUPS = np.random.default_rng(0).uniform(0.1, 2.0, len(Y)), np.arange(len(Y)) % 6


def search(estimator: Any = TREE, space: Any = GRID, **options: Any) -> SpaceSearchCV:
    told = {"n_iter": 6, "random_state": 0, "optimizer": "random", "cv": 3, **options}
    return SpaceSearchCV(estimator, space, **told)


@pytest.mark.parametrize(
    ("options", "params", "routing"),
    [
        ({"scoring": "roc_auc_ovr", "return_train_score": True}, {}, False),
        ({"scoring": {"a": "accuracy", "b": make_scorer(accuracy_score)}, "refit": "b"}, {}, False),
        ({"cv": GroupKFold(3)}, {"sample_weight": WEIGHTS, "groups": GROUPS}, False),
        ({"scoring": "W", "cv": GroupKFold(3)}, {"sample_weight": WEIGHTS, "groups": GROUPS}, True),
    ],
)
def test_an_exhausted_space_gives_the_table_of_a_grid_search(
    options: dict[str, Any], params: dict[str, Any], routing: bool
) -> None:
    with sklearn.config_context(enable_metadata_routing=routing):
        estimator = clone(TREE)
        if routing:
            estimator.set_fit_request(sample_weight=True)
            options = {**options, "scoring": make_scorer(accuracy_score).set_score_request(sample_weight=True)}
        ours = search(estimator, **options).fit(X, Y, **params)
        theirs = GridSearchCV(estimator, GRID, **{"cv": 3, **options}).fit(X, Y, **params)
    order = [ours.cv_results_["params"].index(p) for p in theirs.cv_results_["params"]]
    for name, column in theirs.cv_results_.items():
        if name == "params" or "_time" in name:
            assert len(ours.cv_results_[name]) == len(column)
        elif name.startswith("param_"):
            assert ours.cv_results_[name][order].tolist() == column.tolist()
        else:
            np.testing.assert_allclose(ours.cv_results_[name][order].astype(float), column.astype(float), err_msg=name)
    assert ours.best_score_ == theirs.best_score_
    assert (ours.n_splits_, ours.multimetric_, list(ours.classes_)) == (3, theirs.multimetric_, [0, 1, 2])
    assert ours.score(X, Y) == pytest.approx(accuracy_score(Y, ours.predict(X)), abs=0.1)
    assert set(vars(theirs)) - set(vars(ours)) <= {"_checked_cv_orig", "param_grid", "pre_dispatch"}


def both(model: Any, x: Any, y: Any) -> dict[str, float]:
    predicted = model.predict(x)
    return {"acc": accuracy_score(y, predicted), "wrong": float((y != predicted).sum())}


def test_a_function_may_give_several_scores() -> None:
    found = search(scoring=both, refit="acc", limits={"wrong": 3.0}).fit(X, Y)
    table = found.cv_results_
    assert found.multimetric_
    assert found.best_score_ == table["mean_test_acc"][table["mean_test_wrong"] <= 3.0].max()
    assert found.score(X, Y) == accuracy_score(Y, found.predict(X))
    assert not hasattr(search(scoring=both, refit=False).fit(X, Y), "best_index_")
    said = "the search optimises 'score', which scoring does not return: it returns 'acc', 'wrong'"
    with pytest.raises(ValueError, match=said):
        search(scoring=both).fit(X, Y)
    fastest = search(refit=lambda table: int(np.argmin(table["mean_test_score"]))).fit(X, Y)
    assert fastest.cv_results_["mean_test_score"].argmin() == fastest.best_index_
    with pytest.warns(UserWarning, match="a fold failed, and counts as the score 0"):
        found = search(Fragile(), scoring=["accuracy", "f1_macro"], refit="accuracy", error_score=0.0).fit(X, Y)
    assert (found.cv_results_["mean_test_f1_macro"] == 0.0).sum() == 2
    with pytest.raises(ValueError, match=r"no configuration has a score \(stopped: timeout\)"):
        search(timeout=1e-6).fit(X, Y)


def test_it_is_an_estimator_in_a_cross_validation_whose_seed_decides() -> None:
    made = search(SVC(), {"C": loguniform(1e-3, 1e3)}, n_iter=2).set_params(estimator__gamma=0.1)
    assert made.fit(X, Y).best_estimator_.gamma == 0.1
    assert not hasattr(search(refit=False).fit(X, Y), "predict")
    assert np.mean(cross_val_score(made, X, Y, cv=2)) > 0.3

    def tried(state: Any) -> Any:
        return clone(made).set_params(random_state=state).fit(X, Y).cv_results_["params"]

    assert tried(3) == tried(3) != tried(None)
    assert tried(np.random.RandomState(3)) == tried(np.random.RandomState(3)) != tried(3)


def test_rules_hold_and_inactive_parameters_keep_the_defaults_of_the_estimator() -> None:
    space = mc.Space("machines")
    kernel = space.categorical("svc__kernel", ["rbf", "linear"])
    c = space.real("svc__C", 0.01, 100, log=True)
    space.real("svc__gamma", 0.001, 1.0, log=True, when=kernel["rbf"])
    space.rule("linear machines are soft", c <= 1, when=kernel["linear"])
    pipeline = Pipeline([("scale", StandardScaler()), ("svc", SVC(gamma=0.77))])
    found = search(pipeline, space, n_iter=8, optimizer="hybrid").fit(X, Y)
    tried = found.cv_results_["params"]
    assert all(p["svc__C"] <= 1 for p in tried if p["svc__kernel"] == "linear")
    assert {p["svc__kernel"] for p in tried} == {"rbf", "linear"}
    mask = found.cv_results_["param_svc__gamma"].mask
    assert mask.tolist() == [p["svc__kernel"] == "linear" for p in tried]
    linear = search(pipeline, {"svc__kernel": ["linear"]}, n_iter=1).fit(X, Y)
    assert linear.best_estimator_["svc"].gamma == 0.77


def test_estimators_are_values_with_their_own_parameters() -> None:
    pipeline = Pipeline([("scale", StandardScaler()), ("clf", SVC())])
    grids = [
        {"clf": [SVC()], "clf__C": loguniform(0.1, 10), "scale": [MinMaxScaler(), "passthrough"]},
        {"clf": [GaussianNB(), DecisionTreeClassifier()], "scale": ["passthrough"]},
    ]
    found = search(pipeline, grids, n_iter=8).fit(X, Y)
    kinds = {(type(p["clf"]).__name__, "clf__C" in p) for p in found.cv_results_["params"]}
    assert kinds == {("SVC", True), ("GaussianNB", False), ("DecisionTreeClassifier", False)}
    assert found.best_estimator_["clf"] is not found.best_params_["clf"]


def test_limits_hold_and_are_reported() -> None:
    scoring = {"a": "accuracy", "leaves": lambda tree, x, y: -tree.get_n_leaves()}
    limits = {"leaves": (-3, None), "f1_macro": (0.5, None), "model_bytes": 1e9, "latency_ms": 1e4, "fit_seconds": 1e4}
    found = search(scoring=scoring, refit="a", limits=limits).fit(X, Y)
    table = found.cv_results_
    assert table["feasible"].tolist() == (table["mean_test_leaves"] >= -3).tolist()
    assert 0 < table["feasible"].sum() < 6
    assert table["feasible"][table["rank_test_a"].argmin()]
    assert found.best_index_ == table["rank_test_a"].argmin()
    assert found.best_score_ < table["mean_test_a"].max()
    assert all(np.isfinite(table[f"limited_{name}"]).all() for name in limits)
    nothing = search(limits={"model_bytes": 1})
    with pytest.raises(ValueError, match=r"no configuration satisfies all constraints.*model_bytes.*loosen limits="):
        nothing.fit(X, Y)
    assert not clone(nothing).set_params(refit=False).fit(X, Y).cv_results_["feasible"].any()


ROWS = 100
"""Rows of a training fold, of 150 rows in total."""


class Grown(DecisionTreeClassifier):
    """Decision tree that records the number of rows it was fitted to."""

    def fit(self, x: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        self.rows_ = len(x)
        return super().fit(x, y, sample_weight, check_input)


def bytes_of(model: Any, x: Any) -> float:
    """Return a deterministic measure: 10 per level of depth, and more for deep trees fitted to all rows."""
    return 10.0 * model.max_depth + (0 if model.rows_ <= ROWS else 5.0 * (model.max_depth - 2))


def limited(
    monkeypatch: pytest.MonkeyPatch, high: float, measure: str = "model_bytes", **options: Any
) -> SpaceSearchCV:
    """Return a fitted search in which the deepest tree scores best. The measure of that tree on folds is 40."""
    monkeypatch.setitem(objective.MEASURES, measure, bytes_of)
    told = {"n_iter": 4, "scoring": lambda tree, x, y: tree.max_depth / 10, **options}
    return search(Grown(random_state=0), {"max_depth": [1, 2, 3, 4]}, limits={measure: high}, **told).fit(X, Y)


@pytest.mark.parametrize("measure", ["model_bytes", "latency_ms"])
@pytest.mark.parametrize(
    ("high", "depth", "refitted"),
    [(50.0, 4, {4: 50.0}), (34.0, 2, {3: 35.0, 2: 20.0})],
)
def test_the_returned_estimator_satisfies_the_limits(
    monkeypatch: pytest.MonkeyPatch, measure: str, high: float, depth: int, refitted: dict[int, float]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = limited(monkeypatch, high, measure)
    assert found.best_estimator_.max_depth == found.best_params_["max_depth"] == depth
    assert found.best_estimator_.rows_ == len(X)
    assert found.refit_measures_ == {measure: refitted[depth]}
    table = found.cv_results_
    assert table["params"][found.best_index_] == found.best_params_
    assert found.best_score_ == table["mean_test_score"][found.best_index_] == pytest.approx(depth / 10)
    told = {p["max_depth"]: v for p, v in zip(table["params"], table[f"refit_{measure}"], strict=True)}
    assert {depth: value for depth, value in told.items() if not np.isnan(value)} == refitted
    assert table[f"limited_{measure}"][found.best_index_] == 10.0 * depth


def test_without_a_feasible_refit_the_best_of_five_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    found = search(Grown(random_state=0), {"max_depth": list(range(1, 9))}, n_iter=8, limits={"model_bytes": 0.5})
    monkeypatch.setitem(objective.MEASURES, "model_bytes", lambda model, x: float(model.rows_ > ROWS))
    told = r"model_bytes 1 > 0.5 \(on folds: 0\); so do the next best that were refitted, 4 of them"
    with pytest.warns(UserWarning, match=told):
        found.fit(X, Y)
    assert np.isfinite(found.cv_results_["refit_model_bytes"]).sum() == 5
    assert found.best_index_ == found.cv_results_["rank_test_score"].argmin()
    assert found.refit_measures_ == {"model_bytes": 1.0}


def test_limits_are_measured_but_not_enforced_for_a_refit_function_or_an_ensemble(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.warns(UserWarning, match=r"model_bytes 50 > 45 \(on folds: 40\)\. It is returned"):
        found = limited(monkeypatch, 45.0, refit=lambda table: int(np.argmax(table["mean_test_score"])))
    assert found.best_params_ == {"max_depth": 4}
    monkeypatch.setitem(objective.MEASURES, "model_bytes", lambda model, x: 99.0 if hasattr(model, "estimators") else 1)
    with pytest.warns(UserWarning, match="the ensemble violates the limits: model_bytes 99 > 9"):
        found = search(ensemble_size=3, limits={"model_bytes": 9}).fit(X, Y)
    assert found.refit_measures_ == {"model_bytes": 99.0}
    unmeasured = search(limits={"f1_macro": (0.5, None), "fit_seconds": 1e4}).fit(X, Y)
    assert unmeasured.refit_measures_ == {}
    assert not [name for name in unmeasured.cv_results_ if name.startswith("refit_")]


def test_a_search_without_a_target() -> None:
    found = search(KMeans(n_init=1, random_state=0), {"n_clusters": [2, 3, 4]}, n_iter=3).fit(X)
    assert found.best_params_ == {"n_clusters": 4}
    assert found.transform(X).shape == (150, 4)


def test_racing_skips_folds_and_marks_the_pruned_configurations() -> None:
    x, y = make_classification(300, flip_y=0.2, random_state=0)
    found = search(
        SVC(), {"C": loguniform(1e-4, 10), "gamma": loguniform(1e-4, 10)}, n_iter=12, cv=4, pruning=True
    ).fit(x, y)
    table = found.cv_results_
    stopped = table["status"] == "pruned"
    assert stopped.any()
    assert np.isnan(table["mean_test_score"][stopped]).all()
    assert not np.isnan(table["split0_test_score"]).any()
    assert table["rank_test_score"][~stopped].max() < table["rank_test_score"][stopped].min()
    assert found.best_score_ == np.nanmax(table["mean_test_score"])


def test_confirm_evaluates_finalists_on_other_folds() -> None:
    found = search(n_iter=6, confirm=2).fit(X, Y)
    assert len(found.cv_results_["params"]) == 4  # two of the six evaluations are repeats
    assert len(found.result_.finalists) == 2
    with pytest.raises(ValueError, match=r"confirm= evaluates finalists on other folds.*TimeSeriesSplit"):
        search(confirm=2, cv=TimeSeriesSplit(2)).fit(X, Y)


def test_an_ensemble_is_the_best_estimator() -> None:
    found = search(n_iter=5, ensemble_size=8, n_jobs=2, scoring="neg_log_loss").fit(X, Y)
    assert len(found.best_estimator_.estimators_) == len(found.ensemble_.members) > 1
    np.testing.assert_allclose(found.predict_proba(X).sum(axis=1), 1.0)
    assert -found.ensemble_.selection.loss >= found.best_score_
    assert found.score(X, Y) > found.best_score_
    with pytest.raises(ValueError, match=r"ensemble_size= .*out of fold"):
        search(ensemble_size=8, cv=ShuffleSplit(2)).fit(X, Y)


def test_a_storage_resumes(tmp_path: Path) -> None:
    made = search(
        GaussianNB(), {"var_smoothing": loguniform(1e-9, 1)}, storage=str(tmp_path / "run.db"), random_state=None
    )
    first = clone(made).set_params(n_iter=3).fit(X, Y)
    second = clone(made).set_params(n_iter=5).fit(X, Y)
    assert len(second.cv_results_["params"]) == 5
    for name in ("params", "mean_fit_time", "mean_test_score"):
        assert list(second.cv_results_[name][:3]) == list(first.cv_results_[name])


def test_a_storage_with_other_scores_is_refused(tmp_path: Path) -> None:
    made = search(n_iter=2, scoring="accuracy", storage=str(tmp_path / "run.db")).fit(X, Y)
    before = (tmp_path / "run.db").read_bytes()
    for options, y, params, named in (
        ({"scoring": "neg_log_loss"}, Y, {}, r"option scoring was ..accuracy.. and is ..neg_log_loss.. now"),
        ({"cv": 4}, Y, {}, r"option cv was '3 folds, .*' and is '4 folds, .* now"),
        ({"cv": ShuffleSplit(3, random_state=0)}, Y, {}, "option cv was '3 folds, "),
        ({}, Y[-120:], {}, "option data was '150 rows, .*' and is '120 rows, .*' now"),
        ({}, Y[::-1], {}, "option data was '150 rows, "),
        ({}, Y, {"sample_weight": WEIGHTS}, "option data was '150 rows, "),
        ({"estimator__max_leaf_nodes": 3}, Y, {}, "option estimator was 'DecisionTree.* and is .*max_leaf_nodes=3"),
    ):
        with pytest.raises(mc.errors.StorageError, match="run.db belongs to another study: .*" + named) as raised:
            clone(made).set_params(**options).fit(X[-len(y) :], y, **params)
        assert "give another storage" in str(raised.value)
    assert (tmp_path / "run.db").read_bytes() == before
    assert clone(made).fit(np.asfortranarray(X), Y).best_score_ == made.best_score_  # another memory layout


def test_the_fingerprint_of_data_and_scoring_is_equal_in_every_process() -> None:
    told = (
        "import numpy as np, pandas as pd\n"
        "from scipy.sparse import csr_matrix\n"
        "from sklearn.metrics import make_scorer, accuracy_score\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import FunctionTransformer\n"
        "from mipcash.integrations.sklearn.search.belonging import belonging_of\n"
        "from mipcash.integrations.sklearn.search.objective import Data\n"
        "frame = pd.DataFrame({'a': ['x', 'y'], 'b': pd.Categorical(['u', 'u']), 'c': [1.0, None]})\n"
        "kinds = [frame, csr_matrix(np.eye(2)), [['a'], ['b']]]\n"
        "scoring = {'a': make_scorer(accuracy_score), 'b': lambda e, x, y: 0.0}\n"
        "pipe = make_pipeline(FunctionTransformer(lambda x: x))\n"
        "splits = [(np.array([0]), np.array([1]))]\n"
        "print([belonging_of(Data(x, [0, 1], splits), scoring, 'a', pipe) for x in kinds])\n"
    )
    with contextlib.redirect_stdout(io.StringIO()) as here:
        exec(told, {"__name__": "__main__"})
    there = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert there.stdout == here.getvalue()
    assert "not compared" not in there.stdout


class Fragile(DecisionTreeClassifier):
    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        if self.max_depth == 2:
            raise RuntimeError("too deep")
        return super().fit(X, y)


def test_failed_configurations_score_nan_or_error_score() -> None:
    with pytest.warns(FitFailedWarning, match="2 of 6 configurations failed.*\n.*too deep"):
        found = search(Fragile()).fit(X, Y)
    assert np.isnan(found.cv_results_["mean_test_score"]).sum() == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = search(Fragile(), error_score=-1.0).fit(X, Y)
    assert sorted(found.cv_results_["mean_test_score"])[:2] == [-1.0, -1.0]
    for n_jobs in (1, 2):  # also where it was raised in another process
        with pytest.raises(RuntimeError, match="too deep"):
            search(Fragile(), error_score="raise", n_jobs=n_jobs).fit(X, Y)


def test_one_score_of_several_may_fail() -> None:
    def shallow(model: Any, x: Any, y: Any) -> float:
        if model.max_depth == 2:
            raise ValueError("no score")
        return 1.0

    told = {"scoring": {"a": "accuracy", "b": shallow}, "refit": "a"}
    with pytest.warns(UserWarning, match="the score 'b' failed and is nan .*no score"):
        found = search(**told).fit(X, Y)
    tested = found.cv_results_
    assert np.array_equal(np.isnan(tested["mean_test_b"]), tested["param_max_depth"] == 2)
    assert not np.isnan(tested["mean_test_a"]).any()


class Column(ClassifierMixin, BaseEstimator):
    """Predicts the sign of a column."""

    def __init__(self, column: int = 0) -> None:
        self.column = column

    def fit(self, x: Any, y: Any, sample_weight: Any = None) -> Any:
        self.classes_ = np.unique(y)
        return self

    def predict(self, x: Any) -> Any:
        return (x[:, self.column] > 0).astype(int)


@pytest.mark.parametrize("routing", [False, True])
def test_weights_count_in_ensembles_and_in_limits_on_scores(routing: bool) -> None:
    """Few heavy rows obey one column, and many light rows another."""
    x = np.random.default_rng(0).normal(size=(120, 3))
    heavy = x[:, 1] > 1
    weights, y = np.where(heavy, 100.0, 1.0), np.where(heavy, x[:, 2] > 0, x[:, 0] > 0).astype(int)
    with sklearn.config_context(enable_metadata_routing=routing):
        scorer: Any = make_scorer(accuracy_score)
        scorer = scorer.set_score_request(sample_weight=True) if routing else scorer
        model = Column().set_fit_request(sample_weight=True) if routing else Column()
        told: dict[str, Any] = {"n_iter": 3, "scoring": scorer, "limits": {"accuracy": (0.1, None)}, "ensemble_size": 4}
        found = search(model, {"column": [0, 1, 2]}, **told).fit(x, y, sample_weight=weights)
    assert found.best_params_ == {"column": 2}
    assert found.ensemble_.members[0].trial.config == {"column": 2}
    assert np.array_equal(found.cv_results_["limited_accuracy"], found.cv_results_["mean_test_score"])


def test_a_wide_range_is_not_listed() -> None:
    wide = {"max_depth": mc.Integer(1, 3), "random_state": mc.Integer(0, 2**31 - 1)}
    assert search(space=wide, n_iter=2).fit(X, Y).best_score_ > 0.5


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: search(space={"max_dept": [1]}), "no parameter of DecisionTreeClassifier; did you mean 'max_depth'"),
        (lambda: search(Pipeline([("t", TREE)]), {"max_depth": [1]}), "'max_depth' .*did you mean 't__max_depth'"),
        (lambda: search(scoring="acuracy"), "no scoring 'acuracy'; did you mean 'accuracy'"),
        (lambda: search(scoring=["accuracy", "f1_makro"], refit="accuracy"), "'f1_makro'; did you mean 'f1_macro'"),
        (lambda: search(scoring=["accuracy"]), "refit must be set to a scorer key"),
        (lambda: search(n_iter=0), "'n_iter' parameter of SpaceSearchCV must be an int in the range .* Got 0"),
        (lambda: search(limits={"latency": 1}), "limits= names 'latency'.*did you mean 'latency_ms'"),
        (lambda: search(space={"max_depth": [-1, -2]}), "all 2 configurations failed.*\n.*max_depth"),
        (
            lambda: search(space={"max_features": [1, 0.5, 1.0]}),
            "'max_features' lists 1 and 1.0, which scikit-learn may",
        ),
        (lambda: search(optimizer="hybrd"), "no optimizer 'hybrd'; did you mean 'hybrid'"),
        (lambda: search(space=mc.Space()), "has no parameters"),
    ],
)
def test_mistakes_are_named_with_their_cure(made: Callable[[], SpaceSearchCV], said: str) -> None:
    with pytest.raises((ValueError, mc.errors.MipcashError)) as caught:
        made().fit(X, Y)
    assert re.search(said, str(caught.value))


@pytest.mark.parametrize("y", [None, np.stack([Y, Y], axis=1)], ids=["none", "two"])
def test_an_ensemble_needs_one_target(y: Any) -> None:
    with pytest.raises(DataError, match="ensemble_size= needs one target"):
        search(KMeans() if y is None else TREE, {"random_state": [0, 1]}, n_iter=2, ensemble_size=2).fit(X, y)


def test_columns_of_texts_are_named() -> None:
    x = pd.DataFrame({"size": np.arange(30.0), "town": ["Rome", "Oslo"] * 15, "day": ["Mon", "Tue", "Wed"] * 10})
    search = SpaceSearchCV(SVC(), {"C": loguniform(0.1, 10.0)}, n_iter=3, cv=2)
    with pytest.raises(DataError, match=r"Columns that are no numbers: 1, 2. Encode them .*OneHotEncoder"):
        search.fit(x.to_numpy(), [0, 1] * 15)
    with pytest.raises(DataError, match=r"Columns that are no numbers: 'town', 'day'. Encode them .*OneHotEncoder"):
        search.fit(x, np.arange(30) % 2)
