"""Policies on their own, and a loop with a user-defined policy."""

from __future__ import annotations

import math
import time
from collections.abc import Collection
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
