"""Minimisation of an acquisition function in wide spaces, with the neighbours of one point at a time and many moves at once.

As in the mixed search, every other level of every group is tried. The best improving moves of different groups are also tried
together: the best two, four, eight and so on. With hundreds of groups, single moves alone would take hundreds of sweeps. The best
result is taken if it is legal and new.
"""

from __future__ import annotations

import numpy as np

from mipcash.acquisition.acquisition import Acquisition, compared
from mipcash.acquisition.mixed_search import LEAST_GAIN, MixedSearch, Pool
from mipcash.program.forms import Indices, Vector
from mipcash.program.legality import Legality
from mipcash.program.points import Point, Points


class WideSearch(MixedSearch):
    """Mixed search in wide domains; see ``MixedSearch``."""

    def _sweep(self, acquisition: Acquisition, pool: Pool) -> Pool:
        if not len(self.program.groups):
            return pool
        for r in range(len(pool.points)):
            legality = self.near.legality_at(pool.points.units[r])
            for _ in range(self.settings.sweeps):
                if self.step.domain.deadline.passed:
                    return pool
                point = pool.points[r]
                if legality is None:  # only a solver can check moves, so few are tried
                    owner, latent = self.near.singles(point.levels[None])
                    pool, moved = self._take_singly(acquisition, pool, np.full(len(owner), r), latent)
                    if not len(moved):
                        break
                    continue
                found = self._best_combined_move(acquisition, point, float(pool.values[r]), legality)
                if found is None:
                    break
                pool = pool.moved(np.array([r]), *found)
        return pool

    def _best_combined_move(
        self, acquisition: Acquisition, point: Point, now: float, legality: Legality
    ) -> tuple[Points, Vector] | None:
        """Return the point after the best move, or several moves together, with its value; None if none improves."""
        start, (_, latent) = self.near.latent(point.levels), self.near.singles(point.levels[None])
        singles, values = self._improving(acquisition, latent, point.units, now, legality)
        if not len(singles):
            return None
        latent, order = latent[singles], np.argsort(values, kind="stable")
        together = self._together(start, latent[order])
        several, several_values = self._improving(acquisition, together, point.units, now, legality)
        best = int(order[0])
        chosen, value = latent[best], values[best]
        if len(several) and several_values.min() < value:
            k = int(np.argmin(several_values))
            chosen, value = together[several[k]], several_values[k]
        levels = legality.effective(chosen[None])
        return Points(levels, point.units[None]), np.array([value])

    def _improving(
        self, acquisition: Acquisition, latent: Indices, units: Vector, now: float, legality: Legality
    ) -> tuple[Indices, Vector]:
        """Return the latent levels, (N, G), that are legal, new and better than ``now``: rows (k,) and values (k,)."""
        levels = legality.effective(latent)
        if not len(levels):
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        values = compared(acquisition, Points(levels, np.repeat(units[None], len(levels), axis=0)))
        rows = np.flatnonzero(values < now - LEAST_GAIN)
        rows = rows[legality.check(levels[rows])]
        rows = rows[self.near.admitted(levels[rows])]
        return rows, values[rows]

    @staticmethod
    def _together(start: Indices, latent: Indices) -> Indices:
        """Return the first moves on different groups combined: the first two, four, eight .. of them, and all, (n, G).

        Args:
            start: levels before the moves, (G,).
            latent: levels after each move, the best first, (N, G).
        """
        taken, reached, found = np.zeros(len(start), dtype=bool), start.copy(), []
        count = 0
        for to in latent:
            touched = to != start
            if np.any(taken & touched):
                continue
            taken |= touched
            reached[touched] = to[touched]
            count += 1
            if count > 1 and count & (count - 1) == 0:
                found.append(reached.copy())
        if count > 2 and count & (count - 1):
            found.append(reached)
        return np.array(found, dtype=np.int64).reshape(len(found), len(start))
