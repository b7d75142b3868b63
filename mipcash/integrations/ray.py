"""A Ray cluster as an executor."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from importlib import import_module
from typing import Any

from mipcash.errors import MipcashError


class RayExecutor(Executor):
    """Executor that evaluates in tasks of a Ray cluster, each on any node that has room for it.

    Ray itself repeats the task of a worker or a node that went away; if it gives up, the study starts the evaluation again.

    Args:
        workers: processors of the local cluster that is started if this process is connected to none. None: all of the machine.
        options: of each task, as ``ray.remote`` takes them: ``num_cpus=2``, ``num_gpus=0.5``, ``resources={"license": 1}``.

    Raises:
        MipcashError: ray is not installed.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.integrations.ray import RayExecutor
        >>> def tuned(train, space):
        ...     return mc.minimize(train, space, 200, execution=mc.Execution(16, RayExecutor(num_cpus=2)))
    """

    def __init__(self, workers: int | None = None, **options: Any) -> None:
        try:
            ray: Any = import_module("ray")
        except ImportError:
            raise MipcashError("RayExecutor needs ray: pip install 'mipcash[ray]'") from None
        if not ray.is_initialized():
            ray.init(num_cpus=workers, log_to_driver=False)
        self._run = ray.remote(**options)(_call) if options else ray.remote(_call)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Start a call as a task of the cluster."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # a started task of the cluster cannot be cancelled

        def relay(done: Future[Any]) -> None:
            error = done.exception()
            if error is None:
                future.set_result(done.result())
            else:  # Ray's exception has a traceback as its message, and the task's own exception as its cause
                future.set_exception(getattr(error, "cause", None) or error)

        self._run.remote(fn, args, kwargs).future().add_done_callback(relay)
        return future


def _call(call: Callable[..., Any], given: tuple[Any, ...], more: dict[str, Any]) -> Any:
    return call(*given, **more)
