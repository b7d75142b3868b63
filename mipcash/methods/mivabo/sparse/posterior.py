"""The linear model under a sparse prior, and functions without their irrelevant pairs.

Notation of ``mipcash.methods.mivabo.sparse.mixture``. The priors are sampled; the Laplace prior can also be
bounded by variational inference, below. In both cases the posterior is a set of scales, given which the
weights are Gaussian. The exact solve of a sample is faster the fewer pairs of groups it couples, so ``thinned`` and
``restricted`` leave pairs out and bound the change of f:

    f = kept + sum over left-out (g, h) of e_gh(s_g, s_h; u),     |e_gh - centre_gh| <= half range of e_gh over levels and u,

the centre staying in the constant. So |f - kept| <= error = the sum of half ranges, and a minimum of the kept part, less error,
bounds the minimum of f from below.

The Laplace prior by variational inference, as in the paper (daxberger2019, App. A.1: Seeger and Nickisch 2011).

Notation of ``mipcash.methods.mivabo.sparse.mixture``, with gamma_u = tau^2 lambda_u^2.

Each unit's prior is bounded from below by Gaussians (super-Gaussian bounding),

    tau^-m exp(-r / tau) = max_gamma tau^-m exp(-r^2 / (2 gamma) - gamma / (2 tau^2)),    r^2 = S_u,

so that the evidence is bounded by that of Gaussian models. The bound is maximal, with E over the Gaussian posterior, at

    gamma_u = tau sqrt(E[S_u]),   E[S_u] = S_u(mean) + z_u,   z_u = sum of the posterior variances of W_b[i, j] / sqrt(V_b[i]),
    tau = sum_u sqrt(E[S_u]) / sum_u m_u.

The algorithm is the double loop of the reference: z and tau in the outer loop, a penalised least-squares problem for the mean, by
reweighting, in the inner one. s2 maximises the evidence of the Gaussian model. Each step costs one O(t^3 + t^2 sum_b p_b). The
result is one setting of the scales: it keeps one of the posterior's modes, and its variances are too small.

Sparse priors by Gibbs sampling over a scale mixture of normals.

    laplace     lambda_u^2 ~ Gamma((m_u + 1) / 2, rate 1/2), so that p(W_u) ~ exp(-sqrt(S_u) / tau). This is the Bayesian lasso
                (Park and Casella 2008; over units of several weights Kyung et al. 2010), the paper's sparse prior (Sec. 3.2).
    horseshoe   lambda_u ~ C+(0, 1) through auxiliary inverse gammas (Makalic and Schmidt 2016), as in BOCS (Baptista and
                Poloczek 2018)
    both        tau ~ C+(0, 1),  log s2 ~ N(log of its median, sd^2)

One sweep draws tau and s2 with the weights integrated out, by slices on K. The weights alone determine tau up to 1 / sqrt(M), so a
chain that conditions on them hardly moves (Johndrow, Orenstein and Bhattacharya 2020). Then W is drawn given the scales, and lambda
given W, the only step in which the priors differ. W is drawn by Matheron's rule, which is the sampler of Bhattacharya, Chakraborty
and Mallick (2016): O(t^3 + t^2 sum_b p_b + t M).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve
from scipy.optimize import minimize_scalar

from mipcash.deadline import NEVER, Deadline
from mipcash.methods.mivabo.discrete_features import DiscreteFeatures
from mipcash.methods.mivabo.functions import WeightSample
from mipcash.methods.mivabo.posterior import LinearPosterior
from mipcash.methods.mivabo.sparse.mixture import Mixture, Pair, Scales, SparseSettings
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Noise

OUTER, INNER = 30, 3
TOLERANCE = 1e-4
"""Largest change of log gamma at which the outer loop stops."""
FLOOR = 1e-12


LIMITS = (1e-14, 1e14)
"""Range of the scales; values beyond it change nothing but overflow."""
SLICE_WIDTH = 1.5
SLICE_STEPS = 6


def horseshoe_update(at: Scales, s: Vector, sizes: Vector, rng: np.random.Generator) -> tuple[Vector, Vector]:
    """Draw lambda^2 and nu given S: inverse gammas (Makalic and Schmidt 2016, Sec. II, for units of m_u weights)."""
    local = _inverse_gamma((sizes + 1.0) / 2.0, 1.0 / at.mixing + s / (2.0 * at.glob), rng)
    return local, _inverse_gamma(np.ones(len(s)), 1.0 + 1.0 / local, rng)


def laplace_update(at: Scales, s: Vector, sizes: Vector, rng: np.random.Generator) -> tuple[Vector, Vector]:
    """Draw lambda^2 given S: 1 / lambda^2 is inverse Gaussian, mean tau / sqrt(S), shape 1 (Park and Casella 2008, Sec. 2)."""
    mean = np.sqrt(at.glob / np.maximum(s, 1e-12 * at.glob))
    return 1.0 / np.maximum(rng.wald(mean, 1.0), 1e-12), at.mixing


UPDATES = {"horseshoe": horseshoe_update, "laplace": laplace_update}


def _inverse_gamma(shape: Vector, rate: Vector, rng: np.random.Generator) -> Vector:
    drawn: Vector = np.clip(rate / rng.gamma(shape), *LIMITS)
    return drawn


def collapsed(
    mixture: Mixture, settings: SparseSettings, at: Scales, outside: Vector, inside: Vector, rng: np.random.Generator
) -> Scales:
    """Draw tau and s2 given lambda (in B, ``inside``), the weights integrated out: a slice on the log of each."""

    def of_tau(x: float) -> float:
        # the density of log tau is tau p(tau), with p the half-Cauchy's
        glob = math.exp(2.0 * x)
        return mixture.log_evidence(outside + glob * inside, at.noise) + x - math.log1p(glob)

    if len(at.local):
        at = replace(at, glob=math.exp(2.0 * slice_step(of_tau, 0.5 * math.log(at.glob), rng)))
    if settings.noise_sd == 0.0:
        return at
    k = outside + at.glob * inside

    def of_noise(x: float) -> float:
        return mixture.log_evidence(k, math.exp(x)) - 0.5 * ((x - math.log(settings.noise)) / settings.noise_sd) ** 2

    return replace(at, noise=math.exp(slice_step(of_noise, math.log(at.noise), rng)))


def by_gibbs(
    mixture: Mixture, settings: SparseSettings, rng: np.random.Generator, deadline: Deadline = NEVER
) -> tuple[tuple[Scales, ...], tuple[Vector, ...]]:
    """Run the chain from lambda = tau = 1; at the deadline its latest state is kept if no other is yet.

    Returns:
        The kept scales, and the average of the weights' means given each of them, shapes (p_b, q_b).
    """
    at = mixture.start()
    update = UPDATES[settings.prior]
    outside = mixture.covariance(np.zeros(len(at.local)), 1.0)
    kept: list[Scales] = []
    total = [np.zeros((d.shape[1], c.shape[1])) for d, c in zip(mixture.base.left, mixture.base.right, strict=True)]
    for sweep in range(settings.burn_in + settings.draws):
        inside = mixture.covariance(at.local, 0.0)
        at = collapsed(mixture, settings, at, outside, inside, rng)
        drawn, mean = mixture.weights(at, outside + at.glob * inside, rng)
        over = deadline.passed
        if sweep >= settings.burn_in or (over and not kept):
            kept.append(at)
            for sum_, w in zip(total, mean, strict=True):
                sum_ += w
        if len(at.local):
            local, mixing = update(at, mixture.squares(drawn), mixture.units.sizes, rng)
            at = replace(at, local=local, mixing=mixing)
        if over:
            break
    return tuple(kept), tuple(w / len(kept) for w in total)


def slice_step(log_density: Callable[[float], float], x: float, rng: np.random.Generator) -> float:
    """Make one step of slice sampling with stepping out and shrinkage (Neal 2003, Sec. 4)."""
    height = log_density(x) - float(rng.exponential())
    low = x - SLICE_WIDTH * float(rng.random())
    high = low + SLICE_WIDTH
    for _ in range(SLICE_STEPS):
        if log_density(low) <= height:
            break
        low -= SLICE_WIDTH
    for _ in range(SLICE_STEPS):
        if log_density(high) <= height:
            break
        high += SLICE_WIDTH
    while high - low > 1e-9:
        trial = low + (high - low) * float(rng.random())
        if log_density(trial) > height:
            return trial
        low, high = (trial, high) if trial < x else (low, trial)
    return x


def by_variation(
    mixture: Mixture, settings: SparseSettings, deadline: Deadline = NEVER
) -> tuple[tuple[Scales, ...], tuple[Vector, ...]]:
    """Maximise the bound from gamma = tau = 1; return scales and mean weights, as ``by_gibbs`` does."""
    at = mixture.start()
    if not len(at.local):
        return (at,), mixture.given(at).mean().weights
    tau = 1.0
    for _ in range(OUTER):
        before = at.glob * at.local
        at = _noise(mixture, settings, at)
        z = spread(mixture, mixture.given(at), at)
        for _ in range(INNER):
            expected = np.sqrt(mixture.squares(mixture.given(at).mean().weights) + z)
            at = replace(at, glob=tau**2, local=np.maximum(expected / tau, FLOOR))
        tau = max(FLOOR, float(np.sum(expected) / np.sum(mixture.units.sizes)))
        at = replace(at, glob=tau**2, local=np.maximum(expected / tau, FLOOR))
        if np.max(np.abs(np.log(at.glob * at.local / before))) < TOLERANCE or deadline.passed:
            break
    return (at,), mixture.given(at).mean().weights


def spread(mixture: Mixture, given: LinearPosterior, at: Scales) -> Vector:
    """Return z: posterior variances of the weights over V, summed over each unit; shape (U,)."""
    inverse = cho_solve(given.factor, np.eye(len(given.y)))
    rows = []
    scales = mixture.units.over_rows(at.glob * at.local, 1.0)
    for block, d, c, cc, s in zip(given.blocks, given.left, given.right, mixture.continuous, scales, strict=True):
        # variance of W[i, j] is v - v^2 (d_i o c_j)' K^-1 (d_i o c_j), v = V s; over V, summed over j
        explained = np.einsum("ti,ts,si->i", d, inverse * cc, d, optimize=True)
        rows.append(np.maximum(s * (c.shape[1] - block.variances * explained), 0.0))
    return mixture.units.total(rows)


def _noise(mixture: Mixture, settings: SparseSettings, at: Scales) -> Scales:
    if settings.noise_sd == 0.0:
        return at
    k = mixture.covariance(at.glob * at.local, 1.0)
    median = math.log(settings.noise)

    def objective(x: float) -> float:
        return 0.5 * ((x - median) / settings.noise_sd) ** 2 - mixture.log_evidence(k, math.exp(x))

    reach = 4.0 * settings.noise_sd
    found = minimize_scalar(objective, bounds=(median - reach, median + reach), method="bounded")
    return replace(at, noise=math.exp(float(found.x)))


@dataclass(frozen=True)
class SparsePosterior:
    """Draws of the scales, given which the weights are Gaussian, so that a sample is exact given one draw of the scales.

    Attributes:
        mixture: the model under its scales, its data perhaps reduced.
        draws: the kept scales.
        average: mean of the weights, Rao-Blackwellised: the average over the draws of their mean given the scales.
        further: observations added by ``given``: points, values on the scale of predictions, and noise.
    """

    mixture: Mixture
    draws: tuple[Scales, ...]
    average: tuple[Vector, ...] = field(repr=False)
    further: tuple[tuple[Points, Vector, Noise], ...] = ()

    @classmethod
    def fit(
        cls, base: LinearPosterior, settings: SparseSettings, rng: np.random.Generator, deadline: Deadline = NEVER
    ) -> SparsePosterior:
        """Fit the prior of the settings on the weights of a Gaussian model."""
        mixture = Mixture.of(base, settings)
        if settings.inference == "variational":
            return cls(mixture, *by_variation(mixture, settings, deadline))
        return cls(mixture, *by_gibbs(mixture, settings, rng, deadline))

    def given(self, points: Points, values: Vector, noise: Noise = 0.0) -> SparsePosterior:
        """Condition on further observations under the same draws of the scales, which are not reweighted.

        Args:
            points: B of them.
            values: on the scale of predictions, shape (B,).
            noise: a number or shape (B,), in addition to s2.
        """
        grown = replace(self, further=(*self.further, (points, values, noise)))
        means = [component.mean().weights for component in grown.components]
        average = tuple(np.mean([w[b] for w in means], axis=0) for b in range(len(self.average)))
        return replace(grown, average=average)

    @property
    def n_features(self) -> int:
        """Number of features M."""
        return self.mixture.base.n_features

    @cached_property
    def components(self) -> tuple[LinearPosterior, ...]:
        """The Gaussian posterior under each draw."""
        return tuple(self._component(at) for at in self.draws)

    def _component(self, at: Scales) -> LinearPosterior:
        component = self.mixture.given(at)
        for points, values, noise in self.further:
            component = component.given(points, values, noise)
        return component

    def predict(self, points: Points) -> tuple[Vector, Vector]:
        """Return mean and standard deviation of f, those of the mixture over the draws: (B,), (B,)."""
        moments = [component.predict(points) for component in self.components]
        means = np.array([m for m, _ in moments])
        mean = means.mean(axis=0)
        variance = np.mean([s**2 for _, s in moments], axis=0) + np.mean((means - mean) ** 2, axis=0)
        return mean, np.sqrt(variance)

    def sample(self, rng: np.random.Generator, inflation: float = 1.0) -> WeightSample:
        """Draw a posterior sample; ``inflation`` multiplies the posterior covariance of the weights."""
        drawn = self._component(self.draws[int(rng.integers(len(self.draws)))]).sample(rng)
        if inflation == 1.0:
            return drawn
        root = math.sqrt(inflation)
        pairs = zip(self.average, drawn.weights, strict=True)
        return replace(drawn, weights=tuple(m + root * (w - m) for m, w in pairs))


# -- leaving pairs out ----------------------------------------------------------------------------------------------


def half_ranges(f: WeightSample) -> dict[Pair, float]:
    """Return half the range of each pair's part of f, an upper bound over all levels and numerical parameters."""
    found: dict[Pair, float] = {}
    for discrete, parts in _parts(f):
        for g, h, rows in discrete.pair_rows():
            if g != h:
                found[g, h] = found.get((g, h), 0.0) + sum(
                    _half_range(discrete.levels(g, h, w[rows]), ceiling) for w, ceiling in parts
                )
    return found


