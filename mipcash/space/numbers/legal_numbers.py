"""The legal set of the numerical parameters ("numbers") at fixed levels, a union of parts, with draws and corrections.

Where the set is a good share of its bounding box, a draw is the first legal one of some uniform draws. Otherwise it is the end
of a walk. A walk is hit-and-run with shrinkage (slice sampling over a line). Its stationary distribution is uniform over the set. A
step may cross a gap between pieces of the set on its line. If parts lie in different hyperplanes, each walk stays in one of them.
Lines run along differences of vertices, which follow the shape of the set however thin it is, along axes and at random.
Numbers on a log scale are uniform on that scale: steps along their axes are measured on it, other points are weighted by 1 / x.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mipcash.modelling.domains import SNAP
from mipcash.program.forms import Indices, Vector
from mipcash.space.numbers.part import NumberRules

SHRINKAGES = 40
"""Number of times a step is shortened before the walk stays at its point."""
SHORTEST = 1e-12
"""Length, relative to the legal ranges, up to which a walk stays: the number of draws must not be a matter of rounding."""
MIXING = 10
"""Number of steps per dimension until a walk has forgotten its start."""
BATCH = 128
"""Number of uniform draws from the bounding box of which the first legal one is taken. If none is legal, there is a walk."""
LONGEST = 500
"""Largest number of steps of a walk: a walk over a hundred numbers stays closer to the middle where it began."""


NEAREST = 4
"""Number of parts, those with the least violation, that illegal numbers are moved into, each by linear programs."""


@dataclass(frozen=True)
class LegalNumbers:
    """Parts of the legal set over the same numbers, at least one."""

    parts: tuple[NumberRules, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the numbers, in the order of the coordinates."""
        return self.parts[0].labels

    def part_at(self, x: Vector, tolerance: float = 1.0) -> NumberRules | None:
        """Return the first part that contains x, or None."""
        if not self._stacks:
            return next((part for part in self.parts if part.legal(x, tolerance)), None)
        if tolerance not in self._edges:
            edges = [part.edges(tolerance) for part in self.parts]
            self._edges[tolerance] = tuple(np.concatenate([of[end] for of in edges]) for end in (2, 3))
        (low, high, *_), (row_low, row_high) = self.parts[0].edges(tolerance), self._edges[tolerance]
        if (x < low).any() or (x > high).any():
            return None
        body = self._linear @ x
        inside = np.logical_and.reduceat((body >= row_low) & (body <= row_high), self._first)
        return self.parts[int(np.argmax(inside))] if inside.any() else None

    @cached_property
    def _stacks(self) -> bool:
        """True if the rows of all parts are evaluated together: there are several parts, all with linear rules alone."""
        return len(self.parts) > 1 and all(len(p.row_low) and not len(p.products) for p in self.parts)

    @cached_property
    def _linear(self) -> Vector:
        """Rows of all parts, one part after the other."""
        return np.concatenate([part.linear for part in self.parts])

    @cached_property
    def _first(self) -> Indices:
        """Index of the first row of each part."""
        return np.cumsum([0, *(len(part.row_low) for part in self.parts[:-1])])

    @cached_property
    def _edges(self) -> dict[float, tuple[Vector, ...]]:
        """Tolerance -> lower and upper bounds of all rows."""
        return {}

    def legal(self, x: Vector, tolerance: float = 1.0) -> bool:
        """Return True if x lies in some part; ``tolerance`` as in ``NumberRules.legal``."""
        return self.part_at(x, tolerance) is not None

    def clean(self, x: Vector) -> Vector | None:
        """Return x cleaned for a proposal (``NumberRules.clean``), in its own or the nearest part; None if impossible."""
        here = self.part_at(x)
        if here is not None and (found := here.clean(x)) is not None:
            return found
        nearest = sorted(self.parts, key=lambda part: part.missed(x))[:NEAREST]
        width = np.maximum(self.parts[0].high - self.parts[0].low, 1e-300)
        near = [y for y in (part.clean(x) for part in nearest) if y is not None]
        return min(near, key=lambda y: float(np.abs((y - x) / width).sum()), default=None)

    def beside(self, x: Vector, rng: np.random.Generator) -> Vector | None:
        """Return the numbers nearest to x in another part, drawn at random, the more likely the less x violates its rules."""
        missed = np.array([part.missed(x) for part in self.parts])
        away = np.flatnonzero(missed > 1.0)
        keys = missed[away] * rng.exponential(size=len(away))
        found = (self.parts[k].clean(x) for k in away[np.argsort(keys)[:NEAREST]].tolist())
        return next((y for y in found if y is not None), None)

    def spread(self, start: Vector, rng: np.random.Generator) -> Vector:
        """Draw a point from the whole legal set: uniformly from its bounding box, or by a walk from the centre of a random part.

        Args:
            start: legal start of the walk if the centre of the part is unknown.
        """
        if len(self.parts) == 1 and (drawn := _from_box(self.parts[0], rng)) is not None:
            return drawn
        for k in rng.permutation(len(self.parts)).tolist():
            part: NumberRules = self.parts[k]
            if (found := part.on_equations(rng)) is not None:
                return found
            middle = part.centre
            if middle is not None:
                if part.is_point:
                    return np.array(middle)
                start = middle
                break
        return self.walk(start, min(LONGEST, MIXING * len(start)), rng)

    def walk(self, start: Vector, steps: int, rng: np.random.Generator) -> Vector:
        """Walk from a legal start without leaving the legal set; an illegal start is returned unchanged."""
        x, here = start.copy(), self.part_at(start)
        if here is None:
            return x
        lines = _Lines(here, long=steps >= MIXING)
        for _ in range(steps):
            axis = lines.axis(rng)
            if axis is not None:
                x = self._axis_step(x, axis, rng)
                continue
            direction, whole = lines.draw(rng)
            if direction is not None:
                x = self._step(x, direction, whole, rng)
        return x

    def _axis_step(self, x: Vector, k: int, rng: np.random.Generator) -> Vector:
        """Draw another value of one real, uniform on its own scale."""
        part = self.parts[0]
        scaled = np.log if part.log[k] else np.asarray
        low, high, here = float(scaled(part.low[k])), float(scaled(part.high[k])), float(scaled(x[k]))
        left, right = low, high
        least = SHORTEST * float(part.room[k]) / (max(abs(float(x[k])), 1e-300) if part.log[k] else 1.0)
        for _ in range(SHRINKAGES):
            if right - left <= least:
                return x
            at = float(rng.uniform(left, right))
            trial = x.copy()
            trial[k] = min(part.high[k], max(part.low[k], np.exp(at) if part.log[k] else at))
            if self.legal(trial, tolerance=0.0):
                return trial
            left, right = (at, right) if at < here else (left, at)
        return x

    def _step(self, x: Vector, direction: Vector, whole: bool, rng: np.random.Generator) -> Vector:
        """Draw a point on a line, uniform over its legal part (among the pieces that shrinkage reaches).

        Args:
            whole: take only whole multiples of the direction.
        """
        part = self.parts[0]
        rows = len(part.segments[0]) if len(self.parts) == 1 else len(x)
        matrix, sizes, least, low, high = (a[:rows] for a in part.segments)
        slope = matrix @ direction
        at = np.abs(slope) > least + 1e-14 * (sizes @ np.abs(direction))
        if not at[: len(x)].any():
            return x
        body, slope = (matrix @ x)[at], slope[at]
        to_low, to_high = (low[at] - body) / slope, (high[at] - body) / slope
        left = min(0.0, float(np.minimum(to_low, to_high).max()))
        right = max(0.0, float(np.maximum(to_low, to_high).min()))
        log, scaled = part.log, bool(part.log.any())
        level = np.log(x[log]).sum() - np.log(rng.random()) if scaled else 0.0
        reach = float((np.abs(direction) / part.room).max())
        if whole:
            left, right = float(np.ceil(left - SNAP)), float(np.floor(right + SNAP))
        for _ in range(SHRINKAGES):
            if (right - left) * reach <= SHORTEST:
                return x
            # + 0.0: a range from 0.0 to -0.0 counts as negative
            t = float(rng.integers(int(left), int(right) + 1) if whole else rng.uniform(left, right + 0.0))
            trial = np.minimum(np.maximum(x + t * direction, part.low), part.high)
            if (not scaled or np.log(trial[log]).sum() <= level) and self.legal(trial, tolerance=0.0):
                return trial
            left, right = (t + whole, right) if t < 0 else (left, t - whole)
        return x


