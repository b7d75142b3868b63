"""The search for an acquisition function's minimum in wide spaces: the neighbours of one point at a time, many moves at once.

Every other level of every group is looked at, as elsewhere. Of the moves that improve, the best of each group are made together
too, the best two of them, four, eight and so on: where hundreds of groups are to be settled, the best single move alone would take
hundreds of sweeps. What is best of all that is taken, if it is legal and new.
"""

from __future__ import annotations

import numpy as np

from mipcash.acquisition.acquisition import Acquisition
from mipcash.acquisition.mixed_search import LEAST_GAIN, MixedSearch, Pool
from mipcash.program.forms import Indices, Vector
from mipcash.program.legality import Legality
from mipcash.program.points import Point, Points


class WideSearch(MixedSearch):
    """Minimises acquisition functions over the legal points of a wide domain; see :class:`MixedSearch`."""

    def _sweep(self, acquisition: Acquisition, pool: Pool) -> Pool:
        if not len(self.program.groups):
            return pool
        for r in range(len(pool.points)):
            legality = self.near.legality_at(pool.points.units[r])
            for _ in range(self.settings.sweeps):
                if self.step.domain.deadline.passed:
                    return pool
                point = pool.points[r]
                if legality is None:  # a solver is asked for a few moves
                    owner, latent = self.near.singles(point.levels[None])
                    pool, moved = self._take_singly(acquisition, pool, np.full(len(owner), r), latent)
                    if not len(moved):
                        break
                    continue
                found = self._strode(acquisition, point, float(pool.values[r]), legality)
                if found is None:
                    break
                pool = pool.moved(np.array([r]), *found)
        return pool

    def _strode(
        self, acquisition: Acquisition, point: Point, now: float, legality: Legality
    ) -> tuple[Points, Vector] | None:
        """Where the best move, or several together, lead a point, and the value there; None where none improves."""
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
        """Which latent levels, (N, G), are better than ``now``, legal and new: rows (k,) and values (k,)."""
        levels = legality.effective(latent)
        if not len(levels):
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        values = acquisition.values(Points(levels, np.repeat(units[None], len(levels), axis=0)))
        rows = np.flatnonzero(values < now - LEAST_GAIN)
        rows = rows[legality.check(levels[rows])]
        rows = rows[self.near.admitted(levels[rows])]
        return rows, values[rows]

    @staticmethod
    def _together(start: Indices, latent: Indices) -> Indices:
        """The first moves that touch different groups, made together: the first two, four, eight .. of them, (n, G).

        Args:
            start: where all begin, (G,).
            latent: where each leads, the best first, (N, G).
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
