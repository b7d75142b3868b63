"""The loop that runs by itself: ask, evaluate, tell, until the budget is spent."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

from mipcash.errors import SpaceExhaustedError
from mipcash.modelling.domains import Configuration
from mipcash.optimizers.base import Optimizer
from mipcash.study.progress import Progress, make_progress
from mipcash.study.reading import describe_error, stops
from mipcash.study.result import SUSPICIOUS, Result
from mipcash.study.study import Study
from mipcash.study.trial import Failed, TellError, Trial

if TYPE_CHECKING:
    from mipcash.backends.base import Backend
    from mipcash.space.space import Space

Objective = Callable[[Configuration], Any]
"""Takes a configuration (its own copy); returns a float, a dict with ``"loss"``, or ``Failed``."""

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


@dataclass(frozen=True)
class Evaluation:
    """What came out of one call of the objective, and the wall-clock seconds it took."""

    outcome: Any
    seconds: float


def minimize(
    objective: Objective,
    space: Space,
    budget: int,
    *,
    optimizer: str | Optimizer = "hybrid",
    solver: str | Backend = "auto",
    seed: int = 0,
    storage: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
    callbacks: Sequence[Callback] = (),
    settings: Any = None,
    workers: int = 1,
    progress: bool | Progress | None = None,
    executor: Executor | None = None,
) -> Result:
    """Find the configuration of ``space`` with the lowest ``objective``.

    Args:
        objective: takes a configuration (a dict that it may change) and returns a float or a dict with ``"loss"`` and
            further named numbers. What it raises is a failure, and so is a loss that is not finite or beyond 1e100 in
            magnitude, or any other value; the run goes on.
        space: the space to search.
        budget: number of evaluations, failed ones and those of a resumed journal included.
        optimizer, solver, seed, storage, settings: see :class:`mipcash.Study`.
        timeout: seconds from now after which no new evaluation starts; one that runs is finished.
        callbacks: called as ``callback(study, trial)`` after each evaluation. One that returns True ends the run; an
            exception ends it too and is passed on. In both cases the run can be resumed.
        workers: evaluations at a time, in threads. With one, runs of the same seed are the same; with more, the order
            in which evaluations end decides what the optimizer knows when.
        progress: None shows a bar on a terminal and a line per evaluation elsewhere; True forces the bar, False is
            silent; a :class:`~mipcash.study.progress.Progress` shows the run its own way.
        executor: any ``concurrent.futures.Executor`` to evaluate in instead of threads, ``workers`` at a time. It is
            not shut down. With processes the objective must be importable.

    Ctrl-C, ``SystemExit`` and a killed process leave a journal that resumes with the same proposals: the evaluation
    they interrupt is done again.

    Raises:
        ValueError: budget, workers or timeout out of range.
        StorageError: see :class:`mipcash.Study`.
    """
    _check_plan(budget, timeout, workers)
    with Study(space, optimizer, solver, seed=seed, storage=storage, settings=settings) as study:
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
    executor: Executor | None = None,
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
            with _threads(workers) if executor is None else _lent(executor) as pool:
                reason = loop.together(pool, workers)
        if reason == EXHAUSTED and not study.result.n_failed:
            # every legal configuration has an outcome, so the best of them is the optimum
            reason = PROVEN
        study.stop(reason)
        return study.result


def evaluate(objective: Objective, config: Configuration) -> Evaluation:
    """Call the objective. An exception becomes :class:`Failed`; what orders to stop (Ctrl-C ...) passes through."""
    began = time.perf_counter()
    try:
        outcome = objective(config)
    except Failed as failed:
        outcome = failed
    except BaseException as error:
        if stops(error):
            raise
        outcome = Failed(describe_error(error))
    return Evaluation(outcome, time.perf_counter() - began)


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
                self._told(trial, evaluate(self._objective, trial.config))

    def together(self, pool: Executor, workers: int) -> str:
        """Up to ``workers`` evaluations at a time; outcomes are told as they come in."""
        in_flight: dict[Future[Evaluation], Trial] = {}
        with self._kept(in_flight.values()):
            while True:
                while len(in_flight) < workers:
                    trial = self._next(len(in_flight))
                    if trial is None:
                        break
                    in_flight[pool.submit(evaluate, self._objective, trial.config)] = trial
                if not in_flight:
                    return self._ended
                done, _ = wait(in_flight, return_when=FIRST_COMPLETED)
                for future in sorted(done, key=lambda f: in_flight[f].number):
                    self._told(in_flight[future], _collect(future))
                    del in_flight[future]

    @contextmanager
    def _kept(self, trials: Collection[Trial]) -> Iterator[None]:
        """Where the loop is broken off, trials without an outcome are for the next ask of the study, if it stays open."""
        try:
            yield
        except BaseException:
            for trial in trials:
                with suppress(TellError):  # told already; it was a callback that raised
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

    def _told(self, trial: Trial, evaluation: Evaluation) -> None:
        finished = self._study.tell(trial, evaluation.outcome, evaluation.seconds)
        self._display.told(finished)
        if self._study.n_told == SUSPICIOUS and self._study.result.problem():
            self._display.note(self._study.result.problem())
        for callback in self._callbacks:
            if callback(self._study, finished) is True:
                self._ended = self._ended or CALLBACK


def _collect(future: Future[Evaluation]) -> Evaluation:
    """What an executor returned; its own troubles (a worker that died, pickling) count as failed evaluations."""
    try:
        return future.result()
    except BaseException as error:
        if stops(error):
            raise
        return Evaluation(Failed(f"the executor failed: {describe_error(error)}"), 0.0)


@contextmanager
def _threads(workers: int) -> Iterator[Executor]:
    """A pool whose running evaluations are not waited for when the loop is interrupted."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="mipcash")
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


@contextmanager
def _lent(executor: Executor) -> Iterator[Executor]:
    yield executor


def _check_plan(budget: int, timeout: float | None, workers: int) -> None:
    if not _positive(budget):
        raise ValueError(f"budget must be a whole number of evaluations, at least 1, got {budget!r}")
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout must be a positive number of seconds, got {timeout!r}")
    if not _positive(workers):
        raise ValueError(f"workers must be a whole number, at least 1, got {workers!r}")


def _positive(count: object) -> bool:
    return isinstance(count, Integral) and not isinstance(count, bool) and int(count) >= 1
