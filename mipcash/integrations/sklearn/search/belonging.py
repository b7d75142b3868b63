"""Identity of the scores in a storage: data, folds, scoring and estimator, so that no other search reads them.

It is kept in the options of the study's record, as readable texts, with a digest of what is too large to be written out. For a
function only the name is kept, so a change of its body is not detected.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from mipcash.integrations.sklearn.search.objective import SCORE, Data
from mipcash.study.storage.address import Address, is_address
from mipcash.text import stable_text, without_address

DATA, CV, SCORING, ESTIMATOR = "data", "cv", "scoring", "estimator"


def belonging_of(data: Data, scoring: Any, metric: str, estimator: Any) -> dict[str, str]:
    """Return the texts on which scores depend, by name; they are the same in every process.

    Args:
        scoring: as given to the search.
        metric: the score that the search optimises; empty or ``score`` if there is only one.
        estimator: built from configurations.
    """
    given = (data.x, data.y, dict(data.fit_params), dict(data.score_params))
    folds = [(np.asarray(train), np.asarray(held_out)) for train, held_out in data.splits]
    return {
        DATA: f"{_num_samples(data.x)} rows, {_digest(given)}",
        CV: f"{len(folds)} folds, {_digest(folds)}",
        SCORING: _text(scoring) + (f", searched by {metric!r}" if metric not in ("", SCORE) else ""),
        ESTIMATOR: _text(estimator),
    }


def predictions_beside(storage: str | os.PathLike[str]) -> str:
    """Return the folder with the predictions of a search with a storage; its name contains no password."""
    return (
        f"{Address.of(storage) if isinstance(storage, str) and is_address(storage) else os.fspath(storage)}.predictions"
    )


# -- texts and digests ----------------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    """Return a ``repr`` that is the same in every process; for an estimator, the parameters that differ from its defaults."""
    import sklearn
    from sklearn.base import BaseEstimator

    if isinstance(value, BaseEstimator) and not isinstance(value, type):
        with sklearn.config_context(print_changed_only=True):
            reported = " ".join(value.__repr__(N_CHAR_MAX=10**9).split())
        return without_address(reported)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name!r}: {_text(entry)}" for name, entry in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_text, value)) + "]"
    return stable_text(value)


def _digest(value: Any) -> str:
    import joblib

    try:
        return str(joblib.hash(_plain(value)))
    except (pickle.PicklingError, TypeError, AttributeError):  # rows that cannot be pickled
        return "of a kind that is not compared"


def _plain(value: Any) -> Any:
    """Return rows as arrays that depend on columns, types and values only, not on the memory layout."""
    if hasattr(value, "tocsr"):
        rows = value.tocsr().copy()
        rows.sum_duplicates()
        return ["sparse", rows.shape, rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)]
    if hasattr(value, "iloc") and hasattr(value, "columns"):
        columns = [value.iloc[:, k] for k in range(value.shape[1])]
        return ["frame", [[str(name), *_plain(c)] for name, c in zip(value.columns, columns, strict=True)]]
    if hasattr(value, "iloc"):
        return [str(value.dtype), np.ascontiguousarray(value.to_numpy())]
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value)
    if isinstance(value, Mapping):
        return [[str(name), _plain(value[name])] for name in sorted(value, key=str)]
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return [_plain(entry) for entry in value]
    return value
