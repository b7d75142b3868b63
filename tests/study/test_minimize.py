"""Loop of ``minimize``, and the time limit of a proposal."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny

import mipcash as mc
from mipcash.errors import UndecidedError
from mipcash.optimizers.optimizer import Proposal, Request
from mipcash.optimizers.random import RandomSearch
from mipcash.study.minimize import minimize
from mipcash.study.minimize import run as run_study
from mipcash.study.policies.policy import EXHAUSTED, UNDECIDED
from mipcash.study.storage.sqlite import read_journal


def run(space: mc.Space, objective: Any, budget: Any = 6, **arguments: Any) -> mc.Result:
    optimizer = arguments.pop("optimizer", tiny.Sampler)(space)
    return minimize(objective, space, budget, optimizer=optimizer, **{"progress": False, **arguments})


def test_the_result_holds_the_best_trial_the_history_and_the_convergence(space: mc.Space) -> None:
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


def test_the_objective_may_change_its_copy_of_the_configuration(space: mc.Space) -> None:
    def greedy(config: dict[str, Any]) -> float:
        value = tiny.loss(config)
        config.clear()
        return value

    assert [t.config for t in run(space, greedy).history] == [t.config for t in run(space, tiny.loss).history]


def test_a_callback_that_returns_true_ends_the_run(space: mc.Space, journal: Path) -> None:
    result = run(space, tiny.loss, 9, storage=journal, callbacks=[lambda study, trial: trial.number == 2])
    assert (len(result.history), result.stopped) == (3, "callback")
    assert read_journal(journal)[0].stopped == "callback"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_timeout_ends_a_run_after_the_started_evaluations(space: mc.Space, workers: int) -> None:
    starts: list[int] = []

    def slow(config: dict[str, Any]) -> float:
        starts.append(1)
        time.sleep(0.1)
        return 1.0

    result = run(space, slow, mc.Budget(1000, timeout=0.25), execution=mc.Execution(workers=workers))
    assert result.stopped == "timeout"
    assert result.n_done == len(starts) < 1000


class Cancelled(BaseException):
    __module__ = "trio._core"


@pytest.mark.parametrize(
    ("order", "workers"),
    [(KeyboardInterrupt, 1), (KeyboardInterrupt, 2), (SystemExit, 1), (GeneratorExit, 1), (Cancelled, 2)],
)
def test_an_interrupt_is_raised_and_the_run_can_be_resumed(
    space: mc.Space, journal: Path, order: type[BaseException], workers: int
) -> None:
    def stopped(config: dict[str, Any]) -> float:
        if len(calls) == 3:
            raise order
        calls.append(1)
        return tiny.loss(config)

    calls: list[int] = []
    with pytest.raises(order):
        run(space, stopped, storage=journal, execution=mc.Execution(workers=workers))
    statuses = [row.status for row in read_journal(journal)[1]]
    assert "pending" in statuses
    assert "failed" not in statuses
    result = run(space, tiny.loss, storage=journal)
    assert [t.status for t in result.history] == ["done"] * 6
    if workers == 1:
        assert [t.config for t in result.history] == [t.config for t in run(space, tiny.loss).history]


def test_an_interrupted_loop_leaves_no_pending_trial_in_an_open_study(space: mc.Space) -> None:
    def breaking(study: mc.Study, trial: mc.Trial) -> None:
        raise RuntimeError("disk full")

    study, execution = mc.Study(space, tiny.Sampler(space)), mc.Execution(workers=2)
    with pytest.raises(RuntimeError, match="disk full"):
        run_study(study, tiny.loss, 6, callbacks=[breaking], execution=execution, progress=False)
    again = run_study(study, tiny.loss, 6, execution=execution, progress=False)
    assert [t.status for t in again.history] == ["done"] * 6


def test_an_error_of_the_executor_is_a_failed_evaluation(space: mc.Space) -> None:
    class Breaking(ThreadPoolExecutor):
        def submit(self, *_: Any, **__: Any) -> Any:
            return super().submit(lambda: 1 / 0)

    with Breaking(1) as pool:
        result = run(space, tiny.loss, 1, execution=mc.Execution(executor=pool))
    assert result.n_failed == 1
    assert "the executor failed: ZeroDivisionError" in result.history[0].message


# -- time limit of a proposal -----------------------------------------------------------------------------------------


class Slow(tiny.Sampler):
    """Optimizer that takes ``takes`` seconds per proposal, but no longer than its time limit."""

    def __init__(self, space: mc.Space, takes: float = math.inf) -> None:
        super().__init__(space)
        self.takes = takes
        self.given: list[float | None] = []

    def propose(self, request: Request) -> Proposal:
        self.given.append(request.seconds)
        time.sleep(min(self.takes, math.inf if request.seconds is None else request.seconds))
        return super().propose(request)


def go(optimizer: Slow, budget: Any = 1, **given: Any) -> mc.Result:
    seconds = {name: given.pop(name) for name in ("seconds_per_proposal",) if name in given}
    return minimize(
        tiny.loss, optimizer.space, budget, optimizer=mc.Method(optimizer, **seconds), progress=False, **given
    )


@pytest.mark.parametrize(("given", "expected"), [(0.02, 0.02), (math.inf, None)])
def test_a_proposal_gets_the_time_limit_of_the_run(
    space: mc.Space, given: float | None, expected: float | None
) -> None:
    optimizer = Slow(space, 0.01)
    go(optimizer, 3, seconds_per_proposal=given)
    assert optimizer.given == [expected] * 3


def test_the_default_time_limit_is_five_seconds_and_ask_may_only_shorten_it(space: mc.Space) -> None:
    optimizer = Slow(space, 0.0)
    go(optimizer)
    mc.Study(space, optimizer).ask()
    study = mc.Study(space, mc.Method(optimizer, seconds_per_proposal=2))
    study.ask(seconds=1.5)
    study.ask(2, seconds=3)
    mc.Study(space, mc.Method(optimizer, seconds_per_proposal=None)).ask(seconds=7)
    assert optimizer.given == [5.0, 5.0, 1.5, 2.0, 2.0, 7.0]


@pytest.mark.parametrize("workers", [1, 2])
def test_the_timeout_ends_an_ask_too(space: mc.Space, workers: int) -> None:
    """Assert that the timeout limits a slow optimizer although its own time limit is much longer."""
    optimizer = Slow(space)
    result = go(optimizer, mc.Budget(99, timeout=0.2), seconds_per_proposal=60, execution=mc.Execution(workers=workers))
    assert (result.stopped, result.n_done) == ("timeout", 0)
    assert optimizer.given[0] is not None
    assert optimizer.given[0] <= 0.2


def test_a_resumed_run_may_have_another_time_limit(space: mc.Space, journal: Path) -> None:
    for budget, limit in ((2, 0.5), (4, None), (6, 0.25)):
        optimizer = Slow(space, 0.0)
        result = go(optimizer, budget, seconds_per_proposal=limit, storage=journal)
        assert optimizer.given == [limit] * 2
    assert [t.config for t in result.history] == [t.config for t in go(Slow(space, 0.0), 6).history]


def test_invalid_time_limits_are_refused(space: mc.Space, journal: Path) -> None:
    for seconds in (0, -1.0, math.nan, "5", True):
        with pytest.raises(ValueError, match="seconds_per_proposal must be a positive number of seconds, or None"):
            minimize(tiny.loss, space, 2, storage=journal, optimizer=mc.Method(seconds_per_proposal=seconds))  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="seconds must be a positive number"):
            mc.Study(space, tiny.Sampler(space)).ask(seconds=seconds)  # type: ignore[arg-type]
    assert not journal.exists()


def test_a_budget_of_time_alone_counts_no_evaluations(space: mc.Space, capsys: pytest.CaptureFixture[str]) -> None:
    def until(study: mc.Study, trial: mc.Trial) -> bool:
        return trial.number == 4

    found = mc.minimize(tiny.loss, space, mc.Budget(timeout=3600), optimizer="random", callbacks=until)
    assert (found.n_done, found.stopped) == (5, "callback")
    printed = capsys.readouterr().err
    assert "[5] #4 loss" in printed
    assert "left" in printed
    assert "inf" not in printed.replace("infeasible", "")
    small = mc.Space("small")
    small.categorical("a", ["x", "y", "z"])
    assert mc.minimize(lambda c: float(ord(c["a"])), small, mc.Budget(timeout=3600), progress=False).n_done == 3
    with pytest.raises(ValueError, match="budget must be a whole number of evaluations, at least 1, got None"):
        mc.Budget()
    for confirm in (2, "replicate"):
        with pytest.raises(ValueError, match="give an amount too"):
            mc.minimize(tiny.loss, space, mc.Budget(timeout=3600), confirm=confirm, progress=False)  # type: ignore[arg-type]


def test_an_exhausted_space_without_a_feasible_configuration_has_no_best() -> None:
    space = mc.Space("small")
    space.integer("x", 1, 3)
    result = mc.minimize(
        lambda c: {"loss": c["x"], "ms": 1.0}, space, 9, limits={"ms": 0.5}, optimizer="random", progress=False
    )
    assert (result.config, result.stopped) == (None, EXHAUSTED)


def test_a_search_that_cannot_decide_ends_with_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second configuration is neither found nor excluded in the time of a proposal."""
    space = mc.Space("hard")
    space.integer("x", 1, 9)
    ask = RandomSearch.propose

    def propose(self: RandomSearch, request: Request) -> Proposal:
        if request.history:
            raise UndecidedError("no time")
        return ask(self, request)

    monkeypatch.setattr(RandomSearch, "propose", propose)
    result = mc.minimize(lambda c: c["x"], space, 5, optimizer="random", progress=False)
    assert (len(result.history), result.stopped) == (1, UNDECIDED)
