"""``PipelineSearchCV`` and scikit-learn's ``RandomizedSearchCV`` on one data set, over the same pipelines and ranges.

    python -m benchmarks.sklearn_search run --seeds 8 --out docs/images/scikit-learn.json
    python -m benchmarks.sklearn_search draw docs/images/scikit-learn.json --out docs/images/scikit-learn.svg

The pipelines have 4 scalers, 3 reductions and 5 classifiers with 12 hyperparameters. Both searches get the same space.
Each search may evaluate 40 pipelines on the same five folds of 400 rows. Its answer, refitted, is scored on 4,000 fresh
rows.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RandomizedSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler
from sklearn.svm import SVC

import mipcash as mc
from mipcash.integrations.sklearn import PipelineSearchCV
from mipcash.integrations.spaces.param_distributions import domain_of

ROWS, FRESH, EVALUATIONS = 400, 4000, 40
OURS, THEIRS = "PipelineSearchCV", "RandomizedSearchCV"
STEPS: dict[str, dict[str, tuple[Any, dict[str, Any]]]] = {
    "scale": {
        "none": ("passthrough", {}),
        "standard": (StandardScaler(), {}),
        "minmax": (MinMaxScaler(), {}),
        "quantile": (QuantileTransformer(n_quantiles=100), {}),
    },
    "reduce": {
        "none": ("passthrough", {}),
        "pca": (PCA(), {"n_components": randint(2, 20)}),
        "select": (SelectKBest(), {"k": randint(2, 20)}),
    },
    "model": {
        "svm": (SVC(), {"C": loguniform(1e-2, 1e3), "gamma": loguniform(1e-4, 1e1)}),
        "logistic": (LogisticRegression(max_iter=300), {"C": loguniform(1e-3, 1e3)}),
        "neighbours": (KNeighborsClassifier(), {"n_neighbors": randint(1, 50), "weights": ["uniform", "distance"]}),
        "forest": (RandomForestClassifier(100), {"max_features": uniform(0.05, 0.95), "min_samples_leaf": randint(1, 20)}),
        "boosting": (
            HistGradientBoostingClassifier(max_iter=60),
            {"learning_rate": loguniform(0.01, 0.5), "max_leaf_nodes": randint(3, 40), "l2_regularization": loguniform(1e-3, 10)},
        ),
    },
}
"""Step -> name -> estimator with the domains of its hyperparameters."""


def space() -> mc.Space:
    """Return the pipelines as a space."""
    made = mc.Space("pipelines")
    for step, choices in STEPS.items():
        made.module(step, {a: {n: domain_of(n, d) for n, d in tuned.items()} for a, (_, tuned) in choices.items()})
    return made


def grids() -> list[dict[str, Any]]:
    """Return the pipelines as dicts of distributions, one per choice of algorithms."""
    found: list[dict[str, Any]] = [{}]
    for step, choices in STEPS.items():
        blocks = [{step: [e], **{f"{step}__{n}": d for n, d in tuned.items()}} for e, tuned in choices.values()]
        found = [{**before, **block} for before in found for block in blocks]
    return found


def searches(seed: int) -> dict[str, Any]:
    """Return both searches for a seed."""
    shared = {"n_iter": EVALUATIONS, "scoring": "roc_auc", "cv": StratifiedKFold(5, shuffle=True, random_state=0)}
    estimators = {f"{step}.{a}": e for step, choices in STEPS.items() for a, (e, _) in choices.items()}
    empty = Pipeline([(step, "passthrough") for step in STEPS])
    return {
        OURS: PipelineSearchCV(space(), estimators=estimators, task="classification", random_state=seed, **shared),
        THEIRS: RandomizedSearchCV(empty, grids(), random_state=seed, **shared),
    }


def run(seeds: int) -> list[dict[str, Any]]:
    """Return a row per search and seed."""
    x, y = make_classification(
        ROWS + FRESH, 20, n_informative=6, n_redundant=4, n_clusters_per_class=3, flip_y=0.06, class_sep=0.9, random_state=71
    )
    rows = []
    for seed in range(seeds):
        for name, search in searches(seed).items():
            began = time.process_time()
            search.fit(x[:ROWS], y[:ROWS])
            scores = np.nan_to_num(search.cv_results_["mean_test_score"], nan=0.0)
            fresh = float(search.score(x[ROWS:], y[ROWS:]))
            row = {"search": name, "seed": seed, "best": np.maximum.accumulate(scores).tolist(), "fresh": fresh}
            rows.append({**row, "cpu": time.process_time() - began})
            print(name, seed, f"{max(scores):.4f} {fresh:.4f} {rows[-1]['cpu']:.0f} s", flush=True)
    return rows


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the best score so far and the scores on fresh rows."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8.4, 3.2), width_ratios=(2, 1), layout="constrained")
    for k, (name, colour) in enumerate(((THEIRS, "#888888"), (OURS, "#00796b"))):
        best = np.array([row["best"] for row in rows if row["search"] == name])
        mean, error = best.mean(axis=0), best.std(axis=0, ddof=1) / np.sqrt(len(best))
        at = np.arange(1, best.shape[1] + 1)
        left.plot(at, mean, color=colour, label=name)
        left.fill_between(at, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
        fresh = [row["fresh"] for row in rows if row["search"] == name]
        right.plot(np.full(len(fresh), k) + np.linspace(-0.1, 0.1, len(fresh)), fresh, "o", color=colour, alpha=0.7)
    left.set(xlabel="pipelines evaluated", ylabel="best AUC of five folds", ylim=(0.80, None))
    left.legend(frameon=False)
    right.set(xticks=(0, 1), xticklabels=("Randomized", "Pipeline"), ylabel="AUC on fresh rows", xlim=(-0.5, 1.5))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("--seeds", type=int, default=8)
    drawing = commands.add_parser("draw")
    drawing.add_argument("record", type=Path)
    for command in (running, drawing):
        command.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if given.command == "run":
        given.out.write_text(json.dumps(run(given.seeds), indent=1) + "\n", encoding="utf-8")
    else:
        draw(json.loads(given.record.read_text(encoding="utf-8")), given.out)


if __name__ == "__main__":
    main()
