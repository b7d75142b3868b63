"""The state of ADMMBO between two asks, and its updates: Algorithm 3.1 without the evaluations.

Notation
    k           iteration, from 1;   rho_k its penalty.
    x (P,)      answer of the optimality subproblem; empty before the first.
    z (N, P)    answers of the feasibility subproblems;   y (N, P) multipliers, one row per one-sided constraint.
    j           subproblem: 0 is OPT, i the feasibility subproblem of constraint i (1..N).
    r = x - z,  s = -rho (z - z of the iteration before)       primal and dual residual, over all constraints together
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mipcash.methods.admmbo.settings import AdmmboSettings
from mipcash.program.forms import Vector

OPT = 0
LARGEST = 1e8
"""Largest factor between rho and its first value: a residual of exactly 0 would let it grow without bound."""


@dataclass(frozen=True)
class Asked:
    """A proposal that may still be pending.

    Attributes:
        number: of its trial.
        iteration, subproblem: that it was made for.
    """

    number: int
    iteration: int
    subproblem: int


@dataclass(frozen=True, eq=False)
class AdmmState:
    """All of ADMMBO's variables (see the module's notation).

    Attributes:
        unit: scale of the loss; 0 until it is known.
        rho: rho_k.
        x, z, y: the variables and multipliers.
        iteration: k.
        feasibility: whether the feasibility subproblems are current, and not the optimality subproblem.
        made: proposals for each subproblem in this iteration, N + 1 of them.
        primal, dual: norms of the latest residuals; inf before the first.
        converged: whether both were within the tolerance, at answers observed to be feasible.
        asked: proposals that were pending at the latest ask, and the latest.
    """

    unit: float
    rho: float
    x: Vector
    z: Vector
    y: Vector
    iteration: int = 1
    feasibility: bool = False
    made: tuple[int, ...] = ()
    primal: float = math.inf
    dual: float = math.inf
    converged: bool = False
    asked: tuple[Asked, ...] = ()

    @classmethod
    def started(cls, limits: int, size: int, rho: float) -> AdmmState:
        """Return the initial state: z^1 = min(B), at equal distance from all categories, and y^1 = 0 (Section 5.1).

        Args:
            limits: N.
            size: P.
        """
        zero = np.zeros((limits, size))
        return cls(0.0, rho, np.zeros(0), zero, zero, made=(0,) * (limits + 1))

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> AdmmState | None:
        """Restore the state from ``as_dict``; return None if there is none yet."""
        if "rho" not in state:
            return None
        shape = (len(state["z"]), -1) if state["z"] else (0, int(state["size"]))
        rest: dict[str, Any] = {name: math.inf if state[name] is None else state[name] for name in (*RESIDUALS, *PLAIN)}
        return cls(
            x=np.array(state["x"], dtype=float),
            z=np.array(state["z"], dtype=float).reshape(shape),
            y=np.array(state["y"], dtype=float).reshape(shape),
            made=tuple(state["made"]),
            asked=tuple(Asked(*a) for a in state["asked"]),
            **rest,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the state in JSON types."""
        vectors = {name: getattr(self, name).tolist() for name in ("x", "z", "y")}
        norms = {n: v if math.isfinite(v := getattr(self, n)) else None for n in RESIDUALS}
        asked = [[a.number, a.iteration, a.subproblem] for a in self.asked]
        plain = {name: getattr(self, name) for name in PLAIN}
        return {**vectors, **norms, **plain, "size": self.z.shape[1], "made": list(self.made), "asked": asked}

    # -- the next subproblem ------------------------------------------------------------------------------------

    @property
    def phase(self) -> range:
        """Current subproblems."""
        return range(1, len(self.made)) if self.feasibility else range(1)

    def pending(self, subproblem: int) -> int:
        """Return the number of pending proposals of this iteration for a subproblem."""
        return sum(a.iteration == self.iteration and a.subproblem == subproblem for a in self.asked)

    def solved(self, steps: int) -> bool:
        """Return True if the current subproblems have had their steps, and none of their proposals is pending.

        While proposals are pending, further ones are made beyond these steps; after twice the steps, pending ones are not waited
        for.
        """
        had = all(self.made[j] >= steps for j in self.phase)
        return had and (not any(map(self.pending, self.phase)) or all(self.made[j] >= 2 * steps for j in self.phase))

    def next(self, steps: int) -> int:
        """Return the subproblem of the next proposal: one that lacks steps, with the fewest pending and then the fewest proposals.

        With one evaluation at a time the subproblems alternate; with N workers those of one iteration run in parallel.
        """
        lacking = [j for j in self.phase if self.made[j] < steps] or self.phase
        return min(lacking, key=lambda j: (self.pending(j), self.made[j], j))

    def counted(self, subproblem: int, number: int) -> AdmmState:
        """Return the state after a proposal for a subproblem."""
        made = tuple(m + (j == subproblem) for j, m in enumerate(self.made))
        return replace(self, made=made, asked=(*self.asked, Asked(number, self.iteration, subproblem)))

    # -- updates ------------------------------------------------------------------------------------------------

    def optimised(self, x: Vector) -> AdmmState:
        """Return the state with the answer of OPT (Algorithm 3.1, line 5): the feasibility subproblems are next."""
        return replace(self, x=x, feasibility=True)

    def restored(self, z: Vector, kept: bool, settings: AdmmboSettings) -> AdmmState:
        """Return the state with the answers of all FEAS, (N, P): lines 8 to 14, and eq. 15.

        Args:
            kept: whether every answer was observed to be feasible; without that, x = z does not mean convergence.
        """
        apart = self.x - z
        primal, dual = float(np.linalg.norm(apart)), self.rho * float(np.linalg.norm(z - self.z))
        within = primal <= settings.tolerance and dual <= settings.tolerance
        return replace(
            self,
            rho=self._balanced(primal, dual, settings),
            z=z,
            y=self.y + self.rho * apart,  # eq. 9, line 8
            iteration=self.iteration + 1,
            feasibility=False,
            made=(0,) * len(self.made),
            primal=primal,
            dual=dual,
            converged=within and kept,
        )

    def _balanced(self, primal: float, dual: float, settings: AdmmboSettings) -> float:
        """Return rho by eq. 15."""
        rho, mu = self.rho, settings.balance
        if mu is None:
            return rho
        if primal > mu * dual:
            rho *= settings.factor
        elif dual > mu * primal:
            rho /= settings.factor
        return min(max(rho, settings.rho / LARGEST), settings.rho * LARGEST)


RESIDUALS = ("primal", "dual")
PLAIN = ("unit", "rho", "iteration", "feasibility", "converged")
