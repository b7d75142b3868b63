"""Ensembles: greedy selection, whose loss on its own predictions never rises, and estimators as in scikit-learn."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, make_classification
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import get_scorer, log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import mipcash as mc
from mipcash.errors import DataError, MipcashError, ObjectiveError
from mipcash.integrations.sklearn import SpaceSearchCV
from mipcash.integrations.sklearn.cross_validated import probabilities
from mipcash.integrations.sklearn.ensemble import select, selected
from mipcash.integrations.sklearn.predicted import DIRECT, KnownProbabilities, KnownValues, PredictionLoss

X, Y = make_classification(160, 8, n_informative=4, flip_y=0.1, random_state=0)
NAMES = np.array(["no", "yes"])[Y]


def build(config: Mapping[str, Any]) -> Any:
    if config["kind"] == "knn":
        return KNeighborsClassifier(config["kind.knn.n"])
    return LogisticRegression(C=config["kind.linear.c"])


def declared() -> mc.Space:
    space = mc.Space("two classifiers")
    space.module("kind", {"knn": {"n": mc.Integer(1, 40)}, "linear": {"c": mc.Real(1e-3, 10, log=True)}})
    return space


def searched(budget: int = 10, y: Any = NAMES, **options: Any) -> tuple[mc.Result, mc.CrossValidated]:
    objective = mc.CrossValidated(build, X, y, scoring="neg_log_loss", **options)
    found = mc.minimize(objective.evaluate, declared(), budget, optimizer="random", seed=1, progress=False)
    return found, objective


# -- the selection --------------------------------------------------------------------------------------------------


def library(seed: int, members: int = 4, rows: int = 30) -> tuple[list[Any], Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    p = [np.clip(y + rng.normal(0, 0.9, rows), 0.02, 0.98) for _ in range(members)]
    found = [np.stack([1 - one, one], axis=1) for one in p]

    def loss(predicted: Any) -> float:
        return float(log_loss(y, predicted, labels=[0, 1]))

    return sorted(found, key=loss), loss


@pytest.mark.parametrize("seed", range(2))
def test_each_step_adds_the_best_member(seed: int) -> None:
    """Compare each step with every ensemble that has one more member. Members without a score are never chosen."""
    found, loss = library(seed)
    taken: list[int] = []
    selection = select(found, loss, 8)
    for step in range(8):
        each = [loss(np.mean([found[k] for k in (*taken, m)], axis=0)) for m in range(len(found))]
        taken.append(int(np.argmin(each)))
        assert selection.losses[step] == pytest.approx(min(each), rel=1e-12)
    kept = taken[: int(selection.counts.sum())]
    assert np.bincount(kept, minlength=len(found)).tolist() == selection.counts.tolist()
    assert selection.loss == min(selection.losses) <= loss(found[0])
    spoilt = [*found, np.full_like(found[0], np.nan)]
    assert select(spoilt, lambda p: np.inf if np.isnan(p).any() else loss(p), 5).counts[-1] == 0


def test_direct_scores_are_those_of_scikit_learn() -> None:
    """Compare the scores on data with ties, probabilities of 0 and 1, and unbalanced classes."""
    rng = np.random.default_rng(0)
    for name, score in DIRECT.items():
        for classes in (2, 4):
            y = rng.choice(classes, 90, p=np.arange(1, classes + 1) / sum(range(classes + 1)))
            p = np.round(rng.dirichlet(np.ones(classes) / 3, 90), 1)
            p = p / p.sum(axis=1, keepdims=True)
            if name.startswith(("neg_mean", "neg_root", "r2")):
                y, p = rng.normal(size=90), rng.normal(size=90)
                expected = get_scorer(name)(KnownValues(), p, y)
            elif name == "roc_auc" and classes > 2:
                continue
            else:
                expected = get_scorer(name)(KnownProbabilities(np.arange(classes)), p, y)
            assert score(y, p) == pytest.approx(expected, abs=1e-12), name


@pytest.mark.parametrize("scoring", ["roc_auc", "f1_macro"])
def test_an_ensemble_of_one_has_the_loss_of_its_evaluation(scoring: str) -> None:
    objective = mc.CrossValidated(build, X, Y, scoring=scoring)
    config = {"kind": "knn", "kind.knn.n": 9}
    again = PredictionLoss.of(objective)(objective.out_of_fold(config))
    assert again == pytest.approx(objective.evaluate(config)["loss"], abs=1e-12)
    fresh = PredictionLoss.of(objective, 1)(objective.out_of_fold(config, 1))
    assert fresh == pytest.approx(objective.evaluate(config, 1)["loss"], abs=1e-12)


# -- the estimator --------------------------------------------------------------------------------------------------


def test_a_fitted_classifier() -> None:
    result, objective = searched()
    chosen = selected(result, objective)
    assert chosen.loss() == pytest.approx(chosen.selection.loss, abs=1e-12)
    assert chosen.loss() <= result.value
    best = sorted(result.history, key=lambda t: t.loss)[:3]
    assert {m.trial.number for m in selected(result, objective, best=3).members} <= {t.number for t in best}
    assert selected(result, objective, size=1).members[0].trial.number == best[0].number
    model = mc.ensemble(result, objective)
    assert sum(model.weights) == pytest.approx(1.0)
    assert [name for name, _ in model.estimators] == [m.name for m in chosen.members]
    assert model.classes_.tolist() == ["no", "yes"]
    probabilities = model.predict_proba(X)
    each = [model.named_estimators_[name].predict_proba(X) for name, _ in model.estimators]
    assert np.allclose(probabilities, np.tensordot(model.weights, each, axes=1))
    assert set(model.predict(X)) <= {"no", "yes"}
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), probabilities)
    fresh = clone(model)
    assert not hasattr(fresh, "classes_")
    assert fresh.get_params()["weights"] == model.weights
    assert np.allclose(fresh.fit(X, NAMES).predict_proba(X), probabilities)


def test_a_fitted_regressor() -> None:
    space = mc.Space("two regressors")
    space.module("kind", {"ridge": {"alpha": mc.Real(1e-3, 10, log=True)}, "tree": {"depth": mc.Integer(1, 4)}})

    def regressor(config: Mapping[str, Any]) -> Any:
        if config["kind"] == "ridge":
            return Ridge(alpha=config["kind.ridge.alpha"])
        return DecisionTreeRegressor(max_depth=config["kind.tree.depth"], random_state=0)

    x, y = load_diabetes(return_X_y=True)
    objective = mc.CrossValidated(regressor, x, y, scoring="neg_root_mean_squared_error", folds=3)
    result = mc.minimize(objective.evaluate, space, 8, optimizer="random", seed=0, progress=False)
    chosen = selected(result, objective)
    assert chosen.loss() <= result.value
    assert mc.ensemble(result, objective).predict(x).shape == y.shape


def test_members_without_probabilities_predict_with_certainty() -> None:
    objective = mc.CrossValidated(lambda config: RidgeClassifier(alpha=config["alpha"]), X, NAMES, scoring="accuracy")
    space = mc.Space("ridge")
    space.real("alpha", 0.01, 100, log=True)
    result = mc.minimize(objective.evaluate, space, 4, optimizer="random", progress=False)
    assert mc.ensemble(result, objective).predict_proba(X).shape == (160, 2)


def test_members_without_probabilities_keep_the_order_of_their_decisions() -> None:
    """A search by the area under the curve ranks decisions; so does the selection."""
    objective = mc.CrossValidated(lambda config: RidgeClassifier(config["alpha"]), X, NAMES, scoring="roc_auc", folds=3)
    space = mc.Space("ridge")
    space.real("alpha", 0.01, 100, log=True)
    result = mc.minimize(objective, space, 4, optimizer="random", progress=False)
    for trial in result.history:
        assert PredictionLoss.of(objective)(objective.out_of_fold(trial.config)) == pytest.approx(trial.loss, abs=1e-12)
    assert selected(result, objective).loss() <= min(trial.loss or np.inf for trial in result.history) + 1e-12


def test_members_satisfy_the_outcome_constraints() -> None:
    size = {"finish": lambda folds: {"size": float("KNeighbors" in repr(folds[0].estimator))}}
    objective = mc.CrossValidated(build, X, NAMES, scoring="neg_log_loss", **size)
    told = {"optimizer": "random", "seed": 0, "limits": {"size": 0.5}, "progress": False}
    result = mc.minimize(objective.evaluate, declared(), 8, **told)
    assert {m.trial.config["kind"] for m in selected(result, objective).members} == {"linear"}


def test_lost_predictions_are_computed_again_with_a_warning(tmp_path: Path) -> None:
    result, objective = searched(5)
    other = pickle.loads(pickle.dumps(objective))
    said = r"of 5 configurations are not here any more and are computed again \(25 fits\)"
    with pytest.warns(UserWarning, match=said):
        again = selected(result, other)
    assert [m.trial.number for m in again.members] == [m.trial.number for m in selected(result, objective).members]
    kept, first = searched(5, predictions=tmp_path / "kept")
    second = mc.CrossValidated(build, X, NAMES, scoring="neg_log_loss", predictions=tmp_path / "kept")
    assert selected(kept, second).members == selected(kept, first).members  # no warning, because the files are shared


def test_the_result_of_a_search_holds_its_objective() -> None:
    objective = mc.CrossValidated(build, X, NAMES, scoring="neg_log_loss")
    result = mc.minimize(objective, declared(), 4, optimizer="random", progress=False)
    assert result.objective is objective
    assert mc.ensemble(result).classes_.tolist() == ["no", "yes"]
    assert pickle.loads(pickle.dumps(result)).objective is None


def test_results_without_predictions_are_refused() -> None:
    result = mc.minimize(lambda config: 1.0, declared(), 2, optimizer="random", progress=False)
    with pytest.raises(ObjectiveError, match=r"the objective is function .* minimize a mc\.CrossValidated"):
        mc.ensemble(result)
    _, objective = searched(1)
    empty = mc.Result((), "nothing")
    with pytest.raises(MipcashError, match="no evaluation of 'nothing' succeeded yet"):
        mc.ensemble(empty, objective)
    with pytest.raises(ObjectiveError, match="the result brings no objective"):
        mc.ensemble(empty)
    for wrong in ({"size": 0}, {"best": 1.5}):
        with pytest.raises(ValueError, match="must be a whole number, at least 1"):
            mc.ensemble(result, objective, **wrong)
    with pytest.raises(TypeError, match=r"result must be what mc\.minimize returned, got int 3"):
        mc.ensemble(3)  # type: ignore[arg-type]


def test_an_objective_with_other_labels_is_refused() -> None:
    result, _ = searched(5)
    labels = np.random.default_rng(0).permutation(NAMES)
    other = mc.CrossValidated(build, X, labels, scoring="neg_log_loss")
    said = r"not that of the run: the loss of trial \d+ was .*; give the mc.CrossValidated with the data"
    with pytest.warns(UserWarning, match="computed again"), pytest.raises(DataError, match=said):
        selected(result, other)


def test_values_of_pairs_of_classes_are_not_taken_for_scores_of_classes() -> None:
    """Three classes have three pairs. Their softmax gave an ensemble of iris 0.21 of the rows instead of 0.99."""
    x, y = load_iris(return_X_y=True)
    for build in (SVC, lambda **settings: make_pipeline(StandardScaler(), SVC(**settings))):
        of_pairs, of_classes = build(decision_function_shape="ovo").fit(x, y), build().fit(x, y)
        assert np.array_equal(probabilities(of_pairs, x, np.arange(3)), np.eye(3)[of_pairs.predict(x)])
        spread = probabilities(of_classes, x, np.arange(3))
        assert len(np.unique(spread)) > 10
        assert np.mean(spread.argmax(axis=1) == of_classes.predict(x)) > 0.95


class FailsOften(LogisticRegression):
    """With C = 1, only the first of three folds succeeds."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if self.C == 1 and X[0, 0] < 1e-9:
            raise ValueError("singular matrix")
        return super().fit(X, y)


