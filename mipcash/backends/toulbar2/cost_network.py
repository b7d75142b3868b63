"""A program as a cost function network: variables with finite domains, tables of legal tuples, linear constraints.

Notation
    X_i       variable i with a domain of d_i states: the levels of a one-hot group, or the values of an integer column.
    c(X_i)    a base column as a function of one variable, its *profile*, shape (d_i,), or a constant.
    row       low <= constant + sum_i f_i(X_i) + sum_ij f_ij(X_i, X_j) <= high, from ``program.base_rows``

A row over few states becomes a table. A longer row without products becomes a linear constraint with integer weights per state. A
longer row with products gets one more variable per product, X_i X_j, linked to its factors by tables.

A continuous column is accepted only if it can take finitely many values:

    * a fixed numerical parameter
    * the value in rules of a conditional numerical parameter whose latent value is fixed: 0 or that value
    * the product of a binary and an integer, made by the compiler
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mipcash.backends.task import CUT_SLACK, Cut
from mipcash.errors import SolverError
from mipcash.program.affine_rows import columns_of
from mipcash.program.forms import Booleans, QuadraticForm, Vector
from mipcash.program.program import BinaryProgram
from mipcash.program.rule_tables import PAIR, POSTED, RuleTable, Split, States, entries

DOMAIN_LIMIT = 2048
"""Maximum number of values of an integer column, or of a product of two, that becomes a variable."""
WEIGHT_LIMIT = 2.0**40
"""Largest sum of the integer weights of a linear constraint whose coefficients are not simple fractions."""
MULTIPLIERS = (1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 40, 50, 64, 100, 128, 200, 256, 500, 1000, 1024, 10_000)

Profile = tuple[int, Vector]
"""Variable and values by state; variable -1 is a constant, of shape (1,)."""


@dataclass(frozen=True)
class LinearRow:
    """``low <= sum_i weights_i[X_i] <= high`` with integer weights by state."""

    scope: tuple[int, ...]
    weights: list[NDArray[np.int64]]
    low: int | None
    high: int | None

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Each side in toulbar2's format: ``sum of weights >= capacity``, weights by state."""
        found = []
        for capacity, sign in ((self.low, 1), (None if self.high is None else -self.high, -1)):
            if capacity is None:
                continue
            words = [str(capacity)]
            for weights in self.weights:
                words.append(str(len(weights)))
                words += [f"{k} {w}" for k, w in enumerate((sign * weights).tolist())]
            found.append(" ".join(words))
        return tuple(found)


