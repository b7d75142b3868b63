"""Enumeration of the points of a binary program with bound propagation over its raw rows, without library code.

Integer columns are enumerated with pruning: a row is checked as soon as all its columns are known. The continuous
columns (products) must then follow from the rows, so bounds are propagated until they determine every column. If the
bounds leave a column undetermined, the linearisation is not exact and the column is reported as ``loose``.

Notation
    N   number of feasible integer points;   n_c   columns of the program
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

TOLERANCE = 1e-7
LARGEST = 400_000


class TooLargeError(Exception):
    """Raised if an enumeration would be too large."""


def points(program: Any) -> tuple[np.ndarray, bool]:
    """Return all feasible points, (N, n_c), and whether the rows leave some continuous column undetermined.

    Raises:
        TooLargeError: there are more than LARGEST partial points at once.
    """
    matrix = program.matrix.tocsr()
    rows = [
        (matrix.indices[matrix.indptr[r] : matrix.indptr[r + 1]], matrix.data[matrix.indptr[r] : matrix.indptr[r + 1]])
        for r in range(matrix.shape[0])
    ]
    low, high = np.asarray(program.row_low), np.asarray(program.row_high)
    integer = np.asarray(program.integer) > 0
    found = _integer_points(program, rows, low, high, integer)
    return _settle(program, rows, low, high, integer, found)


def _integer_points(program: Any, rows: Any, low: Any, high: Any, integer: Any) -> np.ndarray:
    n = len(program.low)
    known = np.zeros(n, dtype=bool)
    waiting = {r for r, (at, _) in enumerate(rows) if np.all(integer[at])}
    frontier = np.zeros((1, n))
    for columns, values in _batches(program, integer):
        if len(frontier) * len(values) > LARGEST:
            raise TooLargeError(f"{len(frontier)} x {len(values)} points")
        frontier = np.repeat(frontier, len(values), axis=0)
        frontier[:, columns] = np.tile(values, (len(frontier) // len(values), 1))
        known[columns] = True
        for r in sorted(waiting):
            at, data = rows[r]
            if np.all(known[at]):
                waiting.discard(r)
                body = frontier[:, at] @ data
                frontier = frontier[(body >= low[r] - TOLERANCE) & (body <= high[r] + TOLERANCE)]
    return frontier


def _batches(program: Any, integer: Any) -> Any:
    """Yield columns that are enumerated together, and their values: a one-hot group, or one integer column."""
    grouped = set()
    for g in program.groups:
        columns = np.arange(g.start, g.stop)
        grouped |= set(columns.tolist())
        values = np.eye(len(columns))
        inside = np.all((values >= program.low[columns]) & (values <= program.high[columns]), axis=1)
        yield columns, values[inside]
    for c in np.flatnonzero(integer).tolist():
        if c not in grouped:
            yield np.array([c]), np.arange(np.ceil(program.low[c]), np.floor(program.high[c]) + 1).reshape(-1, 1)


def _settle(program: Any, rows: Any, low: Any, high: Any, integer: Any, found: Any) -> tuple[np.ndarray, bool]:
    lower = np.where(integer, found, program.low[None, :])
    upper = np.where(integer, found, program.high[None, :])
    alive = np.ones(len(found), dtype=bool)
    mixed = [r for r, (at, _) in enumerate(rows) if not np.all(integer[at])]
    for _ in range(8):
        before = float(np.sum(upper - lower))
        for r in mixed:
            at, data = rows[r]
            smallest = np.where(data > 0, lower[:, at], upper[:, at]) * data
            largest = np.where(data > 0, upper[:, at], lower[:, at]) * data
            total_small, total_large = smallest.sum(axis=1), largest.sum(axis=1)
            alive &= (total_small <= high[r] + TOLERANCE) & (total_large >= low[r] - TOLERANCE)
            for k, column in enumerate(at):
                if integer[column]:
                    continue
                most = high[r] - (total_small - smallest[:, k])
                least = low[r] - (total_large - largest[:, k])
                if data[k] < 0:
                    least, most = most, least
                # a determined column stays fixed, or rounding errors would be passed on and grow
                free = upper[:, column] - lower[:, column] > TOLERANCE
                below, above = (
                    np.maximum(lower[:, column], least / data[k]),
                    np.minimum(upper[:, column], most / data[k]),
                )
                meet = (below > above) & (below <= above + TOLERANCE * np.maximum(1.0, np.abs(above)))
                lower[:, column] = np.where(free, np.where(meet, above, below), lower[:, column])
                upper[:, column] = np.where(free, above, upper[:, column])
        alive &= np.all(lower <= upper + TOLERANCE * np.maximum(1.0, np.abs(upper)), axis=1)
        lower, upper, found, alive = lower[alive], upper[alive], found[alive], alive[alive]
        if float(np.sum(upper - lower)) >= before - 1e-12:
            break
    loose = bool(np.any(upper - lower > 1e-6))
    middle = np.where(np.isfinite(lower + upper), (lower + upper) / 2, 0.0)
    return np.where(integer, found, middle), loose


def configurations(program: Any, found: np.ndarray) -> set[tuple[tuple[str, str], ...]]:
    """Return the values of parameters that have columns at the points, as keys ``((name, repr(value)), ...)``."""
    keys = set()
    for point in found:
        named: dict[str, Any] = {}
        orders: dict[str, dict[int, str]] = {}
        for g in program.groups:
            level = int(np.flatnonzero(point[g.start : g.stop] > 0.5)[0])
            if g.kind == "ordering":
                orders.setdefault(g.parameter, {})[level] = g.label.split(":", 1)[1]
            elif level < len(g.values):
                named[g.parameter] = g.values[level]
        for label, order in orders.items():
            named[label] = tuple(order[t] for t in sorted(order))
        on = {}
        for number in program.numbers:
            on[number.label] = all(c.constant + point[c.columns] @ c.coefficients > 0.5 for c in number.conditions)
            if on[number.label]:
                named[number.label] = round(float(point[number.column]))
            elif abs(point[number.column]) > 1e-6:
                named[number.label] = "not zero though inactive"
        keys.add(key(named))
    return keys


def one_hot(program: Any, config: dict[str, Any]) -> np.ndarray:
    """Return the one-hot binaries of a configuration, shape (n_z,), from the labels and values of groups only."""
    z = np.zeros(program.n_z)
    for g in program.groups:
        if g.kind == "ordering":
            z[g.start + config[g.parameter].index(g.label.split(":", 1)[1])] = 1.0
        elif g.parameter not in config:
            z[g.stop - 1] = 1.0
        else:
            value = config[g.parameter]
            z[g.start + next(l for l, v in enumerate(g.values) if type(v) is type(value) and v == value)] = 1.0
    return z


def all_levels(program: Any, most: int = 4000) -> np.ndarray | None:
    """Return every latent level vector (no group off), with orderings as permutations; None if there are too many."""
    sizes = [len(g.values) for g in program.groups]
    if np.prod([float(s) for s in sizes]) > most:
        return None
    product = list(itertools.product(*map(range, sizes)))
    listed = np.array(product, dtype=np.int64).reshape(len(product), len(sizes))
    orders: dict[str, list[int]] = {}
    for k, g in enumerate(program.groups):
        if g.kind == "ordering":
            orders.setdefault(g.parameter, []).append(k)
    for members in orders.values():
        listed = listed[[len(set(row[members].tolist())) == len(members) for row in listed]]
    return listed


def key(config: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return a hashable key of a configuration that distinguishes True, 1 and 1.0."""
    return tuple(sorted((name, repr(value)) for name, value in config.items()))
