"""Compile a declared space into a BinaryProgram, exactly.

Each Pyomo variable becomes an affine function of base columns; a product of two variables becomes

    group * group, group * number      product columns with RLT rows (``mipcash.program.products``)
    binary * anything                  one column w with the four McCormick rows, exact at binary points
    integer * number                   the integer in bits, u = low + sum_k 2^k b_k, then binary * number (beyond BITS: real * real)
    real * real                        a bilinear column w = x x', which no row ties to its factors: backends solve
                                       relaxations of it (``mipcash.backends.spatial``), to the tolerance of rules

A conditional number v has a latent column v~ in [low, high] besides its value in rules,
``v~ - high (1 - on) <= v <= v~ - low (1 - on)`` (with ``low on <= v <= high on`` from the model). Fixing v~ fixes the value of
an active number without deciding its activity.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from mipcash.errors import SpaceError
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.declared import Number
from mipcash.modelling.live.value_sets import ROUNDING
from mipcash.modelling.quadratic import Condition as Declared
from mipcash.modelling.quadratic import Quadratic, Term, Variable
from mipcash.modelling.rules import TOLERANCE, rounding_of
from mipcash.program.algebra import AlgebraicModel, AlgebraicRow, algebraic_model
from mipcash.program.forms import QuadraticForm
from mipcash.program.products import Bilinear
from mipcash.program.program import (
    BaseRow,
    BinaryProgram,
    Compound,
    Condition,
    Group,
    Indicator,
    NumberColumn,
)
from mipcash.program.rewriting import with_products, with_rows

BITS = 24
"""Largest number of bits of an integer; with more bits, the coefficients of a row lose precision."""


@dataclass
class _Row:
    """A row under construction: base columns and products of base columns."""

    rule: str
    linear: dict[int, float] = field(default_factory=dict)
    products: dict[tuple[int, int], float] = field(default_factory=dict)
    low: float = -math.inf
    high: float = math.inf
    slack: float | None = None

    def add(self, column: int, value: float) -> None:
        self.linear[column] = self.linear.get(column, 0.0) + value

    def add_product(self, a: int, b: int, value: float) -> None:
        key = (min(a, b), max(a, b))
        self.products[key] = self.products.get(key, 0.0) + value


Affine = tuple[float, dict[int, float]]
"""A variable as ``constant + sum coefficient * column``."""


class _Compiler:
    """Mutable state of one compilation; use ``compile_space``."""

    def __init__(self, declaration: Declaration, algebra: AlgebraicModel) -> None:
        self.declaration, self.algebra = declaration, algebra
        self.low: list[float] = []
        self.high: list[float] = []
        self.integer: list[bool] = []
        self.names: list[str] = []
        self.rows: list[_Row] = []
        self.affine: dict[int, Affine] = {}
        self.groups: list[Group] = []
        self.numbers: list[NumberColumn] = []
        self.group_of: dict[int, int] = {}
        self.mixed: dict[tuple[int, int], int] = {}
        self.steps: dict[int, tuple[float, float, Number]] = {}
        """Column of a real with a step -> its lowest value, its step and the number."""
        self.places: set[int] = set()
        """Ids of the variables k of numbers ``low + k * step``."""
        self.bits: dict[int, tuple[float, list[tuple[float, int]]]] = {}
        self.bilinear: dict[tuple[int, int], int] = {}
        self.variable_columns: dict[str, int] = {}

    def column(self, name: str, low: float, high: float, integer: bool) -> int:
        self.low.append(low)
        self.high.append(high)
        self.integer.append(integer)
        self.names.append(name)
        return len(self.low) - 1

    # -- columns ------------------------------------------------------------------------------------------------

    def make_groups(self) -> None:
        for g, spec in enumerate(self.declaration.groups):
            start = len(self.low)
            for variable, value in zip(spec.variables, spec.values, strict=True):
                column = self.column(f"{spec.label}={value}", 0.0, 1.0, True)
                self.affine[id(self.algebra.image[id(variable)])] = (0.0, {column: 1.0})
            if spec.on is not None:
                self.column(f"{spec.label}=off", 0.0, 1.0, True)
            stop = len(self.low)
            self.group_of.update(dict.fromkeys(range(start, stop), g))
            conditions = self.conditions(spec.parameter)
            self.groups.append(Group(spec.label, spec.parameter, start, stop, spec.values, spec.kind, conditions))
            self.rows.append(_Row("", dict.fromkeys(range(start, stop), 1.0), {}, 1.0, 1.0))
        self.one_hot = {frozenset(row.linear.items()) for row in self.rows}

    def conditions(self, label: str) -> tuple[Condition, ...]:
        """Return the conditions of a parameter's activity; they use groups that come before it."""
        return tuple(map(self._condition, self.declaration.conditions.get(label, ())))

    def _condition(self, declared: Declared) -> Condition:
        if not isinstance(declared, Quadratic):
            return Compound(declared.every, tuple(map(self._condition, declared.parts)))
        columns = [self._only_column(self.algebra.image[i]) for i in declared.linear]
        assert len({self.group_of[c] for c in columns}) == 1, "a condition is a 0/1 value: of one group's levels"
        return Indicator(declared.constant, np.array(columns, dtype=np.int64), np.array(list(declared.linear.values())))

    def make_numbers(self, wanted: Collection[str]) -> set[str]:
        """Make columns for the numbers that are wanted, occur in rules or were restricted on the live model.

        Return the labels of all other numbers.
        """
        used = {i for row in self.algebra.rows if not row.parameter for i in row.body.ids}
        unused: set[str] = set()
        for number in self.declaration.numbers:
            variable = self.algebra.image[id(number.variable)]
            restricted = number.tuned and number.restriction() is not None
            mentioned = any(id(self.algebra.image[id(v)]) in used for v in number.columns())
            if number.tuned and not (mentioned or restricted or number.label in wanted):
                unused.add(number.label)
                continue
            column = self._variable(variable)
            if number.tuned:
                latent = column if number.on is None else self._latent(number, column)
                place = self._place(number, column, latent)
                on = next((self._variable(self.algebra.image[id(v)]) for v in number.columns()[1:]), None)
                conditions = self.conditions(number.label)
                self.numbers.append(NumberColumn(number.label, column, latent, conditions, on, place))
        for link in self.declaration.links:
            terms = {self._only_column(self.algebra.image[i]): c for i, c in link.value.linear.items()}
            self.affine[id(self.algebra.image[id(link.variable)])] = (link.value.constant, terms)
        return unused

    def fix_columns(self) -> None:
        """Fix the columns of variables that are fixed on the live model (Pyomo reads those as constants in constraints)."""
        for variable in self.algebra.image.values():
            base, terms = self.affine.get(id(variable), (0.0, {}))
            if variable.fixed and len(terms) == 1 and base == 0.0:
                ((column, scale),) = terms.items()
                self.low[column] = self.high[column] = float(variable.value) / scale

    def _only_column(self, variable: Variable) -> int:
        return next(iter(self.affine[id(variable)][1]))

    def _variable(self, variable: Variable) -> int:
        """Return the column of a Pyomo variable that is not the binary of a level. It is created on first use.

        Raises:
            SpaceError: the variable has no finite bounds.
        """
        known = self.affine.get(id(variable))
        if known is not None:
            return next(iter(known[1]))
        low, high = variable.bounds
        name, continuous = variable.name, variable.is_continuous()
        if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
            raise SpaceError(f"variable {name!r} of the Pyomo model has no finite bounds; give it both (setlb, setub)")
        if not continuous:
            low, high = math.ceil(low - ROUNDING), math.floor(high + ROUNDING)
        column = self.column(name, float(low), float(high), not continuous)
        self.affine[id(variable)] = (0.0, {column: 1.0})
        self.variable_columns[name] = column
        return column

    def _latent(self, number: Number, column: int) -> int:
        assert number.on is not None
        low, high = float(number.domain.low), float(number.domain.high)
        latent = self.column(f"{number.label}~", low, high, self.integer[column])
        for bound, below in ((low, True), (high, False)):
            # below: v - v~ <= -low (1 - on);  else: v - v~ >= -high (1 - on)
            row = _Row("", {column: 1.0, latent: -1.0})
            constant = number.on.constant
            for i, c in number.on.linear.items():
                _, terms = self.affine_of(self.algebra.image[i])
                for k, t in terms.items():
                    row.add(k, -bound * c * t)
            limit = -bound * (1.0 - constant)
            row.low, row.high = (-math.inf, limit) if below else (limit, math.inf)
            self.rows.append(row)
        return latent

    def _place(self, number: Number, column: int, latent: int) -> int:
        """Return column k of ``latent = low + k * step``, which restricts an active number to its steps; -1 if there is none."""
        variable = self.declaration.place_of(number)
        if variable is None:
            return -1
        variable = self.algebra.image[id(variable)]
        self.places.add(id(variable))
        place, low, step = self._variable(variable), float(number.domain.low), float(number.domain.step or 1)
        self.rows.append(_Row("", {latent: 1.0, place: -step}, {}, low, low))
        if not self.integer[column]:
            self.steps[column] = (low, step, number)
        return place

    def affine_of(self, variable: Variable) -> Affine:
        if id(variable) not in self.affine:
            self._variable(variable)
        return self.affine[id(variable)]

    # -- rows ---------------------------------------------------------------------------------------------------

    def make_row(self, source: AlgebraicRow) -> None:
        row = _Row(source.rule, slack=source.slack)
        constant = self.expand(source.body, row)
        row.low = source.lower - constant
        row.high = source.upper - constant
        # the live model has the rows of unconditional groups too
        if (
            source.rule
            or (row.low, row.high) != (1.0, 1.0)
            or row.products
            or frozenset(row.linear.items()) not in self.one_hot
        ):
            self.rows.append(row)

    def expand(self, body: Quadratic, row: _Row) -> float:
        """Add the terms of a polynomial to a row; return its constant."""
        constant = body.constant
        for i, c in body.linear.items():
            base, terms = self.affine_of(body.variables[i])
            constant += c * base
            for column, t in terms.items():
                row.add(column, c * t)
        for (i, j), c in body.products.items():
            base_i, terms_i = self.affine_of(body.variables[i])
            base_j, terms_j = self.affine_of(body.variables[j])
            constant += c * base_i * base_j
            for column, t in terms_i.items():
                row.add(column, c * base_j * t)
            for column, t in terms_j.items():
                row.add(column, c * base_i * t)
            for a, s in terms_i.items():
                for b, t in terms_j.items():
                    self.multiply(a, b, c * s * t, row)
        return constant

    def multiply(self, a: int, b: int, value: float, row: _Row) -> None:
        """Add ``value * column a * column b`` to a row."""
        if not value:
            return
        in_a, in_b = self.group_of.get(a), self.group_of.get(b)
        if in_a is not None and in_a == in_b:
            if a == b:
                row.add(a, value)
        elif in_a is not None or in_b is not None:
            row.add_product(a, b, value)
        elif self._is_binary(a) or self._is_binary(b):
            first, second = (a, b) if self._is_binary(a) else (b, a)
            row.add(first, value) if a == b else row.add(self._mccormick(first, second), value)
        else:
            self._multiply_numbers(a, b, value, row)

    def _is_binary(self, column: int) -> bool:
        return self.integer[column] and self.low[column] >= 0 and self.high[column] <= 1

    def _multiply_numbers(self, a: int, b: int, value: float, row: _Row) -> None:
        if not any(self._in_few_bits(c) for c in (a, b)):
            row.add(self._bilinear(min(a, b), max(a, b)), value)
            return

        def width(column: int) -> tuple[bool, float]:
            whole = self.integer[column] or column in self.steps
            return not whole, self.high[column] - self.low[column]

        first, second = sorted((a, b), key=width)
        low, bits = self._in_bits(first)
        row.add(second, value * low)
        for weight, bit in bits:
            self.multiply(bit, second, value * weight, row)

    def _in_few_bits(self, column: int) -> bool:
        """Return True if a number is an integer, or a real with a step, of at most 2 ** BITS values."""
        if column in self.steps:
            return len(self.steps[column][2].domain.values).bit_length() <= BITS
        return self.integer[column] and self.high[column] - self.low[column] < 2.0**BITS

    def _bilinear(self, a: int, b: int) -> int:
        """Return the column of the product of two numbers that have too many values for bits."""
        if (a, b) not in self.bilinear:
            ends = [x * y for x in (self.low[a], self.high[a]) for y in (self.low[b], self.high[b])]
            if a == b:
                ends = [self.low[a] ** 2, self.high[a] ** 2] + ([0.0] if self.low[a] <= 0.0 <= self.high[a] else [])
            self.bilinear[a, b] = self.column(f"{self.names[a]}*{self.names[b]}", min(ends), max(ends), False)
        return self.bilinear[a, b]

    def _in_bits(self, column: int) -> tuple[float, list[tuple[float, int]]]:
        """Write a column as ``low + sum weight * bit``; return ``low, [(weight, bit column)]``, cached.

        The column is an integer or a real with a step. A conditional real with a step is ``low on + step (b_0 + 2 b_1 + ...)``, and
        the columns of ``on`` are among its bits.
        """
        if column in self.bits:
            return self.bits[column]
        low, span = self.low[column], self.high[column] - self.low[column]
        switches: list[tuple[float, int]] = []
        if column in self.steps:
            least, step, number = self.steps[column]
            low = least if number.on is None else least * number.on.constant
            for i, c in {} if number.on is None else number.on.linear.items():
                switches += [(least * c * t, k) for k, t in self.affine_of(self.algebra.image[i])[1].items()]
            weights = [step * 2.0**k for k in range((len(number.domain.values) - 1).bit_length())]
        else:
            weights = [float(2**k) for k in range(max(1, math.ceil(math.log2(span + 1))))]
        name = self.names[column]
        bits = [(w, self.column(f"{name}~bit{k}", 0.0, 1.0, True)) for k, w in enumerate(weights)] + switches
        link = _Row("", {column: 1.0}, {}, low, low)
        for weight, bit in bits:
            link.add(bit, -weight)
        self.rows.append(link)
        self.bits[column] = (low, bits)
        return self.bits[column]

    def _mccormick(self, a: int, b: int) -> int:
        """Return column w for a * b with the four McCormick rows; exact if a is binary."""
        key = (a, b)
        if key in self.mixed:
            return self.mixed[key]
        (la, ua), (lb, ub) = (self.low[a], self.high[a]), (self.low[b], self.high[b])
        ends = (la * lb, la * ub, ua * lb, ua * ub)
        whole = self.integer[a] and self.integer[b]
        w = self.column(f"{self.names[a]}*{self.names[b]}", min(ends), max(ends), whole)
        # (a - la)(b - lb) >= 0, (ua - a)(ub - b) >= 0, (ua - a)(b - lb) >= 0, (a - la)(ub - b) >= 0
        for p, q, at_least in ((la, lb, True), (ua, ub, True), (ua, lb, False), (la, ub, False)):
            row = _Row("", {w: 1.0})
            row.add(a, -q)
            row.add(b, -p)
            row.low, row.high = (-p * q, math.inf) if at_least else (-math.inf, -p * q)
            self.rows.append(row)
        self.mixed[key] = w
        return w

    # -- assembly -----------------------------------------------------------------------------------------------

    def assemble(self) -> BinaryProgram:
        n = len(self.low)
        n_z = self.groups[-1].stop if self.groups else 0
        bare = BinaryProgram(
            groups=tuple(self.groups),
            numbers=tuple(self.numbers),
            n=n,
            n_z=n_z,
            matrix=sparse.csr_array((0, n)),
            row_low=np.zeros(0),
            row_high=np.zeros(0),
            row_rule=(),
            row_slack=np.zeros(0),
            low=np.array(self.low),
            high=np.array(self.high),
            integer=np.array(self.integer, dtype=float),
            names=tuple(self.names),
            products=(),
            domains={label: p.domain for label, p in self.declaration.parameters.items()},
            base_rows=tuple(BaseRow(row.rule, _form(row, n), row.low, row.high, self.slack(row)) for row in self.rows),
            conditions={label: self.conditions(label) for label in self.declaration.conditions},
            variable_columns=dict(self.variable_columns),
            bilinear=tuple(Bilinear(column, a, b) for (a, b), column in self.bilinear.items()),
        )
        forms = {k: bare.base_rows[k].form for k, row in enumerate(self.rows) if row.products}
        couplings = set().union(*(bare.couplings(form) for form in forms.values()))
        program = with_products(bare, couplings)
        return _with_declared_rows(program, self.rows, forms, [row.slack for row in bare.base_rows])

    def slack(self, row: _Row) -> float:
        """Return the tolerance of a row: that of its rule, plus the rounding error of a sum with big-M constants."""
        size = {
            c: max(abs(self.low[c]), abs(self.high[c])) for c in {*row.linear, *(c for p in row.products for c in p)}
        }
        of = {c: self.group_of.get(c, -1 - c) for c in size}
        linear = [Term(abs(v), size[c], (of[c],)) for c, v in row.linear.items()]
        terms = [*linear, *(Term(abs(v), size[a] * size[b], (of[a], of[b])) for (a, b), v in row.products.items())]
        ends = [abs(b) for b in (row.low, row.high) if math.isfinite(b)]
        whole = all(self.integer[c] for c in size) and all(float(b).is_integer() for b in ends)
        rounding = rounding_of(terms, max(ends, default=0.0), whole)
        if row.slack is not None:
            return row.slack + rounding
        # if numbers occur, ignore the binaries: the coefficient of an activity binary is the number's range, not a scale of the row
        numbers = [(abs(v), size[c]) for c, v in row.linear.items() if not self._is_binary(c)]
        return TOLERANCE * max((t[0] * min(1.0, t[1]) for t in numbers or terms), default=0.0) + rounding


