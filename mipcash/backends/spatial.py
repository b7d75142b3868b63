"""Spatial branch and bound over mixed-integer relaxations, for products of two reals.

Notation
    w = s a b        a bilinear column of the program, its factors and its scale; a box is [la, ua] x [lb, ub].
    relaxation       the program with McCormick's four rows for each w over the box of a node (``reductions.mccormick``)

A relaxation contains every legal point of its box. If it is infeasible, so is the box, and its bound is a bound on the box. It is
exact where a factor is fixed, or at the corners of the box; its error is at most s (ua - la)(ub - lb) / 4. A node is solved in four
steps:

    1. Its box is tightened by interval arithmetic over the rows.
    2. Its relaxation is solved.
    3. If the solution with its true products satisfies every row, it is an incumbent. Otherwise one is searched for by Newton's
       method from a solution whose products are nearly right: each step solves the program with its products linearised.
    4. The box is split near the solution, at a factor of the product with the largest violation.

The node with the least bound comes next, so that a limit ends the search with an incumbent and a bound for all legal points.

An integer beyond RESOLVED is relaxed to a real, and one of more than WHOLE values until its box is narrower. It is branched on
like a factor if it is fractional. As an integer it could not be rescaled, and coefficients of 1e-10 beside it are lost in a
solver's tolerances. Where the solver is too imprecise for a node, all integers are relaxed. If nothing else is left to split, the
range of an integer is split: once its integers are fixed, a node is decided exactly.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from mipcash.backends.reductions.mccormick import ROUNDING, linearised, relaxation
from mipcash.backends.reductions.scaling import ScaledProgram
from mipcash.backends.task import (
    ABSOLUTE_GAP,
    FEASIBLE,
    INFEASIBLE,
    OPTIMAL,
    UNKNOWN,
    Answer,
    SolverSettings,
    Task,
)
from mipcash.errors import SolverError, UndecidedError
from mipcash.program.forms import Indices, Vector
from mipcash.program.products import Bilinear
from mipcash.program.program import BinaryProgram
from mipcash.program.unit_scale import set_from_places, stepped_integers

NODES = 1_000
"""Maximum number of nodes; open nodes then remain undecided."""
NATIVE_NODES = 25
"""The same where the solver takes products: it closes most programs in its first node."""
ASIDE = 0.2
"""Minimum distance of a split from the ends of a box, as a share of its width."""
NARROW = 1e-13
"""Width of a box, relative to its ends, below which it is not split."""
EVEN = 1e-11
"""Violation of a product, relative to the product, up to which it counts as satisfied."""
ROUNDS = 8
"""Passes of interval arithmetic over the rows."""
WORTH = 0.99
"""Further passes are made while some range shrinks to less than this share."""
WHOLE = 2.0**24
"""Number of values of an integer from which on it is relaxed to a real."""
RESOLVED = 2.0**26
"""Largest integer of a program that is left to a solver."""
FRACTION = 1e-6
"""Distance to a whole number from which on an integer counts as fractional."""
SHARE = 0.25
"""Share of the remaining time that one relaxation gets."""
FEW = 4
"""Number of factors up to which all corners and middles of the narrowest boxes are tried."""
RADII = (1e-2, 1e-3, 1e-5, 1e-9)
"""Largest change of a factor in each of Newton's steps, relative to it: ten times the error that the step before may have left."""


class ImpreciseError(SolverError):
    """A solver's points violate rows by more than their slack and cannot be repaired."""


Solve = Callable[[Task, SolverSettings], Answer]
Keeps = Callable[[Vector], Vector | None]


@dataclass(frozen=True)
class _Box:
    """Bounds of all base columns of a node, shape (n,) each."""

    low: Vector
    high: Vector

    def held(self, values: dict[int, float]) -> _Box:
        """Return the box with some columns fixed inside it."""
        low, high = self.low.copy(), self.high.copy()
        for column, value in values.items():
            low[column] = high[column] = min(max(value, low[column]), high[column])
        return _Box(low, high)

    def near(self, columns: Vector, at: list[int], radius: float) -> _Box:
        """Return the part of the box in which the columns ``at`` change by at most the share ``radius`` of their values."""
        low, high = self.low.copy(), self.high.copy()
        room = radius * np.abs(columns[at])
        low[at] = np.minimum(np.maximum(low[at], columns[at] - room), high[at])
        high[at] = np.maximum(np.minimum(high[at], columns[at] + room), low[at])
        return _Box(low, high)


