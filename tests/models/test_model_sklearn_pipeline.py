"""sklearn_pipeline: legal pipelines fit, and their code is the pipeline."""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mipcash.errors import ModelError
from mipcash.modelling.domains import Integer, Real
from mipcash.models import sklearn_pipeline as model
from mipcash.models._data import table

space = model.space
ORDER = ("scaler", "transformer", "selector")


def config(order: tuple[str, ...] = ORDER, **choices: Any) -> dict[str, Any]:
    """A configuration from ``module="algorithm"`` and ``module__name=value``; other hyperparameters at their lowest."""
    chosen = {"scaler": "none", "transformer": "none", "selector": "none", "estimator": "gaussian_nb"}
    chosen |= {m: a for m, a in choices.items() if "__" not in m}
    found: dict[str, Any] = {**chosen, "order": order}
    for module, name in chosen.items():
        algorithm = model.MODULES[module][name]
        for hyper, domain in algorithm.tuned.items() if algorithm else ():
            low = domain.low if isinstance(domain, (Real, Integer)) else domain.values[0]
            found[f"{module}.{name}.{hyper}"] = choices.get(f"{module}__{hyper}", low)
    return found


def broken(settings: dict[str, Any], where: Any = space) -> str:
    return "; ".join(map(str, where.validate(settings)))


def test_table_a3_is_there() -> None:
    names = {module: set(algorithms) for module, algorithms in model.MODULES.items()}
    assert names["scaler"] == {"none", "normalizer", "quantile", "minmax", "standard", "robust"}
    assert names["transformer"] == {"none", "pca", "polynomial"}
    table_a3 = {"gaussian_nb", "qda", "gradient_boosting", "knn", "random_forest", "extra_trees"}
    assert table_a3 < names["estimator"]


def test_the_declared_facts_are_those_of_the_data() -> None:
    assert model.Facts.of(table("breast_cancer"), 5) == model.BREAST_CANCER
    from sklearn.model_selection import StratifiedKFold

    data = table("breast_cancer")
    folds = [train for train, _ in StratifiedKFold(5, shuffle=True, random_state=0).split(data.x, data.y)]
    assert min(len(f) for f in folds) == model.BREAST_CANCER.fold_rows
    assert min(np.bincount(data.y[f]).min() for f in folds) == model.BREAST_CANCER.fold_class_rows


LEGAL = [
    config(),
    config(scaler="standard", estimator="logistic_regression"),
    config(scaler="standard", transformer="pca"),
    config(("selector", "scaler", "transformer"), selector="fpr", scaler="robust", transformer="pca"),
    config(
        ("selector", "scaler", "transformer"), selector="percentile", selector__score_func="chi2", scaler="standard"
    ),
    config(
        ("transformer", "scaler", "selector"), transformer="polynomial", scaler="minmax", estimator="multinomial_nb"
    ),
    config(
        ("selector", "transformer", "scaler"),
        selector="percentile",
        selector__percentile=16,
        transformer="polynomial",
        transformer__degree=3,
        scaler="standard",
        estimator="extra_trees",
    ),
]
ILLEGAL = [
    ("quantiles", config(scaler="quantile", scaler__n_quantiles=456)),
    ("more leaves", config(estimator="gradient_boosting", estimator__max_leaf_nodes=3)),
    ("none stands after", config(transformer="polynomial")),
    ("none stands before", config(("selector", "transformer", "scaler"))),
    ("robust does something", config(scaler="robust", scaler__with_centering=False, scaler__with_scaling=False)),
    ("pca needs columns", config(("transformer", "scaler", "selector"), transformer="pca")),
    ("pca comes after the scaler", config(("transformer", "scaler", "selector"), transformer="pca", scaler="standard")),
    ("pca comes after the selector", config(transformer="pca", scaler="standard", selector="fpr")),
    ("logistic regression needs", config(scaler="normalizer", estimator="logistic_regression")),
    (
        "normalizer comes before",
        config(("selector", "scaler", "transformer"), scaler="normalizer", selector="fpr"),
    ),
    (
        "variances differ",
        config(("scaler", "selector", "transformer"), scaler="standard", selector="variance_threshold"),
    ),
    (
        "normalized columns vary little",
        config(
            ("scaler", "selector", "transformer"),
            scaler="normalizer",
            selector="variance_threshold",
            selector__threshold=2e-4,
        ),
    ),
    ("inputs from standard", config(scaler="standard", estimator="multinomial_nb")),
    (
        "inputs from normal quantiles",
        config(scaler="quantile", scaler__output_distribution="normal", estimator="multinomial_nb"),
    ),
    ("inputs from pca", config(scaler="minmax", transformer="pca", estimator="multinomial_nb")),
    (
        "chi2: no negative inputs from robust",
        config(
            ("scaler", "selector", "transformer"), scaler="robust", selector="percentile", selector__score_func="chi2"
        ),
    ),
    (
        "at most 9 columns",
        config(
            ("selector", "transformer", "scaler"),
            selector="percentile",
            selector__percentile=31,
            transformer="polynomial",
            estimator="random_forest",
        ),
    ),
    ("of a percentile", config(("transformer", "selector", "scaler"), transformer="polynomial", estimator="qda")),
]


