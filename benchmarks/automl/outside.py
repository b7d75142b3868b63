"""FLAML and TPOT in a separate interpreter.

    python outside.py flaml|tpot JOB.npz OUT.json

Their packages need older versions of numpy and scikit-learn than ours, so this file imports nothing of this repository.

JOB.npz: ``x`` (rows, columns), ``y``, ``fold`` (rows,) the inner fold that tests a row, ``x_fresh``, and ``settings``,
JSON with ``task`` (binary, multiclass or regression), ``evaluations``, a list, and ``seed``.

OUT.json: a run for each number of evaluations. ``scores``, predictions for the fresh rows: for two classes the
probability of the second, shape (rows,); for more classes, shape (rows, classes); for regression the numbers. ``search``,
the lowest loss. ``evaluations`` and ``fits``, the numbers actually made. ``cpu``, CPU seconds without imports.
``chosen``, the pipeline in words.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # set before numpy is loaded
    os.environ[_name] = "1"

import numpy as np  # noqa: E402

METRIC = {"binary": "roc_auc", "multiclass": "roc_auc_ovr", "regression": "r2"}
POPULATION = 10
"""Population of TPOT. The default of 50 would be random search at 40 evaluations."""


def flaml(x: Any, y: Any, folds: Any, job: dict[str, Any]) -> Any:
    """Run FLAML with its own learners. ``max_iter`` counts configurations, each fitted on all folds."""
    from flaml import AutoML

    made = AutoML()
    fits = _counted(made)
    made.fit(
        x,
        y,
        task="regression" if job["task"] == "regression" else "classification",
        metric=METRIC[job["task"]],
        max_iter=job["evaluations"],
        time_budget=-1,
        eval_method="cv",
        split_type=folds,
        n_splits=folds.get_n_splits(),
        auto_augment=False,
        n_jobs=1,
        seed=job["seed"],
        verbose=0,
    )
    done = fits["configurations"]
    return made, float(made.best_loss), done, fits["fits"], f"{made.best_estimator} {made.best_config}"


def _counted(made: Any) -> dict[str, int]:
    """Count the configurations and fits of FLAML's cross-validation."""
    import flaml.automl.task.generic_task as task

    count = {"configurations": 0, "fits": 0}
    whole, one = task.GenericTask.evaluate_model_CV, task.get_val_loss

    def every(self: Any, *given: Any, **named: Any) -> Any:
        count["configurations"] += 1
        return whole(self, *given, **named)

    def each(*given: Any, **named: Any) -> Any:
        count["fits"] += 1
        return one(*given, **named)

    task.GenericTask.evaluate_model_CV, task.get_val_loss = every, each
    return count


def tpot(x: Any, y: Any, folds: Any, job: dict[str, Any]) -> Any:
    """Run TPOT with its default space ``linear``: selectors, transformers, inner classifiers, a classifier."""
    from tpot import TPOTClassifier, TPOTRegressor

    kind = TPOTRegressor if job["task"] == "regression" else TPOTClassifier
    made = kind(
        scorers=["r2" if job["task"] == "regression" else "roc_auc_ovr"],
        scorers_weights=[1],
        cv=folds,
        population_size=POPULATION,
        generations=job["evaluations"] // POPULATION,
        max_time_mins=None,
        max_eval_time_mins=5,
        n_jobs=1,
        processes=False,
        verbose=0,
        random_state=job["seed"],
    )
    made.fit(x, y)
    table = made.evaluated_individuals
    name = made.objective_names[0]
    worked = int(table[name].notna().sum())
    fits = worked * folds.get_n_splits()
    return made, 1.0 - float(table[name].max()), len(table), fits, str(made.fitted_pipeline_)


def scores(made: Any, x: Any, task: str) -> Any:
    """Return the predictions (see the module's description)."""
    if task == "regression":
        return made.predict(x)
    found = made.predict_proba(x)
    return found[:, 1] if task == "binary" else found


def main(method: str, job_file: str, out: str) -> None:
    from sklearn.model_selection import PredefinedSplit

    warnings.simplefilter("ignore")
    with np.load(job_file) as given:
        x, y, fold, x_fresh = (given[name] for name in ("x", "y", "fold", "x_fresh"))
        job = json.loads(str(given["settings"]))
    np.random.seed(job["seed"])  # noqa: NPY002 - what these programs draw from
    folds = PredefinedSplit(fold)
    if method == "tpot":
        import tpot as _
    else:
        import flaml as _  # noqa: F401
    runs = []
    for evaluations in job["evaluations"]:
        settings = {**job, "evaluations": evaluations}
        began = time.process_time()
        made, search, done, fits, chosen = (tpot if method == "tpot" else flaml)(x, y, folds, settings)
        spent = time.process_time() - began
        told = np.asarray(scores(made, x_fresh, job["task"]), dtype=float)
        found = {"scores": told.tolist(), "search": search, "evaluations": done, "fits": fits, "cpu": spent, "chosen": chosen[:500]}
        runs.append(found)
    record = {"runs": runs, "versions": _versions()}
    with open(out, "w", encoding="utf-8") as file:
        json.dump(record, file)
    sys.stdout.flush()
    os._exit(0)  # a normal exit would wait for dask's threads


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("flaml", "tpot", "scikit-learn", "lightgbm", "xgboost"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
