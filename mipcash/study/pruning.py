"""Pruning: stop an evaluation that yields partial results before its last step, and estimate its final outcome.

Notation
    K           steps (folds, epochs) of a complete evaluation;   l_j the loss of its j-th step;   L its loss;   * the incumbent
    v_k         value after k steps: their mean if L is the mean of all (folds), else l_k (a learning curve)
    d_j         l_j - l*_j, paired: both were fitted to the same data
    s2          variance of the d_j about their means, pooled over the complete evaluations except the incumbent

    racing      stop after k steps if v_k - v*_k > c sqrt(V_k)
    halving     stop at rung k = first factor^i if v_k is not among the best 1 / factor of the evaluations that reached the rung
    estimate    folds: L* + v_k - v*_k, of variance V_k = s2 (1/k - 1/K), that of a mean of k out of K about the mean of all
                learning curves: regression of the final loss on v_k over complete evaluations (below)

The incumbent is the best complete evaluation of this study that is legal and feasible. Nothing is stopped until there is an
incumbent and there are enough complete evaluations to estimate the variances. Paired racing applies to folds only, because learning
curves cross. Halving is the stopping variant of asynchronous successive halving (li2020): it neither waits for other evaluations
nor resumes any.

Final loss of a pruned learning curve, estimated from complete evaluations:

Notation
    (v_i, L_i)  of complete evaluations: the loss at step k and the loss at the end, n of them
    m           the isotonic regression of L on v: a curve that is better at step k is not expected to end worse

    estimate    m(v), linear between the v_i; beyond the worst v_i extrapolated with the slope from the best to the worst
    V           mean square of L_i - m_{-i}(v_i), the leave-one-out residuals

The difference to the incumbent at step k alone would be misleading. Curves that are close after one epoch can differ widely at the
end, and the worst curve would be estimated as nearly as good as the incumbent.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from numbers import Real
from typing import Any

import numpy as np

from mipcash.errors import warn
from mipcash.optimizers.optimizer import Limit
from mipcash.optimizers.outcome import LOSS
from mipcash.study.arguments import whole_number
from mipcash.study.feasibility import Feasibility
from mipcash.study.folds import Estimates, Judge, NegatedJudge
from mipcash.study.trial import Trial
from mipcash.text import shown

Pairs = Sequence[tuple[float, float]]
"""Pairs ``(v_i, L_i)``."""


@dataclass(frozen=True)
class FinalLossEstimator:
    """Estimator of the final loss of a learning curve at one step.

    Attributes:
        pairs: (v_i, L_i) of the complete evaluations, at least two, sorted by v_i.
        variance: V.
    """

    pairs: tuple[tuple[float, float], ...]
    variance: float

    @classmethod
    def of(cls, pairs: Pairs) -> FinalLossEstimator:
        """Make the estimator with its leave-one-out variance; with fewer than three pairs, with the variance of the L_i."""
        ordered = sorted(pairs)
        ends = [end for _, end in ordered]
        if len(ordered) < 3:
            return cls(tuple(ordered), float(np.var(ends)))
        apart = [end - expected(v, ordered[:k] + ordered[k + 1 :]) for k, (v, end) in enumerate(ordered)]
        return cls(tuple(ordered), math.fsum(d * d for d in apart) / len(apart))

    def __call__(self, v: float) -> float:
        """Return the estimated final loss of a curve with value v."""
        return expected(v, self.pairs)


def expected(v: float, pairs: Pairs) -> float:
    """Return m(v).

    Args:
        v: the loss at step k.
        pairs: (v_i, L_i), sorted by v_i, at least one.
    """
    from scipy.optimize import isotonic_regression  # not in every worker process, which imports this module

    values, ends = np.array(pairs, dtype=float).T
    at, place, weights = np.unique(values, return_inverse=True, return_counts=True)
    fitted = isotonic_regression(np.bincount(place, ends) / weights, weights=weights).x
    if v <= at[-1] or len(at) == 1:
        return float(np.interp(v, at, fitted)) + max(0.0, v - float(at[-1]))
    slope = (fitted[-1] - fitted[0]) / (at[-1] - at[0])
    return float(fitted[-1] + slope * (v - at[-1]))


SAME = 1e-9
"""Relative rounding error within which a loss counts as the mean of its steps."""


CURVES = (
    "pruning=True compares means of folds, and stops nothing here: the loss of these evaluations is not the mean of what they "
    'yield or report, as of epochs. Learning curves are stopped by pruning="halving"'
)


@dataclass(frozen=True)
class Racing:
    """Paired racing: prune an evaluation that is clearly worse than the incumbent, step by step.

    Args:
        c: threshold in standard deviations of the paired difference; infinite: nothing is stopped.
        least: number of complete evaluations required before pruning starts.

    Raises:
        ValueError: c is no number above 0, or least is no integer of at least 2.

    Examples:
        >>> import mipcash as mc
        >>> def train(config):
        ...     yield from (config["a"] + noise for noise in (0.3, 0.0, -0.3, 0.1, -0.1))  # five folds
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> run = mc.minimize(train, space, 8, optimizer="random", pruning=mc.Racing(c=2.0, least=3), progress=False)
        >>> run.n_pruned > 0
        True
    """

    c: float = 1.5
    least: int = 5

    def __post_init__(self) -> None:
        if not isinstance(self.c, Real) or isinstance(self.c, bool) or not float(self.c) > 0.0:
            raise ValueError(f"c of racing must be a number above 0, such as 1.5; got {shown(self.c)}")
        whole_number("least of racing", self.least, 2)


@dataclass(frozen=True)
class Halving:
    """Successive halving: only the best evaluations at a rung go on to the next.

    Args:
        factor: ratio of the steps of two successive rungs; the best 1 / factor of a rung go on.
        first: number of steps at the first rung.
        least: number of complete evaluations required before pruning starts.

    Raises:
        ValueError: a value is no integer, or too small.

    Examples:
        >>> import mipcash as mc
        >>> def train(config):
        ...     yield from (config["a"] + 1 / (epoch + 1) for epoch in range(9))
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> run = mc.minimize(train, space, 8, optimizer="random", pruning=mc.Halving(factor=3), progress=False)
        >>> run.n_pruned > 0, mc.Halving(factor=3).rungs(9)
        (True, [1, 3])
    """

    factor: int = 3
    first: int = 1
    least: int = 3

    def __post_init__(self) -> None:
        for name, least in (("factor", 2), ("least", 2), ("first", 1)):
            whole_number(f"{name} of halving", getattr(self, name), least)

    def rungs(self, fits: int) -> list[int]:
        """Return the rungs below a number of steps.

        Args:
            fits: number of steps of a complete evaluation.

        Returns:
            The numbers of steps at the rungs.
        """
        found = []
        rung = int(self.first)
        while rung < fits:
            found.append(rung)
            rung *= int(self.factor)
        return found


PruningGiven = bool | str | Racing | Halving | None
"""Type of ``pruning=``."""

HALVING = "halving"


def pruning_of(given: Any) -> Racing | Halving | None:
    """Return the settings given as ``pruning=``; None if nothing is pruned.

    Raises:
        ValueError: the value is not supported.
    """
    if given is None or given is False:
        return None
    if given is True:
        return Racing()
    if isinstance(given, str) and given == HALVING:
        return Halving()
    if isinstance(given, (Racing, Halving)):
        return given
    raise ValueError(
        f'pruning must be True, False, "{HALVING}", mc.Racing(c=1.5) or mc.Halving(factor=3); got {shown(given)}'
    )


def judge_for(
    racing: Racing | Halving | None, trial: Trial, trials: Sequence[Trial], limits: Sequence[Limit]
) -> Judge | None:
    """Return the judge that decides when to stop the evaluation of a trial that starts now; None if it is never stopped.

    It takes values with the objective's own sign, and can be pickled. It uses the outcomes recorded so far, wherever the
    evaluation runs; outcomes recorded later do not change it. Repeats use other folds: they are never stopped, and their outcomes
    are not used.

    Args:
        trials: of the study, in the order of their numbers.
    """
    if racing is None or trial.repeat:
        return None
    trials = [t.in_minimisation_form() for t in trials if not t.repeat]
    whole = [t for t in trials if _comparable(t)]
    if len(whole) < racing.least:
        return None
    feasibility = Feasibility.of(trials, trial.objectives.in_minimisation_form(limits))
    kept = {trials[k].number for row in feasibility.kept for k in row.parts}
    best = min((t for t in whole if t.number in kept), key=_by_loss, default=None)
    if best is None:
        return None
    # evaluations with another number of steps are not comparable: they stopped early by themselves or used other folds
    whole = [t for t in whole if len(t.folds) == len(best.folds)]
    averaged = all(_averaged(t) for t in whole)
    if len(whole) < racing.least:
        return None
    if isinstance(racing, Racing) and not averaged:
        if len(whole) == racing.least:
            warn(CURVES)
        return None
    rungs = racing.rungs(len(best.folds)) if isinstance(racing, Halving) else []
    reference = _references(whole, best, None if averaged else rungs)
    judge: Judge
    if isinstance(racing, Racing):
        judge = RacingJudge(reference, float(racing.c))
    else:
        inside = {trials[k].number for row in feasibility.inside for k in row.parts}
        there = [t for t in trials if t.number in inside and not t.known and t.loss is not None]
        reached = {
            rung: tuple(sorted(so_far(t.folds, averaged)[rung - 1] for t in there if len(t.folds) >= rung))
            for rung in rungs
        }
        judge = HalvingJudge(reference, int(racing.factor), reached)
    return NegatedJudge(judge) if trial.objectives.maximised else judge


@dataclass(frozen=True)
class Reference:
    """Data for estimating one output of a pruned evaluation: values of the incumbent, and variances or learning-curve estimators.

    Attributes:
        value: L*.
        so_far: v*_k at index k - 1, shape (K,).
        variances: V_k at index k - 1, shape (K,); empty for learning curves.
        outlooks: estimators of learning curves by rung; empty if v_k is a mean.
    """

    value: float
    so_far: tuple[float, ...]
    variances: tuple[float, ...] = ()
    outlooks: Mapping[int, FinalLossEstimator] = field(default_factory=dict)

    @property
    def averaged(self) -> bool:
        """True if v_k is a mean."""
        return not self.outlooks

    def difference(self, folds: Sequence[float]) -> float:
        """Return v_k - v*_k for the first k steps."""
        k = len(folds)
        return (math.fsum(folds) / k if self.averaged else folds[-1]) - self.so_far[k - 1]

    def estimate(self, folds: Sequence[float]) -> tuple[float, float]:
        """Return an estimate for the complete evaluation, and its variance."""
        if self.outlooks:
            outlook = self.outlooks[len(folds)]
            return outlook(folds[-1]), outlook.variance
        return self.value + self.difference(folds), self.variances[len(folds) - 1]


References = Mapping[str, Reference]
"""References by output, the loss among them."""


@dataclass(frozen=True)
class RacingJudge:
    """Judge that compares an evaluation with the incumbent."""

    references: References
    c: float

    def __call__(self, fits: Sequence[Mapping[str, float]]) -> Estimates:
        """Return estimates for the complete evaluation to stop it, or an empty dict to go on."""
        loss, folds = self.references[LOSS], [fit[LOSS] for fit in fits]
        if len(folds) >= len(loss.so_far):
            return {}
        clear = self.c * math.sqrt(loss.variances[len(folds) - 1])
        return _estimates(self.references, fits) if loss.difference(folds) > clear else {}


@dataclass(frozen=True)
class HalvingJudge:
    """Judge that compares an evaluation with those that reached the same rung.

    Attributes:
        references: reference of each output, for the estimates.
        factor: the best 1 / factor go on.
        reached: rung -> v_k of the evaluations that reached it, in ascending order.
    """

    references: References
    factor: int
    reached: Mapping[int, tuple[float, ...]]

    def __call__(self, fits: Sequence[Mapping[str, float]]) -> Estimates:
        """Return estimates for the complete evaluation to stop it, or an empty dict to go on."""
        others = self.reached.get(len(fits), ())
        if len(others) + 1 < self.factor:
            return {}
        value = so_far([fit[LOSS] for fit in fits], self.references[LOSS].averaged)[-1]
        better = bisect.bisect_left(others, value)
        return {} if better < (len(others) + 1) // self.factor else _estimates(self.references, fits)


def so_far(folds: Sequence[float], averaged: bool) -> list[float]:
    """Return v_1 to v_k of k steps."""
    if not averaged:
        return list(folds)
    return [total / (k + 1) for k, total in enumerate(accumulate(folds))]


def _comparable(trial: Trial) -> bool:
    """Return True for a complete evaluation of this study with several steps."""
    return trial.done and not trial.known and trial.loss is not None and trial.complete and len(trial.folds) > 1


def _by_loss(trial: Trial) -> tuple[float, int]:
    return (math.inf if trial.loss is None else trial.loss), trial.number


def _averaged(trial: Trial) -> bool:
    mean = math.fsum(trial.folds) / len(trial.folds)
    return trial.loss is not None and abs(trial.loss - mean) <= SAME * max(abs(mean), *map(abs, trial.folds))


def _references(whole: Sequence[Trial], best: Trial, rungs: Sequence[int] | None) -> dict[str, Reference]:
    """Return a reference for each output that all complete evaluations gave at every step. Other outputs cannot be estimated.

    Args:
        rungs: the rungs, for learning curves; None if v_k is a mean.
    """
    found, averaged = dict[str, Reference](), rungs is None
    for name in best.outcome.outputs:
        outputs = [t.outcome[name] for t in whole]
        if all(o.value is not None and len(o.folds) == len(best.folds) for o in outputs):
            rows = [(o.value or 0.0, so_far(o.folds, averaged), o.folds) for o in outputs]
            finite = all(math.isfinite(v) for value, *parts in rows for v in (value, *(f for p in parts for f in p)))
            if finite:
                found[name] = _reference(rows, whole.index(best), rungs)
    return found


def _reference(
    rows: Sequence[tuple[float, Sequence[float], Sequence[float]]], best: int, rungs: Sequence[int] | None
) -> Reference:
    """Return the reference of one output.

    Args:
        rows: per complete evaluation L, v_1 to v_K and l_1 to l_K.
        best: row of the incumbent.
        rungs: the rungs, for learning curves; None if v_k is a mean.
    """
    value, values, folds = rows[best]
    if rungs is not None:
        outlooks = {rung: FinalLossEstimator.of([(row[1][rung - 1], row[0]) for row in rows]) for rung in rungs}
        return Reference(value, tuple(values), outlooks=outlooks)
    others = [row for k, row in enumerate(rows) if k != best]
    count = len(folds)
    apart = [[l - i for l, i in zip(row[2], folds, strict=True)] for row in others]
    squares = math.fsum((d - math.fsum(ds) / count) ** 2 for ds in apart for d in ds)
    pooled = squares / (len(others) * (count - 1))
    variances = [pooled * (1.0 / k - 1.0 / count) for k in range(1, count + 1)]
    return Reference(value, tuple(values), tuple(variances))


def _estimates(references: References, fits: Sequence[Mapping[str, float]]) -> Estimates:
    return {
        name: reference.estimate([fit[name] for fit in fits])
        for name, reference in references.items()
        if all(name in fit for fit in fits)
    }
