"""Training data of a model: observations, encoded once per proposal, with their violations of outcome constraints.

Notation
    t observations;   y (t,) losses;   w (t,) violations, summed over all outcome constraints, each on the scale on which the
    output is modelled (``mipcash.surrogates.limit_scale``): 0 if feasible, inf if an output is not known

Of two observations the one with the smaller violation is better; of equal ones, the one with the lower loss (Deb 2000).
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
    """Training data of a model.

    Attributes:
        observations: t observations of which the loss or a constrained output is known or failed. Outputs of one configuration that
            were evaluated separately are merged (``mipcash.optimizers.optimizer.joined``).
        points: the encoded configurations.
        losses: y, shape (t,); unknown losses are replaced by the worst known loss.
        known: rows whose loss is known, increasing.
        failed: True where the loss or a constrained output failed, shape (t,).
        violations: w, shape (t,).
        order: legal rows of ``known`` without pruned trials, whose losses are estimates; best first. If there are none, the legal
            rows whose violation is known.
        limits: the outcome constraints.
        variances: noise variances of the losses as estimates of complete evaluations: shape (t,), 0 for complete ones.
        scales: by name, of the constrained outputs that are known at least once.
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
        """Return the data of a history, for the loss and the constrained outputs."""
        names = (LOSS, *(limit.output for limit in limits))
        reported = [row.merged for row in joined(history, names)]
        losses = np.array([o.loss for o in reported], dtype=float)  # None becomes nan
        known = np.flatnonzero(np.isfinite(losses))
        failed = np.zeros(len(reported), dtype=bool)
        for name in names:
            failed |= np.array([o.outcome[name].status == FAILED for o in reported], dtype=bool)
        by_limit, scales = violations(reported, limits)
        outside: Vector = sum(by_limit.T, np.zeros(len(reported)))
        legal = np.array([o.legal for o in reported], dtype=bool)
        whole = np.array([not o.outcome.pruned for o in reported], dtype=bool)
        ranked = known[legal[known] & whole[known]]
        if not len(ranked):  # constrained outputs may be known although no loss is
            ranked = np.flatnonzero(legal & np.isfinite(outside))
        order = ranked[np.lexsort((losses[ranked], outside[ranked]))]
        points = domain.encode([o.config for o in reported])
        variances = np.array([o.variance for o in reported])
        return cls(reported, points, imputed(losses), known, failed, outside, order, tuple(limits), scales, variances)

    @property
    def feasible(self) -> Booleans:
        """True for observations that are legal and known to satisfy all outcome constraints: shape (t,)."""
        return np.asarray(self.legal & (self.violations == 0.0))

    @property
    def legal(self) -> Booleans:
        """True for observations that the rules allow: shape (t,)."""
        return np.array([o.legal for o in self.observations], dtype=bool)

    @property
    def complete(self) -> Booleans:
        """True for observations that were not pruned: shape (t,)."""
        return np.array([not o.outcome.pruned for o in self.observations], dtype=bool)

    def noise(self, rows: Indices | None = None, constrained: str | None = None) -> Noise:
        """Return the noise variances of the loss, (k,), or 0.0 if all evaluations are complete.

        Args:
            rows: rows of k observations; None for all.
            constrained: an output whose variances to return instead, on the scale of its outcome constraint.
        """
        rows = np.arange(len(self.observations)) if rows is None else rows
        if constrained is None or constrained == LOSS:
            found = self.variances[rows]
        else:
            found = np.array([self.observations[k].outcome[constrained].variance or 0.0 for k in rows])
        if constrained is not None and constrained in self.scales and found.any():
            values = np.array([self.observations[k].outcome[constrained].value for k in rows], dtype=float)
            found = np.asarray(found * self.scales[constrained].slope(values) ** 2)
        return found if found.any() else 0.0

    @property
    def merits(self) -> Vector:
        """One value per observation in the order of Deb (2000), for models with one output: shape (t,).

        It is the loss of a feasible observation. For the other observations it grows with the violation, from the worst feasible
        loss upwards.
        """
        kept = self.violations == 0.0
        if kept.all():
            return self.losses
        best = self.losses[kept] if kept.any() else self.losses
        unit = float(np.std(self.losses)) or 1.0
        return np.where(kept, self.losses, best.max() + unit * self.bounded_violations)

    @property
    def bounded_violations(self) -> Vector:
        """w, finite, shape (t,): unknown violations count as 1 more than the largest known one."""
        finite = self.violations[np.isfinite(self.violations)]
        return np.asarray(np.minimum(self.violations, 1.0 + finite.max(initial=0.0)))

    @property
    def judged(self) -> Indices:
        """Rows whose success or failure is known: the loss was evaluated, or an output failed."""
        reported = [o.outcome[LOSS].status != MISSING for o in self.observations]
        return np.flatnonzero(self.failed | np.array(reported, dtype=bool))

    def on_plateau(self, first: int) -> bool:
        """Return True if more than half of the losses are the best one, and one of the ``first`` observations has it.

        Such losses say little about where a better one may be. Outcome constraints and failures say more: the answer is False then.
        """
        if self.limits or self.failed.any():
            return False
        rows = self.known[(self.legal & self.complete)[self.known]]
        losses = self.losses[rows]
        best = losses == np.min(losses, initial=np.inf)
        return bool(np.any(rows[best] < first)) and 2 * int(np.count_nonzero(best)) > len(rows) > 1

    def best(self, count: int | None = None) -> Points:
        """Return the ``count`` best observations of ``order``; None for all of them."""
        return self.points[self.order[:count]]

    def best_and_near_feasible(self, count: int) -> Points:
        """Return the best observation, then those with the smallest violation > 0, then the next best: at most ``count``."""
        outside = self.violations[self.order[1:]] > 0.0
        rest = np.concatenate([self.order[1:][outside], self.order[1:][~outside]])
        return self.points[np.concatenate([self.order[:1], rest])[:count]]

    def values(self, output: str) -> tuple[Indices, Vector]:
        """Return the rows at which another output is known, (k,), increasing, and its values there, (k,)."""
        return present(self.observations, output)


def imputed(losses: Vector) -> Vector:
    """Return losses, (t,), with nan replaced by the worst loss (0 if all are nan), so that failures are avoided."""
    unknown = np.isnan(losses)
    worst = losses[~unknown].max() if not unknown.all() else 0.0
    return np.where(unknown, worst, losses)
