"""Tables of real evaluations of XGBoost, and the objective that looks errors up in them (Section 4 (a)).

The paper uses tables of OpenML with more than 45,000 evaluations, and the error of the setting nearest (Euclidean) to the
one asked for. These tables are made here: trainings with random legal settings, each with its own number of rounds n
(uniform on the log scale), and with it the errors of the same training at some smaller numbers of rounds, which are those
of real trainings too (a Poisson process on the log scale). So small n are more frequent than under uniform draws.

Files: ``benchmarks/results/paper/tables/<name>.npz``, one array per parameter (float32; int16; places of categories int8),
``wrong`` (held-out rows misclassified, int16) and ``stamp`` (JSON). Settings are rounded to float32 before the training.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.shape import Dimension, Shape
from mipcash.models import xgboost

FOLDER = Path(__file__).resolve().parents[1] / "results" / "paper" / "tables"
DATA = {"monks": "monks-problem-1", "phoneme": "phoneme"}
"""Name of a table -> data that XGBoost trains on."""
SEED = 2019
CHUNK = 50
"""Trainings between two writes of the file; each chunk has its own random numbers, so that an interrupted run goes on."""
EXTRA = 1.08
"""Expected evaluations at smaller numbers of rounds, per unit of log n; about 4 per training."""
ROUNDING = 1e-9
"""More than products of points in the unit cube lose by rounding."""
ROUNDS = "nrounds"
WRONG = "wrong"


@dataclass(frozen=True)
class Table:
    """Evaluated settings.

    Attributes:
        columns: parameter -> values, shape (n,) each; categories by their place.
        wrong: held-out rows misclassified, shape (n,).
        stamp: data, seed, number of held-out rows, chunks done, CPU seconds, versions.
    """

    columns: dict[str, np.ndarray]
    wrong: np.ndarray
    stamp: dict[str, Any]

    def __len__(self) -> int:
        return len(self.wrong)

    @cached_property
    def errors(self) -> np.ndarray:
        """Classification errors, shape (n,)."""
        return self.wrong / self.stamp["held"]

    def config(self, row: int) -> dict[str, Any]:
        """A row as a configuration."""
        return {d.name: _plain(d, self.columns[d.name][row]) for d in shape().dimensions}

    @cached_property
    def points(self) -> np.ndarray:
        """All rows in the encoded unit cube, shape (n, 11)."""
        return np.column_stack([code for d in shape().dimensions for code in _codes(d, self.columns[d.name])])

    def nearest(self, config: Mapping[str, Any]) -> int:
        """The row nearest to a configuration; the first of several."""
        values = {d.name: np.array([_raw(d, config[d.name])]) for d in shape().dimensions}
        point = np.column_stack([code for d in shape().dimensions for code in _codes(d, values[d.name])])
        rough = self._norms - 2 * (self.points @ point[0])  # up to a constant, and to rounding
        near = np.flatnonzero(rough <= rough.min() + ROUNDING)
        return int(near[np.argmin(((self.points[near] - point) ** 2).sum(axis=1))])

    @cached_property
    def _norms(self) -> np.ndarray:
        """Squared lengths of the rows, shape (n,)."""
        return np.einsum("ij,ij->i", self.points, self.points)

    def __call__(self, config: Mapping[str, Any]) -> float:
        """The error of the nearest row."""
        return float(self.errors[self.nearest(config)])


@cache
def shape() -> Shape:
    """Table 5 in flat terms."""
    return Shape(xgboost.build()[0])


def _codes(d: Dimension, values: np.ndarray) -> Iterator[np.ndarray]:
    """Columns of the unit cube: one for a number, on its log scale where it has one, and one per category."""
    if d.listed:
        yield from (np.asarray(values == k, dtype=float) for k in range(len(d.values)))
        return
    low, high, v = d.low, d.high, np.asarray(values, dtype=float)
    if d.log:
        low, high, v = math.log(low), math.log(high), np.log(v)
    yield (v - low) / (high - low)


def _raw(d: Dimension, value: Any) -> Any:
    return d.index(value) if d.listed else value


def _plain(d: Dimension, value: Any) -> Any:
    if d.listed:
        return d.values[int(value)]
    return float(value) if d.kind == "real" else int(value)


def _type(d: Dimension) -> Any:
    return np.int8 if d.listed else np.float32 if d.kind == "real" else np.int16


# -- files ----------------------------------------------------------------------------------------------------------------------


def path_of(name: str, folder: Path = FOLDER) -> Path:
    return folder / f"{name}.npz"


def load(name: str, folder: Path = FOLDER) -> Table:
    """Read a table.

    Raises:
        FileNotFoundError: it was not made yet.
    """
    path = path_of(name, folder)
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no table {path}; make it with: python -m benchmarks.paper table --problem {name}"
        )
    with np.load(path) as arrays:
        columns = {k: arrays[k] for k in arrays.files if k not in (WRONG, "stamp")}
        return Table(columns, arrays[WRONG], json.loads(str(arrays["stamp"])))


@cache
def kept(name: str) -> Table:
    """The table of the repository, read once per process."""
    return load(name)


def save(table: Table, name: str, folder: Path = FOLDER) -> None:
    """Write a table whole: to a new file that takes the place of the old one."""
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f".{name}.{os.getpid()}.new.npz"
    np.savez_compressed(new, **table.columns, **{WRONG: table.wrong, "stamp": np.array(json.dumps(table.stamp))})
    new.replace(path_of(name, folder))


def hours(folder: Path = FOLDER) -> dict[str, float]:
    """CPU hours that the tables took."""
    there = [load(name, folder) for name in DATA if path_of(name, folder).is_file()]
    return {"tables": sum(t.stamp["cpu_seconds"] for t in there) / 3600}


# -- making them ----------------------------------------------------------------------------------------------------------------


def make(
    name: str, rows: int = 20_000, jobs: int = 1, progress: Callable[[str], None] = print, folder: Path = FOLDER
) -> Table:
    """Train until the table has ``rows`` rows; goes on with what is there.

    Args:
        jobs: processes.

    Raises:
        ValueError: there is no such table.
    """
    if name not in DATA:
        raise ValueError(f"there is no table {name!r}; there are {', '.join(DATA)}")
    table = load(name, folder) if path_of(name, folder).is_file() else _empty(name)
    began, before = time.perf_counter(), len(table)
    with ProcessPoolExecutor(jobs) as pool:
        while len(table) < rows:
            first = table.stamp["chunks"]
            for part in pool.map(_chunk, [name] * jobs, range(first, first + jobs)):
                table = _joined(table, part)
            save(table, name, folder)
            left = (time.perf_counter() - began) / (len(table) - before) * max(0, rows - len(table))
            cpu = table.stamp["cpu_seconds"] / 60
            progress(f"table {name}: {len(table)} of {rows} rows, {cpu:.1f} CPU min, about {left / 60:.1f} min left")
    return table


def _empty(name: str) -> Table:
    columns = {d.name: np.zeros(0, _type(d)) for d in shape().dimensions}
    held = len(xgboost.split(0, DATA[name])[3])
    stamp = {"data": DATA[name], "seed": SEED, "held": held, "chunks": 0, "cpu_seconds": 0.0, "trainings": 0}
    stamp |= {"mipcash": version("mipcash"), "xgboost-cpu": xgboost_version()}
    return Table(columns, np.zeros(0, np.int16), stamp)


def xgboost_version() -> str:
    """Of the package that holds XGBoost here: the CPU build, or the whole one."""
    try:
        return version("xgboost-cpu")
    except PackageNotFoundError:
        return version("xgboost")


def _joined(a: Table, b: Table) -> Table:
    columns = {k: np.concatenate([a.columns[k], b.columns[k]]) for k in a.columns}
    sums = {k: a.stamp[k] + b.stamp[k] for k in ("chunks", "cpu_seconds", "trainings")}
    sums["cpu_seconds"] = round(sums["cpu_seconds"], 2)
    return Table(columns, np.concatenate([a.wrong, b.wrong]), a.stamp | sums)


def _chunk(name: str, index: int) -> Table:
    """The trainings of one chunk."""
    rng = np.random.default_rng(np.random.SeedSequence([SEED, index]))
    began, dimensions, empty = time.process_time(), shape().dimensions, _empty(name)
    rows: list[list[Any]] = []
    wrong: list[int] = []
    for drawn in shape().space.sample(CHUNK, rng):
        # as float32 keeps it, and inside the bounds, which float32 may round away from
        config = {d.name: _kept(d, drawn[d.name]) for d in dimensions}
        for n, error in zip(rounds := _rounds(config[ROUNDS], rng), _errors(config, rounds, name), strict=True):
            rows.append([_raw(d, n if d.name == ROUNDS else config[d.name]) for d in dimensions])
            wrong.append(round(error * empty.stamp["held"]))
    columns = {d.name: np.array([row[k] for row in rows]).astype(_type(d)) for k, d in enumerate(dimensions)}
    done = {"chunks": 1, "cpu_seconds": time.process_time() - began, "trainings": CHUNK}
    return Table(columns, np.array(wrong, np.int16), empty.stamp | done)


def _kept(d: Dimension, value: Any) -> Any:
    if d.kind != "real":
        return value
    near = np.float32(value)
    if float(near) < d.low:
        near = np.nextafter(near, np.float32(np.inf))
    if float(near) > d.high:
        near = np.nextafter(near, np.float32(-np.inf))
    return float(near)


def _rounds(most: int, rng: np.random.Generator) -> list[int]:
    """The drawn number of rounds and some smaller ones, increasing."""
    low, high = math.log(shape().by_name[ROUNDS].low), math.log(most)
    extra = np.exp(rng.uniform(low, high, size=rng.poisson(EXTRA * (high - low))))
    return sorted({most, *np.rint(extra).astype(int).tolist()})


def _errors(config: dict[str, Any], rounds: list[int], name: str) -> tuple[float, ...]:
    return xgboost.learning_curve(config, rounds, 0, DATA[name])
