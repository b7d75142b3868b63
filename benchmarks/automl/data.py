"""Data of the benchmarks of pipelines: rows to search on, in folds, and fresh rows that no search sees.

All rows of a set are split into three outer folds. Seed k tests on fold k % 3 of split k // 3 and searches on at most ROWS of the
other rows, drawn by class. Sets of ``MIPCASH_DATA`` are available if the files are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from mipcash.errors import ModelError
from mipcash.models._data import table

BINARY, MULTICLASS, REGRESSION = "binary", "multiclass", "regression"
OUTER = 3
ROWS, FRESH = 400, 2000
"""Rows to search on, and fresh rows, at most."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Split:
    """One set under one seed.

    Attributes:
        name, seed: of the set and the run.
        task: binary, multiclass or regression.
        x, y: rows to search on, shapes (n, d), (n,); classes are 0, 1, ...
        x_fresh, y_fresh: rows that no search sees.
    """

    name: str
    seed: int
    task: str
    x: Floats
    y: NDArray[np.int64] | Floats
    x_fresh: Floats
    y_fresh: NDArray[np.int64] | Floats


@dataclass(frozen=True)
class Source:
    """A set of data: its task, and what loads x and y."""

    task: str
    load: Callable[[], tuple[Floats, NDArray[np.int64] | Floats]]


def _of(name: str) -> Callable[[], tuple[Floats, NDArray[np.int64]]]:
    def load() -> tuple[Floats, NDArray[np.int64]]:
        found = table(name)
        return found.x, found.y

    return load


def _friedman(binary: bool) -> Callable[[], tuple[Floats, NDArray[np.int64] | Floats]]:
    """Friedman's first function of five of ten columns with noise; in two classes as the paper's fri-c2."""

    def load() -> tuple[Floats, NDArray[np.int64] | Floats]:
        x, y = datasets.make_friedman1(1000, 10, noise=1.0, random_state=2)
        return x, (y > np.mean(y)).astype(np.int64) if binary else y

    return load


def _clusters() -> tuple[Floats, NDArray[np.int64]]:
    """Eight clusters in 6 of 30 columns, and one label in twenty wrong."""
    x, y = datasets.make_classification(
        1200, 30, n_informative=6, n_redundant=6, n_clusters_per_class=4, flip_y=0.05, random_state=7
    )
    return x, y.astype(np.int64)


def _diabetes() -> tuple[Floats, Floats]:
    x, y = datasets.load_diabetes(return_X_y=True)
    return x, y.astype(float)


FILES = ("sonar", "heart", "ionosphere", "pima", "german", "spambase", "phoneme", "page-blocks0", "twonorm")
SOURCES: dict[str, Source] = {
    **{name: Source(BINARY, _of(name)) for name in FILES},
    "breast_cancer": Source(BINARY, _of("breast_cancer")),
    "friedman": Source(BINARY, _friedman(True)),
    "clusters": Source(BINARY, _clusters),
    "wine": Source(MULTICLASS, _of("wine")),
    "digits": Source(MULTICLASS, _of("digits")),
    "diabetes": Source(REGRESSION, _diabetes),
    "friedman-value": Source(REGRESSION, _friedman(False)),
}
"""All sets, in the order of the tables."""


@cache
def _loaded(name: str) -> tuple[Floats, NDArray[np.int64] | Floats]:
    return SOURCES[name].load()


def is_there(name: str) -> bool:
    """Return True if a set can be loaded; data sets from files may be missing."""
    try:
        _loaded(name)
    except ModelError:
        return False
    return True


def split(name: str, seed: int) -> Split:
    """A set under a seed.

    Raises:
        ValueError: there is no such set.
        ModelError: its file is not there.
    """
    if name not in SOURCES:
        raise ValueError(f"there is no data set {name!r}; there are {', '.join(SOURCES)}")
    task = SOURCES[name].task
    x, y = _loaded(name)
    kind = KFold if task == REGRESSION else StratifiedKFold
    outer = kind(OUTER, shuffle=True, random_state=100 + seed // OUTER)
    searched, fresh = list(outer.split(x, y))[seed % OUTER]
    searched, fresh = _at_most(searched, y, ROWS, task, seed), _at_most(fresh, y, FRESH, task, seed)
    return Split(name, seed, task, x[searched], y[searched], x[fresh], y[fresh])


def _at_most(rows: NDArray[np.int64], y: NDArray[np.int64] | Floats, most: int, task: str, seed: int) -> NDArray[np.int64]:
    if len(rows) <= most:
        return rows
    classes = None if task == REGRESSION else y[rows]
    found: NDArray[np.int64] = train_test_split(rows, train_size=most, random_state=seed, stratify=classes)[0]
    return found


def loss(task: str, y: NDArray[np.int64] | Floats, scores: Floats) -> float:
    """1 - AUC (of more than two classes the mean of one against the rest); of a regression 1 - R2.

    Args:
        scores: of two classes the probability of the second, shape (n,); of more (n, classes); of a regression the numbers.
    """
    if task == REGRESSION:
        return 1.0 - float(r2_score(y, scores))
    if task == MULTICLASS:
        return 1.0 - float(roc_auc_score(y, scores, multi_class="ovr"))
    return 1.0 - float(roc_auc_score(y, scores))