def _form(row: _Row, n: int) -> QuadraticForm:
    linear = np.zeros(n)
    linear[list(row.linear)] = list(row.linear.values())
    pairs = np.array(list(row.products), dtype=np.int64).reshape(-1, 2)
    return QuadraticForm(0.0, linear, pairs[:, 0], pairs[:, 1], np.array(list(row.products.values())))


def _with_declared_rows(
    program: BinaryProgram, rows: list[_Row], forms: Mapping[int, QuadraticForm], slacks: list[float]
) -> BinaryProgram:
    columns: list[np.ndarray] = []
    values: list[np.ndarray] = []
    for k, row in enumerate(rows):
        if k in forms:
            cost = program.cost(forms[k])
            at = np.flatnonzero(cost)
            columns.append(at)
            values.append(cost[at])
        else:
            columns.append(np.fromiter(row.linear, dtype=np.int64, count=len(row.linear)))
            values.append(np.fromiter(row.linear.values(), dtype=float, count=len(row.linear)))
    indptr = np.cumsum([0, *map(len, columns)])
    matrix = sparse.csr_array(
        (np.concatenate([np.zeros(0), *values]), np.concatenate([np.zeros(0, dtype=np.int64), *columns]), indptr),
        shape=(len(rows), program.n_columns),
    )
    ends = np.array([r.low for r in rows]), np.array([r.high for r in rows])
    return with_rows(program, matrix, *ends, tuple(r.rule for r in rows), slacks)


def compile_space(
    declaration: Declaration, wanted: Collection[str] = (), algebra: AlgebraicModel | None = None
) -> BinaryProgram:
    """Compile a declared space.

    Args:
        wanted: labels of numbers that get a column even if no rule mentions them.
        algebra: the rows of the space; None: they are collected.

    Raises:
        SpaceError: nothing to tune, or a variable without bounds.
        RuleError: a constraint of degree above two.
    """
    if not declaration.parameters:
        raise SpaceError(f"space {declaration.name!r} has no parameters; declare at least one")
    algebra = algebraic_model(declaration) if algebra is None else algebra
    compiler = _Compiler(declaration, algebra)
    compiler.make_groups()
    unused = compiler.make_numbers(wanted)
    for row in algebra.rows:
        if row.parameter not in unused and not compiler.places & row.body.ids:
            compiler.make_row(row)
    compiler.fix_columns()
    return compiler.assemble()
