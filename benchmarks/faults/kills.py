"""Runs that are killed at random instants, resumed until they end, and then compared with what their objective logged."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE, Popen
from subprocess import run as called
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.faults.runs import BUDGET, Kind, append, lines
from benchmarks.load import network
from mipcash.cli.main import app
from mipcash.errors import StorageError
from mipcash.study.storage.protocol import TrialRow
from mipcash.study.storage.registry import read_study

MOST_KILLS = 12  # of one run, which then ends undisturbed
PATIENCE = 60.0  # seconds in which a program must end that was interrupted, or that goes on undisturbed
EARLY = (3, 36)  # kills in a run that is not disturbed; every second run is killed while it starts
KILLED, TERMINATED, INTERRUPTED, WORKER = "SIGKILL", "SIGTERM", "Ctrl-C twice", "SIGKILL of a worker"
RAY_UNPROTECTED = {"RAY_AUTH_MODE": "disabled"}  # the cluster and the programs have no token in common
MODEL = """from pathlib import Path
from benchmarks.faults.runs import Logged
from benchmarks.load import network
space, objective = network(), Logged(Path(__file__).parent)
"""
CLUSTERS = {
    "dask": "from distributed import LocalCluster\n"
    "cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=':0', silence_logs=60)\n"
    "print(cluster.scheduler_address, flush=True)\ninput()\n",
    "ray": "import ray\n"
    "started = ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)\n"
    "print(started.address_info['gcs_address'], flush=True)\ninput()\n",
}

CONNECTED = "import os, sys\nfrom distributed import Client\nprint(*Client(sys.argv[1], timeout=10).run(os.getpid).values())\n"
"""Program that prints the processes of the workers of a Dask cluster."""


@dataclass
class Survival:
    """Faults of a run, and what is wrong with it: nothing, if it survived."""

    faults: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    problems: list[str] = field(default_factory=list)


def forked(call: Callable[[], object], output: Path) -> int:
    """Call a function in a process of its own, which begins with all modules loaded, and return the number of the process."""
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # an interrupted child must not go on as its parent
    process = os.fork()
    if process:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        return process
    code = 1
    try:
        os.setsid()
        opened = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(opened, 1)
        os.dup2(opened, 2)
        sys.stdout = sys.stderr = os.fdopen(2, "w", buffering=1)
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        call()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def ended(process: int, seconds: float) -> int | None:
    """Wait for a process; return its exit code, or None if it still runs after some seconds."""
    deadline = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.002)


def run(kind: Kind, folder: Path, address: str, seed: int, cluster: str) -> None:
    """Run one program of a study to its end."""

    def told(study: mc.Study, trial: mc.Trial) -> None:
        append(folder / "told", trial.number, trial.loss)

    if kind.command:
        work(folder, address, seed)
        return
    options = dict(kind.options)
    if kind.cluster == "dask":
        from distributed import Client

        options["execution"] = mc.Execution(kind.workers, Client(cluster).get_executor())
    elif kind.cluster == "ray":
        import ray

        from mipcash.integrations.ray import RayExecutor

        os.environ.update(RAY_UNPROTECTED)
        ray.init(address=cluster, log_to_driver=False)
        options["execution"] = mc.Execution(kind.workers, RayExecutor())
    elif "execution" not in options:
        options["execution"] = kind.workers
    mc.minimize(kind.objective(folder), network(), BUDGET, seed=seed, storage=address, progress=False, callbacks=told, **options)


def work(folder: Path, address: str, seed: int) -> None:
    """Run ``mipcash work`` to its end."""
    model = folder / "model.py"
    if not model.exists():
        unfinished = folder / f"model-{os.getpid()}.py"
        unfinished.write_text(MODEL, encoding="utf-8")
        unfinished.replace(model)
    given = ["work", address, "--model", str(model), "--budget", str(BUDGET), "--seed", str(seed), "--quiet"]
    if code := app(given, standalone_mode=False):
        raise SystemExit(code)


@contextmanager
def clustered(kind: Kind) -> Iterator[tuple[str, int]]:
    """Start the cluster of a kind; yield its address and the number of its process."""
    if not kind.cluster:
        yield "", 0
        return
    command, environment = [sys.executable, "-c", CLUSTERS[kind.cluster]], {**os.environ, **RAY_UNPROTECTED}
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.stdin.write("\n")
            process.stdin.close()


class Killing:
    """Kills the programs of one run at random instants, and starts each again.

    Args:
        unbroken: seconds that the run takes undisturbed.
        cluster: its address and process.
    """

    def __init__(self, kind: Kind, folder: Path, address: str, seed: int, unbroken: float, cluster: tuple[str, int]) -> None:
        self.kind, self.folder, self.address, self.seed, self.unbroken = kind, folder, address, seed, unbroken
        self.cluster, self.rng, self.survival = cluster, np.random.default_rng(seed), Survival()
        self.seen: dict[int, float | None] = {}

    def __call__(self) -> Survival:
        running = [self._start() for _ in range(self.kind.programs)]
        while running:
            quiet = self.survival.faults.total() >= MOST_KILLS
            delay = PATIENCE if quiet else float(self.rng.exponential(self.unbroken / EARLY[self.seed % 2]))
            over = self._wait(running, delay)
            if over is not None:
                running.remove(over)
            elif quiet:
                self._problem("did not end")
                for process in running:
                    os.killpg(process, signal.SIGKILL)
                    os.waitpid(process, 0)
                break
            else:
                self._disturb(running)
        return self.survival

    def _start(self) -> int:
        return forked(lambda: run(self.kind, self.folder, self.address, self.seed, self.cluster[0]), self.folder / "output")

    def _wait(self, running: Sequence[int], seconds: float) -> int | None:
        """Return a program that ended, or None after some seconds."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for process in running:
                code = ended(process, 0.0)
                if code is not None:
                    if code:
                        self._problem(f"exit code {code}: {self._last_words()}")
                    return process
            time.sleep(0.002)
        return None

    def _disturb(self, running: list[int]) -> None:
        """Kill one program, or a worker of the cluster; start a killed program again."""
        if self.kind.cluster and self.rng.random() < 0.5:
            self._kill_a_worker()
            return
        at = int(self.rng.integers(len(running)))
        process, draw = running[at], self.rng.random()
        fault = KILLED if draw < 0.8 else TERMINATED if draw < 0.9 else INTERRUPTED
        if fault == KILLED:
            if self.rng.random() >= 0.5:
                with suppress(ProcessLookupError):  # a process that was just started has no group yet
                    os.killpg(process, signal.SIGKILL)
            os.kill(process, signal.SIGKILL)
        elif fault == TERMINATED:
            os.kill(process, signal.SIGTERM)
        else:
            os.kill(process, signal.SIGINT)
            time.sleep(float(self.rng.uniform(0, 0.05)))
            os.kill(process, signal.SIGINT)
        if ended(process, PATIENCE) is None:
            self._problem(f"did not end after {fault}")
            os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)
        self.survival.faults[fault] += 1
        self._outcomes_are_kept()
        running[at] = self._start()

    def _kill_a_worker(self) -> None:
        if found := self._workers():
            os.kill(found[int(self.rng.integers(len(found)))], signal.SIGKILL)
            self.survival.faults[WORKER] += 1

    def _workers(self) -> list[int]:
        """Return the processes of the workers; of Dask the connected ones: it gives up workers that are killed while they start."""
        if self.kind.cluster == "dask":
            asked = called([sys.executable, "-c", CONNECTED, self.cluster[0]], capture_output=True, text=True, check=False)
            return [int(number) for number in asked.stdout.split()]
        import psutil

        found = []
        for process in psutil.Process(self.cluster[1]).children(recursive=True):
            with suppress(psutil.Error):  # a node of Ray dies with its agents
                if " ".join(process.cmdline()).startswith(("ray::_call", "ray::IDLE")):
                    found.append(process.pid)
        return found

    def _outcomes_are_kept(self) -> None:
        """Note each outcome that a program had told, or that the storage had after an earlier fault, and does not have now."""
        self.seen |= {number: loss for number, loss in lines(self.folder / "told")}
        with suppress(StorageError):  # the first program was killed before it made the study
            rows = {r.number: r for r in read_study(self.address)[1]}
            for number, loss in self.seen.items():
                if number not in rows or rows[number].loss != loss:
                    self._problem(f"trial {number} had the loss {loss}, and is {rows.get(number)}")
            self.seen |= {number: row.loss for number, row in rows.items() if row.finished is not None}
            return
        if self.seen:
            self._problem(f"the study cannot be read, and had {self.seen}")

    def _problem(self, text: str) -> None:
        self.survival.problems.append(text)

    def _last_words(self) -> str:
        output = self.folder / "output"
        return output.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1] if output.exists() else ""


