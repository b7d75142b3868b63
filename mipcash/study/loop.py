"""The loop of a run: take a trial, evaluate it, record its outcome, until a policy ends the run.

The loop itself implements no feature. A source supplies its trials (``mipcash.study.sources``), a pool evaluates them
(``mipcash.study.evaluating``), and policies decide when it waits or ends (``mipcash.study.policies``).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from types import MappingProxyType

from mipcash.errors import DefectError, ExecutorError, LateError, MipcashError, StorageError, TellError
from mipcash.study.evaluating.evaluation import Evaluation, Task
from mipcash.study.evaluating.pool import Inline, LostWorkerError, Pool, collect
from mipcash.study.evaluating.processes import Processes
from mipcash.study.policies.policy import BUDGET, FINAL, TIMEOUT, Policy
from mipcash.study.progress import Progress
from mipcash.study.pruning import judge_for
from mipcash.study.sources import Repeats, Search
from mipcash.study.study import Study, record_returned
from mipcash.study.trial import Trial

UNUSUAL, LEAST = 10.0, 60.0
"""A wait for an evaluation is noted if it lasts for so many times the longest evaluation so far, and for so many seconds."""


NONE: Mapping[Future[Evaluation], Trial] = MappingProxyType({})


class Loop:
    """Loop with up to ``workers`` concurrent evaluations. Finished outcomes are recorded before another trial is requested.

    Args:
        policies: decide when the loop waits or ends; called in this order.
        others: function that waits for trials of other workers; see ``mipcash.study.policies.workers.await_others``.
    """

    def __init__(
        self,
        study: Study,
        pool: Inline | Pool | Processes,
        workers: int,
        source: Search | Repeats,
        policies: Sequence[Policy],
        display: Progress,
        others: Callable[[], str | None],
    ) -> None:
        self._study, self._pool, self._workers, self._source = study, pool, workers, source
        self._policies, self._display, self._others = policies, display, others
        self._in_flight: dict[Future[Evaluation], Trial] = {}
        self._ended, self._longest = "", math.inf
        self._thread = threading.get_ident()

    def run(self) -> str:
        """Run to the end and return the reason.

        Raises:
            DefectError, BudgetError, ExecutorError, StorageError: the run cannot go on.
        """
        in_flight = self._in_flight
        with self._given_back(in_flight.values(), in_flight), self._study.table.meanwhile(self._collect_meanwhile):
            while True:
                self._collect(seconds=0.0)
                if self._free():
                    trial = self._next()
                    if trial is not None:
                        with self._given_back([trial]):
                            in_flight[self._submit(trial)] = trial
                        continue
                elif self._ahead():
                    continue
                if self._ended in FINAL and self._pool.queues:
                    for future in [f for f in in_flight if f.cancel()]:
                        with suppress(TellError):  # as below
                            self._study.give_back(in_flight.pop(future))
                if in_flight:
                    self._collect(seconds=None)
                elif self._ended not in FINAL and (waited := self._others()) is not None:
                    self._ended = waited
                else:
                    for policy in self._policies:
                        policy.ends(self._ended)
                    return self._ended

    def _free(self) -> bool:
        trials = self._in_flight.values()
        return len(trials) < self._workers and not any(policy.waits(trials) for policy in self._policies)

    def _next(self) -> Trial | None:
        """Return the next trial to evaluate, or None if no trial can start now. If the run ends, the reason is stored."""
        if self._ended in ("", BUDGET):  # evaluations that ended meanwhile may have cost less than they might have
            self._ended = self._reason()
        if self._ended:
            return None
        self._display.asking()
        found = self._source.next(self._in_flight.values())
        if isinstance(found, str):
            self._ended = found
            return None
        if found.lost:
            cause = self._study.table.losses(found.number)[-1]
            self._display.note(f"trial {found.number} lost its worker and is evaluated again: {cause}")
        if (killed := self._study.table.killed(found.number)) > 1:
            self._display.note(
                f"trial {found.number} was running each of the {killed} times that this run was killed; if its configuration ends "
                "the process, evaluation_timeout= evaluates it in a process of its own"
            )
        self._display.evaluating(found)
        return found

    def _ahead(self) -> bool:
        """Prepare a proposal while all workers are busy, if the source supports it. Return True if a proposal was made."""
        busy = 1 < self._workers == len(self._in_flight)
        if not busy or self._ended or any(p.waits(()) for p in self._policies):
            return False
        table = self._study.table
        if self._reason([table.trials[number] for number in table.waiting]):
            return False
        found = self._source.ahead()
        if isinstance(found, str):
            self._ended = found
            return False
        return found

    def _reason(self, waiting: Sequence[Trial] = ()) -> str:
        trials = [*self._in_flight.values(), *waiting]
        reasons = (policy.refuses(trials) for policy in self._policies)
        return next(filter(None, reasons), "")

    def _submit(self, trial: Trial) -> Future[Evaluation]:
        judge = judge_for(self._study.pruning, trial, self._study.table.trials, self._study.limits)
        task = Task(trial.number, trial.attempt, trial.repeat, judge, self._study.objectives.names)
        try:
            return self._pool.submit(trial.config, trial.outcome.missing(trial.evaluate), task)
        except ExecutorError as error:
            path = self._study.storage
            reported = f"All {self._study.n_evaluated} outcomes are "
            if path is None:
                raise ExecutorError(
                    f"{error}. {reported}in the study, as long as it lives; storage= keeps them"
                ) from error
            raise ExecutorError(f"{error}. {reported}in {path}; run again with it as storage= to go on") from error

    def _collect(self, seconds: float | None) -> None:
        """Record the outcomes of finished evaluations. With ``seconds=None``, first wait until at least one has finished."""
        unusual = max(LEAST, UNUSUAL * self._longest)
        if seconds is None and unusual < math.inf and not wait(self._in_flight, unusual, FIRST_COMPLETED).done:
            self._display.note(
                f"no evaluation has ended for {unusual:.0f} seconds, and the longest so far took {self._longest:.1f}; if an "
                "executor has lost its workers, stop the run (Ctrl-C) and start it again"
            )
        done, _ = wait(self._in_flight, seconds, FIRST_COMPLETED)
        for future in sorted(done, key=lambda f: self._in_flight[f].number):
            trial = self._in_flight.pop(future, None)  # None: collected while the storage waited
            if trial is None:
                continue
            try:
                self._collected(trial, future)
            except BaseException:
                self._in_flight[future] = trial
                raise
        for policy in self._policies if done else ():
            policy.check(self._in_flight.values())

    def _collect_meanwhile(self) -> None:
        """Record outcomes while the storage waits for its server, so that they are kept on this machine too."""
        if threading.get_ident() == self._thread:
            self._collect(seconds=0.0)

    def _collected(self, trial: Trial, future: Future[Evaluation]) -> None:
        try:
            try:
                evaluation = collect(future)
            except LostWorkerError as cause:
                self._lost(trial, cause)
                return
            reported = self._recorded(trial, evaluation)
        except LateError as late:
            self._display.note(str(late))
            return
        self._longest = max(evaluation.seconds, self._longest if self._longest < math.inf else 0.0)
        self._after_evaluation(reported, evaluation)

    def _recorded(self, trial: Trial, evaluation: Evaluation) -> Trial:
        parts = evaluation.parts
        cost = {name: part.seconds for name, part in parts.items()} if parts else None
        outcome, seconds, worker = evaluation.returned, evaluation.seconds, evaluation.worker
        return record_returned(self._study, trial, outcome, seconds, False, cost, worker)

    def _lost(self, trial: Trial, cause: LostWorkerError) -> None:
        if cause.ended and TIMEOUT in [policy.refuses(()) for policy in self._policies]:
            self._study.give_back(trial)
            return
        after = self._study.lose(trial, str(cause))
        if not after.pending:
            self._after_evaluation(after, None)
            return
        if self._ended not in FINAL:
            self._ended = ""  # the trial is pending again and will be evaluated again

    def _after_evaluation(self, trial: Trial, evaluation: Evaluation | None) -> None:
        reasons = [policy.evaluated(trial, evaluation) for policy in self._policies]
        if self._ended in ("", BUDGET):
            self._ended = next(filter(None, reasons), self._ended)

    @contextmanager
    def _given_back(
        self, trials: Collection[Trial], evaluations: Mapping[Future[Evaluation], Trial] = NONE
    ) -> Iterator[None]:
        """Return trials without an outcome to the study if the loop is interrupted; a later ``ask`` hands them out again.

        Args:
            evaluations: of these trials; those that have finished are recorded, unless the objective has a defect.
        """
        try:
            yield
        except BaseException as error:
            for future, trial in [] if isinstance(error, DefectError) else [*evaluations.items()]:
                if future.done() and not future.cancelled() and future.exception() is None:
                    with suppress(MipcashError):
                        self._recorded(trial, future.result())
            for future in evaluations:  # the outcomes of those that an executor has queued would be lost
                future.cancel()
            for trial in trials:
                # a callback may have raised after the outcome was recorded; or the journal itself cannot be written to
                with suppress(TellError, StorageError):
                    self._study.give_back(trial)
            raise
