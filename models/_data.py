"""Data for models, of classes or of numbers: the folder in ``MIPCASH_DATA``, then scikit-learn's own, then OpenML."""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipcash.errors import ModelError
from mipcash.integrations.sklearn.cross_validated import looks_continuous

FOLDER = "MIPCASH_DATA"
CLASSIFICATION, REGRESSION, AUTO = "classification", "regression", "auto"
TARGET = "target"
"""The default column of the class or the number to predict; data that are not a CSV file have no other."""
BUILT_IN = ("breast_cancer", "digits", "iris", "wine")
NUMBERS = ("diabetes",)
"""Of scikit-learn's own, those to regress on."""
SUFFIXES = (".csv.gz", ".csv")
MISSING = {"", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"}
"""Texts that count as a missing value; a subset of those of ``pandas.read_csv``."""
MOST_GROUPS = 10
"""Different numbers up to which each is a group of its own."""
TRUTH = {"True": 1.0, "TRUE": 1.0, "true": 1.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}


@dataclass(frozen=True)
class Groups:
    """Rows in groups.

    Attributes:
        column: by whose values.
        names: of the groups.
        codes: 0, 1, ... of the rows, shape (rows,).
    """

    column: str
    names: tuple[str, ...]
    codes: NDArray[np.int64]


@dataclass(frozen=True)
class Table:
    """A problem of classification, or of regression.

    Attributes:
        x: features, shape (rows, columns), without missing values.
        y: classes 0, 1, ..., or numbers to regress on, shape (rows,).
        source: Python code that loads the same ``X`` and ``y`` without mipcash.
        columns: of a CSV file, all but the class: cells by heading.
        classes: what the data call the classes 0, 1, ..., where that is known.
    """

    x: NDArray[np.float64]
    y: NDArray[Any]
    source: str
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    classes: tuple[str, ...] = ()

    @property
    def task(self) -> str:
        """``classification`` or ``regression``."""
        return CLASSIFICATION if np.issubdtype(self.y.dtype, np.integer) else REGRESSION

    def held_out(self, share: float, seed: int) -> tuple[Table, Table | None, NDArray[np.int64]]:
        """Return the table without a share of its rows, drawn by class, these rows, and the numbers of the rows that are left.

        Raises:
            ModelError: a class has too few rows for both parts.
        """
        rows = np.arange(len(self.y))
        if not share:
            return self, None, rows
        from sklearn.model_selection import train_test_split

        classes = self.y if self.task == CLASSIFICATION else None
        try:
            left, held = map(np.sort, train_test_split(rows, test_size=share, random_state=seed, stratify=classes))
        except ValueError as error:
            raise ModelError(f"a share of {share:g} of {len(rows)} rows cannot be held out: {error}") from error
        return self._of(left), self._of(held), left

    def _of(self, rows: NDArray[np.int64]) -> Table:
        columns = {name: tuple(cells[k] for k in rows) for name, cells in self.columns.items()}
        return replace(self, x=self.x[rows], y=self.y[rows], columns=columns)

    def check_folds(self, folds: int) -> None:
        """Check that each class, or for regression the table, has a row for each fold.

        Raises:
            ModelError: there are fewer rows.
        """
        if self.task == REGRESSION:
            fewest, what = len(self.y), "the table"
        else:
            counts = np.bincount(self.y)
            fewest, rarest = int(counts.min()), int(counts.argmin())
            what = f"class {(self.classes[rarest] if self.classes else str(rarest))!r}"
        if fewest < folds:
            raise ModelError(
                f"{what} has {fewest} rows, fewer than the {folds} folds, in each of which one is held out; use fewer folds, more "
                "rows, or merge the class with another"
            )

    def groups(self, column: str) -> NDArray[np.int64]:
        """The codes of :meth:`grouped`, shape (rows,)."""
        return self.grouped(column).codes

    def grouped(self, column: str, edges: str | None = None) -> Groups:
        """The rows in groups by a column: by its values, or by the quarters of its range of ranks where it has many numbers.

        Missing cells are a group.

        Args:
            edges: numbers in ascending order, "30,40,50", that cut its numbers in groups: below 30, from 30 to below 40, ...

        Raises:
            ModelError: there is no such column, it has one value only, or edges that do not fit.
        """
        if column not in self.columns:
            known = f"choose one of {', '.join(self.columns)}" if self.columns else "give the data as a CSV file"
            raise ModelError(f"there is no column {column!r} to group by; {known}")
        cells = self.columns[column]
        numbers, values = _numbers(cells), np.array(["" if c in MISSING else c for c in cells], dtype=object)
        if edges is not None:
            values = _cut(column, numbers, edges)
        elif numbers is not None and len(set(values)) > MOST_GROUPS:
            quarters = np.nanquantile(numbers, (0.25, 0.5, 0.75))
            values = np.where(np.isnan(numbers), -1, np.searchsorted(quarters, numbers, side="left"))
        names, codes = np.unique(values.astype(str), return_inverse=True)
        if len(names) < 2:
            raise ModelError(f"column {column!r} has one value only, so that there are no groups; choose another")
        return Groups(column, tuple(names.tolist()), codes.astype(np.int64))


def table(name: str = "breast_cancer", target: str = TARGET, task: str = CLASSIFICATION) -> Table:
    """Load a table by name or by path.

    Args:
        name: the path of a CSV file (``.csv`` or ``.csv.gz``, with a header), or the name of a data set. A name is looked up in the
            folder of the environment variable ``MIPCASH_DATA``, then in scikit-learn (breast_cancer, digits, iris, wine; diabetes
            for regression), then in OpenML.
        target: the column of a CSV file that holds the class, or the number; other data bring their own, and take no other.
        task: ``classification``, ``regression``, or ``auto``: as
        :func:`mipcash.integrations.sklearn.cross_validated.looks_continuous` says.

    Raises:
        ModelError: there is no such file, column or data set, or it does not hold a problem of this task.
    """
    path = file_of(name)
    if path is not None:
        return _from_csv(path, target, task)
    if target != TARGET:
        raise ModelError(
            f"the data set {name!r} has no column {target!r} to predict: it brings its own target, and target= chooses one of a "
            "CSV file; leave target= out, or give the path of a CSV file"
        )
    return _from_sklearn(name, task)


def images(name: str = "mnist_5k") -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images, shape (n, height, width), and labels, shape (n,), of ``MIPCASH_DATA/NAME.npz``.

    Raises:
        ModelError: there is no such file.
    """
    folder = _folder()
    path = None if folder is None else folder / f"{name}.npz"
    if path is None or not path.is_file():
        there = "it is not set" if folder is None else f"it names {folder}, which has {_listed(folder, ('.npz',))}"
        raise ModelError(
            f"there are no images {name}.npz: they are looked for in the folder that {FOLDER} names, and {there}; "
            "save arrays 'images' and 'labels' there with numpy.savez"
        )
    with np.load(path) as arrays:
        return arrays["images"], arrays["labels"]


def _folder() -> Path | None:
    folder = os.environ.get(FOLDER)
    return Path(folder).expanduser() if folder else None


def _listed(folder: Path, suffixes: tuple[str, ...]) -> str:
    names = sorted(p.name for p in folder.glob("*") if p.name.endswith(suffixes)) if folder.is_dir() else []
    return ", ".join(names) or "nothing that fits"


def file_of(name: str) -> Path | None:
    """The CSV file meant by ``name``; None if it names a data set of scikit-learn or OpenML."""
    if name.endswith(SUFFIXES) or os.sep in name:
        path = Path(name).expanduser()
        if not path.is_file():
            near = path.parent if path.parent.is_dir() else Path.cwd()
            raise ModelError(f"there is no file {path}; {near} has {_listed(near, SUFFIXES)}")
        return path
    folder = _folder()
    if folder is None:
        return None
    return next((p for s in SUFFIXES if (p := folder / f"{name}{s}").is_file()), None)


@lru_cache(maxsize=8)
def _from_csv(path: Path, target: str, task: str) -> Table:
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        rows = [row for row in csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")) if row]
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise ModelError(f"{path} cannot be read as a CSV file in UTF-8: {error}; save it as one") from error
    if len(rows) < 2:
        raise ModelError(f"{path} has no rows below its header; it must hold a header and one row per example")
    header, cells = rows[0], rows[1:]
    if target not in header:
        other = next((d for d in ";\t" if d in header[0]), "")
        cure = f"its cells are separated by {other!r}, save it with commas" if other else "choose one with target="
        raise ModelError(f"{path} has no column {target!r} to predict; {cure}, it has {', '.join(header)}")
    if twice := [name for name, count in Counter(header).items() if count > 1]:
        raise ModelError(f"{path} has the column {twice[0]!r} twice; rename one of them")
    ragged = next((i for i, row in enumerate(cells, 2) if len(row) != len(header)), None)
    if ragged is not None:
        raise ModelError(
            f"{path}, row {ragged}: {len(cells[ragged - 2])} cells under {len(header)} headings; mend the row"
        )
    columns: dict[str, tuple[str, ...]] = dict(zip(header, zip(*cells, strict=True), strict=True))
    labels = columns.pop(target)
    if any(label in MISSING for label in labels):
        raise ModelError(f"{path}: column {target!r} has missing classes; drop those rows")
    numeric, dummies = [], []
    for name, texts in columns.items():
        numbers = _numbers(texts)
        if numbers is None:
            dummies += [np.array([t == value for t in texts], float) for value in sorted(set(texts) - MISSING)]
        elif np.isnan(numbers).all():
            raise ModelError(f"{path}: column {name!r} has no values; drop it")
        elif np.isinf(numbers).any():
            raise ModelError(f"{path}: column {name!r} has an infinite value; correct it, or leave its cell empty")
        else:
            numeric.append(np.where(np.isnan(numbers), np.nanmedian(numbers), numbers))
    if not numeric and not dummies:
        raise ModelError(f"{path} has no column beside {target!r}; add features")
    y, classes = _target(str(path), target, labels, task)
    popped = f"table.pop({target!r})"
    taken = f"pd.factorize({popped}, sort=True)[0]" if y.dtype == np.int64 else f"{popped}.to_numpy(float)"
    source = (
        "import pandas as pd\n\n"
        f"table = pd.read_csv({str(path)!r})\n"
        f"y = {taken}\n"
        "X = pd.get_dummies(table, dtype=float)  # text becomes one column per value\n"
        "X = X.fillna(X.median()).to_numpy(float)"
    )
    return Table(np.column_stack(numeric + dummies), y, source, columns, classes)


def _numbers(texts: tuple[str, ...]) -> NDArray[np.float64] | None:
    """A column as numbers, nan where missing; None if some cell is text."""
    try:
        return np.array([math.nan if t in MISSING else TRUTH[t] if t in TRUTH else float(t) for t in texts])
    except ValueError:
        return None


def _cut(column: str, numbers: NDArray[np.float64] | None, edges: str) -> NDArray[Any]:
    """Names of the groups that edges cut numbers into, shape (rows,)."""
    try:
        at = [float(e) for e in str(edges).split(",")]
    except ValueError:
        at = []
    if not at or at != sorted(set(at)):
        raise ModelError(f"option edges={edges!r} are no numbers in ascending order; write for example edges=30,40,50")
    if numbers is None:
        raise ModelError(f"column {column!r} holds texts, which edges={edges!r} do not cut; leave edges= out")
    names = [f"below {at[0]:g}", *(f"{a:g} to {b:g}" for a, b in pairwise(at)), f"from {at[-1]:g}"]
    cut = np.array(names, dtype=object)[np.searchsorted(at, numbers, side="right")]
    return np.where(np.isnan(numbers), "missing", cut)


def _target(where: str, target: str, labels: Any, task: str) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Classes and what they are called, or numbers."""
    numbers = _numbers(tuple(map(str, labels)))
    if task == AUTO:
        task = REGRESSION if numbers is not None and looks_continuous(numbers) else CLASSIFICATION
    if task == CLASSIFICATION:
        return _classes(where, target, labels)
    if numbers is None:
        raise ModelError(
            f"{where}: column {target!r} holds texts, which nothing regresses on; use task={CLASSIFICATION}"
        )
    if len(np.unique(numbers)) < 2:
        raise ModelError(f"{where}: column {target!r} has one value only; choose another column with target=")
    return numbers, ()


def _classes(where: str, target: str, labels: Any) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    numbers = _numbers(tuple(map(str, labels)))
    names, codes = np.unique(numbers if numbers is not None else np.asarray(labels, dtype=str), return_inverse=True)
    counts = Counter(codes.tolist())
    if len(names) < 2:
        raise ModelError(f"{where}: column {target!r} has one class only; choose another column with target=")
    if len(names) > 2 and len(names) > len(codes) / 5:
        raise ModelError(
            f"{where}: column {target!r} has {len(names)} different values in {len(codes)} rows, which looks like a "
            "number to regress on; choose a column of classes with target="
        )
    if min(counts.values()) < 2:
        raise ModelError(f"{where}: a class of {target!r} occurs once; cross-validation needs more, merge or drop it")
    called = tuple(f"{n:g}" if numbers is not None else str(n) for n in names)
    return codes.astype(np.int64), called


@lru_cache(maxsize=8)
def _from_sklearn(name: str, task: str) -> Table:
    from sklearn import datasets

    if name in (*BUILT_IN, *NUMBERS):
        x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        source = f"from sklearn.datasets import load_{name}\n\nX, y = load_{name}(return_X_y=True)"
        if (task, name in NUMBERS) in ((CLASSIFICATION, True), (REGRESSION, False)):
            raise ModelError(f"the data set {name!r} is none of {task}; use task=auto, or other data")
        return Table(x.astype(float), y.astype(float if name in NUMBERS else np.int64), source)
    options = "return_X_y=True, as_frame=False, parser='liac-arff'"
    try:
        x, y = datasets.fetch_openml(name, return_X_y=True, as_frame=False, parser="liac-arff")
        x = np.asarray(x, dtype=float)
    except Exception as error:
        folder = _folder()
        there = f"{FOLDER} is not set" if folder is None else f"{folder} has {_listed(folder, SUFFIXES)}"
        raise ModelError(
            f"there is no data set {name!r}: {there}; scikit-learn has {', '.join(BUILT_IN)}; and OpenML did not "
            f"give it ({type(error).__name__}: {error}). Give the path of a CSV file or one of these names"
        ) from error
    x = np.where(np.isnan(x), np.nanmedian(x, axis=0), x)
    target, classes = _target(f"OpenML's {name}", "target", y, task)
    told = "np.unique(y, return_inverse=True)[1]" if target.dtype == np.int64 else "y.astype(float)"
    source = (
        "import numpy as np\nfrom sklearn.datasets import fetch_openml\n\n"
        f"X, y = fetch_openml({name!r}, {options})\n"
        f"X, y = np.where(np.isnan(X), np.nanmedian(X, axis=0), X), {told}"
    )
    return Table(x, target, source, classes=classes)
