"""Deadlines: remaining time, time limits of solvers, and deadlines without a limit."""

from __future__ import annotations

import math

import pytest

from mipcash.backends.task import SolverSettings
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