@dataclass
class CostNetwork:
    """Variables, tables and linear rows (see the module's notation).

    Attributes:
        sizes: d_i.
        labels: names of the variables.
        profiles: of every base column.
        tables: scope (sorted) -> table; a scope of one variable filters its domain.
        empty: whether some row cannot be satisfied at all.
    """

    sizes: list[int] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    profiles: list[Profile] = field(default_factory=list)
    tables: dict[tuple[int, ...], RuleTable] = field(default_factory=dict)
    rows: list[LinearRow] = field(default_factory=list)
    products: dict[tuple[int, int], int] = field(default_factory=dict)
    empty: bool = False

    @cached_property
    def states(self) -> States:
        """Values of the base columns by variable and state, once all profiles are known; product variables determine none."""
        held: list[list[tuple[int, Vector]]] = [[] for _ in self.sizes]
        for c, (i, profile) in enumerate(self.profiles):
            if i >= 0:
                held[i].append((c, profile))
        return States(
            [np.array([c for c, _ in columns], dtype=np.int64) for columns in held],
            [
                np.array([p for _, p in columns]).reshape(len(columns), d)
                for columns, d in zip(held, self.sizes, strict=True)
            ],
            {c: float(profile[0]) for c, (i, profile) in enumerate(self.profiles) if i < 0},
        )

    def variable(self, label: str, size: int) -> int:
        self.sizes.append(size)
        self.labels.append(label)
        return len(self.sizes) - 1

    def restrict(self, scope: tuple[int, ...], legal: Booleans) -> None:
        """Add a table; tables with the same scope are merged."""
        both = self.tables[scope].legal & legal if scope in self.tables else legal
        self.tables[scope] = RuleTable(scope, both)
        if not self.tables[scope].legal.any():
            self.empty = True

    # -- rows ---------------------------------------------------------------------------------------------------

    def add_row(self, form: QuadraticForm, low: float, high: float, slack: float, rule: str) -> None:
        """Add ``low <= form(v) <= high``, which may be violated by ``slack``.

        Raises:
            SolverError: the row multiplies two columns whose product has too many values.
        """
        parts = self.states.split(form)
        low, high = low - slack - parts.constant, high + slack - parts.constant
        unary, pairs, scope = parts.unary, parts.pairs, parts.scope
        least = sum(float(f.min()) for f in [*unary.values(), *pairs.values()])
        most = sum(float(f.max()) for f in [*unary.values(), *pairs.values()])
        if low <= least and most <= high:
            return
        if most < low or least > high:
            self.empty = True
            return
        tuples = entries(self.sizes[i] for i in scope)
        if tuples <= (PAIR if len(scope) <= 2 else POSTED) and (pairs or len(scope) <= 3):
            body = Split(0.0, unary, pairs).over(scope)
            self.restrict(scope, (body >= low) & (body <= high))
            return
        for (i, j), f in pairs.items():
            unary[self._product(i, j, rule)] = f.ravel()
        self.rows.append(_linear_row(unary, low, high))

    def _product(self, i: int, j: int, rule: str) -> int:
        """Return the variable of all pairs of states of X_i and X_j."""
        if (i, j) not in self.products:
            size = self.sizes[i] * self.sizes[j]
            if size > DOMAIN_LIMIT:
                raise SolverError(
                    f"toulbar2 cannot take rule {rule!r}: it multiplies {self.labels[i]!r} and {self.labels[j]!r}, "
                    f"whose product has {size:,} values (at most {DOMAIN_LIMIT:,}); use solver='highs'"
                )
            k = self.variable(f"{self.labels[i]}*{self.labels[j]}", size)
            states = np.arange(size)
            self.restrict((i, k), np.arange(self.sizes[i])[:, None] == states[None, :] // self.sizes[j])
            self.restrict((j, k), np.arange(self.sizes[j])[:, None] == states[None, :] % self.sizes[j])
            self.products[i, j] = k
        return self.products[i, j]


def make_cost_network(program: BinaryProgram, fixed: Mapping[int, float], wanted: set[int]) -> CostNetwork:
    """Make the network of a program with some columns fixed.

    Args:
        wanted: base columns that an objective or a cut uses besides the binaries.

    Raises:
        SolverError: a column or a row cannot be expressed with finite domains.
    """
    if not program.has_base_rows:
        raise SolverError(
            "toulbar2 cannot take a program with rows or columns that a reduction added; use solver='highs'"
        )
    network = CostNetwork()
    for group in program.groups:
        i = network.variable(group.label, group.size)
        network.profiles += [(i, unit) for unit in np.eye(group.size)]
    network.profiles += [(-1, np.zeros(1))] * (program.n - program.n_z)
    used = wanted | {c for row in program.base_rows for c in columns_of(row.form)}
    later: list[int] = []
    for c in range(program.n_z, program.n):
        values = _values(program, c, fixed, used)
        if values is None:
            later.append(c)
        else:
            _set_values(network, program, c, values)
    for c in later:
        _set_values(network, program, c, _product_values(network, program, c))
    for c in range(program.n_z):
        i, profile = network.profiles[c]
        low, high = (fixed[c], fixed[c]) if c in fixed else (program.low[c], program.high[c])
        if low > 0.0 or high < 1.0:
            network.restrict((i,), (profile >= low - 1e-9) & (profile <= high + 1e-9))
    for row in program.base_rows:
        network.add_row(row.form, row.low, row.high, row.slack, row.rule)
    return network


def with_cuts(network: CostNetwork, program: BinaryProgram, cuts: Sequence[Cut]) -> CostNetwork:
    """Return the network with cuts added; the given one is not changed."""
    if not cuts:
        return network
    extended = CostNetwork(
        list(network.sizes),
        list(network.labels),
        network.profiles,
        dict(network.tables),
        list(network.rows),
        dict(network.products),
        network.empty,
    )
    for cut in cuts:
        form = replace(QuadraticForm.zero(program.n), linear=cut.weights(program.n))
        extended.add_row(form, cut.low, cut.high, CUT_SLACK, "a cut")
    return extended


def _set_values(network: CostNetwork, program: BinaryProgram, c: int, values: Vector) -> None:
    if len(values) == 1:
        network.profiles[c] = (-1, values)
    else:
        network.profiles[c] = (network.variable(_named(program, c), len(values)), values)


def _values(program: BinaryProgram, c: int, fixed: Mapping[int, float], used: set[int]) -> Vector | None:
    """Return the values that a column which is not one-hot can take; None if they follow from its rows."""
    low, high = float(program.low[c]), float(program.high[c])
    if c in fixed:
        return np.array([float(fixed[c])])
    if low == high or c not in used:
        return np.array([low])
    for number in program.numbers:
        if c == number.column != number.latent and number.latent in fixed:
            return np.unique([0.0, float(fixed[number.latent])])
        if c == number.latent != number.column and number.column in fixed:
            # the latent value of an active parameter is its value in rules; that of an inactive one is any value within its bounds
            return np.array([float(np.clip(fixed[number.column], low, high))])
    if not program.integer[c]:
        if any(c in (number.column, number.latent) for number in program.numbers):
            raise _continuous(program, c)
        return None
    if high - low >= DOMAIN_LIMIT:
        raise SolverError(
            f"toulbar2 cannot take {_named(program, c)!r}: it has {high - low + 1:,.0f} values "
            f"(at most {DOMAIN_LIMIT:,}); use solver='highs'"
        )
    values = np.arange(low, high + 1.0)
    conditional = any(c == number.column != number.latent for number in program.numbers)
    return np.union1d(values, [0.0]) if conditional else values


def _product_values(network: CostNetwork, program: BinaryProgram, c: int) -> Vector:
    """Return the values of a continuous column that its rows define as the product of a binary and another column.

    Raises:
        SolverError: its rows do not define it.
    """
    rows = [r for r in program.base_rows if not r.rule and not len(r.form.rows) and r.form.linear[c]]
    others = sorted({k for r in rows for k in np.flatnonzero(r.form.linear).tolist()} - {c})
    if len(others) != 2:
        raise _continuous(program, c)
    domains = [network.profiles[k][1] for k in others]
    a, b = (grid.ravel() for grid in np.meshgrid(*domains, indexing="ij"))
    least, most = np.full(len(a), program.low[c]), np.full(len(a), program.high[c])
    for row in rows:
        scale = row.form.linear[c]
        rest = row.form.linear[others[0]] * a + row.form.linear[others[1]] * b
        ends = np.sort(np.stack([(row.low - rest) / scale, (row.high - rest) / scale]), axis=0)
        least, most = np.maximum(least, ends[0]), np.minimum(most, ends[1])
    if np.any(np.abs(least - a * b) > 1e-7) or np.any(np.abs(most - a * b) > 1e-7):
        raise _continuous(program, c)
    return np.unique(a * b)


def _named(program: BinaryProgram, c: int) -> str:
    """Return the user's name of a column."""
    labels = (number.label for number in program.numbers if c in (number.column, number.latent))
    return next(labels, program.names[c])


def _continuous(program: BinaryProgram, c: int) -> SolverError:
    return SolverError(
        f"toulbar2 cannot take {_named(program, c)!r}, which is continuous and not fixed: its variables have "
        "finite domains; use solver='highs' (or 'auto'), or declare the parameter as an integer or an ordinal"
    )


def _linear_row(unary: Mapping[int, Vector], low: float, high: float) -> LinearRow:
    """Return the row in integers: exact if the coefficients are simple fractions, else within a rounding far below ``slack``."""
    # weights start at 0; the minimum of every function moves to the right-hand side
    shift = sum(float(f.min()) for f in unary.values())
    functions = {i: f - f.min() for i, f in unary.items()}
    low, high = low - shift, high - shift
    total = sum(float(f.max()) for f in functions.values())
    scale, margin = WEIGHT_LIMIT / total, float(len(functions))
    for multiplier in MULTIPLIERS:
        if all(
            np.all(np.abs(f * multiplier - np.round(f * multiplier)) < 1e-9 * multiplier) for f in functions.values()
        ):
            scale, margin = float(multiplier), 0.0
            break
    weights = [np.round(f * scale).astype(np.int64) for f in functions.values()]
    most = sum(int(w.max()) for w in weights)
    least_side = math.ceil(low * scale - margin) if math.isfinite(low) else 0
    most_side = math.floor(high * scale + margin) if math.isfinite(high) else most
    return LinearRow(
        tuple(functions),
        weights,
        least_side if least_side > 0 else None,
        most_side if most_side < most else None,
    )
