"""The loop that runs by itself."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny

import mipcash as mc
from mipcash.study.minimize import minimize
from mipcash.study.policies.policy import BEST_OF_ALL
from mipcash.study.progress import Progress
from mipcash.study.storage.sqlite import read_journal


def run(space: mc.Space, objective: Any, budget: Any = 6, **arguments: Any) -> mc.Result:
    optimizer = arguments.pop("optimizer", tiny.Sampler)(space)
    return minimize(objective, space, budget, optimizer=optimizer, **{"progress": False, **arguments})


def test_the_result(space: mc.Space) -> None:
    result = run(space, lambda config: {"loss": tiny.loss(config), "layers": config["layers"]}, 12)
    losses = [tiny.loss(t.config) for t in result.history]
    best = int(np.argmin(losses))
    assert result.value == losses[best]
    assert result.config == result.history[best].config
    assert result.values == {"layers": result.history[best].config["layers"]}
    assert (result.n_done, result.n_failed, result.stopped) == (12, 0, "budget")
    curve = result.convergence()
    assert curve.loss.tolist() == losses
    assert curve.incumbent.tolist() == [min(losses[: k + 1]) for k in range(12)]
    row = result.to_rows()[best]
    assert row["loss"] == losses[best]
    assert row["config.lr"] == result.config["lr"]
    assert f"best value {result.value:.6g}" in str(result)


def test_the_objective_may_ruin_its_copy(space: mc.Space) -> None:
    def greedy(config: dict[str, Any]) -> float:
        value = tiny.loss(config)
        config.clear()
        return value

    assert [t.config for t in run(space, greedy).history] == [t.config for t in run(space, tiny.loss).history]


def test_what_an_objective_raises_is_recorded_and_the_run_goes_on(space: mc.Space, journal: Path) -> None:
    calls = iter(range(100))

    def moody(config: dict[str, Any]) -> Any:
        call = next(calls)
        if call == 0:
            raise ZeroDivisionError("no folds")
        if call == 1:
            raise mc.Failed("out of memory")
        return [math.nan, None, {"loss": 2.0, "ms": 3}, mc.Failed("diverged"), 5.0][call - 2]

    result = run(space, moody, 7, storage=journal)
    messages = [t.message for t in result.history]
    assert messages[0].startswith("ZeroDivisionError: no folds (")
    assert "test_minimize.py:" in messages[0]
    assert messages[1] == "out of memory"
    assert "nan" in messages[2]
    assert "None" in messages[3]
    assert messages[5] == "diverged"
    assert [t.status for t in result.history] == ["failed"] * 4 + ["done", "failed", "done"]
    assert result.value == 2.0
    assert result.values == {"ms": 3.0}
    assert np.isnan(result.convergence().incumbent[:4]).all()
    assert [row.outcome.message for row in read_journal(journal)[1]] == messages


def test_an_objective_that_always_fails_is_said_to(space: mc.Space) -> None:
    def broken(config: dict[str, Any]) -> float:
        raise mc.Failed("no data.csv")

    result = run(space, broken, 12)
    assert result.n_failed == 12
    assert result.config is None
    assert math.isnan(result.value)
    assert "each of the first 5 evaluations failed with the same message" in result.problem()
    assert "data.csv" in str(result)
    assert run(space, tiny.loss).problem() == ""
    assert "the only evaluation failed" in run(space, broken, 1).problem()


def test_the_budget_counts_what_the_journal_holds(space: mc.Space, journal: Path) -> None:
    seen: list[int] = []

    def count(study: mc.Study, trial: mc.Trial) -> None:
        seen.append(trial.number)

    run(space, tiny.loss, 4, storage=journal, callbacks=[count])
    run(space, tiny.loss, 4, storage=journal, callbacks=[count])
    result = run(space, tiny.loss, 9, storage=journal, callbacks=[count])
    assert seen == list(range(9))
    assert [t.config for t in result.history] == [t.config for t in run(space, tiny.loss, 9).history]


def test_a_callback_that_returns_true_ends_the_run(space: mc.Space, journal: Path) -> None:
    result = run(space, tiny.loss, 9, storage=journal, callbacks=[lambda study, trial: trial.number == 2])
    assert (len(result.history), result.stopped) == (3, "callback")
    assert read_journal(journal)[0].stopped == "callback"


def test_a_callback_that_raises_is_passed_on_and_the_run_resumes(space: mc.Space, journal: Path) -> None:
    def fragile(study: mc.Study, trial: mc.Trial) -> None:
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        run(space, tiny.loss, storage=journal, callbacks=[fragile])
    assert [t.status for t in run(space, tiny.loss, storage=journal).history] == ["done"] * 6


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exhausted_space_ends_the_run(space: mc.Space, workers: int) -> None:
    result = run(space, tiny.loss, 9, optimizer=tiny.Finite, execution=mc.Execution(workers=workers))
    assert (result.n_done, result.stopped) == (3, BEST_OF_ALL)


@pytest.mark.parametrize("workers", [1, 2])
def test_no_evaluation_starts_after_the_timeout(space: mc.Space, workers: int) -> None:
    starts: list[float] = []

    def slow(config: dict[str, Any]) -> float:
        starts.append(time.monotonic())
        time.sleep(0.1)
        return 1.0

    began = time.monotonic()
    result = run(space, slow, mc.Budget(1000, timeout=0.35), execution=mc.Execution(workers=workers))
    assert result.stopped == "timeout"
    assert max(starts) - began < 0.35 + 0.1  # a busy machine may pause between the check and the start
    assert result.n_done == len(starts)


def test_an_ask_that_outlasts_the_timeout_is_not_evaluated_but_kept(space: mc.Space, journal: Path) -> None:
    class Slow(tiny.Sampler):
        def ask(self, *arguments: Any) -> Any:
            time.sleep(0.2)
            return super().ask(*arguments)

    result = run(space, tiny.loss, optimizer=Slow, budget=mc.Budget(6, timeout=0.1), storage=journal)
    assert ([t.status for t in result.history], result.stopped) == (["pending"], "timeout")
    again = run(space, tiny.loss, 1, storage=journal)
    assert [(t.status, t.config) for t in again.history] == [("done", result.history[0].config)]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_is_passed_on_and_leaves_a_run_that_resumes(
    space: mc.Space, journal: Path, interrupt: type[BaseException], workers: int
) -> None:
    def stopped(config: dict[str, Any]) -> float:
        if calls and len(calls) == 3:
            raise interrupt
        calls.append(1)
        return tiny.loss(config)

    calls: list[int] = []
    with pytest.raises(interrupt):
        run(space, stopped, storage=journal, execution=mc.Execution(workers=workers))
    statuses = [row.status for row in read_journal(journal)[1]]
    assert "pending" in statuses
    assert "failed" not in statuses
    result = run(space, tiny.loss, storage=journal)
    assert [t.status for t in result.history] == ["done"] * 6
    if workers == 1:
        assert [t.config for t in result.history] == [t.config for t in run(space, tiny.loss).history]


def test_workers_evaluate_at_the_same_time(space: mc.Space, journal: Path) -> None:
    barrier = threading.Barrier(3, timeout=10)  # breaks unless three evaluations are in flight at once
    told: list[int] = []

    def meet(config: dict[str, Any]) -> float:
        barrier.wait()
        return tiny.loss(config)

    result = run(
        space,
        meet,
        9,
        execution=mc.Execution(workers=3),
        storage=journal,
        callbacks=[lambda s, t: told.append(t.number)],
    )
    assert [t.status for t in result.history] == ["done"] * 9
    assert [t.loss for t in result.history] == [tiny.loss(t.config) for t in result.history]
    assert sorted(told) == list(range(9))


def test_an_executor_of_the_caller_is_used_and_left_open(space: mc.Space) -> None:
    names: set[str] = set()

    def where(config: dict[str, Any]) -> float:
        names.add(threading.current_thread().name)
        return 1.0

    with ThreadPoolExecutor(2, thread_name_prefix="mine") as pool:
        assert run(space, where, 4, execution=mc.Execution(executor=pool, workers=2)).n_done == 4
        assert pool.submit(lambda: 1).result() == 1
    assert {n.split("_")[0] for n in names} == {"mine"}


def test_an_executor_that_breaks_counts_as_failed_evaluations(space: mc.Space) -> None:
    class Breaking(ThreadPoolExecutor):
        def submit(self, *_: Any, **__: Any) -> Any:
            return super().submit(lambda: 1 / 0)

    with Breaking(1) as pool:
        result = run(space, tiny.loss, 1, execution=mc.Execution(executor=pool))
    assert result.n_failed == 1
    assert "the executor failed: ZeroDivisionError" in result.history[0].message


def test_what_is_no_objective_and_no_space_is_refused(space: mc.Space, journal: Path) -> None:
    with pytest.raises(
        TypeError, match=r"takes the objective, the space and the budget in this order.*the space .tiny."
    ):
        minimize(space, tiny.loss, 3, storage=journal)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"space must be a mipcash\.Space, got .*'network'"):
        minimize(tiny.loss, "network", 3, storage=journal)  # type: ignore[arg-type]
    assert not journal.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": 0}, "budget"),
        ({"budget": 2.5}, "budget"),
        ({"execution": 0}, "workers"),
    ],
)
def test_a_plan_out_of_range_is_refused(space: mc.Space, journal: Path, arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(space, tiny.loss, storage=journal, **arguments)
    assert not journal.exists()
    for timeout in (-1, math.nan):
        with pytest.raises(ValueError, match="timeout"):
            mc.Budget(3, timeout=timeout)


def test_a_display_of_ones_own_is_told_everything(space: mc.Space) -> None:
    class Log(Progress):
        def __init__(self) -> None:
            super().__init__()
            self.events: list[str] = []

        def asking(self) -> None:
            self.events.append("ask")

        def evaluating(self, trial: mc.Trial) -> None:
            self.events.append(f"evaluate {trial.number}")

        def told(self, trial: mc.Trial) -> None:
            super().told(trial)
            self.events.append(f"told {trial.number} {trial.status}")

    log = Log()
    run(space, tiny.loss, 2, progress=log)
    assert log.events == ["ask", "evaluate 0", "told 0 done", "ask", "evaluate 1", "told 1 done"]
