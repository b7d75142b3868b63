"""Data of the benchmarks of pipelines: rows to search on, in folds, and fresh rows that no search sees.

All rows of a set are split into three outer folds. Seed k tests on fold k % 3 of split k // 3 and searches on at most
ROWS of the other rows, drawn by class, or on all of them. Sets of ``MIPCASH_DATA`` are available if the files are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

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
"""Maximum numbers of rows to search on and of fresh rows."""
ALL = 10**9
"""Maximum number of rows to search on that leaves none out."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Split:
    """Data set under a seed.

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


def _of(name: str) -> tuple[Floats, NDArray[np.int64]]:
    found = table(name)
    return found.x, found.y


def _halves(name: str) -> tuple[Floats, NDArray[np.int64]]:
    """Return a regression whose numbers are split at their mean, as OpenML's sets of two classes."""
    found = table(name, task="regression")
    return found.x, (found.y > np.mean(found.y)).astype(np.int64)


def _friedman(binary: bool) -> tuple[Floats, NDArray[np.int64] | Floats]:
    """Return Friedman's first function of five of ten columns with noise; two classes as in the paper's fri-c2."""
    x, y = datasets.make_friedman1(1000, 10, noise=1.0, random_state=2)
    return x, (y > np.mean(y)).astype(np.int64) if binary else y


def _clusters() -> tuple[Floats, NDArray[np.int64]]:
    """Return eight clusters in 6 of 30 columns, with one label in twenty wrong."""
    x, y = datasets.make_classification(
        1200, 30, n_informative=6, n_redundant=6, n_clusters_per_class=4, flip_y=0.05, random_state=7
    )
    return x, y.astype(np.int64)


def _drawn(kind: str) -> tuple[Floats, NDArray[np.int64]]:
    """Return classes by a known mechanism, with the index of the kind in DRAWN as seed."""
    rng = np.random.default_rng(1000 + DRAWN.index(kind))
    n = 1200
    x = rng.normal(size=(n, {"noise-columns": 100, "moons": 5, "counts": 40}.get(kind, 12)))
    noise = rng.normal(size=n)
    if kind == "moons":
        x[:, :2], y = datasets.make_moons(n, noise=0.3, random_state=3)
    elif kind == "noise-columns":
        y = x[:, :5].sum(axis=1) + noise > 0
    elif kind == "imbalanced":
        y = x[:, 0] + x[:, 1] * x[:, 2] + 0.5 * noise > 2.2
    elif kind == "interactions":
        y = np.sign(x[:, 0] * x[:, 1]) + x[:, 2] + 0.5 * noise > 0
    elif kind == "rings":
        y = np.digitize((x[:, :4] ** 2).sum(axis=1) + noise, (2.0, 4.0, 6.0))
    elif kind == "steps":
        y = 1 * (x[:, 0] > 0.5) + 1 * ((x[:, 1] < -0.3) & (x[:, 2] > 0)) + 1 * (rng.random(n) < 0.05)
        y = np.minimum(y, 2)
    elif kind == "counts":
        topics = rng.dirichlet(np.full(40, 0.3), size=6)
        y = rng.integers(6, size=n)
        x = rng.poisson(8.0 * (0.7 * topics[y] + 0.3 / 40)).astype(float)
    else:
        assert kind == "gaussians"
        y = rng.integers(4, size=n)
        x += rng.normal(size=(4, 12))[y] * 0.6
    return x, np.asarray(y).astype(np.int64)


def _numbers(kind: str) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(5)
    if kind == "sparse-linear":
        x = rng.normal(size=(1000, 60))
        return x, x[:, :6] @ np.arange(1.0, 7.0) + 5.0 * rng.normal(size=1000)
    if kind == "steps-value":
        x = rng.normal(size=(1000, 10))
        return x, 3.0 * (x[:, 0] > 0) + 2.0 * (x[:, 1] > 0.5) * (x[:, 2] < 0) + 0.5 * rng.normal(size=1000)
    make = {"friedman2": datasets.make_friedman2, "friedman3": datasets.make_friedman3}[kind]
    x, y = make(1000, noise=0.0, random_state=2)
    return x, y + 0.2 * np.std(y) * rng.normal(size=1000)


