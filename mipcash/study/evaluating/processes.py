"""Evaluations in worker processes with limits on time and memory; a process that exceeds a limit is killed and replaced.

A process is started as ``python -c``, without a fork and without running the user's script again, in its own session. Processes
that an evaluation starts are in its process group and are killed with it, unless they leave the group. cloudpickle sends the
objective, by value if it cannot be imported (lambdas, notebooks, scripts, model files).
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import Pipe
from typing import Any

import cloudpickle

from mipcash.errors import ObjectiveError
from mipcash.modelling.domains import Configuration
from mipcash.study.evaluating.allowed import Allowed, held
from mipcash.study.evaluating.evaluation import Evaluation, Objective, Task
from mipcash.study.evaluating.pool import LostWorkerError
from mipcash.study.evaluating.raised import Raised
from mipcash.study.evaluating.worker import READY, STOPPED
from mipcash.study.reading import describe_error
from mipcash.study.trial import Failed
from mipcash.text import shown

GRACE = 0.5
"""Seconds between SIGTERM, on which an objective may clean up, and SIGKILL."""
LEAVE = 5.0
"""Seconds that an idle process has to exit by itself, including the objective's exit handlers."""
TICK = 0.05
"""Seconds between checks whether a process is alive; a reply is received at once."""

BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv[3]); from mipcash.study.evaluating.worker import main; "
BOOT += "main(int(sys.argv[1]), int(sys.argv[2]))"

NEEDED = "which evaluation_timeout= and evaluation_memory= need"
CURE = "Define what it needs inside it, or in a module that can be imported; or leave these limits out"
KEPT = 0.5
"""Share of the memory left after loading that a process may keep between evaluations; beyond it the process is replaced."""


class Processes:
    """Worker processes for the duration of a ``with`` block, with one evaluation at a time in each.

    Args:
        objective: the objective to evaluate; a first process loads it at once.
        workers: largest number of processes.
        allowed: limits of an evaluation.

    Raises:
        ObjectiveError: the objective cannot be sent to another process, or loading it takes all of the allowed memory.
    """

    queues = False

    def __init__(self, objective: Objective, workers: int, allowed: Allowed) -> None:
        if os.name != "posix":
            raise ObjectiveError(
                "evaluation_timeout= and evaluation_memory= need sessions and process groups, which this system lacks; leave them "
                "out, or let the executor that executor= takes keep a limit"
            )
        self._allowed, self._closed = allowed, False
        self._names = tuple(objective) if isinstance(objective, Mapping) else ()
        self._text, first = _sent(objective)
        self._most_kept = self._memory_to_keep(first, objective)
        self._all, self._lock = [first], threading.Lock()
        self._idle: queue.LifoQueue[_Process] = queue.LifoQueue()
        self._idle.put(first)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="mipcash")

    def submit(self, config: Configuration, outputs: Sequence[str], task: Task) -> Future[Evaluation]:
        """Start an evaluation in an idle or a new process. For decoupled outputs, the limits apply to each output."""
        return self._threads.submit(self._evaluate, config, tuple(outputs) or self._names, task)

    def _evaluate(self, config: Configuration, outputs: Sequence[str], task: Task) -> Evaluation:
        if self._names:
            return Evaluation.together({name: self._call(config, task, name) for name in outputs})
        return self._call(config, task)

    def _call(self, config: Configuration, task: Task, output: str | None = None) -> Evaluation:
        """Make one evaluation, of the whole objective or of the function of one output."""
        process = self._process()
        evaluation = process.evaluate(config, output, self._allowed, task)
        if process.alive and process.holds(self._most_kept) > self._most_kept:
            process.close()  # memory that earlier evaluations left must not count for the next one
        if process.alive:
            self._idle.put(process)
        return evaluation

    def _memory_to_keep(self, first: _Process, objective: Objective) -> float:
        """Return the megabytes that an idle process may hold, based on the memory of the first process after loading.

        Raises:
            ObjectiveError: loading alone reaches the limit.
        """
        limit = self._allowed.megabytes
        if limit is None:
            return math.inf
        loaded = first.holds()
        if loaded >= limit:
            first.close()
            raise ObjectiveError(
                f"a worker process that has loaded the objective {shown(objective)} holds {loaded:.0f} MB before it evaluates "
                f"anything, and evaluation_memory={limit:g} MB counts all that it holds; raise it above that, by what an "
                "evaluation needs"
            )
        return loaded + KEPT * (limit - loaded)

    def _process(self) -> _Process:
        with contextlib.suppress(queue.Empty):
            while True:
                process = self._idle.get_nowait()
                if process.alive:
                    return process
        process = _Process()
        with self._lock:
            self._all = [p for p in self._all if p.alive] + [process]
            late = self._closed
        if late:
            process.kill()
        error, _ = process.load(self._text)
        if error:  # loading worked before
            raise LostWorkerError(f"its process could not load the objective: {error}")
        return process

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *error: object) -> None:
        """Close the processes. If the loop is interrupted, kill running evaluations; idle processes may exit by themselves."""
        with self._lock:
            self._closed = any(error)
            running = list(self._all) if self._closed else []
        for process in running:
            process.kill()
        self._threads.shutdown(cancel_futures=self._closed)
        with ThreadPoolExecutor(max(1, len(self._all))) as closing:  # each may wait for LEAVE seconds
            list(closing.map(_Process.close, self._all))


