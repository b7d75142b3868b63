"""Folds of cross-validation: those of the search, and new ones to confirm its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipcash.errors import DataError

Rows = NDArray[np.int64]
DRAWS = 20
"""Maximum number of shuffles to avoid a fold of the search; a few rows have few partitions."""


def folds_of(
    y: NDArray[Any], folds: int, seed: int, repeat: int, stratified: bool, groups: NDArray[Any] | None
) -> list[tuple[Rows, Rows]]:
    """Return training rows and held-out rows of each fold; every row is held out once.

    Repeat 0 is scikit-learn's own shuffle by ``seed``. No fold of another repeat holds out the same rows as one of repeat 0, unless
    the rows (or groups) are as few as the folds.

    Args:
        y: classes or values, shape (rows,).
        stratified: whether folds have the classes' shares.
        groups: rows of one group are never on both sides, shape (rows,); None: rows are independent.
    """
    first = _split(y, folds, seed, stratified, groups)
    if repeat == 0:
        return first
    taken = {held_out.tobytes() for _, held_out in first}
    made = first
    for draw in range(DRAWS):
        state = int(np.random.SeedSequence((seed, repeat, draw)).generate_state(1)[0] >> 1)
        made = _split(y, folds, state, stratified, groups)
        if not any(held_out.tobytes() in taken for _, held_out in made):
            break
    return made


def _split(
    y: NDArray[Any], folds: int, state: int, stratified: bool, groups: NDArray[Any] | None
) -> list[tuple[Rows, Rows]]:
    from sklearn.model_selection import KFold, StratifiedGroupKFold, StratifiedKFold

    kind = KFold if not stratified else StratifiedKFold
    if groups is not None:  # without classes, all rows count as one class
        kind, y = StratifiedGroupKFold, y if stratified else np.zeros(len(y), dtype=np.int64)
    cut = kind(folds, shuffle=True, random_state=state).split(np.zeros(len(y)), y, groups)
    return [(train, held_out) for train, held_out in cut]


def check_folds(y: NDArray[Any], folds: Any, stratified: bool, groups: NDArray[Any] | None) -> int:
    """Return the number of folds, if the rows allow it.

    Raises:
        DataError: it is no whole number of at least 2, there are fewer rows, groups or rows of a class than folds, or y has one
            class.
    """
    if isinstance(folds, bool) or not isinstance(folds, (int, np.integer)) or folds < 2:
        raise DataError(f"folds must be a whole number, at least 2, got {folds!r}")
    few = "use fewer folds, or more rows"
    if len(y) < folds:
        raise DataError(f"{len(y)} rows cannot make {folds} folds; {few}")
    if groups is not None and len(np.unique(groups)) < folds:
        raise DataError(f"{len(np.unique(groups))} groups cannot make {folds} folds; {few}")
    if stratified:
        names, counts = np.unique(y, return_counts=True)
        rare = [(str(name), int(n)) for name, n in zip(names, counts, strict=True) if n < folds]
        if rare:
            raise DataError(f"{_named(rare)} than the {folds} folds: merge or drop such a class, or use fewer folds")
        if len(names) < 2:
            raise DataError(f"y has one class only, {str(names[0])!r}; there is nothing to tell apart")
    return int(folds)


def check_seed(seed: Any) -> int:
    """Return a seed that scikit-learn accepts.

    Raises:
        DataError: it is no whole number from 0 to 2**32 - 1.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
        raise DataError(f"seed must be a whole number from 0 to 2**32 - 1, got {seed!r}")
    return int(seed)


def _named(rare: Sequence[tuple[str, int]]) -> str:
    first = " and ".join(f"{name!r} has {n}" for name, n in rare[:3])
    more = f" and {len(rare) - 3} other classes have few" if len(rare) > 3 else ""
    rows = "row" if len(rare) == 1 and rare[0][1] == 1 else "rows"
    return f"class {first}{more} {rows}, fewer"
