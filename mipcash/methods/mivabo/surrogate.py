"""The linear surrogate of one output (MiVaBO): features, prior variances (fitted or the paper's), and a prior."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mipcash.deadline import NEVER, Deadline
from mipcash.errors import SpaceError, at_least
from mipcash.methods.mivabo import evidence
from mipcash.methods.mivabo.blocks import FeatureSizes, MapMaker, evidence_blocks, known_kind, paper_blocks
from mipcash.methods.mivabo.posterior import LinearPosterior
from mipcash.methods.mivabo.sparse.mixture import PRIORS, SparseSettings
from mipcash.methods.mivabo.sparse.posterior import SparsePosterior
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.program.program import BinaryProgram
from mipcash.program.unit_scale import UnitScale
from mipcash.surrogates.covariance import standardisation
from mipcash.surrogates.interactions import Interactions
from mipcash.surrogates.protocols import Noise, State

WIDER = 4
"""Factor on the product columns under a sparse prior, which drops irrelevant pairs itself."""


@dataclass(frozen=True)
class LinearSettings:
    """Settings of a linear surrogate.

    Attributes:
        preset: ``evidence`` (one-hot, variances fitted) or ``paper`` (bits; alpha, beta and sigma as given).
        alpha, beta, sigma: prior precision, noise precision and bandwidth of the paper's preset (values standardised).
        sizes: numbers of features.
        refit: iterations of L-BFGS-B on the evidence per fit.
        prior: ``gaussian``, ``laplace`` or ``horseshoe``, on the weights of pairs and of mixed products.
        sparse: inference of a sparse prior; its ``prior`` is overridden by the one above. None: by pair, s2 inferred
            (preset ``evidence``), or by feature, s2 = 1 / beta (preset ``paper``, Laplace by the paper's variational bound).
        features: phi_c: ``fourier`` or ``quadrature``.
    """

    preset: str = "evidence"
    alpha: float = 1.0
    beta: float = 1.0
    sigma: float = 1.0
    sizes: FeatureSizes = field(default_factory=FeatureSizes)
    refit: int = 25
    prior: str = "gaussian"
    sparse: SparseSettings | None = None
    features: str = "fourier"

    def __post_init__(self) -> None:
        if self.preset not in ("evidence", "paper"):
            raise SpaceError(f"MiVaBO has the presets 'evidence' and 'paper', not {self.preset!r}")
        at_least(self, refit=1, alpha=0, beta=0, sigma=0)
        if not 0.0 < min(self.alpha, self.beta, self.sigma) <= max(self.alpha, self.beta, self.sigma) < math.inf:
            raise SpaceError(
                f"alpha, beta and sigma must be finite and above 0, got {self.alpha}, {self.beta} and {self.sigma}"
            )
        if self.prior not in ("gaussian", *PRIORS):
            raise SpaceError(f"MiVaBO has the priors 'gaussian', 'laplace' and 'horseshoe', not {self.prior!r}")
        known_kind(self.features)
        if self.prior != "gaussian":
            _ = self.inference  # refused here

    @property
    def inference(self) -> SparseSettings:
        """Settings of the sparse prior."""
        if self.sparse is not None:
            return replace(self.sparse, prior=self.prior)
        if self.preset == "paper":
            inference = "variational" if self.prior == "laplace" else "gibbs"
            return SparseSettings(self.prior, inference, by="feature", noise_sd=0.0)
        return SparseSettings(self.prior)


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
    settings: LinearSettings = field(default_factory=LinearSettings)
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
        maker, after = MapMaker(settings.features, settings.sizes), dict(state)
        if settings.preset == "paper":
            fitted_noise = 1.0 / settings.beta
            blocks = paper_blocks(self.program, self.scale, settings.alpha, settings.sigma, rng, maker, declared)
        else:
            grams = evidence.Grams.of(self.program, self.scale, points.one_hot(self.program), points.units, declared)
            starts = [np.array(state["theta"])] if "theta" in state else []
            theta, _ = evidence.fit(grams, (values - shift) / width, starts, settings.refit, v, deadline)
            after = {"theta": theta.tolist()}
            fitted_noise = float(np.exp(theta[grams.layout.slices["noise"]][0]))
            columns = settings.sizes.product_columns * (1 if settings.prior == "gaussian" else WIDER)
            blocks = evidence_blocks(self.program, self.scale, columns, theta, grams.layout, rng, maker, declared)
        posterior = LinearPosterior.fit(blocks, self.program, points, values, fitted_noise, v)
        if settings.prior == "gaussian":
            return posterior, after
        return SparsePosterior.fit(posterior, settings.inference, rng, deadline), after
