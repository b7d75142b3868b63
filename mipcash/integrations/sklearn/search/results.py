"""``cv_results_`` of the trials of a search."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from mipcash.errors import DataError, warn
from mipcash.integrations.sklearn.search.objective import Scores
from mipcash.study.result import Result
from mipcash.study.trial import Trial


def candidates_of(result: Result) -> list[Trial]:
    """Return the trials of the search in their order, without repeats and pending trials."""
    return [t for t in result.history if not (t.repeat or t.pending)]


def cv_results(
    trials: Sequence[Trial], params: Sequence[Mapping[str, Any]], result: Result, scores: Scores, splits: int
) -> dict[str, Any]:
    """Return the table of ``BaseSearchCV``: arrays of shape (candidates,) by name.

    A pruned configuration has the scores of the folds that it ran, and nan for the other folds and for the mean. The column
    ``status`` (``done``, ``failed`` or ``pruned``) is added to scikit-learn's columns, and under outcome constraints also
    ``feasible`` and ``limited_NAME``, the value of each constrained output. Feasible configurations rank before infeasible ones.
    """
    feasible = np.array([bool(result.feasibility.feasible(t.number)) and t.complete for t in trials], dtype=bool)
    table: dict[str, Any] = {}
    for name in ("fit_time", "score_time"):
        _times(table, name, _folds(trials, name, splits))
    table |= _masked(params)
    table["params"] = [dict(p) for p in params]
    metrics = [name for name in _names(trials) if name.startswith("test_")] or [f"test_{scores.metric}"]
    for name in metrics:
        _scores(table, name, _folds(trials, name, splits))
        table[f"rank_{name}"] = _ranks(table[f"mean_{name}"], feasible if result.under else None)
        trained = name.replace("test_", "train_", 1)
        if scores.train:
            _scores(table, trained, _folds(trials, trained, splits))
    table["status"] = np.array(["pruned" if t.pruned else t.status for t in trials], dtype=object)
    if result.under:
        table["feasible"] = feasible
        for limit in result.under:
            reported = (t.outcome[limit.output].value for t in trials)
            table[f"limited_{limit.output}"] = np.array([np.nan if v is None else v for v in reported])
    return table


def check_failures(trials: Sequence[Trial], hint: str) -> None:
    """Warn of failures, as scikit-learn does.

    Args:
        hint: added to the message if all failed.

    Raises:
        DataError: all configurations failed.
    """
    failed = [t for t in trials if t.failed]
    if not failed:
        return
    reasons = list(dict.fromkeys(t.message for t in failed))
    reported = "\n".join(f"  {reason}" for reason in reasons[:3]) + ("\n  ..." if len(reasons) > 3 else "")
    if len(failed) == len(trials):
        raise DataError(
            f"all {len(failed)} configurations failed, so that there is nothing to choose from; the pipeline, the data or the "
            f"scoring is at fault, and error_score='raise' shows where. The reasons:\n{reported}{hint}"
        )
    from sklearn.exceptions import FitFailedWarning

    warn(
        f"{len(failed)} of {len(trials)} configurations failed and have the score nan; the search learned from "
        f"that. The reasons:\n{reported}",
        FitFailedWarning,
    )


def _names(trials: Sequence[Trial]) -> list[str]:
    return list(dict.fromkeys(name for t in trials for name in t.outcome.outputs))


def _folds(trials: Sequence[Trial], name: str, splits: int) -> NDArray[np.float64]:
    """Return an output by fold, shape (candidates, splits); nan where a fold was not run."""
    table = np.full((len(trials), splits), np.nan)
    for row, trial in zip(table, trials, strict=True):
        reported = trial.outcome[name].folds[:splits]
        row[: len(reported)] = reported
    return table


def _times(table: dict[str, Any], name: str, folds: NDArray[np.float64]) -> None:
    """Add mean and deviation of a time over the folds that were run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no fold was run
        table[f"mean_{name}"], table[f"std_{name}"] = np.nanmean(folds, axis=1), np.nanstd(folds, axis=1)


def _scores(table: dict[str, Any], name: str, folds: NDArray[np.float64]) -> None:
    for split, column in enumerate(folds.T):
        table[f"split{split}_{name}"] = column
    table[f"mean_{name}"], table[f"std_{name}"] = folds.mean(axis=1), folds.std(axis=1)


def _ranks(means: NDArray[np.float64], feasible: NDArray[np.bool_] | None) -> NDArray[np.int32]:
    """Return ranks; 1 is the best, and nan ranks last."""
    known = ~np.isnan(means)
    first = known if feasible is None else known & feasible
    ranks = np.full(len(means), 1 + int(known.sum()), dtype=np.int32)
    ranks[first] = rankdata(-means[first], method="min")
    others = known & ~first
    ranks[others] = int(first.sum()) + rankdata(-means[others], method="min")
    return ranks


def _masked(params: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``param_NAME`` columns, masked where a parameter is inactive."""
    found = {}
    for name in dict.fromkeys(n for p in params for n in p):
        values = [p[name] for p in params if name in p]
        plain = all(type(v) is type(values[0]) and isinstance(v, (bool, int, float)) for v in values)
        column = np.ma.MaskedArray(np.empty(len(params), dtype=type(values[0]) if plain else object), mask=True)
        for row, p in enumerate(params):
            if name in p:
                column[row] = p[name]
        found[f"param_{name}"] = column
    return found
