"""Policies that end a run at the request of the optimizer or a callback."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from mipcash.study.policies.policy import CALLBACK, OPTIMIZER, Policy
from mipcash.study.study import Study
from mipcash.study.trial import Trial

Callback = Callable[[Study, Trial], object]
"""Called after each evaluation; returning True ends the run."""


class OptimizerStops(Policy):
    """Ends the run if the optimizer requests it."""

    def __init__(self, study: Study) -> None:
        self._study = study

    def refuses(self, in_flight: Collection[Trial]) -> str:
        stop_request = self._study.table.stop_request
        return f"{OPTIMIZER}: {stop_request}" if stop_request else ""


class Callbacks(Policy):
    """Ends the run if a callback returns True."""

    def __init__(self, study: Study, callbacks: Sequence[Callback]) -> None:
        self._study, self._callbacks = study, callbacks

    def evaluated(self, trial: Trial, evaluation: object) -> str:
        returned = [callback(self._study, trial) for callback in self._callbacks]
        return CALLBACK if any(isinstance(value, (bool, np.bool_)) and value for value in returned) else ""
