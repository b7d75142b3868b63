"""Effects with intervals, and what they say of a claim.

Notation:
    x_1 ... x_n   effect of each run (or pair of runs that share problem and seed) in the direction of the claim.
    difference    mean of x; 0 is no effect.
    times         geometric mean of x; 1 is no effect.
    median        median of x; 1 is no effect. For ratios of which some are 0, as where a loss is never reached.
    share         mean of x in {0, 1}.
Intervals are at 95 %: Student's t for means, percentile bootstrap over runs for medians, and Wilson's for shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest, fisher_exact, t

DIFFERENCE, TIMES, MEDIAN, SHARE = "difference", "times", "median", "share"
NONE = {DIFFERENCE: 0.0, TIMES: 1.0, MEDIAN: 1.0}
"""Value of no effect."""
MARGIN = 0.2
"""Relative change up to which two methods count as equally good, where equality is the claim."""
RUNS = 100
"""Number of runs of which a paper claims that all have a property; compared by Fisher's exact test."""
DRAWS = 4000
REPRODUCED, REFUTED, CHANCE, NOT_RUN = "reproduced", "refuted", "within chance", "not run"

BETTER, EQUAL, ALL = "better", "equal", "all"
"""Claims: an effect above none, no effect beyond MARGIN, or that of every run."""


@dataclass(frozen=True)
class Effect:
    """Estimate with its interval.

    Attributes:
        n: number of runs or pairs.
    """

    value: float
    low: float
    high: float
    n: int


def estimate(values: Sequence[float], kind: str) -> Effect:
    """Return the estimate and its interval at 95 %.

    Args:
        values: x, at least two.
        kind: one of the kinds above.
    """
    x = np.asarray(values, dtype=float)
    if kind == SHARE:
        return Effect(float(x.mean()), *wilson(int(x.sum()), len(x)), len(x))
    if kind == MEDIAN:
        rng = np.random.default_rng(0)
        drawn = np.median(x[rng.integers(len(x), size=(DRAWS, len(x)))], axis=1)
        return Effect(float(np.median(x)), *np.quantile(drawn, (0.025, 0.975)).tolist(), len(x))
    x = np.log(x) if kind == TIMES else x
    mean, apart = float(x.mean()), float(t.ppf(0.975, len(x) - 1) * x.std(ddof=1) / np.sqrt(len(x)))
    found = [mean, mean - apart, mean + apart]
    return Effect(*(np.exp(found).tolist() if kind == TIMES else found), len(x))


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Return Wilson's interval of a share at 95 %."""
    found = binomtest(successes, n).proportion_ci(method="wilson")
    return float(found.low), float(found.high)


def verdict(effect: Effect, kind: str, claimed: str) -> str:
    """Return whether the interval confirms a claim, contradicts it, or leaves both possible."""
    low, high = effect.low, effect.high
    if claimed == ALL:
        kept = round(effect.value * effect.n)
        fewer = fisher_exact([[kept, effect.n - kept], [RUNS, 0]]).pvalue
        return REPRODUCED if kept == effect.n else REFUTED if fewer < 0.05 else CHANCE
    none = NONE[kind]
    if claimed == EQUAL:
        least, most = 1.0 - MARGIN, 1.0 / (1.0 - MARGIN)
        return REPRODUCED if least <= low and high <= most else REFUTED if high < least or low > most else CHANCE
    return REPRODUCED if low > none else REFUTED if high < none else CHANCE
