"""Clock of a proposal: the seconds of its parts, and the parts that were cut short."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from mipcash.deadline import NEVER, Deadline

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
