"""Executors of other packages, and proposals that are made while all workers are busy."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import itertools
import os
import shutil
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import tiny

import mipcash as mc
from mipcash.errors import ExecutorError, ObjectiveError, SpaceExhaustedError
from mipcash.optimizers.optimizer import Proposal, Request
from mipcash.study.policies.policy import BEST_OF_ALL
from mipcash.study.storage.sqlite import read_journal


class Once:
    """Objective that returns the loss after ``seconds``.

    With a folder, it records each call in the folder, and kills its process once.
    """

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
    """Return True if an evaluation started before an earlier evaluation ended."""
    times = sorted((t.started, t.finished or 0.0) for t in result.history)
    return any(before[1] > after[0] for before, after in itertools.pairwise(times))


def minimize(objective: Any, space: mc.Space, budget: int, executor: Any, **options: Any) -> mc.Result:
    options = {"optimizer": tiny.Sampler(space), "execution": mc.Execution(2, executor), "progress": False, **options}
    return mc.minimize(objective, space, budget, **options)


def test_a_process_pool_of_the_user_is_left_open(space: mc.Space) -> None:
    with ProcessPoolExecutor(2) as pool:
        result = minimize(Once(0.05), space, 6, pool)
        assert (result.n_done, overlap(result)) == (6, True)
        assert pool.submit(abs, -1).result() == 1


def test_an_objective_that_cannot_be_pickled_is_reported_before_anything_is_evaluated(
    space: mc.Space, journal: Path
) -> None:
    lock = threading.Lock()
    locked = functools.partial(lambda lock, config: 1.0, lock)
    said = r"cannot be sent to the processes of executor=: .*Leave out of it what is open"
    for objective in (locked, {"loss": tiny.loss, "ms": locked}):
        with ProcessPoolExecutor(1) as pool, pytest.raises(ObjectiveError, match=said):
            minimize(objective, space, 3, pool, storage=journal)
    with pytest.raises(ObjectiveError, match=said):
        minimize(locked, space, 3, lambda: ProcessPoolExecutor(1), storage=journal)
    assert read_journal(journal)[1] == []
    with ThreadPoolExecutor(2) as threads:  # threads do not pickle the objective
        assert minimize(locked, space, 3, threads).n_done == 3


class Counted:
    """Objective that changes itself."""

    calls = 0

    def __call__(self, config: Any) -> float:
        self.calls += 1
        return float(self.calls)


def test_an_evaluation_sees_no_change_that_another_made_to_the_objective(space: mc.Space) -> None:
    with ProcessPoolExecutor(1) as pool:
        assert [t.loss for t in minimize(Counted(), space, 3, pool).history] == [1.0, 1.0, 1.0]


def test_processes_evaluate_a_function_that_cannot_be_imported(space: mc.Space) -> None:
    with ProcessPoolExecutor(1) as pool:
        assert minimize(lambda config: 1.0, space, 3, pool).n_done == 3


def test_an_executor_that_was_shut_down_is_reported(space: mc.Space) -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(ExecutorError, match=r"takes no more evaluations .*cannot schedule new futures after shutdown"):
        minimize(tiny.loss, space, 3, pool)


class Closed(ThreadPoolExecutor):
    """Executor of a cluster that is gone, which says so in its own way."""

    def submit(self, *args: Any, **given: Any) -> Any:
        raise Exception("Client is closed")


def test_an_executor_of_a_cluster_that_is_gone_is_reported_or_replaced(space: mc.Space) -> None:
    with pytest.raises(ExecutorError, match=r"takes no more evaluations .*Client is closed"):
        minimize(tiny.loss, space, 3, Closed(1))
    made = iter([Closed(1), ThreadPoolExecutor(1)])
    assert minimize(tiny.loss, space, 3, lambda: next(made)).n_done == 3


class DivergedError(mc.Failed):
    """Failure that cannot be unpickled, since its arguments are others than those of ``Failed``."""

    def __init__(self, step: int, rate: float) -> None:
        super().__init__(f"diverged at {step}, rate {rate}")


class Unreadable:
    def __setstate__(self, state: object) -> None:
        raise RuntimeError("not here")

    def __init__(self) -> None:
        self.mark = 1


def diverging(config: Any) -> Any:
    if config["layers"] < 2:
        raise DivergedError(3, 0.1)
    return {"loss": 1.0, "x": DivergedError(4, 0.1), "y": Unreadable()} if config["layers"] == 2 else Unreadable()


@pytest.mark.parametrize("kind", ["processes", "lent", "limited", "threads", "loky"])
def test_failures_and_results_that_cannot_be_sent_break_no_pool(space: mc.Space, kind: str) -> None:
    made: dict[str, Any] = {"processes": lambda: ProcessPoolExecutor(2), "threads": lambda: ThreadPoolExecutor(2)}
    if kind == "loky":
        loky = pytest.importorskip("joblib.externals.loky")
        made["loky"] = lambda: loky.get_reusable_executor(2)
    with ProcessPoolExecutor(2) as pool:
        execution = mc.Execution(2, made.get(kind, pool))
        execution = mc.Execution(2, evaluation_timeout=60.0) if kind == "limited" else execution
        result = minimize(diverging, space, 8, None, execution=execution)
    for trial in result.history:
        layers = trial.config["layers"]
        said = "diverged at 3, rate 0.1" if layers < 2 else "" if layers == 2 else "the objective returned Unreadable"
        assert trial.message.startswith(said)
        assert (trial.done, trial.lost) == (layers == 2, 0)
    assert {min(3, max(1, t.config["layers"])) for t in result.history} == {1, 2, 3}


@pytest.mark.parametrize("made", [None, ThreadPoolExecutor])
def test_a_callable_that_makes_no_usable_executor_is_reported(space: mc.Space, made: Any) -> None:
    pool = None if made is None else made(1)
    if pool is not None:
        pool.shutdown()
    with pytest.raises((TypeError, ExecutorError), match=r"must return an executor|is broken from the start"):
        minimize(tiny.loss, space, 3, lambda: pool)


def test_finished_evaluations_are_recorded_when_a_run_is_interrupted(space: mc.Space, journal: Path) -> None:
    both, calls = threading.Barrier(2), list[int]()

    def evaluate(config: Any, trial: mc.Trial) -> float:
        calls.append(trial.number)
        both.wait(60.0)
        return tiny.loss(config)

    def interrupted(study: mc.Study, trial: mc.Trial) -> None:
        pool.shutdown()  # waits for the other evaluation
        raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as pool, pytest.raises(KeyboardInterrupt):
        minimize(evaluate, space, 2, pool, callbacks=interrupted, storage=journal)
    assert sorted(calls) == [0, 1]
    assert [row.status for row in read_journal(journal)[1]] == ["done", "done"]


def nowhere_else(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return an objective whose module the workers do not have."""
    module = types.ModuleType("nowhere_else")
    exec("def loss(config): return 1.0", module.__dict__)
    monkeypatch.setitem(sys.modules, "nowhere_else", module)
    return module.loss


