"""Tables of real evaluations of XGBoost, and the objective that looks errors up in them (Section 4 (a)).

The paper uses tables of OpenML with more than 45,000 evaluations, and returns the error of the nearest setting
(Euclidean distance). These tables were made by the code of commit 5db2cfa: trainings with random legal settings, each
with its own n (uniform on the log scale). The errors of the same training at some smaller numbers of rounds were added,
which are real errors too (a Poisson process on the log scale). So small n are more frequent than under uniform draws.

Files: ``benchmarks/results/paper/tables/<name>.npz``, one array per parameter (float32; int16; places of categories
int8), ``wrong`` (held-out rows misclassified, int16) and ``stamp`` (JSON). Settings are rounded to float32 before the
training.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.shape import Dimension, Shape
from mipcash.models import xgboost

FOLDER = Path(__file__).resolve().parents[1] / "results" / "paper" / "tables"
DATA = {"monks": "monks-problem-1", "phoneme": "phoneme"}
"""Name of a table -> training data of XGBoost."""
WRONG = "wrong"


@dataclass(frozen=True)
class Table:
    """Table of evaluated settings.

    Attributes:
        columns: parameter -> values, shape (n,) each; categories by their index.
        wrong: held-out rows misclassified, shape (n,).
        stamp: data, seed, number of held-out rows, chunks done, CPU seconds, versions.
    """

    columns: dict[str, np.ndarray]
    wrong: np.ndarray
    stamp: dict[str, Any]

    @cached_property
    def errors(self) -> np.ndarray:
        """Classification errors, shape (n,)."""
        return self.wrong / self.stamp["held"]

    @cached_property
    def points(self) -> np.ndarray:
        """Return all rows in the encoded unit cube, shape (n, 11)."""
        return np.column_stack([code for d in shape().dimensions for code in _codes(d, self.columns[d.name])])

    def nearest(self, config: Mapping[str, Any]) -> int:
        """Return the row nearest to a configuration, the first one in a tie."""
        values = {d.name: np.array([_raw(d, config[d.name])]) for d in shape().dimensions}
        point = np.column_stack([code for d in shape().dimensions for code in _codes(d, values[d.name])])
        return int(np.argmin(((self.points - point) ** 2).sum(axis=1)))

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the error of the nearest row."""
        return float(self.errors[self.nearest(config)])


@cache
def shape() -> Shape:
    """Return Table 5 as flat dimensions."""
    return Shape(xgboost.build()[0])


def _codes(d: Dimension, values: np.ndarray) -> Iterator[np.ndarray]:
    """Yield columns of the unit cube: one per number, on its log scale if it has one, and one per category."""
    if d.listed:
        yield from (np.asarray(values == k, dtype=float) for k in range(len(d.values)))
        return
    low, high, v = d.low, d.high, np.asarray(values, dtype=float)
    if d.log:
        low, high, v = math.log(low), math.log(high), np.log(v)
    yield (v - low) / (high - low)


def _raw(d: Dimension, value: Any) -> Any:
    return d.index(value) if d.listed else value


# -- files ----------------------------------------------------------------------------------------------------------------------


def load(name: str) -> Table:
    """Read a table.

    Raises:
        FileNotFoundError: the table does not exist.
    """
    path = FOLDER / f"{name}.npz"
    if not path.is_file():
        raise FileNotFoundError(f"there is no table {path}; commit 5db2cfa has the code that makes it")
    with np.load(path) as arrays:
        columns = {k: arrays[k] for k in arrays.files if k not in (WRONG, "stamp")}
        return Table(columns, arrays[WRONG], json.loads(str(arrays["stamp"])))


@cache
def kept(name: str) -> Table:
    """Return the table of the repository, read once per process."""
    return load(name)


def hours() -> dict[str, float]:
    """Return the CPU hours of the tables."""
    return {"tables": sum(kept(name).stamp["cpu_seconds"] for name in DATA) / 3600}
