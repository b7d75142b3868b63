"""Policies on their own, and a loop with a user-defined policy."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest
import tiny

import mipcash as mc
from mipcash.errors import BudgetError
from mipcash.study.evaluating.evaluation import Evaluation
from mipcash.study.evaluating.pool import Inline
from mipcash.study.loop import Loop
from mipcash.study.policies.policy import BUDGET, TIMEOUT, Policy
from mipcash.study.policies.spent import Deadline, WithinBudget
from mipcash.study.policies.workers import Pace, Shown
from mipcash.study.progress import Progress
from mipcash.study.sources import Search
from mipcash.study.spending import Reserve, Spending
from mipcash.study.trial import Trial


def study_of(optimizer: type[tiny.Sampler] = tiny.Counter, **options: Any) -> mc.Study:
    space = tiny.tiny_space()
    return mc.Study(space, optimizer(space), **options)


def told(study: mc.Study, outcome: Any = 1.0) -> Trial:
    return study.tell(study.ask(), outcome)


def test_a_step_budget_waits_for_the_first_evaluation_and_refuses_too_many_steps() -> None:
    study = study_of()
    within = WithinBudget(study, Spending(4, by_steps=True), Reserve())
    first = study.ask()
    assert within.waits([first])
    assert not within.waits([])
    done = study.tell(first, mc.Folds([1.0] * 5))
    assert not within.waits([first])
    with pytest.raises(BudgetError, match="one evaluation took 5 steps"):
        within.evaluated(done, None)
    assert study.result.stopped == BUDGET


def test_a_deadline_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    never, soon = Deadline(None), Deadline(5.0)
    assert (never.refuses(()), never.left) == ("", None)
    assert (soon.refuses(()), soon.left) == ("", pytest.approx(5.0))
    monkeypatch.setattr(time, "monotonic", lambda: now + 6.0)
    assert soon.refuses(()) == TIMEOUT
    assert soon.left is not None
    assert soon.left > 0.0  # 0 would mean no time limit of a proposal


class AtMost(Policy):
    """User-defined policy that ends the run after a number of failures."""

    def __init__(self, failures: int) -> None:
        self.left = failures
        self.ended = ""

    def refuses(self, in_flight: Collection[Trial]) -> str:
        return "" if self.left > 0 else "failures"

    def evaluated(self, trial: Trial, evaluation: Evaluation | None) -> str:
        self.left -= trial.failed
        return ""

    def ends(self, reason: str) -> None:
        self.ended = reason


def test_a_loop_runs_with_a_user_defined_policy() -> None:
    study, policy, deadline = study_of(), AtMost(2), Deadline(None)

    def objective(config: Any) -> float:
        return math.nan if study.n_evaluated % 2 else 1.0

    within = WithinBudget(study, Spending(100), Reserve())
    search = Search(study, within, deadline, Pace())
    display = Progress()
    loop = Loop(study, Inline(objective), 1, search, [Shown(study, display), within, policy], display, lambda: None)
    assert loop.run() == policy.ended == "failures"
    assert [t.failed for t in study.trials] == [False, True, False, True]


def test_proposals_keep_pace_with_many_workers() -> None:
    """A quarter of the workers has a proposal waiting at most, and proposals are limited so that none waits for them."""

    def pace(workers: int, ask: float, evaluation: float) -> tuple[int, float | None]:
        found = Pace(workers)
        assert (found.ahead, found.limit) == (0, None)
        for _ in range(3):
            found.evaluated(SimpleNamespace(seconds={"ask": ask}, duration=evaluation), None)  # type: ignore[arg-type]
        return found.ahead, found.limit

    assert pace(100, 0.2, 10.0) == (25, 0.06)
    assert pace(100, 0.05, 10.0) == (12, 0.06)
    assert pace(100, 0.05, 3600.0) == (0, 21.6)
    assert pace(4, 0.1, 1.0) == (1, 0.15)
    assert pace(4, 0.1, 0.5) == (1, None)  # short evaluations do not shorten proposals
    assert pace(1, 0.1, 10.0) == (0, None)


def test_proposals_made_ahead_are_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pace, "ahead", 8)
    space, everyone = tiny.tiny_space(), threading.Barrier(4)

    def objective(config: Any) -> float:
        everyone.wait(30)  # four evaluations at a time, so that proposals are made ahead
        time.sleep(0.05)
        return 1.0

    result = mc.minimize(objective, space, 20, optimizer=tiny.Sampler(space), execution=4, progress=False)
    assert (result.n_done, len(result.history)) == (20, 20)
