"""The posterior mean of the structured part q, or a sample of it, as a function that a MIP can minimise.

Notation
    x_i (i = 1..t) observations, w (t,) weights, q0 a draw from the prior
    f(z, u) = q0(z, u) + sum_i w_i K((z, u), x_i);   q0 = 0 for the mean

f is an exact quadratic form in z at fixed u, and a smooth function of u at fixed z.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipcash.program.forms import QuadraticForm, Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Section
from mipcash.surrogates.structured.encoded import Encoded
from mipcash.surrogates.structured.functions.form_parts import FormParts
from mipcash.surrogates.structured.functions.prior_draw import PriorDraw
from mipcash.surrogates.structured.functions.sections import KernelSection
from mipcash.surrogates.structured.kernel import Kernel
from mipcash.surrogates.structured.structure import Structure
from mipcash.surrogates.structured.warping import Warp


@dataclass(frozen=True)
class Surface:
    """A function f(z, u) on the warped scale: the posterior mean, or a sample.

    Attributes:
        kernel: K.
        x: the observations' points.
        weights: K's weights at the observations, shape (t,).
        draw: f0; None for zero (the mean).
        warp: transformation of losses to the scale of f.
    """

    kernel: Kernel
    x: Encoded
    weights: Vector
    draw: PriorDraw | None
    warp: Warp

    def loss(self, value: float) -> float:
        """Return a value of f, transformed to the scale of the losses."""
        return self.warp.inverse(value)

    def values(self, points: Points) -> Vector:
        """Return f at a batch: (B,)."""
        return self._at(Encoded.of(self.kernel.structure, points))

    def value(self, z: Vector, u: Vector) -> float:
        """Return f at one point: (n_z,), (J,) -> scalar."""
        return float(self._at(Encoded.at(self.kernel.structure, z, u))[0])

    def _at(self, x: Encoded) -> Vector:
        total = self.kernel(x, self.x) @ self.weights
        return total if self.draw is None else total + self.draw.values(x)

    def section(self, z: Vector) -> Section:
        """Return f(z, .) at fixed binaries, with its gradient."""
        point = Encoded.at(self.kernel.structure, z, np.zeros(self.x.u.shape[1]))
        waves = None if self.draw is None else self.draw.waves(z.astype(float), point.on[0])
        kernel = KernelSection(self.kernel, point, self.x)

        def at(u: Vector) -> tuple[float, Vector]:
            k, slope = kernel(u)
            value, gradient = float(k @ self.weights), self.weights @ slope
            if waves is None:
                return value, gradient
            more, more_gradient = waves(u)
            return value + more, gradient + more_gradient

        return at

    def form_at(self, u: Vector) -> QuadraticForm:
        """Return f(., u) as an exact quadratic form over the base columns."""
        parts = self._kernel_parts(u)
        if self.draw is not None:
            parts = parts + self.draw.parts_at(u)
        return parts.form(self.kernel.structure)

    def _kernel_parts(self, u: Vector) -> FormParts:
        """Return the coefficients of sum_i w_i K((z, u), x_i) (see ``FormParts``)."""
        kernel, s, x, w = self.kernel, self.kernel.structure, self.x, self.weights
        c1, c2, sc, cm, cq = kernel.factors
        numbers = kernel.number_terms(x.everywhere(u), x)[:, 0]  # without on_j(z): shape (J, t)
        joint = kernel.joint_term(u[None], x)[0] if len(s.joint) else np.zeros(len(w))
        group_pairs, mixed, number_pairs = _blocks(s)
        levels = kernel.level_columns(x)  # a_g k_g(l, l_i)
        of = s.program.group_of
        square = (levels * (c2 * w)) @ levels.T
        if len(s.joint):
            square += (levels * (cq * w * joint)) @ levels.T
        return FormParts(
            constant=float(np.sum(w * (1.0 + sc * joint))),
            linear=levels @ (w * (c1 + cm * joint)),
            active=c1 * numbers @ w,
            group_pairs=square * group_pairs[np.ix_(of, of)],
            mixed=c2 * (levels * w) @ numbers.T * mixed[of],
            number_pairs=c2 * (numbers * w) @ numbers.T * number_pairs,
        )


def _blocks(structure: Structure) -> tuple[Vector, Vector, Vector]:
    """Return the blocks of E: groups (G, G), groups and numbers (G, J), numbers (J, J)."""
    g = structure.n_groups
    return structure.pairs[:g, :g], structure.pairs[:g, g:], structure.pairs[g:, g:]
