"""The linear model under a sparse prior, and functions with their irrelevant pairs left out.

Notation of :mod:`mipcash.surrogates.linear.sparse.mixture`. The priors are sampled by
:mod:`mipcash.surrogates.linear.sparse.gibbs`, the Laplace one also bounded by
:mod:`mipcash.surrogates.linear.sparse.variational`; either way the posterior is a set of scales, given which the weights are
Gaussian. The exact solve of a sample is the faster the fewer pairs of groups it couples, so :func:`thinned` and
:func:`restricted` leave pairs out and tell how much f can have changed by it:

    f = kept + sum over left-out (g, h) of e_gh(s_g, s_h; u),     |e_gh - centre_gh| <= half range of e_gh over levels and u,

the centre staying in the constant. So |f - kept| <= error = the sum of half ranges, and a minimum of the kept part, less
error, bounds the minimum of f from below.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np

from mipcash.program.forms import Vector
from mipcash.surrogates.linear.features.discrete import DiscreteFeatures
from mipcash.surrogates.linear.posterior import LinearPosterior, WeightSample
from mipcash.surrogates.linear.sparse import gibbs, variational
from mipcash.surrogates.linear.sparse.mixture import Mixture, Pair, Scales, SparseSettings


@dataclass(frozen=True)
class SparsePosterior:
    """Draws of the scales; given the scales the weights are Gaussian, so that a sample is exact given one draw of them.

    Attributes:
        mixture: the model under its scales.
        draws: the kept scales.
        average: mean of the weights, Rao-Blackwellised: the average over the draws of their mean given the scales.
    """

    mixture: Mixture
    draws: tuple[Scales, ...]
    average: tuple[Vector, ...] = field(repr=False)

    @classmethod
    def fit(cls, base: LinearPosterior, settings: SparseSettings, rng: np.random.Generator) -> SparsePosterior:
        """Put the prior of the settings on the weights of a Gaussian model."""
        mixture = Mixture.of(base, settings)
        if settings.inference == "variational":
            return cls(mixture, *variational.run(mixture, settings))
        return cls(mixture, *gibbs.run(mixture, settings, rng))

    @property
    def n_features(self) -> int:
        """M."""
        return self.mixture.base.n_features

    def mean(self) -> WeightSample:
        """The posterior mean, a function like any sample."""
        base = self.mixture.base
        return WeightSample(base.blocks, self.average, base.shift, base.scale, base.program, base.n_numbers)

    def sample(self, rng: np.random.Generator, inflation: float = 1.0) -> WeightSample:
        """A posterior sample; ``inflation`` multiplies the posterior covariance of the weights."""
        drawn = self.mixture.given(self.draws[int(rng.integers(len(self.draws)))]).sample(rng)
        if inflation == 1.0:
            return drawn
        root = math.sqrt(inflation)
        pairs = zip(self.average, drawn.weights, strict=True)
        return replace(drawn, weights=tuple(m + root * (w - m) for m, w in pairs))

    def inclusion(self) -> dict[Pair, float]:
        """How far each pair of groups escapes shrinkage, in [0, 1]: the mean of 1 - kappa over the draws.

        kappa_u = 1 / (1 + a_u) is the shrinkage factor (Carvalho, Polson and Scott 2010) with a_u = c tau^2 lambda_u^2; c, the
        prior variance of all units' parts of f at lambda = tau = 1, takes the scale of V out: 1/2 is what each unit would
        have if together they made the variance of the losses, all alike. A pair in several blocks counts with its freest unit.
        """
        size = float(np.sum(self.mixture.spread))
        free = np.mean([a / (1.0 + a) for a in (size * at.glob * at.local for at in self.draws)], axis=0)
        found: dict[Pair, float] = {}
        for (_, pair), value in zip(self.mixture.units.keys, free, strict=True):
            if pair[0] != pair[1]:
                found[pair] = max(found.get(pair, 0.0), float(value))
        return found

    def relevant(self, threshold: float = 0.5) -> frozenset[Pair]:
        """The pairs whose inclusion reaches the threshold."""
        return frozenset(pair for pair, value in self.inclusion().items() if value >= threshold)


# -- leaving pairs out ----------------------------------------------------------------------------------------------


def half_ranges(f: WeightSample) -> dict[Pair, float]:
    """Half the range of each pair's part of f, an upper bound over all levels and numbers."""
    found: dict[Pair, float] = {}
    for discrete, parts in _parts(f):
        for g, h, rows in discrete.pair_rows():
            if g != h:
                found[g, h] = found.get((g, h), 0.0) + sum(
                    _half_range(discrete.levels(g, h, w[rows]), ceiling) for w, ceiling in parts
                )
    return found


def restricted(f: WeightSample, pairs: Collection[Pair]) -> tuple[WeightSample, float]:
    """f with only the given pairs of groups, and the largest error that this makes, on the scale of f."""
    sizes = half_ranges(f)
    dropped = {pair for pair in sizes if pair not in pairs}
    return _without(f, dropped), sum(sizes[pair] for pair in dropped)


def thinned(f: WeightSample, tolerance: float) -> tuple[WeightSample, float]:
    """f without its smallest pairs, as many as keep the error within the tolerance (f: losses standardised)."""
    sizes = half_ranges(f)
    dropped: set[Pair] = set()
    error = 0.0
    for pair in sorted(sizes, key=lambda p: (sizes[p], p)):
        if error + sizes[pair] > tolerance:
            break
        error += sizes[pair]
        dropped.add(pair)
    return _without(f, dropped), error


def _parts(f: WeightSample) -> list[tuple[DiscreteFeatures, list[tuple[Vector, Vector]]]]:
    """Blocks that share discrete features: [(features, [(W_b, bounds of |C_b|)])]."""
    found: dict[int, tuple[DiscreteFeatures, list[tuple[Vector, Vector]]]] = {}
    for block, w in zip(f.blocks, f.weights, strict=True):
        if isinstance(block.discrete, DiscreteFeatures):
            ceiling = np.zeros(0) if block.fourier is None else block.fourier.ceiling
            found.setdefault(id(block.discrete), (block.discrete, []))[1].append((w, ceiling))
    return list(found.values())


def _half_range(table: Vector, ceiling: Vector) -> float:
    """Of a pair's table over levels, (L_g, L_h, q): q = 1 without numbers, else times features within +- ceiling."""
    if not len(ceiling):
        return float(np.max(table) - np.min(table)) / 2.0
    return float(np.max(np.abs(table) @ ceiling))


def _without(f: WeightSample, dropped: Collection[Pair]) -> WeightSample:
    weights = []
    for block, w in zip(f.blocks, f.weights, strict=True):
        left = w.copy()
        if isinstance(block.discrete, DiscreteFeatures):
            for g, h, rows in block.discrete.pair_rows():
                if (g, h) not in dropped:
                    continue
                if block.fourier is None:
                    table = block.discrete.levels(g, h, w[rows])
                    left[0] += (np.max(table) + np.min(table)) / 2.0
                left[rows] = 0.0
        weights.append(left)
    return replace(f, weights=tuple(weights))
