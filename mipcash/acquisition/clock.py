"""Where the seconds of a proposal go, and which of its parts were cut short."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from mipcash.deadline import NEVER, Deadline

CUT = "cut"
"""Of a proposal's trace: the parts that its time ended. What they would have found depends on the machine."""


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
        """Count the time since ``began``, as ``time.perf_counter`` tells it, and note whether its deadline has passed."""
        self.seconds[part] = self.seconds.get(part, 0.0) + time.perf_counter() - began
        self.note(part, deadline)

    def note(self, part: str, deadline: Deadline) -> None:
        """Note whether the deadline of a part has passed."""
        if deadline.passed and part not in self.cut:
            self.cut.append(part)
