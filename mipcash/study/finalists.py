"""Finalists: configurations that are evaluated again after the search, and the best trial among them.

The lowest of many noisy losses is biased: the search's best trial owes part of its loss to chance, and need not be the best on
fresh folds. A few finalists are therefore evaluated again, all on the same fresh repeats, so that a difficult fold affects all of
them equally.

Notation
    L_ir (i finalists, r = 1..R repeats) fresh losses;   l_irk the losses of single steps (folds), if the objective yields them
    d = the mean over r of L_ir - L_jr: how much i is worse than the best trial j; its standard error is that of n paired
    differences, sqrt(s^2 (1/n + q)), s^2 their sample variance. Fold differences are not independent, since training sets overlap:
    q = 1 / (K - 1) for K folds (Nadeau and Bengio 2003). If single folds are not known, repeats are compared, and q = 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, variance

import numpy as np

from mipcash.display import aligned
from mipcash.optimizers.optimizer import History, Limit, Observation
from mipcash.optimizers.outcome import PENDING
from mipcash.study.feasibility import Violation, violated
from mipcash.text import one_line


@dataclass(frozen=True)
class Finalist:
    """A configuration that was evaluated again. In a result its losses have the objective's own sign.

    Attributes:
        number: number of its trial in the search.
        searched: loss of that trial.
        fresh: known losses of its repeats, shape (R,).
        steps: losses of the single steps of each repeat; empty tuples if the objective yielded none.
        problem: why it cannot be recommended (a repeat failed, or the mean of the repeats violates a constraint); empty if it can.
    """

    number: int
    searched: float
    fresh: tuple[float, ...]
    steps: tuple[tuple[float, ...], ...]
    problem: str = ""

    @property
    def mean(self) -> float:
        """Mean of the fresh losses; nan if there are none."""
        return fmean(self.fresh) if self.fresh else math.nan


@dataclass(frozen=True)
class Difference:
    """Mean difference in loss between a finalist and the best trial, on the same repeats.

    Attributes:
        mean: d.
        error: its standard error; nan if fewer than two differences are known.
    """

    mean: float
    error: float

    @classmethod
    def of(cls, one: Finalist, other: Finalist) -> Difference:
        """Compare two finalists that have the same repeats."""
        pairs = list(zip(one.steps, other.steps, strict=False))
        alike = bool(pairs) and all(len(a) == len(b) > 1 for a, b in pairs)
        if alike:
            found = [x - y for a, b in pairs for x, y in zip(a, b, strict=True)]
            overlap = 1.0 / (len(pairs[0][0]) - 1)
        else:
            found, overlap = [x - y for x, y in zip(one.fresh, other.fresh, strict=False)], 0.0
        if not found:
            return cls(math.nan, math.nan)
        # the loss of an evaluation need not be the mean of the yielded losses
        mean = fmean(x - y for x, y in zip(one.fresh, other.fresh, strict=False))
        return cls(mean, math.sqrt(variance(found) * (1.0 / len(found) + overlap)) if len(found) > 1 else math.nan)


def finalists_of(history: History, limits: Sequence[Limit] = ()) -> list[Finalist]:
    """Return the configurations that were evaluated again, in the order of the search. Pending repeats are ignored.

    A configuration whose search trial has no loss, is illegal or was evaluated at a low fidelity is left out.
    """
    repeats: dict[str, list[Observation]] = {}
    for o in history:
        if o.repeat:
            repeats.setdefault(repr(o.config), []).append(o)
    found = []
    for number, o in enumerate(history):
        searched = not o.repeat and o.legal and o.loss is not None
        again = repeats.pop(repr(o.config), None) if searched else None
        if again is not None:
            found.append(_finalist(number, o, sorted(again, key=lambda r: r.repeat), limits))
    return found


def _finalist(number: int, o: Observation, repeats: History, limits: Sequence[Limit]) -> Finalist:
    reported = [r for r in repeats if r.status != PENDING]
    failed = next((r for r in reported if r.loss is None), None)
    problem = "" if failed is None else f"repeat {failed.repeat} failed: {one_line(failed.outcome.message, 80)}"
    if not problem and (broken := violated_by(reported, limits)):
        which = f"repeat {reported[0].repeat}" if len(reported) == 1 else f"the mean of {len(reported)} repeats"
        problem = f"{which} violates {', '.join(map(str, broken))}"
    kept = [r for r in reported if r.loss is not None]
    losses = tuple(float(r.loss) for r in kept if r.loss is not None)
    assert o.loss is not None
    return Finalist(number, o.loss, losses, tuple(r.folds for r in kept), problem)


def violated_by(repeats: History, limits: Sequence[Limit]) -> tuple[Violation, ...]:
    """Return the constraints that the means of finished repeats violate, or an output that failed in one of them."""
    found = []
    for limit in limits:
        each = [b for r in repeats for b in violated(r.outcome, [limit])]
        values = [float(v) for r in repeats if (v := r.outcome[limit.output].value) is not None]
        unknown = next((b for b in each if b.value is None), None)
        if unknown is not None:
            found.append(unknown)
        elif each and (by := limit.violation(fmean(values))):
            found.append(Violation(limit, fmean(values), by=by))
    return tuple(found)


def best_of(finalists: Sequence[Finalist]) -> Finalist | None:
    """Return the finalist with the lowest mean fresh loss; None if each has a problem or no fresh loss.

    Finalists with less than half of the largest number of repeats are left out: their means are too uncertain.
    """
    able = [f for f in finalists if f.fresh and not f.problem]
    most = max((len(f.fresh) for f in able), default=0)
    return min((f for f in able if 2 * len(f.fresh) >= most), key=lambda f: f.mean, default=None)


def estimate_of(finalists: Sequence[Finalist], chosen: Finalist) -> float:
    """Estimate the true loss of a finalist: the mean of its repeats, shrunk towards the mean of all finalists.

    The best of several noisy means is biased downwards. With v the variance of one repeat and s^2 that of the finalists' means, the
    expected bias is v / R / s^2 of its distance to their mean (James and Stein 1961). If all finalists have the same repeats, an
    effect that a repeat has on all of them does not count as noise. If none has two repeats, v is half the variance of the
    differences between the search's losses and the fresh ones.
    """
    able = [f for f in finalists if f.fresh and not f.problem]
    if not any(len(f.fresh) > 1 for f in able):
        return _estimate_of_single(able, chosen)
    if chosen not in able or len(able) < 2:
        return chosen.mean
    repeats = {len(f.fresh) for f in able}
    if len(repeats) == 1:
        (r,) = repeats
        common = [fmean(f.fresh[k] for f in able) for k in range(r)]
        shift, freedom = [c - fmean(common) for c in common], (len(able) - 1) * (r - 1)
        left = [x - f.mean - c for f in able for x, c in zip(f.fresh, shift, strict=True)]
    else:
        left, freedom = [x - f.mean for f in able for x in f.fresh], sum(len(f.fresh) - 1 for f in able)
    return _shrunk(chosen, able, sum(e * e for e in left) / freedom / len(chosen.fresh))


def _estimate_of_single(able: Sequence[Finalist], chosen: Finalist) -> float:
    """Return the estimate of a finalist if each has one repeat."""
    if len(able) < 3:
        return chosen.mean
    return _shrunk(chosen, able, variance(f.mean - f.searched for f in able) / 2.0)


def _shrunk(chosen: Finalist, able: Sequence[Finalist], noise: float) -> float:
    """Return a finalist's mean, moved towards the mean of all by the share of a noise variance in the variance of their means."""
    spread = float(np.var([f.mean for f in able], ddof=1))
    share = min(1.0, noise / spread) if spread and math.isfinite(noise + spread) else 0.0
    return chosen.mean + share * (fmean(f.mean for f in able) - chosen.mean)


