"""Pools for concurrent evaluations: threads, a given executor, or executors of a factory, which are replaced when they break.

Before anything is proposed, it is checked that the objective can be pickled for the processes of an executor. Dask gets the
objective as bytes: a worker that cannot import a module of a message would lose its connection repeatedly, without an error
message. The bytes are unpickled in a call of this module, which reports the error.
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
from mipcash.study.signatures import takes
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
        ObjectiveError: pickling fails, or the executor's processes could not import the objective.
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


def pickled(objective: Objective, reported: Any = None) -> bytes:
    """Return an objective, or other data, as bytes.

    Raises:
        ObjectiveError: it cannot be pickled.
    """
    try:
        pickled: bytes = cloudpickle.dumps(objective if reported is None else reported)
    except Exception as error:
        raise ObjectiveError(unsendable(objective, error)) from error
    return pickled


def evaluate_parcels(objective: bytes, reported: bytes) -> Evaluation:
    """Call ``mipcash.study.evaluating.evaluation.evaluate`` with an objective and arguments that ``pickled`` pickled.

    Raises:
        ObjectiveError: it cannot be loaded in this process.
    """
    try:
        function, arguments = _opened(objective), pickle.loads(reported)
    except Exception as error:
        raise ObjectiveError(
            f"the objective cannot be loaded in the executor's process: {describe_error(error)}. Put its module where the workers "
            "can import it (Dask: client.upload_file('my_module.py'); Ray: ray.init(runtime_env={'working_dir': '.'})), or define "
            "it in the script itself"
        ) from None
    return evaluate_sendable(function, *arguments)


def evaluate_sendable(objective: Objective, config: Configuration, outputs: Sequence[str], task: Task) -> Evaluation:
    """Call ``mipcash.study.evaluating.evaluation.evaluate`` in another process; what cannot be sent from there breaks no pool."""
    return evaluate(objective, config, outputs, task).sendable(pickle.dumps)


@lru_cache(maxsize=4)
def _opened(objective: bytes) -> Any:
    return pickle.loads(objective)


def unsendable(objective: Objective, error: BaseException) -> str:
    """Return the message that an executor cannot send an objective, with the cure."""
    return f"the objective {shown(objective)} cannot be sent to the processes of executor=: {describe_error(error)}. {CURE}"


def _pickles(executor: Any) -> Any:
    """Return the function with which an executor pickles; None if it does not pickle, or is unknown."""
    if isinstance(executor, ProcessPoolExecutor):
        return pickle.dumps
    if str(type(executor).__module__).split(".")[0] == "mpi4py":
        return sys.modules["mpi4py.MPI"].pickle.dumps
    return None


def _imported_again(objective: Objective, executor: ProcessPoolExecutor) -> bool:
    """Return True if the executor's processes are forked, or can import the objective by running the script again."""
    context = getattr(executor, "_mp_context", None) or multiprocessing
    of_session = getattr(objective, "__module__", None) == "__main__" and not hasattr(
        sys.modules["__main__"], "__file__"
    )
    return context.get_start_method() == "fork" or not of_session


Executors = Executor | Callable[[], Executor] | None
"""Type of ``executor=``."""

PARCELS: dict[str, dict[str, Any]] = {"distributed": {"pure": False}, "mipcash": {}}
"""Packages of the executors of clusters, to which objectives are sent as bytes, with the options of their ``submit``.

``pure=False``: Dask must not reuse the cached result of an earlier evaluation.
"""

PICKLING = ("joblib", "loky", "mpi4py")
"""Packages of other executors that pickle what the objective returns."""

KILLED = {
    "distributed": ("KilledWorker",),
    "ray": ("WorkerCrashedError", "NodeDiedError", "OutOfMemoryError", "ActorDiedError"),
}
"""By package, the exceptions with which executors outside the standard library report a dead worker."""


class LostWorkerError(Exception):
    """Raised if the worker of an evaluation died; the message has the evidence."""


class Evaluating(Protocol):
    """Interface of pools, which evaluate the objective of a run."""

    def submit(self, config: Configuration, outputs: Sequence[str], task: Task) -> Future[Evaluation]:
        """Start an evaluation. ``outputs`` are those to evaluate if each has its own function; empty: all."""
        ...


