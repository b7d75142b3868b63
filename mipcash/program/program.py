"""BinaryProgram: a compiled space.

Notation
    z       one-hot binaries, shape (n_z,). A group's columns are its L levels, then one ``off`` column if conditional
    number  a numerical parameter without one-hot levels: a real, or a wide integer. An integer, or a real with a step, is wide
            if it has more values than the ``expand_limit`` of the space
    u, x    further base columns: integer auxiliary variables and the numbers that occur in rules
    y, w    product columns: y[a, b] = z[a] z[b] of two groups, w[a] = z[a] v of a group and a number v
    v       all base columns [z, u, x], shape (n,);   c all columns [z, u, x, y, w], shape (n_columns,)
    s       levels, shape (G,) integers: the level of each group, L_g if it is off

The legal configurations are the c with ``row_low <= A c <= row_high``, with integer values for the columns in ``integer``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mipcash.modelling.domains import Configuration, Integer, Permutation, Real, Value, is_hashable, level_among, own
from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.products import Bilinear, Product

T = TypeVar("T")


@dataclass(frozen=True)
class Indicator:
    """A condition on the binaries of one group: ``constant + coefficients . z[columns]`` is 1 if it holds and 0 if not."""

    constant: float
    columns: Indices
    coefficients: Vector

    def holds(self, z: Vector) -> NDArray[np.bool_]:
        """Return True where the condition holds: (..., n_z) -> (...)."""
        return np.asarray(self.constant + z[..., self.columns] @ self.coefficients > 0.5)


@dataclass(frozen=True)
class Compound:
    """Conditions of which all must hold (``every``), or at least one."""

    every: bool
    parts: tuple[Condition, ...]

    @cached_property
    def columns(self) -> Indices:
        """One-hot columns that it depends on, ascending."""
        return np.unique(np.concatenate([part.columns for part in self.parts]))

    def holds(self, z: Vector) -> NDArray[np.bool_]:
        """Return True where the condition holds: (..., n_z) -> (...)."""
        combined = np.logical_and if self.every else np.logical_or
        return np.asarray(combined.reduce([part.holds(z) for part in self.parts]))


Condition = Indicator | Compound
"""A condition under which a parameter is active."""


@dataclass(frozen=True)
class Group:
    """A one-hot group: columns ``start .. stop - 1`` of z, the last one meaning "off" if ``conditional``.

    A conditional group is active if all ``conditions`` hold; they refer to earlier groups.
    """

    label: str
    parameter: str
    start: int
    stop: int
    values: tuple[Value, ...]
    kind: str
    conditions: tuple[Condition, ...] = ()

    @property
    def conditional(self) -> bool:
        return bool(self.conditions)

    @property
    def ordered(self) -> bool:
        """True if its levels have an order."""
        return self.kind in ("integer", "ordinal", "ordering")

    @property
    def size(self) -> int:
        """Number of columns, off included."""
        return self.stop - self.start

    @property
    def n_levels(self) -> int:
        """Number of levels, L: columns without off."""
        return self.size - int(self.conditional)

    @property
    def span(self) -> slice:
        """Its columns."""
        return slice(self.start, self.stop)


@dataclass(frozen=True)
class NumberColumn:
    """The columns of a number (a tuned numerical parameter) that occurs in a rule.

    Attributes:
        column: column of its value in rules (0 if inactive).
        latent: column of its value whether active or not; equals ``column`` for an unconditional number. Fixing the latent column
            fixes the number without deciding its activity.
        conditions: as for a group.
        on: column of the binary of its activity; None if a single indicator decides its activity, or if it is always active.
        place: column of the integer k of ``latent = low + k * step``; -1 if there is none.
    """

    label: str
    column: int
    latent: int
    conditions: tuple[Condition, ...] = ()
    on: int | None = None
    place: int = -1


@dataclass(frozen=True)
class BaseRow:
    """A row before its products became columns: ``low <= form(v) <= high`` over base columns (constant 0).

    Attributes:
        slack: tolerance of the bounds (``mipcash.modelling.rules``).
    """

    rule: str
    form: QuadraticForm
    low: float
    high: float
    slack: float

    def holds(self, body: Vector) -> NDArray[np.bool_]:
        """Return True where values of the form are within the bounds."""
        return np.asarray((body >= self.low - self.slack) & (body <= self.high + self.slack))


@dataclass(frozen=True)
class BinaryProgram:
    """A compiled space (see the module's notation).

    Attributes:
        groups: one-hot groups in column order.
        numbers: tuned numbers that have columns.
        n: number of base columns; ``n_z`` of them are one-hot binaries.
        matrix: rows, shape (m, n_columns), sparse.
        row_low, row_high: shape (m,).
        row_rule: name of the rule behind each row ("" for the structure of the space).
        row_slack: tolerance of each row, shape (m,).
        low, high, integer: column bounds and integrality, shape (n_columns,).
        names: column names.
        products: product columns.
        domains: label -> domain of every tuned parameter, in the order of declaration.
        base_rows: the rows over base columns, products not yet linearised (used to check a point).
        conditions: label -> conditions of its activity, all of which must hold, for every conditional parameter.
        variable_columns: name of a Pyomo variable that is not a level -> its base column.
        bilinear: products of two reals, each with its own base column.
    """

    groups: tuple[Group, ...]
    numbers: tuple[NumberColumn, ...]
    n: int
    n_z: int
    matrix: sparse.csr_array
    row_low: Vector
    row_high: Vector
    row_rule: tuple[str, ...]
    row_slack: Vector
    low: Vector
    high: Vector
    integer: Vector
    names: tuple[str, ...]
    products: tuple[Product, ...]
    domains: Mapping[str, object]
    base_rows: tuple[BaseRow, ...]
    conditions: Mapping[str, tuple[Condition, ...]]
    variable_columns: Mapping[str, int]
    bilinear: tuple[Bilinear, ...] = ()

    @property
    def n_columns(self) -> int:
        return len(self.low)

    @cached_property
    def group_of(self) -> Indices:
        """Group index of each one-hot column, shape (n_z,)."""
        return np.repeat(np.arange(len(self.groups)), self.sizes)

    def parents(self, conditions: Iterable[Condition]) -> set[int]:
        """Return the groups that conditions depend on."""
        return {int(self.group_of[c]) for condition in conditions for c in condition.columns}

    def switch(self, label: str) -> Indicator:
        """Return the activity of a conditional parameter as an affine function of base columns.

        A number needs columns in the program, unless a single indicator decides its activity.
        """
        for group in self.groups:
            if group.parameter == label:
                return Indicator(1.0, np.array([group.stop - 1]), np.array([-1.0]))
        only, *more = self.conditions[label]
        if isinstance(only, Indicator) and not more:
            return only
        number = next(n for n in self.numbers if n.label == label)
        return Indicator(0.0, np.array([number.on]), np.ones(1))

    def held(self, indicator: Indicator) -> NDArray[np.bool_]:
        """Return at which columns of its group an indicator holds, off included: shape (size,)."""
        group = self.groups[int(self.group_of[indicator.columns[0]])]
        effect = np.full(group.size, float(indicator.constant))
        np.add.at(effect, indicator.columns - group.start, indicator.coefficients)
        return effect > 0.5

    @cached_property
    def starts(self) -> Indices:
        return np.array([g.start for g in self.groups], dtype=np.int64)

    @cached_property
    def sizes(self) -> Indices:
        return np.array([g.size for g in self.groups], dtype=np.int64)

    @cached_property
    def n_levels(self) -> Indices:
        """Number of levels of every group, off not included: shape (G,)."""
        return np.array([g.n_levels for g in self.groups], dtype=np.int64)

    @cached_property
    def active_columns(self) -> Vector:
        """1 if a one-hot column is a level, 0 if it is an off column; shape (n_z,)."""
        mask = np.ones(self.n_z)
        mask[[g.stop - 1 for g in self.groups if g.conditional]] = 0.0
        return mask

    @cached_property
    def tied(self) -> bool:
        """True if a rule relates numbers to levels or auxiliary variables, so that a level can only move together with a number.

        A rule over conditional numbers does so too, by their conditions.
        """
        conditional = np.zeros(self.n, dtype=bool)
        conditional[[n.column for n in self.numbers if n.conditions]] = True
        return bool(self._tying) or any(conditional[row.form.linear != 0.0].any() for row in self.base_rows if row.rule)

    @property
    def equated(self) -> bool:
        """True if such a rule is an equation."""
        return any(row.low == row.high for row in self._tying)

    @cached_property
    def _tying(self) -> list[BaseRow]:
        numbers = np.zeros(self.n, dtype=bool)
        numbers[[c for n in self.numbers for c in (n.column, n.latent) if c >= 0]] = True
        found = []
        for row in self.base_rows:
            touched = numbers[np.concatenate([np.flatnonzero(row.form.linear), row.form.rows, row.form.cols])]
            if row.rule and touched.any() and not touched.all():
                found.append(row)
        return found

    @cached_property
    def product_index(self) -> Mapping[tuple[int, int], Product]:
        """(group, group) or (group, -1 - column) -> product."""
        return {p.key: p for p in self.products}

    @cached_property
    def derived(self) -> dict[Hashable, Any]:
        """Cache for results that are computed from the program once."""
        return {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what ``make`` computes from the program, once for each key."""
        if key not in self.derived:
            self.derived[key] = make()
        found: T = self.derived[key]
        return found

    @cached_property
    def has_base_rows(self) -> bool:
        """True if the base rows are complete; False if rows or columns were added to the matrix only."""
        product_rows = sum(
            self.groups[g].size + self.groups[h].size if h >= 0 else 1 + 2 * self.groups[g].size
            for g, h in (p.key for p in self.products)
        )
        whole = self.matrix.shape[0] == len(self.base_rows) + product_rows
        return whole and all(row.form.n == self.n for row in self.base_rows)

    # -- points -------------------------------------------------------------------------------------------------

    def one_hot(self, levels: Indices) -> Vector:
        """Return the binaries of levels: (..., G) integers -> (..., n_z)."""
        z = np.zeros((*levels.shape[:-1], self.n_z))
        columns = self.starts + levels
        rows = np.arange(math.prod(levels.shape[:-1])).reshape(*levels.shape[:-1], 1) * self.n_z
        z.reshape(-1)[rows + columns] = 1.0
        return z

    def levels_of(self, columns: Vector) -> Indices:
        """Return the levels of one point's columns (rounded): (>= n_z,) -> (G,)."""
        return np.array([int(np.argmax(columns[g.start : g.stop])) for g in self.groups], dtype=np.int64)

    def levels_at(self, z: Vector) -> Indices:
        """Return the levels of one point's binaries, (n_z,), exactly one of each group: (G,)."""
        return np.asarray(np.flatnonzero(z) - self.starts)

    def encode(self, config: Configuration) -> Indices:
        """Return the levels of a configuration; a conditional parameter that is absent is off.

        Raises:
            KeyError: a parameter is missing that cannot be off.
            StopIteration, ValueError: a value outside its domain (validate first).
        """
        levels = []
        for group, known in zip(self.groups, self._known_levels, strict=True):
            if group.kind == "ordering":
                member = group.label[len(group.parameter) + 1 :]
                levels.append(list(config[group.parameter]).index(member))
            elif group.parameter not in config:
                if not group.conditional:
                    raise KeyError(group.parameter)
                levels.append(group.size - 1)
            else:
                value = config[group.parameter]
                level = known.get((type(value), value)) if is_hashable(value) else None
                levels.append(self._level(group, value) if level is None else level)
        return np.array(levels, dtype=np.int64)

    def _level(self, group: Group, value: Value) -> int:
        """Return the level of a value, whatever its numeric type (a NumPy integer for an integer)."""
        value = self.domains[group.parameter].canonical(value)  # type: ignore[attr-defined]
        return level_among(group.values, value)

    @cached_property
    def _known_levels(self) -> list[dict[tuple[type, Value], int]]:
        """Per group: the level of each hashable value, by type too, since True == 1."""
        return [{(type(v), v): l for l, v in enumerate(g.values) if is_hashable(v)} for g in self.groups]

    def decode(self, levels: Indices, numbers: Mapping[str, float]) -> Configuration:
        """Return the configuration of levels and natural values of the active numbers, in the order of declaration."""
        found: dict[str, Value] = {}
        orders: dict[str, dict[int, str]] = {}
        for group, level in zip(self.groups, levels, strict=True):
            if group.conditional and level == group.size - 1:
                continue
            if group.kind == "ordering":
                orders.setdefault(group.parameter, {})[int(level)] = group.label[len(group.parameter) + 1 :]
            else:
                found[group.parameter] = own(group.values[level])
        for label, order in orders.items():
            found[label] = tuple(order[t] for t in sorted(order))
        for label, value in numbers.items():
            domain = self.domains[label]
            assert isinstance(domain, (Real, Integer))
            found[label] = domain.nearest(value)
        return {label: found[label] for label in self.domains if label in found}

    def fitting(self, pairs: Iterable[tuple[int, int]], columns: int) -> list[tuple[int, int]]:
        """Return pairs of groups in their order, skipping those that would exceed ``columns`` product columns in total."""
        chosen, used = [], 0
        for g, h in pairs:
            size = int(self.sizes[g] * self.sizes[h])
            if used + size <= columns:
                chosen.append((g, h))
                used += size
        return chosen

    # -- objectives ---------------------------------------------------------------------------------------------

    @cached_property
    def off_levels(self) -> Indices:
        """The level that means "off" of every group, -1 if there is none: shape (G,)."""
        return np.array([g.size - 1 if g.conditional else -1 for g in self.groups], dtype=np.int64)

    def folded(self, form: QuadraticForm) -> QuadraticForm:
        """Return a form with the same values on legal points, without products inside a group (z_a z_a = z_a, z_a z_b = 0)."""
        inside = (form.rows < self.n_z) & (form.cols < self.n_z)
        same = np.zeros(len(form.rows), dtype=bool)
        same[inside] = self.group_of[form.rows[inside]] == self.group_of[form.cols[inside]]
        squares = same & (form.rows == form.cols)
        linear = form.linear.copy()
        np.add.at(linear, form.rows[squares], form.values[squares])
        keep = ~same & (form.values != 0)
        return QuadraticForm(form.constant, linear, form.rows[keep], form.cols[keep], form.values[keep])

    def couplings(self, form: QuadraticForm) -> set[tuple[int, int]]:
        """Return the keys of the products that a folded form needs."""
        first, second = self._ends(form)
        return set(map(tuple, np.unique(np.stack([first, second], axis=1), axis=0).tolist())) if len(first) else set()

    def _ends(self, form: QuadraticForm) -> tuple[Indices, Indices]:
        """Return the product key of each term: smaller group first; a column that is not one-hot is written -1 - column.

        Raises:
            ValueError: a term multiplies two numbers.
        """
        if np.any((form.rows >= self.n_z) & (form.cols >= self.n_z)):
            raise ValueError("an objective may not multiply two numbers; at least one factor must be discrete")
        a = np.where(form.rows < self.n_z, form.rows, form.cols)
        b = np.where(form.rows < self.n_z, form.cols, form.rows)
        g = self.group_of[a]
        h = np.where(b < self.n_z, self.group_of[np.minimum(b, self.n_z - 1)], -1 - b)
        swap = (h >= 0) & (h < g)
        return np.where(swap, h, g), np.where(swap, g, h)

    def cost(self, form: QuadraticForm) -> Vector:
        """Return the cost of every column, shape (n_columns,), for a folded form whose couplings the program has."""
        cost = np.zeros(self.n_columns)
        cost[: form.n] = form.linear
        first, second = self._ends(form)
        a = np.where(form.rows < self.n_z, form.rows, form.cols)
        b = np.where(form.rows < self.n_z, form.cols, form.rows)
        for g, h in set(zip(first.tolist(), second.tolist(), strict=True)):
            product = self.product_index[g, h]
            chosen = (first == g) & (second == h)
            left, right = a[chosen], b[chosen]
            if h >= 0:
                swap = self.group_of[left] != g
                left, right = np.where(swap, right, left), np.where(swap, left, right)
                at = product.start + (left - self.groups[g].start) * self.groups[h].size + right - self.groups[h].start
            else:
                at = product.start + left - self.groups[g].start
            np.add.at(cost, at, form.values[chosen])
        return cost

    def lifted(self, base: Vector) -> Vector:
        """Return all columns of a base point with products filled in: (n,) -> (n_columns,); auxiliary columns must be in ``base``.

        Columns added by the compiler for products of two numbers cannot be lifted and are left at nan.
        """
        columns = np.full(self.n_columns, np.nan)
        columns[: self.n] = base
        for p in self.products:
            g, h = p.key
            left = base[self.groups[g].span]
            right = base[self.groups[h].span] if h >= 0 else base[[-1 - h]]
            columns[p.start : p.start + p.size] = np.outer(left, right).ravel()
        return columns


def orders_of(program: BinaryProgram) -> dict[str, list[int]]:
    """Return ordering label -> indices of its groups (one per module)."""
    found: dict[str, list[int]] = {}
    for g, group in enumerate(program.groups):
        if isinstance(program.domains.get(group.parameter), Permutation):
            found.setdefault(group.parameter, []).append(g)
    return found


COLUMNS, VARIABLES = 500, 100
"""Size above which a space is wide: no array over all pairs of its levels or parameters is formed. Searches and surrogates use
other methods, whose time and memory grow with the number of observations. Exact steps that would take hours there are left out, and
the result reports it (docs/decisions/archive.md, 039)."""


def is_wide(columns: int, variables: int) -> bool:
    """Return True if a space with this many one-hot binaries, or groups and numbers together, is wide."""
    return columns > COLUMNS or variables > VARIABLES
