"""Deadlines: one time limit shared by all parts of a proposal or a query.

A deadline is a point in time, not a number of seconds, so code that receives it need not account for time already spent. Code that
can be interrupted checks ``passed`` between its steps and gives solvers the settings returned by ``within``. A deadline knows
whether work that it limits was ended by it, or by a deadline made of it (``missed``).

A ``Clock`` measures the parts of a proposal, and notes which of them a deadline ended.
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
    """A settings dataclass with a time limit in seconds, such as ``mipcash.backends.task.SolverSettings``."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def time_limit(self) -> float:
        """Seconds of wall-clock time."""


Settings = TypeVar("Settings", bound=Limited)


@dataclass(frozen=True)
class Deadline:
    """A point in time by which work ends.

    Attributes:
        at: reading of the clock at that time, in seconds; inf for no deadline.
        clock: returns the seconds since some fixed time; tests pass their own.
        above: the deadline that this one was made of; None if that one is endless.
        missed: True if work ended because of this deadline or one made of it: its results depend on the speed of the machine.
    """

    at: float = math.inf
    clock: Callable[[], float] = field(default=time.perf_counter, repr=False, compare=False)
    above: Deadline | None = field(default=None, repr=False, compare=False)
    missed: bool = field(default=False, init=False, repr=False, compare=False)

    @classmethod
    def after(cls, seconds: float | None, clock: Callable[[], float] = time.perf_counter) -> Deadline:
        """Return the deadline ``seconds`` from now; None means no limit.

        Raises:
            MipcashError: ``seconds`` is negative, nan or not a number.
        """
        if seconds is not None and not (isinstance(seconds, Real) and seconds >= 0):
            raise MipcashError(
                f"a time limit is a number of seconds, at least 0, or None for no limit; got {seconds!r}"
            )
        return cls(math.inf if seconds is None else clock() + seconds, clock)

    @property
    def endless(self) -> bool:
        """True if there is no limit."""
        return math.isinf(self.at)

    def left(self) -> float:
        """Return the seconds left: at least 0, inf without a limit."""
        return math.inf if self.endless else max(0.0, self.at - self.clock())

    @property
    def passed(self) -> bool:
        """True if no time is left. Then the work ends, and this deadline and those above it are ``missed``."""
        over = self.left() <= 0.0
        if over:
            self.miss()
        return over

    def miss(self) -> None:
        """Note that work ended because of a time limit."""
        late: Deadline | None = self
        while late is not None:
            object.__setattr__(late, "missed", True)
            late = late.above

    def sooner(self, seconds: float) -> Deadline:
        """Return this deadline or the one ``seconds`` from now, whichever is earlier."""
        return self if math.isinf(seconds) else self._below(min(self.at, self.clock() + seconds))

    def later(self, seconds: float) -> Deadline:
        """Return this deadline or the one ``seconds`` from now, whichever is later."""
        return self._below(max(self.at, self.clock() + seconds))

    def share(self, part: float) -> Deadline:
        """Return a deadline after this fraction of the time left, for a part that is followed by other parts."""
        return self if self.endless else self._below(self.clock() + part * self.left())

    def _below(self, at: float) -> Deadline:
        return replace(self, at=at, above=None if self.endless else self)

    def within(self, settings: Settings) -> Settings:
        """Return the settings with a time limit of at most the time left."""
        if self.endless:
            return settings
        return replace(settings, time_limit=min(settings.time_limit, self.left()))


NEVER = Deadline()
"""No limit."""


CUT = "cut"
"""Key of a proposal's trace: the parts that a deadline ended. Their results depend on the speed of the machine."""


@dataclass
class Clock:
    """Seconds spent by part.

    Attributes:
        seconds: by part.
        cut: parts that a deadline ended.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    cut: list[str] = field(default_factory=list)

    def add(self, part: str, began: float, deadline: Deadline = NEVER) -> None:
        """Add the time since ``began``, a value of ``time.perf_counter``, and record the part if its deadline ended work."""
        self.seconds[part] = self.seconds.get(part, 0.0) + time.perf_counter() - began
        self.note(part, deadline)

    def note(self, part: str, deadline: Deadline) -> None:
        """Record the part if its deadline ended work."""
        if deadline.missed and part not in self.cut:
            self.cut.append(part)
