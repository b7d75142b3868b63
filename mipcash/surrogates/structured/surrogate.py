"""The structured surrogate of one output, and the schedule by which its hyperparameters are refitted.

1. While observations are few, every fit maximises the evidence, starting at the last maximum. Later every second fit does, then
   fewer. The fits between keep the hyperparameters.
2. At regular intervals a search also starts at the prior's medians, fits the length-scales of ordered groups, and compares warps.
   The other searches keep length-scales and warp.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mipcash.deadline import NEVER, Deadline
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Noise, State
from mipcash.surrogates.structured.evidence import Evidence, chosen_part, fit, taken
from mipcash.surrogates.structured.kernel import Kernel
from mipcash.surrogates.structured.posterior import StructuredPosterior
from mipcash.surrogates.structured.structure import Structure
from mipcash.surrogates.structured.training_tables import Tables
from mipcash.surrogates.structured.warping import SHAPES, Warp

MARGIN = 3.0
"""Logarithm of the factor by which the evidence of a low turn must be higher."""
COMPARED = 80
"""Largest number of observations used to compare warps."""


def every(t: int) -> int:
    """Return every how many fits one searches after t observations: all at first, then one in two to one in four, later fewer."""
    return 1 if t < 40 else max(2, min(4, t // 25), t // 80)


@dataclass(frozen=True)
class StructuredSurrogate:
    """A ``mipcash.surrogates.protocols.Surrogate`` with the structured kernel.

    Attributes:
        structure: the space.
        iterations: L-BFGS-B iterations on the evidence per search, from the last maximum.
        restart_every: every so many searches, one search takes twice as long, also starts at the prior's medians, and refits the
            length-scales of ordered groups and the warp.
        warped: True to allow a warp that compresses the worse values; its shape is chosen by evidence.
        least: a warp compresses only values above this one.
    """

    structure: Structure
    iterations: int = 12
    restart_every: int = 6
    warped: bool = True
    least: float = -math.inf

    def prepare(self, points: Points) -> Tables:
        """See ``mipcash.surrogates.protocols.Surrogate.prepare``."""
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
        """See ``mipcash.surrogates.protocols.Surrogate.fit``; no random numbers are drawn."""
        observed = _Observed(prepared, values, noise, self.least)
        theta, warp, searched = self._hyperparameters(observed, state, deadline)
        kernel, v = Kernel(self.structure, theta), observed.warped_noise(warp)
        posterior = StructuredPosterior.fit(kernel, prepared.x, values, warp, v, searched)
        after = {"theta": theta.tolist(), "shape": list(warp.shape), "fits": state.get("fits", 0) + 1}
        return posterior, {**after, "searched": searched}

    def _hyperparameters(self, observed: _Observed, before: State, deadline: Deadline) -> tuple[Vector, Warp, int]:
        """Return hyperparameters, warp and the observations at the last search: restarts, the last maximum refitted, or kept."""
        t = len(observed.values)
        if "shape" not in before:
            return *self._restarted(observed, self.structure.prior[0], deadline), t
        theta, warp = np.array(before["theta"]), observed.warp(*before["shape"])
        search, rest = divmod(before["fits"], every(t))
        if rest:
            return theta, warp, before["searched"]
        if search % self.restart_every == 0:
            return *self._restarted(observed, theta, deadline), t
        return fit(observed.evidence(warp, theta), [theta], self.iterations, deadline)[0], warp, t

    @property
    def _shapes(self) -> list[tuple[float, float]]:
        """The shapes of warps to compare, the trivial one first; low turns would all be moved up to ``least``."""
        lowest = 0.5 if self.least > -math.inf else 0.0
        return [shape for shape in SHAPES if shape[1] >= lowest] if self.warped else [SHAPES[0]]

    def _restarted(self, observed: _Observed, start: Vector, deadline: Deadline) -> tuple[Vector, Warp]:
        """Return hyperparameters fitted from several starts, with the warp of the highest evidence."""
        iterations, part = self.iterations, observed.part(COMPARED)
        found = []
        for shape in self._shapes:
            warp = observed.warp(*shape)
            theta, value = fit(part.evidence(warp, start), [start], iterations, deadline)
            found.append((value - warp.log_jacobian(part.values) + MARGIN * (warp.quantile < 0.5), theta, warp))
        _, theta, warp = min(found, key=lambda f: f[0])
        starts = [theta, self.structure.prior[0]]
        if len(part.values) < len(observed.values):  # the warps were compared on a part of the observations
            starts = [fit(part.evidence(warp), starts, iterations, deadline)[0]]
        return fit(observed.evidence(warp), starts, iterations, deadline)[0], warp


@dataclass(frozen=True)
class _Observed:
    """Data of one fit: points, values and their noise variances on the scale of the values."""

    tables: Tables
    values: Vector
    noise: Noise
    least: float

    def warp(self, strength: float, quantile: float) -> Warp:
        return Warp.of(self.values, strength, quantile, self.least)

    def part(self, limit: int) -> _Observed:
        """Return a part of at most ``limit`` observations."""
        rows = chosen_part(self.values, limit)
        return _Observed(self.tables.part(rows), self.values[rows], taken(self.noise, rows), self.least)

    def evidence(self, warp: Warp, held: Vector | None = None) -> Evidence:
        return Evidence(self.tables, warp(self.values), self.warped_noise(warp), held)

    def warped_noise(self, warp: Warp) -> Noise:
        """Return the noise variances on the scale of the warp, to first order."""
        if not np.any(self.noise):
            return 0.0
        slope = warp.slope(self.values)
        return np.asarray(slope * slope * self.noise)
