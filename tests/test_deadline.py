"""Deadlines: remaining time, time limits of solvers, and deadlines without a limit."""

from __future__ import annotations

import math
from typing import Any

import pytest

from mipcash.backends.task import Answer, SolverSettings
from mipcash.backends.timed import timed
from mipcash.deadline import NEVER, Deadline
from mipcash.errors import MipcashError
from tests.slow import FakeClock


def test_remaining_time_falls_to_zero() -> None:
    clock = FakeClock()
    deadline = Deadline.after(3.0, clock)
    assert (deadline.left(), deadline.passed) == (3.0, False)
    clock.now += 2.0
    assert (deadline.left(), deadline.passed) == (1.0, False)
    clock.now += 1.0
    assert (deadline.left(), deadline.passed) == (0.0, True)
    clock.now += 1.0
    assert deadline.left() == 0.0


def test_an_unlimited_deadline_never_passes() -> None:
    for never in (NEVER, Deadline.after(None)):
        assert never.left() == math.inf
        assert not never.passed
        settings = SolverSettings(time_limit=7.0)
        assert never.within(settings) is settings


def test_a_solver_gets_at_most_the_remaining_time() -> None:
    clock = FakeClock()
    deadline = Deadline.after(3.0, clock)
    assert deadline.within(SolverSettings(time_limit=60.0, gap=0.5)) == SolverSettings(time_limit=3.0, gap=0.5)
    assert deadline.within(SolverSettings(time_limit=1.0)).time_limit == 1.0
    clock.now += 5.0
    assert deadline.within(SolverSettings()).time_limit == 0.0


def test_sooner_returns_the_earlier_deadline() -> None:
    clock = FakeClock()
    deadline = Deadline.after(3.0, clock)
    assert deadline.sooner(1.0).left() == 1.0
    assert deadline.sooner(10.0) == deadline == deadline.sooner(math.inf)
    assert Deadline.after(None, clock).sooner(2.0).left() == 2.0


def test_later_and_share() -> None:
    clock = FakeClock()
    deadline = Deadline.after(4.0, clock)
    assert deadline.later(1.0) == deadline
    assert deadline.later(6.0).left() == 6.0
    assert deadline.share(0.25).left() == 1.0
    clock.now += 2.0
    assert deadline.share(0.25).left() == 0.5
    assert NEVER.share(0.1) == NEVER == NEVER.later(1.0)


def test_the_default_clock_runs() -> None:
    assert 0.0 < Deadline.after(60.0).left() <= 60.0
    assert Deadline.after(0.0).passed


@pytest.mark.parametrize("seconds", [-1.0, math.nan])
def test_negative_and_nan_seconds_are_refused(seconds: float) -> None:
    with pytest.raises(MipcashError, match="number of seconds"):
        Deadline.after(seconds)


def test_a_deadline_that_ended_work_is_missed_and_so_are_those_above_it() -> None:
    clock = FakeClock()
    whole = Deadline.after(10.0, clock)
    first, second = whole.share(0.5), whole.sooner(8.0)
    part = first.share(0.5)
    clock.now += 3.0
    assert not (part.missed)
    assert not (whole.missed)
    assert part.passed
    assert part.missed
    assert first.missed
    assert whole.missed
    assert not second.missed
    assert not first.passed


def test_an_unlimited_deadline_is_not_missed_if_a_shorter_one_is() -> None:
    for never in (NEVER, Deadline.after(None)):
        assert never.sooner(-1.0).passed
        assert not never.missed


@pytest.mark.parametrize(
    ("status", "seconds", "missed"), [("feasible", 1.0, True), ("feasible", 0.1, False), ("optimal", 1.0, False)]
)
def test_a_deadline_is_missed_if_a_solver_ended_by_its_time_limit(status: str, seconds: float, missed: bool) -> None:
    class Solver:
        name = "some"

        def solve(self, task: Any, settings: SolverSettings) -> Answer:
            return Answer(status, None, 1.0, 0.0, seconds)

    deadline = Deadline.after(60.0, FakeClock())
    timed(Solver(), deadline.share(0.5)).solve(None, SolverSettings(time_limit=1.0))  # type: ignore[arg-type]
    assert deadline.missed == missed
