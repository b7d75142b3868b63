"""The structured kernel over a mixed space (docs/model.md, 2.1 to 2.4).

Notation
    x = (z, u)      binaries (n_z,) and unit values (J,);   G groups, J numbers (numerical parameters), V = G + J variables
    on_j            activity of number j, the product of its conditions; 0 in K for numbers with more than two, whose products
                    are not quadratic: they enter R alone
    A_g = a_g k_g(z, z'),   A_j = b_j on_j on'_j exp(-(u_j - u'_j)^2 / (2 m_j^2))
    E, E_D          pairs of variables, and of groups, that may interact
    P               exp(-sum_d (u_d - u'_d)^2 / (2 l_d^2)) over the numbers that are always active

    K = 1 + s1/V sum_v A_v + s2/|E| sum_E A_v A_w + P (sc + sm/G sum_g A_g + sq/|E_D| sum_{E_D} A_g A_h)

    R = sr exp(-sum_g w_g d_g(z, z') - sum_j (u_j - u'_j)^2 / (2 r_j^2)),   d_g distances of levels

f = q + r with q ~ K and r ~ R. Predictions are of the sum. Only q is a quadratic form and is minimised by the MIP. Without r,
interactions of three and more variables would be attributed to pairs, and the model would be overconfident. In R a number that is
off takes the middle of its range, as in configurations, whatever u_j is.
At fixed u each K(., x_i) is a quadratic form in z. A pair whose product would be cubic in z (a group and a number with two
conditions) is therefore not in E.

theta = log of [a (G), b (J), m (J), lo (O), l (D), s1, s2, sc, sm, sq, w (G), r (J), sr,
noise], with O ordered groups and D joint numbers.

In wide spaces no matrix over pairs of levels is formed. Sums over groups use tables with one column per observed point.

Notation
    t points y_i;   c (B, G) the columns of the binaries that are one at B points
    table (n_z, t)  a term between each level and the levels of the y_i: a_g k_g(l, l_i), its square, or w_g d_g(l, l_i)
    sum_g table[c_g, i]   a sum over groups, shape (B, t)

Neighbours of one point differ in one or two groups. Their sums are computed from those of one neighbour by exchanging the terms
that differ: O(B t) for B neighbours instead of O(B G t).

Sums over numbers between two batches, x of B points and y of B' points: numbers that are on in most points are processed one after
the other, as matrices. A hyperparameter of one algorithm among many is on in few points of either batch. The pairs of these points
are listed, and the lists of all such numbers are processed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from mipcash.program.forms import Indices, Vector
from mipcash.program.recent import Recent
from mipcash.surrogates.level_kernels import LevelKernel
from mipcash.surrogates.structured.encoded import Encoded
from mipcash.surrogates.structured.structure import Structure

CHUNK = 1024
"""Points processed at a time."""
ALIKE = 0.05
"""Largest share of the groups in which the points of a chunk may differ from its first point for the exchange to pay off."""


def level_sums(columns: Indices, tables: Sequence[Vector]) -> list[Vector]:
    """Return the sums of several tables: (B, G), tables of shape (n_z, t) -> (B, t) each."""
    sums = [np.zeros((len(columns), table.shape[1])) for table in tables]
    for a in range(0, len(columns), CHUNK):
        part, at = columns[a : a + CHUNK], slice(a, a + CHUNK)
        differ = np.flatnonzero(part != part[0])
        rows, groups = np.divmod(differ, max(1, part.shape[1]))
        if len(rows) > ALIKE * part.size:
            for total, table in zip(sums, tables, strict=True):
                for column in part.T:
                    total[at] += table[column]
            continue
        now, first = part[rows, groups], part[0][groups]
        exchanged = sparse.csr_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(len(part), len(rows)))
        for total, table in zip(sums, tables, strict=True):
            total[at] = table[part[0]].sum(axis=0) + exchanged @ (table[now] - table[first])
    return sums


TOGETHER = 1 << 16
"""Number of terms computed at a time."""
SPARSE = 0.5
"""Largest share of the pairs of points for which a number is listed."""
LISTED = 1 << 18
"""Largest number of entries of all lists together."""


def number_sums(switched: list[Indices], b: Vector, m: Vector, x: Encoded, y: Encoded) -> tuple[Vector, Vector]:
    """Return sum_j A_j and sum_j A_j^2: (B, B') each.

    Args:
        switched: sets of numbers that are on at the same points; numbers in no set are left out.
        b, m: shape (J,).
    """
    total, squares = np.zeros((len(x.u), len(y.u))), np.zeros((len(x.u), len(y.u)))
    first = np.array([together[0] for together in switched], dtype=np.int64)
    pairs = x.on[:, first].sum(axis=0) * y.on[:, first].sum(axis=0)
    few = pairs <= SPARSE * total.size
    if float(pairs[few] @ np.array([len(together) for together in switched])[few]) > LISTED:
        few[:] = False
    if few.any():
        _add_listed(total, squares, np.concatenate([t for t, f in zip(switched, few, strict=True) if f]), b, m, x, y)
    for together in (t for t, f in zip(switched, few, strict=True) if not f):
        _add_whole(total, squares, together, b, m, x, y)
    return total, squares


def _add_whole(total: Vector, squares: Vector, together: Indices, b: Vector, m: Vector, x: Encoded, y: Encoded) -> None:
    """Add the terms of numbers that are on at the same points to the sums, in place."""
    rows, cols = np.flatnonzero(x.on[:, together[0]]), np.flatnonzero(y.on[:, together[0]])
    if not len(rows) or not len(cols):
        return
    at = np.ix_(rows, cols) if len(rows) * len(cols) < total.size else ...
    share = max(1, TOGETHER // (len(rows) * len(cols)))
    for j in (together[k : k + share, None, None] for k in range(0, len(together), share)):
        term = x.u.T[j, rows[:, None]] - y.u.T[j, cols]
        term *= term
        term *= -0.5 / m[j] ** 2
        np.exp(term, out=term)
        term *= b[j]
        total[at] += term.sum(axis=0)
        term *= term
        squares[at] += term.sum(axis=0)


def _add_listed(total: Vector, squares: Vector, numbers: Indices, b: Vector, m: Vector, x: Encoded, y: Encoded) -> None:
    """Add the terms of numbers that are on in few points to the sums, in place."""
    here, row = np.nonzero(x.on.T[numbers] > 0)
    there, col = np.nonzero(y.on.T[numbers] > 0)
    count = np.bincount(there, minlength=len(numbers))
    repeats = count[here]  # Each point of x is paired with the points of y in which the number is on.
    ends = np.cumsum(repeats)
    if not len(ends) or not ends[-1]:
        return
    before = np.cumsum(count) - count
    mate = np.arange(ends[-1]) + np.repeat(before[here] - (ends - repeats), repeats)
    j = np.repeat(numbers[here], repeats)
    term = np.repeat(x.u[row, numbers[here]], repeats) - y.u[col, numbers[there]][mate]
    term *= term
    term *= (-0.5 / m**2)[j]
    np.exp(term, out=term)
    term *= b[j]
    at = np.repeat(row * total.shape[1], repeats) + col[mate]
    total += np.bincount(at, term, total.size).reshape(total.shape)
    squares += np.bincount(at, term**2, total.size).reshape(total.shape)


CACHED = 1 << 17
"""Number of covariances computed at a time, so that their terms fit into the processor's cache."""
KEPT = 8
"""Number of cached tables of a wide space."""


def _squared_distances(left: Vector, right: Vector) -> Vector:
    """Return squared distances between the rows of two matrices: (B, D), (B', D) -> (B, B'), exactly 0 between equal rows."""
    return np.asarray(cdist(left, right, "sqeuclidean")) if left.shape[1] else np.zeros((len(left), len(right)))


def number_product(squares: Vector, b: Vector, m: Vector) -> Vector:
    """Return A_j from (u_j - u'_j)^2, the relevance b (0 where the number is off) and the length m; the arrays broadcast."""
    terms: Vector = np.exp(squares * (-0.5 / m**2))
    terms *= b
    return terms


class Kernel:
    """K at given hyperparameters (see the module's notation).

    Attributes:
        structure: the space.
        theta: hyperparameters.
        a, b, m, w, r, noise: theta without logarithms; ``joint_length`` is l and ``residual_variance`` is sr.
    """

    def __init__(self, structure: Structure, theta: Vector) -> None:
        self.structure, self.theta, self._recent = structure, theta, Recent[tuple[Encoded, Vector]](KEPT)
        self._part = {name: np.exp(theta[at]) for name, at in structure.slices.items()}
        self.a, self.b, self.m, self.joint_length, self.w, self.r = (
            self._part[n] for n in ("a", "b", "m", "l", "w", "r")
        )
        self.noise, self.residual_variance = float(self._part["noise"][0]), float(self._part["sr"][0])

    @cached_property
    def factors(self) -> tuple[float, float, float, float, float]:
        """s1/V, s2/|E|, sc, sm/G, sq/|E_D|; the last three are 0 if there is no joint number."""
        s = self.structure
        s1, s2, sc, sm, sq = (float(self._part[name][0]) for name in ("s1", "s2", "sc", "sm", "sq"))
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
        return self.structure.blocks_at(self._part["lo"])

    def level_columns(self, y: Encoded) -> Vector:
        """Return a_g k_g between every level and the levels of some points: shape (n_z, B')."""
        parts, none = zip(self.blocks, self.a, y.levels.T, strict=True), np.zeros((0, len(y)))
        return self._kept("similar", y, lambda: np.concatenate([none, *(a * k.columns(at) for k, a, at in parts)]))

    def distance_columns(self, y: Encoded) -> Vector:
        """Return w_g d_g between every level and the levels of some points: shape (n_z, B')."""
        parts, none = zip(self.structure.distances, self.w, y.levels.T, strict=True), np.zeros((0, len(y)))
        return self._kept("apart", y, lambda: np.concatenate([none, *(w * d.columns(at) for d, w, at in parts)]))

    def _level_table(self, y: Encoded) -> Vector:
        """Return ``level_columns``, their squares, and ``distance_columns`` minus the row of off: (n_z, 3 B')."""

        def made() -> Vector:
            similar, apart, off = self.level_columns(y), self.distance_columns(y), self.structure.off_columns
            return np.concatenate([similar, similar**2, apart - np.where(off[:, None] < 0, 0.0, apart[off])], axis=1)

        return self._kept("levels", y, made)

    def _off_distances(self, y: Encoded) -> Vector:
        """Return sum_g w_g d_g for the point at which every conditional group is off: (B',)."""
        off = np.unique(self.structure.off_columns)
        return self._kept("off", y, lambda: np.asarray(self.distance_columns(y)[off[off >= 0]].sum(axis=0)))

    def _level_sums(self, x: Encoded, y: Encoded) -> tuple[Vector, Vector, Vector]:
        """Return sum_g A_g, sum_g A_g^2 and sum_g w_g d_g: (B, B') each."""
        if not self.structure.n_groups:
            none = np.zeros((len(x), len(y)))
            return none, none, none.copy()
        sums = x.lit @ self._level_table(y)
        total, squares, apart = (sums[:, k * len(y) : (k + 1) * len(y)] for k in range(3))
        return total, squares, apart + self._off_distances(y)

    @cached_property
    def _own(self) -> Vector:
        """Prior variance a_g k_g of every level, shape (n_z,)."""
        return np.concatenate([np.zeros(0), *(a * k.diagonal for k, a in zip(self.blocks, self.a, strict=True))])

    def _kept(self, name: str, y: Encoded, make: Callable[[], Vector]) -> Vector:
        """Return a cached array of the points ``y``, or compute it. ``y`` is stored with it, so that its id is not reused."""
        return self._recent.get((name, id(y)), lambda: (y, make()))[1]

    def residual(self, x: Encoded, y: Encoded) -> Vector:
        """Return R: (B, B')."""
        if self.structure.wide:
            (apart,) = level_sums(x.columns, [self.distance_columns(y)])
        else:
            apart = self._level_sums(x, y)[2]
        return self._residual(apart, x, y)

    def _residual(self, apart: Vector, x: Encoded, y: Encoded) -> Vector:
        """Return R from sum_g w_g d_g, which is overwritten: (B, B')."""
        unique, inverse = x.distinct_shown
        squares = _squared_distances(unique / self.r, y.shown / self.r)
        squares *= 0.5
        apart += squares if inverse is None else squares[inverse]
        np.negative(apart, out=apart)
        np.exp(apart, out=apart)
        apart *= self.residual_variance
        return apart

    def apart_from(self, x: Encoded, y: Encoded) -> Vector:
        """Return sum_g w_g d_g between one point and the points ``y``: (B',)."""
        return np.asarray(self.distance_columns(y)[x.columns[0]].sum(axis=0))

    def number_terms(self, x: Encoded, y: Encoded) -> Vector:
        """Return A_j: shape (J, B, B')."""
        squares = (x.u.T[:, :, None] - y.u.T[:, None, :]) ** 2
        on = x.on.T[:, :, None] * y.on.T[:, None, :]
        return number_product(squares, self.b[:, None, None] * on, self.m[:, None, None])

    # -- from differences at n pairs of points: squares (u_j - u'_j)^2 (J, n), distances d_g (G, n) -------------------------

    def joint_product(self, squares: Vector) -> Vector:
        """Return P from the squares of the joint numbers: (D, n) -> (n,); 0 if there is no joint number."""
        if not len(squares):
            return np.zeros(squares.shape[1])
        return np.asarray(np.exp(-0.5 * self.joint_length**-2 @ squares))

    def residual_product(self, distances: Vector, squares: Vector) -> Vector:
        """Return R: (G, n), (J, n) -> (n,)."""
        exponent = self.w @ distances + 0.5 * self.r**-2 @ squares
        return np.asarray(self.residual_variance * np.exp(-exponent))

    def group_terms(self, x: Encoded, y: Encoded) -> Vector:
        """Return A_g: shape (G, B, B')."""
        return np.asarray(self.level_columns(y)[x.columns.T])

    def _number_sums(self, x: Encoded, y: Encoded, degrees: Sequence[int] = (0, 1, 2)) -> tuple[Vector, Vector]:
        """Return sum_j A_j and sum_j A_j^2 over the numbers with so many conditions: (B, B') each.

        Exponentials are computed once for points that share their numbers.
        """
        switched = [together for d in degrees for together in self.structure.switched[d]]
        unique, inverse = x.distinct
        if 2 * len(unique) > len(x):
            return number_sums(switched, self.b, self.m, x, y)
        numbers = np.concatenate([np.zeros(0, dtype=np.int64), *switched])
        total, squares = np.zeros((len(x), len(y))), np.zeros((len(x), len(y)))
        for k, u in enumerate(unique):
            rows = np.flatnonzero(inverse == k)
            terms, on = self.number_terms(x.everywhere(u), y)[numbers, 0], x.on[rows][:, numbers]
            total[rows], squares[rows] = on @ terms, on @ terms**2
        return total, squares

    def joint_term(self, u: Vector, y: Encoded) -> Vector:
        """Return P between unit values (B, J) and points: (B, B')."""
        d = self.structure.joint
        left, right = u[:, d] / self.joint_length, y.u[:, d] / self.joint_length
        return np.asarray(np.exp(-0.5 * _squared_distances(left, right)))

    def __call__(self, x: Encoded, y: Encoded) -> Vector:
        """Return K between two batches: (B, B')."""
        if not self.structure.wide:
            return self._from_sums(*self._level_sums(x, y)[:2], x, y)
        similar = self.level_columns(y)
        total, squares = level_sums(x.columns, [similar, similar**2])
        return self._from_sums(total, squares, x, y)

    def covariance(self, x: Encoded, y: Encoded) -> Vector:
        """Return K + R: (B, B')."""
        if self.structure.wide:
            return self(x, y) + self.residual(x, y)
        rows = max(1, CACHED // max(1, len(y)))
        if len(x) > rows:
            k = np.empty((len(x), len(y)))
            for first in range(0, len(x), rows):
                k[first : first + rows] = self.covariance(x[first : first + rows], y)
            return k
        total, squares, apart = self._level_sums(x, y)
        k = self._from_sums(total, squares, x, y)
        k += self._residual(apart, x, y)
        return k

    def _from_sums(self, total: Vector, squares: Vector, x: Encoded, y: Encoded) -> Vector:
        """Return K from sum_g A_g and sum_g A_g^2: (B, B').

        The sum over E is that over all pairs, (S^2 - sum_v A_v^2) / 2 with S = sum_v A_v, minus the pairs of more than two
        conditions together.
        """
        c1, c2, sc, cm, cq = self.factors
        k, number_squares = self._number_sums(x, y)
        k += total
        # 1 + c1 S + c2 (S^2 - squares) / 2, in place
        number_squares += squares
        number_squares *= 0.5 * c2
        k *= 0.5 * c2 * k + c1
        k -= number_squares
        k += 1.0
        if self.structure.conjunctions:
            one, (two, two_squares) = self._number_sums(x, y, [1])[0], self._number_sums(x, y, [2])
            k -= c2 * (two * (total + one) + 0.5 * (two**2 - two_squares))
        if len(self.structure.joint):
            unique, inverse = x.distinct
            joint = self.joint_term(unique, y)[inverse]
            joint *= sc + cm * total + 0.5 * cq * (total**2 - squares)
            k += joint
        return k

    def diagonal(self, x: Encoded) -> Vector:
        """Return K(x, x): (B,)."""
        s, (c1, c2, sc, cm, cq) = self.structure, self.factors
        numbers, own = self.b * x.on, self._own[:, None]
        total, squares = (column[:, 0] for column in level_sums(x.columns, [own, own**2]))
        every, discrete = total + numbers.sum(axis=1), 0.5 * (total**2 - squares)
        pairs = 0.5 * (every**2 - squares - (numbers**2).sum(axis=1))
        one, two = numbers[:, s.conditional].sum(axis=1), numbers[:, s.conjunctions]
        pairs -= two.sum(axis=1) * (total + one) + 0.5 * (two.sum(axis=1) ** 2 - (two**2).sum(axis=1))
        return np.asarray(1.0 + c1 * every + c2 * pairs + sc + cm * total + cq * discrete)
