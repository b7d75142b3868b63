"""Where evaluations run at a time: own threads, a lent executor, or executors of a factory, replaced when they break."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Protocol

from mipcash.errors import ExecutorError, ObjectiveError
from mipcash.modelling.domains import Configuration
from mipcash.study.evaluating.defects import Raised
from mipcash.study.evaluating.evaluation import Evaluation, Objective, Task, evaluate
from mipcash.study.evaluating.sending import check_sendable, evaluate_parcels, parcel
from mipcash.study.reading import describe_error, stops
from mipcash.study.text import shown
from mipcash.study.trial import Failed

Executors = Executor | Callable[[], Executor] | None
"""What ``executor=`` takes."""

KILLED = {
    "distributed": ("KilledWorker",),
    "ray": ("WorkerCrashedError", "NodeDiedError", "OutOfMemoryError", "ActorDiedError"),
}
"""How packages whose executors are none of the standard library's say that a worker died."""


class LostWorkerError(Exception):
    """The worker of an evaluation died; the message says how it is known."""


class Evaluating(Protocol):
    """Where a run evaluates its objective."""

    def submit(self, config: Configuration, outputs: Sequence[str], task: Task) -> Future[Evaluation]:
        """Start an evaluation, of some outputs where each is a function of its own; none: of all."""
        ...


class Pool:
    """An executor for the time of a ``with`` block.

    Args:
        objective: what it evaluates.
        executor: None makes threads; an executor is lent, and left open; a callable without arguments makes executors, which
            are shut down in the end.
        workers: number of threads.

    Raises:
        TypeError: executor is none of these.
        ObjectiveError: the executor's processes cannot be sent the objective.
    """

    def __init__(self, objective: Objective, executor: Executors, workers: int) -> None:
        self._objective = objective
        lent = executor is not None and not isinstance(executor, type) and hasattr(executor, "submit")
        if not (executor is None or lent or callable(executor)):
            raise TypeError(
                f"executor must be an executor, or a callable that makes one, such as lambda: ProcessPoolExecutor(4); "
                f"got {shown(executor)}"
            )
        self._make: Callable[[], Executor] | None = None
        if executor is None:
            self._make = lambda: ThreadPoolExecutor(workers, thread_name_prefix="mipcash")
        elif not lent:
            self._make = executor  # type: ignore[assignment]
        self._executor: Any = executor if self._make is None else self._make()
        try:
            check_sendable(objective, self._executor)
            self._parcel = parcel(objective) if _package(self._executor) == "distributed" else b""
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise

    def submit(self, config: Configuration, outputs: Sequence[str], task: Task) -> Future[Evaluation]:
        """Start an evaluation, in a new executor where a factory's one is broken.

        Raises:
            ExecutorError: a lent executor is broken, or a new one at once.
        """
        try:
            return self._submit(config, outputs, task)
        except RuntimeError as error:  # broken, or shut down
            if self._make is None:
                raise ExecutorError(
                    f"the executor is broken and takes no more evaluations ({describe_error(error)}). Give executor= a "
                    "callable that makes one, such as lambda: ProcessPoolExecutor(4): then a broken one is replaced"
                ) from error
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._executor = self._make()
        try:
            return self._submit(config, outputs, task)
        except BrokenExecutor as error:
            raise ExecutorError(
                f"the executor that executor= made is broken from the start ({describe_error(error)}). Mend the "
                "callable"
            ) from error

    def _submit(self, config: Configuration, outputs: Sequence[str], task: Task) -> Future[Evaluation]:
        future: Future[Evaluation]
        if self._parcel:  # each time anew: an evaluation is no pure function, of which an earlier result would do
            told = parcel(self._objective, (config, outputs, task))
            future = self._executor.submit(evaluate_parcels, self._parcel, told, pure=False)
        else:
            future = self._executor.submit(evaluate, self._objective, config, outputs, task)
        return future

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Evaluations that still run are not waited for when the loop is interrupted."""
        if self._make is not None:
            self._executor.shutdown(wait=error is None, cancel_futures=error is not None)


def collect(future: Future[Evaluation]) -> Evaluation:
    """What an executor returned. Its own troubles (pickling, say) count as failed evaluations.

    Raises:
        LostWorkerError: the worker died.
        ObjectiveError: the worker cannot load the objective.
    """
    try:
        return future.result()
    except BaseException as error:
        if stops(error):
            raise
        if isinstance(error, (LostWorkerError, ObjectiveError)):
            raise
        if _lost(error):
            raise LostWorkerError(describe_error(error)) from error
        text = f"the executor failed: {describe_error(error)}"
        return Evaluation(Failed(text), 0.0, raised=Raised(text))


def _lost(error: BaseException) -> bool:
    """Whether it says that a worker died. The objective's own exceptions do not come this way: they are failures by then."""
    if isinstance(
        error, (BrokenExecutor, CancelledError)
    ):  # cancelled by whoever has the executor, a scheduler that restarts
        return True
    return any(c.__name__ in KILLED.get(str(c.__module__).split(".")[0], ()) for c in type(error).__mro__)


def _package(thing: Any) -> str:
    """The package that a thing's type is of."""
    return str(type(thing).__module__).split(".")[0]
