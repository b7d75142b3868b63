"""When work must end: one limit that every part of a proposal, or of a question, keeps together.

A deadline is a moment, not a number of seconds: whoever is handed it needs no account of what was spent before. Parts that may be
cut ask ``passed`` between their steps and hand solvers settings ``within`` what is left.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, ClassVar, Protocol, TypeVar

from mipcash.errors import MipcashError


class Limited(Protocol):
    """Settings, a dataclass, with a time limit in seconds; :class:`mipcash.backends.task.SolverSettings`, for one."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def time_limit(self) -> float:
        """Seconds of wall-clock time."""


Settings = TypeVar("Settings", bound=Limited)


@dataclass(frozen=True)
class Deadline:
    """A moment by which work ends.

    Attributes:
        at: reading of the clock at that moment, in seconds; inf: never.
        clock: tells the seconds since some fixed moment; tests give their own.
    """

    at: float = math.inf
    clock: Callable[[], float] = field(default=time.perf_counter, repr=False, compare=False)

    @classmethod
    def after(cls, seconds: float | None, clock: Callable[[], float] = time.perf_counter) -> Deadline:
        """The moment that lies so many seconds from now; None: never.

        Raises:
            MipcashError: the seconds are negative or nan.
        """
        if seconds is not None and not (isinstance(seconds, Real) and seconds >= 0):
            raise MipcashError(
                f"a time limit is a number of seconds, at least 0, or None for no limit; got {seconds!r}"
            )
        return cls(math.inf if seconds is None else clock() + seconds, clock)

    @property
    def endless(self) -> bool:
        """Whether there is no limit."""
        return math.isinf(self.at)

    def left(self) -> float:
        """Seconds that are left: at least 0, inf without a limit."""
        return math.inf if self.endless else max(0.0, self.at - self.clock())

    @property
    def passed(self) -> bool:
        """Whether nothing is left."""
        return self.left() <= 0.0

    def sooner(self, seconds: float) -> Deadline:
        """This deadline, or the one so many seconds from now if that comes first."""
        return self if math.isinf(seconds) else replace(self, at=min(self.at, self.clock() + seconds))

    def later(self, seconds: float) -> Deadline:
        """This deadline, or the one so many seconds from now if that comes last."""
        return replace(self, at=max(self.at, self.clock() + seconds))

    def share(self, part: float) -> Deadline:
        """The moment when this share of what is left now will be over, for a part that others follow."""
        return self if self.endless else replace(self, at=self.clock() + part * self.left())

    def within(self, settings: Settings) -> Settings:
        """The settings, with a time limit of at most what is left."""
        if self.endless:
            return settings
        return replace(settings, time_limit=min(settings.time_limit, self.left()))


NEVER = Deadline()
"""No limit."""
