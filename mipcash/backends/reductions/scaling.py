"""Scaling of a program for a solver: numerical columns by their size, rows by their largest coefficient.

Notation
    c (n_columns,)  factor of each column, v = c v':  a power of two near its largest value, 1 for integers and their products.
                    Reals and integers with a step have a unit of which all their values are multiples.
    r (m,)          factor of each row, a power of two:  A' = r A c,  row bounds r times the given ones.

A solver's tolerances are absolute. For a conditional numerical parameter x in [0, 1e6], the row ``x <= 1e6 on`` allows x = 1 with
on = 1e-6, which rounds to 0. After scaling the row is ``x' <= on``. Powers of two leave every digit unchanged.

Rows that are multiples of some unit at every legal point (integers or steps as columns, simple fractions as coefficients) are
written in that unit, with integer bounds, and with coprime coefficients, so that ``2 a + 4 b == 7`` is seen to have no solution.
Points that are legal within the slack stay legal, and a solver's tolerance no longer decides which points are legal.

An integer ``w = low + step k`` with a large step becomes a real in units of about the step: k is an integer, and w follows from it.
As an integer, w would not be scaled, and solvers drop a coefficient of 1 beside a step of 1e14.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mipcash.backends.reductions.reduction import KEPT_PROGRAMS, Reduced
from mipcash.backends.task import Task
from mipcash.modelling.domains import Integer, Real
from mipcash.program.forms import Booleans, Vector
from mipcash.program.program import BinaryProgram
from mipcash.program.recent import Recent
from mipcash.program.rewriting import with_bounds, with_coefficients
from mipcash.program.unit_scale import Stepped, set_from_places, stepped_integers

LARGEST = 4e8
"""Largest coefficient of a row in whole units; beyond it, a tolerance on integers would count."""
MATTERS = 1e-7
"""Share of the largest part of an objective below which a part is ignored."""
WIDE = 1e4
"""Size of coefficients in whole units from which on a tolerance on integers may still count."""
DENOMINATOR = 10**6
"""Largest denominator of a coefficient that counts as a simple fraction."""
EXACT = 1e-13
HUGE = 1e15
"""Size of bounds from which on a common factor is taken out of a row in whole units; solvers treat 1e20 as infinite."""
NEGLECTED = 1e-11
"""Cost, in units of the objective, below which a solver's tolerance on reduced costs may treat it as zero."""
REDUCED = 1e-9
"""Tolerance of solvers on reduced costs, relative to the largest cost."""
COARSE = 1e6
"""Range of a real's term in the objective from which on this tolerance counts; it is then 0.001 of the objective."""
TINY = 1e-5
"""Coefficient of a scaled row below which presolve is not trusted: beside 3e-6, HiGHS may report a suboptimal point as optimal."""
LARGE = 1e6
"""Coefficient above which presolve is not trusted: beside 2e7, HiGHS 1.16 may report a suboptimal point as optimal."""
STEPPED = 2**20
"""Step from which on an integer is scaled by it."""
STEPPED_FAR, FAR = 2**10, 2.0**36
"""The same for an integer whose values reach FAR: at 1e12 SCIP drops the cost of its product with a binary."""
LONGEST = 400
"""Maximum number of terms of a row with fractions for which a unit is computed."""


