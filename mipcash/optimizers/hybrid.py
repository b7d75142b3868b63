"""The default optimizer, ``hybrid``: a structured surrogate, and an acquisition function minimised over the legal points.

1. Initial design: solver-made configurations that cover the values a legal configuration can take. It goes on while its best loss
   is that of most observations (``Data.on_plateau``).
2. Fit: hyperparameters of the structured kernel by MAP evidence, warm-started. Pending evaluations are imputed with their posterior
   means (``mipcash.optimizers.pending``).
3. Pool: the best observations. In a purely discrete space, where rules leave few moves, or if samples are asked for, also
   minimisers of the posterior mean and of a few samples over the legal configurations, by alternation.
4. Search: the acquisition function is minimised from that pool by legal moves and L-BFGS-B.
5. Certificate: a MIP minimises the structured part of the posterior mean at the numerical values of the proposal. Its minimiser
   replaces the proposal if its acquisition is better. Its bound certifies that no legal configuration at these values that was
   not proposed before has a lower structured part. Predictions add a residual, which no MIP represents.

Each part has a share of the seconds of a request (``FIT`` and so on). What one part leaves goes to the next parts.

The solution of a proposal holds the certificate. Its value is the structured part of the predicted loss. Its status is ``optimal``
if no other configuration has a lower one, and ``feasible`` if the acquisition function prefers to explore.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mipcash.acquisition.acquisition import Acquisition, SumAcquisition, compared
from mipcash.acquisition.alternating import AlternatingSettings, Alternation
from mipcash.acquisition.catalogue import ACQUISITIONS, AcquisitionInputs, Drawn, Screened, rough
from mipcash.acquisition.constrained import Limited
from mipcash.acquisition.mixed_search import LocalSearchSettings, MixedSearch
from mipcash.acquisition.neighbourhood import Neighbourhood
from mipcash.acquisition.wide_search import WideSearch
from mipcash.backends.reductions.pruned_products import PrunedProducts
from mipcash.backends.reductions.reduction import Composed, reduced
from mipcash.backends.task import FEASIBLE, OPTIMAL, Answer, SolverSettings, Task, relative_gap
from mipcash.deadline import Clock
from mipcash.errors import check_settings
from mipcash.optimizers.data import Data
from mipcash.optimizers.decoupled import chosen, in_parts, per_cost
from mipcash.optimizers.in_time import solver_made
from mipcash.optimizers.model_based import ModelBased, Step, covering_again
from mipcash.optimizers.noise import by_posterior_mean, measured_noise
from mipcash.optimizers.optimizer import History, Limit, Observation, Proposal, Request
from mipcash.optimizers.outcome import LOSS
from mipcash.optimizers.pending import Awaited, beside_pending
from mipcash.optimizers.prior import BETA, WeightedPrior
from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.points import Point, Points
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Exclusion
from mipcash.space.solution import LOCAL_SEARCH, as_solution
from mipcash.surrogates.protocols import MixedFunction, Surrogate
from mipcash.surrogates.structured.functions.surface import Surface
from mipcash.surrogates.structured.posterior import StructuredPosterior
from mipcash.surrogates.structured.structure import Structure
from mipcash.surrogates.structured.surrogate import StructuredSurrogate
from mipcash.surrogates.structured.training_tables import Tables

WIDE = (("walks", 80), ("survivors", 2), ("moved", 1), ("finalists", 1), ("rounds", 2), ("sweeps", 12), ("pairs", 200))
"""Upper limits of the search in wide spaces."""
LEAN = LocalSearchSettings(walks=320, survivors=6, moved=2, finalists=1, rounds=3, pairs=400)
"""Limits of the search if no minimisers are in the pool: more walks find equally good points at a lower cost
(docs/decisions/archive.md, 053)."""
UNCERTIFIED = "left out: the space is wide"
VALUES = ("structured part of the predicted loss", "sampled loss")
"""Meaning of the value of a proposal's solution: under the posterior mean, and under the sample of Thompson sampling."""
FAILURE = ""
"""Name of the output that indicates failures; no output of an objective has this name."""
PLATEAU = "plateau"
"""Origin of a configuration of the design that is proposed where the best loss is shared by many observations."""
EXCHANGES = 4
"""Minimum number of exchanges under outcome constraints and if rules tie numbers to levels, so that no level can move alone."""
FEW = 8
"""Number of moves over the levels from which on a mixed space is searched by moves alone."""
IMPROVEMENT, FADED = "log-ei", 5.0
"""The acquisition function that is the negative logarithm of an expected improvement, and its value from which on this improvement
counts as small: exp(-5) standard deviations of the losses (docs/decisions/076-algorithms-are-proposed-again.md)."""
SAMPLED = "thompson"
"""The acquisition function that needs posterior samples, of the loss and of the constrained outputs."""
FIT, POOL, SEARCH, CERTIFY = 0.35, 0.5, 0.75, 0.75
"""Shares of the remaining time for steps 2 to 5 of the module's description."""