class Inline:
    """Evaluates sequentially in the calling thread, so that Ctrl-C reaches the objective at once."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective

    def submit(self, config: Configuration, outputs: Sequence[str], task: Task) -> Future[Evaluation]:
        """Evaluate now."""
        future: Future[Evaluation] = Future()
        future.set_result(evaluate(self._objective, config, outputs, task))
        return future


class Pool:
    """An executor for the duration of a ``with`` block.

    Args:
        objective: the objective to evaluate.
        executor: an executor, which is not shut down; or a callable without arguments that makes executors, which are shut down at
            the end. None: a thread pool.
        workers: number of threads.

    Raises:
        TypeError: ``executor`` is none of these.
        ObjectiveError: the objective cannot be sent to the executor's processes.
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
        self._executor: Any = executor if self._make is None else self._made()
        try:
            check_sendable(objective, self._executor)
            self._parcel = pickled(objective) if _package(self._executor) in PARCELS else b""
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise

    def submit(self, config: Configuration, outputs: Sequence[str], task: Task) -> Future[Evaluation]:
        """Start an evaluation, in a new executor if the factory's last one is broken.

        Raises:
            ExecutorError: a given executor is broken, or a new one is broken from the start.
        """
        try:
            return self._submit(config, outputs, task)
        except RuntimeError as error:  # broken, or shut down
            if self._make is None:
                raise ExecutorError(
                    f"the executor is broken and takes no more evaluations ({describe_error(error)}). Give executor= a "
                    "callable that makes one, such as lambda: ProcessPoolExecutor(4): then a broken one is replaced"
                ) from error
        self._shut_down(wait=False)
        self._executor = self._made()
        try:
            return self._submit(config, outputs, task)
        except RuntimeError as error:
            raise ExecutorError(
                f"the executor that executor= made is broken from the start ({describe_error(error)}). Correct the "
                "callable"
            ) from error

    def _submit(self, config: Configuration, outputs: Sequence[str], task: Task) -> Future[Evaluation]:
        future: Future[Evaluation]
        if self._parcel:
            reported = pickled(self._objective, (config, outputs, task))
            future = self._executor.submit(
                evaluate_parcels, self._parcel, reported, **PARCELS[_package(self._executor)]
            )
        else:
            sends = isinstance(self._executor, ProcessPoolExecutor) or _package(self._executor) in PICKLING
            call = evaluate_sendable if sends else evaluate
            future = self._executor.submit(call, self._objective, config, outputs, task)
        return future

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Shut down an executor made here; if the loop is interrupted, without waiting for running evaluations."""
        if self._make is not None:
            self._shut_down(wait=error is None)

    def _made(self) -> Any:
        assert self._make is not None
        made = self._make()
        if not hasattr(made, "submit"):
            raise TypeError(f"the callable of executor= must return an executor, and returned {shown(made)}")
        return made

    def _shut_down(self, wait: bool) -> None:
        """Shut the executor down; those of Dask and loky cannot cancel evaluations."""
        cancel = {} if wait or not takes(self._executor.shutdown, "cancel_futures") else {"cancel_futures": True}
        self._executor.shutdown(wait=wait, **cancel)


def collect(future: Future[Evaluation]) -> Evaluation:
    """Return the result of an evaluation. Errors of the executor itself (pickling, say) count as failed evaluations.

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
        pickled = f"the executor failed: {describe_error(error)}"
        return Evaluation(Failed(pickled), 0.0, raised=Raised(pickled))


def _lost(error: BaseException) -> bool:
    """Return True if an exception means that a worker died. Exceptions of the objective are failures by then."""
    if isinstance(
        error, (BrokenExecutor, CancelledError)
    ):  # CancelledError: by the executor's owner, or a scheduler that restarts
        return True
    return any(c.__name__ in KILLED.get(str(c.__module__).split(".")[0], ()) for c in type(error).__mro__)


def _package(thing: Any) -> str:
    """Return the package in which the type of an object is defined."""
    return str(type(thing).__module__).split(".")[0]