def recorded(rows: Sequence[TrialRow]) -> list[Any]:
    """Return what a resumed run has in common with an unbroken one: the outcomes of all trials, but not their serials."""
    outcomes = [sorted(r.outcome.outputs.items()) for r in rows]
    return [
        (row.status, row.exact, [(n, o.value, o.variance, o.folds) for n, o in outputs if n != "serial"])
        for row, outputs in zip(rows, outcomes, strict=True)
    ]


def compare(kind: Kind, folder: Path, rows: Sequence[TrialRow], unbroken: Sequence[TrialRow]) -> tuple[int, list[str]]:
    """Compare the trials of a run with the log of its objective, and with the run that was not interrupted.

    Returns:
        the number of finished evaluations that were repeated; what is wrong.
    """
    log, problems = lines(folder / "log"), []
    if kind.repeats and recorded(rows) != recorded(unbroken):
        problems.append("the resumed run differs from the unbroken one")
    if not kind.repeats and [r.status for r in rows] != ["done"] * BUDGET:
        problems.append(f"trials: {Counter(r.status for r in rows)}")
    if len({r.exact for r in rows}) != len({r.exact for r in unbroken}):
        problems.append("a configuration was evaluated twice")
    seen: Counter[Any] = Counter()
    kept = 0
    for row in rows:
        for name, output in row.outcome.outputs.items():
            if not kind.serial and not row.outcome.pruned:
                kept += 1
                found = [v for c, o, v, _ in log if c == json.loads(row.config) and o == name]
                if not found or not math.isclose(found[0], output.value or math.nan, rel_tol=1e-12):
                    problems.append(f"trial {row.number}: {name} is {output.value}, logged {found}")
            elif kind.serial and name == "serial":
                seen[output.value] += 1
                if row.outcome.pruned:  # an evaluation that is not completed is not logged
                    continue
                kept += 1
                found = [v for c, _, v, s in log if s == output.value and c == json.loads(row.config)]
                if len(found) != 1 or not math.isclose(found[0], row.loss or math.nan, rel_tol=1e-12):
                    problems.append(f"trial {row.number}: loss {row.loss}, logged {found}")
    problems += [f"evaluation {serial:.0f} counts {times} times" for serial, times in seen.items() if times > 1]
    return len(log) - kept, problems
