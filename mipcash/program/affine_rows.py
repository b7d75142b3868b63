"""Rows over binaries and numbers, taken apart once so that fixing the numbers costs little.

Notation
    v_k         natural value of a number that is on; its column is v_k * on_k(z), with on_k affine in the binaries
    F_0, F_k    folded forms over the other columns;   c_k  scalars

A number multiplies no other number, so that a row is affine in the numbers:
``low <= F_0(z) + sum_k v_k (c_k + F_k(z)) <= high``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.program import BaseRow, BinaryProgram, NumberColumn


@dataclass(frozen=True)
class Part:
    """What one number brings to a row: its label, c_k and F_k."""

    label: str
    constant: float
    form: QuadraticForm


@dataclass(frozen=True)
class AffineRow:
    """A row of the program (see the module's notation).

    Attributes:
        row: as declared; F_0 is its form where it has no numbers.
        helpers: columns of auxiliaries and conjunctions in it.
        latent: whether it ties a number to its latent column, which fixed numbers need not look at.
        rest: F_0.
        parts: one per number in it; None where a number's ``on`` is a conjunction, which is not affine in z.
    """

    row: BaseRow
    helpers: frozenset[int]
    latent: bool
    rest: QuadraticForm
    parts: tuple[Part, ...] | None

    def at(self, numbers: Mapping[str, float]) -> BaseRow:
        """The row over the other columns, with the numbers at these natural values by label."""
        assert self.parts is not None
        if not self.parts:
            return self.row
        values = [numbers[p.label] for p in self.parts]
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
    """All base rows of a program, taken apart when first asked for."""
    if "affine rows" not in program.derived:
        program.derived["affine rows"] = [_apart(row, program) for row in program.base_rows]
    found: Sequence[AffineRow] = program.derived["affine rows"]
    return found


def columns_of(form: QuadraticForm) -> set[int]:
    """The columns that a form depends on."""
    return set(np.flatnonzero(form.linear).tolist()) | set(form.rows.tolist()) | set(form.cols.tolist())


def _apart(row: BaseRow, program: BinaryProgram) -> AffineRow:
    used = columns_of(row.form)
    numbers = [n for n in program.numbers if n.column in used]
    latent = any(n.latent in used and n.latent != n.column for n in program.numbers)
    helpers = frozenset(c for c in used if c >= program.n_z) - {n.column for n in numbers}
    if any(len(n.conditions) > 1 for n in numbers):
        return AffineRow(row, helpers, latent, row.form, None)
    own = {n.column for n in numbers}
    linear = np.where(np.isin(np.arange(row.form.n), list(own)), 0.0, row.form.linear)
    keep = ~(np.isin(row.form.rows, list(own)) | np.isin(row.form.cols, list(own)))
    rest = QuadraticForm(0.0, linear, row.form.rows[keep], row.form.cols[keep], row.form.values[keep])
    parts = tuple(_part(row.form, n, program) for n in numbers)
    return AffineRow(row, helpers, latent, program.folded(rest), parts)


def _part(form: QuadraticForm, number: NumberColumn, program: BinaryProgram) -> Part:
    """The terms with one number, its column replaced by ``on(z)``."""
    on_constant, on_columns, on_values = _on(number)
    own = form.linear[number.column]
    linear = np.zeros(form.n)
    np.add.at(linear, on_columns, own * on_values)
    of = (form.rows == number.column) | (form.cols == number.column)
    others = np.where(form.rows == number.column, form.cols, form.rows)[of]
    weights = form.values[of]
    np.add.at(linear, others, weights * on_constant)
    product = QuadraticForm(
        0.0,
        linear,
        np.repeat(others, len(on_columns)),
        np.tile(on_columns, len(others)),
        np.outer(weights, on_values).ravel(),
    )
    return Part(number.label, float(own * on_constant), program.folded(product))


def _on(number: NumberColumn) -> tuple[float, Indices, Vector]:
    """Constant, columns and coefficients of a number's one condition, if it has any."""
    if not number.conditions:
        return 1.0, np.zeros(0, dtype=np.int64), np.zeros(0)
    (only,) = number.conditions
    return only.constant, only.columns, only.coefficients
