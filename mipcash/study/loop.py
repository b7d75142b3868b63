"""The loop of a run: ask, evaluate, tell, until something ends it."""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import replace
from statistics import median

from mipcash.errors import DefectError, ExecutorError, SpaceExhaustedError, StorageError
from mipcash.study.evaluating.defects import DefectsByOutput, misnamed
from mipcash.study.evaluating.evaluation import Evaluation, Objective, Task, evaluate
from mipcash.study.evaluating.pool import Evaluating, LostWorkerError, collect
from mipcash.study.progress import Progress
from mipcash.study.pruning import judge_for
from mipcash.study.result import LEAST, SUSPICIOUS
from mipcash.study.spending import BudgetError, Reserve, Spending
from mipcash.study.study import Study
from mipcash.study.trial import LateError, TellError, Trial

Callback = Callable[[Study, Trial], object]
"""Called after each evaluation; returning True ends the run."""

BUDGET = "budget"
TIMEOUT = "timeout"
EXHAUSTED = "space exhausted"
BEST_OF_ALL = f"{EXHAUSTED}: best of all legal configurations, if the objective is deterministic"
CALLBACK = "callback"
OPTIMIZER = "optimizer"
"""It wished to stop; its reason follows."""
DEFECT = "defect"
"""The objective fails for a reason of its own, which follows."""

NOTABLE = 0.05
"""Share of an evaluation, from which on proposals are made ahead. One that is made ahead knows one outcome less."""
LATEST = 5
"""Trials by which the share is judged."""
LOOK = (0.05, 1.0)
"""Seconds between looks at what others evaluate, where nothing else is left: the first, which doubles each time, and the most."""


class Pace:
    """How long proposals and evaluations take."""

    def __init__(self) -> None:
        self._asks: deque[float] = deque(maxlen=LATEST)
        self._evaluations: deque[float] = deque(maxlen=LATEST)

    def note(self, trial: Trial) -> None:
        """A trial that was told."""
        self._asks.append(trial.seconds.get("ask", 0.0))
        self._evaluations.append(trial.duration or 0.0)

    @property
    def slow(self) -> bool:
        """Whether a proposal takes a notable share of an evaluation."""
        return bool(self._asks) and median(self._asks) > NOTABLE * median(self._evaluations)


def wanted(trial: Trial) -> tuple[str, ...]:
    """The outputs to evaluate of a trial that names them: those not told yet; empty: all that the objective gives."""
    return trial.outcome.missing(trial.evaluate)