def _diabetes() -> tuple[Floats, Floats]:
    x, y = datasets.load_diabetes(return_X_y=True)
    return x, y.astype(float)


FILES = ("sonar", "heart", "ionosphere", "pima", "german", "spambase", "phoneme", "page-blocks0", "twonorm")
HALVES = ("bank8FM", "cpu_small", "pollen", "puma8NH", "wind")
DRAWN = ("moons", "noise-columns", "imbalanced", "interactions", "rings", "steps", "counts", "gaussians")
OF_MORE = ("rings", "steps", "counts", "gaussians")
"""Data sets with more than two classes."""
SOURCES: dict[str, tuple[str, Callable[[], tuple[Floats, NDArray[np.int64] | Floats]]]] = {
    **{name: (BINARY, partial(_of, name)) for name in FILES},
    "breast_cancer": (BINARY, partial(_of, "breast_cancer")),
    "friedman": (BINARY, partial(_friedman, True)),
    "clusters": (BINARY, _clusters),
    "wine": (MULTICLASS, partial(_of, "wine")),
    "digits": (MULTICLASS, partial(_of, "digits")),
    "diabetes": (REGRESSION, _diabetes),
    "friedman-value": (REGRESSION, partial(_friedman, False)),
    **{name: (MULTICLASS if name in OF_MORE else BINARY, partial(_drawn, name)) for name in DRAWN},
    **{name: (REGRESSION, partial(_numbers, name)) for name in ("friedman2", "friedman3", "sparse-linear", "steps-value")},
    "pc4": (BINARY, partial(_of, "pc4")),
    **{name: (BINARY, partial(_halves, name)) for name in HALVES},
}
"""Tasks, and functions that load x and y, by name, in the order of the tables."""
OF_PAPER = ("friedman", "pc4", *HALVES)
"""Sets of liu2020, Tables A4 and A5, with ``friedman`` for fri-c2 and without sylvine."""
USUAL_SETS = tuple(name for name in SOURCES if name == "friedman" or name not in OF_PAPER)
"""Sets of the other benchmarks of pipelines."""


@cache
def _loaded(name: str) -> tuple[Floats, NDArray[np.int64] | Floats]:
    return SOURCES[name][1]()


def is_there(name: str) -> bool:
    """Return True if a set can be loaded; data sets from files may be missing."""
    try:
        _loaded(name)
    except ModelError:
        return False
    return True


def split(name: str, seed: int, rows: int = ROWS) -> Split:
    """Return a data set under a seed.

    Args:
        rows: maximum number of rows to search on.

    Raises:
        ValueError: there is no such set.
        ModelError: its file is not there.
    """
    if name not in SOURCES:
        raise ValueError(f"there is no data set {name!r}; there are {', '.join(SOURCES)}")
    task = SOURCES[name][0]
    x, y = _loaded(name)
    kind = KFold if task == REGRESSION else StratifiedKFold
    outer = kind(OUTER, shuffle=True, random_state=100 + seed // OUTER)
    searched, fresh = list(outer.split(x, y))[seed % OUTER]
    searched, fresh = _at_most(searched, y, rows, task, seed), _at_most(fresh, y, FRESH, task, seed)
    return Split(name, seed, task, x[searched], y[searched], x[fresh], y[fresh])


def _at_most(rows: NDArray[np.int64], y: NDArray[np.int64] | Floats, most: int, task: str, seed: int) -> NDArray[np.int64]:
    if len(rows) <= most:
        return rows
    classes = None if task == REGRESSION else y[rows]
    found: NDArray[np.int64] = train_test_split(rows, train_size=most, random_state=seed, stratify=classes)[0]
    return found


def loss(task: str, y: NDArray[np.int64] | Floats, scores: Floats) -> float:
    """Return 1 - AUC, averaged one against the rest for more than two classes, or 1 - R2 of a regression.

    Args:
        scores: for two classes the probability of the second, shape (n,); for more classes probabilities, shape
            (n, classes); for a regression the predictions.
    """
    if task == REGRESSION:
        return 1.0 - float(r2_score(y, scores))
    if task == MULTICLASS:
        return 1.0 - float(roc_auc_score(y, scores, multi_class="ovr"))
    return 1.0 - float(roc_auc_score(y, scores))
