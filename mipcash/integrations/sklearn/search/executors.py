"""Executors of a search: as many workers as joblib's ``n_jobs``, in processes of loky unless another backend is active.

Under a timeout a single worker is a process of loky, too, since a fit can only be interrupted by ending its process.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from functools import lru_cache
from pathlib import Path
from typing import Any

from mipcash.errors import warn
from mipcash.study.evaluating.pool import Executors, pickled


def executor_of(n_jobs: int | None, timeout: float | None = None) -> tuple[int, Executors, bool]:
    """Return the number of workers, their executor, and whether they are other processes.

    Args:
        n_jobs: None: 1, unless in ``joblib.parallel_config(n_jobs=...)``; -1: all cores.
        timeout: seconds after which evaluations are interrupted, from the first call of the executor's factory; None: never.
    """
    import joblib
    from joblib.parallel import get_active_backend

    workers = int(joblib.effective_n_jobs(n_jobs))
    if workers <= 1 and timeout is None:
        return 1, None, False
    backend = get_active_backend()[0]
    if type(backend).__name__ == "ThreadingBackend":
        return workers, None, False
    client = getattr(backend, "client", None)
    if client is not None and hasattr(client, "get_executor"):  # joblib's Dask backend
        return workers, client.get_executor(), True
    if type(backend).__name__ not in ("LokyBackend", "SequentialBackend"):
        warn(
            f"evaluations run in local processes: joblib's {type(backend).__name__} is none of loky, threading and dask"
        )
    end = math.inf

    def make() -> ReusedExecutor:
        nonlocal end
        end = min(end, time.monotonic() + (math.inf if timeout is None else timeout))
        return ReusedExecutor(workers, end)

    return workers, make, True


class ReusedExecutor(Executor):
    """joblib's executor of loky, whose processes outlive a search and are reused by the next one.

    loky has one such executor in a process, and joblib can use no other than its own.

    Args:
        workers: processes.
        end: of ``time.monotonic()``, when the processes are ended if an evaluation has finished; inf: never.
    """

    def __init__(self, workers: int, end: float = math.inf) -> None:
        from joblib.executor import get_memmapping_executor

        threads = str(max(1, (os.cpu_count() or 1) // workers))  # of BLAS, in each
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
        self._processes: Any = get_memmapping_executor(workers, env=dict.fromkeys(names, threads))
        self._finished, self._ended = False, False
        self._timer: threading.Timer | None = None
        if end < math.inf:
            self._call_after(end - time.monotonic(), self._interrupt)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a call."""
        future: Future[Any] = self._processes.submit(fn, *args, **kwargs)
        future.add_done_callback(self._note)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the processes to the next search, unless ``cancel_futures``; loky ends them when they are idle."""
        if self._timer is not None:
            self._timer.cancel()
        if cancel_futures:
            self._processes.shutdown(wait=False, kill_workers=True)

    def _note(self, future: Future[Any]) -> None:
        self._finished = self._finished or (not future.cancelled() and future.exception() is None)
        if self._finished and self._ended:
            self._call_after(0.0, self._kill)  # not here: loky's own thread would wait for itself

    def _interrupt(self) -> None:
        self._ended = True
        if self._finished:  # a search should not end without any outcome
            self._kill()

    def _kill(self) -> None:
        self._processes.shutdown(wait=True, kill_workers=True)

    def _call_after(self, seconds: float, function: Callable[[], None]) -> None:
        self._timer = threading.Timer(min(max(0.0, seconds), threading.TIMEOUT_MAX), function)
        self._timer.daemon = True
        self._timer.start()


class FileObjective:
    """An objective in a file, which each process loads once, so that data need not be sent with every evaluation.

    Args:
        objective: the objective.
        path: of the file.

    Attributes:
        compared_by: as of the objective.
    """

    def __init__(self, objective: Any, path: Path) -> None:
        path.write_bytes(pickled(objective))
        self.path, self.compared_by = str(path), objective.compared_by

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __call__(self, config: Mapping[str, Any], repeat: int = 0) -> Iterator[dict[str, float]]:
        """Return the generator of the objective."""
        found: Iterator[dict[str, float]] = _loaded(self.path)(config, repeat)
        return found


@lru_cache(maxsize=1)
def _loaded(path: str) -> Any:
    import cloudpickle

    return cloudpickle.loads(Path(path).read_bytes())
