"""Fake clock, solver that spends time on that clock, and counters of calls that replace measured seconds."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from mipcash.backends.enumeration.backend import EnumerationBackend
from mipcash.backends.highs import HighsBackend
from mipcash.backends.registry import make_backend
from mipcash.backends.task import UNKNOWN, Answer, Backend, SolverSettings, Task
from mipcash.deadline import Deadline


class FakeClock:
    """Clock that moves only when a test changes ``now``."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    @property
    def deadlines(self) -> Any:
        """Replacement for the class Deadline in a module under test; its deadlines use this clock."""
        return SimpleNamespace(after=lambda seconds: Deadline.after(seconds, self))


class SlowBackend:
    """Solver whose every call takes a fixed time on a fake clock. It returns UNKNOWN if the time limit is shorter."""

    name = "slow"

    def __init__(self, clock: FakeClock, seconds: float, backend: Backend | None = None) -> None:
        self.clock, self.seconds = clock, seconds
        self.backend = backend or make_backend("highs")
        self.limits: list[float] = []

    def solve(self, task: Task, settings: SolverSettings) -> Answer:
        self.limits.append(settings.time_limit)
        self.clock.now += min(self.seconds, settings.time_limit)
        if self.seconds > settings.time_limit:
            return Answer(UNKNOWN, None, math.nan, -math.inf, settings.time_limit)
        return self.backend.solve(task, SolverSettings(gap=settings.gap))


def counted(monkeypatch: pytest.MonkeyPatch, *methods: tuple[type, str]) -> list[str]:
    """Record the name of every call of the given methods, each a class and a method name, in the returned list."""
    calls: list[str] = []
    for owner, name in methods:
        own = getattr(owner, name)

        def noting(*given: Any, own: Any = own, name: str = name, **named: Any) -> Any:
            calls.append(name)
            return own(*given, **named)

        monkeypatch.setattr(owner, name, noting)
    return calls


SOLVES = ((HighsBackend, "solve"), (EnumerationBackend, "solve"))
"""Solve calls of the default solver, for :func:`counted`."""
