"""Where the seconds of a proposal go."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass
class Clock:
    """Seconds spent by part."""

    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, part: str, began: float) -> None:
        """Count the time since ``began``, as ``time.perf_counter`` tells it."""
        self.seconds[part] = self.seconds.get(part, 0.0) + time.perf_counter() - began
