"""MiVaBO (daxberger2019): linear surrogate, Thompson sampling, and an acquisition step that alternates MIP and L-BFGS-B.

1. initial design: solver-made configurations that cover the values a legal configuration can take
2. fit the prior variances to the evidence (preset ``evidence``), or keep the paper's (preset ``paper``); a sparse prior
   multiplies them by local scales (Sec. 3.2)
3. draw f~ from the posterior over the weights (Algorithm 1, line 3); under a sparse prior, without its irrelevant pairs
4. minimise f~ over the legal configurations by alternation (line 4); the answer contains the MIP's proof
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from mipcash.acquisition.alternating import AlternatingSettings, Alternation, Minimum
from mipcash.backends.task import Answer
from mipcash.deadline import NEVER, Deadline
from mipcash.errors import check_settings
from mipcash.methods.mivabo import evidence
from mipcash.methods.mivabo.blocks import FEATURES, BlockMaker, FeatureSizes
from mipcash.methods.mivabo.evidence import always_active
from mipcash.methods.mivabo.functions import WeightSample
from mipcash.methods.mivabo.interactions import Interactions, named, resolve
from mipcash.methods.mivabo.posterior import LinearPosterior
from mipcash.methods.mivabo.sparse.mixture import PRIORS, SparseSettings
from mipcash.methods.mivabo.sparse.posterior import SparsePosterior, half_ranges, restricted, thinned
from mipcash.optimizers.data import Data
from mipcash.optimizers.in_time import sampled
from mipcash.optimizers.model_based import ModelBased, Step
from mipcash.optimizers.optimizer import Proposal
from mipcash.optimizers.pending import believed
from mipcash.program.forms import Vector
from mipcash.program.points import Point, Points
from mipcash.program.program import BinaryProgram
from mipcash.program.unit_scale import UnitScale
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Exclusion
from mipcash.space.solution import LOCAL_SEARCH, as_solution
from mipcash.surrogates.covariance import standardisation
from mipcash.surrogates.protocols import Noise, State

KNOWN = 32
"""Number of latest configurations from which local search starts, besides the starts of the alternation."""
DELTA = 0.1
"""Confidence delta of Proposition 1."""
FIT, STARTS, SEARCH = 0.35, 0.2, 0.8
"""Shares of the remaining time for the fit, for new starts and for the alternation."""
WIDER = 4
"""Factor on the product columns under a sparse prior, which drops irrelevant pairs itself."""


@dataclass(frozen=True)
class MiVaBOSettings:
    """Settings of the optimizers ``mivabo`` and ``mivabo-paper``.

    Args:
        preset: ``evidence`` (one-hot, variances fitted) or ``paper`` (bits, alpha = beta = sigma = 1, covariance scaled by
            Proposition 1: 24 M ln t ln(1/delta), delta = 0.1).
        n_initial: size of the initial design.
        starts: starts of the alternation: the best observations, then random legal configurations.
        alpha, beta, sigma: prior precision, noise precision and bandwidth of the paper's preset (losses standardised).
        sizes: numbers of features.
        inflation: factor on the posterior covariance of a sample (preset ``evidence``); reason for 0.25:
            docs/decisions/004-sparse-priors.md.
        refit: iterations of L-BFGS-B on the evidence per proposal.
        prior: ``gaussian``, ``laplace`` or ``horseshoe``, on the weights of pairs and of mixed products. Horseshoe finds
            sparse structure from far fewer observations than Laplace (the benchmark ``priors``) and costs the same.
        sparse: inference of a sparse prior; its ``prior`` is overridden by the one above. None: by pair, s2 inferred
            (preset ``evidence``), or by feature, s2 = 1 / beta (preset ``paper``, Laplace by the paper's variational bound).
        tolerance: under a sparse prior, the smallest pairs of the sample are left out while that changes it by at most this
            many standard deviations of the losses. The total change is bounded by ``Proposal.state["left_out"]``, on the scale
            of the losses; value and bound of the solution are those of the remaining sample.
        features: phi_c: ``fourier`` or ``quadrature``.
        interactions: pairs of parameter names that may interact; None: all, as far as ``sizes`` and the prior allow.
        alternation: limits of the acquisition step.

    Raises:
        SpaceError: a setting is out of range.

    Examples:
        >>> from mipcash.methods.mivabo import MiVaBOSettings
        >>> MiVaBOSettings(prior="horseshoe", n_initial=6).preset
        'evidence'
        >>> MiVaBOSettings.paper(starts=2).preset
        'paper'
    """

    preset: str = "evidence"
    n_initial: int = 10
    starts: int = 4
    alpha: float = 1.0
    beta: float = 1.0
    sigma: float = 1.0
    sizes: FeatureSizes = field(default_factory=FeatureSizes)
    inflation: float = 0.25
    refit: int = 25
    prior: str = "gaussian"
    sparse: SparseSettings | None = None
    tolerance: float = 0.05
    features: str = "fourier"
    interactions: tuple[tuple[str, str], ...] | None = None
    alternation: AlternatingSettings = field(default_factory=AlternatingSettings)

    def __post_init__(self) -> None:
        check_settings(
            self, above_0=("alpha", "beta", "sigma"), n_initial=1, starts=1, inflation=0, refit=1, tolerance=0
        )
        check_settings(self, choices={"preset": ("evidence", "paper"), "features": FEATURES})
        check_settings(self, choices={"prior": ("gaussian", *PRIORS)})
        if self.prior != "gaussian":
            _ = self.inference  # refused here
        if self.interactions is not None:
            object.__setattr__(self, "interactions", named(self.interactions))

    @property
    def inference(self) -> SparseSettings:
        """Settings of the sparse prior."""
        if self.sparse is not None:
            return replace(self.sparse, prior=self.prior)
        if self.preset == "paper":
            inference = "variational" if self.prior == "laplace" else "gibbs"
            return SparseSettings(self.prior, inference, by="feature", noise_sd=0.0)
        return SparseSettings(self.prior)

    @classmethod
    def paper(cls, **changes: Any) -> MiVaBOSettings:
        """Return the paper's settings (daxberger2019, Sec. 4).

        Args:
            changes: settings that differ from the paper's.

        Returns:
            The settings.
        """
        return cls(preset="paper", **changes)


@dataclass(frozen=True)
class LinearSurrogate:
    """A ``mipcash.surrogates.protocols.Surrogate`` with the linear model.

    Attributes:
        program, scale: the space.
        settings: of the model.
        declared: pairs that may interact; None: all.
    """

    program: BinaryProgram
    scale: UnitScale
    settings: MiVaBOSettings = field(default_factory=MiVaBOSettings)
    declared: Interactions | None = None

    def fit(
        self,
        points: Points,
        values: Vector,
        state: State,
        rng: np.random.Generator,
        noise: Noise = 0.0,
        deadline: Deadline = NEVER,
    ) -> tuple[LinearPosterior | SparsePosterior, dict[str, Any]]:
        """Return the posterior, and the state for the next fit; features and the draws of a sparse prior are random."""
        settings, declared = self.settings, self.declared
        shift, width = standardisation(values)
        v = np.asarray(noise) / width**2 if np.any(noise) else 0.0
        maker, after = BlockMaker(self.program, self.scale, settings.features, settings.sizes, declared), dict(state)
        if settings.preset == "paper":
            fitted_noise = 1.0 / settings.beta
            blocks = maker.paper(settings.alpha, settings.sigma, rng)
        else:
            grams = evidence.Grams.of(self.program, self.scale, points.one_hot(self.program), points.units, declared)
            starts = [np.array(state["theta"])] if "theta" in state else []
            theta, _ = evidence.fit(grams, (values - shift) / width, starts, settings.refit, v, deadline)
            after = {"theta": theta.tolist()}
            fitted_noise = float(np.exp(theta[grams.layout.slices["noise"]][0]))
            columns = settings.sizes.product_columns * (1 if settings.prior == "gaussian" else WIDER)
            blocks = maker.evidence(theta, grams.layout, rng, columns)
        posterior = LinearPosterior.fit(blocks, self.program, points, values, fitted_noise, v)
        if settings.prior == "gaussian":
            return posterior, after
        return SparsePosterior.fit(posterior, settings.inference, rng, deadline), after


class MiVaBO(ModelBased):
    """Mixed-variable Bayesian optimization (see the module's description)."""

    name: ClassVar[str] = "mivabo"
    takes_limits = True

    def __init__(self, domain: Domain, settings: MiVaBOSettings | None = None) -> None:
        super().__init__(domain)
        self.settings: MiVaBOSettings = settings or MiVaBOSettings()
        # always resolved, so that a wrong name raises an error before the first evaluation
        resolved = resolve(domain.declaration, self.program, self.scale, self.settings.interactions)
        declared = None if self.settings.interactions is None else resolved
        joint = np.arange(len(self.scale)) if self.settings.preset == "paper" else always_active(self.scale)
        BlockMaker(self.program, self.scale, self.settings.features, self.settings.sizes, declared).check(joint)
        self.surrogate = LinearSurrogate(self.program, self.scale, self.settings, declared)

    @property
    def alternation(self) -> Alternation:
        """Alternation over the present domain, with its deadline."""
        return Alternation(self.domain, self.settings.alternation)

    def _search(self, step: Step) -> Proposal | None:
        data, rng, clock = step.data, step.rng, step.clock
        began, deadline = time.perf_counter(), self.domain.deadline.share(FIT)
        posterior, state = self.surrogate.fit(data.points, data.merits, step.request.state, rng, data.noise(), deadline)
        posterior = believed(posterior, self.awaited(step.request))
        f, left_out = self._kept(posterior, posterior.sample(rng, self._inflation(posterior, len(data.losses))))
        if isinstance(posterior, SparsePosterior):
            state["left_out"] = abs(f.scale) * left_out
        clock.add("surrogate", began, deadline)
        began, starting = time.perf_counter(), self.until(self.domain.deadline.share(STARTS))
        starts = starting._starts(data, rng)
        clock.add("starts", began, starting.domain.deadline)
        solve_began = time.perf_counter()
        searching = self.until(self.domain.deadline.share(SEARCH))
        known = [self.program.encode(o.config) for o in step.request.history[-KNOWN:] if o.legal]
        excluded = self._excluded(step)
        found = searching.alternation.minimise(f, starts, excluded, rng, clock, known)
        clock.note("alternation", searching.domain.deadline)
        if found is None:
            return None
        point, answer, origin = found.point, found.answer, "thompson"
        if self.domain.repeats(self.domain.decode(point), step.before):
            moved = self._moved(self.alternation.step, point, step)
            if moved is None:
                return None
            point, origin = moved, "neighbour"
            answer = self._bounded(f, point, excluded)
        config = self.domain.decode(point)
        answer = replace(answer, value=f.loss(answer.value), bound=f.loss(answer.bound))
        solution = as_solution(config, answer, 1.0, solve_began, LOCAL_SEARCH, "sampled loss")
        return Proposal(config, solution, origin, clock.seconds, state)

    # -- parts --------------------------------------------------------------------------------------------------

    def _bounded(self, f: WeightSample, point: Point, excluded: Sequence[Exclusion]) -> Answer:
        """Return the answer for levels at numerical values other than those that they were solved at, with a bound."""
        found = Minimum.unproven(self.domain, point, f.value(point.one_hot(self.program), point.units))
        limits, starts = self.settings.alternation.solver, [point.levels]
        form = f.form_at(point.units)
        there = self.domain.minimise(form, limits, units=point.units, excluded=excluded, starts=starts)
        if there.columns is None:
            return found.answer
        return replace(found.answer, bound=min(found.value, there.bound), prover=there.prover)

    def _inflation(self, posterior: LinearPosterior | SparsePosterior, t: int) -> float:
        """Return the factor on the posterior covariance of a sample."""
        if self.settings.preset == "paper":
            return max(1.0, 24.0 * posterior.n_features * math.log(t + 1) * math.log(1.0 / DELTA))
        return self.settings.inflation

    def _kept(self, posterior: LinearPosterior | SparsePosterior, f: WeightSample) -> tuple[WeightSample, float]:
        """Return the sample without irrelevant pairs (under a sparse prior), and a bound on the error."""
        if not isinstance(posterior, SparsePosterior):
            return f, 0.0
        f, error = thinned(f, self.settings.tolerance)
        if self.settings.preset == "paper":
            return f, error
        # the model may have more pairs than fit into the product columns of an acquisition step
        f, most = restricted(f, self._largest(half_ranges(f)))
        return f, error + most

    def _largest(self, sizes: Mapping[tuple[int, int], float]) -> list[tuple[int, int]]:
        """Return the largest pairs that fit into the product columns of an acquisition step."""
        largest = sorted((p for p in sizes if sizes[p] > 0.0), key=lambda p: (-sizes[p], p))
        return self.program.fitting(largest, self.settings.sizes.product_columns)

    def _starts(self, data: Data, rng: np.random.Generator) -> Points:
        """Return the best observations and new legal samples, half each."""
        best = data.best(max(1, self.settings.starts // 2))
        fresh = sampled(self.domain, self.settings.starts - len(best), rng)
        return Points.joined(best, self.domain.encode(fresh))
