"""The rules on the numerical parameters ("numbers") at fixed levels of all discrete parameters.

Notation
    x (k,)  natural values of the active numbers that occur in rules, in the order of ``labels``
    low_r <= a_r . x + x'Q_r x <= high_r   for each rule r

If rules depend on auxiliary variables (including the indicators of disjuncts), each combination of their values gives a part
of the legal set, and the set is the union of its parts.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mipcash.backends.polytope import Polytope
from mipcash.modelling.domains import SNAP
from mipcash.program.forms import Indices, Vector
from mipcash.space.numbers.lattice import directions_of

EPS = float(np.finfo(float).eps)
STRICT = 16.0
"""Number of rounding errors by which a corrected number stays clear of an inequality, whatever the order of its sum."""
HELD = 1e4
"""Cost of moving a number away from a bound, relative to moving another number by the same fraction of its range."""
CORRECTIONS = 4
THIN = 8.0
"""A slab ``low <= a . x <= high`` is thin if fewer steps of one of its integers fit in: alone, that integer hardly moves."""


@dataclass(frozen=True)
class NumberRules:
    """Rules over numbers (see the module's notation).

    Attributes:
        labels: k names.
        low, high: natural bounds of x, shape (k,).
        step: distance between neighbouring values of an integer or a real with a step, 0 for any other real, shape (k,).
        log: True for numbers that are searched on a log scale, shape (k,).
        near: distance from the lower bound within which a number is set to it, shape (k,); smaller on a log scale.
        linear: shape (m, k).
        quadratic: Q_r of the rules that multiply numbers, symmetric, shape (q, k, k).
        products: indices of these rules, shape (q,).
        row_low, row_high: shape (m,).
        slack: tolerance of each rule, shape (m,).
        size: magnitude of the terms moved into each rule's bounds, shape (m,); it limits the precision of the rule's sum.
        plain: True for rules with at most two terms as written, shape (m,), which can be evaluated in one order only.
        names: rule names.
    """

    labels: tuple[str, ...]
    low: Vector
    high: Vector
    step: Vector
    log: NDArray[np.bool_]
    near: Vector
    linear: Vector
    quadratic: Vector
    products: Indices
    row_low: Vector
    row_high: Vector
    slack: Vector
    size: Vector
    plain: NDArray[np.bool_]
    names: tuple[str, ...]

    def part(self, rows: Indices) -> NumberRules:
        """Return the rules with the given indices, in ascending order, over the same numbers."""
        place = np.full(len(self.row_low), -1)
        place[rows] = np.arange(len(rows))
        inside = place[self.products] >= 0
        return replace(
            self,
            linear=self.linear[rows],
            quadratic=self.quadratic[inside],
            products=place[self.products[inside]],
            row_low=self.row_low[rows],
            row_high=self.row_high[rows],
            slack=self.slack[rows],
            size=self.size[rows],
            plain=self.plain[rows],
            names=tuple(self.names[r] for r in rows.tolist()),
        )

    @cached_property
    def point_set_key(self) -> Hashable:
        """Key that is equal for rules over the same numbers with the same coefficients and bounds."""
        arrays = (self.linear, self.quadratic, self.products, self.row_low, self.row_high)
        return (self.labels, *(a.tobytes() for a in arrays))

    @property
    def key(self) -> Hashable:
        """Key that is equal for equal rules, tolerances included."""
        return (self.point_set_key, *(a.tobytes() for a in (self.slack, self.size, self.plain)), self.names)

    @property
    def integer(self) -> NDArray[np.bool_]:
        """True for numbers that move in steps: integers and reals with a step, shape (k,)."""
        return np.asarray(self.step > 0)

    @cached_property
    def curved(self) -> NDArray[np.bool_]:
        """True for rules that multiply numbers, shape (m,)."""
        curved = np.zeros(len(self.row_low), dtype=bool)
        curved[self.products] = True
        return curved

    @cached_property
    def equal(self) -> NDArray[np.bool_]:
        """True for rules that are equations, shape (m,)."""
        return np.asarray(self.row_low == self.row_high)

    @cached_property
    def whole(self) -> NDArray[np.bool_]:
        """True for rules over numbers with a step only, shape (m,). No real can repair them: they hold within their slack."""
        whole: NDArray[np.bool_] = ~np.any(self.linear[:, ~self.integer], axis=1)
        whole[self.products] &= ~np.any(self.quadratic[:, ~self.integer], axis=(1, 2))
        return whole

    @cached_property
    def segments(self) -> tuple[Vector, Vector, Vector, Vector, Vector]:
        """The k bounds and the r linear inequalities as rows, for cutting a line to the segment inside them.

        The arrays are coefficients, (k + r, k), their absolute values, the slope up to which a row counts as constant along a line,
        and lower and upper bounds, (k + r,).
        """
        rows, k = ~self.curved & ~self.equal, len(self.low)
        least = np.where(self.integer, 0.0, 1e-14 * (self.high - self.low))
        return (
            np.concatenate([np.eye(k), self.linear[rows]]),
            np.concatenate([np.zeros((k, k)), np.abs(self.linear[rows])]),
            np.concatenate([least, np.zeros(np.count_nonzero(rows))]),
            np.concatenate([self.low, self.row_low[rows]]),
            np.concatenate([self.high, self.row_high[rows]]),
        )

    @cached_property
    def polytope(self) -> Polytope:
        """The linear rules, integers relaxed to reals."""
        flat = ~self.curved
        return Polytope(self.low, self.high, self.linear[flat], self.row_low[flat], self.row_high[flat])

    def body(self, x: Vector) -> Vector:
        """Return the values of the rules' bodies at x, shape (m,)."""
        value: Vector = self.linear @ x
        if len(self.products):
            value[self.products] += np.einsum("mij,i,j->m", self.quadratic, x, x)
        return value

    def gradient(self, x: Vector) -> Vector:
        """Return the derivatives of the bodies, shape (m, k)."""
        value: Vector = self.linear.copy()
        if len(self.products):
            value[self.products] += 2.0 * np.einsum("mij,j->mi", self.quadratic, x)
        return value

    def legal(self, x: Vector, tolerance: float = 1.0) -> bool:
        """Return True if x is within its bounds and satisfies every rule.

        Args:
            tolerance: factor of the slack of inequalities. Equations keep at least half of theirs, rules over integers all of it.
        """
        low, high, row_low, row_high = self.edges(tolerance)
        if (x < low).any() or (x > high).any():
            return False
        body = self.body(x)
        return bool((body >= row_low).all() and (body <= row_high).all())

    def edges(self, tolerance: float) -> tuple[Vector, Vector, Vector, Vector]:
        """Return the bounds of the numbers, (k,), and of the rules, (m,), as ``legal`` compares them."""
        if tolerance not in self._edges:
            slack = np.where(self.whole, 1.0, np.where(self.equal, max(0.5, tolerance), tolerance)) * self.slack
            room = 1e-9 * np.maximum(np.abs(self.low), np.abs(self.high))
            self._edges[tolerance] = self.low - room, self.high + room, self.row_low - slack, self.row_high + slack
        return self._edges[tolerance]

    @cached_property
    def _edges(self) -> dict[float, tuple[Vector, Vector, Vector, Vector]]:
        return {}  # tolerance -> edges

    def missed(self, x: Vector) -> float:
        """Return the total violation of the rules at x, relative to their slacks."""
        body = self.body(x)
        missed = np.maximum(np.maximum(self.row_low - body, body - self.row_high), 0.0)
        return float(np.sum(missed / np.maximum(self.slack, 1e-300)))

    # -- clean values -------------------------------------------------------------------------------------------

    def clean(self, x: Vector) -> Vector | None:
        """Return nearly the same numbers that satisfy the rules in floats: bounds and zeros exact, equations up to rounding.

        If other rules leave an inequality no room (``x <= 1`` together with ``x >= 1``), it holds within its slack.

        Returns:
            None if there are no such numbers near x.
        """
        snapped, whole = self._snapped(x), self._on_grid(x)
        body, (_, _, least, most) = self.body(whole), self.edges(1.0)
        if (self.whole & ((body < least) | (body > most))).any():
            return None  # integers stay as they are
        candidates = [snapped] if np.array_equal(snapped, whole) else [snapped, whole]
        found = self._first_kept(candidates)
        if found is not None:
            return found
        for margin in (1.0, 0.0):
            for start in candidates:
                moved = self._corrected(start, margin)
                if moved is not None and self.legal(moved):
                    return moved
        return next((y for y in (self._refined(snapped), snapped, whole) if self.legal(y)), None)

    @cached_property
    def ends(self) -> tuple[Vector, Vector]:
        """Bounds of each number from its domain and the rules over it alone, as floats evaluate them: (k,), (k,)."""
        low, high = self.low.copy(), self.high.copy()
        for r in np.flatnonzero((np.count_nonzero(self.linear, axis=1) == 1) & ~self.curved):
            k = int(np.flatnonzero(self.linear[r])[0])
            c = float(self.linear[r, k])
            least, most = (self.row_low[r], self.row_high[r]) if c > 0 else (self.row_high[r], self.row_low[r])
            if np.isfinite(least):
                low[k] = max(low[k], _evaluated(c, least, self.row_low[r], self.row_high[r], np.inf))
            if np.isfinite(most):
                high[k] = min(high[k], _evaluated(c, most, self.row_low[r], self.row_high[r], -np.inf))
        crossed = low > high
        return np.where(crossed, self.low, low), np.where(crossed, self.high, high)

    def _snapped(self, x: Vector) -> Vector:
        """Round the numbers to bounds, or to zero, where they are within a rounding error."""
        whole = self._on_grid(x)
        low, high = self.ends
        moved = self._snapped_within(whole, high - low)
        # rules may leave so little of a range that rounding relative to the whole range moves no number to its bound
        return moved if np.array_equal(moved, whole) else self._snapped_within(whole, self._left_at(whole))

    def _short(self, x: Vector) -> Vector:
        """Round as in ``_snapped``, to twelve digits: terms of few digits often add up to a bound exactly."""
        return self._snapped(np.array([float(f"{v:.12g}") for v in x.tolist()]))

    def _first_kept(self, points: Sequence[Vector]) -> Vector | None:
        """Return the first point that satisfies the rules in floats: as it is, with fewer digits, or after refinement."""
        for near in points:
            for tried in (near, self._short(near)):
                if self._kept(tried):
                    return tried
            refined = self._refined(near)
            for tried in (self._short(refined), refined):
                if self._kept(tried):
                    return tried
        return None

    def _snapped_within(self, x: Vector, width: Vector) -> Vector:
        """Round as in ``_snapped``, for reals of a given width, shape (k,)."""
        (low, high), real, far = self.ends, ~self.integer, SNAP * width
        x = np.where(real & (x <= low + np.minimum(self.near, far)), low, np.where(real & (x >= high - far), high, x))
        return np.where((np.abs(x) <= far) & (self.low <= 0.0) & (self.high >= 0.0), 0.0, x) + 0.0

    def _left_at(self, x: Vector) -> Vector:
        """Return the width of each number's range under the linear rules at the integers of x, shape (k,): interval arithmetic."""
        (low, high), flat = (end.copy() for end in self.ends), ~self.curved
        low[self.integer] = high[self.integer] = x[self.integer]
        a, widest = self.linear[flat], np.maximum(high - low, 0.0)
        there = a != 0.0
        divisor = np.where(there, a, 1.0)
        for _ in range(CORRECTIONS):
            ends = a * low, a * high
            least, most = np.minimum(*ends), np.maximum(*ends)
            up = (self.row_high[flat] - least.sum(axis=1))[:, None] + least
            down = (self.row_low[flat] - most.sum(axis=1))[:, None] + most
            below, above = (np.where(a > 0, *pair) / divisor for pair in ((down, up), (up, down)))
            low = np.maximum(low, np.where(there, below, -np.inf).max(axis=0, initial=-np.inf))
            high = np.minimum(high, np.where(there, above, np.inf).min(axis=0, initial=np.inf))
        return np.clip(high - low, 0.0, widest)

    def _on_grid(self, x: Vector) -> Vector:
        """Return the numbers clipped to their bounds, integers rounded to their values."""
        grid = self.low + np.round((x - self.low) / np.where(self.integer, self.step, 1.0)) * self.step
        return np.clip(np.where(self.integer, grid, x), self.low, self.high)

    def _noise(self, x: Vector) -> Vector:
        """Return the possible rounding error of the sum of each rule's terms, shape (m,)."""
        terms = np.abs(self.linear) @ np.abs(x)
        if len(self.products):
            terms[self.products] += np.einsum("mij,i,j->m", np.abs(self.quadratic), np.abs(x), np.abs(x))
        bounds = np.maximum(*(np.where(np.isfinite(b), np.abs(b), 0.0) for b in (self.row_low, self.row_high)))
        noise: Vector = EPS * (terms + bounds + self.size)
        return noise

    def _kept(self, x: Vector) -> bool:
        """Return True if inequalities hold in whatever order they are summed, and equations up to rounding."""
        # there is only one way to evaluate a plain inequality
        body, noise = self.body(x), np.where(self.plain & ~self.equal, 0.0, self._noise(x))
        margin = np.where(self.equal, -4.0, 0.5 * STRICT) * noise
        clear = (body >= self.row_low + margin) & (body <= self.row_high - margin)
        at, first, second = self._terms
        if len(at):  # evaluate them as Python adds, which may differ from a dot product
            value = self.linear[at, first] * x[first] + self.linear[at, second] * x[second] * (second != first)
            clear[at] = (self.row_low[at] <= value) & (value <= self.row_high[at])
        clear |= self.whole & (body >= self.row_low - self.slack) & (body <= self.row_high + self.slack)
        return all(self._exactly_kept(int(r), x) for r in np.flatnonzero(~clear))

    @cached_property
    def _terms(self) -> tuple[Indices, Indices, Indices]:
        """The plain inequalities, with the indices of the numbers in their first and last term."""
        at = np.flatnonzero(self.plain & ~self.equal)
        there = self.linear[at] != 0.0
        return at, np.argmax(there, axis=1), there.shape[1] - 1 - np.argmax(there[:, ::-1], axis=1)

    def _exactly_kept(self, r: int, x: Vector) -> bool:
        """Return True if an inequality holds and its terms and their sum are exact floats."""
        if self.equal[r]:
            return False
        factors: list[tuple[float, ...]] = [
            (float(self.linear[r, i]), float(x[i])) for i in np.flatnonzero(self.linear[r])
        ]
        for matrix in self.quadratic[self.products == r]:
            factors += [
                (float(2.0 * matrix[i, j] if i < j else matrix[i, j]), float(x[i]), float(x[j]))
                for i, j in np.argwhere(np.triu(matrix))
            ]
        total = Fraction(0)
        for term in factors:
            product = math.prod(term)
            if math.prod(map(Fraction, term)) != Fraction(product):
                return False
            total += Fraction(product)
        return total == Fraction(float(total)) and bool(self.row_low[r] <= float(total) <= self.row_high[r])

    def _refined(self, x: Vector) -> Vector:
        """Apply Newton's method to equations and violated inequalities, over the reals that are not at a bound, or over all."""
        for _ in range(CORRECTIONS):
            body, clear = self.body(x), np.where(self.equal, 0.0, STRICT) * self._noise(x)
            below, above = self.row_low + clear - body, self.row_high - clear - body
            active = self.equal | (below > 0.0) | (above < 0.0)
            inside = ~self.integer & (x > self.low) & (x < self.high) & (x != 0.0)
            if not np.any(inside):  # all are at bounds that the equations exclude by less than a solver's tolerance
                inside = ~self.integer
            if self._kept(x) or not np.any(inside) or not np.any(active):
                break
            missed = np.where(below > 0.0, below, above)[active]
            slope = (self.gradient(x) * self._width)[active][:, inside]
            x = x.copy()
            x[inside] += np.linalg.lstsq(slope, missed, rcond=None)[0] * self._width[inside]
            x = np.clip(x, self.low, self.high)
        return x

    def _corrected(self, x: Vector, margin: float) -> Vector | None:
        """Return x after the least change of its reals, by linear programs over the linearised rules; None if there is none."""
        real = np.flatnonzero(~self.integer)
        k = len(real)
        if not k:
            return None
        for _ in range(CORRECTIONS):
            body, slope, width = self.body(x), self.gradient(x)[:, real], (self.high - self.low)[real]
            clear = np.where(self.equal, 0.0, margin * STRICT * self._noise(x))
            movable = np.any(
                slope, axis=1
            )  # all other rules depend on integers alone, so moving reals cannot repair them
            both = Polytope(
                np.zeros(2 * k),
                np.concatenate([self.high[real] - x[real], x[real] - self.low[real]]),
                np.concatenate([slope, -slope], axis=1)[movable],
                (self.row_low + clear - body)[movable],
                (self.row_high - clear - body)[movable],
            )
            # a number at a bound stays there as long as any other can move
            at_bound = (x <= self.low) | (x >= self.high) | (x == 0.0)
            weight = np.where(at_bound[real], HELD, 1.0) / width
            change = both.minimise(np.concatenate([weight, weight]))
            if change is None:
                return None
            x = x.copy()
            x[real] = np.clip(x[real] + change[:k] - change[k:], self.low[real], self.high[real])
            found = self._first_kept([self._snapped(x), x])
            if found is not None:
                return found
        return x

    # -- samples ------------------------------------------------------------------------------------------------

    def on_equations(self, rng: np.random.Generator) -> Vector | None:
        """Draw numbers within their bounds and move them onto the equations with products, which a walk along lines would leave.

        Returns:
            None if there are no such equations, or none of a few draws can be moved.
        """
        if not np.any(self.equal & self.curved):
            return None
        low, high = np.minimum(*self.polytope.tightened), self.polytope.tightened[1]
        for _ in range(CORRECTIONS):
            drawn = rng.uniform(low, high)
            drawn[self.log] = np.exp(rng.uniform(np.log(low[self.log]), np.log(high[self.log])))
            if (found := self.clean(self._on_grid(drawn))) is not None:
                return found
        return None

    # -- walks --------------------------------------------------------------------------------------------------

    @cached_property
    def centre(self) -> Vector | None:
        """A legal point near the mean of the corners; None if none is found, or if rules contain products."""
        if self.corners is None:
            return None
        middle = self._snapped(self.corners.mean(axis=0))
        return middle if self.legal(middle) else self.clean(middle)

    @cached_property
    def is_point(self) -> bool:
        """True if the set is a single point: the corners coincide."""
        return self.corners is not None and bool(np.all(np.ptp(self.corners, axis=0) <= SNAP * self._width))

    @cached_property
    def corners(self) -> Vector | None:
        """Vertices that are extreme in random directions with a fixed seed, integers relaxed to reals, (c, k).

        None if rules contain products or no vertex is found. They depend on the set alone, so a space that was used before draws
        the same samples as a new one.
        """
        if np.any(self.curved):
            return None
        rng = np.random.default_rng(0)
        drawn = rng.normal(size=(self._n_corners // 2, len(self.low))) / self._width
        # in pairs of opposite directions, so that a set that is not a point yields different vertices
        found = [self.polytope.minimise(cost) for cost in (*drawn, *-drawn)]
        corners = [x for x in found if x is not None]
        return np.array(corners) if len(corners) == len(found) else None

    @property
    def _n_corners(self) -> int:
        return min(24, 2 * len(self.labels) + 2)

    @cached_property
    def room(self) -> Vector:
        """Width that the linear rules leave to each number, (k,), above 0; integers are at their lower ends."""
        return np.maximum(self._left_at(self.low), 1e-300)

    @cached_property
    def _width(self) -> Vector:
        return np.maximum(self.high - self.low, 1e-12)

    @cached_property
    def directions(self) -> Vector:
        """Directions of integers, the other numbers moved so that linear equations hold, and thin slabs too; shape (d, k)."""
        rows = self.linear[self.equal & ~self.curved]
        found = directions_of(rows, self.integer, self.step)
        if not len(self._slabs):
            return found
        along = directions_of(np.concatenate([rows, self._slabs]), self.integer, self.step)
        return np.concatenate([found, along[~(along[:, None] == found).all(axis=2).any(axis=1)]])

    @cached_property
    def _slabs(self) -> Vector:
        """Rows of thin slabs, the first coefficient scaled to 1, (s, k)."""
        ends: dict[tuple[float, ...], tuple[float, float]] = {}
        for r in np.flatnonzero(~self.equal & ~self.curved & (self.linear[:, self.integer] != 0).any(axis=1)).tolist():
            row = self.linear[r]
            scale = 1.0 / float(row[np.flatnonzero(row)[0]])
            low, high = sorted((float(self.row_low[r]) * scale, float(self.row_high[r]) * scale))
            key = tuple((row * scale).tolist())
            least, most = ends.get(key, (-math.inf, math.inf))
            ends[key] = max(low, least), min(high, most)
        thin = [row for row, (low, high) in ends.items() if high - low < THIN * np.abs(row * self.step).max()]
        return np.array([row for row in thin if np.count_nonzero(row) > 1]).reshape(-1, len(self.low))

    @cached_property
    def null_space(self) -> Vector:
        """Directions of the reals that preserve linear equations, scaled to the ranges: orthonormal rows, shape (d, k)."""
        real = np.flatnonzero(~self.integer)
        rows = (self.linear * self._width)[self.equal & ~self.curved][:, real]
        whole = np.zeros((len(real), len(self.low)))
        whole[np.arange(len(real)), real] = 1.0
        if not len(rows) or not len(real):
            return whole
        _, values, right = np.linalg.svd(rows)
        rank = int(np.sum(values > 1e-10 * max(1.0, float(values.max(initial=0.0)))))
        # a step along a residue of rounding would leave a bound that an equation pins the number to
        return np.where(np.abs(found := right[rank:] @ whole) < 1e-12, 0.0, found)


def _evaluated(c: float, bound: float, low: float, high: float, inward: float) -> float:
    """Return the float nearest to ``bound / c``, searched inwards, for which ``c x`` evaluates within [low, high]."""
    x = bound / c
    for _ in range(8):
        if low <= c * x <= high:
            break
        x = float(np.nextafter(x, inward))
    return x
