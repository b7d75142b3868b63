"""Whether a search keeps its promises: what its proposals expected to gain, beside what they gained.

Notation
    e_k     expected improvement of proposal k on the incumbent of its time, in units of loss
    gain    how far the last WINDOW observations lowered the incumbent

A model that takes its hyperparameters for granted can promise improvements beside the incumbent again and again that never
come: on a plateau it holds variables for relevant that are not, and its acquisition stays there. Where the gain is less
than SHARE of what the latest proposals promised together, its word counts for little, and the search had better look
elsewhere from time to time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mipcash.optimizers.model_based import Data

WINDOW = 6
SHARE = 0.1
LEAST = 4
"""Proposals of the window whose promise is known, at least: those that were no promise, to explore, do not count."""


@dataclass(frozen=True)
class Promises:
    """The latest promises.

    Attributes:
        made: pairs (number of observations before the proposal, e_k), in their order.
    """

    made: tuple[tuple[int, float], ...] = ()

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Promises:
        """From an optimizer's state; none where there are none."""
        return cls(tuple((int(at), float(e)) for at, e in state.get("promised", ())))

    def state(self) -> dict[str, Any]:
        """What :meth:`of` reads; serialisable."""
        return {"promised": [list(pair) for pair in self.made]}

    def with_another(self, before: int, improvement: float) -> Promises:
        """With the promise of a proposal made after ``before`` observations; those out of every window are forgotten."""
        kept = tuple(pair for pair in self.made if pair[0] > before - 2 * WINDOW)
        return Promises((*kept, (before, improvement)))

    def broken(self, data: Data, before: int) -> bool:
        """Whether the latest ones came to less than SHARE of what they promised, seen after ``before`` observations."""
        latest = [e for at, e in self.made if at >= before - WINDOW]
        if len(latest) < LEAST or len(data.losses) <= WINDOW:
            return False
        return data.gained(WINDOW) < SHARE * sum(latest)
