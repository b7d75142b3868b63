"""Lost workers of real process pools: a lost attempt is recorded and repeated a limited number of times."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tiny
from test_another_study import Notes
from test_processes import finish, launch, run_here

import mipcash as mc
from mipcash.errors import ExecutorError
from mipcash.optimizers.optimizer import Proposal, Request
from mipcash.study import loop
from mipcash.study.minimize import minimize
from mipcash.study.storage.protocol import TrialRow
from mipcash.study.storage.sqlite import read_journal


def pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, mp_context=get_context("fork"))


class Deadly:
    """Objective that kills its worker at one number of layers: always, or only the first ``deaths`` times."""

    def __init__(self, layers: int, marks: Path | None = None, deaths: int = 0) -> None:
        self.layers, self.marks, self.deaths = layers, marks, deaths

    def __call__(self, config: dict[str, Any]) -> float:
        if config["layers"] == self.layers:
            done = 0 if self.marks is None else len(list(self.marks.iterdir()))
            if self.marks is None or done < self.deaths:
                if self.marks is not None:
                    (self.marks / str(done)).touch()
                os._exit(9) if self.layers % 2 else os.kill(os.getpid(), signal.SIGKILL)
        else:
            time.sleep(0.02)  # so that other evaluations are running when the worker dies
        return tiny.loss(config)


def attempts(row: TrialRow) -> list[tuple[int, str]]:
    return [(e.attempt, e.status) for e in row.evaluations]


def go(space: mc.Space, budget: int, objective: Any, executor: Any = pool, **given: Any) -> mc.Result:
    options = {name: given.pop(name) for name in ("workers", "retries") if name in given}
    chosen = given.pop("optimizer", tiny.Sampler)(space)
    execution = mc.Execution(executor=executor, **options)
    return minimize(objective, space, budget, optimizer=chosen, execution=execution, **{"progress": False, **given})


def test_only_the_configuration_that_kills_its_worker_fails(space: mc.Space, journal: Path) -> None:
    notes = Notes()
    result = go(space, 10, Deadly(4), workers=2, storage=journal, progress=notes)
    assert (len(result.history), result.stopped) == (10, "budget")
    for trial in result.history:
        assert trial.failed == (trial.config["layers"] == 4), trial
    killed = [t for t in result.history if t.failed]
    assert killed
    for trial in killed:
        assert trial.message.startswith("its worker died 3 times; at last: BrokenProcessPool: ")
        assert (trial.lost, trial.attempt) == (3, 4)
    rows = read_journal(journal)[1]
    assert attempts(rows[killed[0].number]) == [(1, "lost"), (2, "lost"), (3, "lost"), (4, "failed")]
    assert {e.worker.split(":")[-1] for r in rows for e in r.evaluations if e.status == "present"} - {str(os.getpid())}
    assert any("lost its worker and is evaluated again: BrokenProcessPool" in note for note in notes.notes)


def test_a_lost_worker_costs_only_a_retry(space: mc.Space, journal: Path, marks: Path) -> None:
    with pytest.warns(UserWarning, match="trial 0 lost its worker and is evaluated again"):  # without a display
        result = go(space, 6, Deadly(3, marks, 2), optimizer=tiny.Counter, storage=journal)
    assert "6 done, 0 failed, 2 lost workers" in str(result)
    whole = minimize(tiny.loss, space, 6, optimizer=tiny.Counter(space), progress=False)
    assert [(t.config, t.loss) for t in result.history] == [(t.config, t.loss) for t in whole.history]
    assert sorted(t.lost for t in result.history)[-1] == 2


class ShutdownExecutorError(RuntimeError):
    """Error of this name is joblib's, of an executor whose owner ended its workers."""

    __module__ = "joblib"


