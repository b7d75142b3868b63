"""Runs that the optimizer, a callback or the objective itself ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from mipcash.errors import DefectError
from mipcash.study.evaluating.defects import DefectsByOutput, misnamed
from mipcash.study.evaluating.evaluation import Evaluation
from mipcash.study.policies.policy import BUDGET, CALLBACK, DEFECT, OPTIMIZER, Policy
from mipcash.study.result import LEAST, SUSPICIOUS
from mipcash.study.study import Study
from mipcash.study.trial import Trial

Callback = Callable[[Study, Trial], object]
"""Called after each evaluation; returning True ends the run."""


class OptimizerStops(Policy):
    """The run ends where the optimizer wishes no further proposal."""

    def __init__(self, study: Study) -> None:
        self._study = study

    def refuses(self, in_flight: Collection[Trial]) -> str:
        wish = self._study.table.wish
        return f"{OPTIMIZER}: {wish}" if wish else ""


class Callbacks(Policy):
    """The run ends where a callback returns True."""

    def __init__(self, study: Study, callbacks: Sequence[Callback]) -> None:
        self._study, self._callbacks = study, callbacks

    def told(self, trial: Trial, evaluation: object) -> str:
        ends = [callback(self._study, trial) is True for callback in self._callbacks]
        return CALLBACK if any(ends) else ""


class Defects(Policy):
    """The run ends with an error where the objective fails for a reason of its own (:mod:`mipcash.study.evaluating.defects`).

    The evaluations that failed for it are taken back, and made again when the run is repeated.
    """

    def __init__(self, study: Study) -> None:
        self._study, self._defects = study, DefectsByOutput()

    def waits(self, in_flight: Collection[Trial]) -> bool:
        """As long as there is doubt, what runs may show that there is no defect."""
        return self._defects.found is not None

    def told(self, trial: Trial, evaluation: Evaluation | None) -> str:
        if evaluation is not None:
            parts = evaluation.parts or {"": evaluation}
            called = {name: (part.returned, part.raised) for name, part in parts.items()}
            self._defects.note(trial, called, lambda: self._study.trials)
        return ""

    def check(self, in_flight: Collection[Trial]) -> None:
        self._refuse(in_flight, SUSPICIOUS)

    def ends(self, reason: str) -> None:
        """The budget may be spent before there were enough evaluations to be sure of a defect."""
        if reason == BUDGET:
            self._defects.at_end(self._study.trials)
            self._refuse((), LEAST)

    def _refuse(self, in_flight: Collection[Trial], least: int) -> None:
        defect = self._defects.found or misnamed(self._study.trials, self._study.limits, least)
        if defect is None or (in_flight and not defect.certain):
            return
        for number in defect.trials:
            self._study.reopen(self._study.trials[number])
        self._study.stop(f"{DEFECT}: {defect.text}")
        raise DefectError(str(defect))