def restricted(f: WeightSample, pairs: Collection[Pair]) -> tuple[WeightSample, float]:
    """Return f with only the given pairs of groups, and the largest error of that, on the scale of f."""
    sizes = half_ranges(f)
    dropped = {pair for pair in sizes if pair not in pairs}
    return _without(f, dropped), sum(sizes[pair] for pair in dropped)


def thinned(f: WeightSample, tolerance: float) -> tuple[WeightSample, float]:
    """Return f without its smallest pairs, as many as the tolerance allows, and the error (f: losses standardised)."""
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
    """Return blocks that share discrete features: [(features, [(W_b, bounds of |C_b|)])]."""
    found: dict[int, tuple[DiscreteFeatures, list[tuple[Vector, Vector]]]] = {}
    for block, w in zip(f.blocks, f.weights, strict=True):
        if isinstance(block.discrete, DiscreteFeatures):
            ceiling = np.zeros(0) if block.cosines is None else block.cosines.amplitude
            found.setdefault(id(block.discrete), (block.discrete, []))[1].append((w, ceiling))
    return list(found.values())


def _half_range(table: Vector, ceiling: Vector) -> float:
    """Return half the range of a pair's table over levels, (L_g, L_h, q).

    q = 1 without numerical parameters; otherwise the table is multiplied by features within +- ceiling.
    """
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
                if block.cosines is None:
                    table = block.discrete.levels(g, h, w[rows])
                    left[0] += (np.max(table) + np.min(table)) / 2.0
                left[rows] = 0.0
        weights.append(left)
    return replace(f, weights=tuple(weights))
