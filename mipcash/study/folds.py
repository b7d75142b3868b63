"""Partial results of an evaluation, one per fit: what an objective that is a generator yields.

The outcome is the mean of each output over the fits, unless the generator returns one of its own. A partial result without a loss
ends the evaluation, which has failed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mipcash.errors import MipcashError
from mipcash.optimizers.outcome import LOSS

MOST_FITS = 10_000
"""Of one evaluation: a generator that yields more has no end."""

Estimates = Mapping[str, tuple[float, float]]
"""By output: what the whole evaluation would have given, and the variance of that."""

Judge = Callable[[Sequence[Mapping[str, float]]], Estimates]
"""Asked after each fit, of the numbers that each fit so far gave by output: estimates, to stop; empty, to go on."""


class EndlessError(MipcashError):
    """An objective yields without an end."""


@dataclass(frozen=True)
class TurnedJudge:
    """A judge of losses that are to be minimised, for an objective whose losses are to be maximised."""

    judge: Judge

    def __call__(self, fits: Sequence[Mapping[str, float]]) -> Estimates:
        """As a :data:`Judge`."""
        told = self.judge([{**fit, LOSS: -fit[LOSS]} if LOSS in fit else fit for fit in fits])
        return {name: (-value if name == LOSS else value, variance) for name, (value, variance) in told.items()}


@dataclass(frozen=True)
class Folds:
    """Partial results of an evaluation, one per fit. ``study.tell`` takes them as an outcome.

    >>> study.tell(trial, mc.Folds([0.21, 0.18, 0.24]))  # the loss is their mean

    Attributes:
        values: each a number, the loss of that fit, or a dict with ``"loss"`` and further named numbers.
        outcome: what the evaluation gave in the end; None: the mean of each output over the fits that gave it.
        stopped: estimates of what the whole evaluation would have given, where it was stopped; empty: it was not.
    """

    values: Sequence[Any]
    outcome: Any = None
    stopped: Estimates = field(default_factory=dict)


def gathered(
    yielded: Iterator[Any],
    values: list[Any],
    read: Callable[[Any], Mapping[str, float] | None],
    judge: Judge | None = None,
) -> Folds:
    """What a generator yields, until it returns, gives what cannot count, or is stopped.

    Args:
        values: where they are kept, also of a generator that raises.
        read: the numbers of a partial result by output; None: it cannot count, so that the evaluation has failed.
        judge: says when to stop; None: nothing does.

    Raises:
        EndlessError: there are more than ``MOST_FITS``.
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
        if len(values) >= MOST_FITS:
            _close(yielded)
            values.clear()
            raise EndlessError(f"the objective yielded {MOST_FITS:,} partial results and did not end; let it return")


def _close(yielded: Iterator[Any]) -> None:
    """Let a generator tidy up; what it does wrong there changes nothing of what it gave."""
    with contextlib.suppress(Exception):
        getattr(yielded, "close", lambda: None)()
