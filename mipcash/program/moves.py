"""Moves over the levels of a program, for local search, acquisition minimisation and annealing.

Notation
    s (R, G)        levels of R points, off if a group is inactive
    latent (R, G)   a level of every group, which it takes when it is active
    N               number of moves of all R points;   owner (N,) index of the point that a move starts from

    level   one group takes another level
    swap    two members of an ordering change places
    pair    two such moves at once

A move changes latent levels and ignores rules. ``mipcash.program.legality.Legality.effective`` then returns which groups
are off, and ``check`` decides if the levels are legal.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mipcash.deadline import NEVER, Deadline
from mipcash.program.forms import Indices
from mipcash.program.legality import Legality
from mipcash.program.program import BinaryProgram, orders_of


class Moves:
    """The moves of one program.

    Attributes:
        orders: the groups of each ordering, one array each.
        swaps: pairs of groups that may change places.
        parents: groups that conditions depend on: their levels switch other groups on and off.
        plain_columns: True for binaries of levels on which no other group depends, shape (n_z,), without orderings and off columns.
        n_choices: number of choices of ``change``: groups with a choice of levels, and orderings.
    """

    def __init__(self, program: BinaryProgram) -> None:
        self.program = program
        self.orders = [np.array(members, dtype=np.int64) for members in orders_of(program).values()]
        self.swaps = [(int(g), int(h)) for m in self.orders for i, g in enumerate(m) for h in m[i + 1 :]]
        self._off, of = program.off_levels, program.group_of
        ordered = np.isin(np.arange(len(program.groups)), np.concatenate([*self.orders, np.zeros(0)]))
        conditions = [c for each in program.conditions.values() for c in each]
        self.parents = np.array(sorted(program.parents(conditions)), dtype=np.int64)
        free = (program.active_columns > 0) & ~ordered[of]
        columns: Indices = np.flatnonzero(free)
        self._levels = of[columns], columns - program.starts[of[columns]]
        """All levels that groups can be set to, without orderings and off: groups and levels, both (L,)."""
        self.plain_columns = free & ~np.isin(of, self.parents)
        self._choices = [g for g, x in enumerate(program.groups) if not ordered[g] and len(x.values) > 1]
        """Groups with a choice of levels, without those of orderings."""
        self.n_choices = len(self._choices) + len(self.orders)

    @cached_property
    def blocks(self) -> list[Indices]:
        """Groups that rules over levels relate, directly or through other groups, with at least two groups each."""
        of = list(range(len(self.program.groups)))
        for row in self.program.base_rows:
            columns = np.concatenate([np.flatnonzero(row.form.linear), row.form.rows, row.form.cols])
            related = {of[g] for g in self.program.group_of[columns[columns < self.program.n_z]].tolist()}
            of = [min(related) if k in related else k for k in of]
        return [np.flatnonzero(np.array(of) == k) for k in sorted(set(of)) if of.count(k) > 1]

    # -- all moves of a kind ------------------------------------------------------------------------------------

    def latent(self, levels: Indices, memory: Indices) -> Indices:
        """Return latent levels, with those of inactive groups from ``memory``, (G,): (..., G) -> (..., G)."""
        return np.where(levels == self._off, memory, levels)

    def singles(self, levels: Indices, latent: Indices) -> tuple[Indices, Indices]:
        """Return every other level of every active group, then every swap: owner (N,), latent levels (N, G)."""
        groups, targets = self._levels
        free = (levels != self._off)[:, groups] & (levels[:, groups] != targets)
        rows, moves = np.nonzero(free)
        moved = latent[rows]
        moved[np.arange(len(rows)), groups[moves]] = targets[moves]
        owner, swapped = self._swapped(latent)
        return np.concatenate([rows, owner]), np.concatenate([moved, swapped])

    def structural(self, levels: Indices, latent: Indices) -> tuple[Indices, Indices]:
        """Return moves that can affect several groups (other levels of parents, and swaps): owner (N,), latent levels (N, G)."""
        owners, moved, everyone = [], [], np.arange(len(levels))
        for g in self.parents:
            group = self.program.groups[g]
            on = levels[:, g] != self._off[g]
            for level in range(group.n_levels):
                rows = everyone[on & (levels[:, g] != level)]
                trial = latent[rows]
                trial[:, g] = level
                owners.append(rows)
                moved.append(trial)
        owner, swapped = self._swapped(latent)
        return np.concatenate([*owners, owner]), np.concatenate([*moved, swapped])

    def pairs(
        self, levels: Indices, latent: Indices, count: int, rng: np.random.Generator, within: Indices | None = None
    ) -> Indices:
        """Return random pair moves of one point, (G,): latent levels (count, G), or all pair moves if there are fewer.

        Args:
            within: groups, (k,), one of which both moves change; None: all groups.
        """
        _, first = self.singles(levels[None], latent[None])
        if within is not None:
            first = first[np.any(first[:, within] != latent[within], axis=1)]
        if len(first) < 2:
            return first
        total = len(first) * (len(first) - 1) // 2
        i, j = _pair_at(len(first), rng.choice(total, size=count, replace=False) if total > count else np.arange(total))
        both: Indices = np.where(first[i] != latent, first[i], first[j])
        return both

    def _swapped(self, latent: Indices) -> tuple[Indices, Indices]:
        """Return every swap of every point: owner (N,), latent levels (N, G)."""
        trials = [latent[:0]]
        for g, h in self.swaps:
            trial = latent.copy()
            trial[:, [g, h]] = trial[:, [h, g]]
            trials.append(trial)
        return np.tile(np.arange(len(latent)), len(self.swaps)), np.concatenate(trials)

    # -- random moves -------------------------------------------------------------------------------------------

    def change(self, levels: Indices, latent: Indices, choice: int, rng: np.random.Generator) -> Indices:
        """Return one point's latent levels, (G,), after a random change of one choice: another level, or a swap in an ordering.

        Args:
            levels: of the point, (G,); an inactive group stays as it is.
            choice: below ``n_choices``.
        """
        changed = latent.copy()
        if choice >= len(self._choices):
            i, j = rng.choice(self.orders[choice - len(self._choices)], size=2, replace=False)
            changed[[i, j]] = changed[[j, i]]
            return changed
        g = self._choices[choice]
        n_levels = len(self.program.groups[g].values)
        if levels[g] != self._off[g]:
            changed[g] = (changed[g] + 1 + rng.integers(n_levels - 1)) % n_levels  # any level except the present one
        return changed

    def walk(
        self,
        legality: Legality,
        starts: Indices,
        steps: int,
        rng: np.random.Generator,
        deadline: Deadline = NEVER,
    ) -> Indices:
        """Walk randomly by legal single moves from each start, until the deadline: (R, G) levels -> (R, G) latent levels."""
        n_levels = self.program.n_levels
        latent: Indices = np.minimum(starts, n_levels - 1)
        for _ in range(steps if len(n_levels) else 0):
            if deadline.passed:
                break
            trial = latent.copy()
            groups = rng.integers(len(n_levels), size=len(latent))
            trial[np.arange(len(latent)), groups] = rng.integers(n_levels[groups])
            for members in self.orders:
                rows, place = np.nonzero(groups[:, None] == members)
                other = members[(place + rng.integers(1, len(members), size=len(rows))) % len(members)]
                trial[rows, groups[rows]], trial[rows, other] = latent[rows, other], latent[rows, groups[rows]]
            legal = legality.check(legality.effective(trial))
            latent[legal] = trial[legal]
        return latent


def _pair_at(n: int, places: Indices) -> tuple[Indices, Indices]:
    """Return the pairs i < j < n at given positions of their row-major list, without forming the list: (k,) -> (k,), (k,)."""
    before = np.cumsum([0, *range(n - 1, 0, -1)])  # number of pairs in the rows before each
    i = np.searchsorted(before, places, side="right") - 1
    return i, places - before[i] + i + 1


def moves_of(program: BinaryProgram) -> Moves:
    """Return the moves of a program, cached in it."""
    return program.once("moves", lambda: Moves(program))
