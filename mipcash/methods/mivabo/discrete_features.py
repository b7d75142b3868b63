"""Discrete features phi_d (daxberger2019, Sec. 3.1): constant, linear and pairwise terms of an encoding of z.

Notation
    z (B, n_z)  one-hot binaries;   E (n_z, n_e) encoding, block-diagonal in the groups;   e = z E.
    phi_d(z) = [1, e_i for all i, e_i e_j for i in g, j in h, (g, h) in pairs]          (B, M_d)

Encodings
    one-hot     the block of a group is a factor C of a covariance k = C C' over its levels, so that independent weights
                make correlated level effects. k is centred, H k H with H = I - 11'/L, and scaled to mean diagonal 1.
                k = I for categories, exp(-(l - m)^2 / (2 lo^2)) over levels on [0, 1] for ordered ones (docs/model.md, 2.1).
    bits        the paper's: level l of a group in ceil(log2 L) bits

The off column of a conditional group encodes to 0: an inactive group contributes nothing. Since e is linear in z, any weighting of
phi_d is a QuadraticForm in z, whatever the encoding.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.program import BinaryProgram, Group
from mipcash.surrogates.level_kernels import LevelKernel, factor_of


@dataclass(frozen=True)
class DiscreteFeatures:
    """phi_d of a program (see the module's notation).

    Attributes:
        n: base columns of the program.
        encoding: E, shape (n_z, n_e).
        spans: the columns of e that belong to each group.
        pairs: pairs (g, h), g < h, whose products are features.
    """

    n: int
    encoding: Vector
    spans: tuple[slice, ...]
    pairs: tuple[tuple[int, int], ...]
    within: bool = False

    @classmethod
    def one_hot(cls, program: BinaryProgram, pairs: Sequence[tuple[int, int]]) -> DiscreteFeatures:
        return cls._of(program, [factor_of(LevelKernel(g).matrix) for g in program.groups], pairs)

    @classmethod
    def bits(cls, program: BinaryProgram, pairs: Sequence[tuple[int, int]]) -> DiscreteFeatures:
        """Make the paper's binary encoding; products of two bits of one parameter are features, too."""
        made = cls._of(program, [bit_block(g) for g in program.groups], pairs)
        return DiscreteFeatures(made.n, made.encoding, made.spans, made.pairs, within=True)

    @classmethod
    def _of(
        cls, program: BinaryProgram, blocks: Sequence[Vector], pairs: Sequence[tuple[int, int]]
    ) -> DiscreteFeatures:
        widths = [b.shape[1] for b in blocks]
        ends = np.cumsum([0, *widths])
        encoding = np.zeros((program.n_z, int(ends[-1])))
        for g, (group, block) in enumerate(zip(program.groups, blocks, strict=True)):
            encoding[group.start : group.stop, ends[g] : ends[g + 1]] = block
        spans = tuple(slice(int(a), int(b)) for a, b in itertools.pairwise(ends))
        return cls(program.n, encoding, spans, tuple(sorted(pairs)))

    @property
    def n_linear(self) -> int:
        return int(self.encoding.shape[1])

    @property
    def size(self) -> int:
        """Number of features M_d."""
        return 1 + self.n_linear + sum(n for *_, n in self._blocks())

    def _blocks(self) -> list[tuple[int, int, int]]:
        """Return (g, h, number of products) of every pair block, within-group blocks (i < j) last."""
        width = [s.stop - s.start for s in self.spans]
        blocks = [(g, h, width[g] * width[h]) for g, h in self.pairs]
        if self.within:
            blocks += [(g, g, w * (w - 1) // 2) for g, w in enumerate(width) if w > 1]
        return blocks

    def pair_rows(self) -> list[tuple[int, int, slice]]:
        """Return (g, h, features that are products of g and h); g = h for products within a group."""
        blocks = self._blocks()
        ends = 1 + self.n_linear + np.cumsum([0, *(n for *_, n in blocks)])
        return [(g, h, slice(int(a), int(a) + n)) for (g, h, n), a in zip(blocks, ends[:-1], strict=True)]

    def __call__(self, z: Vector) -> Vector:
        """Return the features: (B, n_z) -> (B, M_d)."""
        e = z @ self.encoding
        parts = [np.ones((len(z), 1)), e]
        for g, h, _ in self._blocks():
            left, right = e[:, self.spans[g]], e[:, self.spans[h]]
            if g == h:
                i, j = np.triu_indices(left.shape[1], k=1)
                parts.append(left[:, i] * left[:, j])
            else:
                parts.append((left[:, :, None] * right[:, None, :]).reshape(len(z), -1))
        return np.concatenate(parts, axis=1)

    def form(self, weights: Vector) -> QuadraticForm:
        """Return ``weights . phi_d(z)`` as a quadratic form over the base columns: (M_d,) -> form."""
        n_z = len(self.encoding)
        linear = np.zeros(self.n)
        linear[:n_z] = self.encoding @ weights[1 : 1 + self.n_linear]
        rows, cols, values = [], [], []
        at = 1 + self.n_linear
        for g, h, size in self._blocks():
            chunk = weights[at : at + size]
            at += size
            if not np.any(chunk):
                continue
            left, right = self._factor(g), self._factor(h)
            if g == h:
                square = np.zeros((left[1].shape[1],) * 2)
                square[np.triu_indices(len(square), k=1)] = chunk
                # two bits of one group: z_a z_a = z_a, so the product is linear in the group's levels
                linear[left[0]] += np.einsum("ai,ij,aj->a", left[1], square, left[1])
                continue
            matrix = left[1] @ chunk.reshape(left[1].shape[1], right[1].shape[1]) @ right[1].T
            rows.append(np.repeat(left[0], len(right[0])))
            cols.append(np.tile(right[0], len(left[0])))
            values.append(matrix.ravel())
        empty = np.zeros(0, dtype=np.int64)
        return QuadraticForm(
            float(weights[0]),
            linear,
            np.concatenate([empty, *rows]),
            np.concatenate([empty, *cols]),
            np.concatenate([np.zeros(0), *values]),
        )

    def levels(self, g: int, h: int, weights: Vector) -> Vector:
        """Return a pair's weighted products at all distinct levels, then off: (n, q) -> (L_g, L_h, q).

        Off contributes nothing, and neither does a level whose encoding is zero. If a group is never off, its levels' effects are
        centred, so 0 is within their range anyway.
        """
        left, right = (np.concatenate([block, np.zeros((1, block.shape[1]))]) for _, block in map(self._factor, (g, h)))
        table = weights.reshape(left.shape[1], right.shape[1], weights.shape[1])
        values: Vector = np.einsum("ai,ijq,bj->abq", left, table, right, optimize=True)
        return values

    def _factor(self, g: int) -> tuple[Indices, Vector]:
        """Return the columns of z that a group's encoding uses, and its block."""
        block = self.encoding[:, self.spans[g]]
        used = np.flatnonzero(np.any(block != 0, axis=1))
        return used.astype(np.int64), block[used]


def bit_block(group: Group) -> Vector:
    """Return the bits of each level, shape (size, ceil(log2 L)), most significant first; the off row is 0."""
    n_levels = group.n_levels
    n_bits = max(1, math.ceil(math.log2(n_levels)))
    block = np.zeros((group.size, n_bits))
    for level in range(n_levels):
        block[level] = [(level >> (n_bits - 1 - k)) & 1 for k in range(n_bits)]
    return block
