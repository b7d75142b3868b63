"""The default optimizer, ``hybrid``: structured surrogate, acquisition by MIP and by legal moves together.

1. initial design: solver-made configurations that cover the values a legal configuration can take
2. hyperparameters of the structured kernel by MAP evidence, warm-started; predicted deviations grow while the incumbent
   does not improve, because a posterior that takes its hyperparameters for granted is too sure of itself
3. a pool: minimisers of the posterior mean and of a few samples over the legal configurations, by alternation
4. the acquisition function, minimised from that pool by legal moves and L-BFGS-B
5. the MIP minimises the structured part of the posterior mean at the proposal's numbers: its minimiser joins the pool if its
   acquisition is better, and its bound is the proposal's certificate: by that part of the model no legal configuration at
   these numbers that was not proposed before has a lower loss than the bound. Predictions add a residual, which no MIP takes

Where the best observations tie exactly, every second proposal leaves a choice that they share (:mod:`mipcash.acquisition.plateau`).

The solution of a proposal holds that certificate: its value is the structured part of the proposal's predicted loss, and its
status is ``optimal`` where no other is lower, ``feasible`` where the acquisition prefers to explore.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from mipcash.acquisition.alternating import AlternatingSettings, Alternation, Clock
from mipcash.acquisition.analytic import (
    AnalyticAcquisition,
    ClosedForm,
    ConfidenceBound,
    LogEI,
    MaxValueEntropy,
    SampleAcquisition,
)
from mipcash.acquisition.base import Acquisition
from mipcash.acquisition.mixed_search import LevelsAndUnits, MixedSearch, PolishSettings
from mipcash.acquisition.moves import Neighbourhood
from mipcash.acquisition.plateau import shared_choice
from mipcash.backends.base import Answer, Backend, SolverSettings
from mipcash.backends.reductions.pruned_products import prune
from mipcash.backends.solution import FEASIBLE, OPTIMAL, relative_gap
from mipcash.errors import SpaceError, at_least
from mipcash.optimizers.base import Proposal
from mipcash.optimizers.model_based import Data, ModelBased, Step
from mipcash.program.forms import Indices, Vector
from mipcash.program.points import Points
from mipcash.space.exclusion import Exclusion
from mipcash.space.minimiser import as_solution
from mipcash.space.space import Space
from mipcash.surrogates.interactions import NameTuple, named, resolve
from mipcash.surrogates.structured.posterior import StructuredPosterior, Surface
from mipcash.surrogates.structured.structure import Structure
from mipcash.surrogates.structured.surrogate import StructuredSettings, StructuredSurrogate

PATIENCE, STALL_RATE = 5, 0.1
"""Observations without a better one after which predicted deviations grow, and by how much with each."""
NOISES = 5.0
"""Standard deviations of the noise by which a sampled minimum lies below the observations at least (Wang and Jegelka 2017)."""
ACQUISITIONS = ("log-ei", "ucb", "mes", "thompson")


@dataclass(frozen=True)
class HybridSettings:
    """Settings of the default optimizer.

    Attributes:
        acquisition: ``log-ei``, ``ucb`` (lower confidence bound), ``mes`` (max-value entropy) or ``thompson``.
        n_initial: size of the initial design.
        samples: posterior samples whose minimisers join the pool; ``mes`` knows the least loss by them, ``thompson`` proposes
            the lowest of their minimisers.
        inflation: factor on the posterior covariance of a sample.
        kappa: deviations of the confidence bound.
        refit: iterations of L-BFGS-B on the evidence per proposal, from where the last one ended.
        restart_every: fits after which one takes twice as long, starts from the prior's medians too, and looks
            at the length-scales of ordered groups.
        best: observations in the pool, and among which a plateau is looked for.
        warp: whether the worse half of the losses may be compressed (chosen by evidence).
        product_columns: product columns of the MIP of the posterior mean; weaker products are bounded, not modelled.
        boldest: factor that predicted deviations reach while the incumbent does not improve; 1: never more than predicted.
        interactions: pairs of parameters that may interact in the structured model, by name; None: all may.
        alternation, polish, solver: limits.
    """

    acquisition: str = "log-ei"
    n_initial: int = 6
    samples: int = 1
    inflation: float = 1.0
    kappa: float = 2.0
    refit: int = 12
    restart_every: int = 6
    best: int = 5
    warp: bool = True
    boldest: float = 2.0
    interactions: NameTuple | None = None
    product_columns: int = 600
    alternation: AlternatingSettings = field(
        default_factory=lambda: AlternatingSettings(rounds=2, tolerance=1e-3, restarts=4, continuous_starts=1)
    )
    polish: PolishSettings = field(default_factory=PolishSettings)
    solver: SolverSettings = field(default_factory=lambda: SolverSettings(time_limit=2.0, gap=1e-6, node_limit=200))

    def __post_init__(self) -> None:
        if self.interactions is not None:
            object.__setattr__(self, "interactions", named(self.interactions))
        if self.acquisition not in ACQUISITIONS:
            raise SpaceError(f"there is no acquisition {self.acquisition!r} (there are {', '.join(ACQUISITIONS)})")
        if not self.boldest >= 1.0:
            raise SpaceError(f"boldest is a factor of at least 1, got {self.boldest}")
        drawn = int(self.acquisition in ("mes", "thompson"))  # what they minimise, or take the least value from
        at_least(self, n_initial=1, samples=drawn, best=1, refit=1, restart_every=1, inflation=0, kappa=0)

    @property
    def surrogate(self) -> StructuredSettings:
        """Settings of the surrogate."""
        return StructuredSettings(self.refit, self.restart_every, self.warp)


@dataclass(frozen=True)
class Target:
    """What a proposal minimises.

    Attributes:
        surface: what the certificate is about: the posterior mean, or the sample of Thompson sampling.
        acquisition: what is minimised over the legal points.
        found: levels and unit values of the best point found.
    """

    surface: Surface
    acquisition: Acquisition
    found: LevelsAndUnits


class Hybrid(ModelBased):
    """See the module's description."""

    name: ClassVar[str] = "hybrid"

    def __init__(self, space: Space, backend: Backend, settings: HybridSettings | None = None) -> None:
        super().__init__(space, backend)
        self.settings: HybridSettings = settings or HybridSettings()
        chosen = self.settings.interactions
        graph = None if chosen is None else resolve(space, self.program, self.scale, chosen)
        structure = Structure.of(self.program, self.scale, graph)
        self.surrogate = StructuredSurrogate(structure, self.settings.surrogate)
        self.alternation = Alternation(space, self.oracle, self.scale, self.settings.alternation)

    def _search(self, step: Step) -> Proposal | None:
        began = time.perf_counter()
        posterior, state = self._posterior(step.data, step.request.state)
        posterior = replace(posterior, inflation=self._boldness(step.data))
        step.clock.add("surrogate", began)
        excluded = self._excluded(step)
        left = self._left(step)
        target = self._target(posterior, [*excluded, *left], step)
        if target is None and left:  # every legal configuration has that choice
            left, target = [], self._target(posterior, excluded, step)
        if target is None:
            return None
        solve_began, origin = time.perf_counter(), self.settings.acquisition
        levels, u = target.found
        proven, bound = self._solved(target.surface, levels, u, excluded)
        if proven is not None and all(e.admits(proven) for e in left):
            levels = self._better(target, np.array([levels, proven]), u)
        if self.space.repeats(self._configuration(levels, u), step.before):
            moved = self._moved(self.alternation.step, (levels, u), step)
            if moved is None:
                return None
            u, origin = moved, "neighbour"
            _, bound = self._solved(target.surface, levels, u, excluded)
        step.clock.add("mip", solve_began)
        config = self._configuration(levels, u)
        answer = self._answer(target.surface, levels, u, bound)
        solution = as_solution(config, answer, 1.0, solve_began, self.backend.name)
        return Proposal(config, solution, origin, step.clock.seconds, state)

    # -- the model ----------------------------------------------------------------------------------------------

    def _posterior(self, data: Data, state: Mapping[str, Any]) -> tuple[StructuredPosterior, dict[str, Any]]:
        prepared = self.surrogate.prepare(Points(data.levels, data.u))
        return self.surrogate.fit(prepared, data.losses, state)

    def _boldness(self, data: Data) -> float:
        """Factor on predicted deviations: 1 while losses fall, growing with the observations since the incumbent."""
        return min(self.settings.boldest, 1.0 + STALL_RATE * max(0, data.stalled() - PATIENCE))

    def _left(self, step: Step) -> list[Exclusion]:
        """Every second time on a plateau: a choice that is left out of this proposal."""
        if len(step.request.history) % 2:
            return []
        best = step.data.order[: self.settings.best]
        left = shared_choice(self.program, step.data.levels[best], step.data.losses[best], step.rng)
        return [] if left is None else [left]

    # -- the acquisition step -----------------------------------------------------------------------------------

    def _target(self, posterior: StructuredPosterior, excluded: Sequence[Exclusion], step: Step) -> Target | None:
        """What is minimised and the point found; None where nothing is left to propose."""
        settings, rng, began = self.settings, step.rng, time.perf_counter()
        best = step.data.best(settings.best)
        surfaces = [posterior.mean(), *(posterior.sample(rng, settings.inflation) for _ in range(settings.samples))]
        minima = [self._minimum(f, best, excluded, rng) for f in surfaces]
        step.clock.add("search", began)
        pool = [m for m in minima if m is not None]
        if settings.acquisition == "thompson":
            drawn = [(f, m) for f, m in zip(surfaces[1:], minima[1:], strict=True) if m is not None]
            least = min(drawn, key=lambda d: d[0].value(self.program.one_hot(d[1][0]), d[1][1]), default=None)
            return None if least is None else Target(least[0], SampleAcquisition(least[0]), least[1])
        began = time.perf_counter()
        near = Neighbourhood(self.space, self.oracle, self.scale, excluded, self._memory(step.data.best()))
        acquisition = AnalyticAcquisition(posterior, self._closed_form(posterior, surfaces, minima))
        found = MixedSearch(self.alternation.step, near, settings.polish).minimise(acquisition, pool + best, rng)
        step.clock.add("polish", began)
        return None if found is None else Target(surfaces[0], acquisition, found)

    def _memory(self, observed: Sequence[LevelsAndUnits]) -> Indices:
        """The level of every group in the best observation where it is on; the first level otherwise."""
        memory = np.zeros(len(self.program.groups), dtype=np.int64)
        off = self.program.off_levels
        known = np.zeros(len(memory), dtype=bool)
        for levels, _ in observed:
            take = ~known & (levels != off)
            memory[take] = levels[take]
            known |= take
        return memory

    def _minimum(
        self, f: Surface, best: Sequence[LevelsAndUnits], excluded: Sequence[Exclusion], rng: np.random.Generator
    ) -> LevelsAndUnits | None:
        """A legal minimiser of a surface by alternation, with local search where it can tell what is legal; None: none left."""
        known = [s for s, _ in best[:2]]
        if not self.oracle.separable or self.oracle.search(self.scale.natural(best[0][1])) is None:
            found = self.alternation.minimise(f, best[:1], excluded, rng, Clock(), known)
            return None if found is None else (found.point.levels, found.units)
        levels, u, value = self.alternation.descend(f, known, best[0][1], excluded, rng, Clock())
        return (levels, u) if math.isfinite(value) else None

    def _closed_form(
        self, posterior: StructuredPosterior, surfaces: Sequence[Surface], minima: Sequence[LevelsAndUnits | None]
    ) -> ClosedForm:
        if self.settings.acquisition == "ucb":
            return ConfidenceBound(self.settings.kappa)
        if self.settings.acquisition == "mes":
            # surfaces are samples without the residual: their least values may lie above what was observed, the minimum cannot
            known = float(posterior.fitted.min()) - NOISES * math.sqrt(posterior.kernel.noise)
            least = [
                min(known, f.value(self.program.one_hot(m[0]), m[1]))
                for f, m in zip(surfaces[1:], minima[1:], strict=True)
                if m is not None
            ]
            return MaxValueEntropy(np.array(least or [known]))
        return LogEI(float(posterior.fitted.min()))

    # -- the certificate ----------------------------------------------------------------------------------------

    def _solved(
        self, surface: Surface, levels: Indices, u: Vector, excluded: Sequence[Exclusion]
    ) -> tuple[Indices | None, float]:
        """The MIP's minimiser of a surface at the numbers u, and a bound below every legal configuration there.

        Returns:
            levels: None unless they are proven optimal, as what a limit cut off differs between solvers.
            bound: on the scale of the surface.
        """
        pruned = prune(self.program.folded(surface.form_at(u)), self.program, self.settings.product_columns)
        point = self.oracle.minimise(
            pruned.form, self.settings.solver, numbers=self.scale.natural(u), excluded=excluded, starts=[levels]
        )
        if point is None:
            return None, -math.inf
        return point.levels if point.answer.status == OPTIMAL else None, point.answer.bound + pruned.below

    def _better(self, target: Target, both: Indices, u: Vector) -> Indices:
        """The levels of the least acquisition at the same numbers, the first of equals: (B, G) -> (G,)."""
        points = Points(both, np.repeat(u[None], len(both), axis=0))
        best: Indices = both[int(np.argmin(target.acquisition.values(points)))]
        return best

    def _answer(self, surface: Surface, levels: Indices, u: Vector, bound: float) -> Answer:
        """The certificate of the structured part (or of the sample), on the scale of the losses."""
        value = surface.value(self.program.one_hot(levels), u)
        bound = min(bound, value)
        status = OPTIMAL if relative_gap(value, bound) <= self.settings.solver.gap else FEASIBLE
        return Answer(status, np.zeros(self.program.n), surface.loss(value), surface.loss(bound), 0.0)
