"""Pipelines of scikit-learn out of configurations, as objects and as code: what models of pipelines share.

A configuration has an algorithm per module and that algorithm's hyperparameters, ``module.algorithm.hyper``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mipcash as mc
from mipcash.models._data import Table


@dataclass(frozen=True)
class Name:
    """Reference to an object of a module of scikit-learn by its dotted path."""

    path: str


@dataclass(frozen=True)
class Call:
    """A call of a class of scikit-learn, by its dotted path; arguments may be names and calls."""

    path: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Algorithm:
    """A class of scikit-learn with what is tuned and what is fixed about it.

    Attributes:
        path: dotted.
        tuned: domains of hyperparameters.
        fixed: further arguments.
        random: whether it takes a ``random_state``.
        argued: makes arguments of the values of what is tuned and of the number of columns of the data; None: they are arguments
            as they are.
    """

    path: str
    tuned: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    random: bool = False
    argued: Callable[[dict[str, Any], int], dict[str, Any]] | None = None


def quantiles_in_percent(tuned: dict[str, Any], columns: int) -> dict[str, Any]:
    """The two quantiles of a robust scaler as its one argument."""
    low, high = tuned.pop("q_min"), tuned.pop("q_max")
    return {**tuned, "quantile_range": (100 * low, 100 * high)}


Modules = Mapping[str, Mapping[str, Algorithm | None]]
"""Module -> algorithm -> class of scikit-learn; None: the module does nothing."""


@dataclass(frozen=True)
class Facts:
    """Properties of a data set that the rules use.

    Attributes:
        columns: number of features.
        nonnegative: no feature has a negative value.
        fold_rows: rows of the smallest training fold.
        fold_class_rows: rows of the smallest class in a training fold; of regression, all.
        straddles: some feature has values above 0, and others that are not.
    """

    columns: int
    nonnegative: bool
    fold_rows: int
    fold_class_rows: int
    straddles: bool = True

    @classmethod
    def of(cls, data: Table, folds: int) -> Facts:
        def kept(rows: int) -> int:
            return rows - math.ceil(rows / folds)

        return cls._of(data, kept(len(data.y)), kept(_rarest(data.y)))

    @classmethod
    def of_folds(cls, data: Table, trained: Sequence[NDArray[np.int64]]) -> Facts:
        """Of folds of any kind.

        Args:
            trained: rows that each is fitted to.
        """
        return cls._of(data, min(map(len, trained)), min(_rarest(data.y[rows]) for rows in trained))

    @classmethod
    def _of(cls, data: Table, rows: int, class_rows: int) -> Facts:
        above = data.x > 0
        straddles = bool((above.any(axis=0) & ~above.all(axis=0)).any())
        return cls(data.x.shape[1], bool((data.x >= 0).all()), rows, class_rows, straddles)


def _rarest(y: NDArray[Any]) -> int:
    """Rows of the smallest class; of numbers, all."""
    return int(np.bincount(y).min()) if np.issubdtype(y.dtype, np.integer) else len(y)


# -- rules ----------------------------------------------------------------------------------------------------------


def before(space: mc.Space, order: Any, rule: str, first: Any, second: Any, when: Sequence[Any]) -> None:
    """A rule: one module stands before another."""
    space.rule(rule, order.position(first) <= order.position(second) - 1, when=list(when))


def idle_last(space: mc.Space, order: Any, modules: Sequence[Any]) -> None:
    """A module that does nothing has no place of its own: it stands last, so that no pipeline is written in two ways."""
    for a, b in combinations(modules, 2):
        for idle, busy in ((a, b), (b, a)):
            when = [idle["none"], 1 - busy["none"]]
            before(space, order, f"order: {idle.label} none stands after {busy.label}", busy, idle, when)
        before(space, order, f"order: {a.label} none stands before {b.label} none", a, b, [a["none"], b["none"]])


def no_more_leaves_than_room(space: mc.Space, boosting: Any, depth: Any, leaves: Any) -> None:
    """A tree of depth d has 2^d leaves at most."""
    room = sum(2**d * depth.is_(d) for d in range(depth.domain.low, depth.domain.high + 1))
    space.rule("boosting: no more leaves than the depth has room for", leaves <= room, when=boosting)


def most_inputs(degree: int, limit: int) -> int:
    """The largest k with ``C(k + degree, degree) <= limit``: how many columns may enter polynomial features."""
    k = 0
    while math.comb(k + 1 + degree, degree) <= limit:
        k += 1
    return k


# -- pipelines ------------------------------------------------------------------------------------------------------


def steps(
    modules: Modules, config: Mapping[str, Any], order: Iterable[str], seed: int, columns: int = 0
) -> list[tuple[str, Call]]:
    """The steps of a pipeline in the order in which they run.

    Args:
        order: of all modules.
        seed: of every algorithm that is random.
        columns: of the data.
    """
    found = []
    for module in order:
        algorithm = modules[module][config[module]]
        if algorithm is None:
            continue
        prefix = f"{module}.{config[module]}."
        tuned = {name.removeprefix(prefix): v for name, v in config.items() if name.startswith(prefix)}
        arguments = {**(algorithm.argued(tuned, columns) if algorithm.argued else tuned), **algorithm.fixed}
        if algorithm.random:
            arguments["random_state"] = seed
        found.append((module, Call(algorithm.path, arguments)))
    return found


def pipeline_of(found: Sequence[tuple[str, Call]]) -> Any:
    """The steps as a ``sklearn.pipeline.Pipeline``."""
    from sklearn.pipeline import Pipeline

    return Pipeline([(step, made(call)) for step, call in found])


def made(value: Any) -> Any:
    """Return the object that a call or a name stands for; any other value is returned unchanged."""
    if not isinstance(value, (Call, Name)):
        return value
    home, name = value.path.rsplit(".", 1)
    found = getattr(import_module(home), name)
    return found(**{k: made(v) for k, v in value.arguments.items()}) if isinstance(value, Call) else found


def written(value: Any) -> tuple[str, set[str]]:
    """The same as code, and the dotted paths that it imports."""
    if isinstance(value, Name):
        return value.path.rsplit(".", 1)[1], {value.path}
    if not isinstance(value, Call):
        return repr(value), set()
    parts = {name: written(v) for name, v in value.arguments.items()}
    text = ", ".join(f"{name}={part}" for name, (part, _) in parts.items())
    return f"{value.path.rsplit('.', 1)[1]}({text})", {value.path}.union(*(paths for _, paths in parts.values()))


def script(found: Sequence[tuple[str, Call]], source: str, cv: Call, scoring: str) -> str:
    """Code that runs on its own: it loads the data by ``source``, cross-validates the pipeline and prints its score."""
    lines, paths = [], {"sklearn.pipeline.Pipeline", "sklearn.model_selection.cross_val_score"}
    for step, call in found:
        text, needed = written(call)
        paths |= needed
        lines.append(f"    ({step!r}, {text}),")
    folds, needed = written(cv)
    homes: dict[str, list[str]] = {}
    for path in sorted(paths | needed):
        homes.setdefault(path.rsplit(".", 1)[0], []).append(path.rsplit(".", 1)[1])
    loading, _, loaded = source.partition("\n\n")
    imports = sorted([*loading.splitlines(), *(f"from {home} import {', '.join(n)}" for home, n in homes.items())])
    score = f"cross_val_score(model, X, y, cv={folds}, scoring={scoring!r})"
    return "\n".join([*imports, "", loaded, "model = Pipeline([", *lines, "])", f"print({score}.mean())"])
