"""Dominated levels: levels that another level of their group can replace at no cost, whatever the other groups are.

Level b of a group dominates level a if, for every choice of the other open columns v,

    every row:        what b adds to the row minus what a adds   <= 0  (rows written  body <= high).
    the objective:    l_a - l_b + sum_h min_{c open in h} (Q_ac - Q_bc) + sum_numbers min (Q_a - Q_b) v   >= 0.

A legal point with a stays legal with b at no higher cost, so closing a leaves the optimal value unchanged. Closed levels drop out
of the minima of other groups, so the test is repeated until nothing changes (Goldstein's criterion, goldstein1994). The answer
needs no conversion: an optimum without a is an optimum of the given task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mipcash.backends.reductions.reduction import Reduced
from mipcash.backends.task import Cut, Task
from mipcash.program.forms import Booleans, Indices, QuadraticForm, Vector
from mipcash.program.program import BinaryProgram

COMPARED = 2000
"""Maximum number of binaries for which levels are compared."""
EXACT = 1e-12
"""Largest difference of two coefficients, relative to the largest of the row, that is rounding."""


class DominatedLevels:
    """Closes dominated levels; in a start they are exchanged for the levels that dominate them."""

    def accepts(self, task: Task) -> bool:
        """Return True if the base rows are all rows of the program, and its levels are few enough for pairwise comparison."""
        few = 0 < task.program.n_z <= COMPARED
        return few and task.program.has_base_rows

    def apply(self, task: Task) -> Reduced:
        """See ``mipcash.backends.reductions.reduction.Reduction.apply``."""
        replaced = dominated_levels(task)
        if not replaced:
            return Reduced(task)
        fixed = {**task.fixed, **{closed: 0.0 for closed, _ in replaced}}
        return Reduced(replace(task, fixed=fixed, start=_moved(task.start, replaced)))


def dominated_levels(task: Task) -> list[tuple[int, int]]:
    """Return pairs (closed column, column that replaces it) in the order of elimination, for a task that the reduction accepts."""
    program = task.program
    low, high = program.low[: program.n].copy(), program.high[: program.n].copy()
    for column, value in task.fixed.items():
        low[column] = high[column] = value
    if "exchangeable" not in program.derived:
        program.derived["exchangeable"] = _exchangeable(program)
    exchangeable: list[Booleans] = _within_cuts(program, program.derived["exchangeable"], task.cuts)
    return _Elimination(program, task.form, exchangeable, low, high).run()


def _moved(start: Vector | None, replaced: Sequence[tuple[int, int]]) -> Vector | None:
    """Return a start without closed levels, at no higher cost than the given one; its other columns stay."""
    if start is None:
        return None
    start = start.copy()
    for closed, kept in replaced:
        if start[closed] > 0.5:
            start[closed], start[kept] = 0.0, 1.0
    return start


class _Elimination:
    """The repeated test; ``open[c]`` says whether a level is still allowed."""

    def __init__(
        self, program: BinaryProgram, form: QuadraticForm, exchangeable: list[Booleans], low: Vector, high: Vector
    ) -> None:
        n_z = program.n_z
        self.program, self.exchangeable, self.linear = program, exchangeable, form.linear
        pairs = form.symmetric()[:n_z]
        self.pairs = pairs[:, :n_z]
        numbers = np.flatnonzero(np.any(pairs[:, n_z:] != 0.0, axis=0))
        self.numbers, self.low, self.high = pairs[:, n_z + numbers], low[n_z + numbers], high[n_z + numbers]
        self.required = low[:n_z] > 0.5
        taken = np.bincount(program.group_of[self.required], minlength=len(program.groups)) > 0
        self.open = (high[:n_z] > 0.5) & (self.required | ~taken[program.group_of])
        coupled = np.logical_or.reduceat(self.pairs != 0.0, program.starts, axis=0)
        self.coupled = np.logical_or.reduceat(coupled, program.starts, axis=1)

    def run(self) -> list[tuple[int, int]]:
        """Eliminate until nothing changes; only groups coupled to a group that lost a level are tested again."""
        found: list[tuple[int, int]] = []
        waiting = np.array([bool(e.any()) for e in self.exchangeable])
        candidates = waiting.copy()
        while np.any(waiting):
            g = int(np.argmax(waiting))
            waiting[g] = False
            lost = self._group(g)
            if lost:
                found += lost
                waiting |= self.coupled[g] & candidates
        return found

    def _group(self, g: int) -> list[tuple[int, int]]:
        group = self.program.groups[g]
        span = slice(group.start, group.stop)
        columns, ends = _columns_of(self.program, self.coupled[g])
        pairs = np.where(self.open[columns], self.pairs[span][:, columns], 0.0)
        closed = np.where(self.open[columns], 0.0, np.inf)
        found = []
        for a in np.flatnonzero(self.open[span] & ~self.required[span]):
            others = np.flatnonzero(self.exchangeable[g][a] & self.open[span])
            if not len(others):
                continue
            least = self.linear[group.start + a] - self.linear[group.start + others]
            if len(columns):
                least = least + np.minimum.reduceat(pairs[a] - pairs[others] + closed, ends, axis=1).sum(axis=1)
            if len(self.low):
                slope = self.numbers[group.start + a] - self.numbers[group.start + others]
                least = least + np.minimum(slope * self.low, slope * self.high).sum(axis=1)
            best = int(np.argmax(least))
            if least[best] >= 0.0:
                self.open[group.start + a] = False
                found.append((group.start + int(a), group.start + int(others[best])))
        return found


def _exchangeable(program: BinaryProgram) -> list[Booleans]:
    """Return per group, [a, b], whether b may replace a in every row, whatever the other groups are."""
    rows = [row for row in program.base_rows if np.isfinite(row.low) or np.isfinite(row.high)]
    linear = [row for row in rows if not len(row.form.rows)]
    bodies = np.array([row.form.linear[: program.n_z] for row in linear]).reshape(-1, program.n_z)
    low, high = np.array([row.low for row in linear]), np.array([row.high for row in linear])
    found = _no_larger(program, bodies, low, high)
    for exchangeable in found:
        np.fill_diagonal(exchangeable, False)
    for row in rows:
        if len(row.form.rows):
            least, most = _changes(program, row.form)
            equal = EXACT * float(np.abs(np.concatenate([row.form.linear, row.form.values])).max())
            for g, exchangeable in enumerate(found):
                if np.isfinite(row.high):
                    exchangeable &= most[g] <= equal
                if np.isfinite(row.low):
                    exchangeable &= least[g] >= -equal
    return found


def _no_larger(program: BinaryProgram, bodies: Vector, low: Vector, high: Vector) -> list[Booleans]:
    """Return per group, [a, b], whether b adds no more than a in rows ``low <= bodies z <= high`` (no less if ``low`` binds)."""
    signed = np.concatenate([bodies[np.isfinite(high)], -bodies[np.isfinite(low)]])
    equal = EXACT * np.abs(signed).max(axis=1, initial=0.0)
    found = []
    for group in program.groups:
        part = signed[:, group.start : group.stop]
        kept = np.ptp(part, axis=1) > equal
        part, slack = part[kept], equal[kept][:, None, None]
        found.append(np.all(part[:, None, :] <= part[:, :, None] + slack, axis=0))
    return found


def _columns_of(program: BinaryProgram, chosen: Booleans) -> tuple[Indices, Indices]:
    """Return the columns of the chosen groups, and the position among them where each group begins."""
    sizes = program.sizes[chosen]
    return np.flatnonzero(chosen[program.group_of]), np.cumsum(sizes) - sizes


def _changes(program: BinaryProgram, form: QuadraticForm) -> tuple[list[Vector], list[Vector]]:
    """Return per group, [a, b], the least and greatest change of a quadratic row if b replaces a."""
    pairs, n_z = form.symmetric()[: program.n_z], program.n_z
    coupled = np.logical_or.reduceat(pairs[:, :n_z] != 0.0, program.starts, axis=1)
    low, high = program.low[n_z : program.n], program.high[n_z : program.n]
    least, most = [], []
    for group in program.groups:
        span = slice(group.start, group.stop)
        linear = form.linear[None, span] - form.linear[span, None]
        lower, upper = linear, linear
        columns, ends = _columns_of(program, np.any(coupled[span], axis=0))
        if len(columns):
            part = pairs[span][:, columns]
            change = part[None] - part[:, None]
            lower = lower + np.minimum.reduceat(change, ends, axis=2).sum(axis=2)
            upper = upper + np.maximum.reduceat(change, ends, axis=2).sum(axis=2)
        numbers = np.flatnonzero(np.any(pairs[span, n_z:] != 0.0, axis=0))
        part = pairs[span][:, n_z + numbers]
        slope = part[None] - part[:, None]
        values = np.stack([slope * low[numbers], slope * high[numbers]])
        least.append(lower + values.min(axis=0).sum(axis=2))
        most.append(upper + values.max(axis=0).sum(axis=2))
    return least, most


def _within_cuts(program: BinaryProgram, exchangeable: list[Booleans], cuts: Sequence[Cut]) -> list[Booleans]:
    if not cuts:
        return exchangeable
    bodies = np.zeros((len(cuts), program.n))
    for body, cut in zip(bodies, cuts, strict=True):
        np.add.at(body, cut.columns, cut.values)
    low, high = np.array([c.low for c in cuts], dtype=float), np.array([c.high for c in cuts], dtype=float)
    allowed = _no_larger(program, bodies[:, : program.n_z], low, high)
    return [a & b for a, b in zip(exchangeable, allowed, strict=True)]
