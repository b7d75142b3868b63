"""What ADMMBO learns: a surrogate per output, fitted where a subproblem needs it, and limits with one end each.

Notation
    f the loss, g an output with a limit;   a limit with two ends is two inequalities, c = low - g <= 0 and c = g - high <= 0
    (ariafar2019, Section 6), which share what is learned of g
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mipcash.acquisition.constrained import Interval, Kept
from mipcash.deadline import Deadline
from mipcash.optimizers.data import Data
from mipcash.optimizers.hybrid import FAILURE
from mipcash.optimizers.outcome import LOSS
from mipcash.optimizers.pending import EXACT, believed
from mipcash.program.forms import Booleans, Indices, Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Noise
from mipcash.surrogates.structured.posterior import StructuredPosterior
from mipcash.surrogates.structured.surrogate import StructuredSurrogate


@dataclass(frozen=True)
class OneSided:
    """One inequality on an output.

    Attributes:
        output: its name.
        low, high: one of them is finite.
    """

    output: str
    low: float
    high: float

    def kept(self, values: Vector) -> Booleans:
        """Which values keep it: shape of ``values``."""
        return np.asarray((values >= self.low) & (values <= self.high))

    def __str__(self) -> str:
        return f"{self.output} <= {self.high:g}" if math.isfinite(self.high) else f"{self.output} >= {self.low:g}"


def one_sided(data: Data, equality: float) -> list[OneSided]:
    """The limits as inequalities, N of them.

    Args:
        equality: how far an output may lie from the one value of its limit, in units of the range of its values.
    """
    found = []
    for limit in data.limits:
        values = data.values(limit.output)[1]
        equal = limit.low == limit.high and len(values)
        slack = equality * float(np.ptp(values)) if equal else 0.0
        if math.isfinite(limit.low):
            found.append(OneSided(limit.output, limit.low - slack, math.inf))
        if math.isfinite(limit.high):
            found.append(OneSided(limit.output, -math.inf, limit.high + slack))
    return found


@dataclass
class Models:
    """Posteriors of one proposal, fitted when they are asked for.

    Attributes:
        surrogate: of every output, without a warp.
        data: what is known.
        deadline: of the fits.
        states: of the hyperparameters by output; every fit leaves its own.
    """

    surrogate: StructuredSurrogate
    data: Data
    deadline: Deadline
    states: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def known(self, output: str) -> tuple[Indices, Vector]:
        """Where an output is known: rows (k,), and its values there."""
        if output == LOSS:
            return self.data.known, self.data.losses[self.data.known]
        return self.data.values(output)

    def fitted(self, output: str, awaited: Points | None = None) -> StructuredPosterior:
        """The posterior of an output that is known somewhere: of a limited one on the scale about its limit.

        Args:
            awaited: where it is being evaluated; it counts at its means.
        """
        rows, values = self.known(output)
        if output in self.data.scales:
            values = self.data.scales[output](values)
        return self._fit(output, rows, values, awaited, self.data.noise(rows, output))

    def _fit(
        self, name: str, rows: Indices, values: Vector, awaited: Points | None, noise: Noise = 0.0
    ) -> StructuredPosterior:
        prepared = self.surrogate.prepare(self.data.points[rows])
        posterior, self.states[name] = self.surrogate.fit(
            prepared, values, self.states.get(name, {}), noise=noise, deadline=self.deadline
        )
        return posterior if awaited is None else believed(posterior, awaited, EXACT * posterior.fitted_noise)

    def limit(self, limit: OneSided, awaited: Points | None = None) -> Kept:
        """An inequality with the posterior of its output: 1 - theta is its probability."""
        posterior = self.fitted(limit.output, awaited)
        ends = self.data.scales[limit.output](np.array([limit.low, limit.high]))
        return self.scaled(posterior, *ends.tolist())

    def success(self) -> Kept | None:
        """That an evaluation does not fail, learned as +-1; None where none has, or all have."""
        failed = self.data.failed
        if not failed.any() or failed.all():
            return None
        posterior = self._fit(FAILURE, np.arange(len(failed)), np.where(failed, 1.0, -1.0), None)
        return self.scaled(posterior, -math.inf, 0.0)

    @staticmethod
    def scaled(posterior: StructuredPosterior, low: float, high: float) -> Kept:
        """Ends of a limit on the posterior's scale."""
        low, high = (float(v) for v in posterior.scaled(np.array([low, high])))
        return Kept(posterior, Interval(low, high))


def slope(posterior: StructuredPosterior) -> float:
    """What a loss of 1 is on the scale of its posterior, which has no warp."""
    return float(posterior.warp.slope(np.zeros(1))[0])
