"""Policies that end a run: its budget, its deadline, a request of the optimizer or of a callback."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np

from mipcash.errors import BudgetError, warn
from mipcash.study.policies.policy import BUDGET, CALLBACK, OPTIMIZER, TIMEOUT, Policy
from mipcash.study.spending import Reserve, Spending
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


class WithinBudget(Policy):
    """Starts no trial that might exceed the budget, given the trials in flight here and at other workers.

    Args:
        reserve: part of the budget that the search leaves to repeats.
        whole: True if every trial evaluates all outputs, as repeats do.
    """

    def __init__(self, study: Study, spending: Spending, reserve: Reserve, whole: bool = False) -> None:
        self._study, self._spending, self._reserve, self._whole = study, spending, reserve, whole

    def refuses(self, in_flight: Collection[Trial]) -> str:
        # at fidelities the last evaluation may exceed the budget
        whole = self._whole and not self._study.objectives.fidelity
        cost = self._spending.whole(self._study.table.trials) if whole else None
        return "" if self.pays(in_flight, cost) else BUDGET

    def waits(self, in_flight: Collection[Trial]) -> bool:
        """Return True while the first evaluation runs under a budget in steps, since the number of steps is not known before."""
        return self._spending.by_steps and bool(in_flight) and not self._study.n_evaluated

    def evaluated(self, trial: Trial, evaluation: object) -> str:
        """Warn if more steps were taken than the budget has.

        Raises:
            BudgetError: the first evaluation alone took more steps than the budget.
        """
        if self._spending.by_steps:
            try:
                problem = self._spending.exceeded(self._study.table.trials)
            except BudgetError:
                self._study.stop(BUDGET)
                raise
            if problem:
                warn(problem)
        return ""

    def pays_for(self, trial: Trial, in_flight: Collection[Trial]) -> bool:
        """Return True if the budget pays for a trial that was proposed, or for a part of one at a higher fidelity."""
        return self.pays(in_flight, None if self._study.objectives.fidelity else self._spending.of(trial))

    def pays(self, in_flight: Collection[Trial], cost: float | None = None) -> bool:
        """Return True if the budget pays for another trial.

        Args:
            cost: of the trial; None: the least cost that it may have.
        """
        study = self._study
        if study.record.budget is not None:  # the budget belongs to the study, and another worker may have changed it
            self._spending = replace(self._spending, total=study.record.budget)
        spending, mine = self._spending, {trial.number for trial in in_flight}
        in_flight = [*in_flight, *(trial for trial in study.table.elsewhere if trial.number not in mine)]
        if not (spending.costs or spending.by_steps or study.objectives.fidelity):
            return spending.admits(study.n_evaluated + len(in_flight) + 1 + self._reserve.evaluations)
        trials = study.table.trials
        kept = self._reserve.of(spending, trials)
        if spending.by_steps:
            most = spending.least(trials)
            return spending.admits(spending.spent(trials) + (len(in_flight) + 1) * most + kept)
        cost = spending.least(trials) if cost is None else cost
        return spending.admits(spending.spent(trials) + sum(map(spending.of, in_flight)) + cost + kept)


class Deadline(Policy):
    """Starts no trial after a point in time.

    Args:
        seconds: from now; None: there is no deadline.
    """

    def __init__(self, seconds: float | None) -> None:
        self.at = None if seconds is None else time.monotonic() + seconds

    def refuses(self, in_flight: Collection[Trial]) -> str:
        return TIMEOUT if self.at is not None and time.monotonic() >= self.at else ""

    @property
    def left(self) -> float | None:
        """Remaining seconds, above 0; None if there is no deadline."""
        return None if self.at is None else max(1e-3, self.at - time.monotonic())