class ScaledProgram:
    """A scaled program in the module's notation.

    Attributes:
        program: the scaled program; only its rows, bounds and integrality are meant to be used.
        columns: c.
        delicate: whether a solver's tolerance may decide feasibility: there are free reals, rows in no whole unit, or large
            coefficients.
        contradictory: whether the bounds of some row contain no whole number.
        tiny: whether coefficients are so small or large that presolve may go wrong.
        stepped: integers that are scaled like reals.
    """

    def __init__(self, program: BinaryProgram) -> None:
        self.stepped, kinds = _stepped(program), program.integer.copy()
        kinds[[c for number, _ in self.stepped for c in (number.column, number.latent)]] = 0.0
        program = replace(program, integer=kinds) if self.stepped else program
        unit = _column_units(program)
        integral = unit > 0
        size = np.maximum(np.abs(program.low), np.abs(program.high))
        for number, domain in self.stepped:
            size[[number.column, number.latent]] = domain.step
        self.columns = columns = np.where(integral, unit, np.where(size == 0, 1.0, _power(size)))
        matrix = sparse.csr_array(program.matrix @ sparse.diags_array(columns))
        largest = np.zeros(matrix.shape[0])
        if matrix.nnz:
            largest = abs(matrix).max(axis=1).toarray().ravel()
        rows = np.where(largest > 0, 1.0 / _power(largest), 1.0)
        units = _units(matrix, integral, _size(program.row_low, program.row_high))
        whole = units > 0
        rows = np.where(whole, units, rows)
        low, high = program.row_low * rows, program.row_high * rows
        slack = program.row_slack * rows + 2.0 * np.spacing(_size(low, high))  # a product by a factor is rounded
        scaled_matrix = sparse.csr_array(sparse.diags_array(rows) @ matrix)
        at = np.repeat(whole, np.diff(scaled_matrix.indptr))
        scaled_matrix.data[at] = np.round(scaled_matrix.data[at])
        low = np.where(whole & np.isfinite(low), np.ceil(low - slack), low)
        high = np.where(whole & np.isfinite(high), np.floor(high + slack), high)
        # w = s a b reads c_w w' = s (c_a a') (c_b b')
        bilinear = tuple(
            replace(p, scale=p.scale * float(columns[p.first] * columns[p.second] / columns[p.column]))
            for p in program.bilinear
        )
        rewritten = replace(with_coefficients(program, scaled_matrix, low, high), bilinear=bilinear)
        self.program = with_bounds(rewritten, program.low / columns, program.high / columns)
        numbers = (program.integer == 0) & (program.low < program.high) & ~integral
        wide = bool(np.any(np.abs(scaled_matrix.data) > WIDE))
        self.delicate = bool(np.any(numbers) or not np.all(whole) or wide)
        sizes = np.abs(scaled_matrix.data[scaled_matrix.data != 0.0])
        self.tiny = bool(sizes.min(initial=1.0) < TINY or sizes.max(initial=1.0) > LARGE)
        self.contradictory = bool(np.any(whole & (low > high)))

    @cached_property
    def real(self) -> Booleans:
        """Mask of the columns that may take fractional values, (n_columns,); a product is real if its numerical factor is."""
        real: Booleans = self.program.integer == 0
        for product in self.program.products:
            _, h = product.key
            real[product.start : product.start + product.size] = h < 0 and bool(real[-1 - h])
        return real

    def unscaled(self, columns: Vector) -> Vector:
        """Return the columns of the given program; integers with a step are computed from their step counts k."""
        columns = columns * self.columns[: len(columns)]
        set_from_places(self.stepped, columns)
        return columns


@dataclass(frozen=True)
class ScaledTask(Reduced):
    """A task over scaled columns, with its objective in some unit.

    Product columns have factors of their own, so a solver with product columns uses ``cost`` and ``start`` of this class.

    Attributes:
        scaled: the program.
        unit: the solver minimises the objective divided by this.
        cost: of all columns, shape (n_columns,); None if the products are left to the solver.
        start: known values of all columns, else nan, shape (n_columns,); None without a start.
    """

    scaled: ScaledProgram
    unit: float
    cost: Vector | None
    start: Vector | None

    @property
    def tiny(self) -> bool:
        """True if coefficients of rows or of the objective differ so much in size that a solver may treat some as zero."""
        costs = self._costs
        return self.scaled.tiny or bool(costs[costs > 0.0].min(initial=1.0) < TINY)

    @property
    def neglected(self) -> float:
        """Upper bound on the part of the objective that a solver may have ignored and that its bound does not cover.

        It sums the terms with costs below the solver's tolerance, and the effect of that tolerance over the range of a real where
        it is large or exceeds the cost of an integer.
        """
        costs, program = self._costs, self.scaled.program
        k = len(costs)
        worth = costs * (program.high - program.low)[:k] * self.unit
        ignored = np.where((costs > 0.0) & (costs < NEGLECTED), 1.0, 0.0)
        real = self.scaled.real[:k]
        least = float(np.min(costs[~real & (worth > 0.0)], initial=math.inf)) * self.unit
        beside = np.where(real & (worth > min(COARSE, least / REDUCED)), REDUCED, 0.0)
        return float(np.sum(np.maximum(ignored, beside) * worth))

    @property
    def _costs(self) -> Vector:
        """Absolute costs, divided by ``unit``."""
        return np.abs(self.task.form.linear if self.cost is None else self.cost)

    def columns(self, columns: Vector) -> Vector:
        """See ``mipcash.backends.reductions.reduction.Reduced.columns``."""
        return self.scaled.unscaled(columns)

    def bound(self, bound: float) -> float:
        """See ``mipcash.backends.reductions.reduction.Reduced.bound``."""
        return bound * self.unit


