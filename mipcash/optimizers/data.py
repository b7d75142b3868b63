"""What a model learns from: observations, encoded once per proposal, and how they stand by their limits.

Notation
    t observations;   y (t,) losses;   w (t,) violations: over all limits, how far an output lies outside, on the scale on which it
    is learned (:mod:`mipcash.surrogates.limit_scale`), added up; 0 where all limits are kept, inf where that is not known

The better of two observations is the one that violates less, of equals the one with the lower loss (Deb 2000).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mipcash.optimizers.optimizer import History, Limit, joined
from mipcash.optimizers.outcome import FAILED, LOSS, MISSING
from mipcash.optimizers.violations import present, violations
from mipcash.program.forms import Booleans, Indices, Vector
from mipcash.program.points import Points
from mipcash.space.domain import Domain
from mipcash.surrogates.limit_scale import LimitScale
from mipcash.surrogates.protocols import Noise


@dataclass(frozen=True)
class Data:
    """What a model learns from.

    Attributes:
        observations: t of them, of which the loss or a limited output is known or failed; what different evaluations tell of one
            configuration is put together (:func:`mipcash.optimizers.optimizer.joined`).
        points: theirs.
        losses: y, shape (t,), where it is not known at the worst that is.
        known: rows whose loss is known, increasing.
        failed: whether the loss or a limited output failed, shape (t,).
        violations: w, shape (t,).
        order: legal rows of ``known``, best first; as long as there is none, legal ones whose limited outputs are known. What was
            stopped before its last fit is none of them: its loss is a guess, and the least of many guesses is too low.
        limits: what outputs are to keep.
        variances: of the losses, as estimates of what whole evaluations would have given: shape (t,), 0 for whole ones.
        scales: of the limited outputs that are known somewhere, by name.
    """

    observations: History
    points: Points
    losses: Vector
    known: Indices
    failed: Booleans
    violations: Vector
    order: Indices
    limits: tuple[Limit, ...] = ()
    scales: Mapping[str, LimitScale] = field(default_factory=dict)
    variances: Vector = field(default_factory=lambda: np.zeros(1))

    @classmethod
    def of(cls, domain: Domain, history: History, limits: Sequence[Limit] = ()) -> Data:
        """What a history says of the loss and of limited outputs."""
        names = (LOSS, *(limit.output for limit in limits))
        told = [row.whole for row in joined(history, names)]
        losses = np.array([np.nan if o.loss is None else o.loss for o in told])
        known = np.flatnonzero(np.isfinite(losses))
        failed = np.array([any(o.outcome[name].status == FAILED for name in names) for o in told], dtype=bool)
        by_limit, scales = violations(told, limits)
        outside: Vector = sum(by_limit.T, np.zeros(len(told)))
        legal = np.array([o.legal for o in told], dtype=bool)
        whole = np.array([not o.outcome.stopped for o in told], dtype=bool)
        ranked = known[legal[known] & whole[known]]
        if not len(ranked):  # limits may be known where no loss is
            ranked = np.flatnonzero(legal & np.isfinite(outside))
        order = ranked[np.lexsort((losses[ranked], outside[ranked]))]
        points = domain.encode([o.config for o in told])
        variances = np.array([o.variance for o in told])
        return cls(told, points, imputed(losses), known, failed, outside, order, tuple(limits), scales, variances)

    @property
    def feasible(self) -> Booleans:
        """Which observations keep all rules and limits, for all that is known of them: shape (t,)."""
        return np.asarray(self.legal & (self.violations == 0.0))

    @property
    def legal(self) -> Booleans:
        """Which observations the rules admit: shape (t,)."""
        return np.array([o.legal for o in self.observations], dtype=bool)

    @property
    def whole(self) -> Booleans:
        """Which observations are no estimates of an evaluation that was stopped: shape (t,)."""
        return np.array([not o.outcome.stopped for o in self.observations], dtype=bool)

    def noise(self, rows: Indices | None = None, output: str = LOSS) -> Noise:
        """Variances of an output as an estimate, on the scale on which it is learned: 0 where it is none.

        Args:
            rows: k of them; None: all.
        """
        rows = np.arange(len(self.observations)) if rows is None else rows
        if output == LOSS:
            found = self.variances[rows] if self.variances.any() else np.zeros(len(rows))
        else:
            told = [self.observations[k].outcome[output] for k in rows]
            found = np.array([o.variance or 0.0 for o in told])
            if found.any() and output in self.scales:
                found *= self.scales[output].slope(np.array([o.value for o in told], dtype=float)) ** 2
        return found if found.any() else 0.0

    @property
    def merits(self) -> Vector:
        """Losses of what keeps the limits, and above all of these what does not, by its violation: shape (t,).

        For models of one output: the order of observations as a number (Deb 2000).
        """
        kept = self.violations == 0.0
        if kept.all():
            return self.losses
        best = self.losses[kept] if kept.any() else self.losses
        unit = float(np.std(self.losses)) or 1.0
        return np.where(kept, self.losses, best.max() + unit * self.bounded_violations)

    @property
    def bounded_violations(self) -> Vector:
        """w, what is not known counting as worse than all that is: finite, shape (t,)."""
        finite = self.violations[np.isfinite(self.violations)]
        return np.asarray(np.minimum(self.violations, 1.0 + finite.max(initial=0.0)))

    @property
    def judged(self) -> Indices:
        """Rows of which it is known whether evaluations fail: all but those whose loss was not tried."""
        told = [o.outcome[LOSS].status != MISSING for o in self.observations]
        return np.flatnonzero(self.failed | np.array(told, dtype=bool))

    def stalled(self) -> int:
        """Evaluations of the loss in this study since the incumbent was found: known ones tell nothing of the search."""
        after = int(self.order[0]) + 1 if len(self.order) else 1
        return sum(not o.known and o.outcome[LOSS].status != MISSING for o in self.observations[after:])

    def best(self, count: int | None = None) -> Points:
        """The best legal observations; None: all whose loss is known."""
        return self.points[self.order[:count]]

    def border(self, count: int) -> Points:
        """The best observation, and those that violate limits by the least; where there are none, the next best."""
        outside = self.violations[self.order[1:]] > 0.0
        rest = np.concatenate([self.order[1:][outside], self.order[1:][~outside]])
        return self.points[np.concatenate([self.order[:1], rest])[:count]]

    def values(self, output: str) -> tuple[Indices, Vector]:
        """Where another output is known, and its values there: rows of the points (k,), increasing, and (k,)."""
        return present(self.observations, output)


def imputed(losses: Vector) -> Vector:
    """Losses, (t,), with those that are nan at the worst: what failed is to be avoided, and nothing is known beyond that."""
    unknown = np.isnan(losses)
    worst = losses[~unknown].max() if not unknown.all() else 0.0
    return np.where(unknown, worst, losses)