class _TooLargeError(Exception):
    """Raised if a process exceeds its memory limit."""


class _Process:
    """One worker process, as seen by the parent."""

    def __init__(self) -> None:
        self._talk, theirs = Pipe()
        life, lifeline = os.pipe()
        self._life: int | None = lifeline
        path = json.dumps([os.getcwd() if entry == "" else os.fspath(entry) for entry in sys.path])
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", BOOT, str(theirs.fileno()), str(life), path],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), life),
                start_new_session=True,
            )
        finally:
            theirs.close()
            os.close(life)
        self.name, self.alive = "", True

    def load(self, objective: bytes) -> tuple[str, str | None]:
        """Send the objective. Return an error message and the name of the missing module, if any; an empty message on success."""
        try:
            self._talk.send_bytes(objective)
            what, about = self._answer()
        except LostWorkerError as lost:
            return str(lost), None
        if what == READY:
            self.name = about
            return "", None
        self.close()
        return about[0], about[1]

    def holds(self, limit: float = 0.0) -> float:
        """Return the megabytes that the process and its children hold. Exact only above ``limit``; 0 if that is infinite."""
        return 0.0 if math.isinf(limit) else held(self._process.pid, limit)

    def evaluate(self, config: Configuration, output: str | None, allowed: Allowed, task: Task) -> Evaluation:
        """Make one evaluation. An evaluation that exceeds a limit has failed.

        Args:
            output: output with its own function; None: the objective is one function.

        Raises:
            LostWorkerError: the process died.
        """
        began = time.perf_counter()
        try:
            self._talk.send_bytes(cloudpickle.dumps((config, output, allowed.seconds, task)))
        except OSError as error:
            raise self._lost() from error
        try:
            what, about = self._answer(allowed)
        except (TimeoutError, _TooLargeError) as exceeded:
            large = isinstance(exceeded, _TooLargeError)
            self.kill(0.0 if large else GRACE)  # no grace after too much memory: cleaning up could allocate more
            wording = allowed.large if large else allowed.late
            return Evaluation(Failed(wording), time.perf_counter() - began, self.name)
        except LostWorkerError:
            raise
        except Exception as error:  # unpickling runs code of the returned object's class
            wording = f"the returned value cannot be unpickled here: {describe_error(error)}"
            return Evaluation(Failed(wording), time.perf_counter() - began, self.name, Raised(wording))
        if what == STOPPED:
            raise about
        evaluation: Evaluation = about
        return evaluation

    def kill(self, grace: float = GRACE) -> None:
        """Kill the process and its children: SIGTERM first, SIGKILL after ``grace`` seconds."""
        self.alive = False
        if grace:
            self._signal(signal.SIGTERM)
            self._wait(grace)
        # before the process is reaped, so that its id cannot have been reused
        self._signal(signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """Let the process exit by itself, and kill processes that evaluations left; a second call has no effect."""
        self._talk.close()
        if self._life is not None:
            if not self._wait(LEAVE):
                self.kill()
            self._signal(signal.SIGKILL)  # to processes that evaluations left, before the process is reaped
            self._process.wait()
            os.close(self._life)
            self._life = None
        self.alive = False

    def _answer(self, allowed: Allowed | None = None) -> Any:
        """Return the next message.

        Raises:
            TimeoutError: it did not come in time.
            _TooLargeError: the process exceeded its memory limit meanwhile.
            LostWorkerError: the process died.
        """
        seconds, megabytes = (None, None) if allowed is None else (allowed.seconds, allowed.megabytes)
        end = None if seconds is None else time.monotonic() + seconds
        try:
            while not self._talk.poll(TICK if end is None else max(0.0, min(TICK, end - time.monotonic()))):
                if self._exited() and not self._talk.poll(0):
                    raise self._lost()
                if end is not None and time.monotonic() >= end:
                    raise TimeoutError
                if megabytes is not None and self.holds(megabytes) > megabytes:
                    raise _TooLargeError
            pickled = self._talk.recv_bytes()
        except (EOFError, OSError) as error:
            if isinstance(error, TimeoutError):
                raise
            raise self._lost() from error
        return pickle.loads(pickled)

    def _lost(self) -> LostWorkerError:
        closed = not self._wait(GRACE)
        self.kill()  # its children are still alive
        code = self._process.returncode
        how = f"was killed by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        if closed:
            how = "has closed its connection; perhaps the objective closes files that are not its own"
        return LostWorkerError(f"the worker process {self.name} {how}")

    def _signal(self, number: int) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def _wait(self, seconds: float) -> bool:
        """Return True if the process exits within some seconds."""
        end = time.monotonic() + seconds
        while not self._exited():
            if time.monotonic() >= end:
                return False
            time.sleep(TICK / 10)
        return True

    def _exited(self) -> bool:
        """Return True if the process has exited. It is not reaped if the system can tell without that."""
        if self._process.returncode is not None:
            return True
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # reaped by other code
            return self._process.poll() is not None


def _sent(objective: Objective) -> tuple[bytes, _Process]:
    """Return the pickled objective and a process that has loaded it. Modules that the process cannot import are pickled by value.

    Raises:
        ObjectiveError: it cannot be loaded in a worker process.
    """
    by_value: list[str] = []
    while True:
        pickled = pickled_objective(objective, by_value)
        process = _Process()
        error, missing = process.load(pickled)
        if not error:
            return pickled, process
        top = "" if missing is None else missing.partition(".")[0]
        if top not in sys.modules or top in by_value:
            raise ObjectiveError(
                f"the objective {shown(objective)} cannot be loaded in a worker process, {NEEDED}: {error}. {CURE}"
            )
        by_value.append(top)


def pickled_objective(objective: Objective, by_value: Sequence[str] = ()) -> bytes:
    """Return an objective as it is sent to a process.

    Args:
        by_value: modules to send with it.

    Raises:
        ObjectiveError: it cannot be pickled.
    """
    try:
        for name in by_value:
            cloudpickle.register_pickle_by_value(sys.modules[name])
        pickled: bytes = cloudpickle.dumps(objective)
    except Exception as error:
        raise ObjectiveError(
            f"the objective {shown(objective)} cannot be sent to a worker process, {NEEDED}: {describe_error(error)}. {CURE}"
        ) from error
    finally:
        for name in by_value:
            cloudpickle.unregister_pickle_by_value(sys.modules[name])
    return pickled


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