def test_rules() -> None:
    assert not any(map(broken, LEGAL))
    for rule, settings in ILLEGAL:
        assert rule in broken(settings)


def test_negative_data_need_scaling_first() -> None:
    facts = model.Facts(columns=10, nonnegative=False, fold_rows=100, fold_class_rows=40)
    declared = model.declare(facts)
    assert "negative data" in broken(config(estimator="multinomial_nb"), declared)
    assert not broken(config(scaler="minmax", estimator="multinomial_nb"), declared)
    late = ("selector", "scaler", "transformer")
    settings = config(late, scaler="minmax", selector="percentile", selector__score_func="chi2")
    assert "the data has negatives" in broken(settings, declared)
    wide = model.declare(model.Facts(columns=40, nonnegative=True, fold_rows=100, fold_class_rows=40))
    assert "of a percentile" in broken(config(estimator="qda"), wide)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("limit", [4, 60, 500])
def test_most_inputs(degree: int, limit: int) -> None:
    from sklearn.preprocessing import PolynomialFeatures

    k = model.most_inputs(degree, limit)
    assert math.comb(k + degree, degree) <= limit < math.comb(k + 1 + degree, degree)
    if k:
        assert PolynomialFeatures(degree).fit(np.zeros((1, k))).n_output_features_ <= limit


def test_a_percentile_keeps_as_many_columns_as_the_rules_say() -> None:
    from sklearn.feature_selection import SelectPercentile

    data = table("breast_cancer")
    for percentile in range(1, 100):
        kept = SelectPercentile(percentile=percentile).fit(data.x, data.y).get_support().sum()
        assert 1 <= kept <= math.ceil(percentile * 30 / 100)


def test_samples_fit() -> None:
    assert space.sample(2, seed=5) == space.sample(2, seed=5)
    for settings in [LEGAL[0], *space.sample(8, seed=4)]:
        result = model.objective.evaluate(settings)
        assert 0 <= result["loss"] < 0.7, settings
        assert result["fit_seconds"] > 0


def test_every_choice_fits_alone() -> None:
    """Each algorithm in a pipeline of its own, at both ends of its ranges."""
    data = table("breast_cancer")
    partner = {"pca": {"scaler": "standard"}, "logistic_regression": {"scaler": "standard"}}
    for module, algorithms in model.MODULES.items():
        for name, algorithm in algorithms.items():
            if algorithm is None:
                continue
            order = (module, *(m for m in ORDER if m != module)) if module in ORDER and name != "pca" else ORDER
            highest = {
                f"{module}__{h}": d.high if isinstance(d, (Real, Integer)) else d.values[-1]
                for h, d in algorithm.tuned.items()
            }
            highest.update(
                {k: v for k, v in {"scaler__n_quantiles": 455, "scaler__with_scaling": True}.items() if k in highest}
            )
            highest.update({"transformer__degree": 2} if "transformer__degree" in highest else {})
            for ends in ({}, highest):
                settings = config(order, **{module: name}, **partner.get(name, {}), **ends)
                if name == "gradient_boosting" and not ends:
                    assert settings["estimator.gradient_boosting.max_leaf_nodes"] == 2
                assert not broken(settings)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    assert model.pipeline(settings).fit(data.x, data.y).score(data.x, data.y) > 0.3


