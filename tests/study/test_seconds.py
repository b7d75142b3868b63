"""The seconds that a proposal gets: of the study, of the run's deadline, of the call."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import pytest
import tiny

import mipcash as mc
from mipcash.optimizers.optimizer import Proposal, Request
from mipcash.study.minimize import minimize


class Slow(tiny.Sampler):
    """Takes all the seconds that it gets, or as many as it likes where that is less."""

    def __init__(self, space: mc.Space, takes: float = math.inf) -> None:
        super().__init__(space)
        self.takes = takes
        self.given: list[float | None] = []

    def propose(self, request: Request) -> Proposal:
        self.given.append(request.seconds)
        time.sleep(min(self.takes, math.inf if request.seconds is None else request.seconds))
        return super().propose(request)


@pytest.mark.parametrize(("given", "expected"), [(0.02, 0.02), (None, None), (math.inf, None)])
def test_a_proposal_gets_the_seconds_of_the_run(space: mc.Space, given: float | None, expected: float | None) -> None:
    optimizer = Slow(space, 0.01)
    minimize(tiny.loss, space, 3, optimizer=mc.Method(optimizer, seconds_per_proposal=given), progress=False)
    assert optimizer.given == [expected] * 3


def test_a_few_seconds_are_the_default(space: mc.Space) -> None:
    optimizer = Slow(space, 0.0)
    minimize(tiny.loss, space, 1, optimizer=optimizer, progress=False)
    mc.Study(space, optimizer).ask()
    assert optimizer.given == [5.0, 5.0]


def test_a_call_may_ask_for_less_and_not_for_more(space: mc.Space) -> None:
    optimizer = Slow(space, 0.0)
    study = mc.Study(space, mc.Method(optimizer, seconds_per_proposal=2))
    study.ask(seconds=1.5)
    study.ask(2, seconds=3)
    mc.Study(space, mc.Method(optimizer, seconds_per_proposal=None)).ask(seconds=7)
    assert optimizer.given == [1.5, 2.0, 2.0, 7.0]


@pytest.mark.parametrize("workers", [1, 2])
def test_the_timeout_ends_an_ask_too(space: mc.Space, workers: int) -> None:
    """An optimizer that takes all it gets, and a limit far beyond the timeout."""
    optimizer = Slow(space)
    began = time.monotonic()
    result = minimize(
        tiny.loss,
        space,
        mc.Budget(99, timeout=0.3),
        optimizer=mc.Method(optimizer, seconds_per_proposal=60),
        execution=mc.Execution(workers=workers),
        progress=False,
    )
    assert (result.stopped, result.n_done) == ("timeout", 0)
    assert 0.25 < time.monotonic() - began < 2.0
    assert optimizer.given[0] is not None
    assert optimizer.given[0] <= 0.3


def test_the_limit_of_a_resumed_run_may_be_another(space: mc.Space, journal: Path) -> None:
    for budget, limit in ((2, 0.5), (4, None), (6, 0.25)):
        optimizer = Slow(space, 0.0)
        result = minimize(
            tiny.loss,
            space,
            budget,
            optimizer=mc.Method(optimizer, seconds_per_proposal=limit),
            storage=journal,
            progress=False,
        )
        assert optimizer.given == [limit] * 2
    whole = minimize(tiny.loss, space, 6, optimizer=tiny.Sampler(space), progress=False)
    assert [t.config for t in result.history] == [t.config for t in whole.history]


@pytest.mark.parametrize("seconds", [0, -1.0, math.nan, "5", True])
def test_what_is_no_limit_is_refused(space: mc.Space, journal: Path, seconds: Any) -> None:
    with pytest.raises(ValueError, match="seconds_per_proposal must be a positive number of seconds, or None"):
        minimize(tiny.loss, space, 2, storage=journal, optimizer=mc.Method(seconds_per_proposal=seconds))
    with pytest.raises(ValueError, match="seconds must be a positive number"):
        mc.Study(space, tiny.Sampler(space)).ask(seconds=seconds)
    assert not journal.exists()
