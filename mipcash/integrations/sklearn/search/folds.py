"""Folds of a search as scikit-learn makes them, and other folds of the same kind for ``confirm=``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipcash.display import counted
from mipcash.errors import DataError
from mipcash.integrations.sklearn.search.objective import Splits


def splits_of(cv: Any, x: Any, y: Any, params: Mapping[str, Any]) -> Splits:
    """Return the folds of a splitter, once for all configurations.

    Raises:
        DataError: there are none.
    """
    found = [(np.asarray(train), np.asarray(held_out)) for train, held_out in cv.split(x, y, **params)]
    if not found:
        raise DataError(f"cv={cv!r} gives no folds; give a number of folds, or a splitter that yields some")
    return found


def fresh_of(cv: Any, splits: Splits, x: Any, y: Any, params: Mapping[str, Any], seed: int) -> Callable[[int], Splits]:
    """Return a function that makes other, shuffled folds of the same splitter for a repeat k > 0.

    Args:
        splits: of the search.

    Raises:
        DataError: the splitter has no other folds.
    """
    fresh = partial(_shuffled, cv, x, y, params, seed)
    if not hasattr(cv, "random_state") or all(
        np.array_equal(a, b) for (_, a), (_, b) in zip(splits, fresh(1), strict=False)
    ):
        raise DataError(
            f"confirm= evaluates finalists on other folds, and {cv!r} has no others; give cv= a number of folds, KFold, "
            "StratifiedKFold or a splitter that shuffles, or leave confirm= out"
        )
    return fresh


def _shuffled(cv: Any, x: Any, y: Any, params: Mapping[str, Any], seed: int, repeat: int) -> Splits:
    """Return other folds of a splitter."""
    cv = copy(cv)
    if hasattr(cv, "shuffle"):
        cv.shuffle = True
    cv.random_state = int(np.random.SeedSequence((seed, repeat)).generate_state(1)[0] >> 1)
    return splits_of(cv, x, y, params)


def check_partition(splits: Splits, rows: int) -> None:
    """Check that each row is held out once, so that it has one out-of-fold prediction.

    Raises:
        DataError: it is not.
    """
    held_out: NDArray[Any] = np.sort(np.concatenate([fold for _, fold in splits]))
    if not np.array_equal(held_out, np.arange(rows)):
        raise DataError(
            "ensemble_size= selects members by their predictions out of fold, and this cv= does not hold out every row once; "
            "give a number of folds, KFold or StratifiedKFold, or leave ensemble_size= out"
        )


def check_classes(y: NDArray[Any], cv: Any) -> None:
    """Check that each class has a row for each fold, if folds are stratified.

    Raises:
        DataError: a class has fewer rows; the message names it.
    """
    from sklearn.model_selection import StratifiedKFold

    if isinstance(cv, StratifiedKFold):
        names, counts = np.unique(y, return_counts=True)
        if len(names) > 1 and counts.min() < cv.n_splits <= len(y):
            rare = f"class {names[counts.argmin()].tolist()!r} has {counted(int(counts.min()), 'row')}"
            fewer = f", or use fewer folds (cv={counts.min()})" if counts.min() > 1 else ""
            numbers = "; if y holds numbers and no classes, give task='regression'" if y.dtype.kind in "iu" else ""
            raise DataError(f"{rare}, fewer than the {cv.n_splits} folds: merge or drop such a class{fewer}{numbers}")
