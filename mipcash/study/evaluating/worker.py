"""A worker process, which loads the objective once and evaluates configurations until its parent closes the connection.

It is started by ``mipcash.study.evaluating.processes`` and communicates over its own connection, so that the objective prints to
the parent's output. A message is a pickled tuple of its kind and its content.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import threading
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle

from mipcash.optimizers.outcome import LOSS
from mipcash.study.evaluating.evaluation import Function, Objective, Task, evaluate, survives
from mipcash.study.reading import describe_error
from mipcash.study.storage.protocol import this_worker

READY, REFUSED, DONE, STOPPED = "ready", "refused", "done", "stopped"
"""Kinds of messages: objective loaded; not loaded, with error and missing module; an evaluation; a request to stop."""

ORPHANED = 10.0
"""Seconds beyond the time limit after which an evaluation ends by itself if its parent died while it holds the GIL."""


def main(talk: int, life: int) -> None:
    """Serve until the connection closes.

    Args:
        talk: file descriptor of the connection.
        life: file descriptor of a pipe to which nothing is written; it closes when the parent dies.
    """
    for descriptor in (talk, life):
        os.set_inheritable(descriptor, False)  # processes that the objective starts must not keep them open
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(life,), daemon=True).start()
    gone = suppress(EOFError, BrokenPipeError, ConnectionResetError)  # the parent
    with Connection(talk) as connection, gone:
        objective = _objective(connection)
        while objective is not None:
            config, output, seconds, task = pickle.loads(connection.recv_bytes())
            function = objective[output] if isinstance(objective, Mapping) else objective
            connection.send_bytes(_answer(function, config, seconds, output or LOSS, task))


def _objective(connection: Connection) -> Objective | None:
    """Load the objective that the parent sent. If it cannot be loaded, report that to the parent and return None."""
    try:
        objective: Objective = pickle.loads(connection.recv_bytes())
    except BaseException as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        connection.send_bytes(pickle.dumps((REFUSED, (describe_error(error), missing))))
        return None
    connection.send_bytes(pickle.dumps((READY, this_worker())))
    return objective


def _answer(function: Function, config: Any, seconds: float | None, output: str, task: Task) -> bytes:
    if seconds is not None:
        faulthandler.dump_traceback_later(seconds + ORPHANED, exit=True)  # from a thread that needs no GIL
    try:
        evaluation = evaluate(function, config, (), task, output)
    except BaseException as error:  # evaluate re-raises requests to stop only, such as Ctrl-C
        stop = error if survives(error, cloudpickle.dumps) else SystemExit(describe_error(error))
        stopped: bytes = cloudpickle.dumps((STOPPED, stop))
        return stopped
    finally:
        faulthandler.cancel_dump_traceback_later()
    message: bytes = cloudpickle.dumps((DONE, evaluation.sendable(cloudpickle.dumps)))
    return message


def _end_with(life: int) -> None:
    """Kill this process, with all that the objective started, when the parent is gone."""
    os.read(life, 1)
    os.killpg(os.getpid(), signal.SIGKILL)
