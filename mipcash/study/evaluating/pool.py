"""Where evaluations run at a time: own threads, a lent executor, or executors of a factory, replaced when they break.

How an objective gets to the processes of an executor, and what is said where it does not.

Whether it can be pickled is found out before anything is proposed. Dask is given it as bytes: a worker that cannot import a module
of what it is sent would lose its connection again and again, and nobody would be told; so it is unpickled where its error is heard.
"""

from __future__ import annotations

import multiprocessing
import pickle
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import lru_cache
from types import TracebackType
from typing import Any, Protocol

import cloudpickle

from mipcash.errors import ExecutorError, ObjectiveError
from mipcash.modelling.domains import Configuration
from mipcash.study.evaluating.evaluation import Evaluation, Objective, Task, evaluate
from mipcash.study.evaluating.raised import Raised
from mipcash.study.reading import describe_error, stops
from mipcash.study.text import shown
from mipcash.study.trial import Failed

CURE = (
    "Define it at the top of a module that the processes can import (no lambda, and no function inside a function), and leave out "
    "of it what is open here: files, connections, locks; or give the evaluations threads, workers= without executor=. "
    "evaluation_timeout= brings lambdas and functions of notebooks to processes of its own"
)


def check_sendable(objective: Objective, executor: Any) -> None:
    """Pickle the objective as an executor will.

    Raises:
        ObjectiveError: that fails, or what arrives could not be imported there.
    """
    pickles = _pickles(executor)
    if pickles is None:
        return
    try:
        pickles(objective)
    except Exception as error:
        raise ObjectiveError(unsendable(objective, error)) from error
    if isinstance(executor, ProcessPoolExecutor) and not _imported_again(objective, executor):
        raise ObjectiveError(
            f"the objective {shown(objective)} is of an interactive session, which the executor's processes cannot import. {CURE}"
        )


def parcel(objective: Objective, told: Any = None) -> bytes:
    """What is sent as bytes.

    Raises:
        ObjectiveError: it cannot be pickled.
    """
    try:
        text: bytes = cloudpickle.dumps(objective if told is None else told)
    except Exception as error:
        raise ObjectiveError(unsendable(objective, error)) from error
    return text


def evaluate_parcels(objective: bytes, told: bytes) -> Evaluation:
    """:func:`mipcash.study.evaluating.evaluation.evaluate` of what :func:`parcel` made.

    Raises:
        ObjectiveError: it cannot be loaded in this process.
    """
    try:
        function, arguments = _opened(objective), pickle.loads(told)
    except Exception as error:
        raise ObjectiveError(
            f"the objective cannot be loaded in the executor's process: {describe_error(error)}. Put its module where the workers "
            "can import it (Dask: client.upload_file('my_module.py')), or define it in the script itself"
        ) from None
    return evaluate(function, *arguments)


@lru_cache(maxsize=4)
def _opened(objective: bytes) -> Any:
    return pickle.loads(objective)


def unsendable(objective: Objective, error: BaseException) -> str:
    """That an executor cannot send an objective, and the cure."""
    return f"the objective {shown(objective)} cannot be sent to the processes of executor=: {describe_error(error)}. {CURE}"


def _pickles(executor: Any) -> Any:
    """What an executor pickles with; None: nothing is, or not by what is known here."""
    if isinstance(executor, ProcessPoolExecutor):
        return pickle.dumps
    if str(type(executor).__module__).split(".")[0] == "mpi4py":
        return sys.modules["mpi4py.MPI"].pickle.dumps
    return None


def _imported_again(objective: Objective, executor: ProcessPoolExecutor) -> bool:
    """Whether a process that does not begin as a copy of this one finds the objective; it runs the script again for that."""
    context = getattr(executor, "_mp_context", None) or multiprocessing
    of_session = getattr(objective, "__module__", None) == "__main__" and not hasattr(
        sys.modules["__main__"], "__file__"
    )
    return context.get_start_method() == "fork" or not of_session


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


class Inline:
    """Evaluations one after the other in this thread, so that Ctrl-C reaches the objective at once."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective

    def submit(self, config: Configuration, outputs: Sequence[str], task: Task) -> Future[Evaluation]:
        """Evaluate now."""
        future: Future[Evaluation] = Future()
        future.set_result(evaluate(self._objective, config, outputs, task))
        return future


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
