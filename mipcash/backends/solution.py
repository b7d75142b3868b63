"""What a solver returns: the incumbent and its proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mipcash.modelling.domains import Configuration

OPTIMAL = "optimal"
"""The incumbent is proven optimal within the gap asked for."""
FEASIBLE = "feasible"
"""A limit stopped the solver: an incumbent and a bound, no proof."""
INFEASIBLE = "infeasible"
"""Proven: no legal configuration exists (under the cuts and fixings given)."""
UNKNOWN = "unknown"
"""A limit stopped the solver before it found an incumbent."""


ABSOLUTE_GAP = 1e-9
"""Difference between value and bound that counts as none."""
SOLVED = 1e-12
"""Absolute gap at which solvers may stop, in units of the largest cost."""


@dataclass(frozen=True)
class Solution:
    """The result of one exact question.

    Attributes:
        config: the incumbent, legal; None where there is none (``infeasible``, ``unknown``).
        value: objective of the incumbent, in the sense asked for; nan without an incumbent.
        bound: proven bound on the optimum: ``bound <= value`` when minimising, ``>=`` when maximising.
        gap: ``|value - bound| / max(|value|, |bound|)``, so between 0 and 2 also around 0; 0 with a complete proof (to within
            1e-9, which is as close as solvers look), inf without an incumbent.
        status: ``optimal``, ``feasible``, ``infeasible`` or ``unknown``.
        seconds: wall-clock time of the solve.
        solver: who proved it: the name of a solver, or ``enumeration`` for the project's own; the solver asked for where
            nothing is proven.
    """

    config: Configuration | None
    value: float
    bound: float
    gap: float
    status: str
    seconds: float
    solver: str

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a journal; the configuration is kept as it is."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Solution:
        return cls(**dict(fields))


def relative_gap(value: float, bound: float) -> float:
    """How far a bound is from a value, relative to the larger of them, as in :class:`Solution`."""
    apart = abs(value - bound)
    return apart / max(abs(value), abs(bound)) if apart > ABSOLUTE_GAP else 0.0