class Loop:
    """The two ways through the loop; each returns why it ended."""

    def __init__(
        self,
        study: Study,
        objective: Objective,
        spending: Spending,
        deadline: float | None,
        callbacks: tuple[Callback, ...],
        display: Progress,
        reserve: Reserve | None = None,
    ) -> None:
        self._study, self._objective, self._display = study, objective, display
        self._spending, self._deadline, self._callbacks = spending, deadline, callbacks
        self._reserve = reserve or Reserve()
        study.arrived()  # the display knows what was there before
        self._ended, self._pace, self._defects = "", Pace(), DefectsByOutput()

    def alone(self) -> str:
        """One evaluation at a time, in this thread, so that Ctrl-C reaches the objective at once."""
        while True:
            trial = self._next(())
            if trial is None:
                if self._others():
                    continue
                return self._end()
            with self._kept([trial]):
                self._evaluated(trial, self._here(trial))
                self._refuse_defect(in_flight=0)

    def _here(self, trial: Trial) -> Evaluation:
        return evaluate(self._objective, trial.config, wanted(trial), self._task(trial))

    def together(self, pool: Evaluating, workers: int) -> str:
        """Up to ``workers`` evaluations at a time; outcomes are told as they come in, before anything else is asked for."""
        in_flight: dict[Future[Evaluation], Trial] = {}
        with self._kept(in_flight.values()):
            while True:
                self._collect(in_flight, 0.0)
                self._refuse_defect(len(in_flight))
                if self._room(in_flight.values(), workers):
                    trial = self._next(in_flight.values())
                    if trial is not None:
                        with self._kept([trial]):
                            in_flight[self._submitted(pool, trial)] = trial
                        continue
                elif self._ahead(in_flight.values(), workers):
                    continue
                if not in_flight:
                    if self._others():
                        continue
                    return self._end()
                self._collect(in_flight, None)

    def _others(self) -> bool:
        """Wait until something comes of what others evaluate, which may be left for this worker; whether there was any."""
        before, pause = self._study.elsewhere, LOOK[0]
        if not before or self._ended in (TIMEOUT, CALLBACK):
            return False
        while [(t.number, t.attempt) for t in self._study.elsewhere] == [(t.number, t.attempt) for t in before]:
            if self._late():
                self._ended = TIMEOUT
                return False
            time.sleep(min(pause, self._left() or pause))
            pause = min(2.0 * pause, LOOK[1])
            self._study.look()
        self._ended = ""
        return True

    def _collect(self, in_flight: dict[Future[Evaluation], Trial], seconds: float | None) -> None:
        """Tell what has ended; None: wait for the next that does."""
        done, _ = wait(in_flight, seconds, FIRST_COMPLETED)
        for future in sorted(done, key=lambda f: in_flight[f].number):
            self._collected(in_flight[future], future)
            del in_flight[future]

    def _ahead(self, in_flight: Collection[Trial], workers: int) -> bool:
        """Propose while all workers are busy, if no worker is to wait for it later; whether it was done.

        The proposal waits in the study until a worker is free, and there it stays where the run ends before.
        """
        if len(in_flight) < workers or workers == 1 or self._ended or self._reason(in_flight) or not self._pace.slow:
            return False
        if self._defects.found:
            return False
        try:
            return self._study.prepare(seconds=self._left())
        except SpaceExhaustedError:
            if not self._study.costs:
                self._ended = EXHAUSTED
            return False

    def _submitted(self, pool: Evaluating, trial: Trial) -> Future[Evaluation]:
        try:
            return pool.submit(trial.config, wanted(trial), self._task(trial))
        except ExecutorError as error:
            path = self._study.storage
            told = f"All {self._study.n_told} outcomes are "
            if path is None:
                raise ExecutorError(f"{error}. {told}in the study, as long as it lives; storage= keeps them") from error
            raise ExecutorError(f"{error}. {told}in {path}; run again with it as storage= to go on") from error

    def _task(self, trial: Trial) -> Task:
        pruning = self._study.pruning
        judge = None if pruning is None else judge_for(pruning, trial, self._study.trials, self._study.limits)
        return Task(trial.number, trial.attempt, trial.repeat, judge, self._study.goals.names)

    def _room(self, in_flight: Collection[Trial], workers: int) -> bool:
        """Whether another evaluation may start. A broken pool ends all that run in it, so a suspect runs alone."""
        if any(trial.lost for trial in in_flight) or self._defects.found:
            return False
        if self._spending.by_fits and not self._study.n_told:  # how many fits an evaluation takes is not known yet
            return not in_flight
        return not in_flight if self._study.suspects else len(in_flight) < workers

    @contextmanager
    def _kept(self, trials: Collection[Trial]) -> Iterator[None]:
        """Where the loop is broken off, trials without an outcome are for the next ask of the study, if it stays open."""
        try:
            yield
        except BaseException:
            for trial in trials:
                # told already, where it was a callback that raised; or the journal itself cannot be written to
                with suppress(TellError, StorageError):
                    self._study.give_back(trial)
            raise

    def _next(self, in_flight: Collection[Trial]) -> Trial | None:
        """The next trial to evaluate; None, with the reason noted, when none is to start."""
        self._arrived()
        if not self._ended:
            self._ended = self._reason(in_flight)
        if self._ended:
            return None
        self._display.asking()
        try:
            trial = self._study.ask_within(lambda: self._affordable(in_flight), seconds=self._left())
        except SpaceExhaustedError:
            if not (in_flight and self._study.costs):  # what is being evaluated may call for another output
                self._ended = EXHAUSTED
            return None
        if trial is None:  # others were first
            self._ended = BUDGET
            return None
        if self._late():  # the ask itself took the rest of the time
            self._ended = TIMEOUT
        elif not self._affordable(in_flight, self._spending.of(trial)):
            self._ended = BUDGET
        if self._ended:
            self._study.give_back(trial)
            return None
        self._display.evaluating(trial)
        return trial

    def _affordable(self, in_flight: Collection[Trial], cost: float | None = None) -> bool:
        """Whether the budget pays for another trial of a cost, beside what others evaluate; None: of the least there may be."""
        if self._study.record.budget is not None:  # others may have been given another since: it is the study's
            self._spending = replace(self._spending, total=self._study.record.budget)
        mine = {trial.number for trial in in_flight}
        in_flight = [*in_flight, *(trial for trial in self._study.elsewhere if trial.number not in mine)]
        if not (self._spending.costs or self._spending.by_fits):
            return self._spending.admits(self._study.n_told + len(in_flight) + 1 + self._reserve.evaluations)
        trials = self._study.trials
        kept = self._reserve.of(self._spending, trials)
        if self._spending.by_fits:
            most = self._spending.least(trials)
            return self._spending.admits(self._spending.spent(trials) + (len(in_flight) + 1) * most + kept)
        cost = self._spending.least(trials) if cost is None else cost
        return self._spending.admits(
            self._spending.spent(trials) + sum(map(self._spending.of, in_flight)) + cost + kept
        )

    def _reason(self, in_flight: Collection[Trial]) -> str:
        if not self._affordable(in_flight):
            return BUDGET
        if self._late():
            return TIMEOUT
        return f"{OPTIMIZER}: {self._study.wish}" if self._study.wish else ""

    def _left(self) -> float | None:
        """Seconds until the deadline; None: there is none. Never 0, which is no limit on a proposal."""
        return None if self._deadline is None else max(1e-3, self._deadline - time.monotonic())

    def _late(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def _collected(self, trial: Trial, future: Future[Evaluation]) -> None:
        try:
            evaluation = collect(future)
        except LostWorkerError as cause:
            try:
                after = self._study.lose(trial, str(cause))
            except LateError as late:
                self._display.note(str(late))
                return
            if after.pending:
                if self._ended not in (TIMEOUT, CALLBACK):
                    self._ended = ""  # there is something to evaluate again
                self._display.note(f"trial {trial.number} lost its worker and is evaluated again: {cause}")
            else:
                self._told(after)
            return
        self._evaluated(trial, evaluation)

    def _evaluated(self, trial: Trial, evaluation: Evaluation) -> None:
        parts = evaluation.parts
        cost = {name: part.seconds for name, part in parts.items()} if parts else None
        try:
            told = self._study.tell(
                trial, evaluation.returned, evaluation.seconds, partial=False, cost=cost, worker=evaluation.worker
            )
        except LateError as late:
            self._display.note(str(late))
            return
        called = {name: (p.returned, p.raised) for name, p in (parts or {"": evaluation}).items()}
        self._defects.note(told, called, lambda: self._study.trials)
        self._told(told)

    def _end(self) -> str:
        """Why the loop ends; nothing is in flight.

        Raises:
            DefectError: the budget is spent, and all of it failed alike.
        """
        if self._ended == BUDGET:
            self._defects.at_end(self._study.trials)
            self._refuse_defect(in_flight=0, least=LEAST)
        return self._ended

    def _refuse_defect(self, in_flight: int, least: int = SUSPICIOUS) -> None:
        """End the run where the objective fails for a reason of its own; what failed for it is to be evaluated again.

        Args:
            least: evaluations that lack a limited output, from which on it is misnamed.

        Raises:
            DefectError: it does. As long as there is doubt, what still runs is waited for.
        """
        defect = self._defects.found or misnamed(self._study.trials, self._study.limits, least)
        if defect is None or (in_flight and not defect.certain):
            return
        for number in defect.trials:
            self._study.reopen(self._study.trials[number])
        self._study.stop(f"{DEFECT}: {defect.text}")
        raise DefectError(str(defect))

    def _arrived(self) -> None:
        """Count what others told."""
        for trial in self._study.arrived():
            self._display.elsewhere(trial)

    def _told(self, finished: Trial) -> None:
        self._arrived()
        self._pace.note(finished)
        self._display.told(finished)
        if self._spending.by_fits:
            self._check_fits()
        if self._study.n_told == SUSPICIOUS and self._study.result.problem():
            self._display.note(self._study.result.problem())
        for callback in self._callbacks:
            if callback(self._study, finished) is True:
                self._ended = self._ended or CALLBACK

    def _check_fits(self) -> None:
        """Say that more fits were spent than there are.

        Raises:
            BudgetError: by the first evaluation.
        """
        try:
            problem = self._spending.exceeded(self._study.trials)
        except BudgetError:
            self._study.stop(BUDGET)
            raise
        if problem:
            warnings.warn(problem, stacklevel=2)
