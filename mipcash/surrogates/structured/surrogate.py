"""The structured surrogate of one output: how its hyperparameters live from fit to fit.

1. while observations are few, every fit looks for the maximum of the evidence, from where the last one ended; later every
   second, then fewer, and those between keep what they find
2. now and then a search starts from the prior's medians too, fits the length-scales of ordered groups, and compares warps;
   the others hold both
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mipcash.deadline import NEVER, Deadline
from mipcash.errors import at_least
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Noise, State
from mipcash.surrogates.structured.evidence import Evidence, chosen_part, fit, taken
from mipcash.surrogates.structured.kernel import Kernel
from mipcash.surrogates.structured.posterior import StructuredPosterior
from mipcash.surrogates.structured.structure import Structure
from mipcash.surrogates.structured.training_tables import Tables
from mipcash.surrogates.structured.warping import STRENGTHS, Warp


@dataclass(frozen=True)
class StructuredSettings:
    """Settings of a structured surrogate.

    Attributes:
        iterations: of L-BFGS-B on the evidence per search, from where the last one ended.
        restart_every: searches after which one takes twice as long, starts from the prior's medians too, and looks
            at the length-scales of ordered groups and at the warp.
        warp: whether the worse half of the values may be compressed (chosen by evidence).
        settled: observations up to which every fit searches; from there on one in t / often fits does, but every second at most
            and every fourth at least.
        sparing: the same for many observations, of which one in t / sparing fits searches.
        compared: observations on which warps are compared, at most.
    """

    iterations: int = 12
    restart_every: int = 6
    warp: bool = True
    settled: int = 40
    often: int = 25
    sparing: int = 80
    compared: int = 80

    def __post_init__(self) -> None:
        at_least(self, iterations=1, restart_every=1, settled=0, often=1, sparing=1, compared=1)

    def every(self, t: int) -> int:
        """Fits per search after t observations."""
        return 1 if t < self.settled else max(2, min(4, t // self.often), t // self.sparing)


@dataclass(frozen=True)
class FitState:
    """What a fit leaves for the next one.

    Attributes:
        theta: hyperparameters, shape (n_theta,).
        strength: of the warp.
        fits: so far.
    """

    theta: Vector
    strength: float
    fits: int

    @classmethod
    def of(cls, state: State) -> FitState | None:
        """From what :meth:`as_dict` gave; None: nothing was fitted yet."""
        if "theta" not in state:
            return None
        return cls(np.array(state["theta"]), float(state["strength"]), int(state["fits"]))

    def as_dict(self) -> dict[str, Any]:
        """In JSON's types."""
        return {"theta": self.theta.tolist(), "strength": self.strength, "fits": self.fits}


@dataclass(frozen=True)
class StructuredSurrogate:
    """A :class:`mipcash.surrogates.protocols.Surrogate` with the structured kernel.

    Attributes:
        structure: the space.
        settings: of the hyperparameters' life.
        turn: the value up to which a warp leaves values alone at least; None: the median.
    """

    structure: Structure
    settings: StructuredSettings = StructuredSettings()
    turn: float | None = None

    def prepare(self, points: Points) -> Tables:
        """See :meth:`mipcash.surrogates.protocols.Surrogate.prepare`."""
        return Tables.of(self.structure, points)

    def fit(
        self,
        prepared: Tables,
        values: Vector,
        state: State,
        rng: np.random.Generator | None = None,
        noise: Noise = 0.0,
        deadline: Deadline = NEVER,
    ) -> tuple[StructuredPosterior, dict[str, Any]]:
        """See :meth:`mipcash.surrogates.protocols.Surrogate.fit`; nothing is drawn."""
        before, observed = FitState.of(state), _Observed(prepared, values, noise, self.turn)
        theta, warp = self._hyperparameters(observed, before, deadline)
        kernel, v = Kernel(self.structure, theta), observed.warped_noise(warp)
        posterior = StructuredPosterior.fit(kernel, prepared.x, values, warp, v)
        return posterior, FitState(theta, warp.strength, 1 if before is None else before.fits + 1).as_dict()

    def _hyperparameters(self, observed: _Observed, before: FitState | None, deadline: Deadline) -> tuple[Vector, Warp]:
        """Those of this fit: found afresh, from where the last search ended, or kept."""
        if before is None:
            return self._restarted(observed, self.structure.prior[0], deadline)
        search, rest = divmod(before.fits, self.settings.every(len(observed.values)))
        if rest:
            return before.theta, observed.warp(before.strength)
        if search % self.settings.restart_every == 0:
            return self._restarted(observed, before.theta, deadline)
        warp = observed.warp(before.strength)
        evidence = observed.evidence(warp, before.theta)
        return fit(evidence, [before.theta], self.settings.iterations, deadline)[0], warp

    def _restarted(self, observed: _Observed, start: Vector, deadline: Deadline) -> tuple[Vector, Warp]:
        """From several starts, with the warp of the highest evidence."""
        iterations, part = self.settings.iterations, observed.part(self.settings.compared)
        found = []
        for strength in STRENGTHS if self.settings.warp else STRENGTHS[:1]:
            warp = observed.warp(strength)
            theta, value = fit(part.evidence(warp, start), [start], iterations, deadline)
            found.append((value - warp.log_jacobian(part.values), theta, warp))
        _, theta, warp = min(found, key=lambda f: f[0])
        starts = [theta, self.structure.prior[0]]
        if len(part.values) < len(observed.values):  # which start is the better one shows on a part of the observations
            starts = [fit(part.evidence(warp), starts, iterations, deadline)[0]]
        return fit(observed.evidence(warp), starts, iterations, deadline)[0], warp


@dataclass(frozen=True)
class _Observed:
    """What one fit learns from: points, values and their noise variances on the scale of the values."""

    tables: Tables
    values: Vector
    noise: Noise
    turn: float | None = None

    def warp(self, strength: float) -> Warp:
        return Warp.of(self.values, strength, self.turn)

    def part(self, limit: int) -> _Observed:
        """At most so many observations."""
        rows = chosen_part(self.values, limit)
        return _Observed(self.tables.part(rows), self.values[rows], taken(self.noise, rows), self.turn)

    def evidence(self, warp: Warp, held: Vector | None = None) -> Evidence:
        return Evidence.of(self.tables, warp(self.values), self.warped_noise(warp), held)

    def warped_noise(self, warp: Warp) -> Noise:
        """Variances on the scale of the warp, to first order."""
        if not np.any(self.noise):
            return 0.0
        slope = warp.slope(self.values)
        return np.asarray(slope * slope * self.noise)
