"""Tables as people have them, made numbers: the imputer and the encoder that stand before a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mipcash.errors import DataError

PREPARE = "prepare"
"""Name of the step."""


def preparation_of(x: Any) -> Any:
    """An unfitted transformer that makes numbers of texts, one column per value, and fills missing ones with the median.

    Returns:
        None where all are numbers already.

    Raises:
        DataError: x is sparse.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import OneHotEncoder

    if hasattr(x, "tocsr"):
        raise DataError(
            "X is sparse, and the pipelines of tables A2 and A3 take dense rows; give X.toarray(), or a space= of your own modules"
        )
    if not hasattr(x, "iloc"):
        rows = np.asarray(x)
        missing = rows.dtype.kind == "f" and rows.ndim == 2 and bool(np.isnan(rows).any())
        return SimpleImputer(strategy="median") if missing else None
    numbers = [c for c in x.columns if getattr(x[c].dtype, "kind", "O") in "iuf"]
    texts = [c for c in x.columns if c not in numbers]
    if not texts and not bool(x.isna().to_numpy().any()):
        return None
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    made = ColumnTransformer([("numbers", SimpleImputer(strategy="median"), numbers), ("texts", encoder, texts)])
    return made.set_output(transform="default")


@dataclass(frozen=True)
class Prepared:
    """Builds pipelines that begin with a preparation.

    Attributes:
        preparation: unfitted; None: there is none.
        build: of a configuration, a pipeline.
    """

    preparation: Any
    build: Callable[[Mapping[str, Any]], Any]

    def __call__(self, config: Mapping[str, Any]) -> Any:
        from sklearn.base import clone
        from sklearn.pipeline import Pipeline

        found = self.build(config)
        if self.preparation is None:
            return found
        return Pipeline([(PREPARE, clone(self.preparation)), *found.steps])
