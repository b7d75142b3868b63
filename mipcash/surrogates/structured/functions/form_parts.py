"""Coefficients of a function of the binaries at fixed values of the numerical parameters ("numbers").

Notation
    q(z) = constant + linear . z + sum_j active_j on_j(z) + sum_{g < h} z_g' S_gh z_h
           + sum_j on_j(z) mixed_j . z + sum_{j < k} on_j(z) on_k(z) N_jk

on_j(z) is a product of at most two affine indicators (1 for a number without conditions). So q is quadratic if ``mixed`` and N are
zero for products of degree above two.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from mipcash.program.forms import QuadraticForm, Vector
from mipcash.program.program import Indicator
from mipcash.program.unit_scale import activity_product, resolved
from mipcash.surrogates.structured.structure import Structure

Polynomial = tuple[float, Vector, Vector]
"""Constant, linear (n_z,) and product (n_z, n_z) coefficients."""


@dataclass(frozen=True)
class FormParts:
    """Coefficients of q (see the module's notation).

    Attributes:
        constant: scalar.
        linear: shape (n_z,).
        active: shape (J,).
        group_pairs: S, shape (n_z, n_z), symmetric.
        mixed: shape (n_z, J).
        number_pairs: N, shape (J, J), symmetric.
    """

    constant: float
    linear: Vector
    active: Vector
    group_pairs: Vector
    mixed: Vector
    number_pairs: Vector

    def __add__(self, other: FormParts) -> FormParts:
        return FormParts(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    def form(self, structure: Structure) -> QuadraticForm:
        """Return q as a quadratic form over the base columns of the program."""
        constant, linear = self.constant, self.linear.copy()
        square = np.triu(self.group_pairs, k=1)
        always, conditional = structure.joint, structure.conditional
        constant += float(self.active[always].sum() + 0.5 * self.number_pairs[np.ix_(always, always)].sum())
        linear += self.mixed[:, always].sum(axis=1)
        weight = self.active + self.number_pairs[:, always].sum(axis=1)
        for j in structure.conjunctions:  # Two conditions: the number is in no pair, so on_j itself may be quadratic.
            c, l, s = on_polynomial(resolved(structure.conditions[j]), structure.n_z)
            constant, linear, square = constant + weight[j] * c, linear + weight[j] * l, square + weight[j] * s
        if len(conditional):
            offset, slope = structure.affine  # on_j = offset_j + slope_j . z
            mixed, pairs = self.mixed[:, conditional], self.number_pairs[np.ix_(conditional, conditional)]
            constant += float(weight[conditional] @ offset + 0.5 * offset @ pairs @ offset)
            linear += slope @ (weight[conditional] + pairs @ offset) + mixed @ offset
            square = square + slope @ mixed.T + 0.5 * (slope @ pairs @ slope.T)
        rows, cols = np.nonzero(square)
        padded = np.zeros(structure.n)
        padded[: structure.n_z] = linear
        return QuadraticForm(constant, padded, rows.astype(np.int64), cols.astype(np.int64), square[rows, cols])


def on_polynomial(conditions: tuple[Indicator, ...], n_z: int) -> Polynomial:
    """Return on(z) of at most two conditions as a polynomial."""
    constant, linear, (rows, cols, values) = activity_product(conditions, n_z)
    square = np.zeros((n_z, n_z))
    np.add.at(square, (rows, cols), values)
    return constant, linear, square
