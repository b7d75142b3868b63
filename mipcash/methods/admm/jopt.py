"""JOPT(BO), the joint optimization that the ADMM papers compare with (liu2020, appendix 14), over rounded points.

Notation
    x (B, d)    a configuration in [0, 1]^d: one column per ordered parameter (its level), one-hot columns per category, one
                column per member of an ordering (its position), the unit values of the numbers; the middle where inactive

1. one Gaussian process over all columns (:mod:`mipcash.methods.admm.matern`), with a length-scale per column
   pending trials count at their means: deviations fall beside them (the kriging believer of ginsbourger2010), and a proposal
   keeps a distance to them where it can
2. expected improvement at what points round to (:mod:`mipcash.methods.admm.rounded_search`), over the lowest posterior mean
3. a rounded point that violates a rule is moved to the nearest legal configuration
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mipcash.errors import SpaceError
from mipcash.methods.admm.matern import MaternProcess
from mipcash.methods.admm.rounded_search import RoundedSearch
from mipcash.modelling.domains import Configuration
from mipcash.optimizers.base import Proposal
from mipcash.optimizers.model_based import ModelBased, Step
from mipcash.optimizers.pending import EXACT
from mipcash.optimizers.unit_cube import UnitCube
from mipcash.program.forms import Vector
from mipcash.program.points import Point
from mipcash.space.domain import Domain

NEAR = 0.02
"""Least distance of a proposal to a pending trial, the largest difference of a column, where there is another candidate."""
ITERATIONS = 12
"""Of L-BFGS-B on the likelihood; the last digits of a length-scale change no proposal."""
BEST = 6
"""Observations whose neighbours are looked at."""
THETA = "theta"
"""In the optimizer's state: the hyperparameters of the last fit, from which the next begins."""
FIT, SEARCH = 0.35, 0.7
"""Shares of what is left of the time for the fit and for the acquisition; the rest is for rounding."""


@dataclass(frozen=True)
class JoptSettings:
    """Settings of the joint optimization.

    Attributes:
        n_initial: size of the initial design.
        samples: random points from which the starts are chosen.
        starts: runs of L-BFGS-B.
        iterations: of each run.
    """

    n_initial: int = 10
    samples: int = 600
    starts: int = 3
    iterations: int = 30

    def __post_init__(self) -> None:
        if self.n_initial < 1 or self.starts < 1 or self.samples < self.starts:
            raise SpaceError(
                "n_initial and starts must be at least 1 and samples at least starts, "
                f"got {self.n_initial}, {self.starts} and {self.samples}"
            )


class Jopt(ModelBased):
    """See the module's description."""

    name: ClassVar[str] = "jopt"
    takes_limits = True

    def __init__(self, domain: Domain, settings: JoptSettings | None = None) -> None:
        super().__init__(domain)
        self.settings: JoptSettings = settings or JoptSettings()
        self.cube = UnitCube(self.program, len(self.scale))

    def _search(self, step: Step) -> Proposal | None:
        began = time.perf_counter()
        x, fitted = self.cube.encode(step.data.points), step.request.state.get(THETA)
        start = None if fitted is None else np.array(fitted, dtype=float)
        process = MaternProcess.fit(
            x,
            step.data.merits,
            noise=step.data.noise(),
            start=start,
            iterations=ITERATIONS,
            deadline=self.domain.deadline.share(FIT),
        )
        awaited = self.cube.encode(self.awaited(step.request))
        means = process.predict(np.concatenate([x[step.data.legal & step.data.whole], awaited]))[0]
        step.clock.add("surrogate", began)
        began = time.perf_counter()
        s = self.settings
        search = RoundedSearch(self.domain, self.cube, s.samples, BEST, s.starts, s.iterations)
        ranked = x[step.data.order] if len(step.data.order) else x
        candidates = search.candidates(
            process.given(awaited, EXACT * process.fitted_noise),
            float(means.min()),
            ranked,
            step.rng,
            self.domain.deadline.share(SEARCH),
        )
        step.clock.add("acquisition", began)
        began = time.perf_counter()
        found = first_new(self.domain, self.cube, [*candidates], awaited, step)
        step.clock.add("rounding", began, self.domain.deadline)
        state = {**step.request.state, THETA: [round(t, 6) for t in process.theta.tolist()]}
        return None if found is None else Proposal(found, None, self.name, step.clock.seconds, state)


def first_new(
    domain: Domain, cube: UnitCube, candidates: Sequence[Vector], awaited: Vector, step: Step, repaired: bool = True
) -> Configuration | None:
    """Return the configuration of the first candidate, (d,), that is new once rounded; None: there is none.

    One near a pending trial, rows of ``awaited`` (b, d), is returned only where no other is new, or time is up.

    Args:
        repaired: whether a point that violates a rule is moved to the nearest legal configuration, or returned as it is.
    """
    before, distances, tried = step.before, domain.exclusions([], step.request.apart), set()
    spare: Configuration | None = None
    for x in candidates:
        if spare is not None and domain.deadline.passed:
            break
        latent = cube.decode(x)
        levels = domain.free_legality.effective(latent.levels[None])[0]
        config = domain.raw(Point(levels, latent.units))
        if repr(config) in tried:
            continue
        tried.add(repr(config))
        if repaired:
            config = domain.nearest(config)
            levels = domain.program.encode(config)
        if domain.repeats(config, before) or not all(e.admits(levels) for e in distances):
            continue
        if not near(cube.encode(domain.encode([config]))[0], awaited):
            return config
        spare = spare or config
    return spare


def near(x: Vector, awaited: Vector) -> bool:
    """Return whether one x, (d,), is beside any of the rows (b, d)."""
    return bool((np.abs(awaited - x).max(axis=1, initial=0.0) < NEAR).any())