def solve_spatially(task: Task, settings: SolverSettings, solve: Solve, keeps: Keeps, native: Solve | None) -> Answer:
    """Minimise a form over a program with products of reals, to the tolerance of its rows.

    Args:
        solve: solves a relaxation, in which bilinear columns are treated as ordinary columns.
        native: solves a relaxation with its products as they are; None if the solver does not accept products of reals.
        keeps: moves base columns, (n,), onto nearby bounds and returns them if they satisfy every row, bound and cut; else None.
    """
    return _Search(task, settings, solve, keeps, native).run()


class _Search:
    """One search; ``queue`` holds boxes ordered by the bound of the parent node."""

    def __init__(self, task: Task, settings: SolverSettings, solve: Solve, keeps: Keeps, native: Solve | None) -> None:
        self.task, self.settings, self.solve, self.keeps, self.native = task, settings, solve, keeps, native or solve
        self.program = task.program
        self.products = task.program.bilinear
        self.integers = split_integers(task.program)
        self.rows = _Rows.of(task.program)
        form = task.form
        terms = np.concatenate([np.flatnonzero(form.linear), form.rows, form.cols])
        coefficients = np.concatenate([[form.constant], form.linear, form.values])
        self.whole = not np.any(task.program.integer[terms] == 0) and not np.any(coefficients % 1.0)
        """True if all values of the objective are whole numbers."""
        self.largest = float(np.abs(coefficients).max())
        self.began = time.perf_counter()
        self.best: Vector | None = None
        self.value = math.inf
        self.prover = ""
        self.queue: list[tuple[float, int, _Box]] = []
        self.pushed = 0
        self.lost = math.inf
        """Least bound of the boxes that were given up."""

    def run(self) -> Answer:
        """Return the best point known, with a bound."""
        if ScaledProgram(self.program).contradictory:  # seen before wide integers are relaxed to reals
            return Answer(INFEASIBLE, None, math.nan, math.inf, 0.0)
        most, limit = NODES if self.native is self.solve else NATIVE_NODES, self.settings.node_limit
        n = self.program.n
        root = _Box(self.program.low[:n], self.program.high[:n]).held(dict(self.task.fixed))
        self._push(-math.inf, root)
        for k in range(most if limit is None else min(most, limit)):
            if not self.queue or self._closed(self.queue[0][0]) or self._left <= 0.0:
                break
            bound, _, box = heapq.heappop(self.queue)
            self._node(bound, box, first=k == 0)
        return self._answer()

    @property
    def _left(self) -> float:
        return self.settings.time_limit - (time.perf_counter() - self.began)

    def _closed(self, bound: float) -> bool:
        """Return True if no point at this bound or above it would improve the incumbent by more than the gap."""
        if math.isinf(bound):
            return bound > 0.0
        return bound >= self.value - max(ABSOLUTE_GAP, self.settings.gap * max(abs(self.value), abs(bound)))

    def _push(self, bound: float, box: _Box) -> None:
        better = self._better(box)
        tight = None if better is None else self.rows.tightened(better, self.products)
        if tight is not None:
            linear, products, noise = self._least(tight)
            bound = self._raised(max(bound, self.task.form.constant + float(linear.sum() + products.sum()) - noise))
            self.pushed += 1
            heapq.heappush(self.queue, (bound, self.pushed, tight))

    def _raised(self, bound: float) -> float:
        """Return a bound, raised to the next whole number if all values of the objective are whole."""
        if not self.whole or math.isinf(bound):
            return bound
        return max(bound, float(math.ceil(bound - FRACTION * max(1.0, abs(bound), self.largest))))

    def _least(self, box: _Box) -> tuple[Vector, Vector, float]:
        """Return the least linear terms, (n,), and products, (k,), of the objective in a box, and a bound on their rounding."""
        linear, products = self.task.form.least(box.low, box.high)
        size = abs(self.task.form.constant) + float(np.abs(linear).sum() + np.abs(products).sum())
        return linear, products, ROUNDING * (len(linear) + len(products)) * size

    def _better(self, box: _Box) -> _Box | None:
        """Return the part of a box that may hold a better point than the incumbent, by its linear terms; None if it is empty.

        Beside a range of 1e15 a solver's tolerances move the bound of a relaxation by more than the requested gap, however often
        the factors are split. The incumbent bounds such a range.
        """
        if math.isinf(self.value):
            return box
        form, low, high = self.task.form, box.low.copy(), box.high.copy()
        linear, products, noise = self._least(box)
        room = self.value - form.constant - float(linear.sum() + products.sum()) + noise + ROUNDING * abs(self.value)
        if room < 0.0:
            return None
        at = self.rows.columns[form.linear[self.rows.columns] != 0.0]
        up, ends = form.linear[at] > 0.0, (linear[at] + room) / form.linear[at]
        above, below = np.where(up, ends, np.inf), np.where(up, -np.inf, ends)
        return _Box(low, high) if _narrow(low, high, at, below, above) else None

    def _relaxed(self, box: _Box, solve: Solve, start: Vector | None = None, at: Vector | None = None) -> Answer:
        """Solve the relaxation over a box, or the program with its products linearised at some columns."""
        if at is None:
            program = relaxation(self.program, box.low, box.high, self.products)
        else:
            program = linearised(self.program, box.low, box.high, self.products, at)
        size = np.maximum(np.abs(box.low), np.abs(box.high))
        large = np.flatnonzero((box.high - box.low >= WHOLE) | (size > RESOLVED))
        every = np.union1d(large, self.integers)
        for real in (large, every) if len(large) < len(every) else (every,):
            whole = program.integer.copy()
            whole[real] = 0.0
            # a node that takes long, or for which the solver is imprecise, is split into smaller ones instead
            limits = replace(self.settings, time_limit=max(0.0, SHARE * self._left))
            with suppress(ImpreciseError, UndecidedError):
                return solve(replace(self.task, program=replace(program, integer=whole), start=start), limits)
        return Answer(UNKNOWN, None, math.nan, -math.inf, 0.0)

    def _node(self, bound: float, box: _Box, first: bool) -> None:
        answer = self._relaxed(box, self.native, self.task.start if first else None)
        self.prover = answer.prover or self.prover
        if answer.status == INFEASIBLE:
            return
        bound = self._raised(max(bound, answer.bound))
        found = answer.columns
        if found is not None:
            columns = self._with_products(found)
            if not self._admitted(columns) and not self._at_integers(box, columns):
                self._look_near(box, columns)
        if self._closed(bound):
            self.lost = min(self.lost, bound)
            return
        cut = self._cut(box, 0.5 * (box.low + box.high) if found is None else found)
        if cut is None:
            for point in self._last_points(box, found):
                self._admitted(self._with_products(point))
            for end in (box.high, box.low):
                self._look_near(box, end)
            if not self._closed(bound):
                self.lost = min(self.lost, bound)
            return
        column, at = cut
        ends = (math.floor(at), math.floor(at) + 1) if self.program.integer[column] else (at, at)
        for low, high in ((box.low[column], ends[0]), (ends[1], box.high[column])):
            part = _Box(box.low.copy(), box.high.copy())
            part.low[column], part.high[column] = low, high
            self._push(bound, part)

    def _with_products(self, columns: Vector) -> Vector:
        """Return the columns with every bilinear column at its product, and integers rounded."""
        columns = columns.copy()
        columns[self.integers] = np.round(columns[self.integers])
        if len(self.integers):
            set_from_places(stepped_integers(self.program), columns)
        for p in self.products:
            columns[p.column] = p.scale * columns[p.first] * columns[p.second]
        return columns

    def _admitted(self, columns: Vector) -> bool:
        """Make a point the incumbent if it is legal and better; return True if it is legal."""
        found = self.keeps(columns)
        if found is not None and found is not columns:  # moved onto a bound
            found = self.keeps(self._with_products(found))
        if found is None:
            return False
        value = self.task.form.value(found)
        if value < self.value:
            self.best, self.value = found, value
        return True

    def _at_integers(self, box: _Box, columns: Vector) -> bool:
        """Solve for the other columns at rounded wide integers, while no incumbent is known; return True if that gives one.

        Rounding by itself breaks the rows of columns that depend on an integer, such as a distance from it.
        """
        if not len(self.integers) or self.best is not None or self._left <= 0.0:
            return False
        held = box.held({int(c): float(columns[c]) for c in self.integers})
        answer = self._relaxed(held, self.solve)
        return answer.columns is not None and self._admitted(self._with_products(answer.columns))

    def _look_near(self, box: _Box, columns: Vector) -> None:
        """Search for an incumbent by Newton's method, from columns whose products are nearly right."""
        factors = [c for p in self.products for c in (p.first, p.second)]
        for radius in RADII if factors else ():
            exact = self._with_products(columns)
            missed = [abs(columns[p.column] - exact[p.column]) > radius * abs(exact[p.column]) for p in self.products]
            near = box.near(exact, factors, radius)
            answer = None if any(missed) or self._left <= 0.0 else self._relaxed(near, self.solve, at=exact)
            if answer is None or answer.columns is None:
                return
            columns = answer.columns
            if self._admitted(self._with_products(columns)):
                return

    def _last_points(self, box: _Box, columns: Vector | None) -> Iterator[Vector]:
        """Yield the corners and midpoints of a box that is too narrow to split, unless it has more than ``FEW`` factors."""
        factors = np.array(sorted({c for p in self.products for c in (p.first, p.second)}), dtype=np.int64)
        factors = factors[box.low[factors] < box.high[factors]]
        ends = np.stack([box.low, box.high, 0.5 * (box.low + box.high)])[:, factors]
        for values in itertools.product(*ends.T.tolist()) if len(factors) <= FEW else ():
            point = box.low.copy() if columns is None else columns.copy()
            point[factors] = values
            yield point

    def _cut(self, box: _Box, columns: Vector) -> tuple[int, float] | None:
        """Return the column to branch on and the point at which to split it; None if no range is wide enough."""
        found: list[tuple[float, int]] = []
        for p in self.products:
            product = p.scale * columns[p.first] * columns[p.second]
            missed = float(abs(columns[p.column] - product))
            whole = self.program.high[p.column] - self.program.low[p.column]
            missed = missed / whole if missed > EVEN * abs(product) and whole else 0.0
            for c in {p.first, p.second}:
                width, size = box.high[c] - box.low[c], max(abs(box.low[c]), abs(box.high[c]))
                if width > NARROW * size and (width >= 1.0 or not self.program.integer[c]):
                    whole = self.program.high[c] - self.program.low[c]
                    found.append((missed * (1.0 + math.sqrt(width / whole)) if missed else -1.0 + width / whole, c))
        for c in self.integers.tolist():
            apart, width = abs(columns[c] - round(columns[c])), box.high[c] - box.low[c]
            if width >= 1.0:
                whole = self.program.high[c] - self.program.low[c]
                found.append((apart - 0.75 if apart > FRACTION else -1.0 + 0.25 * width / whole, c))
        if not found:
            return None
        _, c = max(found, key=lambda f: (f[0], -f[1]))
        low, high = float(box.low[c]), float(box.high[c])
        aside = ASIDE * (high - low)
        return c, min(max(float(columns[c]), low + aside), high - aside)

    def _answer(self) -> Answer:
        seconds = time.perf_counter() - self.began
        bound = min([self.lost, *(b for b, _, _ in self.queue)], default=math.inf)
        if self.best is None:
            if math.isinf(bound) and bound > 0:
                return Answer(INFEASIBLE, None, math.nan, math.inf, seconds, self.prover or "interval arithmetic")
            return Answer(UNKNOWN, None, math.nan, bound, seconds, self.prover)
        bound = min(bound, self.value)
        status = OPTIMAL if self._closed(bound) else FEASIBLE
        return Answer(status, self.best, self.value, bound, seconds, self.prover)