@dataclass(frozen=True)
class HybridSettings:
    """Settings of the default optimizer, ``hybrid``.

    Args:
        acquisition: ``log-ei`` or ``thompson`` (``mipcash.acquisition.catalogue``).
        n_initial: size of the initial design.
        samples: number of posterior samples whose minimisers join the pool, beside the minimiser of the posterior mean.
            ``thompson`` proposes the lowest of their minimisers. None: one sample in purely discrete spaces and for ``thompson``;
            otherwise no minimiser at all.
        refit: iterations of L-BFGS-B on the evidence per proposal, from the last hyperparameters.
        restart_every: every so many fits, one takes twice as many iterations, also starts from the prior's medians, and fits the
            length-scales of ordered groups.
        best: number of observations in the pool.
        warp: allow a compression of the worse half of the losses, chosen by evidence.
        product_columns: maximum number of product columns in the MIP of the posterior mean; weaker products are bounded instead.
        alternation: limits of step 3 of the module's description.
        local_search: limits of step 4; None: the defaults, or LEAN if no minimisers are in the pool.
        cover: maximum size of the initial design, which goes on until it has every algorithm of every module. Later, when hardly
            any improvement is expected, an algorithm that was proposed least may have its turn
            (``mipcash.optimizers.model_based.covering_again``). 0: neither.
        solver: limits of the MIP of step 5. Its time limit also holds for each MIP of the alternation. The request limits the time
            of all parts together.

    Raises:
        SpaceError: a setting is below its least value, or there is no such acquisition.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 99)
        >>> method = mc.Method("hybrid", settings=mc.settings.HybridSettings(n_initial=3))
        >>> run = mc.minimize(lambda c: (c["a"] - 40) ** 2, space, 4, optimizer=method, progress=False)
        >>> [trial.origin for trial in run.history].count("initial design")
        3
    """

    acquisition: str = IMPROVEMENT
    n_initial: int = 6
    samples: int | None = None
    refit: int = 12
    restart_every: int = 6
    best: int = 5
    warp: bool = True
    product_columns: int = 600
    cover: int = 24
    alternation: AlternatingSettings = field(
        default_factory=lambda: AlternatingSettings(rounds=2, tolerance=1e-3, restarts=4, continuous_starts=1)
    )
    local_search: LocalSearchSettings | None = None
    solver: SolverSettings = field(default_factory=lambda: SolverSettings(time_limit=2.0, gap=1e-6, node_limit=200))

    def __post_init__(self) -> None:
        check_settings(self, choices={"acquisition": ACQUISITIONS}, samples=int(self.acquisition == SAMPLED))
        check_settings(self, n_initial=1, best=1, refit=1, restart_every=1, cover=0, product_columns=0)


@dataclass(frozen=True)
class Target:
    """Result of the search of one proposal.

    Attributes:
        function: the function of the certificate: the posterior mean, or the sample of Thompson sampling.
        acquisition: the acquisition function.
        point: its best legal point found.
    """

    function: MixedFunction
    acquisition: Acquisition
    point: Point


