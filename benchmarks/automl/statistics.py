"""Paired comparisons: ranks, differences with standard errors, sign test and Wilcoxon's signed ranks.

Seeds of one set share its rows, so they are not independent pairs. Tests are therefore reported over runs, and over
sets with the mean of each set's seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, rankdata, wilcoxon

Key = tuple[str, int]
Losses = Mapping[Key, float]


@dataclass(frozen=True)
class Compared:
    """Contender compared with the reference.

    Attributes:
        rank, rank_error: mean over runs, and its standard error over sets.
        loss: mean over runs.
        gain, gain_error: its loss minus the reference's, mean and standard error over sets; above 0 the reference is better.
        better, worse, ties: runs in which the reference is better, worse, equal.
        sign: p-value of the sign test over runs.
        wilcoxon_runs, wilcoxon_sets: p-values of Wilcoxon's test, two-sided, over runs and over sets.
    """

    name: str
    rank: float
    rank_error: float
    loss: float
    gain: float = 0.0
    gain_error: float = 0.0
    better: int = 0
    worse: int = 0
    ties: int = 0
    sign: float = 1.0
    wilcoxon_runs: float = 1.0
    wilcoxon_sets: float = 1.0


def shared(contenders: Mapping[str, Losses]) -> list[Key]:
    """Return the runs that all contenders have."""
    return sorted(set.intersection(*(set(losses) for losses in contenders.values()))) if contenders else []


def compared(contenders: Mapping[str, Losses], reference: str, keys: Sequence[Key] | None = None) -> list[Compared]:
    """Return all contenders on their common runs, sorted by mean rank."""
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
            Compared(
                name,
                float(ranks[row].mean()),
                error(_by_set(ranks[row], sets)),
                float(losses[row].mean()),
                float(by_set.mean()),
                error(by_set),
                better,
                worse,
                len(keys) - better - worse,
                float(binomtest(better, better + worse).pvalue) if better + worse else 1.0,
                signed_ranks(difference),
                signed_ranks(by_set),
            )
        )
    return sorted(found, key=lambda c: c.rank)


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
