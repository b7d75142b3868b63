"""Preparation of mixed tables in front of a pipeline: medians for missing numbers, days for dates, columns for texts.

A column keeps the kind that it had in ``fit``: later rows with values of another kind are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import _check_feature_names, _num_features

from mipcash.errors import DataError, warn

MANY_TEXTS = 50
"""Number of different texts from which on a column is suspected to name its rows, if they are more than half of the rows."""
SECONDS = 86400
"""Of a day."""
KINDS = NUMBERS, DATES, DURATIONS, TEXTS = "numbers", "dates", "durations", "texts"
"""Of columns."""
ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d(?!\d)")


class Converted(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Step that converts columns one by one, and leaves their names to the check of the next step.

    Args:
        function: of a table.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def fit(self, X: Any, y: Any = None) -> Converted:
        """Note the names of the columns."""
        self.n_features_in_ = _num_features(X)
        _check_feature_names(self, X, reset=True)
        return self

    def transform(self, X: Any) -> Any:
        """Return the converted table."""
        return self.function(X)


def preparation_of(x: Any) -> Any:
    """Return an unfitted transformer that one-hot encodes texts, counts dates in days, and fills missing numbers with the median.

    Returns:
        None for an array without missing values.

    Raises:
        DataError: x is sparse, is one column, is an array with texts, or two of its columns have one name.
    """
    if hasattr(x, "tocsr"):
        raise DataError(
            "X is sparse, and the pipelines that are searched by default take dense rows; give X.toarray(), or a space= of your "
            "own modules"
        )
    if not hasattr(x, "iloc"):
        rows = np.asarray(x)
        floats = _as_floats(rows)
        if rows.dtype.kind in "OUSmM" and floats is None:
            frame = "X.to_pandas()" if hasattr(x, "to_pandas") else "pd.DataFrame(X)"
            raise DataError(
                f"X is an array with values that are no numbers; give a data frame of pandas, {frame}, whose texts and dates are "
                "encoded column by column"
            )
        if rows.dtype.kind in "OUS":
            return make_pipeline(Converted(_as_numbers), SimpleImputer(strategy="median"))
        missing = rows.ndim == 2 and floats is not None and bool(np.isnan(floats).any())
        return SimpleImputer(strategy="median") if missing else None
    if x.ndim == 1:
        raise DataError(f"X is the single column {x.name!r}; give a table, X.to_frame()")
    if not x.columns.is_unique:
        twice = x.columns[x.columns.duplicated()][0]
        raise DataError(f"X has the column {twice!r} twice; rename one of them, or leave it out")
    kinds = {c: _kind(x[c]) for c in x.columns}
    for column in (c for c, kind in kinds.items() if kind == TEXTS):
        _check_texts(x, column)
    # scikit-learn takes whole numbers for positions, and a table whose names are no texts for an array
    names = x.columns if all(isinstance(c, str) for c in x.columns) else range(len(x.columns))
    named = {kind: [n for n, c in zip(names, x.columns, strict=True) if kinds[c] == kind] for kind in KINDS}

    median, encoder = SimpleImputer(strategy="median"), OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    floats = make_pipeline(Converted(_as_numbers), median)
    if len(named[NUMBERS]) == len(names):  # an array without names may follow
        return floats.set_output(transform="default")
    days = {kind: make_pipeline(Converted(partial(_as_days, kind=kind)), median) for kind in (DATES, DURATIONS)}
    steps = {NUMBERS: floats, **days, TEXTS: make_pipeline(Converted(_as_texts), encoder)}
    made = ColumnTransformer([(kind, steps[kind], named[kind]) for kind in KINDS])
    return made.set_output(transform="default")


def _kind(column: Any) -> str:
    """Return what the values of a column count as."""
    import pandas as pd

    column = column.infer_objects()
    kind = getattr(column.dtype, "kind", "O")
    if kind == "m":
        return DURATIONS
    if kind == "M" or pd.api.types.infer_dtype(column, skipna=True) in ("date", "datetime", "period"):
        return DATES
    there = column.dropna()
    numbers = kind in "iufb" or (
        column.dtype == object and len(there) and all(isinstance(v, (Real, Decimal)) for v in there)
    )
    return NUMBERS if numbers else TEXTS


def _check_texts(x: Any, name: Any) -> None:
    """Warn of a column of texts that are dates, or names of the rows.

    Raises:
        DataError: its values are no texts.
    """
    column = x[name]
    try:
        count = column.nunique()
    except TypeError as error:
        raise DataError(f"the column {name!r} of X has values that are no texts ({error}); leave it out") from error
    if count > max(MANY_TEXTS, len(x) // 2):
        warn(
            f"the column {name!r} of X has {count} different texts in {len(x)} rows, and is one-hot encoded into as many columns; "
            "leave it out if it names the rows"
        )
    some = column.dropna().head(MANY_TEXTS)
    if len(some) and all(isinstance(v, str) and ISO_DATE.match(v) for v in some):
        warn(
            f"the column {name!r} of X has texts that look like dates, and is one-hot encoded; pd.to_datetime makes them dates"
        )


def _as_numbers(x: Any) -> Any:
    """Return numbers and bools as floats, and nan for missing ones: a data frame, with its names, or an array.

    Raises:
        DataError: a column has values that are no numbers, or infinite ones.
    """
    if not hasattr(x, "notna"):
        return np.asarray(x, dtype=float)
    return x.apply(_as_finite)


def _as_finite(column: Any) -> Any:
    try:
        found = column.astype(object).where(column.notna(), np.nan).astype(float)
    except (TypeError, ValueError) as error:
        raise DataError(f"the column {column.name!r} of X has values that are no numbers: {error}") from error
    if np.isinf(found).any():
        raise DataError(
            f"the column {column.name!r} of X has infinite values; replace them, or make them missing (nan)"
        )
    return found


def _as_texts(x: Any) -> Any:
    """Return a data frame with all values as texts, and None for missing ones, since encoders do not take several types.

    A whole float has the text of the integer, since integers become floats where a value is missing.
    """

    def text(value: Any) -> str:
        return str(int(value)) if isinstance(value, (float, np.floating)) and value.is_integer() else str(value)

    texts = x.astype(object).apply(lambda column: column.map(text, na_action="ignore").astype(object))
    return texts.where(x.notna(), None)


def _as_days(x: Any, kind: str) -> Any:
    """Return dates of a data frame as days since 1970, or durations as days; nan for missing ones.

    Raises:
        DataError: a column has values of another kind.
    """
    import pandas as pd

    x = x.infer_objects()
    found = np.full(x.shape, np.nan)
    for k, name in enumerate(x.columns):
        column, there = x[name], x[name].notna().to_numpy()
        if isinstance(column.dtype, pd.PeriodDtype) and kind == DATES:
            found[there, k] = column[there].dt.asfreq("s", how="start").array.asi8 / SECONDS
        elif column.dtype.kind == {DATES: "M", DURATIONS: "m"}[kind]:
            # not in nanoseconds, which end in 2262; numpy has no time zones
            naive = column.dt.tz_convert(None) if getattr(column.dt, "tz", None) is not None else column
            parts = naive[there].to_numpy(dtype=f"{column.dtype.kind}8[us]").astype(np.int64)
            found[there, k] = parts / (1e6 * SECONDS)
        else:
            try:
                found[there, k] = [_days(value, kind) for value in column[there]]
            except (TypeError, ValueError) as error:
                raise DataError(
                    f"the column {name!r} of X had {kind}, and has values that are none: {error}"
                ) from error
    return found


def _days(value: Any, kind: str) -> float:
    """Return a date, or its text in ISO 8601, as days since 1970, or a duration as days.

    Raises:
        ValueError: it is of another kind.
    """
    import pandas as pd

    if kind == DURATIONS and isinstance(value, (timedelta, np.timedelta64)):
        return float(pd.Timedelta(value) / pd.Timedelta(days=1))
    value = value.start_time if isinstance(value, pd.Period) else value
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    text = str(value)
    if kind != DATES or not (isinstance(value, (date, np.datetime64, str)) and ISO_DATE.match(text)):
        raise ValueError(f"{value!r}")
    return float(np.datetime64(text, "us").astype(np.int64)) / (1e6 * SECONDS)


def _as_floats(rows: Any) -> Any:
    """Return an array as floats, or None if it holds anything else."""
    try:
        return None if rows.dtype.kind in "mM" else rows.astype(float, copy=False)
    except (TypeError, ValueError):
        return None
