"""``PipelineSearchCV``: default spaces, user-defined modules, weights, groups, metadata routing and error messages."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, get_scorer, make_scorer
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import mipcash as mc
from mipcash.errors import MipcashError
from mipcash.integrations.sklearn import PipelineSearchCV
from mipcash.integrations.sklearn.search import search as base
from mipcash.integrations.sklearn.search.preparation import preparation_of

X, Y = load_iris(return_X_y=True)


class Weighed(ClassifierMixin, BaseEstimator):
    """Classifier that remembers the weights and parameters of its fit."""

    def __init__(self, depth: int = 1) -> None:
        self.depth = depth

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Weighed:
        self.classes_, self.weights_, self.process_ = np.unique(y), sample_weight, os.getpid()
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.classes_[0])


def own() -> mc.Space:
    space = mc.Space("own")
    scale = space.module("scale", {"StandardScaler": {}, "MinMaxScaler": {}, "none": {}})
    tree = {"max_depth": mc.Integer(1, 4), "criterion": mc.Categorical(["gini", "entropy"])}
    model = space.module("model", {"tree": tree, "GaussianNB": {"var_smoothing": mc.Real(1e-9, 1, log=True)}})
    space.rule("trees need no scaling", model["tree"] + scale["StandardScaler"] <= 1)
    return space


def search(space: Any = None, **options: Any) -> PipelineSearchCV:
    told = {
        "n_iter": 6,
        "random_state": 0,
        "optimizer": "random",
        "cv": 3,
        "estimators": {"tree": DecisionTreeClassifier},
    }
    return PipelineSearchCV(own() if space is None else space, **{**told, **options})


@pytest.mark.parametrize(
    ("load", "task", "scoring"),
    [
        (load_iris, "classification", "roc_auc_ovr"),
        (load_diabetes, "regression", None),
    ],
)
def test_the_default_space_needs_no_arguments(load: Any, task: str, scoring: str | None) -> None:
    x, y = (part[::3] for part in load(return_X_y=True))
    made = PipelineSearchCV(n_iter=2, scoring=scoring, cv=2, random_state=0, optimizer="random")
    found = made.fit(x, y)
    names = {p["estimator"] for p in found.cv_results_["params"]}
    assert names == ({"logistic_regression", "gaussian_nb"} if task == "classification" else {"ridge", "knn"})
    assert (found.task_, is_classifier(found), is_regressor(found)) == (
        task,
        task != "regression",
        task == "regression",
    )
    folds = StratifiedKFold(2) if task == "classification" else KFold(2)
    score = scoring or {"classification": "accuracy", "regression": "r2"}[task]
    again = cross_val_score(clone(found.best_estimator_), x, y, cv=folds, scoring=score)
    assert found.best_score_ == pytest.approx(again.mean(), abs=1e-12)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).predict(x), found.predict(x))


def test_default_pipelines_are_evaluated_first_and_once(tmp_path: Path) -> None:
    x, y, tried = X[::2], Y[::2], []
    for n_iter in (2, 4):
        made = PipelineSearchCV(
            n_iter=n_iter, cv=3, random_state=0, storage=str(tmp_path / "run.db"), optimizer="random"
        )
        found = made.fit(x, y)
        tried.append([p["estimator"] for p in found.cv_results_["params"]])
    assert tried[1] == ["logistic_regression", "gaussian_nb", "lda", "knn"]
    assert tried[0] == tried[1][:2]
    usual = [
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        GaussianNB(),
        make_pipeline(StandardScaler(), KNeighborsClassifier()),
    ]
    best = [cross_val_score(model, x, y, cv=3).mean() for model in usual]
    assert found.cv_results_["mean_test_score"][[0, 1, 3]] == pytest.approx(best, abs=1e-12)
    assert found.best_score_ >= max(best)


def test_tables_with_text_and_missing_values() -> None:
    table = pd.DataFrame(X, columns=list("abcd")).assign(text=np.where(X[:, 0] > 5, "long", "short"), flag=X[:, 1] > 3)
    table.iloc[3, 1] = np.nan
    found = PipelineSearchCV(n_iter=2, cv=2, random_state=0, optimizer="random").fit(table, Y.astype(str))
    assert next(iter(found.best_estimator_.named_steps)) == "prepare"
    assert found.predict(table).dtype.kind in "UO"
    assert list(found.feature_names_in_) == [*"abcd", "text", "flag"]
    nullable = table.assign(text=pd.array(["long", "short", None] * 50, dtype="string"), flag=[1, "a", None] * 50)
    assert PipelineSearchCV(n_iter=1, cv=2, optimizer="random").fit(nullable, Y).predict(nullable).shape == (150,)
    with pytest.raises(ValueError, match="X has the column 'a' twice"):
        PipelineSearchCV(n_iter=2).fit(table.rename(columns={"b": "a"}), Y)
    with pytest.raises(ValueError, match=r"X is the single column 'a'; give a table, X.to_frame\(\)"):
        PipelineSearchCV(n_iter=2).fit(table["a"], Y)
    with pytest.raises(
        ValueError, match=r"X is an array with values that are no numbers; give a data frame .*DataFrame\(X\)"
    ):
        PipelineSearchCV(n_iter=2).fit(table.to_numpy(), Y)
    texts = X.astype(str)
    assert np.array_equal(preparation_of(texts).fit_transform(texts), X)
    gaps = X.copy()
    gaps[0, 0] = np.nan
    assert PipelineSearchCV(n_iter=1, cv=2, random_state=0, optimizer="random").fit(gaps, Y).score(gaps, Y) > 0.5
    with pytest.raises(ValueError, match=r"X is sparse.*toarray"):
        PipelineSearchCV(n_iter=2).fit(csr_array(X), Y)


def test_columns_may_have_numbers_as_names_and_other_types_later() -> None:
    whole = np.repeat([1, 2, 3], 50)
    table = pd.DataFrame({1: pd.Categorical(whole), 0: X[:, 0], 7: X[:, 1] > 3})
    made = preparation_of(table).fit(table)
    encoded = made.transform(table)
    assert encoded.shape == (150, 5)  # two numbers and three levels
    named = table.set_axis(["c", "a", "flag"], axis=1)
    assert np.array_equal(preparation_of(named).fit_transform(named), encoded)
    later = {1: whole.astype(float), 7: table[7].astype(int)}
    assert np.array_equal(made.transform(pd.DataFrame({**table, **later})), encoded)
    for missing in (None, np.nan, pd.NA):
        row = named.head(1).astype(object).assign(c=missing, flag=missing)
        assert preparation_of(named).fit(named).transform(row).tolist() == [
            [X[0, 0], np.median(X[:, 1] > 3), 0.0, 0.0, 0.0]
        ]
    intervals = pd.DataFrame({"a": pd.Series([pd.Interval(0, 2), pd.Interval(1, 3)] * 2, dtype=object)})
    assert preparation_of(intervals).fit_transform(intervals).shape == (4, 2)
    objects = pd.DataFrame({"a": [pd.NA, 2.0, 3], "b": [Decimal("0.5"), None, 2**70]}, dtype=object)
    assert preparation_of(objects).fit_transform(objects).tolist() == [[2.5, 0.5], [2.0, 2.0**69], [3.0, 2.0**70]]
    made = preparation_of(objects).fit(objects)
    assert made.get_feature_names_out().tolist() == ["a", "b"]
    for wrong, said in (("?", "values that are no numbers"), (np.inf, "infinite values")):
        with pytest.raises(MipcashError, match=f"the column 'b' of X has {said}"):
            made.transform(objects.assign(b=wrong))
    numbers = pd.DataFrame(X, columns=list("abcd"))
    found = PipelineSearchCV(n_iter=1, cv=2, random_state=0, optimizer="random").fit(numbers, Y)
    assert found.predict(numbers.assign(a=np.nan)).shape == (150,)  # no value was missing before
    assert np.array_equal(found.predict(numbers.to_numpy()), found.predict(numbers))


@pytest.mark.parametrize("size", [None, 3])
def test_columns_of_numbers_are_matched_by_name(size: int | None) -> None:
    x, y = load_iris(return_X_y=True)
    table = pd.DataFrame(x, columns=list("abcd"))
    search = PipelineSearchCV(n_iter=3, cv=3, ensemble_size=size, random_state=0).fit(table, y)
    assert search.score(table, y) > 0.9
    for other in (table[list("dcba")], table.rename(columns={"a": "q"})):
        with pytest.raises(ValueError, match="feature names"):
            search.predict(other)


def test_the_task_and_the_score_fit_the_target() -> None:
    few = {"n_iter": 1, "cv": 2, "random_state": 0, "optimizer": "random"}
    many = np.arange(150) % 50
    assert PipelineSearchCV(scoring="accuracy", **few).fit(X, many).task_ == "classification"
    assert PipelineSearchCV(**few).fit(X, np.array([1.5, 2.5, 3.5] * 50)).task_ == "regression"
    assert PipelineSearchCV(**few).fit(X[::20], X[::20, 0]).task_ == "regression"
    for scoring, y, said in (
        ("accuracy", X[:, 0], "For numbers give task='regression'"),
        ("roc_auc", Y, "roc_auc does not take what y holds"),
        ("f1", np.where(Y == 1, "p", "q"), "f1 does not take what y holds"),
        (accuracy_score, Y, r"give make_scorer\(accuracy_score\)"),
        (None, np.array([0] * 149 + [7]), "if y holds numbers and no classes, give task='regression'"),
    ):
        with pytest.raises(MipcashError, match=said):
            PipelineSearchCV(scoring=scoring, **few).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        PipelineSearchCV(**few).fit(X, Y, sample_weight=[1.0, 2.0])
    with pytest.raises(ValueError, match="refit must be set to a scorer key"):
        PipelineSearchCV(scoring=["accuracy"], refit="acc", **few).fit(X, Y)
    for given in ({}, {"space": "a3"}, {"space": mc.Space("own"), "build": GaussianNB}):
        with pytest.raises(MipcashError, match="estimators="):
            PipelineSearchCV(**given, estimators={"svm": GaussianNB}, **few).fit(X, Y)


def test_an_ensemble_is_selected_by_the_score_of_the_search() -> None:
    weights = np.where(Y == 1, 50.0, 1.0)
    recall = make_scorer(lambda true, found: float(np.mean(found[true == 1] == 1)))
    for scoring, refit in (
        ({"accuracy": "accuracy"}, "accuracy"),
        ({"accuracy": recall}, "accuracy"),
        ("accuracy", True),
    ):
        few = {"n_iter": 3, "cv": 3, "random_state": 0, "optimizer": "random", "ensemble_size": 3}
        found = PipelineSearchCV(scoring=scoring, refit=refit, **few).fit(X, Y, sample_weight=weights)
        best = min(t.loss for t in found.result_.history if t.loss is not None)
        assert found.ensemble_.selection.losses[0] == pytest.approx(best)


def test_dates_and_durations_become_days_and_names_of_rows_are_warned_of() -> None:
    when = pd.date_range("2020-02-27", periods=len(X), tz="Europe/Berlin")
    table = pd.DataFrame({"when": when, "took": pd.to_timedelta(np.arange(len(X)), unit="h"), "a": X[:, 0]})
    table.loc[[3, 5], ["when", "took"]] = pd.NaT
    made = preparation_of(table).fit(table)
    days = made.transform(table)
    assert days.shape == (len(X), 3)
    assert days[10, 1] - days[9, 1] == 1.0
    assert days[0, 1] == pd.Timestamp("2020-02-26 23:00").timestamp() / 86400
    assert days[24, 2] == 1.0
    assert days[3, 1] == np.median(np.delete(days[:, 1], [3, 5]))
    assert preparation_of(table[["a"]].to_numpy()) is None
    dated = pd.DataFrame({"day": [when.date() for when in pd.date_range("2020-02-27", periods=len(X))]})
    period = pd.DataFrame({"day": pd.period_range("2020-02-27", periods=len(X), freq="D")})
    of_days = preparation_of(dated).fit_transform(dated)
    assert np.array_equal(of_days, preparation_of(period).fit_transform(period))
    assert of_days[:2].tolist() == [[18319.0], [18320.0]]
    far = dated.assign(day=[date(9999, 12, 31), date(1500, 12, 31)] * (len(X) // 2))
    for each in (far, far.assign(day=pd.PeriodIndex(far["day"].astype(str), freq="D"))):
        assert preparation_of(each).fit_transform(each)[:2].tolist() == [[2932896.0], [-171300.0]]
    made = preparation_of(dated).fit(dated)
    assert np.array_equal(made.transform(dated.astype(str)), of_days)  # texts, where there were dates
    seconds = np.array([each.timestamp() for each in when])
    assert np.array_equal(made.transform(dated.assign(day=when))[:, 0], seconds / 86400)  # and of another type
    for wrong in ("soon", "", "NaT", "today", 2020, pd.Timedelta(days=3)):
        with pytest.raises(MipcashError, match="the column 'day' of X had dates, and has values that are none"):
            made.transform(dated.assign(day=wrong))
    took = preparation_of(table[["took"]]).fit(table[["took"]])
    assert took.transform(pd.DataFrame({"took": [timedelta(days=2), None]}, dtype=object)).tolist()[0] == [2.0]
    with pytest.raises(MipcashError, match="the column 'took' of X had durations, and has values that are none"):
        took.transform(table[["when"]].set_axis(["took"], axis=1))
    with pytest.warns(UserWarning, match=r"the column 'day' of X has texts that look like dates.*pd.to_datetime"):
        preparation_of(pd.DataFrame({"day": ["2020-01-01", "2020-02-01", None]}))
    with pytest.warns(UserWarning, match=r"the column 'id' of X has 150 different texts in 150 rows.*names the rows"):
        preparation_of(table.assign(id=[f"row {k}" for k in range(len(X))]))
    objects = table.astype(object).assign(code=["01", "7"] * (len(X) // 2))  # texts of digits stay texts
    assert np.array_equal(preparation_of(objects).fit_transform(objects)[:, :3], days)
    assert preparation_of(objects).fit_transform(objects).shape == (len(X), 5)
    with pytest.raises(MipcashError, match="the column 'list' of X has values that are no texts"):
        preparation_of(table.assign(list=[[1]] * len(X)))
    assert preparation_of(np.array([[1.0, None], [2.0, 3.0]], dtype=object)) is not None


def test_modules_are_steps_and_algorithms_are_estimators() -> None:
    found = search().fit(X, Y)
    for params in found.cv_results_["params"]:
        assert not (params["model"] == "tree" and params["scale"] == "StandardScaler")
    best = found.best_params_
    assert list(found.best_estimator_.named_steps) == [*(["scale"] if best["scale"] != "none" else []), "model"]
    begin = f"model.{best['model']}."
    told = {n.removeprefix(begin): v for n, v in best.items() if n.startswith(begin)}
    assert told.items() <= found.best_estimator_["model"].get_params().items()
    again = clone(found).fit(X, Y)
    assert again.cv_results_["params"] == found.cv_results_["params"]


def test_an_ordering_orders_the_steps() -> None:
    space = mc.Space()
    a, b = space.module("a", ["StandardScaler"]), space.module("b", ["MinMaxScaler"])
    space.module("model", ["GaussianNB"])
    order = space.ordering("order", [a, b])
    space.rule("b first", order.position(b) <= 1)
    assert list(search(space, estimators=None, n_iter=2).fit(X, Y).best_estimator_.named_steps) == ["b", "a", "model"]


def test_a_build_function_replaces_modules() -> None:
    space = mc.Space()
    space.integer("depth", 1, 5)
    found = search(space, build=lambda c: DecisionTreeClassifier(max_depth=c["depth"]), estimators=None, n_iter=3).fit(
        X, Y
    )
    assert found.best_estimator_.max_depth == found.best_params_["depth"]
    with pytest.raises(ValueError, match=r"build= .* give space= too"):
        PipelineSearchCV(build=DummyClassifier).fit(X, Y)


@pytest.mark.parametrize("routing", [False, True])
def test_weights_reach_the_steps_and_groups_the_folds(routing: bool) -> None:
    space = mc.Space()
    space.module("scale", ["StandardScaler", "Normalizer"])
    space.module("model", {"weighed": {"depth": mc.Integer(1, 3)}})
    weights, groups = np.linspace(1, 2, len(Y)), np.arange(len(Y)) % 6
    with sklearn.config_context(enable_metadata_routing=routing):
        scoring: Any = make_scorer(accuracy_score).set_score_request(sample_weight=True) if routing else "accuracy"
        made = search(space, estimators={"weighed": Weighed}, n_iter=3, cv=GroupKFold(3), scoring=scoring)
        found = made.fit(X, Y, sample_weight=weights, groups=groups)
        nested = made.set_fit_request(sample_weight=True) if routing else made
        assert not routing or "sample_weight" in str(nested.get_metadata_routing())
    np.testing.assert_array_equal(found.best_estimator_["model"].weights_, weights)
    held_out = [rows for _, rows in GroupKFold(3).split(X, Y, groups)]
    weighed = routing or hasattr(PipelineSearchCV, "_check_scorers_accept_sample_weight")  # later scikit-learn versions
    expected = [np.average(Y[rows] == 0, weights=weights[rows] if weighed else None) for rows in held_out]
    assert [found.cv_results_[f"split{k}_test_score"][0] for k in range(3)] == pytest.approx(expected)
    if not routing:
        with pytest.raises(TypeError, match=r"takes sample_weight and groups, got 'model__sample_weight'"):
            made.fit(X, Y, groups=groups, model__sample_weight=weights)


def process(model: Any, x: Any, y: Any) -> float:
    """Return the id of the process that fitted a model, as a score."""
    return float(model["model"].process_)


def test_workers_are_processes_unless_joblib_says_threads() -> None:
    def processes(**context: Any) -> set[float]:
        space = mc.Space()
        space.module("model", {"weighed": {"depth": mc.Integer(1, 9)}})
        made = search(space, estimators={"weighed": Weighed}, scoring=process, n_iter=2, cv=2)
        with joblib.parallel_config(**context):
            found = made.set_params(n_jobs=None if context.get("n_jobs") else 2).fit(X, Y)
        assert len({repr(p) for p in found.cv_results_["params"]}) == 2
        return set(found.cv_results_["split0_test_score"])

    assert float(os.getpid()) not in processes(backend="loky", n_jobs=2)
    assert joblib.Parallel(2)(joblib.delayed(abs)(k) for k in (-1, -2)) == [1, 2]  # in the same processes
    assert processes(backend="threading") == {float(os.getpid())}


def test_evaluation_limits_reach_the_run_and_exceeding_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(config: Mapping[str, Any]) -> Any:
        if config["depth"] == 1:
            raise mc.Failed("it took longer than evaluation_timeout=2 seconds")
        return DecisionTreeClassifier(max_depth=config["depth"])

    told: list[mc.Execution] = []

    def noted(*given: Any, execution: mc.Execution, **named: Any) -> mc.Result:
        told.append(execution)
        return run(*given, **named)

    run = base.run
    monkeypatch.setattr(base, "run", noted)
    space = mc.Space()
    space.integer("depth", 1, 2)
    made = search(space, build=late, estimators=None, n_iter=2, evaluation_timeout=2, evaluation_memory=3000)
    with pytest.warns(FitFailedWarning, match="1 of 2 configurations failed"):
        found = made.fit(X, Y)
    assert found.best_params_ == {"depth": 2}
    assert (told[0].evaluation_timeout, told[0].evaluation_memory) == (2, 3000)


def by_name(**model: Any) -> PipelineSearchCV:
    space = mc.Space()
    space.module("model", model)
    return search(space, estimators=None)


def plain() -> mc.Space:
    space = own()
    space.real("alpha", 0, 1)
    return space


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            lambda: by_name(RandomForrestClassifier={}),
            "'RandomForrestClassifier' .*did you mean 'RandomForestClassifier'",
        ),
        (lambda: by_name(SVC={"c": mc.Real(1, 2)}), "'model.SVC.c': SVC has no .*did you mean 'C'"),
        (lambda: by_name(Ridge={}), "'Ridge' of the last module 'model' is no estimator of class"),
        (lambda: by_name(StandardScaler={}), "'StandardScaler' .* predicts nothing"),
        (lambda: by_name(ColumnTransformer={}), "cannot be made without arguments"),
        (lambda: search(estimators={"treee": None}), "names 'treee'.*did you mean 'tree'"),
        (lambda: search(estimators={"tree": 3}), "is int 3, which is no estimator"),
        (lambda: search(mc.Space(), estimators=None), "has no modules to make a pipeline of.*SpaceSearchCV"),
        (lambda: search(plain()), "'alpha' of space 'own' belongs to no module"),
        (lambda: search("a4"), "'space' parameter of PipelineSearchCV .*'a3'.* Got 'a4'"),
        (lambda: search(n_iter=0), "'n_iter' parameter .*Got 0"),
        (lambda: search(scoring="acuracy"), "did you mean 'accuracy'"),
        (lambda: search(task="regresion"), "'task' parameter .*Got 'regresion'"),
    ],
)
def test_mistakes_are_named_with_their_cure(made: Callable[[], PipelineSearchCV], said: str) -> None:
    with pytest.raises((ValueError, MipcashError), match=f"(?s).*{said}"):
        made().fit(X, Y)


def test_unusable_targets_are_named() -> None:
    for made, y, said in (
        (search(cv=5), np.r_[Y[:-3], 7, 7, 7], r"class 7 has 3 rows, fewer than the 5 folds: .*cv=3"),
        (search(cv=5), np.r_[Y[:-1], 7], "class 7 has 1 row, fewer than the 5 folds: merge or drop such a class; if y"),
        (search(), np.where(Y == 1, 1, Y.astype(str).astype(object)), "y holds values of type int, str"),
        (search(task="regression"), Y.astype(str), "regression needs numbers; use task='classification'"),
        (search(), None, "requires y to be passed"),
        (search(), pd.Series(Y.astype(str), dtype="string").where(Y != 1), "y has 50 missing values"),
        (search(), np.where(Y == 1, None, Y.astype(str)), "y has 50 missing values"),
    ):
        with pytest.raises((ValueError, MipcashError), match=said):
            made.fit(X, y)
    for numbers, task in (
        (Y / 7, "regression"),
        (Y == 1, "classification"),
        ([Decimal(int(k)) / 7 for k in Y], "regression"),
    ):
        found = PipelineSearchCV(n_iter=1, cv=2, refit=False).fit(X, np.array(list(numbers), dtype=object))
        assert found.task_ == task
    objects = PipelineSearchCV(n_iter=1, cv=2).fit(X, Y.astype(object))
    assert objects.score(X, Y.astype(object)) == objects.score(X, Y)


def test_the_search_works_in_a_pipeline_and_in_cross_validation() -> None:
    outer = Pipeline([("scale", StandardScaler()), ("search", search(n_iter=3, task="classification"))])
    assert cross_val_score(outer, X, Y, cv=2, scoring=get_scorer("accuracy")).mean() > 0.6
    assert is_classifier(outer)
    assert hasattr(search(task="classification"), "predict_proba")
    assert not hasattr(search(task="regression"), "predict_proba")
