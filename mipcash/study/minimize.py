"""The loop that runs by itself: ask, evaluate, tell, until the budget is spent."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from numbers import Integral
from typing import TYPE_CHECKING, Any

from mipcash.errors import ExecutorError, SpaceExhaustedError, StorageError
from mipcash.optimizers.base import Optimizer
from mipcash.optimizers.outcome import LOSS, PRESENT
from mipcash.study.evaluating.evaluation import Evaluation, Objective, evaluate
from mipcash.study.evaluating.pool import Executors, LostWorkerError, Pool, collect
from mipcash.study.progress import Progress, make_progress
from mipcash.study.records.limits import LimitsGiven
from mipcash.study.result import SUSPICIOUS, Result
from mipcash.study.storage.base import Storage
from mipcash.study.study import Study
from mipcash.study.text import shown
from mipcash.study.trial import TellError, Trial

if TYPE_CHECKING:
    from mipcash.backends.base import Backend
    from mipcash.space.space import Space

Callback = Callable[[Study, Trial], object]
"""Called after each evaluation; returning True ends the run."""

BUDGET = "budget"
TIMEOUT = "timeout"
EXHAUSTED = "space exhausted"
PROVEN = f"{EXHAUSTED}: proven optimum"
UNPROVEN = f"{EXHAUSTED} up to the margins of rules that multiply reals"
CALLBACK = "callback"
OPTIMIZER = "optimizer"
"""It wished to stop; its reason follows."""


def minimize(
    objective: Objective,
    space: Space,
    budget: int,
    *,
    optimizer: str | Optimizer = "hybrid",
    solver: str | Backend = "auto",
    seed: int = 0,
    storage: str | os.PathLike[str] | Storage | None = None,
    timeout: float | None = None,
    callbacks: Sequence[Callback] = (),
    settings: Any = None,
    limits: LimitsGiven = None,
    workers: int = 1,
    progress: bool | Progress | None = None,
    executor: Executors = None,
    retries: int = 2,
) -> Result:
    """Find the configuration of ``space`` with the lowest ``objective``.

    Args:
        objective: takes a configuration (a dict that it may change) and returns a float or a dict with ``"loss"`` and
            further named numbers. What it raises is a failure, and so is a loss that is not finite or beyond 1e100 in
            magnitude, or any other value; the run goes on.
        space: the space to search.
        budget: number of evaluations, failed ones and those of a resumed journal included.
        optimizer, solver, seed, storage, settings, limits: see :class:`mipcash.Study`.
        timeout: seconds from now after which no new evaluation starts; one that runs is finished.
        callbacks: called as ``callback(study, trial)`` after each evaluation. One that returns True ends the run; an
            exception ends it too and is passed on. In both cases the run can be resumed.
        workers: evaluations at a time, in threads. With one, runs of the same seed are the same; with more, the order
            in which evaluations end decides what the optimizer knows when.
        progress: None shows a bar on a terminal and a line per evaluation elsewhere; True forces the bar, False is
            silent; a :class:`~mipcash.study.progress.Progress` shows the run its own way.
        executor: any ``concurrent.futures.Executor`` to evaluate in instead of threads, ``workers`` at a time; it is
            not shut down. Or a callable that makes one, such as ``lambda: ProcessPoolExecutor(4)``: then one that breaks
            is replaced. With processes the objective must be importable.
        retries: further attempts at an evaluation whose worker died, or whose process was killed; after that it has
            failed. A trial that lost a worker is evaluated alone, so that none fails for another's fault.

    Ctrl-C, ``SystemExit`` and a killed process leave a journal that resumes with the same proposals: the evaluation
    they interrupt is done again.

    Raises:
        TypeError: the objective cannot be called, or the space is none.
        ValueError: budget, workers, timeout or retries out of range.
        StorageError: see :class:`mipcash.Study`.
        ExecutorError: a lent executor is broken; nothing is lost, and the run can be resumed.
    """
    _check_plan(budget, timeout, workers)
    if not callable(objective):
        raise TypeError(f"the objective must be callable, got {shown(objective)}; the space comes after it")
    with Study(
        space, optimizer, solver, seed=seed, storage=storage, settings=settings, limits=limits, retries=retries
    ) as study:
        return run(
            study,
            objective,
            budget,
            timeout=timeout,
            callbacks=callbacks,
            workers=workers,
            progress=progress,
            executor=executor,
        )


def run(
    study: Study,
    objective: Objective,
    budget: int,
    *,
    timeout: float | None = None,
    callbacks: Sequence[Callback] = (),
    workers: int = 1,
    progress: bool | Progress | None = None,
    executor: Executors = None,
) -> Result:
    """:func:`minimize` for a study that exists; the study stays open."""
    deadline = None if timeout is None else time.monotonic() + timeout
    _check_plan(budget, timeout, workers)
    study.plan(int(budget), timeout)
    with make_progress(progress) as display:
        display.begin(study.space.name, budget, study.trials)
        loop = _Loop(study, objective, budget, deadline, tuple(callbacks), display)
        if executor is None and workers == 1:
            reason = loop.alone()
        else:
            with Pool(executor, workers) as pool:
                reason = loop.together(pool, workers)
        if reason == EXHAUSTED and _all_known(study):
            # every legal configuration has an outcome, so the best of them is the optimum
            reason = PROVEN
        study.stop(reason)
        return study.result


class _Loop:
    """The two ways through the loop; each returns why it ended."""

    def __init__(
        self,
        study: Study,
        objective: Objective,
        budget: int,
        deadline: float | None,
        callbacks: tuple[Callback, ...],
        display: Progress,
    ) -> None:
        self._study, self._objective, self._display = study, objective, display
        self._budget, self._deadline, self._callbacks = budget, deadline, callbacks
        self._ended = ""

    def alone(self) -> str:
        """One evaluation at a time, in this thread, so that Ctrl-C reaches the objective at once."""
        while True:
            trial = self._next(in_flight=0)
            if trial is None:
                return self._ended
            with self._kept([trial]):
                self._evaluated(trial, evaluate(self._objective, trial.config))

    def together(self, pool: Pool, workers: int) -> str:
        """Up to ``workers`` evaluations at a time; outcomes are told as they come in."""
        in_flight: dict[Future[Evaluation], Trial] = {}
        with self._kept(in_flight.values()):
            while True:
                while self._room(in_flight.values(), workers):
                    trial = self._next(len(in_flight))
                    if trial is None:
                        break
                    with self._kept([trial]):
                        in_flight[self._submitted(pool, trial)] = trial
                if not in_flight:
                    return self._ended
                done, _ = wait(in_flight, return_when=FIRST_COMPLETED)
                for future in sorted(done, key=lambda f: in_flight[f].number):
                    self._collected(in_flight[future], future)
                    del in_flight[future]

    def _submitted(self, pool: Pool, trial: Trial) -> Future[Evaluation]:
        try:
            return pool.submit(self._objective, trial.config)
        except ExecutorError as error:
            path = self._study.storage
            told = f"All {self._study.n_told} outcomes are "
            if path is None:
                raise ExecutorError(f"{error}. {told}in the study, as long as it lives; storage= keeps them") from error
            raise ExecutorError(f"{error}. {told}in {path}; run again with it as storage= to go on") from error

    def _room(self, in_flight: Collection[Trial], workers: int) -> bool:
        """Whether another evaluation may start. A broken pool ends all that run in it, so a suspect runs alone."""
        if any(trial.lost for trial in in_flight):
            return False
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

    def _next(self, in_flight: int) -> Trial | None:
        """The next trial to evaluate; None, with the reason noted, when none is to start."""
        if not self._ended:
            self._ended = self._reason(in_flight)
        if self._ended:
            return None
        self._display.asking()
        try:
            trial = self._study.ask()
        except SpaceExhaustedError as left:
            self._ended = EXHAUSTED if left.proven else UNPROVEN
            return None
        if self._late():  # the ask itself took the rest of the time
            self._study.give_back(trial)
            self._ended = TIMEOUT
            return None
        self._display.evaluating(trial)
        return trial

    def _reason(self, in_flight: int) -> str:
        if self._study.n_told + in_flight >= self._budget:
            return BUDGET
        if self._late():
            return TIMEOUT
        return f"{OPTIMIZER}: {self._study.wish}" if self._study.wish else ""

    def _late(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def _collected(self, trial: Trial, future: Future[Evaluation]) -> None:
        try:
            evaluation = collect(future)
        except LostWorkerError as cause:
            after = self._study.lose(trial, str(cause))
            if after.pending:
                if self._ended not in (TIMEOUT, CALLBACK):
                    self._ended = ""  # there is something to evaluate again
                self._display.note(f"trial {trial.number} lost its worker and is evaluated again: {cause}")
            else:
                self._told(after)
            return
        self._evaluated(trial, evaluation)

    def _evaluated(self, trial: Trial, evaluation: Evaluation) -> None:
        self._told(
            self._study.tell(trial, evaluation.returned, evaluation.seconds, partial=False, worker=evaluation.worker)
        )

    def _told(self, finished: Trial) -> None:
        self._display.told(finished)
        if self._study.n_told == SUSPICIOUS and self._study.result.problem():
            self._display.note(self._study.result.problem())
        for callback in self._callbacks:
            if callback(self._study, finished) is True:
                self._ended = self._ended or CALLBACK


def _all_known(study: Study) -> bool:
    """Whether every trial has a loss, and what decides whether it keeps the limits."""
    decide = (LOSS, *(limit.output for limit in study.limits))
    return all(t.done and all(t.outcome[name].status == PRESENT for name in decide) for t in study.trials)


def _check_plan(budget: int, timeout: float | None, workers: int) -> None:
    if not _positive(budget):
        raise ValueError(f"budget must be a whole number of evaluations, at least 1, got {budget!r}")
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout must be a positive number of seconds, got {timeout!r}")
    if not _positive(workers):
        raise ValueError(f"workers must be a whole number, at least 1, got {workers!r}")


def _positive(count: object) -> bool:
    return isinstance(count, Integral) and not isinstance(count, bool) and int(count) >= 1
