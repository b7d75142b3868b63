"""Evaluations with a limit on their memory, in real worker processes."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import odd
import pytest
import tiny

import mipcash as mc
from mipcash.errors import ObjectiveError
from mipcash.study.evaluating.allowed import Allowed, held
from mipcash.study.failures import OUT_OF_MEMORY, kind_of_failure
from mipcash.study.minimize import minimize

LIMIT = 180
"""Megabytes; a process that has loaded an objective of nothing much holds some 50."""
SAID = "it took more memory than evaluation_memory=180 MB, and its process was killed"


def run(space: mc.Space, objective: Any, budget: int = 4, **arguments: Any) -> mc.Result:
    names = {field.name for field in fields(mc.Execution)}
    execution = {"evaluation_memory": LIMIT, **{n: arguments.pop(n) for n in names & arguments.keys()}}
    settings = {
        "optimizer": tiny.Counter(space),
        "progress": False,
        "execution": mc.Execution(**execution),
        **arguments,
    }
    return minimize(objective, space, budget, **settings)


@pytest.mark.parametrize("deed", [odd.grow, odd.grow_in_a_child])
def test_an_evaluation_that_takes_too_much_fails_and_the_run_goes_on(
    space: mc.Space, journal: Path, marks: Path, deed: odd.Odd
) -> None:
    """What it started counts."""
    result = run(space, odd.Once(marks, deed), storage=journal)
    assert [t.status for t in result.history] == ["done", "failed", "done", "done"]
    failed = result.history[1]
    assert (failed.message, failed.lost, failed.attempt) == (SAID, 0, 1)
    assert kind_of_failure(failed.message) == OUT_OF_MEMORY
    assert failed.duration is not None
    assert failed.duration < 20.0
    pids = [int((marks / str(k)).read_text()) for k in range(4)]
    assert pids[0] == pids[1] != pids[2] == pids[3]
    assert run(space, odd.layers, storage=journal, evaluation_memory=None).history[1].message == SAID  # journaled


def test_what_an_evaluation_leaves_behind_does_not_count_for_the_next(space: mc.Space) -> None:
    kept: list[Any] = []

    def leaks(config: dict[str, Any]) -> dict[str, float]:
        kept.append(odd.hold(110))
        return {"loss": 1.0, "pid": os.getpid()}

    result = run(space, leaks, 3)
    assert result.n_done == 3
    assert len({t.values["pid"] for t in result.history}) == 3


def test_both_limits_go_together(space: mc.Space, marks: Path) -> None:
    result = run(space, odd.Once(marks, odd.sleep), 2, evaluation_timeout=0.3)
    assert result.history[1].message.startswith("it took longer than evaluation_timeout=0.3 seconds")


def test_a_limit_below_what_loading_takes_is_refused(space: mc.Space) -> None:
    with pytest.raises(ObjectiveError, match=r"holds \d+ MB before it evaluates anything.*raise it"):
        run(space, odd.layers, evaluation_memory=5)


def test_no_limit_is_refused_that_is_one(space: mc.Space, journal: Path) -> None:
    for bad in (0, -1, "2 GB", True, float("nan")):
        with pytest.raises(ValueError, match="evaluation_memory must be a positive number of megabytes"):
            run(space, odd.layers, storage=journal, evaluation_memory=bad)
    with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match="evaluation_memory= runs evaluations in"):
        run(space, odd.layers, storage=journal, executor=executor)
    assert not journal.exists()
    assert Allowed.of(None, float("inf")) is None
    assert Allowed.of(3, None) == Allowed(3.0, None)


def test_memory_of_a_group_is_that_of_its_processes() -> None:
    group = os.getpgid(0)
    assert held(group, limit=float("inf")) > 10.0
    assert held(group) <= 1.05 * held(group, limit=float("inf"))  # shared pages are counted once
    assert held(2**22 + 1) == 0.0