class Scaling:
    """Scales programs and objectives; the last reduction before a solver.

    Args:
        linear: whether the program has the objective's products as columns.
    """

    def __init__(self, linear: bool = True) -> None:
        self.linear = linear
        self._kept: Recent[tuple[BinaryProgram, ScaledProgram]] = Recent(KEPT_PROGRAMS)

    def accepts(self, task: Task) -> bool:
        """See ``mipcash.backends.reductions.reduction.Reduction.accepts``."""
        return True

    def apply(self, task: Task) -> ScaledTask:
        """See ``mipcash.backends.reductions.reduction.Reduction.apply``."""
        program, form = task.program, task.form
        _, scaled = self._kept.get(id(program), lambda: (program, ScaledProgram(program)))
        c = scaled.columns
        cost = program.cost(form) * c if self.linear else None
        form = replace(form, linear=form.linear * c[: form.n], values=form.values * c[form.rows] * c[form.cols])
        reach = np.maximum(np.abs(scaled.program.low), np.abs(scaled.program.high))
        unit = objective_unit(np.concatenate([form.linear, form.values]) if cost is None else cost)
        unit = min(unit, _least_unit(form.linear if cost is None else cost, reach))
        whole = None if task.start is None else program.lifted(task.start) / c
        there = Task(
            scaled.program,
            form.scaled(1.0 / unit),
            {k: value / float(c[k]) for k, value in task.fixed.items()},
            [replace(cut, values=np.asarray(cut.values, dtype=float) * c[cut.columns]) for cut in task.cuts],
            None if whole is None else whole[: program.n],
        )
        return ScaledTask(there, scaled, unit, None if cost is None else cost / unit, whole)


def objective_unit(cost: Vector) -> float:
    """Return a power of two near the largest cost, by which the objective is divided so that a solver's tolerances match it."""
    largest = float(np.abs(cost).max(initial=0.0))
    return float(_power(np.array(largest)))


def _least_unit(cost: Vector, reach: Vector) -> float:
    """Return the largest unit at which the costs of wide integers stay well above the tolerance on reduced costs.

    Integers with a negligible share of the objective do not count. Return inf if no integer counts.

    Args:
        cost: of the first k columns, shape (k,).
        reach: largest size of each column, shape (n_columns,).
    """
    worth = np.abs(cost) * reach[: len(cost)]
    wide = (reach[: len(cost)] > WIDE) & (worth > MATTERS * worth.max(initial=0.0))
    least = float(np.abs(cost[wide]).min(initial=math.inf))
    return math.inf if math.isinf(least) else float(_power(np.array(least / TINY)))


def _size(low: Vector, high: Vector) -> Vector:
    """Return the size of the larger finite bound, 0 if there is none."""
    ends = np.abs(np.stack([low, high]))
    return np.asarray(np.where(np.isfinite(ends), ends, 0.0).max(axis=0))