@pytest.mark.parametrize(("error", "lost"), [(BrokenExecutor("died"), 1), (ShutdownExecutorError("ended"), 0)])
def test_a_worker_that_dies_after_the_deadline_is_lost_unless_the_run_ended_it(
    error: Exception, lost: int, space: mc.Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]

    class DiesLate(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            now[0], future = 1e9, Future[Any]()
            future.set_exception(error)
            return future

    monkeypatch.setattr("mipcash.study.policies.spent.time", SimpleNamespace(monotonic=lambda: now[0]))
    result = minimize(
        tiny.loss,
        space,
        mc.Budget(3, timeout=60),
        optimizer="random",
        execution=mc.Execution(executor=DiesLate()),
        progress=False,
    )
    assert [(t.lost, t.pending) for t in result.history] == [(lost, True)]
    assert result.stopped == "timeout"


def test_the_last_trials_of_a_budget_are_retried_too(space: mc.Space, tmp_path: Path) -> None:
    """Assert that a lost evaluation is repeated although the whole budget was already handed out."""

    class DeadlyAtTheEnd(tiny.Sampler):
        def propose(self, request: Request) -> Proposal:
            proposal = super().propose(request)
            layers = 3 if len(request.history) == 3 else 0
            return replace(proposal, config={**proposal.config, "layers": layers})

    result = go(space, 4, Deadly(3, tmp_path, 1), optimizer=DeadlyAtTheEnd, workers=4)
    assert (result.stopped, result.n_done, result.history[3].lost) == ("budget", 4, 1)


def test_a_lost_evaluation_is_repeated_as_often_as_retries_allows(space: mc.Space) -> None:
    result = go(space, 2, Deadly(3), seed=7, retries=0)
    assert [t.lost for t in result.history if t.failed] == [1] * result.n_failed
    assert result.n_failed > 0
    assert "its worker died once; at last: " in next(t.message for t in result.history if t.failed)
    for retries in (-1, 0.5, "two"):
        with pytest.raises(ValueError, match="retries must be a whole number, at least 0"):
            go(space, 2, tiny.loss, None, retries=retries)


def test_a_broken_pool_of_the_user_ends_the_run_without_losing_outcomes(space: mc.Space, journal: Path) -> None:
    said = r"takes no more evaluations .*BrokenProcessPool.*lambda.* outcomes are in .*run.db; run again"
    with pool() as lent, pytest.raises(ExecutorError, match=said):
        go(space, 8, Deadly(3), lent, storage=journal)
    rows = read_journal(journal)[1]
    assert rows[-1].status == "pending"
    assert attempts(rows[-1])[0] == (1, "lost")
    told = [row.loss for row in rows[:-1]]
    result = go(space, 8, tiny.loss, storage=journal)
    assert [t.loss for t in result.history[: len(told)]] == told
    assert result.n_done == 8


def test_invalid_and_broken_executors_are_reported(space: mc.Space) -> None:
    class Broken(ProcessPoolExecutor):
        def submit(self, *_: Any, **__: Any) -> Future[Any]:  # type: ignore[override]
            raise BrokenProcessPool("no worker started")

    with pytest.raises(ExecutorError, match=r"broken from the start.*storage= keeps them"):
        go(space, 3, tiny.loss, Broken)
    with pytest.raises(TypeError, match="executor must be an executor, or a callable that makes one"):
        go(space, 3, tiny.loss, 4)


class KilledWorker(Exception):
    """Exception like the one that Dask raises after it has retried on other workers."""

    __module__ = "distributed.scheduler"


@pytest.mark.parametrize("error", [KilledWorker("evaluate-0"), BrokenExecutor("gone"), CancelledError()])
def test_an_executor_that_survives_a_lost_worker_is_used_again(space: mc.Space, error: Exception) -> None:
    class Cluster:
        calls = 0

        def submit(self, call: Any, *given: Any) -> Future[Any]:
            future: Future[Any] = Future()
            self.calls += 1
            if self.calls == 2:
                future.set_exception(error)
            else:
                future.set_result(call(*given))
            return future

    cluster = Cluster()
    result = go(space, 3, tiny.loss, cluster)
    assert ([t.lost for t in result.history], result.n_done, cluster.calls) == ([0, 1, 0], 3, 4)


@pytest.mark.parametrize(
    ("how", "kills"), [("processes", 1), ("shared", 3)]
)  # three lost workers would make the trial fail
def test_a_run_that_is_killed_as_a_whole_costs_no_retry(journal: Path, how: str, kills: int) -> None:
    for _ in range(kills):
        finish(launch(journal, "--how", how, "--die", "evaluation", "4"), -signal.SIGKILL)
        row = read_journal(journal)[1][4]
        assert (row.status, len(row.running), row.lost) == ("pending", 1, 0)
    run_here(f"sqlite:///{journal}" if how == "shared" else journal, "Sampler")
    rows = read_journal(journal)[1]
    assert [r.status for r in rows] == ["done"] * 7
    assert attempts(rows[4]) == [*((k, "returned") for k in range(1, kills + 1)), (kills + 1, "present")]
    assert {e.message for e in rows[4].evaluations[:kills]} == {"its run was killed"}


def test_returned_attempts_cost_no_retry(space: mc.Space, journal: Path) -> None:
    def opened() -> mc.Study:
        return mc.Study(space, tiny.Sampler(space), storage=journal, retries=0)

    for _ in range(2):
        with opened() as study:
            trial = study.ask()
            assert (trial.number, trial.lost) == (0, 0)
    study = opened()
    study.ask()
    del study, trial  # garbage collection without close() also returns the attempt
    with opened() as study:
        trial = study.ask()
        assert (trial.lost, trial.attempt) == (0, 4)
        study.tell(trial, 1.0)
    assert {e.status for e in read_journal(journal)[1][0].evaluations} == {"returned", "present"}


def test_a_wait_much_longer_than_any_evaluation_is_noted(space: mc.Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "LEAST", 0.01)
    monkeypatch.setattr(loop, "UNUSUAL", 0.0)
    noted, calls = threading.Event(), list[Any]()

    class Noted(Notes):
        def note(self, text: str) -> None:
            super().note(text)
            noted.set()

    def objective(config: Any) -> float:
        calls.append(config)
        assert len(calls) < 3 or noted.wait(60.0)  # as if its worker was gone
        return 1.0

    shown = Noted()
    assert minimize(objective, space, 3, optimizer="random", execution=mc.Execution(2), progress=shown).n_done == 3
    assert any("no evaluation has ended for 0 seconds, and the longest so far took 0.0" in text for text in shown.notes)


def test_lose_records_a_lost_worker_until_no_retry_is_left(space: mc.Space) -> None:
    study = mc.Study(space, tiny.Sampler(space), retries=1)
    trial = study.ask()
    assert study.lose(trial, "node 7 went away").pending
    assert study.table.suspects
    again = study.ask()
    assert (again.number, again.config, again.lost, again.attempt) == (0, trial.config, 1, 2)
    failed = study.lose(again, "node 8 went away")
    assert (failed.status, failed.message) == ("failed", "its worker died 2 times; at last: node 8 went away")
    assert study.ask().number == 1

    study = mc.Study(space, "random", retries=0, limits={"ms": 5.0})
    failed = study.lose(study.ask(), "killed")
    assert [failed.outcome[name].status for name in ("loss", "ms")] == ["failed", "failed"]
    assert failed.outcome["ms"].message == failed.message