@pytest.mark.filterwarnings("ignore:a fold failed")
def test_a_configuration_that_failed_in_some_folds_is_no_member() -> None:
    """Its missing predictions counted as the first class, which most rows have."""
    y = np.repeat([0, 1], [70, 20])
    x = (y + np.arange(90) * 1e-9)[:, None]
    search = SpaceSearchCV(
        FailsOften(),
        {"C": [1, 1e-6, 1e-5]},
        n_iter=3,
        cv=StratifiedKFold(3),
        scoring="accuracy",
        error_score=0.0,
        ensemble_size=3,
        random_state=0,
    ).fit(x, y)
    failed = search.cv_results_["params"].index({"C": 1})
    assert search.cv_results_["mean_test_score"][failed] == pytest.approx(1 / 3)
    assert all(m.trial.config["C"] != 1 for m in search.ensemble_.members)
    assert 1 - search.ensemble_.loss() == pytest.approx(search.best_score_)


def with_leaves(estimator: Any, x: Any, y: Any) -> float:
    return float(estimator.score(x, y) - 0.001 * estimator.get_n_leaves())


def of_long_rows(estimator: Any, x: Any, y: Any) -> float:
    long = x[:, 0] > 5.8
    return float(estimator.score(x[long], y[long])) if long.any() else np.nan


@pytest.mark.parametrize(
    ("scoring", "reason"), [(with_leaves, "AttributeError: .*get_n_leaves"), (of_long_rows, "it is not finite")]
)
def test_a_score_that_needs_more_than_predictions_has_no_ensemble(scoring: Any, reason: str) -> None:
    """An error after the search lost its result, and rows of probabilities were taken for those of the table."""
    x, y = load_iris(return_X_y=True)
    grid = {"max_depth": [1, 2, 3], "min_samples_leaf": [1, 5]}
    search = SpaceSearchCV(
        DecisionTreeClassifier(random_state=0), grid, n_iter=3, cv=3, scoring=scoring, ensemble_size=3, random_state=0
    )
    with pytest.warns(UserWarning, match=rf"there is no ensemble, only its best configuration: .*\({reason}"):
        search.fit(x, y)
    assert isinstance(search.best_estimator_, DecisionTreeClassifier)
    assert not hasattr(search, "ensemble_")
    assert search.score(x, y) > 0.9
