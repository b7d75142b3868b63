"""A clock that tests move, a solver that takes its time by it, and counts of calls in the place of seconds."""

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
    """Moves when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    @property
    def deadlines(self) -> Any:
        """Stands for the class Deadline where a module makes them: they go by this clock."""
        return SimpleNamespace(after=lambda seconds: Deadline.after(seconds, self))


class SlowBackend:
    """A solver each of whose answers takes so many seconds of a clock; where its limit is less, it knows nothing by then."""

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
    """Let each call of these methods, of a class and by name, be noted by its name in the list that is returned."""
    calls: list[str] = []
    for owner, name in methods:
        own = getattr(owner, name)

        def noting(*given: Any, own: Any = own, name: str = name, **named: Any) -> Any:
            calls.append(name)
            return own(*given, **named)

        monkeypatch.setattr(owner, name, noting)
    return calls


SOLVES = ((HighsBackend, "solve"), (EnumerationBackend, "solve"))
"""What the default solver asks; for :func:`counted`."""