def resolved(program: BinaryProgram) -> bool:
    """Return True if no integer exceeds RESOLVED.

    Solvers do not scale integers. Beside larger ones, tolerances of 1e-9 are below the rounding errors of a row, or above the terms
    of a scaled one, and a solver may prune the optimum, or all points that satisfy an equation.
    """
    size = np.maximum(np.abs(program.low), np.abs(program.high))[: program.n]
    return not np.any(size[program.integer[: program.n] > 0] > RESOLVED)


def split_integers(program: BinaryProgram) -> Indices:
    """Return the base columns that are free integers but no binaries, ascending."""
    low, high = program.low[: program.n], program.high[: program.n]
    binary = (low == 0.0) & (high == 1.0)
    return np.flatnonzero((program.integer[: program.n] > 0) & (low < high) & ~binary)


@dataclass(frozen=True)
class _Rows:
    """The rows that contain a product or a factor, for interval arithmetic over all columns.

    Attributes:
        rows: for each row its columns, its coefficients, its bounds widened by the slack, and the positions in it of the
            columns to tighten.
        columns: the columns to tighten, ascending: bilinear columns, their factors and integers.
        integers: the integers among them.
        others: bounds of the product columns of the program, shape (n_columns - n,) each.
    """

    rows: tuple[tuple[Indices, Vector, float, float, Indices], ...]
    columns: Indices
    integers: Indices
    others: tuple[Vector, Vector]

    @classmethod
    def of(cls, program: BinaryProgram) -> _Rows:
        """Return the rows of a program; they are made once and kept with it."""
        if "bilinear rows" not in program.derived:
            factors = {c for p in program.bilinear for c in (p.column, p.first, p.second)}
            columns = np.array(sorted(factors.union(split_integers(program).tolist())), dtype=np.int64)
            matrix = program.matrix
            touched = np.flatnonzero(np.diff(sparse.csr_array(matrix[:, columns]).indptr))
            rows = []
            for r in touched.tolist():
                span = slice(matrix.indptr[r], matrix.indptr[r + 1])
                at, values, slack = matrix.indices[span], matrix.data[span], program.row_slack[r]
                at, values = at[values != 0.0], values[values != 0.0]
                ends = float(program.row_low[r] - slack), float(program.row_high[r] + slack)
                rows.append((at, values, *ends, np.flatnonzero(np.isin(at, columns))))
            others = program.low[program.n :], program.high[program.n :]
            program.derived["bilinear rows"] = cls(tuple(rows), columns, split_integers(program), others)
        found: _Rows = program.derived["bilinear rows"]
        return found

    def tightened(self, box: _Box, products: Iterable[Bilinear]) -> _Box | None:
        """Return the box tightened by interval arithmetic, with the same legal points; None if it is proven to have none."""
        low = np.concatenate([box.low, self.others[0]])
        high = np.concatenate([box.high, self.others[1]])
        for _ in range(ROUNDS):
            width = (high - low)[self.columns]
            if not (self._by_products(low, high, products) and self._by_rows(low, high)):
                return None
            at = self.integers
            low[at], high[at] = np.ceil(low[at] - FRACTION), np.floor(high[at] + FRACTION)
            if np.any(low[at] > high[at]):
                return None
            if np.all((high - low)[self.columns] >= WORTH * width):
                break
        n = len(box.low)
        return _Box(low[:n], high[:n])

    def _by_rows(self, low: Vector, high: Vector) -> bool:
        """Tighten columns by each row, in place; return False if a row cannot be satisfied."""
        for at, values, row_low, row_high, places in self.rows:
            ends = values * low[at], values * high[at]
            least, most = np.minimum(*ends), np.maximum(*ends)
            noise = ROUNDING * len(at) * np.maximum(np.abs(least), np.abs(most))
            if least.sum() > row_high + noise.sum() or most.sum() < row_low - noise.sum():
                return False
            # summed anew: large terms must not cancel small ones
            others = 1.0 - (np.arange(len(at)) == places[:, None])
            room = others @ noise
            with np.errstate(invalid="ignore"):
                above = (row_high - others @ least + room) / values[places]
                below = (row_low - others @ most - room) / values[places]
            if not _narrow(low, high, at[places], np.minimum(above, below), np.maximum(above, below)):
                return False
        return True

    def _by_products(self, low: Vector, high: Vector, products: Iterable[Bilinear]) -> bool:
        """Tighten each product by its factors and its factors by it, in place; return False if they contradict."""
        for p in products:
            a, b = (low[p.first], high[p.first]), (low[p.second], high[p.second])
            ends = [p.scale * x * y for x in a for y in b]
            if p.first == p.second:
                ends = [p.scale * x * x for x in a] + ([0.0] if a[0] <= 0.0 <= a[1] else [])
            if not _narrow(low, high, [p.column], [min(ends)], [max(ends)]):
                return False
            w = sorted((low[p.column] / p.scale, high[p.column] / p.scale))
            if p.first == p.second:
                root = math.sqrt(max(0.0, w[1]))
                inner = math.sqrt(max(0.0, w[0]))
                ends = [inner if a[0] > -inner else -root, -inner if a[1] < inner else root]
                if not _narrow(low, high, [p.first], ends[:1], ends[1:]):
                    return False
                continue
            for factor, (least, most) in ((p.first, b), (p.second, (low[p.first], high[p.first]))):
                if least > 0.0 or most < 0.0:
                    quotients = [x / y for x in w for y in (least, most)]
                    if not _narrow(low, high, [factor], [min(quotients)], [max(quotients)]):
                        return False
        return True


def _narrow(low: Vector, high: Vector, at: object, new_low: object, new_high: object) -> bool:
    """Tighten bounds in place, with a margin for rounding; return False if they cross."""
    columns = np.asarray(at, dtype=np.int64)
    below, above = np.asarray(new_low, dtype=float), np.asarray(new_high, dtype=float)
    room = 1e-14 * np.maximum(np.abs(below), np.abs(above))
    room = np.where(np.isfinite(room), room, 0.0)
    np.maximum.at(low, columns, np.where(np.isfinite(below), below - room, -np.inf))
    np.minimum.at(high, columns, np.where(np.isfinite(above), above + room, np.inf))
    left, right = low[columns], high[columns]
    crossed = left > right
    if not np.any(crossed):
        return True
    near = 1e-12 * np.maximum(np.abs(left), np.abs(right)) + 1e-300
    if np.any(left - right > near):
        return False
    low[columns[crossed]], high[columns[crossed]] = right[crossed], left[crossed]
    return True
