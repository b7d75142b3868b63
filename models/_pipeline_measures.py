"""What an evaluation of a pipeline gives: the loss, and what may be limited beside it.

* ``loss``: the perfect score minus the mean score over the folds,
* ``fit_seconds``: seconds that the fits of all folds took,
* ``latency_ms``: milliseconds in which BATCH = 1,000 rows are predicted at once, which is microseconds per row,
* ``single_ms``: milliseconds in which one row is predicted alone,
* ``model_bytes``: of the fitted pipeline, pickled,
* with a protected column ``disparity``, ``disparity_folds`` and ``fpr_disparity``: :mod:`mipcash.models._group_measures`.

Times and size are of the pipeline of the first fold. A time is the median over at least LEAST calls, and as many more as go into
SPENT seconds, at most MOST; one call before, which fills caches, does not count, and the garbage collector waits. It depends on
the machine and, as wall-clock, on what else runs there; ``clock="cpu"`` takes the CPU time of the process, where others compute
beside.
"""

from __future__ import annotations

import gc
import pickle
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipcash.errors import ModelError
from mipcash.integrations.sklearn.cross_validated import CrossValidated, Fold
from mipcash.models._data import CLASSIFICATION, Groups, Table, table
from mipcash.models._group_measures import ERROR, GroupMeasures

METRICS = {
    "accuracy": ("accuracy", 1.0),
    "balanced_accuracy": ("balanced_accuracy", 1.0),
    "f1": ("f1_macro", 1.0),
    "roc_auc": ("roc_auc_ovr", 1.0),
    "log_loss": ("neg_log_loss", 0.0),
    "r2": ("r2", 1.0),
    "rmse": ("neg_root_mean_squared_error", 0.0),
    "mae": ("neg_mean_absolute_error", 0.0),
}
OF_NUMBERS = ("r2", "rmse", "mae")
"""Metrics of regression; the others are of classes."""
"""Metric -> scikit-learn's scorer, and the perfect score; the loss is the perfect score minus the mean score."""
PROTECTED = {"german": "x9"}
"""Data -> the column that is protected unless another is given: of German credit, personal status and sex."""
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
BATCH = 1000
"""Rows that are predicted at once."""
LEAST, MOST, SPENT = 5, 50, 0.02


def groups_of(
    data: str, target: str, protected: str | None, edges: str | None = None, task: str = CLASSIFICATION
) -> Groups | None:
    """Groups by the protected column; None: no column is protected.

    That of PROTECTED counts for classes alone: groups are not compared by numbers.

    Raises:
        ModelError: there is no such column, it has one value, or edges are given without one.
    """
    column = protected or (PROTECTED.get(data) if task == CLASSIFICATION else None)
    if column is None:
        if edges:
            raise ModelError(f"option edges={edges!r} cuts the groups of a column; give protected=COLUMN too")
        return None
    return table(data, target, "auto").grouped(column, edges)


def objective_of(
    build: Callable[[Mapping[str, Any]], Any],
    data: Table,
    metric: str,
    folds: int,
    seed: int,
    groups: Groups | None = None,
    disparity_of: str = ERROR,
    clock: str = "wall",
) -> CrossValidated:
    """What cross-validates the pipelines that configurations build, and measures them.

    Raises:
        ModelError: groups of numbers, or one for which the disparity's metric is not defined.
    """
    scoring, perfect = METRICS[metric]
    grouped = None
    if groups is not None:
        if data.task != CLASSIFICATION:
            raise ModelError(
                f"groups of {groups.column!r} are compared by how well their classes are told, and the target holds numbers; "
                "leave protected= out"
            )
        grouped = GroupMeasures(groups, disparity_of)
        grouped.check(data.y)
    beside = Beside(grouped, clock)
    made = CrossValidated(build, data.x, data.y, scoring=scoring, folds=folds, seed=seed, task=data.task, finish=beside)
    assert made.scoring.perfect == perfect
    return made


@dataclass(frozen=True)
class Beside:
    """What is measured of all folds together.

    Attributes:
        grouped: of the groups of the rows, where a column is protected.
        clock: of CLOCKS.
    """

    grouped: GroupMeasures | None = None
    clock: str = "wall"

    def __call__(self, folds: Sequence[Fold]) -> dict[str, Any]:
        """Outputs beside the loss, see the module's description."""
        first, clock = folds[0], CLOCKS[self.clock]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outputs: dict[str, Any] = {
                "fit_seconds": sum(f.fit_seconds for f in folds),
                "latency_ms": latency(first.estimator, first.x, clock),
                "single_ms": single(first.estimator, first.x, clock),
                "model_bytes": float(len(pickle.dumps(first.estimator, protocol=5))),
            }
        if self.grouped is not None:
            outputs |= self.grouped(folds)
        return outputs


def latency(model: Any, x: NDArray[np.float64], clock: Callable[[], float] = time.perf_counter) -> float:
    """Milliseconds in which BATCH rows are predicted at once."""
    rows = x[np.arange(BATCH) % len(x)]
    return timed(model.predict, (rows for _ in count()), clock)


def single(model: Any, x: NDArray[np.float64], clock: Callable[[], float] = time.perf_counter) -> float:
    """Milliseconds in which one row is predicted alone; another row each time."""
    return timed(model.predict, (x[[i % len(x)]] for i in count()), clock)


def timed(call: Callable[[Any], Any], arguments: Iterator[Any], clock: Callable[[], float]) -> float:
    """Milliseconds of a call, the median over LEAST to MOST of them after one that does not count."""
    call(next(arguments))
    collected = gc.isenabled()
    gc.disable()
    try:
        seconds: list[float] = []
        end = time.perf_counter() + SPENT
        while len(seconds) < LEAST or (len(seconds) < MOST and time.perf_counter() < end):
            argument, began = next(arguments), clock()
            call(argument)
            seconds.append(clock() - began)
    finally:
        if collected:
            gc.enable()
    return 1000.0 * statistics.median(seconds)
