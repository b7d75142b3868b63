"""The two presets of the linear model: the paper's, and one-hot features with variances fitted to the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mipcash.features.discrete import DiscreteFeatures
from mipcash.features.fourier import FourierFeatures
from mipcash.features.numbers import NumberScale
from mipcash.program.forms import Indices, Vector
from mipcash.program.program import BinaryProgram
from mipcash.surrogates.evidence import Layout
from mipcash.surrogates.linear import Block

ORDINAL_LENGTH = 0.4


@dataclass(frozen=True)
class FeatureSizes:
    """How many features a model draws.

    Attributes:
        fourier: random Fourier features of the joint kernel P.
        per_number: random Fourier features of each number's own kernel.
        product_columns: product columns an acquisition step may need; pairs of groups beyond it are dropped, the least
            relevant ones first. The paper's preset keeps all pairs.
    """

    fourier: int = 64
    per_number: int = 16
    product_columns: int = 1200


def paper_blocks(
    program: BinaryProgram,
    scale: NumberScale,
    sizes: FeatureSizes,
    alpha: float,
    sigma: float,
    rng: np.random.Generator,
) -> list[Block]:
    """Bits, all pairs, all mixed products; prior precision alpha, bandwidth sigma (daxberger2019, Secs. 3.1 and 4)."""
    pairs = list(combinations(range(len(program.groups)), 2))
    discrete = DiscreteFeatures.bits(program, pairs)
    variances = np.full(discrete.size, 1.0 / alpha)
    blocks = [Block(discrete, None, variances)]
    if len(scale):
        dims = np.arange(len(scale))
        fourier = FourierFeatures.draw(dims, np.full(len(scale), sigma), sizes.fourier, rng)
        # phi_c and phi_m together: the constant of phi_d makes phi_c, its other features make phi_m
        blocks.append(Block(discrete, fourier, variances))
    return blocks


def evidence_blocks(
    program: BinaryProgram,
    scale: NumberScale,
    sizes: FeatureSizes,
    theta: Vector,
    layout: Layout,
    rng: np.random.Generator,
) -> list[Block]:
    """The model whose kernel :mod:`mipcash.surrogates.evidence` fits, with its most relevant pairs."""
    at, p = layout.slices, np.exp(theta)
    a, b, m, l = p[at["a"]], p[at["b"]], p[at["m"]], p[at["l"]]
    s1, s2, sc, sm = (float(p[at[name]][0]) for name in ("s1", "s2", "sc", "sm"))
    n_groups, n_numbers = layout.n_groups, layout.n_numbers
    c1 = s1 / max(1, n_groups + n_numbers)
    c2 = 2.0 * s2 / max(1, n_groups * (n_groups - 1))
    pairs = relevant_pairs(program, a, sizes.product_columns)
    discrete = DiscreteFeatures.one_hot(program, pairs, ORDINAL_LENGTH)
    variances = np.concatenate(
        [[1.0], c1 * _per_feature(discrete, a), c2 * discrete.variances(0.0, a, 1.0)[1 + discrete.n_linear :]]
    )
    blocks = [Block(discrete, None, variances)]
    if len(layout.joint):
        linear = DiscreteFeatures.one_hot(program, (), ORDINAL_LENGTH)
        fourier = FourierFeatures.draw(layout.joint, l, sizes.fourier, rng)
        mixed = np.concatenate([[sc], sm / max(1, n_groups) * _per_feature(linear, a)])
        blocks.append(Block(linear, fourier, mixed))
    for j, conditions in enumerate(scale.conditions):
        own = FourierFeatures.draw(np.array([j]), np.array([m[j]]), sizes.per_number, rng)
        blocks.append(Block(conditions, own, np.array([c1 * b[j]])))
    return blocks


def _per_feature(discrete: DiscreteFeatures, per_group: Vector) -> Vector:
    return np.repeat(per_group, [s.stop - s.start for s in discrete.spans])


def relevant_pairs(program: BinaryProgram, relevance: Vector, product_columns: int) -> list[tuple[int, int]]:
    """Pairs of groups by decreasing a_g a_h, as long as their product columns fit."""
    everything = list(combinations(range(len(program.groups)), 2))
    everything.sort(key=lambda gh: (-relevance[gh[0]] * relevance[gh[1]], gh))
    chosen, used = [], 0
    for g, h in everything:
        size = int(program.sizes[g] * program.sizes[h])
        if used + size <= product_columns:
            chosen.append((g, h))
            used += size
    return chosen


def imputed(losses: Vector, failed: Indices) -> Vector:
    """Losses with failures at the worst loss seen: they are to be avoided, and nothing is known beyond that."""
    filled = losses.copy()
    known = np.delete(losses, failed)
    filled[failed] = known.max() if len(known) else 0.0
    return filled
