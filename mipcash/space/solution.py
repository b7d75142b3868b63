"""Result of an optimisation by a solver: a configuration and its proof."""

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
    """The result of an optimisation by a solver: the best configuration found, with its proof.

    Args:
        config: the legal incumbent; None if there is none (``infeasible``, ``unknown``).
        value: objective of the incumbent, in the direction asked for; nan without an incumbent.
        bound: proven bound on the optimum: ``bound <= value`` when minimising, ``>=`` when maximising.
        gap: ``|value - bound| / max(|value|, |bound|)``, so between 0 and 2 also around 0; 0 with a complete proof (to within
            1e-9 of the objective's largest coefficient, if that is below 1), inf without an incumbent or a bound.
        status: ``optimal``, ``feasible``, ``infeasible`` or ``unknown``.
        seconds: wall-clock time of the solve.
        solver: name of the solver that proved the bound, or ``enumeration`` for mipcash's own. Without a proof, the solver that was
            used, or ``local search`` if none was.
        of: what the value measures; empty if it is the value of the user's expression.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.integer("b", 0, 9)
        >>> rule = space.rule("sum", a + b <= 10)
        >>> solution = space.optimum(3 * a + 2 * b, "maximize")
        >>> solution.config, solution.value, solution.status
        ({'a': 9, 'b': 1}, 29.0, 'optimal')
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
        """Return plain values for a journal; the configuration is kept as it is.

        Returns:
            Field -> value.
        """
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Solution:
        return cls(**dict(fields))


LOCAL_SEARCH = "local search"
"""Solver name of a proposal that was made without a solver."""


def as_solution(
    config: Configuration | None, answer: Answer, factor: float, began: float, solver: str, of: str = ""
) -> Solution:
    """Return the public solution for the answer of a minimisation.

    Args:
        factor: by which to multiply its value and bound, negative if the user maximises.
        solver: the solver that was used; it is named if there is no proof.
        of: what the value measures; empty if it is the value of the user's expression.
    """
    from mipcash.backends.task import relative_gap  # imports scipy, which worker processes do without

    seconds, by = time.perf_counter() - began, answer.prover or solver
    if config is None:
        return Solution(None, math.nan, factor * answer.bound, math.inf, answer.status, seconds, by, of)
    value, bound = factor * answer.value, factor * answer.bound
    return Solution(config, value, bound, relative_gap(answer.value, answer.bound), answer.status, seconds, by, of)
