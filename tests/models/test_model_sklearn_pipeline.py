"""Model ``sklearn_pipeline``: Tables A2 and A3 are complete, legal pipelines fit, and mistakes are named."""

from __future__ import annotations

import contextlib
import gc
import io
import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.errors import ModelError
from mipcash.models import _automl_rules as rules
from mipcash.models import sklearn_pipeline as model
from mipcash.models._automl_algorithms import modules_of
from mipcash.models._data import CLASSIFICATION, REGRESSION, table
from mipcash.models._pipeline_parts import Facts, made, written
from mipcash.study.minimize import run

SONAR = Facts(columns=60, nonnegative=True, fold_rows=166, fold_class_rows=77)
NARROW = Facts(columns=10, nonnegative=False, fold_rows=4377, fold_class_rows=447, straddles=False)


def pipelines(space: str = "a2", regression: bool = False, columns: int = 60, **more: Any) -> model.Pipelines:
    return model.Pipelines(space, regression, columns, **more)


@pytest.mark.parametrize("regression", [False, True])
def test_the_tables_are_complete(regression: bool) -> None:
    """Check the sizes, numbers and kinds of hyperparameters of each algorithm (liu2020, Tables A2 and A3)."""
    modules = modules_of("a2", regression)
    assert [len(algorithms) for algorithms in modules.values()] == [8, 11, 7, 11]
    kinds = {
        name: (sum(isinstance(d, mc.Real) for d in c.tuned.values()), len(c.tuned)) if c else (0, 0)
        for algorithms in modules.values()
        for name, c in algorithms.items()
    }
    told = {
        **{"normalizer": (0, 0), "quantile": (0, 2), "minmax": (0, 0), "standard": (0, 0), "robust": (2, 4)},
        **{"binarizer": (0, 0), "kbins": (0, 2)},
        **{"sparse_projection": (1, 2), "gaussian_projection": (0, 1), "rbf_sampler": (1, 2), "nystroem": (2, 5)},
        **{"truncated_svd": (0, 2), "kernel_pca": (2, 6), "fast_ica": (0, 5), "factor_analysis": (0, 3), "pca": (1, 2)},
        **{"polynomial": (0, 3), "percentile": (0, 1), "fpr": (1, 1), "fdr": (1, 1), "fwe": (1, 1)},
        **{"variance_threshold": (1, 1), "importances": (0, 0)},
        **{"gradient_boosting": (3, 9), "knn": (0, 3), "random_forest": (1, 6), "extra_trees": (1, 6)},
        **{"adaboost": (1, 3), "decision_tree": (3, 6), "gaussian_process": (0, 2), "mlp": (2, 7)},
        **({"least_squares": (0, 0), "ridge": (1, 1), "sgd": (2, 5)} if regression else {}),
        **({} if regression else {"gaussian_nb": (0, 0), "qda": (1, 1), "logistic_regression": (2, 5)}),
        "none": (0, 0),
    }
    assert kinds == told
    assert sum(count for _, count in kinds.values()) == 92
    small = modules_of("a3", regression)
    assert [len(algorithms) for algorithms in small.values()] == [6, 3, 6]
    assert sum(len(c.tuned) for algorithms in small.values() for c in algorithms.values() if c) == 36


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("facts", [SONAR, NARROW, Facts(70, True, 8000, 30)])
def test_defaults_of_the_usual_space_are_legal_except_for_large_tables(facts: Facts, regression: bool) -> None:
    made_by = pipelines("usual", regression, facts.columns)
    space = made_by.declare(facts)
    broken = {config["estimator"] for config in made_by.defaults if space.validate(config)}
    assert broken == ({"svm"} if facts.fold_rows > rules.MOST_SVM_ROWS else set())
    assert bool(broken) == bool(space.optimum(space["estimator"]["svm"], "max").value == 0)


def test_the_usual_defaults_are_those_of_scikit_learn() -> None:
    for config in pipelines("usual", columns=13).defaults:
        _, estimator = pipelines("usual", columns=13)(config).steps[-1]
        told = estimator.get_params(deep=False)
        usual = type(estimator)(**{"estimator": None} if "estimator" in told else {}).get_params(deep=False)
        differ = {name for name in told if told[name] != usual[name]} - {"random_state", "estimator", "ensemble", "cv"}
        # max_features is the share that gives the square root of the columns; lsqr needs a shrinkage
        known = {"max_iter", "max_features", "shrinkage", "solver", "l2_regularization", "early_stopping"}
        assert differ <= known, differ
    for columns in (1, 3, 60, 500):
        found = pipelines("usual", columns=columns)
        forest = next(c for c in found.defaults if c["estimator"] == "random_forest")
        assert found.declare(Facts(columns, False, 300, 100)).validate(forest) == []
        x, y = np.random.default_rng(0).random((30, columns)), np.arange(30) % 2
        fitted = [found(forest).steps[-1][1].set_params(n_estimators=1).fit(x, y)]
        fitted.append(type(fitted[0])(n_estimators=1).fit(x, y))
        assert len({f.estimators_[0].max_features_ for f in fitted}) == 1


