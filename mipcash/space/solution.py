"""The answer to one exact question: a configuration and its proof."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from mipcash.display import config_text, proof_text, table, value_text
from mipcash.modelling.domains import Configuration

if TYPE_CHECKING:
    from mipcash.backends.task import Answer


@dataclass(frozen=True, repr=False)
class Solution:
    """The result of one exact question.

    Attributes:
        config: the incumbent, legal; None where there is none (``infeasible``, ``unknown``).
        value: objective of the incumbent, in the direction asked for; nan without an incumbent.
        bound: proven bound on the optimum: ``bound <= value`` when minimising, ``>=`` when maximising.
        gap: ``|value - bound| / max(|value|, |bound|)``, so between 0 and 2 also around 0; 0 with a complete proof (to within
            1e-9, which is as close as solvers look), inf without an incumbent or a bound.
        status: ``optimal``, ``feasible``, ``infeasible`` or ``unknown``.
        seconds: wall-clock time of the solve.
        solver: who proved it: the name of a solver, or ``enumeration`` for the project's own; where nothing is proven, the solver
            that was asked, or ``local search`` where none was.
        of: what the value is, where it is not that of an expression that a user gave.
    """

    config: Configuration | None
    value: float
    bound: float
    gap: float
    status: str
    seconds: float
    solver: str
    of: str = ""

    def __repr__(self) -> str:
        return f"<solution: {self}>"

    def __str__(self) -> str:
        proof = proof_text(self.status, self.value, self.bound, self.solver, self.of)
        return proof if self.config is None else f"{proof}: {config_text(self.config)}"

    def _repr_html_(self) -> str:
        rows = [(name, value_text(value)) for name, value in (self.config or {}).items()]
        return table(proof_text(self.status, self.value, self.bound, self.solver, self.of), (), rows)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a journal; the configuration is kept as it is."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Solution:
        return cls(**dict(fields))


LOCAL_SEARCH = "local search"
"""The solver of a proposal that no solver was asked about."""


def as_solution(
    config: Configuration | None, answer: Answer, sign: float, began: float, solver: str, of: str = ""
) -> Solution:
    """A public solution from an answer of a minimisation; ``sign`` is -1 where the user maximises.

    Args:
        solver: who was asked, named where nobody proved anything.
        of: what the value is, where it is not that of an expression that a user gave.
    """
    from mipcash.backends.task import relative_gap  # brings scipy along, which worker processes do without

    seconds, by = time.perf_counter() - began, answer.prover or solver
    if config is None:
        return Solution(None, math.nan, sign * answer.bound, math.inf, answer.status, seconds, by, of)
    value, bound = sign * answer.value, sign * answer.bound
    return Solution(config, value, bound, relative_gap(value, bound), answer.status, seconds, by, of)