@pytest.fixture
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    options = {"dashboard_address": ":0", "memory_limit": 0, "silence_logs": 60}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_a_lost_dask_worker_costs_no_evaluation(
    space: mc.Space, journal: Path, marks: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = client.get_executor()
    result = minimize(Once(0.1, marks), space, 6, executor, storage=journal)
    assert (marks / "killed").exists()
    assert (result.n_done, result.n_failed, overlap(result)) == (6, 0, True)
    assert [r.status for r in read_journal(journal)[1]] == ["done"] * 6
    assert executor.submit(abs, -1).result(30) == 1
    assert minimize(lambda config: 1.0, space, 2, executor).n_done == 2  # Dask pickles it by value with cloudpickle
    with pytest.raises(ObjectiveError, match=r"No module named 'nowhere_else'.*upload_file"):
        minimize(nowhere_else(monkeypatch), space, 2, executor)


@pytest.mark.parametrize("by_itself", [False, True])
def test_a_run_goes_on_while_its_cluster_grows_and_shrinks(space: mc.Space, client: Any, by_itself: bool) -> None:
    sizes, end, slowly = {2}, time.monotonic() + 120.0, Once(0.05)

    def scaled(study: mc.Study, trial: mc.Trial) -> None:
        sizes.add(len(client.scheduler_info()["workers"]))
        if trial.number == 4 and not by_itself:
            client.cluster.scale(4 if max(sizes) == 2 else 1)

    if by_itself:
        client.cluster.adapt(minimum=1, maximum=4, interval="20ms", target_duration="20ms", wait_count=10)
    while max(sizes) == 2 or len(client.scheduler_info()["workers"]) > 1:
        execution = mc.Execution(4, client.get_executor())
        result = minimize(slowly, space, 20, None, execution=execution, callbacks=scaled, optimizer="random")
        assert (result.n_done, result.n_failed, [t.lost for t in result.history]) == (20, 0, [0] * 20)
        time.sleep(0.5)
        assert time.monotonic() < end


def test_a_lost_ray_worker_or_node_costs_no_evaluation(
    space: mc.Space, journal: Path, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    from mipcash.integrations.ray import RayExecutor

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # where the workers find this module
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    ray.init(cluster.address, log_to_driver=False)
    executor = RayExecutor(2, num_cpus=1)
    try:
        result = minimize(Once(0.1, marks), space, 6, executor, storage=journal)
        assert (marks / "killed").exists()
        assert (result.n_done, result.n_failed, overlap(result)) == (6, 0, True)
        with pytest.raises(ZeroDivisionError):
            executor.submit(divmod, 1, 0).result(30)
        gives_up = RayExecutor(num_cpus=1, max_retries=0)  # connects to the same cluster, since ray has one per process
        (marks / "killed").unlink()
        for call in list(marks.glob("call*"))[2:]:
            call.unlink()
        result = minimize(Once(0.1, marks), space, 4, gives_up)
        assert (result.n_done, result.n_failed, sum(t.lost for t in result.history)) == (4, 0, 1)
        with pytest.raises(ObjectiveError, match=r"No module named 'nowhere_else'.*working_dir"):
            minimize(nowhere_else(monkeypatch), space, 2, executor)
        nodes: list[Any] = []

        def scaled(study: mc.Study, trial: mc.Trial) -> None:
            if study.n_evaluated == 4:
                nodes.append(cluster.add_node(num_cpus=2))
            elif study.n_evaluated == 12:  # with what runs there
                cluster.remove_node(nodes[0])

        execution = mc.Execution(4, executor)
        result = mc.minimize(
            Once(0.05), space, 20, execution=execution, callbacks=scaled, optimizer="random", progress=False
        )
        assert (len(nodes), result.n_done, result.n_failed) == (1, 20, 0)
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_mpi_pools_evaluate(tmp_path: Path) -> None:
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed")
    # also search the folders in which packages of this environment install programs
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
    assert "inner 2" in done.stdout
    assert [r.status for r in read_journal(journal)[1]] == ["done"] * 4


# -- proposals that are made while all workers are busy ---------------------------------------------------------------

LONG = 5.0
"""Seconds after which an evaluation stops waiting."""


class Asked(tiny.Sampler):
    """Optimizer that notifies after each proposal, and reports an exhausted space after ``known`` trials."""

    def __init__(self, space: mc.Space, known: int = 99) -> None:
        super().__init__(space)
        self.changed, self.known = threading.Condition(), known

    def propose(self, request: Request) -> Proposal:
        time.sleep(0.01)
        if len(request.history) == self.known:
            raise SpaceExhaustedError("all legal configurations have been proposed")
        try:
            return super().propose(request)
        finally:
            with self.changed:
                self.changed.notify_all()


class Patient:
    """Objective that waits until the other worker has its next trial and one more trial is proposed ahead.

    The first two evaluations do not wait.
    """

    def __init__(self, optimizer: Asked, until: int, then: threading.Event | None) -> None:
        self.optimizer, self.started, self.until, self.then = optimizer, 0, until, then

    def __call__(self, config: dict[str, Any]) -> float:
        with self.optimizer.changed:
            self.started += 1
            enough = self.started + 2
            if 4 < enough <= self.until:
                self.optimizer.changed.wait_for(lambda: len(self.optimizer.histories) >= enough, LONG)
        if enough > self.until and self.then is not None:
            self.then.wait(LONG)
        return tiny.loss(config)


def go(optimizer: Asked, until: int, then: threading.Event | None = None, **arguments: Any) -> mc.Result:
    """Run with two workers. Evaluations wait until proposal ``until`` is made, later evaluations for ``then``."""
    objective = Patient(optimizer, until, then)
    return minimize(objective, optimizer.space, 12, None, optimizer=optimizer, **arguments)


def test_proposals_are_made_while_all_workers_are_busy(space: mc.Space, journal: Path) -> None:
    optimizer = Asked(space)
    result = go(optimizer, 12, storage=journal)
    assert (result.n_done, len(result.history), result.stopped) == (12, 12, "budget")
    running = [sum(o.status == "pending" for o in history) for history in optimizer.histories]
    assert len(running) == 12  # no proposal beyond the budget
    assert running.count(2) >= 6
    assert max(running) == 2  # at most one proposal is made ahead
    assert all(row.proposed <= row.evaluations[0].started for row in read_journal(journal)[1])
    known = go(Asked(space, 9), 9)  # an exhausted space ends the run after all outcomes are reported
    assert (known.n_done, len(known.history), known.stopped) == (9, 9, BEST_OF_ALL)


@pytest.mark.parametrize("interrupted", [False, True])
def test_an_interrupted_run_resumes_with_the_proposals_made_ahead(
    space: mc.Space, journal: Path, interrupted: bool
) -> None:
    over = threading.Event()

    def sixth(study: mc.Study, trial: mc.Trial) -> bool:
        if study.n_evaluated == 6:
            over.set()
            if interrupted:
                raise KeyboardInterrupt
        return over.is_set()

    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            go(Asked(space), 8, callbacks=[sixth], storage=journal)
    else:
        result = go(Asked(space), 8, over, callbacks=[sixth], storage=journal)
        assert (result.stopped, result.n_done) == ("callback", 7)  # including the evaluation that was still running
        assert sum(t.pending for t in result.history) == 1
    before = [row.exact for row in read_journal(journal)[1]]
    assert len(before) > 6
    again = minimize(tiny.loss, space, 12, None, optimizer=Asked(space), storage=journal)
    assert (again.n_done, len(again.history)) == (12, 12)
    assert [row.exact for row in read_journal(journal)[1]][: len(before)] == before
    assert all(trial.lost == 0 for trial in again.history)


class Queueing(ThreadPoolExecutor):
    """Executor of one slot: the first call is made at once, and all others stay in its queue."""

    def __init__(self) -> None:
        super().__init__(1)
        self.queued: list[Future[Any]] = []

    def submit(self, call: Any, /, *args: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self.queued:
            self.queued.append(future)
            return future
        self.queued.append(future)
        future.set_running_or_notify_cancel()
        future.set_result(call(*args, **options))
        return future


@pytest.mark.parametrize("wrong", [False, True])
def test_evaluations_that_an_executor_has_queued_are_not_made_for_an_ended_run(wrong: bool, space: mc.Space) -> None:
    def end(study: mc.Study, trial: mc.Trial) -> bool:
        if wrong:
            raise RuntimeError("ended")
        return True

    executor = Queueing()
    options: Any = {"optimizer": "random", "execution": mc.Execution(6, executor), "progress": False, "callbacks": end}
    with contextlib.suppress(RuntimeError):
        assert mc.minimize(tiny.loss, space, 20, **options).stopped == "callback"
    assert not any(future.cancelled() for future in executor.queued[:1])
    assert all(future.cancelled() for future in executor.queued[1:])


def test_a_display_whose_stream_fails_does_not_end_a_run(space: mc.Space, monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr("sys.stderr", Closed())
    assert mc.minimize(tiny.loss, space, 6, optimizer="random", execution=2).n_done == 6
