"""Executors of other packages, lent to a run: used as they are, left open, and what their workers drop is evaluated again."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import os
import shutil
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import tiny

import mipcash as mc
from mipcash.errors import ExecutorError, ObjectiveError
from mipcash.study.storage.sqlite import read_journal


class Once:
    """The loss, after a moment; the process of one call is killed, if a folder is given, and notes that there first."""

    def __init__(self, seconds: float, marks: Path | None = None) -> None:
        self.seconds, self.marks = seconds, marks

    def __call__(self, config: Any) -> float:
        time.sleep(self.seconds)
        if self.marks is not None:
            if len(list(self.marks.glob("call*"))) == 2 and not (self.marks / "killed").exists():
                (self.marks / "killed").touch()
                os._exit(9)
            (self.marks / f"call{config['lr']!r}").touch()
        return tiny.loss(config)


def overlap(result: mc.Result) -> bool:
    """Whether evaluations ran at a time: one was asked for before another ended."""
    times = sorted((t.started, t.finished or 0.0) for t in result.history)
    return any(before[1] > after[0] for before, after in itertools.pairwise(times))


def minimize(objective: Any, space: mc.Space, budget: int, executor: Any, **options: Any) -> mc.Result:
    options = {"optimizer": tiny.Sampler(space), "execution": mc.Execution(2, executor), "progress": False, **options}
    return mc.minimize(objective, space, budget, **options)


def test_a_lent_pool_of_processes_is_left_open(space: mc.Space) -> None:
    with ProcessPoolExecutor(2) as pool:
        result = minimize(Once(0.05), space, 6, pool)
        assert (result.n_done, overlap(result)) == (6, True)
        assert pool.submit(abs, -1).result() == 1


def test_an_objective_that_cannot_be_pickled_is_told_before_anything_is_evaluated(
    space: mc.Space, journal: Path
) -> None:
    lock = threading.Lock()
    locked = functools.partial(lambda lock, config: 1.0, lock)
    said = r"cannot be sent to the processes of executor=: .*at the top of a module"
    for objective in (lambda config: 1.0, locked, {"loss": tiny.loss, "ms": lambda config: 1.0}):
        with ProcessPoolExecutor(1) as pool, pytest.raises(ObjectiveError, match=said):
            minimize(objective, space, 3, pool, storage=journal)
    with pytest.raises(ObjectiveError, match=said):
        minimize(locked, space, 3, lambda: ProcessPoolExecutor(1), storage=journal)
    assert read_journal(journal)[1] == []
    with ThreadPoolExecutor(2) as threads:  # which need not send it
        assert minimize(lambda config: 1.0, space, 3, threads).n_done == 3


def test_an_executor_that_was_shut_down_is_told(space: mc.Space) -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(ExecutorError, match=r"takes no more evaluations .*cannot schedule new futures after shutdown"):
        minimize(tiny.loss, space, 3, pool)


def test_what_a_scheduler_cancels_is_evaluated_again(space: mc.Space) -> None:
    class Restarted(Executor):
        calls = 0

        def submit(self, call: Any, *given: Any, **more: Any) -> Future[Any]:  # type: ignore[override]
            self.calls += 1
            future: Future[Any] = Future()
            if self.calls == 2:
                future.set_exception(CancelledError())
            else:
                future.set_result(call(*given))
            return future

    result = minimize(tiny.loss, space, 3, Restarted())
    assert (result.n_done, [t.lost for t in result.history]) == (3, [0, 1, 0])


@pytest.fixture
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    options = {"dashboard_address": ":0", "memory_limit": 0, "silence_logs": 60}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_dask_loses_a_worker_and_nothing_else(
    space: mc.Space, journal: Path, marks: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = client.get_executor()
    result = minimize(Once(0.1, marks), space, 6, executor, storage=journal)
    assert (marks / "killed").exists()
    assert (result.n_done, result.n_failed, overlap(result)) == (6, 0, True)
    assert [r.status for r in read_journal(journal)[1]] == ["done"] * 6
    assert executor.submit(abs, -1).result(30) == 1
    assert minimize(lambda config: 1.0, space, 2, executor).n_done == 2  # by value: Dask has cloudpickle
    module = types.ModuleType("nowhere_else")  # as a folder that the workers do not have
    exec("def loss(config): return 1.0", module.__dict__)
    monkeypatch.setitem(sys.modules, "nowhere_else", module)
    with pytest.raises(ObjectiveError, match=r"No module named 'nowhere_else'.*upload_file"):
        minimize(module.loss, space, 2, executor)


def test_mpi_pools_evaluate(tmp_path: Path) -> None:
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed")
    # also where packages of this environment put their programs
    places = [str(Path(p).parents[2] / "bin") for p in sys.path if p.endswith("site-packages")]
    path = os.pathsep.join([str(Path(sys.executable).parent), *places, os.environ["PATH"]])
    found = shutil.which("mpiexec", path=path)
    if found is None:
        pytest.skip("mpiexec is not installed; the package mpich has one")
    script, journal = Path(__file__).with_name("run_mpi.py"), tmp_path / "run.db"
    command = [found, "-n", "3", sys.executable, "-m", "mpi4py.futures", str(script), str(journal)]
    libraries = os.pathsep.join([str(Path(found).parents[1] / "lib"), os.environ.get("LD_LIBRARY_PATH", "")])
    told = {**os.environ, "LD_LIBRARY_PATH": libraries}
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False, env=told)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "done 4, workers 2, overlap True" in done.stdout
    assert "cannot be sent to the processes of executor=" in done.stdout
    assert [r.status for r in read_journal(journal)[1]] == ["done"] * 4