@pytest.mark.parametrize("data", ["wine", "diabetes"])
def test_each_estimator_of_the_usual_space_fits(data: str) -> None:
    space, objective = model.build(data=data, space="usual", folds=2)
    for estimator in space["estimator"].domain.values:
        if estimator == "mlp":
            continue  # slow, and built like the other estimators
        chosen = space.optimum(space["estimator"][estimator], "max").config
        assert chosen["estimator"] == estimator
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert np.isfinite(objective.evaluate(chosen)["loss"])


def test_rules_forbid_calibration_and_selection_that_would_fail() -> None:
    narrow = pipelines("usual", columns=1).declare(Facts(1, False, 20, 2))
    assert narrow.optimum(narrow["estimator"]["svm"], "max").value == 0
    assert narrow.optimum(narrow["selector"]["percentile"], "max").value == 0


def allowed(facts: Facts, scaler: str, transformer: str, selector: str, estimator: str) -> bool:
    """Return True if a composition is legal for some hyperparameters, by the rules in plain Python."""
    k, most = facts.columns, facts.fold_class_rows - 1
    if scaler == "binarizer" and not facts.straddles:
        return False
    if estimator == "gaussian_process" and facts.fold_rows > rules.MOST_GP_ROWS:
        return False
    width = {"none": k, "pca": k, "polynomial": (k + 2) * (k + 1) // 2}.get(transformer, 2)
    if transformer == "polynomial" and width > rules.MOST_FEATURES:
        return False
    return estimator != "qda" or width <= most or (selector == "percentile" and width <= 100 * most)


@pytest.mark.parametrize("facts", [NARROW, Facts(100, True, 80, 5)])
def test_compositions_under_rules_are_counted(facts: Facts) -> None:
    """Compare with an enumeration of all 6,776 compositions in plain Python."""
    made_by = pipelines(columns=facts.columns)
    every = list(product(*made_by.modules.values()))
    legal = sum(allowed(facts, *composition) for composition in every)
    ruled = made_by.declare(facts, tuned=False)
    assert int(ruled.count()) == legal < len(every) == 6776
    for i in np.random.default_rng(0).choice(len(every), 30, replace=False):
        config = dict(zip(made_by.modules, every[i], strict=True))
        assert bool(ruled.validate(config)) != allowed(facts, *every[i])


def broken(space: mc.Space, config: dict[str, Any], **changed: Any) -> str:
    return "; ".join(map(str, space.validate({**config, **changed})))


def config_of(space: mc.Space, **algorithms: str) -> dict[str, Any]:
    """Return a legal configuration with the given algorithms."""
    picked = [space[module][name] for module, name in algorithms.items()]
    found = space.optimum(sum(picked), "max")
    assert found.value == len(picked)
    return dict(found.config)


def test_rules_of_kernels() -> None:
    space = pipelines().declare(SONAR)
    config = config_of(space, scaler="standard", transformer="nystroem", selector="none", estimator="knn")
    kernel, gamma = "transformer.nystroem.kernel", "transformer.nystroem.gamma"
    assert "no negative inputs from standard" in broken(space, config, **{kernel: "chi2"})
    assert "gamma is of kernels rbf, poly, sigmoid, chi2 alone" in broken(
        space, config, **{kernel: "cosine", gamma: 2.0}
    )
    unused = {"transformer.nystroem.coef0": -1.0, "transformer.nystroem.degree": 2}
    assert not broken(space, config, **{kernel: "rbf", gamma: 2.0}, **unused)
    assert "n_neighbors at most the rows" not in broken(space, config, **{"estimator.knn.n_neighbors": 100})
    tight = pipelines().declare(Facts(60, True, 50, 20))
    assert "n_neighbors at most the rows" in broken(tight, config, **{"estimator.knn.n_neighbors": 100})


def test_with_an_order_selectors_may_come_first() -> None:
    wide = pipelines(order=True).declare(Facts(200, True, 166, 77))
    config = config_of(wide, scaler="standard", transformer="polynomial", selector="percentile", estimator="knn")
    assert list(config["order"]).index("selector") < list(config["order"]).index("transformer")
    steps = pipelines(order=True).steps(config)
    assert [name for name, _ in steps] == [*config["order"], "estimator"]
    fixed = pipelines().declare(Facts(200, True, 166, 77))
    assert fixed.optimum(fixed["transformer"]["polynomial"], "max").value == 0
    # an inactive module has one place: 5 x 2 pairs in two orders, 5 + 2 + 1 in one order, with 6 estimators
    ordered = pipelines("a3", columns=10, order=True).declare(NARROW, tuned=False)
    assert int(ordered.count()) == (2 * 10 + 8) * 6


@pytest.mark.parametrize(("data", "order"), [("wine", True), ("diabetes", False)])
def test_legal_pipelines_fit(data: str, order: bool) -> None:
    """Assert that failures have a cause that only the fit can find, and that their message names it."""
    found, objective = model.build(data=data, space="a2", ranges="small", folds=2, order=order)
    causes = ("Found array with 0 feature", "No feature in X meets", "eigenvalues", "NaN", "not full rank")
    done, failed = 0, []
    for config in found.sample(7, seed=3):
        if config["estimator"] in ("gaussian_process", "mlp"):
            continue
        try:
            outputs = objective.evaluate(config)
        except (ValueError, np.linalg.LinAlgError) as error:
            failed.append(str(error))
        else:
            done += np.isfinite(outputs["loss"])
    assert done >= 2
    assert [e for e in failed if not any(cause in e for cause in causes)] == []


@pytest.mark.parametrize("regression", [False, True])
def test_every_algorithm_is_built_as_it_is_written(regression: bool) -> None:
    """Build each algorithm at both ends of its ranges and call scikit-learn's parameter validation, as fit would do."""
    data = table("diabetes" if regression else "wine", task="auto")
    for ends in (0, -1):
        for algorithms in modules_of("a2", regression, "small").values():
            for name, algorithm in algorithms.items():
                if algorithm is None:
                    continue
                tuned = {
                    h: (d.low, d.high)[ends] if isinstance(d, (mc.Real, mc.Integer)) else d.values[ends]
                    for h, d in algorithm.tuned.items()
                }
                single = {"m": {"x": algorithm}}
                found = model.steps(single, {"m": "x", **{f"m.x.{h}": v for h, v in tuned.items()}}, ["m"], 0, 13)
                estimator = made(found[0][1])
                estimator._validate_params()
                text, paths = written(found[0][1])
                names: dict[str, Any] = {}
                exec("\n".join(f"from {p.rsplit('.', 1)[0]} import {p.rsplit('.', 1)[1]}" for p in paths), names)
                assert repr(eval(text, names)) == repr(estimator), name
                if name in ("quantile", "kernel_pca", "nystroem", "gaussian_process", "mlp", "adaboost", "polynomial"):
                    continue  # slow, or the upper end has more components than rows
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    rows = slice(None, None, 2)
                    if name not in ("fast_ica", "factor_analysis", "truncated_svd"):
                        estimator.fit(data.x[rows], data.y[rows])


def test_code_runs_on_its_own() -> None:
    for data, space in (("wine", "a2"), ("diabetes", "a3")):
        options = {"data": data, "space": space, "folds": "2"}
        found, objective = model.build(**options)  # type: ignore[arg-type]
        config = config_of(found, scaler="robust", transformer="pca", estimator="extra_trees")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(model.code(config, **options), {})
        assert 1 - float(printed.getvalue()) == pytest.approx(objective.evaluate(config)["loss"], abs=1e-12)


def test_the_report_has_fresh_folds_and_an_ensemble_of_predictions_of_other_processes() -> None:
    options = {"data": "wine", "space": "a3", "ranges": "small", "folds": "2", "held_out": "0.25"}
    found, objective = model.build(**options)  # type: ignore[arg-type]
    assert len(objective.y) == 133  # of 178
    folder = objective.predictions.folder
    result = mc.minimize(
        objective, found, 3, optimizer="random", seed=1, execution=mc.Execution(evaluation_timeout=60.0), progress=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no warning about predictions that are computed again
        text = model.report(result, **options)
    head, best, joined, linear, forest, ending = text.split("\n\n")[-1].splitlines()
    assert head.split("      ")[1].split("   ") == ["the search's folds", "fresh folds", "held out", "latency_ms"]
    held = model.Problem.of(**options).held  # type: ignore[arg-type]
    assert held is not None
    own = model.Problem.of(**options).pipelines(result.config).fit(objective.x, objective.y).score(held.x, held.y)  # type: ignore[arg-type]
    assert float(best.split()[5]) == pytest.approx(own, abs=1e-4)
    assert not {tuple(row) for row in held.x} & {tuple(row) for row in objective.x}
    assert float(best.split()[3]) == pytest.approx(1 - result.value, abs=1e-4)
    assert joined.split(",")[0].strip().startswith("ensemble of ")
    assert "StandardScaler + LogisticRegression" in linear
    assert "RandomForestClassifier" in forest
    assert "nothing was chosen on the fresh ones" in ending
    assert folder is not None
    assert folder.is_dir()
    del result, objective
    gc.collect()
    assert not folder.exists()


def test_the_report_compares_with_the_best_feasible_default() -> None:
    options = {"data": "wine", "folds": "2"}
    space, _ = model.build(**options)  # type: ignore[arg-type]
    cheap = [config for config in model.starts(**options) if config["estimator"] in ("gaussian_nb", "lda", "knn")]
    with mc.Study(space, "random", limits={"fold_0": (None, 1.0)}) as study:
        for config in cheap:
            study.enqueue(config)
        result = run(
            study,
            lambda config: {"loss": len(config["estimator"]), "fold_0": config["estimator"] == "lda"},
            3,
            progress=False,
        )
    rows = model.report(replace(result, objective=None), **options).split("\n\n")[-1].splitlines()
    assert any("best of 3 defaults: lda" in row for row in rows), rows


def test_a_regression_report_names_the_failure() -> None:
    options = {"data": "diabetes", "space": "a3", "folds": "2"}
    found, _ = model.build(**options)  # type: ignore[arg-type]
    config = config_of(found, scaler="standard", transformer="none", estimator="extra_trees")
    broken = {**config, "estimator.extra_trees.min_samples_split": 0}
    text = model.report(SimpleNamespace(config=broken, history=()), **options)
    assert "best pipeline found                            fails: InvalidParameterError" in text
    assert "StandardScaler + Ridge, defaults" in text
    assert "RandomForestRegressor, defaults" in text


# -- data and bad input ---------------------------------------------------------------------------------------------


def csv(path: Path, targets: list[Any], name: str = "target") -> str:
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{t}" for (a, b), t in zip(rng.normal(size=(len(targets), 2)), targets, strict=True)]
    path.write_text("\n".join([f"a,b,{name}", *rows]))
    return str(path)


@pytest.mark.parametrize(
    ("targets", "task"),
    [
        (["x", "y"] * 20, CLASSIFICATION),
        ([1, 2, 3, 4] * 10, CLASSIFICATION),
        ([0.5, 1.5] * 20, CLASSIFICATION),
        (list(range(40)), REGRESSION),
        ([0.1 * (k % 12) for k in range(60)], REGRESSION),
    ],
)
def test_the_task_is_found_from_the_data(tmp_path: Path, targets: list[Any], task: str) -> None:
    assert model.Problem.of(csv(tmp_path / "d.csv", targets), folds=2).data.task == task


def test_bad_input_is_refused_with_cause_and_cure(tmp_path: Path) -> None:
    path = csv(tmp_path / "d.csv", [*["x"] * 20, *["y"] * 20])
    few = csv(tmp_path / "three.csv", [*["x"] * 20, *["y"] * 3])
    once = csv(tmp_path / "one.csv", [*["x"] * 20, "y"])
    numbers = csv(tmp_path / "n.csv", list(range(40)))
    assert model.Problem.of(few, folds=3).folds == 3
    for options, message in (
        (
            {"data": path, "target": "klass"},
            "no column 'klass' to predict; choose one with target=, it has a, b, target",
        ),
        ({"data": path, "protected": "age"}, "no column 'age' to group by; choose one of a, b"),
        ({"data": once}, r"a class of 'target' occurs once; .* merge or drop it"),
        ({"data": few}, r"class 'y' has 3 rows, fewer than the 5 folds, .*; use fewer folds, more rows, or"),
        ({"data": numbers, "folds": 50}, "the table has 40 rows, fewer than the 50 folds"),
        ({"data": numbers, "held_out": "1.5"}, "held_out='1.5' is no share from 0 to below 1"),
        ({"data": "wine", "held_out": "0.01"}, "a share of 0.01 of 178 rows cannot be held out: "),
        ({"data": path, "task": "regression"}, "texts, which nothing regresses on; use task=classification"),
        ({"data": path, "metric": "r2"}, "option metric='r2' is not known; choose one of accuracy"),
        ({"data": path, "space": "a4"}, "choose one of usual, a2, a3"),
        ({"data": "diabetes", "task": "classification"}, "none of classification; use task=auto"),
        ({"data": "wine", "space": "usual", "ranges": "small"}, "ranges='small'"),
    ):
        with pytest.raises(ModelError, match=message):
            model.build(**options)
