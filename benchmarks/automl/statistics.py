"""Paired comparisons: ranks, differences with standard errors and Wilcoxon's signed ranks.

Seeds of one set share its rows, so they are not independent pairs. Tests are therefore reported over runs, and over
sets with the mean of each set's seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, wilcoxon

Key = tuple[str, int]
Losses = Mapping[Key, float]


def shared(contenders: Mapping[str, Losses]) -> list[Key]:
    """Return the runs that all contenders have."""
    return sorted(set.intersection(*(set(losses) for losses in contenders.values()))) if contenders else []


def compared(contenders: Mapping[str, Losses], reference: str, keys: Sequence[Key] | None = None) -> list[dict[str, Any]]:
    """Return all contenders on their common runs, each compared with the reference, sorted by mean rank.

    Returns:
        rank, rank_error: mean over runs, and its standard error over sets.
        loss: mean over runs.
        gain, gain_error: its loss minus the reference's, mean and standard error over sets; above 0 the reference is better.
        better, worse, ties: runs in which the reference is better, worse, equal.
        wilcoxon_runs, wilcoxon_sets: p-values of Wilcoxon's test, two-sided, over runs and over sets.
    """
    keys = shared(contenders) if keys is None else list(keys)
    if not keys:
        return []
    names = list(contenders)
    losses = np.array([[contenders[name][key] for key in keys] for name in names])
    ranks = rankdata(np.round(losses, 9), axis=0)
    sets = np.array([data for data, _ in keys])
    found = []
    for row, name in enumerate(names):
        difference = losses[row] - losses[names.index(reference)]
        by_set = _by_set(difference, sets)
        better, worse = int((difference > 1e-9).sum()), int((difference < -1e-9).sum())
        found.append(
            {
                "name": name,
                **{"rank": float(ranks[row].mean()), "rank_error": error(_by_set(ranks[row], sets))},
                "loss": float(losses[row].mean()),
                **{"gain": float(by_set.mean()), "gain_error": error(by_set)},
                **{"better": better, "worse": worse, "ties": len(keys) - better - worse},
                **{"wilcoxon_runs": signed_ranks(difference), "wilcoxon_sets": signed_ranks(by_set)},
            }
        )
    return sorted(found, key=lambda c: c["rank"])


def _by_set(values: NDArray[np.float64], sets: NDArray[np.str_]) -> NDArray[np.float64]:
    return np.array([values[sets == name].mean() for name in np.unique(sets)])


def error(values: NDArray[np.float64]) -> float:
    """Return the standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def signed_ranks(differences: NDArray[np.float64]) -> float:
    """Return the p-value of Wilcoxon's test, or 1 if all differences are zero."""
    some = np.round(differences, 9)
    some = some[some != 0.0]
    return float(wilcoxon(some).pvalue) if len(some) else 1.0
