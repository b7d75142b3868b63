"""Kernels at fixed binaries, as functions of the numerical parameters ("numbers") with gradients, for continuous optimisation.

Notation
    x = (z, u) with z fixed, y_i (B' of them) the other points;   A_g, A_j, E, P, R as in
    ``mipcash.surrogates.structured.kernel``
"""

from __future__ import annotations

import numpy as np

from mipcash.program.forms import Vector
from mipcash.program.unit_scale import INACTIVE
from mipcash.surrogates.structured.encoded import Encoded
from mipcash.surrogates.structured.kernel import Kernel


class ResidualSection:
    """R((z, u), y_i) as a function of u, with z the binaries of the point x.

    Attributes:
        u: the other points' units, shape (B', J).
        active: activities at z, shape (J,).
        r: lengths, shape (J,).
        amplitude: the factor of R that depends on z, shape (B',).
    """

    def __init__(self, kernel: Kernel, x: Encoded, y: Encoded) -> None:
        self.u, self.active, self.r = y.shown, x.active[0], kernel.r
        self.amplitude = kernel.residual_variance * np.exp(-kernel.apart_from(x, y))

    def __call__(self, u: Vector) -> tuple[Vector, Vector]:
        """Return R and its gradient with respect to u: (J,) -> (B',), (B', J)."""
        difference = np.where(self.active > 0, u, INACTIVE) - self.u
        k = self.amplitude * np.exp(-0.5 * np.sum((difference / self.r) ** 2, axis=1))
        return k, -k[:, None] * difference * self.active / self.r**2


class KernelSection:
    """K((z, u), y_i) as a function of u. All terms that depend on z alone are computed once.

    A_g of shape (G, B') is fixed. With number terms N (J, B') and B = E_JG A (J, B'), K = base + c1 sum_j N_j + c2 (sum_j N_j B_j +
    sum_jk E_jk N_j N_k / 2) + P bracket.

    Attributes:
        kernel: K.
        y: the other points, B' of them.
        scale: b_j on_j on'_j, shape (J, B').
        base, bracket: shape (B',).
        beside: B, shape (J, B').
        among: E between the numbers, shape (J, J).
        alike: True in a wide space where all numbers interact, so that one sum over numbers replaces a product with E.
    """

    def __init__(self, kernel: Kernel, x: Encoded, y: Encoded) -> None:
        s, (c1, c2, sc, cm, cq) = kernel.structure, kernel.factors
        g = s.n_groups
        groups = kernel.group_terms(x, y)[:, 0]
        total = groups.sum(axis=0)
        pairs = 0.5 * np.sum(groups * (s.pairs[:g, :g] @ groups), axis=0)
        self.kernel, self.y, self.scale = kernel, y, kernel.b[:, None] * x.on[0][:, None] * y.on.T
        self.base, self.bracket = 1.0 + c1 * total + c2 * pairs, sc + cm * total + cq * pairs
        self.beside, self.among = s.pairs[g:, :g] @ groups, s.pairs[g:, g:]
        self.alike = s.wide and not s.conjunctions

    def __call__(self, u: Vector) -> tuple[Vector, Vector]:
        """Return K and its gradient with respect to u: (J,) -> (B',), (B', J)."""
        kernel, (c1, c2, *_) = self.kernel, self.kernel.factors
        difference = u[:, None] - self.y.u.T
        numbers = self.scale * np.exp(-0.5 * (difference / kernel.m[:, None]) ** 2)
        inner = numbers.sum(axis=0) - numbers if self.alike else self.among @ numbers
        k = self.base + np.sum(numbers * (c1 + c2 * (self.beside + 0.5 * inner)), axis=0)
        gradient = -numbers * (c1 + c2 * (self.beside + inner)) * difference / kernel.m[:, None] ** 2
        joint = kernel.structure.joint
        if len(joint):
            p = self.bracket * np.exp(-0.5 * np.sum((difference[joint] / kernel.joint_length[:, None]) ** 2, axis=0))
            k = k + p
            gradient[joint] -= p * difference[joint] / kernel.joint_length[:, None] ** 2
        return k, gradient.T