class _Lines:
    """Directions of the lines of a walk, fixed before the walk begins so that its steps are reversible."""

    def __init__(self, part: NumberRules, long: bool) -> None:
        self._part = part
        self._integers, self._null = part.directions, part.null_space
        equations = part.equal[part.products]
        bound = np.any(part.linear[part.equal] != 0, axis=0) | np.any(part.quadratic[equations] != 0, axis=(0, 1))
        self._axes = np.flatnonzero(~part.integer & ~bound)
        # axes are drawn often, since from a corner nearly every oblique line leaves the set on both sides
        self._axis_share = 0.6 if np.any(part.log) else 0.3
        corners = part.corners if long and len(self._null) > 1 and not np.any(part.integer) else None
        self._corners = corners if corners is not None and len(corners) > 1 else None

    def axis(self, rng: np.random.Generator) -> int | None:
        """Return the index of a number that moves alone in this step, on its own scale; None for an oblique line."""
        if not len(self._axes) or rng.random() >= self._axis_share:
            return None
        return int(self._axes[rng.integers(len(self._axes))])

    def draw(self, rng: np.random.Generator) -> tuple[Vector | None, bool]:
        """Return a direction in natural units (None if nothing can move), and True if only whole multiples of it are allowed."""
        kinds = int(bool(len(self._integers))) + int(bool(len(self._null)))
        if not kinds:
            return None, False
        if len(self._integers) and (kinds == 1 or rng.random() < 0.5):
            return self._integers[rng.integers(len(self._integers))], True
        kind = rng.random()
        if self._corners is not None and kind < 0.6:
            a, b = rng.choice(len(self._corners), size=2, replace=False)
            return self._corners[a] - self._corners[b], False
        # a projection, which does not depend on the basis that a processor finds
        return (self._null @ rng.normal(size=self._null.shape[1])) @ self._null * self._part._width, False


def _from_box(part: NumberRules, rng: np.random.Generator) -> Vector | None:
    """Return the first legal one of some draws that are uniform in the bounding box; None if there is none, or an equation."""
    (low, high), log = part.ends, part.log
    if part.equal.any():
        return None
    unit = rng.random((BATCH, len(low)))
    x = low + unit * (high - low)
    x[:, log] = low[log] * (high[log] / low[log]) ** unit[:, log]
    # the ends may lie between two values of a number with a step, which are counted from its own lower bound
    step = np.where(part.integer, part.step, 1.0)
    first, last = np.ceil((low - part.low) / step - SNAP), np.floor((high - part.low) / step + SNAP)
    on_grid = np.minimum(part.low + (first + np.floor(unit * (last - first + 1.0))) * step, part.high)
    on_grid = np.where(log, part.low + np.clip(np.round((x - part.low) / step), first, last) * step, on_grid)
    x = np.where(part.integer, on_grid, x)
    flat = ~part.curved
    body = x @ part.linear[flat].T
    likely = ((body >= part.row_low[flat]) & (body <= part.row_high[flat])).all(axis=1)
    return next((each for each in x[likely] if part.legal(each, tolerance=0.0)), None)
