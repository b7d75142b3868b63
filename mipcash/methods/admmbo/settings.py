"""Settings of ADMMBO; defaults are those of ariafar2019, Section 5.1, except where a different value of the paper is given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mipcash.acquisition.mixed_search import LocalSearchSettings
from mipcash.errors import SpaceError, check_settings

UNIT, NATURAL = "unit", "natural"
"""Coordinates of numerical parameters: from 0 to 1, or as declared (a numerical parameter on a log scale: its logarithm)."""


@dataclass(frozen=True)
class AdmmboSettings:
    """Settings of the optimizer ``admmbo``.

    Args:
        n_initial: size of the initial design; the paper has 2, in a box.
        rho: penalty of the first iteration.
        penalty: M, the cost of a violated constraint; more than the range of the loss (Proposition 1).
        first: steps of every subproblem in the first iteration, alpha^1 = beta^1. If an evaluation returns all outputs, it is
            a step of every subproblem, and this is the number of steps of all subproblems together.
        later: the number of steps in every further iteration.
        iterations: K, after which the optimizer asks to stop.
        tolerance: epsilon, norm of both residuals at which it asks to stop.
        improvement: expected improvement of the optimality subproblem, in units of the loss, above which small residuals do not
            end the run; None: they always do, as in the paper.
        delta: largest probability with which the recommendation may violate each constraint.
        balance: mu of eq. 15, the ratio of the residuals from which on rho changes; None: it stays.
        factor: tau of eq. 15.
        unit: scale of the loss, for rho and M; None: the range of the losses at the first step, so that neither depends on the
            unit of the loss. The paper has 1.
        coordinates: of numerical parameters, ``unit``, or ``natural`` as in the paper.
        equality: tolerance of an equality constraint, in units of the range of the output's values.
        local_search: limits of the search.
        refit, restart_every: as in [`mipcash.optimizers.hybrid.HybridSettings`][mipcash.optimizers.hybrid.HybridSettings].

    Raises:
        SpaceError: a setting is out of range.

    Examples:
        >>> from mipcash.methods.admmbo import AdmmboSettings
        >>> AdmmboSettings(penalty=20.0).n_initial, AdmmboSettings.paper().n_initial
        (6, 2)
    """

    n_initial: int = 6
    rho: float = 0.1
    penalty: float = 50.0
    first: int = 20
    later: int = 2
    iterations: int = 40
    tolerance: float = 0.01
    improvement: float | None = 1e-3
    delta: float = 0.05
    balance: float | None = 10.0
    factor: float = 2.0
    unit: float | None = None
    coordinates: str = UNIT
    equality: float = 0.01
    local_search: LocalSearchSettings = field(
        default_factory=lambda: LocalSearchSettings(walks=160, survivors=4, moved=2, finalists=1, rounds=3)
    )
    refit: int = 12
    restart_every: int = 6

    def __post_init__(self) -> None:
        check_settings(self, above_0=("rho", "penalty", "unit"), inside_0_1=("delta",), balance=1, improvement=0)
        check_settings(
            self, n_initial=1, first=1, later=1, iterations=1, tolerance=0, equality=0, refit=1, restart_every=1
        )
        check_settings(self, choices={"coordinates": (UNIT, NATURAL)})
        if not self.factor > 1.0:
            raise SpaceError(f"AdmmboSettings: factor must be above 1, got {self.factor}")

    @classmethod
    def paper(cls, **changes: Any) -> AdmmboSettings:
        """Return the paper's settings: two initial points, unscaled losses and coordinates, an end by the residuals alone.

        Args:
            changes: settings that differ from the paper's.

        Returns:
            The settings.
        """
        own: dict[str, Any] = {"n_initial": 2, "unit": 1.0, "coordinates": NATURAL, "improvement": None}
        return cls(**(own | changes))
