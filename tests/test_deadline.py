"""Deadlines: what is left, what a solver is given of it, and no limit at all."""

from __future__ import annotations

import math

import pytest

from mipcash.backends.task import SolverSettings
from mipcash.deadline import NEVER, Deadline
from mipcash.errors import MipcashError
from tests.slow import FakeClock


def test_what_is_left_falls_to_nothing() -> None:
    clock = FakeClock()
    deadline = Deadline.after(3.0, clock)
    assert (deadline.left(), deadline.passed) == (3.0, False)
    clock.now += 2.0
    assert (deadline.left(), deadline.passed) == (1.0, False)
    clock.now += 1.0
    assert (deadline.left(), deadline.passed) == (0.0, True)
    clock.now += 1.0
    assert deadline.left() == 0.0


def test_without_a_limit_nothing_passes() -> None:
    for never in (NEVER, Deadline.after(None)):
        assert never.left() == math.inf
        assert not never.passed
        settings = SolverSettings(time_limit=7.0)
        assert never.within(settings) is settings


def test_a_solver_gets_at_most_what_is_left() -> None:
    clock = FakeClock()
    deadline = Deadline.after(3.0, clock)
    assert deadline.within(SolverSettings(time_limit=60.0, gap=0.5)) == SolverSettings(time_limit=3.0, gap=0.5)
    assert deadline.within(SolverSettings(time_limit=1.0)).time_limit == 1.0
    clock.now += 5.0
    assert deadline.within(SolverSettings()).time_limit == 0.0


def test_the_sooner_of_two() -> None:
    clock = FakeClock()
    deadline = Deadline.after(3.0, clock)
    assert deadline.sooner(1.0).left() == 1.0
    assert deadline.sooner(10.0) == deadline == deadline.sooner(math.inf)
    assert Deadline.after(None, clock).sooner(2.0).left() == 2.0


def test_the_later_of_two_and_a_share() -> None:
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
def test_seconds_are_a_number_from_0(seconds: float) -> None:
    with pytest.raises(MipcashError, match="number of seconds"):
        Deadline.after(seconds)
