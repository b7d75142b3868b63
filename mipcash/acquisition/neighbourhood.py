"""Legal points around a point, in batches, for searches that compare an acquisition function over them.

Notation
    s (R, G)    levels of R points, off if a group is inactive;   latent levels (R, G) give every group a level
    u (R, D)    unit values

The moves are those of ``mipcash.program.moves``. A group that becomes active takes its level from ``memory``. If legality cannot
be decided without a solver, the solver checks the most promising moves only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mipcash.program.forms import Booleans, Indices, Vector
from mipcash.program.legality import Legality
from mipcash.program.moves import moves_of
from mipcash.program.points import Point, Points
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Exclusion, Exclusions

PAIRS = 2000
"""Pair moves tried before a point counts as stuck."""
ASKED = 12
"""Largest number of moves whose legality a solver checks in one step."""


class Neighbourhood:
    """Legal moves over one domain.

    Args:
        domain: domain of the points.
        excluded: levels that must not be proposed.
        memory: levels that groups take when they become active, shape (G,).
    """

    def __init__(self, domain: Domain, excluded: Sequence[Exclusion], memory: Indices) -> None:
        self.domain, self.program = domain, domain.program
        self._excluded = Exclusions.of(excluded)
        self._memory = memory
        self._moves = moves_of(self.program)
        self._legality: dict[tuple[float, ...], Legality | None] = {}

    @classmethod
    def beside(cls, domain: Domain, excluded: Sequence[Exclusion], observed: Points) -> Neighbourhood:
        """Return the neighbourhood whose memory is that of the observations, which are ordered best first.

        The memory of a group is its level in the best observation in which it is active, or else its first level.
        """
        on = observed.levels != domain.program.off_levels
        first: Indices = np.argmax(on, axis=0)
        memory = observed.levels[first, np.arange(len(first))]
        return cls(domain, excluded, np.where(on.any(axis=0), memory, 0))

    def legality_at(self, u: Vector) -> Legality | None:
        """Return the legality of levels at unit values u, (D,); None if only a solver can check it."""
        key = tuple(self.domain.in_rules(u).values())
        if key not in self._legality:
            self._legality[key] = self.domain.legality(u)
        return self._legality[key]

    def admitted(self, levels: Indices) -> Booleans:
        """Return a mask of the level vectors that no exclusion forbids: (R, G) -> (R,)."""
        return self._excluded.admitted(levels)

    def latent(self, levels: Indices) -> Indices:
        """Return a level for every group, for an inactive group the one in memory: (..., G) -> (..., G)."""
        return self._moves.latent(levels, self._memory)

    def singles(self, levels: Indices) -> tuple[Indices, Indices]:
        """Return all single moves of R points: owner (N,), latent levels (N, G)."""
        return self._moves.singles(levels, self.latent(levels))

    def pairs(self, levels: Indices, count: int, rng: np.random.Generator) -> Indices:
        """Return random pair moves of one point: (G,) -> latent levels (count, G), or all pair moves if there are fewer."""
        return self._moves.pairs(levels, self.latent(levels), count, rng)

    def walk(self, legality: Legality, levels: Indices, steps: int, rng: np.random.Generator) -> Indices:
        """Return the end points of random legal walks: (R, G) -> (R, G)."""
        return legality.effective(self._moves.walk(legality, levels, steps, rng))

    def stuck(self, levels: Indices, few: int, rng: np.random.Generator) -> bool:
        """Return True if some block of groups has fewer than ``few`` moves from levels (G,), at any numerical values.

        Single moves of a group in the block count, and PAIRS random pair moves in it, if they are legal and admitted. A block of at
        most ``few`` combinations of levels is left out.
        """
        latent, legality = self.latent(levels), self.domain.free_legality

        def possible(moves: Indices, block: Indices) -> int:
            moves = moves[np.any(moves[:, block] != latent[block], axis=1)]
            reached = legality.effective(moves)
            return int(np.count_nonzero(legality.check(reached) & self.admitted(reached)))

        singles = self.singles(levels[None])[1]
        for block in self._moves.blocks:
            if np.prod(self.domain.program.sizes[block], dtype=float) <= few:
                continue
            found = possible(singles, block)
            if found < few:
                found += possible(self._moves.pairs(levels, latent, PAIRS, rng, block), block)
            if found < few:
                return True
        return False

    def legal(self, latent: Indices, u: Vector, order: Indices) -> tuple[Indices, Booleans]:
        """Return the effective levels of latent ones, and a mask of those that are legal and admitted.

        If a solver is needed, at most ASKED are checked, and only the first legal one is True.

        Args:
            latent: shape (N, G).
            u: shape (D,), their common unit values.
            order: rows by decreasing promise, the order of the solver's checks.
        """
        legality = self.legality_at(u)
        if legality is not None:
            levels = legality.effective(latent)
            return levels, legality.check(levels) & self.admitted(levels)
        levels = self.domain.free_legality.effective(latent)
        legal = np.zeros(len(levels), dtype=bool)
        likely = self.domain.free_legality.check(levels) & self.admitted(levels)
        for k in [int(k) for k in order if likely[k]][:ASKED]:
            if self.domain.deadline.passed:
                break
            if self.domain.is_legal(Point(levels[k], u)):
                legal[k] = True
                break
        return levels, legal