def _units(matrix: sparse.csr_array, integral: NDArray[np.bool_], bounds: Vector) -> Vector:
    """Return for each row the factor that makes its coefficients whole and coprime, 0 if there is none: shape (m,).

    Args:
        matrix: over columns of which the integral ones take whole numbers.
        bounds: size of the bounds, shape (m,).
    """
    fractions = np.abs(matrix.data - np.round(matrix.data)) > 0.0
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    some = np.bincount(rows[fractions], minlength=matrix.shape[0]) > 0
    numbers = np.bincount(rows[~integral[matrix.indices]], minlength=matrix.shape[0]) > 0
    some |= bounds > HUGE
    largest = np.zeros(matrix.shape[0])
    np.maximum.at(largest, rows, np.abs(matrix.data))
    found = np.where(~some & ~numbers & (largest <= LARGEST), 1.0, 0.0)
    for r in np.flatnonzero((found > 0) & (largest > 1.0)):
        found[r] = 1.0 / np.gcd.reduce(matrix.data[matrix.indptr[r] : matrix.indptr[r + 1]].astype(np.int64))
    for r in np.flatnonzero(some & ~numbers & (np.diff(matrix.indptr) <= LONGEST)):
        found[r] = _unit(matrix.data[matrix.indptr[r] : matrix.indptr[r + 1]].tolist())
    return found


def _stepped(program: BinaryProgram) -> tuple[Stepped, ...]:
    """Return the integers with a large step, except those whose step count is relaxed to a real."""

    def large(domain: Integer) -> bool:
        return domain.step >= (STEPPED_FAR if max(abs(domain.low), abs(domain.high)) >= FAR else STEPPED)

    return tuple((n, d) for n, d in stepped_integers(program) if large(d) and program.integer[n.place] > 0)


def _column_units(program: BinaryProgram) -> Vector:
    """Return a unit of which each column is a multiple if all integers are whole, 0 if there is none: shape (n_columns,).

    It is 1 for integers, or their step if they are multiples of it. Products with binaries have the unit of their other factor.
    """
    unit = np.where(program.integer > 0, 1.0, 0.0)
    for number in program.numbers:
        domain: Any = program.domains[number.label]
        if number.place >= 0 and isinstance(domain, Real):
            unit[[number.column, number.latent]] = domain.values.unit
        elif number.place >= 0 and unit[number.column] and domain.low % domain.step == 0:
            unit[[number.column, number.latent]] = domain.step
    for product in program.products:
        _, h = product.key
        unit[product.start : product.start + product.size] = 1.0 if h >= 0 else unit[-1 - h]
    return unit


def divisor(program: BinaryProgram, row: int) -> float:
    """Return a number of which the body of a row is a multiple at all points with whole integers; 0 if there is none."""
    entries = program.matrix[[row]]
    values = entries.data * _column_units(program)[entries.indices]
    factor = _unit(values.tolist()) if len(values) and np.all(values) else 0.0
    return 1.0 / factor if factor else 0.0


def _unit(values: Sequence[float]) -> float:
    """Return the factor that makes coefficients whole and coprime; 0 if their ratios are not simple fractions."""
    largest = max(map(abs, values))
    if not largest:
        return 0.0
    parts = [Fraction(v / largest).limit_denominator(DENOMINATOR) for v in values]
    if any(abs(float(part) - v / largest) > EXACT for part, v in zip(parts, values, strict=True)):
        # the ratios to the largest are no simple fractions; perhaps the coefficients are, such as 0.03 and 0.001
        parts = [Fraction(v).limit_denominator(DENOMINATOR) for v in values]
        if any(abs(float(part) - v) > EXACT * abs(v) for part, v in zip(parts, values, strict=True)):
            return 0.0
    common = math.lcm(*(part.denominator for part in parts))
    shared = math.gcd(*(int(part * common) for part in parts))
    k = next(k for k, v in enumerate(values) if abs(v) == largest)
    factor = float(abs(parts[k]) * common / shared) / largest
    return factor if factor * largest <= LARGEST else 0.0


def _power(size: Vector) -> Vector:
    """Return the nearest power of two, 1 for 0."""
    return np.asarray(2.0 ** np.round(np.log2(np.where(size > 0, size, 1.0))))
