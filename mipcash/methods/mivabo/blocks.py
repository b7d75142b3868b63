"""The feature blocks of the two presets, and their numbers of features.

Notation of ``mipcash.methods.mivabo.posterior``. ``paper``: bits, all pairs, all mixed products (daxberger2019, Secs. 3.1 and
4). ``evidence``: one-hot features with variances fitted to the evidence. If interactions are declared, numerical parameters that
interact share a joint phi_c over their pair. Each declared (group, numerical parameter) then makes mixed products with a phi_c of
that numerical parameter alone, and only declared pairs of groups are multiplied.

Quadrature Fourier features of the squared-exponential kernel (Mutny and Krause 2018).

Notation
    u (B, D)    unit values;   length (D,)   length-scales;   m   nodes per dimension
    x_a, w_a    Gauss-Hermite nodes and weights:   int exp(-x^2) g(x) dx = sum_a w_a g(x_a), exact for degree 2m - 1

The kernel is the expectation of cos(omega . (u - u')) over omega ~ N(0, diag(1 / length^2)) (Bochner), so

    k(u, u') = sum_a (prod_d w_{a_d} / sqrt(pi)) cos(omega_a . (u - u')),   omega_a = sqrt(2) x_a / length,   a in {1..m}^D

and cos(omega . (u - u')) = cos cos' + sin sin' makes a cosine and a sine feature of each node. The nodes are symmetric, and -omega
makes the same two, so half the grid suffices: m^D features. The error falls like (e / (4 m length^2))^m (Theorem 1). It is
negligible once m > 3 / length^2, and large far below. For many dimensions, separate grids for few interacting numerical parameters
each keep the features few (additive kernels, Sec. 3.1 of Mutny and Krause).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mipcash.errors import SpaceError, check_settings
from mipcash.methods.mivabo.discrete_features import DiscreteFeatures
from mipcash.methods.mivabo.evidence import Layout, shared
from mipcash.methods.mivabo.functions import Block
from mipcash.methods.mivabo.interactions import Interactions, Pair
from mipcash.program.forms import Indices, Vector
from mipcash.program.program import BinaryProgram
from mipcash.program.unit_scale import UnitScale, resolved
from mipcash.surrogates.cosines import CosineFeatures

LARGEST = 4096
"""Maximum number of features of one grid; beyond it, the posterior costs far more than with random features."""


FEATURES = ("fourier", "quadrature")
"""Kinds of features of the numerical parameters."""


def grid_size(dims: int, nodes: int, largest: int = LARGEST) -> int:
    """Return the number of features of a tensor grid.

    Raises:
        SpaceError: there are more than ``largest``.
    """
    size: int = nodes**dims
    if size > largest:
        raise SpaceError(
            f"quadrature features over {dims} numbers at once with {nodes} nodes each are {nodes}^{dims} = {size}"
            f" features, more than {largest}; take fewer nodes, an additive kernel (declare the interactions between"
            " numbers that matter), or Fourier features"
        )
    return size


def quadrature(dims: Indices, length: Vector, nodes: int, largest: int = LARGEST) -> CosineFeatures:
    """Return the features of the tensor grid over all of ``dims``: nodes^D', cosines and sines (a phase of -pi / 2).

    Raises:
        SpaceError: the grid would have more than ``largest`` features.
    """
    dims, size = np.asarray(dims, dtype=np.int64), grid_size(len(dims), nodes, largest)
    x, w = np.polynomial.hermite.hermgauss(nodes)
    grid = np.array(np.meshgrid(*[x] * len(dims), indexing="ij")).reshape(len(dims), -1).T
    weight = np.array(np.meshgrid(*[w / np.sqrt(np.pi)] * len(dims), indexing="ij")).reshape(len(dims), -1).prod(axis=0)
    # node k and node size - 1 - k are each other's negatives; an odd grid's middle one is zero and has no sine
    half = size // 2
    omega = np.sqrt(2.0) * grid / np.asarray(length)
    amplitude = np.sqrt(2.0 * weight[:half])
    middle = slice(half, half + size % 2)
    return CosineFeatures(
        dims,
        np.concatenate([omega[:half], omega[:half], omega[middle]]),
        np.concatenate([np.zeros(half), np.full(half, -0.5 * np.pi), np.zeros(size % 2)]),
        np.concatenate([amplitude, amplitude, np.sqrt(weight[middle])]),
    )


@dataclass(frozen=True)
class FeatureSizes:
    """Numbers of features of a model.

    Attributes:
        fourier: random Fourier features of the joint kernel P.
        per_number: random Fourier features, or quadrature nodes, of each numerical parameter's own kernel.
        product_columns: maximum number of product columns of an acquisition step; pairs of groups beyond it are dropped, the
            least relevant ones first. The paper's preset keeps all pairs.
        nodes: quadrature nodes per dimension of a joint kernel, which has nodes^D features.
    """

    fourier: int = 64
    per_number: int = 16
    product_columns: int = 1200
    nodes: int = 8

    def __post_init__(self) -> None:
        check_settings(self, fourier=1, per_number=1, product_columns=0, nodes=1)


@dataclass(frozen=True)
class BlockMaker:
    """Makes the blocks of a model, and their features phi_c of one kind.

    Attributes:
        kind: one of FEATURES.
        sizes: numbers of features.
        declared: the pairs that may interact; None: all.
    """

    program: BinaryProgram
    scale: UnitScale
    kind: str
    sizes: FeatureSizes
    declared: Interactions | None = None

    def joint(self, dims: Indices, length: Vector, rng: np.random.Generator) -> CosineFeatures:
        """Return features of the kernel over several numerical parameters at once."""
        if self.kind == "quadrature":
            return quadrature(dims, length, self._nodes(len(dims)))
        return CosineFeatures.fourier(dims, length, self.sizes.fourier, rng)

    def check(self, joint: Indices) -> None:
        """Check the sizes of joint features before any are made.

        Raises:
            SpaceError: a grid would have more features than LARGEST.
        """
        for part in shared(len(self.program.groups), joint, self.declared) if self.kind == "quadrature" else ():
            grid_size(len(part.dims), self._nodes(len(part.dims)))

    def _nodes(self, dims: int) -> int:
        """Nodes per dimension; a single numerical parameter can have the many that short length-scales need."""
        return self.sizes.nodes if dims > 1 else self.sizes.per_number

    def own(self, d: int, length: float, rng: np.random.Generator) -> CosineFeatures:
        """Return features of one numerical parameter's own kernel."""
        if self.kind == "quadrature":
            return quadrature(np.array([d]), np.array([length]), self.sizes.per_number)
        return CosineFeatures.fourier(np.array([d]), np.array([length]), self.sizes.per_number, rng)

    def paper(self, alpha: float, sigma: float, rng: np.random.Generator) -> list[Block]:
        """Return bits, all pairs, all mixed products; prior precision alpha, bandwidth sigma (daxberger2019, Secs. 3.1 and 4)."""
        program, declared, numbers = self.program, self.declared, len(self.scale)
        pairs = list(combinations(range(len(program.groups)), 2)) if declared is None else sorted(declared.groups)
        discrete = DiscreteFeatures.bits(program, pairs)
        variances, dims, length = np.full(discrete.size, 1.0 / alpha), np.arange(numbers), np.full(numbers, sigma)
        blocks = [Block(discrete, None, variances)]
        if not numbers:
            return blocks
        if declared is None:
            # phi_c and phi_m together: the constant of phi_d makes phi_c, its other features make phi_m
            return [*blocks, Block(discrete, self.joint(dims, length, rng), variances)]
        linear = DiscreteFeatures.bits(program, ())
        mixed = np.full(linear.size, 1.0 / alpha)
        return blocks + self._declared(declared, linear, 1.0 / alpha, mixed, dims, length, rng)

    def evidence(self, theta: Vector, layout: Layout, rng: np.random.Generator, product_columns: int) -> list[Block]:
        """Return the model whose kernel ``mipcash.methods.mivabo.evidence`` fits, with its most relevant pairs.

        A numerical parameter with conditions has its own kernel and no products, declared or not. In a form at fixed numerical
        values its value stays while levels change, so a product with a group would not vanish where the numerical parameter is
        inactive.
        """
        at, p, declared, program = layout.slices, np.exp(theta), self.declared, self.program
        a, b, m, l = p[at["a"]], p[at["b"]], p[at["m"]], p[at["l"]]
        s1, s2, sc, sm = (float(p[at[name]][0]) for name in ("s1", "s2", "sc", "sm"))
        n_groups, n_numbers = layout.n_groups, layout.n_numbers
        c1 = s1 / max(1, n_groups + n_numbers)
        c2 = 2.0 * s2 / max(1, n_groups * (n_groups - 1))
        pairs = relevant_pairs(program, a, product_columns, None if declared is None else declared.groups)
        discrete = DiscreteFeatures.one_hot(program, pairs)
        products = [np.full(rows.stop - rows.start, c2 * (a[g] * a[h])) for g, h, rows in discrete.pair_rows()]
        blocks = [Block(discrete, None, np.concatenate([[1.0], c1 * _per_feature(discrete, a), *products]))]
        if len(layout.joint):
            linear = DiscreteFeatures.one_hot(program, ())
            mixed = np.concatenate([[sc], sm / max(1, n_groups) * _per_feature(linear, a)])
            if declared is None:
                blocks.append(Block(linear, self.joint(layout.joint, l, rng), mixed))
            else:
                blocks += self._declared(declared, linear, sc, mixed, layout.joint, l, rng)
        for j, conditions in enumerate(self.scale.conditions):
            blocks.append(Block(resolved(conditions), self.own(j, float(m[j]), rng), np.array([c1 * b[j]])))
        return blocks

    def _declared(
        self,
        declared: Interactions,
        linear: DiscreteFeatures,
        constant: float,
        mixed: Vector,
        dims: Indices,
        length: Vector,
        rng: np.random.Generator,
    ) -> list[Block]:
        """Return phi_c over the components of numerical parameters, and phi_m for each that a group interacts with."""
        blocks = []
        for part in shared(len(linear.spans), dims, declared):
            made = self.joint(dims[part.dims], length[part.dims], rng)
            if not part.groups.any():
                blocks.append(Block((), made, np.array([constant * part.constant])))
                continue
            allowed = np.concatenate([[0.0], _per_feature(linear, part.groups)])
            # products within a group (bits) belong to it
            inside = [np.full(rows.stop - rows.start, part.groups[g]) for g, _, rows in linear.pair_rows()]
            blocks.append(Block(linear, made, mixed * np.concatenate([allowed, *inside])))
        return blocks


def _per_feature(discrete: DiscreteFeatures, per_group: Vector) -> Vector:
    return np.repeat(per_group, [s.stop - s.start for s in discrete.spans])


def relevant_pairs(
    program: BinaryProgram, relevance: Vector, product_columns: int, among: frozenset[Pair] | None = None
) -> list[Pair]:
    """Return pairs of groups (out of ``among``) by decreasing a_g a_h, as many as the product columns allow."""
    everything = list(combinations(range(len(program.groups)), 2)) if among is None else list(among)
    everything.sort(key=lambda gh: (-relevance[gh[0]] * relevance[gh[1]], gh))
    return program.fitting(everything, product_columns)
