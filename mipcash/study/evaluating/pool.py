"""Pools for concurrent evaluations: threads, a given executor, or executors of a factory, which are replaced when they break.

Processes get the objective as bytes, which are made before anything is proposed and unpickled in a call of this module, which
reports the errors: a worker of Dask that cannot import a module of a message would lose its connection repeatedly, without a word.
"""

from __future__ import annotations

import inspect
import multiprocessing
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from typing import Any

import cloudpickle

from mipcash.errors import ExecutorError, MipcashError, ObjectiveError
from mipcash.modelling.domains import Configuration
from mipcash.study.evaluating.evaluation import Evaluation, Objective, Task, evaluate
from mipcash.study.evaluating.raised import Raised
from mipcash.study.reading import describe_error, stops
from mipcash.study.signatures import takes
from mipcash.study.trial import Failed
from mipcash.text import shown

CURE = "Leave out of it what is open here: files, connections, locks; or give the evaluations threads, workers= without executor="


def pickled(objective: Objective, reported: Any = None) -> bytes:
    """Return an objective, or other data, as bytes.

    Raises:
        ObjectiveError: it cannot be pickled.
    """
    try:
        pickled: bytes = cloudpickle.dumps(objective if reported is None else reported)
    except Exception as error:
        raise ObjectiveError(
            f"the objective {shown(objective)} cannot be sent to the processes of executor=: {describe_error(error)}. {CURE}"
        ) from error
    return pickled


def evaluate_parcels(objective: bytes, reported: bytes) -> Evaluation:
    """Call ``mipcash.study.evaluating.evaluation.evaluate`` with an objective and arguments that ``pickled`` pickled.

    Raises:
        ObjectiveError: it cannot be loaded in this process.
    """
    try:
        function, arguments = _opened(objective), pickle.loads(reported)
        if not inspect.isfunction(function):  # what an evaluation changes in it must not reach the next one
            function = pickle.loads(objective)
    except Exception as error:
        raise ObjectiveError(
            f"the objective cannot be loaded in the executor's process: {describe_error(error)}. Put its module where the workers "
            "can import it (Dask: client.upload_file('my_module.py'); Ray: ray.init(runtime_env={'working_dir': '.'})), or define "
            "it at the top of the script itself, not under `if __name__ == '__main__'`"
        ) from None
    return evaluate(function, *arguments).sendable(pickle.dumps)


@lru_cache(maxsize=4)
def _opened(objective: bytes) -> Any:
    return pickle.loads(objective)


Executors = Executor | Callable[[], Executor] | None
"""Type of ``executor=``."""

PROCESSES = ("distributed", "joblib", "loky", "mipcash")
"""Packages of further executors in other processes, to which the objective is sent as bytes."""

KILLED = {
    "distributed": ("KilledWorker",),
    "ray": ("WorkerCrashedError", "NodeDiedError", "OutOfMemoryError", "ActorDiedError"),
}
"""By package, the exceptions with which executors outside the standard library report a dead worker."""
ENDED = {"joblib": ("ShutdownExecutorError",)}
"""The same for a worker that the owner of the executor ended."""


class LostWorkerError(Exception):
    """Raised if the worker of an evaluation died; the message has the evidence.

    Attributes:
        ended: True if whoever owns the executor ended its workers.
    """

    def __init__(self, message: str, ended: bool = False) -> None:
        super().__init__(message)
        self.ended = ended


class Inline:
    """Evaluates sequentially in the calling thread, so that Ctrl-C reaches the objective at once."""

    queues = False

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
        # the futures of other executors may be pending while they run
        self.queues = isinstance(self._executor, (ThreadPoolExecutor, ProcessPoolExecutor))
        try:
            self._parcel = self._sent()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise

    def _sent(self) -> bytes:
        """Return the objective as bytes; none for threads and for executors that are not known to be processes.

        Raises:
            ObjectiveError: it cannot be pickled.
        """
        of_script = isinstance(self._executor, ProcessPoolExecutor) or _package(self._executor) == "mpi4py"
        context = getattr(self._executor, "_mp_context", None) or multiprocessing
        forks = self._make is not None and context.get_start_method() == "fork"
        if of_script and (forks or hasattr(sys.modules["__main__"], "__file__")):
            with suppress(Exception):  # by name: the processes run the script themselves, and its data are not sent
                return pickle.dumps(self._objective)
        return pickled(self._objective) if of_script or _package(self._executor) in PROCESSES else b""

    def submit(self, config: Configuration, outputs: Sequence[str], task: Task) -> Future[Evaluation]:
        """Start an evaluation, in a new executor if the factory's last one is broken.

        Raises:
            ExecutorError: a given executor is broken, or a new one is broken from the start.
        """
        try:
            return self._submit(config, outputs, task)
        except MipcashError:
            raise
        except Exception as error:  # broken, or shut down: a RuntimeError, but not of Dask
            if self._make is None:
                raise ExecutorError(
                    f"the executor is broken and takes no more evaluations ({describe_error(error)}). Give executor= a "
                    "callable that makes one, such as lambda: ProcessPoolExecutor(4): then a broken one is replaced"
                ) from error
        self._shut_down(wait=False)
        self._executor = self._made()
        try:
            return self._submit(config, outputs, task)
        except Exception as error:
            raise ExecutorError(
                f"the executor that executor= made is broken from the start ({describe_error(error)}). Correct the "
                "callable"
            ) from error

    def _submit(self, config: Configuration, outputs: Sequence[str], task: Task) -> Future[Evaluation]:
        if not self._parcel:
            future: Future[Evaluation] = self._executor.submit(evaluate, self._objective, config, outputs, task)
            return future
        # Dask must not reuse the cached result of an earlier evaluation
        options = {"pure": False} if _package(self._executor) == "distributed" else {}
        reported = pickled(self._objective, (config, outputs, task))
        future = self._executor.submit(evaluate_parcels, self._parcel, reported, **options)
        return future

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        """Shut down an executor made here; if the loop is interrupted, without waiting for running evaluations."""
        if self._make is not None:
            self._shut_down(wait=not any(error))

    def _made(self) -> Any:
        assert self._make is not None
        made = self._make()
        if not hasattr(made, "submit"):
            raise TypeError(f"the callable of executor= must return an executor, and returned {shown(made)}")
        return made

    def _shut_down(self, wait: bool) -> None:
        """Shut the executor down; those of Dask and loky cannot cancel evaluations."""
        cancel = {} if wait or not takes(self._executor.shutdown, "cancel_futures") else {"cancel_futures": True}
        with suppress(*(() if wait else (Exception,))):  # of a cluster that is gone
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
        if (ended := _is_of(error, ENDED)) or _lost(error):
            raise LostWorkerError(describe_error(error), ended) from error
        pickled = f"the executor failed: {describe_error(error)}"
        return Evaluation(Failed(pickled), 0.0, raised=Raised(pickled))


def _lost(error: BaseException) -> bool:
    """Return True if an exception means that a worker died. Exceptions of the objective are failures by then."""
    if isinstance(
        error, (BrokenExecutor, CancelledError)
    ):  # CancelledError: by the executor's owner, or a scheduler that restarts
        return True
    return _is_of(error, KILLED)


def _is_of(error: BaseException, named: Mapping[str, tuple[str, ...]]) -> bool:
    """Return True if an exception is one of those named by package, which need not be installed."""
    return any(c.__name__ in named.get(str(c.__module__).split(".")[0], ()) for c in type(error).__mro__)


def _package(thing: Any) -> str:
    """Return the package in which the type of an object is defined."""
    return str(type(thing).__module__).split(".")[0]
