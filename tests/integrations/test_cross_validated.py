"""CrossValidated: folds, losses and out-of-fold predictions equal scikit-learn's, and invalid data are named."""

from __future__ import annotations

import pickle
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB

import mipcash as mc
from mipcash.errors import DataError
from mipcash.integrations.sklearn.fitting import FEW_CELLS, SILENT, FewThreads

X, Y = load_iris(return_X_y=True)
NUMBERS = load_diabetes(return_X_y=True)
CONFIG = {"smoothing": 1e-6}


def bayes(config: Mapping[str, Any]) -> Any:
    return GaussianNB(var_smoothing=config["smoothing"])


def ridge(config: Mapping[str, Any]) -> Any:
    return Ridge(alpha=config["alpha"])


def made(**changes: Any) -> mc.CrossValidated:
    options = {"build": bayes, "x": X, "y": Y, "scoring": "neg_log_loss", **changes}
    return mc.CrossValidated(options.pop("build"), options.pop("x"), options.pop("y"), **options)


@pytest.mark.parametrize(("scoring", "perfect"), [("roc_auc_ovr", 1.0), ("neg_log_loss", 0.0)])
def test_the_loss_is_that_of_cross_val_score(scoring: str, perfect: float) -> None:
    objective = made(scoring=scoring, seed=3)
    cv = StratifiedKFold(5, shuffle=True, random_state=3)
    scores = cross_val_score(bayes(CONFIG), X, Y, cv=cv, scoring=scoring)
    assert objective.evaluate(CONFIG) == {"loss": perfect - scores.mean()}
    assert [fold["loss"] for fold in objective(CONFIG)] == [perfect - s for s in scores]


def test_regression_uses_folds_without_strata() -> None:
    objective = mc.CrossValidated(ridge, *NUMBERS, scoring="r2", folds=4)
    scores = cross_val_score(Ridge(alpha=0.5), *NUMBERS, cv=KFold(4, shuffle=True, random_state=0), scoring="r2")
    assert objective.evaluate({"alpha": 0.5})["loss"] == 1.0 - scores.mean()
    assert objective.task == "regression"
    assert objective.out_of_fold({"alpha": 0.5}).shape == (len(NUMBERS[1]),)
    whole = mc.CrossValidated(ridge, NUMBERS[0], NUMBERS[1].astype(int), scoring="neg_mean_squared_error")
    assert whole.task == "regression"  # the score is for regression, although integral targets could be classes


def test_out_of_fold_predictions_are_those_of_cross_val_predict() -> None:
    objective = made(y=np.array(["b", "a", "c"])[Y])
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    expected = cross_val_predict(bayes(CONFIG), X, objective.y, cv=cv, method="predict_proba")
    assert np.array_equal(objective.out_of_fold(CONFIG), expected)
    assert np.array_equal(objective.classes, ["a", "b", "c"])
    flat = made(build=lambda config: Plain(), scoring="accuracy")  # the predicted class has probability 1
    assert set(np.unique(flat.out_of_fold({}))) == {0.0, 1.0}
    decided = made(build=lambda config: RidgeClassifier(), scoring="accuracy")
    ranked = cross_val_predict(RidgeClassifier(), X, Y, cv=cv, method="decision_function")
    assert np.array_equal(np.argsort(decided.out_of_fold({}), axis=1), np.argsort(ranked, axis=1))


class Plain(DummyClassifier):
    """Neither ``predict_proba`` nor ``decision_function``."""

    predict_proba = property()


def test_warnings_are_silent_while_a_thread_fits_and_not_after(recwarn: pytest.WarningsRecorder) -> None:
    """Two evaluations overlap: the first to begin is the first to end."""
    begun, over = threading.Event(), threading.Event()

    def other() -> None:
        with SILENT:
            begun.set()
            over.wait(10)
            warnings.warn("unheard", stacklevel=1)

    thread = threading.Thread(target=other)
    with SILENT:
        thread.start()
        assert begun.wait(10)
    over.set()
    thread.join()
    warnings.warn("heard", stacklevel=1)
    assert [str(w.message) for w in recwarn] == ["heard"]


