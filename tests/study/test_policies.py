"""Policies alone, and a loop with a policy of somebody else."""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from typing import Any

import pytest
import tiny

import mipcash as mc
from mipcash.errors import BudgetError, DefectError
from mipcash.study.evaluating.evaluation import Evaluation
from mipcash.study.evaluating.pool import Inline
from mipcash.study.evaluating.raised import Raised
from mipcash.study.loop import Loop
from mipcash.study.policies.defects import EndAtDefect
from mipcash.study.policies.ended import Callbacks, OptimizerStops
from mipcash.study.policies.policy import BUDGET, CALLBACK, CONFIRMED, EXHAUSTED, TIMEOUT, Policy
from mipcash.study.policies.spent import Deadline, WithinBudget
from mipcash.study.policies.workers import Pace, Shown, Suspects, await_others
from mipcash.study.progress import Progress
from mipcash.study.sources import Repeats, Search
from mipcash.study.spending import Reserve, Spending
from mipcash.study.trial import Trial


def study_of(optimizer: type[tiny.Sampler] = tiny.Counter, **options: Any) -> mc.Study:
    space = tiny.tiny_space()
    return mc.Study(space, optimizer(space), **options)


def told(study: mc.Study, outcome: Any = 1.0) -> Trial:
    return study.tell(study.ask(), outcome)


# -- budget and deadline --------------------------------------------------------------------------------------------


def test_a_budget_counts_what_was_told_what_runs_and_what_is_reserved() -> None:
    study = study_of()
    within = WithinBudget(study, Spending(4), Reserve(1))
    assert within.refuses(()) == ""
    told(study)
    running = study.ask()
    assert within.refuses([running]) == ""  # one told, one in flight, one more, one reserved
    assert within.refuses([running, study.ask()]) == BUDGET
    assert within.pays_for(running, ())


def test_a_budget_of_fits_waits_for_the_first_evaluation_and_refuses_one_that_takes_too_many() -> None:
    study = study_of()
    within = WithinBudget(study, Spending(4, by_steps=True), Reserve())
    first = study.ask()
    assert within.waits([first])
    assert not within.waits([])
    done = study.tell(first, mc.Folds([1.0] * 5))
    assert not within.waits([first])
    with pytest.raises(BudgetError, match="one evaluation took 5 steps"):
        within.told(done, None)
    assert study.result.stopped == BUDGET


def test_a_budget_of_costs_pays_for_whole_evaluations_of_repeats() -> None:
    study = study_of(costs={"loss": 3.0, "ms": 1.0})
    spending = Spending(4.0, {"loss": 3.0, "ms": 1.0})
    assert WithinBudget(study, spending, Reserve(), whole=True).refuses(()) == ""
    study.tell(study.ask(), {"loss": 1.0, "ms": 1.0})
    assert WithinBudget(study, spending, Reserve(), whole=True).refuses(()) == BUDGET


def test_a_deadline_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    never, soon = Deadline(None), Deadline(5.0)
    assert (never.refuses(()), never.left) == ("", None)
    assert (soon.refuses(()), soon.left) == ("", pytest.approx(5.0))
    monkeypatch.setattr(time, "monotonic", lambda: now + 6.0)
    assert soon.refuses(()) == TIMEOUT
    assert soon.left is not None
    assert soon.left > 0.0  # 0 would be no limit on a proposal


# -- what ends a run ------------------------------------------------------------------------------------------------


def test_the_optimizer_and_callbacks_end_a_run() -> None:
    study = study_of()
    assert OptimizerStops(study).refuses(()) == ""
    called: list[int] = []
    policy = Callbacks(study, [lambda _, t: called.append(t.number), lambda _, t: t.number == 1])
    assert [policy.told(told(study), None) for _ in range(2)] == ["", CALLBACK]
    assert called == [0, 1]


def test_a_certain_defect_ends_a_run_at_once_and_takes_the_evaluation_back() -> None:
    study = study_of()
    policy = EndAtDefect(study)
    raised = Raised("NameError: x", certain=True)
    failed = told(study, mc.Failed("NameError: x"))
    policy.told(failed, Evaluation(mc.Failed("NameError: x"), 0.0, raised=raised))
    assert policy.waits(())
    with pytest.raises(DefectError, match="whatever the configuration: NameError: x"):
        policy.check(())
    assert study.trials[0].pending


def test_doubt_about_a_defect_waits_for_what_is_in_flight() -> None:
    study = study_of()
    policy = EndAtDefect(study)
    for _ in range(5):
        policy.told(told(study, mc.Failed("E: no")), Evaluation(mc.Failed("E: no"), 0.0, raised=Raised("E: no")))
    running = study.ask()
    policy.check([running])
    policy.told(study.tell(running, 1.0), Evaluation(1.0, 0.0))
    policy.check(())  # one succeeded: no defect
    assert not policy.waits(())


# -- workers --------------------------------------------------------------------------------------------------------


def test_a_trial_that_lost_its_worker_runs_alone() -> None:
    study = study_of()
    policy = Suspects(study)
    lost, other = study.ask(), study.ask()
    assert not policy.waits([lost, other])
    study.lose(lost, "it died")
    assert policy.waits([other])
    assert not policy.waits([])
    again = study.ask()
    assert again.lost == 1
    assert policy.waits([again])


def test_nothing_is_waited_for_where_no_other_writer_evaluates() -> None:
    assert await_others(study_of(), Deadline(None)) is None


# -- the loop -------------------------------------------------------------------------------------------------------


class AtMost(Policy):
    """A policy of somebody else: at most so many failures."""

    def __init__(self, failures: int) -> None:
        self.left = failures
        self.ended = ""

    def refuses(self, in_flight: Collection[Trial]) -> str:
        return "" if self.left > 0 else "failures"

    def told(self, trial: Trial, evaluation: Evaluation | None) -> str:
        self.left -= trial.failed
        return ""

    def ends(self, reason: str) -> None:
        self.ended = reason


def test_a_loop_runs_with_a_policy_of_somebody_else() -> None:
    study, policy, deadline = study_of(), AtMost(2), Deadline(None)

    def objective(config: Any) -> float:
        return math.nan if study.n_told % 2 else 1.0

    within = WithinBudget(study, Spending(100), Reserve())
    search = Search(study, within, deadline, Pace())
    display = Progress()
    loop = Loop(study, Inline(objective), 1, search, [Shown(study, display), within, policy], display, lambda: None)
    assert loop.run() == policy.ended == "failures"
    assert [t.failed for t in study.trials] == [False, True, False, True]


def test_repeats_are_a_source() -> None:
    study = study_of()
    first = told(study)
    study.repeat(first)
    repeats = Repeats(study)
    trial = repeats.next(())
    assert isinstance(trial, Trial)
    assert trial.repeat == 1
    assert repeats.next([trial]) == ""  # it may be lost
    study.tell(trial, 1.0)
    assert repeats.next(()) == CONFIRMED
    assert not repeats.ahead()


def test_a_search_ends_with_its_space() -> None:
    space = mc.Space("pair")
    space.categorical("c", ["a", "b"])
    study = mc.Study(space, "random")
    search = Search(study, WithinBudget(study, Spending(9), Reserve()), Deadline(None), Pace())
    for _ in range(2):
        trial = search.next(())
        assert isinstance(trial, Trial)
        study.tell(trial, 1.0)
    assert search.next(()) == EXHAUSTED
