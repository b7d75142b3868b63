"""The structured kernel over a mixed space (docs/model.md, 2.1 to 2.4).

Notation
    x = (z, u)      binaries (n_z,) and unit values (J,);   G groups, J numbers, V = G + J variables
    on_j            activity of number j, the product of its conditions; 0 in K for numbers with more than two, whose
                    products are no quadratic form: R alone sees them
    A_g = a_g k_g(z, z'),   A_j = b_j on_j on'_j exp(-(u_j - u'_j)^2 / (2 m_j^2))
    E, E_D          pairs of variables, and of groups, that may interact
    P               exp(-sum_d (u_d - u'_d)^2 / (2 l_d^2)) over the numbers that are always active

    K = 1 + s1/V sum_v A_v + s2/|E| sum_E A_v A_w + P (sc + sm/G sum_g A_g + sq/|E_D| sum_{E_D} A_g A_h)

    R = sr exp(-sum_g w_g d_g(z, z') - sum_j (u_j - u'_j)^2 / (2 r_j^2)),   d_g distances of levels

f = q + r with q ~ K and r ~ R: predictions are of the sum, only q is a quadratic form and goes to the MIP. Without r,
interactions of three and more variables are forced onto pairs, and the model is sure of what it cannot know. R sees a number
that is off in the middle of its range, where configurations have it, whatever u_j is. Where pairs are declared there is no R,
and the model knows nothing of numbers with more than two conditions.
At fixed u each K(., x_i) is a quadratic form in z. A pair whose product would be cubic in z (a group and a number with
two conditions) is therefore not in E.

theta = log of [a (G), b (J), m (J), lo (O), l (D), s1, s2, sc, sm, sq, w (G), r (J), sr,
noise], with O ordered groups and D joint numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial.distance import cdist

from mipcash.program.forms import Indices, Vector
from mipcash.program.points import Points
from mipcash.program.unit_scale import INACTIVE
from mipcash.surrogates.level_kernels import level_kernel
from mipcash.surrogates.structured.structure import Structure


def _distinct(rows: Vector) -> tuple[Vector, Indices]:
    """The distinct rows of a matrix (B, J), and which of them each row is: (U, J), (B,).

    Rows are sorted by one number each; a full comparison is made only where that misleads.
    """
    key = rows @ np.sqrt(np.arange(2.0, 2.0 + rows.shape[1]))
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    if np.array_equal(rows[first][inverse], rows):
        return rows[first], inverse
    unique, inverse = np.unique(rows, axis=0, return_inverse=True)
    return unique, inverse


def _squared_distances(left: Vector, right: Vector) -> Vector:
    """Between the rows of two matrices: (B, D), (B', D) -> (B, B'), exactly 0 between equal rows."""
    return np.asarray(cdist(left, right, "sqeuclidean")) if left.shape[1] else np.zeros((len(left), len(right)))


def number_product(squares: Vector, b: Vector, m: Vector) -> Vector:
    """A_j from (u_j - u'_j)^2, its relevance where the number is on, and its length; arrays that go together."""
    terms: Vector = np.exp(squares * (-0.5 / m**2))
    terms *= b
    return terms


@dataclass(frozen=True)
class Encoded:
    """A batch of points as the kernel reads it.

    Attributes:
        z: binaries, shape (B, n_z).
        u: unit values, shape (B, J).
        on: on_j of K, shape (B, J).
        active: whether each number is active, shape (B, J).
    """

    z: Vector
    u: Vector
    on: Vector
    active: Vector

    @classmethod
    def of(cls, structure: Structure, points: Points) -> Encoded:
        return cls.at(structure, points.one_hot(structure.program), points.units)

    @classmethod
    def at(cls, structure: Structure, z: Vector, u: Vector) -> Encoded:
        """Points whose binaries (B, n_z) and unit values (B, J) are at hand."""
        active = structure.activity(z)
        return cls(z, u, structure.on(active), active)

    @classmethod
    def everywhere(cls, z: Vector, u: Vector) -> Encoded:
        """One point, z (1, n_z) and u (J,), with every number on: for terms without on_j(z)."""
        ones = np.ones((1, len(u)))
        return cls(z, u[None], ones, ones)

    @cached_property
    def shown(self) -> Vector:
        """Unit values as a configuration has them: numbers that are off in the middle. Shape (B, J)."""
        return np.where(self.active > 0, self.u, INACTIVE)

    @cached_property
    def distinct(self) -> tuple[Vector, Indices]:
        """The distinct rows of u, shape (U, J), and which of them each point has, shape (B,)."""
        return _distinct(self.u)

    def __len__(self) -> int:
        return len(self.z)

    def __getitem__(self, rows: Indices | slice) -> Encoded:
        return Encoded(self.z[rows], self.u[rows], self.on[rows], self.active[rows])

    def joined(self, other: Encoded) -> Encoded:
        """These points, then others."""
        pairs = ((self.z, other.z), (self.u, other.u), (self.on, other.on), (self.active, other.active))
        return Encoded(*(np.concatenate(pair) for pair in pairs))


@dataclass(frozen=True)
class Kernel:
    """K at given hyperparameters (see the module's notation).

    Attributes:
        structure: the space.
        theta: hyperparameters.
    """

    structure: Structure
    theta: Vector

    def _part(self, name: str) -> Vector:
        return np.exp(self.theta[self.structure.slices[name]])

    @cached_property
    def a(self) -> Vector:
        return self._part("a")

    @cached_property
    def b(self) -> Vector:
        return self._part("b")

    @cached_property
    def m(self) -> Vector:
        return self._part("m")

    @cached_property
    def joint_length(self) -> Vector:
        return self._part("l")

    @property
    def noise(self) -> float:
        return float(self._part("noise")[0])

    @cached_property
    def factors(self) -> tuple[float, float, float, float, float]:
        """s1/V, s2/|E|, sc, sm/G, sq/|E_D|; the last three 0 where there is no joint number."""
        s = self.structure
        s1, s2, sc, sm, sq = (float(self._part(name)[0]) for name in ("s1", "s2", "sc", "sm", "sq"))
        pairs, discrete = s.pairs.sum() / 2, s.pairs[: s.n_groups, : s.n_groups].sum() / 2
        joint = float(len(s.joint) > 0)
        return (
            s1 / max(1, len(s.pairs)),
            s2 / max(1.0, pairs),
            sc * joint,
            sm * joint / max(1, s.n_groups),
            sq * joint / max(1.0, discrete),
        )

    @cached_property
    def blocks(self) -> list[tuple[Vector, Vector]]:
        """k_g and its derivative by log lo, per group."""
        blocks = list(self.structure.fixed_blocks)
        for g, length in zip(self.structure.ordered.tolist(), self._part("lo").tolist(), strict=True):
            blocks[g] = level_kernel(self.structure.groups[g], length)
        return blocks

    @cached_property
    def levels(self) -> Vector:
        """Block-diagonal a_g k_g, shape (n_z, n_z)."""
        matrix = np.zeros((self.structure.n_z, self.structure.n_z))
        for group, (k, _), a in zip(self.structure.groups, self.blocks, self.a, strict=True):
            matrix[group.start : group.stop, group.start : group.stop] = a * k
        return matrix

    @cached_property
    def w(self) -> Vector:
        return self._part("w")

    @cached_property
    def r(self) -> Vector:
        return self._part("r")

    @property
    def residual_variance(self) -> float:
        """sr; 0 where interactions are declared, as R has all of them."""
        return float(self._part("sr")[0]) if self.structure.joined else 0.0

    @cached_property
    def apart(self) -> Vector:
        """Block-diagonal w_g d_g, shape (n_z, n_z)."""
        matrix = np.zeros((self.structure.n_z, self.structure.n_z))
        for group, d, w in zip(self.structure.groups, self.structure.distances, self.w, strict=True):
            matrix[group.start : group.stop, group.start : group.stop] = w * d
        return matrix

    def residual(self, x: Encoded, y: Encoded) -> Vector:
        """R: (B, B')."""
        exponent = x.z @ self.apart @ y.z.T + 0.5 * _squared_distances(x.shown / self.r, y.shown / self.r)
        return np.asarray(self.residual_variance * np.exp(-exponent))

    def number_terms(self, x: Encoded, y: Encoded) -> Vector:
        """A_j: shape (J, B, B')."""
        squares = (x.u.T[:, :, None] - y.u.T[:, None, :]) ** 2
        on = x.on.T[:, :, None] * y.on.T[:, None, :]
        return number_product(squares, self.b[:, None, None] * on, self.m[:, None, None])

    # -- from what two points differ by, at n pairs of points: squares (u_j - u'_j)^2 (J, n), distances d_g (G, n) ---------

    def joint_product(self, squares: Vector) -> Vector:
        """P: (J, n) -> (n,); 0 where no number is in it."""
        joint = self.structure.joint
        if not len(joint):
            return np.zeros(squares.shape[1])
        return np.asarray(np.exp(-0.5 * self.joint_length**-2 @ squares[joint]))

    def residual_product(self, distances: Vector, squares: Vector) -> Vector:
        """R: (G, n), (J, n) -> (n,)."""
        exponent = self.w @ distances + 0.5 * self.r**-2 @ squares
        return np.asarray(self.residual_variance * np.exp(-exponent))

    def group_terms(self, x: Encoded, y: Encoded) -> Vector:
        """A_g: shape (G, B, B')."""
        at = [slice(g.start, g.stop) for g in self.structure.groups]
        terms = [x.z[:, i] @ self.levels[i, i] @ y.z[:, i].T for i in at]
        return np.array(terms).reshape(-1, len(x), len(y))

    def _number_sums(self, x: Encoded, y: Encoded) -> tuple[Vector, Vector]:
        """sum_j A_j and sum_j A_j^2, both (B, B'); points that share their numbers share the exponentials."""
        unique, inverse = x.distinct
        total, squares = np.zeros((len(x), len(y))), np.zeros((len(x), len(y)))
        if 2 * len(unique) > len(x):
            for j, (b, m) in enumerate(zip(self.b, self.m, strict=True)):
                # a number of one algorithm among many is active in few points
                rows, cols = np.flatnonzero(x.on[:, j]), np.flatnonzero(y.on[:, j])
                term = x.u[rows, j, None] - y.u[cols, j]
                term *= term
                term *= -0.5 / m**2
                np.exp(term, out=term)
                term *= b
                at = np.ix_(rows, cols) if term.size < total.size else ...
                total[at] += term
                squares[at] += term**2
            return total, squares
        for k, u in enumerate(unique):
            rows = np.flatnonzero(inverse == k)
            terms = self.number_terms(Encoded.everywhere(x.z[:1], u), y)[:, 0]
            total[rows], squares[rows] = x.on[rows] @ terms, x.on[rows] @ terms**2
        return total, squares

    def joint_term(self, u: Vector, y: Encoded) -> Vector:
        """P between unit values (B, J) and points: (B, B')."""
        d = self.structure.joint
        left, right = u[:, d] / self.joint_length, y.u[:, d] / self.joint_length
        return np.asarray(np.exp(-0.5 * _squared_distances(left, right)))

    def __call__(self, x: Encoded, y: Encoded) -> Vector:
        """K between two batches: (B, B')."""
        s, (c1, c2, sc, cm, cq) = self.structure, self.factors
        if s.complete:
            total = x.z @ self.levels @ y.z.T
            squares = x.z @ self.levels**2 @ y.z.T
            discrete = 0.5 * (total**2 - squares)
            extra, extra_squares = self._number_sums(x, y)
            pairs = 0.5 * ((total + extra) ** 2 - squares - extra_squares)
        else:
            numbers = self.number_terms(x, y)
            groups = self.group_terms(x, y)
            terms = np.concatenate([groups, numbers])
            total, extra = groups.sum(axis=0), numbers.sum(axis=0)
            inner = np.tensordot(s.pairs, terms, axes=1)
            pairs = 0.5 * np.einsum("vbt,vbt->bt", terms, inner)
            inner = np.tensordot(s.pairs[: s.n_groups, : s.n_groups], groups, axes=1)
            discrete = 0.5 * np.einsum("vbt,vbt->bt", groups, inner)
        k: Vector = 1.0 + c1 * (total + extra) + c2 * pairs
        if len(s.joint):
            unique, inverse = x.distinct
            k += self.joint_term(unique, y)[inverse] * (sc + cm * total + cq * discrete)
        return k

    def diagonal(self, x: Encoded) -> Vector:
        """K(x, x): (B,)."""
        s, (c1, c2, sc, cm, cq) = self.structure, self.factors
        groups = np.array([x.z[:, g.start : g.stop] @ np.diag(self.levels)[g.start : g.stop] for g in s.groups])
        terms = np.concatenate([groups.reshape(-1, len(x)), (self.b * x.on).T])
        total = terms[: s.n_groups].sum(axis=0)
        pairs = 0.5 * np.sum(terms * (s.pairs @ terms), axis=0)
        inside = s.pairs[: s.n_groups, : s.n_groups]
        discrete = 0.5 * np.sum(terms[: s.n_groups] * (inside @ terms[: s.n_groups]), axis=0)
        return np.asarray(1.0 + c1 * terms.sum(axis=0) + c2 * pairs + sc + cm * total + cq * discrete)