@pytest.mark.parametrize("grouped", [False, True])
def test_fresh_folds_differ_from_the_folds_of_the_search(grouped: bool) -> None:
    objective = made(groups=np.arange(len(Y)) // 2 if grouped else None)
    seen = {tuple(held_out) for _, held_out in objective.splits()}
    for repeat in range(1, 4):
        for train, held_out in objective.splits(repeat):
            assert not set(train) & set(held_out)
            assert tuple(held_out) not in seen
            seen.add(tuple(held_out))
            if grouped:
                assert not set(objective.groups[train]) & set(objective.groups[held_out])
        assert sorted(np.concatenate([h for _, h in objective.splits(repeat)])) == list(range(len(Y)))
    assert [tuple(h) for _, h in objective.splits(2)] == [tuple(h) for _, h in objective.splits(2)]
    first, second = objective.evaluate(CONFIG), objective.evaluate(CONFIG, repeat=1)
    assert first != second
    assert objective.evaluate(CONFIG, repeat=1) == second
    few = mc.CrossValidated(ridge, np.eye(4), np.arange(4) / 3, scoring="neg_mean_squared_error", folds=4)
    assert sorted(int(h[0]) for _, h in few.splits(1)) == [0, 1, 2, 3]  # no other partition exists


def test_measure_and_finish_add_outputs() -> None:
    objective = made(measure=lambda fold: {"rows": len(fold.train)}, finish=lambda folds: {"fits": len(folds)})
    assert next(iter(objective(CONFIG)))["rows"] == 120
    assert objective.evaluate(CONFIG).keys() == {"loss", "rows", "fits"}
    assert objective.evaluate(CONFIG)["fits"] == 5


class Counting:
    """Build function that counts its calls."""

    calls = 0

    def __call__(self, config: Mapping[str, Any]) -> Any:
        Counting.calls += 1
        return bayes(config)


@pytest.mark.parametrize("kept", ["memory", "folder"])
def test_predictions_are_kept(kept: str, tmp_path: Path) -> None:
    folder = None if kept == "memory" else tmp_path / "predictions"
    objective = made(build=Counting(), predictions=folder)
    stopped = objective(CONFIG)
    next(stopped)
    stopped.close()  # predictions of an unfinished evaluation are not kept
    Counting.calls = 0
    objective.evaluate(CONFIG)
    assert Counting.calls == 5
    known = objective.out_of_fold({"smoothing": np.float64(1e-6)})
    assert Counting.calls == 5
    other = pickle.loads(pickle.dumps(objective))
    assert np.array_equal(other.out_of_fold(CONFIG), known)
    assert Counting.calls == (10 if kept == "memory" else 5)  # pickling shares files, but not predictions in memory
    if kept == "folder":
        elsewhere = made(build=Counting(), predictions=folder, seed=1)  # other folds have separate files
        assert not np.array_equal(elsewhere.out_of_fold(CONFIG), known)
        for file in (tmp_path / "predictions").glob("*.npz"):
            file.write_bytes(file.read_bytes()[:50])
        assert np.array_equal(objective.out_of_fold(CONFIG), known)  # a truncated file is computed again


BAD = [
    ({"y": Y[:-1]}, "y has 149 values and x 150 rows"),
    ({"y": np.where(np.arange(150) < 1, 3, Y)}, "class '3' has 1 row, fewer than the 5 folds: merge or drop"),
    ({"scoring": "acuracy"}, "no scoring 'acuracy'; did you mean 'accuracy'"),
    ({"scoring": 3}, "scoring must be a name"),
    ({"y": np.where(np.arange(150) < 2, np.nan, Y)}, "y has 2 missing values"),
    ({"y": Y + np.arange(150) / 1000}, "neg_log_loss scores classes, and y holds numbers"),
    ({"y": np.zeros(150)}, "one class only"),
    ({"y": np.stack([Y, Y], axis=1)}, r"one value per row, got an array of shape \(150, 2\)"),
    ({"folds": 1}, "folds must be a whole number, at least 2"),
    ({"folds": 200, "scoring": "accuracy"}, "150 rows cannot make 200 folds"),
    ({"groups": np.arange(3)}, "groups has 3 values and x 150 rows"),
    ({"groups": np.arange(150) // 50}, "3 groups cannot make 5 folds"),
    ({"task": "clustering"}, "task must be 'classification' or 'regression'"),
    ({"y": np.array(["a", "b", "c"])[Y], "task": "regression"}, "regression needs numbers"),
    ({"build": LogisticRegression()}, "build must be a function of a configuration"),
    ({"scoring": "roc_auc"}, "roc_auc does not take what y holds: .*'roc_auc_ovr' or 'f1_macro'"),
    ({"scoring": "f1", "y": np.array(["no", "yes", "yes"])[Y]}, "f1 does not take what y holds: pos_label=1"),
    ({"scoring": "r2", "y": np.where(Y == 1, np.inf, 0.5)}, "y has 50 infinite values; drop those rows"),
    ({"scoring": "accuracy", "y": Y + 0.25}, "holds numbers such as float 0.25;"),
    ({"seed": -1}, r"seed must be a whole number from 0 to 2\*\*32 - 1, got -1"),
]


def test_invalid_data_are_named_before_any_evaluation() -> None:
    for changes, said in BAD:
        with pytest.raises(DataError, match=said):
            made(**changes)


def test_errors_found_during_an_evaluation_name_their_cause() -> None:
    nan = made(scoring=lambda estimator, x, y: float("nan"))
    with pytest.raises(mc.Failed, match="is nan on fold 0 of 5: it is not defined for what was predicted there"):
        nan.evaluate(CONFIG)
    with pytest.raises(DataError, match="build returned None, which has no fit"):
        made(build=lambda config: None).evaluate(CONFIG)


def test_sparse_matrices_of_any_format() -> None:
    from scipy.sparse import coo_matrix, csr_matrix

    build = dict[str, Any](build=lambda _: LogisticRegression(max_iter=50))
    losses = [made(**build, x=kind(X)).evaluate({})["loss"] for kind in (coo_matrix, csr_matrix)]
    assert losses[0] == losses[1]


def test_one_thread_for_small_tables_until_the_last_of_several_evaluations_ends() -> None:
    from threadpoolctl import threadpool_info, threadpool_limits

    def threads() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with threadpool_limits(2):
        before, one = threads(), FewThreads.of(np.zeros((9, 2)))
        other = FewThreads.of(np.broadcast_to(0.0, (FEW_CELLS, 2)))
        one.__enter__()
        one.__enter__()
        one.__exit__()
        assert threads() <= {1}  # the set is empty if threadpoolctl does not know the BLAS of NumPy
        one.__exit__()
        assert threads() == before
        with pickle.loads(pickle.dumps(other)):
            assert threads() == before
        with pickle.loads(pickle.dumps(one)):
            assert threads() <= {1}