@pytest.mark.parametrize("settings", LEGAL[1:])
def test_code_runs_on_its_own(settings: dict[str, Any]) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(model.code(settings), {})
    found = model.objective.evaluate(settings)["loss"]
    assert 1 - float(printed.getvalue()) == pytest.approx(found, abs=1e-12)
    assert 0 <= found < 0.7


def test_a_csv_file_and_another_metric(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    rows = [
        f"{a:.3f},{'red' if a + b > 0 else 'blue'},{b:.3f},{'yes' if a > b else 'no'}"
        for a, b in rng.normal(size=(90, 2))
    ]
    path = tmp_path / "made.csv"
    path.write_text("\n".join(["a,colour,b,label", *rows]))
    options = {"data": str(path), "target": "label", "metric": "log_loss", "folds": "3", "seed": "1"}
    declared, objective = model.build(**options)
    settings = LEGAL[2]
    assert not broken(settings, declared)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(model.code(settings, **options), {})
    assert -float(printed.getvalue()) == pytest.approx(objective.evaluate(settings)["loss"], rel=1e-9)


def test_report() -> None:
    text = model.report(SimpleNamespace(config=LEGAL[1], value=0.02, values={}), folds=2)
    assert "model = Pipeline([" in text
    for line in (
        "best pipeline found",
        "StandardScaler + LogisticRegression, defaults",
        "RandomForestClassifier, defaults",
    ):
        assert line in text


def test_options_are_checked() -> None:
    with pytest.raises(ModelError, match="balanced_accuracy"):
        model.build(metric="precision")
    with pytest.raises(ModelError, match="below 2"):
        model.build(folds="1")


# -- what may be limited --------------------------------------------------------------------------------------------


def unfair(path: Path) -> str:
    """Classes that can be told of the reds and not of the blues."""
    rng = np.random.default_rng(0)
    rows = []
    for k in range(120):
        a, group = rng.normal(), "red" if k % 2 else "blue"
        label = (a > 0) if group == "red" else bool(rng.random() < 0.5)
        rows.append(f"{a:.4f},{group},{k % 60},{'yes' if label else 'no'}")
    path.write_text("\n".join(["a,group,age,target", *rows]))
    return str(path)


def test_disparity_comes_with_a_protected_column(tmp_path: Path) -> None:
    data = unfair(tmp_path / "made.csv")
    settings = config(scaler="standard", estimator="logistic_regression")
    fair = model.build(data=data, folds=3)[1].evaluate(settings)
    assert fair.keys() == {"loss", "fit_seconds", "latency_ms", "single_ms", "model_bytes"}
    told = model.build(data=data, folds=3, protected="group")[1].evaluate(settings)
    assert told["loss"] == fair["loss"]
    assert 0.2 < told["disparity"] < 0.8
    assert told["latency_ms"] > 0.0
    text = model.report(SimpleNamespace(config=settings), data=data, folds=3, protected="group")
    assert "latency_ms" in text
    assert "disparity" in text
    with pytest.raises(ModelError, match="no column 'sex' to group by; choose one of a, group, age"):
        model.build(data=data, protected="sex")
    with pytest.raises(ModelError, match="give the data as a CSV file"):
        model.build(protected="group")


def test_groups_of_numbers_are_quarters(tmp_path: Path) -> None:
    loaded = table(unfair(tmp_path / "made.csv"))
    assert np.bincount(loaded.groups("age")).tolist() == [30, 30, 30, 30]
    assert np.bincount(loaded.groups("group")).tolist() == [60, 60]
    (tmp_path / "one.csv").write_text("a,b,target\n1,2,x\n1,3,y\n1,2,x\n1,3,y\n")
    with pytest.raises(ModelError, match="one value only"):
        table(str(tmp_path / "one.csv")).groups("a")
