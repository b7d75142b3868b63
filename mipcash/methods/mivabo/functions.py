"""Functions of the linear model: its features in blocks, and weights for them (daxberger2019, Eq. 2).

Notation
    blocks b    D_b (., p_b) discrete part, C_b (., q_b) continuous part, features = all products D_i C_j.
                V_b (p_b,) prior variances of the weights by discrete feature (times 1 over the continuous ones).
    f(z, u) = sum_b D_b(z)' W_b C_b(u),   W_b (p_b, q_b)

One block with C = [1] holds phi_d, one with D = [1] phi_c, products phi_m. A separate block for a conditional numerical parameter,
D = [on(z)], makes f independent of the numerical parameter where it is inactive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipcash.methods.mivabo.discrete_features import DiscreteFeatures
from mipcash.program.forms import QuadraticForm, Vector
from mipcash.program.points import Points
from mipcash.program.program import BinaryProgram, Indicator
from mipcash.program.unit_scale import activity_product, resolved
from mipcash.surrogates.cosines import CosineFeatures, CosineSum


@dataclass(frozen=True)
class Block:
    """One block of features (see the module's notation).

    Attributes:
        discrete: phi_d, or the indicators whose product is D = [on(z)]. A form has degree two, so only the first
            two indicators of a numerical parameter are resolved; where a third fails its features stay at u = 0.5, a constant.
        cosines: C; None: C = [1].
        variances: V_b, shape (p_b,).
    """

    discrete: DiscreteFeatures | tuple[Indicator, ...]
    cosines: CosineFeatures | None
    variances: Vector

    def left(self, z: Vector) -> Vector:
        """Return D_b: (B, n_z) -> (B, p_b)."""
        if isinstance(self.discrete, DiscreteFeatures):
            return self.discrete(z)
        on = np.ones(len(z))
        for indicator in resolved(self.discrete):
            on *= indicator.holds(z)
        return on[:, None]

    def right(self, u: Vector) -> Vector:
        """Return C_b: (B, D) -> (B, q_b)."""
        return np.ones((len(u), 1)) if self.cosines is None else self.cosines(u)


@dataclass(frozen=True)
class WeightSample:
    """A function f drawn from the posterior (or its mean): weights of every block.

    f is on the standardised scale, on which solver tolerances are meaningful; ``loss`` converts back.

    Attributes:
        blocks: feature blocks.
        weights: W_b, shapes (p_b, q_b).
        shift, scale: loss = shift + scale * f.
        program: the space compiled.
        n_numbers: D.
    """

    blocks: tuple[Block, ...]
    weights: tuple[Vector, ...]
    shift: float
    scale: float
    program: BinaryProgram
    n_numbers: int

    def values(self, points: Points) -> Vector:
        """Return f at a batch: (B,)."""
        z, u = points.one_hot(self.program), points.units
        parts = zip(self.blocks, self.weights, strict=True)
        return sum((np.sum((b.left(z) @ w) * b.right(u), axis=1) for b, w in parts), np.zeros(len(points)))

    def value(self, z: Vector, u: Vector) -> float:
        """Return f at one point: (n_z,), (D,) -> scalar."""
        total = 0.0
        for block, w in zip(self.blocks, self.weights, strict=True):
            total += float((block.left(z[None]) @ w @ block.right(u[None]).T)[0, 0])
        return total

    def loss(self, value: float) -> float:
        """Return a value of f on the scale of the losses."""
        return self.shift + self.scale * value

    def form_at(self, u: Vector) -> QuadraticForm:
        """Return f(., u) as a quadratic form over the base columns; exact."""
        linear = np.zeros(self.program.n)
        constant, rows, cols, values = 0.0, [], [], []
        merged: dict[int, Vector] = {}
        features: dict[int, DiscreteFeatures] = {}
        for block, w in zip(self.blocks, self.weights, strict=True):
            weights = w @ block.right(u[None])[0]
            if isinstance(block.discrete, DiscreteFeatures):
                key = id(block.discrete)
                features[key] = block.discrete
                merged[key] = merged.get(key, 0.0) + weights
                continue
            c, l, (r, s, v) = activity_product(resolved(block.discrete), self.program.n)
            constant += c * weights[0]
            linear += l * weights[0]
            rows.append(r)
            cols.append(s)
            values.append(v * weights[0])
        for key, weights in merged.items():
            form = features[key].form(weights)
            constant, linear = constant + form.constant, linear + form.linear
            rows.append(form.rows)
            cols.append(form.cols)
            values.append(form.values)
        empty = np.zeros(0, dtype=np.int64)
        return QuadraticForm(
            constant,
            linear,
            np.concatenate([empty, *rows]),
            np.concatenate([empty, *cols]),
            np.concatenate([np.zeros(0), *values]),
        )

    def section(self, z: Vector) -> CosineSum:
        """Return f(z, .) at fixed binaries, with its gradient."""
        constant, pieces = 0.0, []
        for block, w in zip(self.blocks, self.weights, strict=True):
            weights = (block.left(z[None]) @ w)[0]
            if block.cosines is None:
                constant += float(weights[0])
            else:
                pieces.append((block.cosines, weights))
        return CosineSum(constant, pieces, self.n_numbers)
