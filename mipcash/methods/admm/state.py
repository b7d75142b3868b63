"""The state of ADMM between two asks, and its updates: Algorithms 1 and 2 of liu2020 without the evaluations.

Notation
    t           iteration, from 0;   I its evaluations of each subproblem.
    z (Z,), theta (P,)      the choice, and theta~ of all algorithms, chosen or not.
    delta, lam (P,)         copies and multipliers of theta^d; 0 at continuous coordinates.
    u, mu (M,)              slacks and multipliers of the outcome constraints.
    b = delta - lam / rho,   a = theta~ + lam / rho          (0 / 0 = 0: with rho = 0 there are no multipliers).
    r = theta~ - delta,   s = -rho (delta - delta of the iteration before)        primal and dual residual
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mipcash.methods.admm.settings import AdmmSettings
from mipcash.program.forms import Indices, Vector

THETA, Z, ELSEWHERE = "theta", "z", ""
"""The subproblem that a trial was asked for; ``ELSEWHERE`` means none, if neither had anything new."""


@dataclass(frozen=True)
class Asked:
    """A trial of this phase, settled or not, or one of an earlier phase that is pending.

    Attributes:
        number: of the trial.
        iteration, phase: that it was made for.
        theta: theta~ of the active set that it was made from, for theta-min.
        credited: whether its reward is counted, for z-min.
    """

    number: int
    iteration: int
    phase: str
    theta: tuple[float, ...] = ()
    credited: bool = False

    def as_list(self) -> list[Any]:
        """Return the trial in JSON types."""
        return [self.number, self.iteration, self.phase, list(self.theta), self.credited]

    @classmethod
    def of(cls, values: list[Any]) -> Asked:
        number, iteration, phase, theta, credited = values
        return cls(int(number), int(iteration), str(phase), tuple(map(float, theta)), bool(credited))


@dataclass(frozen=True, eq=False)
class AdmmState:
    """All of ADMM's variables (see the module's notation).

    Attributes:
        z, theta, delta, lam, u, mu: the variables and multipliers.
        rho: as in the settings.
        unit, units: of the loss, and of the constrained outputs, shape (M,); 0: not known yet.
        counts, rewards: n_j and r_j of the bandit, shape (K,).
        iteration: t.
        phase: THETA or Z.
        made: evaluations asked for in this phase, without pulls of known value.
        asked: see ``Asked``.
        memory: of the current solver.
        primal, dual, outside: norms of the latest residuals of theta^d, and of h + u. They are inf before the first iteration;
            outside is also inf if z-min had no answer with a known h.
    """

    z: Indices
    theta: Vector
    delta: Vector
    lam: Vector
    u: Vector
    mu: Vector
    rho: float
    unit: float
    units: Vector
    counts: Vector
    rewards: Vector
    iteration: int = 0
    phase: str = THETA
    made: int = 0
    asked: tuple[Asked, ...] = ()
    memory: Mapping[str, Any] = field(default_factory=dict)
    primal: float = math.inf
    dual: float = math.inf
    outside: float = math.inf

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> AdmmState | None:
        """Restore the state from ``as_dict``; return None if there is none yet."""
        if "lam" not in state:
            return None
        vectors: dict[str, Any] = {name: np.array(state[name], dtype=float) for name in VECTORS}
        norms: dict[str, Any] = {n: math.inf if state[n] is None else float(state[n]) for n in RESIDUALS}
        plain: dict[str, Any] = {name: state[name] for name in PLAIN}
        asked = tuple(map(Asked.of, state["asked"]))
        return cls(z=np.array(state["z"], dtype=np.int64), asked=asked, **vectors, **norms, **plain)

    def as_dict(self) -> dict[str, Any]:
        """Return the state in JSON types."""
        found = {name: getattr(self, name).tolist() for name in ("z", *VECTORS)}
        norms = {n: v if math.isfinite(v := getattr(self, n)) else None for n in RESIDUALS}
        plain = {name: getattr(self, name) for name in PLAIN}
        return found | norms | plain | {"asked": [a.as_list() for a in self.asked]}

    # -- the subproblems' data ----------------------------------------------------------------------------------

    @property
    def shift(self) -> Vector:
        """The scaled multipliers lam / rho, 0 if rho is 0."""
        return self.lam / self.rho if self.rho > 0.0 else np.zeros(len(self.lam))

    @property
    def b(self) -> Vector:
        """Centre of theta-min's quadratic, of theta^d."""
        return self.delta - self.shift

    @property
    def a(self) -> Vector:
        """Point that delta-min projects, of theta^d."""
        return self.theta + self.shift

    @property
    def own(self) -> tuple[Asked, ...]:
        """Trials of this phase, in the order of their asks."""
        return tuple(a for a in self.asked if a.iteration == self.iteration and a.phase == self.phase)

    # -- updates ------------------------------------------------------------------------------------------------

    def counted(self, asked: Asked | None = None, memory: Mapping[str, Any] | None = None) -> AdmmState:
        """Return the state after an evaluation was asked for."""
        added = () if asked is None else (asked,)
        kept = self.memory if memory is None else memory
        return replace(self, made=self.made + 1, asked=(*self.asked, *added), memory=kept)

    def credited(self, arms: Vector, reward: float) -> AdmmState:
        """Return the state after a pull, (K,) one-hot, with its binary reward: liu2020, Algorithm A1, lines 12 and 13."""
        return replace(self, counts=self.counts + arms, rewards=self.rewards + reward * arms)

    def optimised(self, theta: Vector, u: Vector) -> AdmmState:
        """Return the state with the answer of theta-min, inactive coordinates included, and its slacks: z-min is next."""
        return replace(self, theta=theta, u=u, phase=Z, made=0, memory={})

    def chosen(
        self, z: Indices, delta: Vector, u: Vector, mu: Vector | None, metric: Vector, settings: AdmmSettings
    ) -> AdmmState:
        """Return the state of the next iteration, with the answers of delta-min and z-min and updated multipliers (eq. A17, A29).

        Args:
            delta: delta(t+1), (P,).
            u, mu: u(t+1), and mu(t+1) by ``mipcash.methods.admm.augmented.Limits.multipliers``; None: z-min had no answer,
                and mu stays.
            metric: m of theta^d, 0 at continuous coordinates, (P,).
        """
        apart = np.where(metric > 0.0, self.theta - delta, 0.0)
        moved = np.where(metric > 0.0, delta - self.delta, 0.0)
        primal, dual = _norm(apart, metric), self.rho * _norm(moved, metric)
        apart_from_limits = 0.0 if not len(self.mu) else math.inf
        if mu is not None:
            apart_from_limits = float(np.linalg.norm(mu - self.mu)) / settings.slack_rho  # h + u
        return replace(
            self,
            z=z,
            delta=np.where(metric > 0.0, delta, 0.0),
            lam=self.lam + self.rho * apart,
            u=u,
            mu=self.mu if mu is None else mu,
            iteration=self.iteration + 1,
            phase=THETA,
            made=0,
            memory={},
            primal=primal,
            dual=dual,
            outside=apart_from_limits,
        )


def _norm(vector: Vector, metric: Vector) -> float:
    return math.sqrt(float(vector**2 @ metric))


VECTORS = ("theta", "delta", "lam", "u", "mu", "units", "counts", "rewards")
RESIDUALS = ("primal", "dual", "outside")
PLAIN = ("rho", "unit", "iteration", "phase", "made", "memory")