Recommend = Callable[[History, Sequence[Limit]], Observation | None]
"""The recommendation for a search, such as that of an optimizer."""


def answer(recommend: Recommend, history: History, limits: Sequence[Limit]) -> Observation | None:
    """Return the observation to recommend: the best finalist, or else the recommendation for the search; None if there is none.

    Finalists count only if the optimizer's recommendation for the search is among them, i.e. the search has found no better
    configuration since. If all finalists have a problem, the optimizer recommends one of the other observations.
    """
    searched = [o for o in history if not o.repeat]
    found = recommend(searched, limits)
    if found is None or len(searched) == len(history):
        return found
    finalists = finalists_of(history, limits)
    configs = [repr(history[f.number].config) for f in finalists]
    if repr(found.config) not in configs or not any(f.fresh or f.problem for f in finalists):
        return found
    best = best_of(finalists)
    if best is not None and len(finalists) == 1:  # nothing else was evaluated again
        again = [o for o in history if o.repeat and o.loss is not None and repr(o.config) == configs[0]]
        return recommend([*searched, *(replace(o, repeat=0) for o in again)], limits)
    if best is not None:
        return history[best.number]
    troubled = [config for config, f in zip(configs, finalists, strict=True) if f.problem]
    return recommend([o for o in searched if repr(o.config) not in troubled], limits)


def text_of(finalists: Sequence[Finalist], chosen: int | None, maximised: bool = False) -> list[str]:
    """Return a table as lines of text: trial, loss in the search, mean fresh loss, and difference from the best trial.

    Args:
        chosen: number of the best trial.
        maximised: True if the highest loss is the best.
    """
    best = next((f for f in finalists if f.number == chosen), None)
    rows, sign = [("trial", "search", "fresh", "")], -1.0 if maximised else 1.0
    for f in sorted(finalists, key=lambda f: (bool(f.problem), math.isnan(f.mean), sign * f.mean)):
        fresh = f"{f.mean:.6g}" + (f" ({len(f.fresh)} repeats)" if len(f.fresh) > 1 else "") if f.fresh else "-"
        rows.append((str(f.number), f"{f.searched:.6g}", fresh, _compared(f, best)))
    return ["finalists, evaluated again:", *aligned(rows)]


def _compared(f: Finalist, best: Finalist | None) -> str:
    if f.problem:
        return f.problem
    if best is None or not f.fresh:
        return "not evaluated yet" if not f.fresh else ""
    if f is best:
        return "recommended"
    worse = Difference.of(f, best)
    error = "" if math.isnan(worse.error) else f", standard error {worse.error:.2g}"
    shared = min(len(f.fresh), len(best.fresh))
    where = f" on {shared} repeats of both" if len(f.fresh) != len(best.fresh) else ""
    return f"{worse.mean:+.2g} relative to the recommended trial{where}{error}".replace(
        " 1 repeats", " the first repeat"
    )
