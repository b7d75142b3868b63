"""The default optimizer, ``hybrid``: structured surrogate, acquisition by MIP and by legal moves together.

1. initial design: solver-made configurations that cover the values a legal configuration can take
2. hyperparameters of the structured kernel by MAP evidence, warm-started
3. a pool: minimisers of the posterior mean and of a few samples over the legal configurations, by alternation
4. the acquisition function, polished from that pool by legal moves and L-BFGS-B
5. the MIP minimises the posterior mean at the proposal's numbers: it joins the pool if its acquisition is better, and its
   bound is the proposal's certificate: no legal configuration at these numbers has a lower predicted loss than the bound

The solution of a proposal holds that certificate: its value is the predicted loss of the proposal, and its status is
``optimal`` where the proposal is also the best predicted one, ``feasible`` where the acquisition prefers to explore.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from mipcash.acquisition.alternating import AlternatingSettings, Alternation, Clock
from mipcash.acquisition.analytic import Acquisition, ConfidenceBound, LogEI, MaxValueEntropy
from mipcash.acquisition.neighbourhood import Neighbourhood
from mipcash.acquisition.polish import Criterion, LevelsAndUnits, Polish, PolishSettings
from mipcash.acquisition.pruning import prune
from mipcash.backends.base import Answer, Backend, SolverSettings
from mipcash.backends.solution import FEASIBLE, OPTIMAL, relative_gap
from mipcash.errors import SpaceError, SpaceExhaustedError
from mipcash.features.interactions import NameTuple, named, resolve
from mipcash.features.numbers import NumberScale
from mipcash.optimizers.base import DONE, FAILED, PENDING, History, Observation, Optimizer, Proposal
from mipcash.oracle.core import Apart
from mipcash.oracle.oracle import Exclusion, as_solution
from mipcash.oracle.space import Space
from mipcash.program.forms import Indices, Vector
from mipcash.surrogates.fitting import Evidence, fit
from mipcash.surrogates.models import imputed
from mipcash.surrogates.posterior import StructuredPosterior, Surface
from mipcash.surrogates.structured import Kernel, Points, Structure
from mipcash.surrogates.warping import STRENGTHS, Warp

EVERY = 80
"""Observations per fit of the hyperparameters: with twice as many, every second proposal fits."""
ACQUISITIONS = ("log-ei", "ucb", "mes", "thompson")


@dataclass(frozen=True)
class HybridSettings:
    """Settings of the default optimizer.

    Attributes:
        acquisition: ``log-ei``, ``ucb`` (lower confidence bound), ``mes`` (max-value entropy) or ``thompson``.
        n_initial: size of the initial design.
        samples: posterior samples whose minimisers join the pool.
        inflation: factor on the posterior covariance of a sample.
        kappa: deviations of the confidence bound.
        refit: iterations of L-BFGS-B on the evidence per proposal, from where the last one ended.
        restart_every: proposals after which the fit takes twice as long, starts from the prior's medians too, and looks
            at the length-scales of ordered groups.
        best: observations in the pool.
        warp: whether the worse half of the losses may be compressed (chosen by evidence).
        product_columns: product columns of the MIP of the posterior mean; weaker products are bounded, not modelled.
        interactions: pairs of parameters that may interact in the structured model, by name; None: all may.
        alternation, polish, solver: limits.
    """

    acquisition: str = "log-ei"
    n_initial: int = 10
    samples: int = 1
    inflation: float = 1.0
    kappa: float = 2.0
    refit: int = 12
    restart_every: int = 6
    best: int = 5
    warp: bool = True
    interactions: NameTuple | None = None
    product_columns: int = 600
    alternation: AlternatingSettings = field(
        default_factory=lambda: AlternatingSettings(rounds=2, restarts=4, continuous_starts=1)
    )
    polish: PolishSettings = field(default_factory=PolishSettings)
    solver: SolverSettings = field(default_factory=lambda: SolverSettings(time_limit=2.0, gap=1e-6, node_limit=200))

    def __post_init__(self) -> None:
        if self.interactions is not None:
            object.__setattr__(self, "interactions", named(self.interactions))
        if self.acquisition not in ACQUISITIONS:
            raise SpaceError(f"there is no acquisition {self.acquisition!r} (there are {', '.join(ACQUISITIONS)})")
        if self.n_initial < 1 or self.best < 1 or self.samples < 0:
            raise SpaceError(
                f"n_initial and best must be at least 1 and samples at least 0, got {self.n_initial}, {self.best}, {self.samples}"
            )


class Hybrid(Optimizer):
    """See the module's description."""

    name: ClassVar[str] = "hybrid"

    def __init__(self, space: Space, backend: Backend, settings: HybridSettings | None = None) -> None:
        self.space, self.backend = space, backend
        self.settings = settings or HybridSettings()
        self.oracle = space.oracle(backend)
        self.program = self.oracle.program
        self.scale = NumberScale.of(space, self.program)
        chosen = self.settings.interactions
        graph = None if chosen is None else resolve(space, self.program, self.scale, chosen)
        self.structure = Structure.of(self.program, self.scale, graph)
        self.alternation = Alternation(space, self.oracle, self.scale, self.settings.alternation)

    def ask(
        self, history: History, rng: np.random.Generator, state: Mapping[str, Any], apart: Apart | None = None
    ) -> Proposal:
        """See :meth:`mipcash.optimizers.base.Optimizer.ask`."""
        # matrices of a few hundred rows gain nothing from more threads, and one thread gives the same sums everywhere
        with threadpool_limits(1):
            return self._ask(history, rng, state, apart)

    def _ask(
        self, history: History, rng: np.random.Generator, state: Mapping[str, Any], apart: Apart | None
    ) -> Proposal:
        settled = [o for o in history if o.status != PENDING]
        if len(history) < self.settings.n_initial or not any(o.status == DONE for o in settled):
            return self._initial(history, rng, state, apart)
        clock, solve_began = Clock(), time.perf_counter()
        began = time.perf_counter()
        new_state, posterior = self._posterior(settled, state)
        clock.add("surrogate", began)
        excluded = self.space.exclusions((o.config for o in history), apart)
        began = time.perf_counter()
        observed = self._observed(settled)
        best = observed[: self.settings.best]
        surfaces = [
            posterior.mean(),
            *(posterior.sample(rng, self.settings.inflation) for _ in range(self.settings.samples)),
        ]
        minima = [self._minimum(f, best, excluded, rng) for f in surfaces]
        clock.add("search", began)
        began = time.perf_counter()
        near = Neighbourhood(self.space, self.oracle, self.scale, excluded, self._memory(observed))
        criterion = Criterion(posterior, self._acquisition(posterior, surfaces, minima))
        polish = Polish(self.alternation, near, self.settings.polish)
        pool = [m for m in minima if m is not None]
        if self.settings.acquisition == "thompson":
            found = pool[-1] if pool else None
        else:
            found = polish.minimise(criterion, pool + best, rng)
        clock.add("polish", began)
        if found is None:
            return self._initial(history, rng, new_state, apart)
        began = time.perf_counter()
        thompson = self.settings.acquisition == "thompson"
        levels, u = found
        levels, answer = self._certified(
            surfaces[-1 if thompson else 0], None if thompson else criterion, found, excluded
        )
        clock.add("mip", began)
        config = self._configuration(levels, u)
        before = [o.config for o in history]
        if self.space.repeats(config, before):
            return self._elsewhere((levels, u), clock, history, rng, new_state, apart)
        solution = as_solution(config, answer, 1.0, solve_began, self.backend.name)
        return Proposal(config, solution, self.settings.acquisition, clock.seconds, new_state)

    # -- parts --------------------------------------------------------------------------------------------------

    def _initial(
        self, history: History, rng: np.random.Generator, state: Mapping[str, Any], apart: Apart | None
    ) -> Proposal:
        began = time.perf_counter()
        ((config, solution),) = self.space.design(1, rng, self.backend, [o.config for o in history], apart)
        return Proposal(config, solution, "initial design", {"mip": time.perf_counter() - began}, dict(state))

    def _posterior(
        self, settled: Sequence[Observation], state: Mapping[str, Any]
    ) -> tuple[dict[str, Any], StructuredPosterior]:
        configs = [o.config for o in settled]
        z = self.program.one_hot(np.array([self.program.encode(c) for c in configs]).reshape(len(configs), -1))
        losses = np.array([np.nan if o.loss is None else o.loss for o in settled])
        failed = np.array([k for k, o in enumerate(settled) if o.status == FAILED], dtype=np.int64)
        losses = imputed(losses, failed)
        x = Points.of(self.structure, z.astype(float), self.scale.units(configs))
        asked = int(state.get("fits", 0))
        if asked % self.settings.restart_every == 0 and self._due(asked // self.settings.restart_every, len(losses)):
            theta, warp = self._refit(x, losses, state)
        elif not self._due(asked, len(losses)):
            theta, warp = np.array(state["theta"]), Warp.of(losses, float(state["strength"]))
        else:
            warp, before = Warp.of(losses, float(state["strength"])), np.array(state["theta"])
            theta, _ = fit(Evidence.of(self.structure, x, warp(losses), held=before), [before], self.settings.refit)
        posterior = StructuredPosterior.fit(Kernel(self.structure, theta), x, losses, warp)
        return {"theta": theta.tolist(), "strength": warp.strength, "fits": asked + 1}, posterior

    @staticmethod
    def _due(asked: int, t: int) -> bool:
        """Whether a fit is due: at every proposal for the first EVERY observations, then less and less often."""
        return asked % max(1, t // EVERY) == 0

    def _refit(self, x: Points, losses: Vector, state: Mapping[str, Any]) -> tuple[Vector, Warp]:
        """Hyperparameters from several starts, and the warp of the highest evidence."""
        median = self.structure.prior[0]
        start = np.array(state["theta"]) if "theta" in state else median
        found = []
        for strength in STRENGTHS if self.settings.warp else STRENGTHS[:1]:
            warp = Warp.of(losses, strength)
            theta, value = fit(Evidence.of(self.structure, x, warp(losses), held=start), [start], self.settings.refit)
            found.append((value - warp.log_jacobian(losses), theta, warp))
        _, theta, warp = min(found, key=lambda f: f[0])
        theta, _ = fit(Evidence.of(self.structure, x, warp(losses)), [theta, median], self.settings.refit)
        return theta, warp

    def _observed(self, settled: Sequence[Observation]) -> list[LevelsAndUnits]:
        """Done observations, best first."""
        done = sorted(
            (o for o in settled if o.status == DONE), key=lambda o: o.loss if o.loss is not None else math.inf
        )
        configs = [o.config for o in done]
        units = self.scale.units(configs)
        return [(self.program.encode(c), u) for c, u in zip(configs, units, strict=True)]

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

    def _acquisition(
        self, posterior: StructuredPosterior, surfaces: Sequence[Surface], minima: Sequence[LevelsAndUnits | None]
    ) -> Acquisition:
        mean, _ = posterior.predict(posterior.x)
        if self.settings.acquisition == "ucb":
            return ConfidenceBound(self.settings.kappa)
        if self.settings.acquisition == "mes":
            least = [
                f.value(self.program.one_hot(m[0]), m[1])
                for f, m in zip(surfaces[1:], minima[1:], strict=True)
                if m is not None
            ]
            return MaxValueEntropy(np.array(least or [mean.min()]))
        return LogEI(float(mean.min()))

    def _certified(
        self, mean: Surface, criterion: Criterion | None, found: LevelsAndUnits, excluded: Sequence[Exclusion]
    ) -> tuple[Indices, Answer]:
        """The better of the proposal and the MIP's minimiser of a surface at its numbers, with the MIP's bound.

        Args:
            mean: the surface, the posterior mean or (Thompson sampling) the sample.
            criterion: what is better; None: the surface itself.
        """
        levels, u = found
        form = self.program.folded(mean.form_at(u))
        pruned = prune(form, self.program, self.settings.product_columns)
        point = self.oracle.minimise(
            pruned.form, self.settings.solver, numbers=self.scale.natural(u), excluded=excluded, starts=[levels]
        )
        bound = -math.inf if point is None else point.answer.bound + pruned.below
        if point is not None and point.answer.status == OPTIMAL:  # what a limit cut off differs between solvers
            both = np.array([levels, point.levels])
            points = Points.of(self.structure, self.program.one_hot(both).astype(float), np.array([u, u]))
            values = mean.values(points) if criterion is None else criterion.values(points.z, points.u)
            levels = both[int(np.argmin(values))]
        value = mean.value(self.program.one_hot(levels), u)
        bound = min(bound, value)
        status = OPTIMAL if relative_gap(value, bound) <= self.settings.solver.gap else FEASIBLE
        base = np.zeros(self.program.n)
        return levels, Answer(status, base, mean.loss(value), mean.loss(bound), 0.0)

    def _configuration(self, levels: Indices, u: Vector) -> dict[str, Any]:
        natural = self.scale.natural(u)
        return self.space.configuration(self.oracle.unproven(levels, natural, math.nan), natural)

    def _elsewhere(
        self,
        found: LevelsAndUnits,
        clock: Clock,
        history: History,
        rng: np.random.Generator,
        state: Mapping[str, Any],
        apart: Apart | None,
    ) -> Proposal:
        """Other numbers beside the same levels, where the proposal repeats an earlier one; else a point of the design."""
        levels, u = found
        before = [o.config for o in history]
        for _ in range(10):
            moved = self.alternation.wander(levels, u, rng)
            config = self._configuration(levels, moved)
            if not self.space.repeats(config, before):
                return Proposal(config, None, "neighbour", clock.seconds, dict(state))
        proposal = self._initial(history, rng, state, apart)
        if self.space.repeats(proposal.config, before):
            raise SpaceExhaustedError(
                f"no configuration of space {self.space.name!r} is left that was not proposed before"
            )
        return replace(proposal, state=dict(state))
