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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from mipcash.program.forms import Indices, Vector
from mipcash.program.points import Points
from mipcash.program.recent import Recent
from mipcash.program.unit_scale import INACTIVE
from mipcash.surrogates.level_kernels import LevelKernel
from mipcash.surrogates.structured.level_tables import level_sums
from mipcash.surrogates.structured.structure import Structure

KEPT = 8
"""Tables of a wide space that are kept."""
TOGETHER = 1 << 16
"""Terms of numbers that are formed at a time."""
DECLARED = 4_000_000
"""Terms of a wide space with declared pairs that are formed at a time."""


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
        structure: the space.
        levels: shape (B, G).
        u: unit values, shape (B, J).
        on: on_j of K, shape (B, J).
        active: whether each number is active, shape (B, J).
    """

    structure: Structure
    levels: Indices
    u: Vector
    on: Vector
    active: Vector

    @classmethod
    def of(cls, structure: Structure, points: Points) -> Encoded:
        active = structure.activity(points.levels)
        return cls(structure, points.levels, points.units, structure.on(active), active)

    @classmethod
    def at(cls, structure: Structure, z: Vector, u: Vector) -> Encoded:
        """One point, z (n_z,) and u (J,)."""
        return cls.of(structure, Points(structure.program.levels_at(z)[None], u[None]))

    def everywhere(self, u: Vector) -> Encoded:
        """One point at u (J,) with every number on: for terms without on_j(z)."""
        ones = np.ones((1, len(u)))
        return Encoded(self.structure, self.levels[:1], u[None], ones, ones)

    @cached_property
    def z(self) -> Vector:
        """Binaries, shape (B, n_z)."""
        return self.structure.program.one_hot(self.levels)

    @cached_property
    def columns(self) -> Indices:
        """The binaries that are one, shape (B, G)."""
        return self.structure.program.starts + self.levels

    @cached_property
    def shown(self) -> Vector:
        """Unit values as a configuration has them: numbers that are off in the middle. Shape (B, J)."""
        return np.where(self.active > 0, self.u, INACTIVE)

    @cached_property
    def distinct(self) -> tuple[Vector, Indices]:
        """The distinct rows of u, shape (U, J), and which of them each point has, shape (B,)."""
        return _distinct(self.u)

    def __len__(self) -> int:
        return len(self.levels)

    def __getitem__(self, rows: Indices | slice) -> Encoded:
        return Encoded(self.structure, self.levels[rows], self.u[rows], self.on[rows], self.active[rows])

    def joined(self, other: Encoded) -> Encoded:
        """These points, then others."""
        levels = np.concatenate([self.levels, other.levels])
        pairs = ((self.u, other.u), (self.on, other.on), (self.active, other.active))
        return Encoded(self.structure, levels, *(np.concatenate(pair) for pair in pairs))


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
    def blocks(self) -> list[LevelKernel]:
        """k_g per group."""
        return self.structure.blocks_at(self._part("lo"))

    def level_columns(self, y: Encoded) -> Vector:
        """a_g k_g of every level with those of some points: shape (n_z, B')."""
        parts, none = zip(self.blocks, self.a, y.levels.T, strict=True), np.zeros((0, len(y)))
        return self._kept("similar", y, lambda: np.concatenate([none, *(a * k.columns(at) for k, a, at in parts)]))

    def distance_columns(self, y: Encoded) -> Vector:
        """w_g d_g of every level with those of some points: shape (n_z, B')."""
        parts, none = zip(self.structure.distances, self.w, y.levels.T, strict=True), np.zeros((0, len(y)))
        return self._kept("apart", y, lambda: np.concatenate([none, *(w * d.columns(at) for d, w, at in parts)]))

    def level_squares(self, y: Encoded) -> Vector:
        """:meth:`level_columns`, and beside them their squares: shape (n_z, 2 B')."""

        def both() -> Vector:
            similar = self.level_columns(y)
            return np.concatenate([similar, similar**2], axis=1)

        return self._kept("squares", y, both)

    @cached_property
    def _own(self) -> Vector:
        """a_g k_g of every level with itself, shape (n_z,)."""
        return np.concatenate([np.zeros(0), *(a * k.diagonal for k, a in zip(self.blocks, self.a, strict=True))])

    def _kept(self, name: str, y: Encoded, make: Callable[[], Vector]) -> Vector:
        """What was made of the points that were asked for last; they are kept beside it, so that their id stays their own."""
        return self._recent.get((name, id(y)), lambda: (y, make()))[1]

    @cached_property
    def _recent(self) -> Recent[tuple[Encoded, Vector]]:
        return Recent(KEPT)

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

    def residual(self, x: Encoded, y: Encoded) -> Vector:
        """R: (B, B')."""
        if self.structure.wide:
            (exponent,) = level_sums(x.columns, [self.distance_columns(y)])
            unique, inverse = _distinct(x.shown)
            exponent += 0.5 * _squared_distances(unique / self.r, y.shown / self.r)[inverse]
        else:
            exponent = x.z @ self.distance_columns(y)
            exponent += 0.5 * _squared_distances(x.shown / self.r, y.shown / self.r)
        return np.asarray(self.residual_variance * np.exp(-exponent))

    def apart_from(self, x: Encoded, y: Encoded) -> Vector:
        """sum_g w_g d_g between one point and others: (B',)."""
        return np.asarray(self.distance_columns(y)[x.columns[0]].sum(axis=0))

    def number_terms(self, x: Encoded, y: Encoded) -> Vector:
        """A_j: shape (J, B, B')."""
        squares = (x.u.T[:, :, None] - y.u.T[:, None, :]) ** 2
        on = x.on.T[:, :, None] * y.on.T[:, None, :]
        return number_product(squares, self.b[:, None, None] * on, self.m[:, None, None])

    # -- from what two points differ by, at n pairs of points: squares (u_j - u'_j)^2 (J, n), distances d_g (G, n) ---------

    def joint_product(self, squares: Vector) -> Vector:
        """P, from the squares of the joint numbers: (D, n) -> (n,); 0 where no number is in it."""
        if not len(squares):
            return np.zeros(squares.shape[1])
        return np.asarray(np.exp(-0.5 * self.joint_length**-2 @ squares))

    def residual_product(self, distances: Vector, squares: Vector) -> Vector:
        """R: (G, n), (J, n) -> (n,)."""
        exponent = self.w @ distances + 0.5 * self.r**-2 @ squares
        return np.asarray(self.residual_variance * np.exp(-exponent))

    def group_terms(self, x: Encoded, y: Encoded) -> Vector:
        """A_g: shape (G, B, B')."""
        return np.asarray(self.level_columns(y)[x.columns.T])

    def _number_sums(self, x: Encoded, y: Encoded) -> tuple[Vector, Vector]:
        """sum_j A_j and sum_j A_j^2, both (B, B'); points that share their numbers share the exponentials."""
        unique, inverse = x.distinct
        total, squares = np.zeros((len(x), len(y))), np.zeros((len(x), len(y)))
        if 2 * len(unique) > len(x):
            for together in self.structure.switched:
                # the numbers of one algorithm among many are active in few points
                rows, cols = np.flatnonzero(x.on[:, together[0]]), np.flatnonzero(y.on[:, together[0]])
                if not len(rows) or not len(cols):
                    continue
                at = np.ix_(rows, cols) if len(rows) * len(cols) < total.size else ...
                share = max(1, TOGETHER // (len(rows) * len(cols)))
                for j in (together[k : k + share, None, None] for k in range(0, len(together), share)):
                    term = x.u.T[j, rows[:, None]] - y.u.T[j, cols]
                    term *= term
                    term *= -0.5 / self.m[j] ** 2
                    np.exp(term, out=term)
                    term *= self.b[j]
                    total[at] += term.sum(axis=0)
                    term *= term
                    squares[at] += term.sum(axis=0)
            return total, squares
        for k, u in enumerate(unique):
            rows = np.flatnonzero(inverse == k)
            terms = self.number_terms(x.everywhere(u), y)[:, 0]
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
        if s.wide and s.joined:
            similar = self.level_columns(y)
            total, squares = level_sums(x.columns, [similar, similar**2])
            discrete = 0.5 * (total**2 - squares)
            extra, pairs = self._by_degree(total, squares, *self._degree_sums(x, y))
        elif s.wide:
            return self._declared(x, y)
        elif s.complete:
            sums = x.z @ self.level_squares(y)
            total, squares = sums[:, : len(y)], sums[:, len(y) :]
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

    def _degree_sums(self, x: Encoded, y: Encoded) -> tuple[list[Vector], list[Vector]]:
        """sum_j A_j and sum_j A_j^2 over the numbers without a condition, with one and with two: three of (B, B') each."""
        kinds, (unique, inverse) = self.structure.by_degree, x.distinct
        shape = (len(x), len(y))
        total, squares = [np.zeros(shape) for _ in kinds], [np.zeros(shape) for _ in kinds]
        for k, u in enumerate(unique if 2 * len(unique) <= len(x) else []):
            rows, terms = np.flatnonzero(inverse == k), self.number_terms(x.everywhere(u), y)[:, 0]
            for d, j in enumerate(kinds):
                on = x.on[rows][:, j] if d else np.ones((1, len(j)))
                total[d][rows], squares[d][rows] = on @ terms[j], on @ terms[j] ** 2
        for d, j in ((d, j) for d, kind in enumerate(kinds) for j in kind if 2 * len(unique) > len(x)):
            term = self.b[j] * np.outer(x.on[:, j], y.on[:, j])
            term *= np.exp(-0.5 * ((x.u[:, j, None] - y.u[:, j]) / self.m[j]) ** 2)
            total[d] += term
            squares[d] += term**2
        return total, squares

    @staticmethod
    def _by_degree(
        total: Vector, squares: Vector, numbers: Sequence[Vector], number_squares: Sequence[Vector]
    ) -> tuple[Vector, Vector]:
        """sum_j A_j and sum_E A_v A_w where a pair is in E unless its conditions come to more than two.

        Args:
            total, squares: sum_g A_g and sum_g A_g^2.
            numbers, number_squares: the same of numbers by their conditions, none, one or two.
        """
        free, one, two = numbers
        inner = total + one
        pairs = 0.5 * (inner**2 - squares - number_squares[1]) + 0.5 * (free**2 - number_squares[0])
        return free + one + two, pairs + free * (inner + two)

    def _declared(self, x: Encoded, y: Encoded) -> Vector:
        """K of a wide space where pairs are declared: pair by pair, and neither P nor R."""
        (c1, c2, *_), edges = self.factors, sparse.csr_array(self.structure.pairs)
        k = np.ones((len(x), len(y)))
        share = max(1, DECLARED // (len(self.structure.pairs) * len(y)))
        for a in range(0, len(x), share):
            part = x[a : a + share]
            terms = np.concatenate([self.group_terms(part, y), self.number_terms(part, y)])
            inner = (edges @ terms.reshape(len(terms), -1)).reshape(terms.shape)
            k[a : a + share] += c1 * terms.sum(axis=0) + 0.5 * c2 * np.einsum("vbt,vbt->bt", terms, inner)
        return k

    def diagonal(self, x: Encoded) -> Vector:
        """K(x, x): (B,)."""
        s, (c1, c2, sc, cm, cq) = self.structure, self.factors
        if s.wide and s.joined:
            own = self._own[:, None]
            total, squares = (column[:, 0] for column in level_sums(x.columns, [own, own**2]))
            on = [(self.b * x.on)[:, j] for j in s.by_degree]
            numbers, number_squares = [o.sum(axis=1) for o in on], [(o**2).sum(axis=1) for o in on]
            extra, pairs = self._by_degree(total, squares, numbers, number_squares)
            discrete = 0.5 * (total**2 - squares)
            return np.asarray(1.0 + c1 * (total + extra) + c2 * pairs + sc + cm * total + cq * discrete)
        groups = self._own[x.columns]
        if s.complete:
            terms, total, squares = self.b * x.on, groups.sum(axis=1), (groups**2).sum(axis=1)
            every, discrete = total + terms.sum(axis=1), 0.5 * (total**2 - squares)
            pairs = 0.5 * (every**2 - squares - (terms**2).sum(axis=1))
            return np.asarray(1.0 + c1 * every + c2 * pairs + sc + cm * total + cq * discrete)
        terms = np.concatenate([groups.T, (self.b * x.on).T])
        total = terms[: s.n_groups].sum(axis=0)
        pairs = 0.5 * np.sum(terms * (s.pairs @ terms), axis=0)
        inside = s.pairs[: s.n_groups, : s.n_groups]
        discrete = 0.5 * np.sum(terms[: s.n_groups] * (inside @ terms[: s.n_groups]), axis=0)
        return np.asarray(1.0 + c1 * terms.sum(axis=0) + c2 * pairs + sc + cm * total + cq * discrete)
