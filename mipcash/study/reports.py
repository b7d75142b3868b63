"""Intermediate reports of a running evaluation, and its early stop: ``trial.report``, ``trial.should_stop``.

A report is equivalent to a ``yield`` of a generator, i.e. one step (``mipcash.study.folds``), and ``mipcash.study.pruning``
treats the two alike. The k-th report of an evaluation is compared with the k-th report of other evaluations. Its step number only
serves to detect reports that are repeated or out of order. A decision to stop counts only if nothing is reported after it;
otherwise the evaluation is complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

from mipcash.optimizers.outcome import FAILED, LOSS, TEXT, Outcome
from mipcash.study.folds import MOST_STEPS, Estimates, Folds, Judge
from mipcash.study.reading import RETURNED, read_outcome, statement
from mipcash.study.trial import Failed
from mipcash.text import shown

REPORTED = "the objective reported "
NOTHING = "the objective reported {:,} values and returned nothing; return the loss of the whole evaluation"


class Reports:
    """Reports of one evaluation.

    Args:
        judge: decides when to stop; None: the evaluation is never stopped.
        output: the output that is evaluated. A reported number without a name is a value of this output.

    Attributes:
        ended: True once the trial has its outcome; a later report would be lost.
    """

    def __init__(self, judge: Judge | None = None, output: str = LOSS) -> None:
        self._judge, self._output, self.ended = judge, output, False
        self._step: int | None = None
        self._values: list[Mapping[str, Any]] = []
        self._fits: list[Mapping[str, float]] = []
        self._problem, self._problem_is_latest = "", False
        self._estimates: Estimates = {}

    def __len__(self) -> int:
        return len(self._values)

    def report(self, step: int, value: Any) -> None:
        """See ``mipcash.Trial.report``."""
        self._check_step(step)
        outcome = self._read(value)
        self._step, self._estimates = int(step), {}
        reported = outcome[self._output]
        self._problem_is_latest = reported.status == FAILED
        if self._problem_is_latest and not self._problem:
            wording = (
                REPORTED + reported.message.removeprefix(RETURNED)
                if reported.message.startswith(RETURNED)
                else reported.message
            )
            self._problem = f"{wording} (step {step})"
        if not self._problem:  # steps after an invalid report are not comparable with steps of other trials
            self._values.append({name: _kept(outcome, name) for name in outcome.outputs})
            self._fits.append({name: o.value for name, o in outcome.outputs.items() if o.value is not None})

    def should_stop(self) -> bool:
        """See ``mipcash.Trial.should_stop``."""
        if self._fits and not self._problem and self._judge is not None:
            self._estimates = self._judge(self._fits)
        return self.stopped

    @property
    def stopped(self) -> bool:
        """True if the latest call of ``should_stop`` told the evaluation to end, or the latest report is a failure."""
        return self._problem_is_latest or bool(self._estimates)

    def outcome(self, returned: Any) -> Any:
        """Return the outcome of the evaluation, composed of the returned value and the reports."""
        if isinstance(returned, Folds):
            return returned
        values = tuple(self._values)
        if self._problem_is_latest:
            return Folds(values, Failed(self._problem))
        if self._estimates:
            if isinstance(returned, Mapping):  # with outputs beside the loss
                returned = {**returned, LOSS: self._estimates[LOSS][0]}
            return Folds(values, returned if isinstance(returned, (Mapping, Failed)) else None, self._estimates)
        if not values:
            return returned
        return Folds(values, Failed(NOTHING.format(len(values))) if returned is None else returned)

    def missing_return(self, returned: Any) -> str:
        """Return an error message if the objective reported values but returned None without being stopped; empty otherwise."""
        lacks = returned is None and self._values and not self.stopped
        return NOTHING.format(len(self._values)) if lacks else ""

    def _check_step(self, step: Any) -> None:
        if isinstance(step, bool) or not isinstance(step, Integral) or step < 0:
            raise ValueError(
                f"report(step, value) takes a step, a whole number, at least 0, and then the loss; got {shown(step)} as the step"
            )
        if self._step is not None and step <= self._step:
            again = (
                "was reported already" if step == self._step else f"comes before step {self._step}, which was reported"
            )
            raise ValueError(
                f"step {step} {again}; report each step once, in order, also where several results are one step"
            )
        if len(self._values) >= MOST_STEPS:
            raise ValueError(f"an evaluation reports at most {MOST_STEPS:,} steps; report epochs, not batches")

    def _read(self, value: Any) -> Outcome:
        outcome = read_outcome(value, (self._output,))
        if outcome[self._output].status == FAILED and not statement(value, (self._output,)):
            raise ValueError(
                f"report(step, value) takes a number, or a dict with {self._output!r}, such as report(3, 0.25); got {shown(value)}"
            )
        return outcome


def _kept(outcome: Outcome, name: str) -> Any:
    """Return an output as a plain number, text or failure, which can be parsed again and holds no graph or array."""
    output = outcome[name]
    if output.value is not None:
        return output.value
    return output.message if output.status == TEXT else Failed(output.message)
