"""Partial results of an evaluation, one per step (fold or epoch), which an objective that is a generator yields.

The outcome is the mean of each output over the steps, unless the generator returns its own outcome. A partial result without a loss
ends the evaluation as failed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mipcash.errors import MipcashError
from mipcash.optimizers.outcome import LOSS

MOST_STEPS = 10_000
"""Largest number of steps of one evaluation; a generator that yields more is taken for endless."""

Estimates = Mapping[str, tuple[float, float]]
"""By output: an estimate of its value for the complete evaluation, and the variance of that estimate."""

Judge = Callable[[Sequence[Mapping[str, float]]], Estimates]
"""Called after each step with the outputs of all steps so far. Returns estimates to stop the evaluation, else an empty dict."""


class EndlessError(MipcashError):
    """Raised if an objective does not stop yielding."""


@dataclass(frozen=True)
class NegatedJudge:
    """Judge of a maximised loss: applies a judge of minimised losses to the negated loss."""

    judge: Judge

    def __call__(self, fits: Sequence[Mapping[str, float]]) -> Estimates:
        """Return estimates as a ``Judge`` does, with the objective's own sign."""
        reported = self.judge([{**fit, LOSS: -fit[LOSS]} if LOSS in fit else fit for fit in fits])
        return {name: (-value if name == LOSS else value, variance) for name, (value, variance) in reported.items()}


@dataclass(frozen=True)
class Folds:
    """Partial results of an evaluation, one per step (fold or epoch). ``study.tell`` takes them as an outcome.

    Args:
        values: one per step: the loss, or a dict with ``"loss"`` and further named numbers.
        outcome: outcome of the evaluation; None: the mean of each output over the steps that gave it.
        pruned: estimates for the complete evaluation if it was pruned; empty otherwise.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> study = mc.Study(space, "random")
        >>> study.tell(study.ask(), mc.Folds([0.25, 0.125, 0.375])).loss  # their mean
        0.25
    """

    values: Sequence[Any]
    outcome: Any = None
    pruned: Estimates = field(default_factory=dict)


def gathered(
    yielded: Iterator[Any],
    values: list[Any],
    read: Callable[[Any], Mapping[str, float] | None],
    judge: Judge | None = None,
) -> Folds:
    """Collect the results that a generator yields, until it returns, yields an invalid result, or is pruned.

    Args:
        values: list that receives the results, even if the generator raises.
        read: returns the numbers of a partial result by output, or None if it is invalid, so that the evaluation has failed.
        judge: decides when to stop; None: the generator is never stopped.

    Raises:
        EndlessError: there are more than ``MOST_STEPS`` results.
    """
    fits: list[Mapping[str, float]] = []
    while True:
        try:
            values.append(next(yielded))
        except StopIteration as end:
            return Folds(tuple(values), end.value)
        fit = read(values[-1])
        estimates: Estimates = {}
        if fit is not None:
            fits.append(fit)
            estimates = {} if judge is None else judge(fits)
        if fit is None or estimates:
            _close(yielded)
            return Folds(tuple(values), None, estimates)
        if len(values) >= MOST_STEPS:
            _close(yielded)
            values.clear()
            raise EndlessError(f"the objective yielded {MOST_STEPS:,} partial results and did not end; let it return")


def _close(yielded: Iterator[Any]) -> None:
    """Close a generator. Exceptions during its cleanup are ignored, because its results are complete."""
    with contextlib.suppress(Exception):
        getattr(yielded, "close", lambda: None)()
