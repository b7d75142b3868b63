"""Rows over binaries and numerical parameters ("numbers"), split once so that fixing the numbers costs little.

Notation
    v_k         natural value of an active number; its column is v_k * on_k(z), with on_k affine in the binaries
    F_0, F_k    folded forms over the other columns;   c_k  scalars

A bilinear column is the product of two numbers, v_k = v_i v_j with on_k = on_i on_j, and counts as one number. Numbers multiply
binaries only, so a row is affine in them: ``low <= F_0(z) + sum_k v_k (c_k + F_k(z)) <= high``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mipcash.program.forms import Booleans, Indices, QuadraticForm, Vector
from mipcash.program.program import BaseRow, BinaryProgram, Condition, NumberColumn
from mipcash.program.unit_scale import activity_product, degree, key_of, resolved

MANY = 300
"""Number of rows with numbers above which they are evaluated together, without the rows that hold at all levels."""


@dataclass(frozen=True)
class Part:
    """The contribution c_k and F_k of one number, or of a product of two numbers, to a row."""

    labels: tuple[str, ...]
    constant: float
    form: QuadraticForm

    def value(self, numbers: Mapping[str, float]) -> float:
        """Return v_k at natural values by label."""
        return math.prod(numbers[label] for label in self.labels)


@dataclass(frozen=True)
class AffineRow:
    """A row of the program (see the module's notation).

    Attributes:
        row: as declared; F_0 is its form if it has no numbers.
        auxiliaries: columns of auxiliary variables and conjunctions in it.
        latent: True if it only ties a number to its latent column or its step variable, which checks at fixed numbers can skip.
        rest: F_0.
        parts: one per number and per product in it; None if an ``on`` is of higher degree than a form can express.
    """

    row: BaseRow
    auxiliaries: frozenset[int]
    latent: bool
    rest: QuadraticForm
    parts: tuple[Part, ...] | None

    def at(self, numbers: Mapping[str, float]) -> BaseRow:
        """Return the row over all other columns, with the numbers fixed at natural values by label."""
        assert self.parts is not None
        if not self.parts:
            return self.row
        values = [p.value(numbers) for p in self.parts]
        constant = sum(v * p.constant for v, p in zip(values, self.parts, strict=True))
        linear = self.rest.linear + sum(v * p.form.linear for v, p in zip(values, self.parts, strict=True))
        forms = [self.rest, *(p.form.scaled(v) for v, p in zip(values, self.parts, strict=True))]
        form = QuadraticForm(
            0.0,
            linear,
            np.concatenate([f.rows for f in forms]),
            np.concatenate([f.cols for f in forms]),
            np.concatenate([f.values for f in forms]),
        )
        return BaseRow(self.row.rule, form, self.row.low - constant, self.row.high - constant, self.row.slack)


def affine_rows(program: BinaryProgram) -> Sequence[AffineRow]:
    """Return all base rows of a program, split and cached in it."""
    return program.once("affine rows", lambda: [_apart(row, program) for row in program.base_rows])


@dataclass(frozen=True)
class AffineBlock:
    """Rows that are linear in the binaries once their numbers are fixed, evaluated together; see ``blockable``.

    Notation: R rows, K numbers; entry e is the coefficient of a binary in a row, at fixed numbers ``rest[e] + slopes[e] . v``.

    Attributes:
        rows: the R rows.
        labels: K names.
        rest: shape (E,).
        slopes: shape (E, K).
        constants: c_k of each row, the part of a number's coefficient that does not depend on the binaries, shape (R, K).
        row, column: of each entry, ascending, shape (E,).
    """

    program: BinaryProgram
    rows: tuple[AffineRow, ...]
    labels: tuple[str, ...]
    rest: Vector
    slopes: sparse.csr_array
    constants: sparse.csr_array
    row: Indices
    column: Indices

    @classmethod
    def of(cls, program: BinaryProgram, rows: Sequence[AffineRow]) -> AffineBlock:
        """Return the block of some rows for which ``blockable`` is True."""
        labels = tuple(n.label for n in program.numbers)
        number = {label: k for k, label in enumerate(labels)}
        entries: dict[tuple[int, int], int] = {}
        rest: list[float] = []
        slopes: list[tuple[int, int, float]] = []
        constants: list[tuple[int, int, float]] = []
        for r, each in enumerate(rows):
            linear = [each.rest.linear[: program.n_z], *(p.form.linear[: program.n_z] for p in each.parts or ())]
            for c in np.flatnonzero(np.any(linear, axis=0)).tolist():
                entries[r, c] = len(rest)
                rest.append(float(linear[0][c]))
            for part in each.parts or ():
                k = number[part.labels[0]]
                constants.append((r, k, part.constant))
                columns = np.flatnonzero(part.form.linear[: program.n_z]).tolist()
                slopes += [(entries[r, c], k, float(part.form.linear[c])) for c in columns]
        at = np.array(list(entries), dtype=np.int64).reshape(-1, 2)
        shapes = (len(rest), len(labels)), (len(rows), len(labels))
        return cls(
            program,
            tuple(rows),
            labels,
            np.array(rest),
            _sparse(slopes, shapes[0]),
            _sparse(constants, shapes[1]),
            at[:, 0],
            at[:, 1],
        )

    def at(self, numbers: Mapping[str, float]) -> list[BaseRow]:
        """Return the rows, with the numbers fixed at these natural values, that some levels may violate."""
        v = np.array([numbers[label] for label in self.labels])
        values, constants = self.rest + self.slopes @ v, self.constants @ v
        found = []
        starts = np.searchsorted(self.row, np.arange(len(self.rows) + 1))
        empty = np.zeros(0, dtype=np.int64)
        for r in np.flatnonzero(~self._always(values, constants)).tolist():
            row, inside = self.rows[r].row, slice(starts[r], starts[r + 1])
            linear = np.zeros(self.program.n)
            linear[self.column[inside]] = values[inside]
            form = QuadraticForm(0.0, linear, empty, empty, np.zeros(0))
            found.append(BaseRow(row.rule, form, row.low - constants[r], row.high - constants[r], row.slack))
        return found

    def _always(self, values: Vector, constants: Vector) -> Booleans:
        """Return which rows hold at all levels, by interval arithmetic: each group adds one of its coefficients."""
        program = self.program
        low, high, slack = (
            np.array([getattr(each.row, name) for each in self.rows]) for name in ("low", "high", "slack")
        )
        least, most = np.zeros(len(self.rows)), np.zeros(len(self.rows))
        if len(values):
            group = program.group_of[self.column]
            first = np.flatnonzero(np.diff(self.row * len(program.groups) + group, prepend=-1))
            # a level without an entry adds nothing
            some_zero = np.diff(np.append(first, len(values))) < program.sizes[group[first]]
            lowest, highest = np.minimum.reduceat(values, first), np.maximum.reduceat(values, first)
            np.add.at(least, self.row[first], np.where(some_zero, np.minimum(lowest, 0.0), lowest))
            np.add.at(most, self.row[first], np.where(some_zero, np.maximum(highest, 0.0), highest))
        # a row within half its tolerance of a bound is kept, so that rounding does not decide
        return np.asarray((least + constants >= low - 0.5 * slack) & (most + constants <= high + 0.5 * slack))


def affine_block(program: BinaryProgram) -> AffineBlock | None:
    """Return the rows of a program that are evaluated together, or None for at most MANY such rows."""

    def made() -> AffineBlock | None:
        rows = [each for each in affine_rows(program) if blockable(each)]
        return AffineBlock.of(program, rows) if len(rows) > MANY else None

    return program.once("affine block", made)


def blockable(each: AffineRow) -> bool:
    """Return True if a row has numbers, no auxiliary variables, and no products once its numbers are fixed."""
    if each.latent or each.auxiliaries or not each.parts or any(len(p.labels) > 1 for p in each.parts):
        return False
    return not len(each.rest.rows) and not any(len(p.form.rows) for p in each.parts)


def _sparse(entries: Sequence[tuple[int, int, float]], shape: tuple[int, int]) -> sparse.csr_array:
    rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
    matrix = sparse.coo_array(
        (np.array(values, dtype=float), (np.array(rows, int), np.array(columns, int))), shape=shape
    )
    return sparse.csr_array(matrix)


def columns_of(form: QuadraticForm) -> set[int]:
    """Return the columns that a form depends on."""
    return set(np.flatnonzero(form.linear).tolist()) | set(form.rows.tolist()) | set(form.cols.tolist())


def _apart(row: BaseRow, program: BinaryProgram) -> AffineRow:
    used = columns_of(row.form)
    at = {n.column: n for n in program.numbers}
    numbers = [(n.column, (n,)) for n in program.numbers if n.column in used]
    products = [(p, (at.get(p.first), at.get(p.second))) for p in program.bilinear if p.column in used]
    latent = any((n.latent in used and n.latent != n.column) or n.place in used for n in program.numbers)
    own = {c for c, _ in numbers} | {p.column for p, _ in products}
    auxiliaries = frozenset(c for c in used if c >= program.n_z) - own
    terms: list[tuple[int, tuple[NumberColumn, ...]]] = list(numbers)
    for product, (first, second) in products:
        if first is None or second is None:
            return AffineRow(row, auxiliaries, latent, row.form, None)
        terms.append((product.column, (first, second)))
    if any(degree(_joint(of)) > (1 if len(of) == 1 else 2) for _, of in terms):
        return AffineRow(row, auxiliaries, latent, row.form, None)
    linear = np.where(np.isin(np.arange(row.form.n), list(own)), 0.0, row.form.linear)
    keep = ~(np.isin(row.form.rows, list(own)) | np.isin(row.form.cols, list(own)))
    rest = QuadraticForm(0.0, linear, row.form.rows[keep], row.form.cols[keep], row.form.values[keep])
    parts = tuple(_part(row.form, column, of, program) for column, of in terms)
    return AffineRow(row, auxiliaries, latent, program.folded(rest), parts)


def _joint(numbers: Sequence[NumberColumn]) -> tuple[Condition, ...]:
    """Return the conditions under which all of the given numbers are active, without duplicates."""
    return tuple({key_of(c): c for n in numbers for c in n.conditions}.values())


def _part(form: QuadraticForm, column: int, numbers: Sequence[NumberColumn], program: BinaryProgram) -> Part:
    """Return the terms with one number, or a product of two numbers, its column replaced by ``on(z)``.

    The column of a product of two numbers is in no other product.
    """
    constant, linear, (rows, cols, values) = activity_product(resolved(_joint(numbers)), form.n)
    own, at = float(form.linear[column]), np.flatnonzero(linear)
    of = (form.rows == column) | (form.cols == column)
    others, weights = np.where(form.rows == column, form.cols, form.rows)[of], form.values[of]
    slope = own * linear
    np.add.at(slope, others, weights * constant)
    product = QuadraticForm(
        0.0,
        slope,
        np.concatenate([rows, np.repeat(others, len(at))]),
        np.concatenate([cols, np.tile(at, len(others))]),
        np.concatenate([own * values, np.outer(weights, linear[at]).ravel()]),
    )
    return Part(tuple(n.label for n in numbers), own * constant, program.folded(product))
