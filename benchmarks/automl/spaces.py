"""Spaces of pipelines, and the objective on rows to search on: 1 - AUC or 1 - R2, cross-validated in five folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import mipcash as mc
from benchmarks.automl import ordered
from benchmarks.automl.data import MULTICLASS, REGRESSION, Split
from mipcash.integrations.sklearn.cross_validated import CrossValidated
from mipcash.models import sklearn_pipeline
from mipcash.models._automl_algorithms import AUTO_SKLEARN, SMALL
from mipcash.models._data import Table
from mipcash.models._pipeline_parts import Facts

Made = TypeVar("Made", bound=CrossValidated)
FOLDS = 5
SCORING = {"binary": "roc_auc", MULTICLASS: "roc_auc_ovr", REGRESSION: "r2"}


@dataclass(frozen=True)
class Pipelines:
    """Space of pipelines.

    Attributes:
        tasks: tasks that its estimators can solve.
        declare: the space for a split.
        build: an unfitted estimator of a configuration, for a split and a seed.
        starts: what our searches evaluate first, for a split and its space.
    """

    tasks: tuple[str, ...]
    declare: Callable[[Split], mc.Space]
    build: Callable[[Split, Mapping[str, Any]], Any]
    starts: Callable[[Split, mc.Space], list[dict[str, Any]]] = lambda split, space: []


def _bundled(split: Split) -> mc.Space:
    return ordered.declare(Facts.of(Table(split.x, split.y, ""), FOLDS))  # type: ignore[arg-type]


def _pipeline(split: Split, config: Mapping[str, Any]) -> Any:
    return ordered.pipeline(config, split.seed)


def _of_model(name: str) -> Pipelines:
    """Return Table A2 or A3 of liu2020, or the usual space. Ensembles of the tables have at most 100 members."""
    ranges = AUTO_SKLEARN if name == "usual" else SMALL

    def made(split: Split) -> sklearn_pipeline.Pipelines:
        return sklearn_pipeline.Pipelines(name, split.task == REGRESSION, split.x.shape[1], ranges, seed=split.seed)

    def declare(split: Split) -> mc.Space:
        return made(split).declare(Facts.of(Table(split.x, split.y, ""), FOLDS))

    def build(split: Split, config: Mapping[str, Any]) -> Any:
        return made(split)(config)

    def starts(split: Split, space: mc.Space) -> list[dict[str, Any]]:
        return made(split).starts(space)

    return Pipelines(("binary", MULTICLASS, REGRESSION), declare, build, starts)


SPACES: dict[str, Pipelines] = {
    "bundled": Pipelines(("binary", MULTICLASS), _bundled, _pipeline),
    "a2": _of_model("a2"),
    "a3": _of_model("a3"),
    "usual": _of_model("usual"),
}
"""Spaces by name: ``bundled`` is :mod:`benchmarks.automl.ordered`; the model ``sklearn_pipeline`` declares the rest."""
USUAL = {"binary": "bundled", MULTICLASS: "bundled", REGRESSION: "a3"}
"""Default space of each task."""


def objective_of(split: Split, space: str, kind: type[Made] = CrossValidated) -> Made:  # type: ignore[assignment]
    """Return the cross-validated loss of a split's pipelines."""
    build = partial(SPACES[space].build, split)
    return kind(build, split.x, split.y, scoring=SCORING[split.task], folds=FOLDS, seed=split.seed)


def fold_numbers(split: Split) -> NDArray[np.int64]:
    """Return the fold that holds out each row, shape (rows,), for other programs."""
    from mipcash.integrations.sklearn.splits import folds_of

    found = np.empty(len(split.y), dtype=np.int64)
    for k, (_, held_out) in enumerate(folds_of(split.y, FOLDS, split.seed, 0, split.task != REGRESSION, None)):
        found[held_out] = k
    return found
