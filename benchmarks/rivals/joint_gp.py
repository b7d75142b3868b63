"""A Gaussian process over all parameters, relaxed and rounded, as in GPyOpt (daxberger2019, Sec. 5, "GPyOpt").

Notation:
    x (B, d)   configurations in [0, 1]^d: a column per ordered parameter (its level) and per unit-scaled variable.
               Categories have one-hot columns, and orderings have a column per member (its position).
               Columns of inactive parameters are set to the middle.
    mu, sd     posterior of the Gaussian process at x, on standardised losses.

1. Fit a Gaussian process (scikit-learn) with a Matern-5/2 kernel and noise, hyperparameters by maximum likelihood.
   Pending trials count at their means. Deviations shrink near them (the kriging believer of ginsbourger2010), and a
   proposal keeps a minimum distance to them if it can.
2. Maximise the expected improvement over the lowest posterior mean at these points over [0, 1]^d. L-BFGS-B starts from
   the best of many random points. The relaxation knows neither categories nor conditions nor rules.
3. Round every column to the nearest level and leave inactive parameters out.
4. Move a rounded point that violates a rule to the nearest legal configuration, or propose it unchanged.

The relaxation is unsound: its maximiser is not the configuration that is evaluated. The optimizer ``jopt`` maximises
the improvement at rounded points instead.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from mipcash.acquisition.analytic import LogEI
from mipcash.deadline import NEVER, Deadline
from mipcash.errors import SpaceError, check_settings
from mipcash.methods.admm.jopt import first_new, near
from mipcash.optimizers.model_based import ModelBased, Step
from mipcash.optimizers.optimizer import Proposal
from mipcash.optimizers.pending import EXACT
from mipcash.optimizers.unit_cube import UnitCube
from mipcash.program.forms import Vector
from mipcash.space.domain import Domain
from mipcash.surrogates.covariance import standardisation
from mipcash.surrogates.maximum import steady
from mipcash.surrogates.protocols import Noise

LEAST_NOISE = 1e-6
"""Least noise of pending points on standardised losses, since a configuration may be pending twice."""
STEP = 1e-5
"""Step of finite differences on [0, 1]; all d + 1 points are predicted at once."""

FIT_ITERATIONS = 12
"""L-BFGS-B iterations on the likelihood. The last digits of a length-scale change no proposal."""
FIT, SEARCH = 0.35, 0.7
"""Shares of the remaining time for the fit and for the acquisition. The rest is for rounding."""


SAMPLES, STARTS, ITERATIONS = 500, 5, 40
"""Random points from which the starts are chosen, runs of L-BFGS-B, and iterations of each."""
ATTEMPTS = 20
"""Random points that are rounded if every optimum rounds to an earlier proposal."""
JITTER = 0.01
"""Minimum improvement that counts (GPyOpt's exploration)."""


@dataclass(frozen=True)
class JointGPSettings:
    """Settings of the joint Gaussian process.

    Attributes:
        n_initial: size of the initial design.
        illegal: treatment of a rounded point that violates a rule: ``nearest`` moves it to the nearest legal
            configuration; ``send`` proposes it unchanged, for comparisons that count violations.
    """

    n_initial: int = 10
    illegal: str = "nearest"

    def __post_init__(self) -> None:
        check_settings(self, n_initial=1)
        if self.illegal not in ("nearest", "send"):
            raise SpaceError(f"illegal must be 'nearest' or 'send', got {self.illegal!r}")


class GaussianProcess:
    """scikit-learn's regressor on standardised losses.

    Args:
        noise: variances of the losses in addition to the white noise, a number or one per loss.
    """

    def __init__(self, x: Vector, losses: Vector, deadline: Deadline = NEVER, noise: Noise = 0.0) -> None:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        kernel = ConstantKernel(1.0, (1e-3, 1e3)) * Matern(1.0, (5e-2, 1e2), nu=2.5) + WhiteKernel(1e-2, (1e-6, 1.0))
        shift, scale = standardisation(losses)
        alpha = 1e-8 + np.asarray(noise) / scale**2 if np.any(noise) else 1e-8
        self.model: Any = GaussianProcessRegressor(kernel, alpha=alpha, optimizer=partial(_maximum, deadline))
        with warnings.catch_warnings():  # hyperparameters at a bound, or a fit that stopped early, are usable
            warnings.simplefilter("ignore")
            self.model.fit(x, (losses - shift) / scale)
        self.kernel = self.model.kernel_.k1  # the white noise belongs to the observations

    def given(self, x: Vector) -> GaussianProcess:
        """Return the process with pending rows (b, d) at their means, with a thousandth of the noise: mu stays, sd falls.

        With the full noise the same point would be proposed again, since the uncertainty would hardly fall.
        """
        if not len(x):
            return self
        from sklearn.gaussian_process import GaussianProcessRegressor

        made = copy(self)
        noise = self.model.kernel_.k2.noise_level
        beside = max((1.0 + EXACT) * noise, LEAST_NOISE) - noise  # without the noise of the kernel
        observed = np.broadcast_to(self.model.alpha, len(self.model.X_train_))
        alpha = np.concatenate([observed, np.full(len(x), beside)])
        made.model = GaussianProcessRegressor(self.model.kernel_, alpha=alpha, optimizer=None)
        y = np.concatenate([self.model.y_train_, self(x)[0]])
        made.model.fit(np.concatenate([self.model.X_train_, x]), y)
        made.kernel = made.model.kernel_.k1
        return made

    def __call__(self, x: Vector) -> tuple[Vector, Vector]:
        """Return mu and sd: (B, d) -> (B,), (B,). The checks of ``model.predict`` would take most of the time."""
        cross = self.kernel(x, self.model.X_train_)
        variance = self.kernel.diag(x) - np.sum(
            solve_triangular(self.model.L_, cross.T, lower=True, check_finite=False) ** 2, axis=0
        )
        return cross @ self.model.alpha_, np.sqrt(np.maximum(variance, 1e-12))


def _maximum(deadline: Deadline, objective: Callable[..., Any], start: Vector, bounds: Vector) -> tuple[Vector, float]:
    """Return hyperparameters of (nearly) maximal likelihood, in the form required by scikit-learn."""
    timed = steady(objective, deadline)
    found = minimize(timed, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": FIT_ITERATIONS})
    return found.x, float(found.fun)


class JointGP(ModelBased):
    """Optimizer described in the module's docstring."""

    name: ClassVar[str] = "joint-gp"
    takes_limits = True

    def __init__(self, domain: Domain, settings: JointGPSettings | None = None) -> None:
        super().__init__(domain)
        self.settings: JointGPSettings = settings or JointGPSettings()
        self.cube = UnitCube(self.program, len(self.scale))

    def _search(self, step: Step) -> Proposal | None:
        began = time.perf_counter()
        x = self.cube.encode(step.data.points)
        gp = GaussianProcess(x, step.data.merits, self.domain.deadline.share(FIT), step.data.noise())
        awaited = self.cube.encode(self.awaited(step.request))
        incumbents = np.concatenate([x[step.data.legal & step.data.complete], awaited])
        log_ei = LogEI(float(np.min(gp(incumbents)[0])) - JITTER)
        gp = gp.given(awaited)

        def loss(points: Vector) -> Vector:
            return -np.exp(-log_ei(*gp(points)))  # as in GPyOpt, not its log: flat if there is no improvement

        step.clock.add("surrogate", began)
        began = time.perf_counter()
        candidates = self._candidates(loss, x, awaited, step.rng)
        step.clock.add("acquisition", began)
        began = time.perf_counter()
        repaired = self.settings.illegal == "nearest"
        found = first_new(self.domain, self.cube, candidates, awaited, step, repaired)
        step.clock.add("rounding", began, self.domain.deadline)
        return None if found is None else Proposal(found, None, self.name, step.clock.seconds)

    def _candidates(self, loss: Callable[[Vector], Vector], x: Vector, awaited: Vector, rng: np.random.Generator) -> list[Vector]:
        """Return local optima of the acquisition over [0, 1]^d, best first, followed by the best random points."""
        random, deadline = rng.random((SAMPLES, x.shape[1])), self.domain.deadline.share(SEARCH)
        pool = np.concatenate([random, x])
        if len(awaited):  # observed points are no candidates; their best would be close to the pending batch
            pool = np.array([p for p in random if not near(p, awaited)] or random)
        pool = pool[np.argsort(loss(pool), kind="stable")]

        def objective(point: Vector) -> tuple[float, Vector]:
            step = np.where(point + STEP > 1.0, -STEP, STEP)
            values = loss(np.concatenate([point[None], point + np.diag(step)]))
            return float(values[0]), (values[1:] - values[0]) / step

        ends = [
            minimize(
                steady(objective, deadline),
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, 1.0)] * len(start),
                options={"maxiter": ITERATIONS},
            )
            for start in pool[:STARTS]
        ]
        optima = [np.clip(e.x, 0.0, 1.0) for e in sorted(ends, key=lambda e: float(e.fun))]
        return [*optima, *pool[:ATTEMPTS]]
