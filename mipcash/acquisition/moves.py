"""Legal neighbours of a point, many at once: the moves by which any acquisition function can be polished.

Notation
    s (R, G)    levels of R points, off where a group is off;   latent levels (R, G) give every group a level
    u (R, J)    unit values

A single move changes one level, or swaps two positions of an ordering; a pair move makes two single moves at once. A
group that a move switches on takes its level from ``memory``. Where legality cannot be decided without a solver, the
space itself is asked, for the most promising moves only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mipcash.backends.heuristics.local_search import LocalSearch
from mipcash.program.forms import Indices, Vector
from mipcash.program.legality import Booleans
from mipcash.program.points import Point
from mipcash.program.program import orders_of
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Exclusion, Exclusions

ASKED = 12
"""Moves whose legality a solver is asked for, at most, in one step."""


class Neighbourhood:
    """Moves over the levels of one domain.

    Args:
        domain: where the points live.
        excluded: levels that must not be proposed.
        memory: levels that groups take when they are switched on, shape (G,).
    """

    def __init__(self, domain: Domain, excluded: Sequence[Exclusion], memory: Indices) -> None:
        self.domain, self.program = domain, domain.program
        self._excluded = Exclusions.of(excluded)
        self._memory = memory
        self._searches: dict[tuple[float, ...], LocalSearch | None] = {}
        orders = orders_of(self.program)
        in_orders = {g for members in orders.values() for g in members}
        self._swaps = [(g, h) for m in orders.values() for i, g in enumerate(m) for h in m[i + 1 :]]
        movable = [g not in in_orders for g in range(len(self.program.groups))]
        columns = np.flatnonzero(self.program.active_columns > 0)
        self._columns = columns[np.array(movable, dtype=bool)[self.program.group_of[columns]]]
        self._targets = self._columns - self.program.starts[self.program.group_of[self._columns]]
        self._owners = self.program.group_of[self._columns]
        self._off = self.program.off_levels

    def search_at(self, u: Vector) -> LocalSearch | None:
        """Legality of levels beside these numbers; None where only a solver can tell."""
        if self.program.numbers and not self.domain.separable:
            return None
        natural = self.domain.scale.natural(u)
        key = tuple(natural[n.label] for n in self.program.numbers)
        if key not in self._searches:
            self._searches[key] = self.domain.local_search(u)
        return self._searches[key]

    def admitted(self, levels: Indices) -> Booleans:
        """Which levels keep their distance from the excluded ones: (R, G) -> (R,)."""
        return self._excluded.admitted(levels)

    def latent(self, levels: Indices) -> Indices:
        """Levels with those of switched-off groups from memory."""
        return np.where(levels == self._off, self._memory, levels)

    def singles(self, levels: Indices) -> tuple[Indices, Indices]:
        """All single moves of R points: owner (N,), latent levels (N, G)."""
        latent = self.latent(levels)
        free = (levels != self._off)[:, self._owners] & (levels[:, self._owners] != self._targets)
        rows, moves = np.nonzero(free)
        moved = latent[rows]
        moved[np.arange(len(rows)), self._owners[moves]] = self._targets[moves]
        owners, trials = [rows], [moved]
        for g, h in self._swaps:
            swapped = latent.copy()
            swapped[:, [g, h]] = swapped[:, [h, g]]
            owners.append(np.arange(len(levels)))
            trials.append(swapped)
        return np.concatenate(owners), np.concatenate(trials)

    def pairs(self, levels: Indices, count: int, rng: np.random.Generator) -> Indices:
        """Random pair moves of one point: (G,) -> latent levels (count, G) or all of them if there are fewer."""
        _, first = self.singles(levels[None])
        if len(first) < 2:
            return first
        latent = self.latent(levels[None])[0]
        total = len(first) * (len(first) - 1) // 2
        i, j = np.triu_indices(len(first), k=1)
        if total > count:
            chosen = rng.choice(total, size=count, replace=False)
            i, j = i[chosen], j[chosen]
        both: Indices = np.where(first[i] != latent, first[i], first[j])
        return both

    def legal(self, search: LocalSearch | None, latent: Indices, u: Vector, order: Indices) -> tuple[Indices, Booleans]:
        """Effective levels of latent ones and which of them are legal and admitted.

        Args:
            latent: shape (N, G).
            u: shape (J,), the numbers they share.
            order: rows by decreasing promise: without a legality check only the first ASKED are looked at.
        """
        if search is not None:
            levels = search.legality.effective(latent)
            return levels, search.legality.check(levels) & self.admitted(levels)
        levels = self.domain.free_legality.effective(latent)
        legal = np.zeros(len(levels), dtype=bool)
        likely = self.domain.free_legality.check(levels) & self.admitted(levels)
        for k in [int(k) for k in order if likely[k]][:ASKED]:
            if self.domain.is_legal(Point(levels[k], u)):
                legal[k] = True
                break
        return levels, legal