class Hybrid(ModelBased):
    """The default optimizer; see the module's description."""

    name: ClassVar[str] = "hybrid"
    takes_limits = True

    def learned(self, data: Data) -> Data:
        """Return the training data of the surrogates. A subclass may add penalties for violations to the losses."""
        return data

    def acquisition_of(self, given: AcquisitionInputs, step: Step) -> Acquisition:
        """Return the acquisition function of a proposal. A subclass may return another one."""
        return ACQUISITIONS[self.settings.acquisition](given)

    def __init__(self, domain: Domain, settings: HybridSettings | None = None) -> None:
        super().__init__(domain)
        self.settings: HybridSettings = settings or HybridSettings()
        self.cover = self.settings.cover
        structure = Structure(self.program, self.scale)
        self.surrogate: Surrogate[Tables, StructuredPosterior] = StructuredSurrogate(
            structure, self.settings.refit, self.settings.restart_every, self.settings.warp
        )
        # no warp: outputs with an outcome constraint are compressed by ``LimitScale``
        self.beside: Surrogate[Tables, StructuredPosterior] = replace(self.surrogate, warped=False)

    @property
    def local_search(self) -> LocalSearchSettings:
        """Limits of the local search; at most WIDE in a wide space."""
        given = self.settings.local_search or LocalSearchSettings()
        most = WIDE if self.domain.wide else ()
        return replace(given, **{name: min(getattr(given, name), limit) for name, limit in most})

    @property
    def alternation(self) -> Alternation:
        """Alternation over the domain with its deadline."""
        settings = self.settings.alternation
        limit = min(settings.solver.time_limit, self.settings.solver.time_limit)
        return Alternation(self.domain, replace(settings, solver=replace(settings.solver, time_limit=limit)))

    def propose(self, request: Request) -> Proposal:
        """See ``mipcash.optimizers.optimizer.Optimizer.ask``."""
        return in_parts(super().propose, self.data, request, self.domain, self.settings.n_initial)

    def ranked(self, history: History, limits: Sequence[Limit] = ()) -> list[Observation]:
        """Return the observations ranked by posterior mean if noise was measured (``mipcash.optimizers.noise``), else by loss."""
        usual, noise = super().ranked(history, limits), measured_noise(history)
        if not noise or len(usual) < 2:
            return usual
        data = self.data(history, limits)
        with self.threads.limit(limits=1):
            return by_posterior_mean(usual, self._loss_surrogate(data), data, noise)

    def _search(self, step: Step) -> Proposal | None:
        if step.data.on_plateau(self.settings.n_initial):
            return solver_made(self.domain, PLATEAU, step.request)
        began, fitting = time.perf_counter(), self._for(FIT)
        awaited = partial(self.awaited, step.request) if step.request.pending else None
        fitted, state = fitting._fitted(self.learned(step.data), step.request.state, step.rng, awaited)
        step.clock.add("surrogate", began, fitting.domain.deadline)
        excluded = self._excluded(step)
        target = self._target(fitted, excluded, step)
        if target is None:
            return None
        if self.cover and self._fades(fitted, target.point) and (again := covering_again(self.domain, step.request)):
            return replace(again, state=state)
        began, origin, point = time.perf_counter(), self.settings.acquisition, target.point
        certifying = self._for(CERTIFY)
        known = step.data.best_and_near_feasible(self.settings.best).levels
        proven, bound, prover = certifying._solved(target.function, point, excluded, known)
        if proven is not None:
            point = self._better(target.acquisition, point, proven)
        config = self.domain.decode(point)
        if self.domain.repeats(config, step.before):
            moved = self._moved(self.alternation.step, point, step)
            if moved is None:
                return None
            point, origin = moved, "neighbour"
            config = self.domain.decode(point)
            _, bound, prover = certifying._solved(target.function, point, excluded, known)
        step.clock.add("mip", began, certifying.domain.deadline)
        answer = self._answer(target.function, point, bound, prover)
        value = VALUES[isinstance(target.acquisition, Surface)]
        solution = as_solution(config, answer, 1.0, began, LOCAL_SEARCH, value)
        trace = {"certificate": UNCERTIFIED} if self.domain.wide else {}
        return self._chosen(Proposal(config, solution, origin, step.clock.seconds, state, trace=trace), fitted, step)

    def _chosen(self, proposal: Proposal, fitted: AcquisitionInputs, step: Step) -> Proposal:
        """Return the proposal with the outputs to evaluate, or a partially evaluated one. A subclass may have another rule."""
        return chosen(proposal, fitted, step.data, step.request, self.domain)

    def _for(self, part: float) -> Hybrid:
        """Return a copy of the optimizer for one part of the proposal, limited to a share of the remaining time."""
        return self.until(self.domain.deadline.share(part))

    def _fades(self, fitted: AcquisitionInputs, point: Point) -> bool:
        """Return True if hardly any improvement is expected at a point."""
        return float(ACQUISITIONS[IMPROVEMENT](fitted).values(self._batch([point]))[0]) > FADED

    # -- the models ---------------------------------------------------------------------------------------------

    def surrogate_for(self, output: str) -> Surrogate[Tables, StructuredPosterior]:
        """Return the surrogate of an output. A subclass may return another one over the same tables."""
        return self.surrogate if output == LOSS else self.beside

    def _fitted(
        self, data: Data, state: Mapping[str, Any], rng: np.random.Generator, awaited: Awaited | None = None
    ) -> tuple[AcquisitionInputs, dict[str, Any]]:
        """Return the posterior of every modelled output, and the hyperparameters for the next fit.

        All outputs share the tables that depend on the points only. The state has the hyperparameters of the loss, and those of
        the other outputs under ``outputs``.
        """
        tables = self.surrogate.prepare(data.points)
        deadline, learns = self.domain.deadline, bool(len(data.known))
        rows = data.known if learns else np.arange(len(data.losses))
        part = tables if len(rows) == len(tables) else tables.part(rows)
        loss, after = self._loss_surrogate(data).fit(
            part, data.losses[rows], state, rng, data.noise(rows), deadline=deadline
        )
        before, others, limited = state.get("outputs", {}), dict[str, Any](), dict[str, Limited]()
        for name, (at, values, ends) in self.learned_beside(data).items():
            posterior, others[name] = self.surrogate_for(name).fit(
                tables.part(at), values, before.get(name, {}), rng, data.noise(at, name), deadline=deadline
            )
            low, high = posterior.scaled(np.array(ends)).tolist()
            limited[name] = Limited(posterior, low, high)
        best = float(np.min(loss.fitted[(data.feasible & data.complete)[rows]], initial=math.inf))
        if not limited and math.isinf(best):  # no constrained output was observed
            best = float(np.min(loss.fitted))
        if others:
            after["outputs"] = others
        found = AcquisitionInputs(loss, best, limited)
        return found if awaited is None else beside_pending(found, loss, awaited, rng), after

    def learned_beside(self, data: Data) -> dict[str, tuple[Indices, Vector, tuple[float, float]]]:
        """Return training data of the constrained outputs by name: rows, values there, and bounds of feasible values.

        Values are on the scale of their constraint. Failures are an output with the values 1 and -1 and the bound 0.
        """
        learned = {}
        for output, scale in data.scales.items():
            rows, values = data.values(output)
            learned[output] = (rows, scale(values), scale.ends)
        rows = data.judged
        if data.failed.any() and not data.failed[rows].all():
            learned[FAILURE] = (rows, np.where(data.failed[rows], 1.0, -1.0), (-math.inf, 0.0))
        return learned

    def _loss_surrogate(self, data: Data) -> Surrogate[Tables, StructuredPosterior]:
        """Return the surrogate of the loss; its warp does not compress losses up to the median of feasible observations."""
        surrogate = self.surrogate_for(LOSS)
        kept = data.losses[data.known[data.feasible[data.known]]]
        if not data.limits or not len(kept) or not isinstance(surrogate, StructuredSurrogate):
            return surrogate
        return replace(surrogate, least=float(np.median(kept)))

    # -- the acquisition step -----------------------------------------------------------------------------------

    def _target(self, fitted: AcquisitionInputs, excluded: Sequence[Exclusion], step: Step) -> Target | None:
        """Return the minimised functions and the point found; None if nothing is left to propose."""
        settings, best, began = self.settings, step.data.best_and_near_feasible(self.settings.best), time.perf_counter()
        mean, count = fitted.loss.mean(), self._samples
        stuck = self._stuck(best.levels[0], excluded, step.rng)
        count = 1 if stuck and count is None else count
        samples = [fitted.loss.sample(step.rng) for _ in range(count or 0)]
        searching, functions = self._for(POOL), [] if count is None else [mean, *samples]
        minima = [
            searching._for(1.0 / (len(functions) - k))._minimum(f, best, excluded, step.rng, stuck)
            for k, f in enumerate(functions)
        ]
        drawn = [Drawn(f, m, self._value(f, m)) for f, m in zip(samples, minima[1:], strict=True) if m is not None]
        step.clock.add("search", began, searching.domain.deadline)
        if settings.acquisition == SAMPLED and not drawn:
            return None
        began = time.perf_counter()
        if settings.acquisition == SAMPLED:
            fitted = replace(fitted, joint=[self._joint(fitted, step.rng) for _ in drawn])
        acquisition = self._full_acquisition(replace(fitted, drawn=drawn), step)
        if isinstance(acquisition, Surface):  # quadratic in the binaries, with a known minimiser
            least = min(drawn, key=lambda d: d.value)
            return Target(least.sample, acquisition, least.point)
        if not (drawn or self.domain.wide) and (less := rough(fitted)) is not None:
            acquisition = Screened(acquisition, self._full_acquisition(less, step))
        pool = [*(m for m in minima if m is not None), *best]
        local = self._for(SEARCH)
        limits = LEAN if count is None and settings.local_search is None else self.local_search
        if fitted.limited or self.program.tied:
            forbidden = not (fitted.limited or limits.exchanges)
            limits = replace(limits, exchanges=max(limits.exchanges, EXCHANGES), forbidden=forbidden)
        search = local._search_of(excluded, step.data.best(), limits)
        found = search.minimise(acquisition, self._batch(pool), step.rng)
        if found is None and not stuck:  # the legal moves lead to evaluated configurations only
            found = self._minimum_by_mip(mean, best, excluded)
        step.clock.add("local search", began, local.domain.deadline)
        return None if found is None else Target(mean, acquisition, found)

    def _full_acquisition(self, given: AcquisitionInputs, step: Step) -> Acquisition:
        """Return the acquisition; one that is the negative logarithm of a gain, per expected cost and guided by declared priors."""
        acquisition = self.acquisition_of(given, step)
        if self.settings.acquisition == SAMPLED:
            return acquisition
        acquisition = per_cost(acquisition, given, step.request)
        if self.prior is None:
            return acquisition
        return SumAcquisition(acquisition, WeightedPrior(self.prior, BETA / max(1, len(step.data.losses))))

    @property
    def _samples(self) -> int | None:
        """The number of samples to minimise beside the posterior mean; None: do not minimise the mean either."""
        settings, drawn = self.settings, self.settings.acquisition == SAMPLED
        if self.domain.wide and not drawn:
            return 0
        if settings.samples is None and not drawn and len(self.scale):
            return None
        return 1 if settings.samples is None else settings.samples

    def _joint(self, fitted: AcquisitionInputs, rng: np.random.Generator) -> dict[str, Surface]:
        """Return a sample of every constrained output."""
        return {name: l.posterior.sample(rng) for name, l in fitted.limited.items()}

    def _search_of(self, excluded: Sequence[Exclusion], observed: Points, limits: LocalSearchSettings) -> MixedSearch:
        """Return the local search of one proposal; newly active parameters take their values from the best observations."""
        near = Neighbourhood.beside(self.domain, excluded, observed)
        kind = WideSearch if self.domain.wide else MixedSearch
        return kind(self.alternation.step, near, limits)

    def _minimum(
        self, f: MixedFunction, best: Points, excluded: Sequence[Exclusion], rng: np.random.Generator, stuck: bool
    ) -> Point | None:
        """Return a legal minimiser by alternation; None if none is found.

        Local search replaces the MIP of the alternation if legality can be checked without a solver and the best observation is not
        ``stuck``: no move from it is legal. In a wide space, minimise by moves from the best observation.
        """
        if stuck:
            return self._minimum_by_mip(f, best, excluded)
        if self.domain.wide:
            alone = replace(self.local_search, walks=0, survivors=1, moved=1, finalists=1, rounds=1)
            return self._search_of(excluded, best, alone).minimise(f, best[:1], rng)
        start, known = best[0], list(best.levels[:2])
        if not self.alternation.decides_levels(start):
            found = self.alternation.proven(f, start, known, excluded, rng, Clock())
            return None if found is None else found.point
        point, value = self.alternation.descend(f, start, known[1:], excluded, rng, Clock())
        return point if math.isfinite(value) else None

    def _stuck(self, levels: Indices, excluded: Sequence[Exclusion], rng: np.random.Generator) -> bool:
        """Return True if local search can leave levels (G,) by no move, or in a mixed space by fewer than FEW."""
        few = FEW if self._samples is None else 1
        return Neighbourhood(self.domain, excluded, levels).stuck(levels, few, rng.spawn(1)[0])

    def _minimum_by_mip(self, f: MixedFunction, best: Points, excluded: Sequence[Exclusion]) -> Point | None:
        """Return the MIP's minimiser of a function at the numerical values of the best observation; None if it finds none.

        In a wide space, the function is replaced by the sum of its changes by single moves, legal or not, from that observation.
        """
        start, program = best[0], self.program
        if not self.domain.wide:
            _, answer = self._pruned(f, start, excluded, best.levels)
        else:
            tried = np.repeat(start.levels[None], program.n_z, axis=0)
            tried[np.arange(program.n_z), program.group_of] = np.arange(program.n_z) - program.starts[program.group_of]
            tried = self.domain.free_legality.effective(tried)
            linear = np.zeros(program.n)
            linear[: program.n_z] = f.values(Points(tried, np.repeat(start.units[None], len(tried), axis=0)))
            form = replace(QuadraticForm.zero(program.n), linear=linear)
            answer = self.domain.minimise(
                form, self.settings.solver, units=start.units, excluded=excluded, starts=list(best.levels)
            )
        return None if answer.columns is None else Point(program.levels_of(answer.columns), start.units)

    def _value(self, f: MixedFunction, point: Point) -> float:
        return f.value(point.one_hot(self.program), point.units)

    def _batch(self, points: Sequence[Point]) -> Points:
        return Points.of(points, len(self.program.groups), len(self.scale))

    # -- the certificate ----------------------------------------------------------------------------------------

    def _solved(
        self, f: MixedFunction, point: Point, excluded: Sequence[Exclusion], known: Indices
    ) -> tuple[Point | None, float, str]:
        """Return the MIP's minimiser of a function at a point's numerical values, a lower bound over all levels, and the solver.

        The minimiser is None unless it is proven, because a result cut off by a limit differs between solvers. The bound is on the
        scale of the function. In a wide space no form is made, and the bound is -inf.

        Args:
            known: levels, (k, G), of which the best is a start.
        """
        if self.domain.wide:
            return None, -math.inf, ""
        pruned, answer = self._pruned(f, point, excluded, known)
        if answer.columns is None:
            return None, -math.inf, ""
        found = Point(self.program.levels_of(answer.columns), point.units) if answer.status == OPTIMAL else None
        return found, pruned.bound(answer.bound), answer.prover

    def _pruned(
        self, f: MixedFunction, point: Point, excluded: Sequence[Exclusion], known: Indices
    ) -> tuple[Composed, Answer]:
        """Return the MIP of a function at a point's numerical values with its weaker products bounded, and the solver's answer."""
        task = Task(self.program, self.program.folded(f.form_at(point.units)))
        pruned, starts = reduced(task, [PrunedProducts(self.settings.product_columns)]), [point.levels, *known]
        solver = self.settings.solver
        return pruned, self.domain.minimise(
            pruned.task.form, solver, units=point.units, excluded=excluded, starts=starts
        )

    def _better(self, acquisition: Acquisition, *points: Point) -> Point:
        """Return the point with the lowest acquisition value, the first one if several have it."""
        values = compared(acquisition, self._batch(points))
        return points[int(np.argmin(values))]

    def _answer(self, f: MixedFunction, point: Point, bound: float, prover: str) -> Answer:
        """Return the certificate of the structured part (or of the sample), on the scale of the losses."""
        value = self._value(f, point)
        bound = min(bound, value)
        status = OPTIMAL if relative_gap(value, bound) <= self.settings.solver.gap else FEASIBLE
        below, by = (f.loss(bound), prover) if math.isfinite(bound) else (bound, "")
        return Answer(status, np.zeros(self.program.n), f.loss(value), below, 0.0, by)
