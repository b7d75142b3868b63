"""The default optimizer, ``hybrid``: structured surrogate, acquisition by MIP and by legal moves together.

1. initial design: solver-made configurations that cover the values a legal configuration can take
2. hyperparameters of the structured kernel by MAP evidence, warm-started; predicted deviations grow while the incumbent
   does not improve, because a posterior that takes its hyperparameters for granted is too sure of itself
   What is pending counts at what the posterior expects of it (:mod:`mipcash.optimizers.pending`)
3. a pool: the best observations; in a purely discrete space, under limits, or where samples are asked for, minimisers of the
   posterior mean and of a few samples over the legal configurations, by alternation
4. the acquisition function, minimised from that pool by legal moves and L-BFGS-B
5. the MIP minimises the structured part of the posterior mean at the proposal's numbers: its minimiser joins the pool if its
   acquisition is better, and its bound is the proposal's certificate: by that part of the model no legal configuration at
   these numbers that was not proposed before has a lower loss than the bound. Predictions add a residual, which no MIP takes

Each of these has a share of the seconds of a request (``FIT`` and so on); what one leaves goes to those after it.

Where the best observations tie exactly, every second proposal leaves a choice that they share (:mod:`mipcash.optimizers.turns`).

The solution of a proposal holds that certificate: its value is the structured part of the proposal's predicted loss, and its
status is ``optimal`` where no other is lower, ``feasible`` where the acquisition prefers to explore.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mipcash.acquisition.acquisition import Acquisition
from mipcash.acquisition.alternating import AlternatingSettings, Alternation
from mipcash.acquisition.analytic import SampleAcquisition
from mipcash.acquisition.blocks import BlockMoves, blocks_of
from mipcash.acquisition.catalogue import ACQUISITIONS
from mipcash.acquisition.clock import Clock
from mipcash.acquisition.inputs import AcquisitionInputs, Drawn, Limited
from mipcash.acquisition.mixed_search import LocalSearchSettings, MixedSearch
from mipcash.acquisition.neighbourhood import Neighbourhood
from mipcash.acquisition.wide_search import WideSearch
from mipcash.backends.reductions.pruned_products import PrunedProducts
from mipcash.backends.reductions.reduction import reduced
from mipcash.backends.task import FEASIBLE, OPTIMAL, Answer, SolverSettings, Task, relative_gap
from mipcash.errors import SpaceError, at_least
from mipcash.optimizers.data import Data
from mipcash.optimizers.decoupled import chosen, in_parts, per_cost
from mipcash.optimizers.model_based import ModelBased, Step
from mipcash.optimizers.noise import by_posterior_mean, evident_noise
from mipcash.optimizers.optimizer import History, Limit, Observation, Proposal, Request
from mipcash.optimizers.outcome import LOSS
from mipcash.optimizers.pending import Awaited, beside_pending
from mipcash.optimizers.refining import Refining, calm_gain
from mipcash.optimizers.turns import boldness, left_out
from mipcash.program.forms import Indices, Vector
from mipcash.program.points import Point, Points
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Exclusion
from mipcash.space.solution import LOCAL_SEARCH, as_solution
from mipcash.surrogates.interactions import NameTuple, named, resolve
from mipcash.surrogates.protocols import MixedFunction, Surrogate
from mipcash.surrogates.structured.posterior import StructuredPosterior
from mipcash.surrogates.structured.structure import Structure
from mipcash.surrogates.structured.surrogate import StructuredSettings, StructuredSurrogate
from mipcash.surrogates.structured.training_tables import Tables

WIDE = (("walks", 80), ("survivors", 2), ("moved", 1), ("finalists", 1), ("rounds", 2), ("sweeps", 12), ("pairs", 200))
"""Limits of the search in wide spaces, at most."""
LEAN = LocalSearchSettings(walks=320, survivors=6, moved=2, finalists=1, rounds=3, pairs=400)
"""Limits of the search where no minimisers are in the pool: more walks find as good points for less
(docs/decisions/archive.md, 053)."""
UNCERTIFIED = "left out: the space is wide"
VALUES = ("structured part of the predicted loss", "sampled loss")
"""What the value of a proposal's solution is: by the posterior mean, or by the sample of Thompson sampling."""
FAILURE = ""
"""The name of the output that says whether an evaluation failed; no output of an objective is called so."""
EXCHANGES = 4
"""Exchanges of the search, at least, under limits and where rules tie numbers to levels: no level may move alone there."""
DRAWN = ("mes", "thompson")
"""Acquisitions that take the least value of a sample, or minimise it."""
JOINT = ("thompson",)
"""Acquisitions that take samples of the limited outputs besides."""
FIT, SEARCH, POLISH, CERTIFY = 0.35, 0.5, 0.75, 0.75
"""Shares of what is left of the time for 2., 3., 4. and 5. of the module's description."""


@dataclass(frozen=True)
class HybridSettings:
    """Settings of the default optimizer.

    Attributes:
        acquisition: ``log-ei``, ``mes`` (max-value entropy) or ``thompson`` (:mod:`mipcash.acquisition.catalogue`).
        n_initial: size of the initial design.
        samples: posterior samples whose minimisers join the pool, beside that of the posterior mean; ``mes`` knows the least loss
            by them, ``thompson`` proposes the lowest of their minimisers. None: one in purely discrete spaces, under limits and
            for those two; elsewhere none, and no minimiser of the mean.
        inflation: factor on the posterior covariance of a sample.
        refit: iterations of L-BFGS-B on the evidence per proposal, from where the last one ended.
        restart_every: fits after which one takes twice as long, starts from the prior's medians too, and looks
            at the length-scales of ordered groups.
        best: observations in the pool, and among which a plateau is looked for.
        warp: whether the worse half of the losses may be compressed (chosen by evidence).
        product_columns: product columns of the MIP of the posterior mean; weaker products are bounded, not modelled.
        boldest: factor that predicted deviations reach while the incumbent does not improve; 1: never more than predicted.
        interactions: pairs of parameters that may interact in the structured model, by name; None: all may.
        alternation: limits of 3. of the module's description.
        polish: limits of 4.; None: the usual ones, or LEAN where no minimisers are in the pool.
        refine: evaluations without a better one after which the incumbent is refined and other categories are visited, by turns
            (:mod:`mipcash.optimizers.refining`); 0: neither.
        min_gain: expected improvement, in standard deviations of the losses, that refining a stalled incumbent promises at least.
        cover: evaluations that the initial design may go on for until it has shown every algorithm of every module.
        blocks: whether moves of whole blocks join the pool (:mod:`mipcash.acquisition.blocks`).
        explore: of blocks, too: every so many proposals one module of the incumbent gets its least tried algorithm; 0: none.
        solver: limits of the MIP of 5.; its time limit holds for each MIP of the alternation as well, whatever is set there.
            What all parts may take together is the request's.
    """

    acquisition: str = "log-ei"
    n_initial: int = 6
    samples: int | None = None
    inflation: float = 1.0
    refit: int = 12
    restart_every: int = 6
    best: int = 5
    warp: bool = True
    boldest: float = 2.0
    interactions: NameTuple | None = None
    product_columns: int = 600
    refine: int = 5
    min_gain: float = 1e-4
    blocks: bool = True
    explore: int = 5
    cover: int = 24
    alternation: AlternatingSettings = field(
        default_factory=lambda: AlternatingSettings(rounds=2, tolerance=1e-3, restarts=4, continuous_starts=1)
    )
    local_search: LocalSearchSettings | None = None
    solver: SolverSettings = field(default_factory=lambda: SolverSettings(time_limit=2.0, gap=1e-6, node_limit=200))

    def __post_init__(self) -> None:
        if self.interactions is not None:
            object.__setattr__(self, "interactions", named(self.interactions))
        if self.acquisition not in ACQUISITIONS:
            raise SpaceError(f"there is no acquisition {self.acquisition!r} (there are {', '.join(ACQUISITIONS)})")
        if not self.boldest >= 1.0:
            raise SpaceError(f"boldest is a factor of at least 1, got {self.boldest}")
        if self.samples is not None:
            at_least(self, samples=int(self.acquisition in DRAWN))
        at_least(self, n_initial=1, best=1, refit=1, restart_every=1, inflation=0)
        at_least(self, cover=0, explore=0, refine=0, min_gain=0)

    @property
    def surrogate(self) -> StructuredSettings:
        """Settings of the surrogate."""
        return StructuredSettings(self.refit, self.restart_every, self.warp)


@dataclass(frozen=True)
class Target:
    """What a proposal minimises.

    Attributes:
        function: what the certificate is about: the posterior mean, or the sample of Thompson sampling.
        acquisition: what is minimised over the legal points.
        point: the best one found.
    """

    function: MixedFunction
    acquisition: Acquisition
    point: Point


class Hybrid(ModelBased):
    """See the module's description."""

    name: ClassVar[str] = "hybrid"

    @property
    def refined(self) -> bool:
        """Whether a stalled incumbent is refined: its gains are those of expected improvement."""
        return self.settings.acquisition == "log-ei"

    def learned(self, data: Data) -> Data:
        """The observations as the surrogates learn them. A subclass may put outcome constraints into the losses."""
        return data

    def acquisition_of(self, given: AcquisitionInputs, step: Step) -> Acquisition:
        """The acquisition function of a proposal. A subclass may have one of its own."""
        return ACQUISITIONS[self.settings.acquisition].make(given)

    def __init__(self, domain: Domain, settings: HybridSettings | None = None) -> None:
        super().__init__(domain)
        self.settings: HybridSettings = settings or HybridSettings()
        self.takes_limits = ACQUISITIONS[self.settings.acquisition].takes_limits
        self.blocks, self.cover = blocks_of(domain) if self.settings.blocks else (), self.settings.cover
        chosen = self.settings.interactions
        graph = None if chosen is None else resolve(domain.declaration, self.program, self.scale, chosen)
        structure = Structure.of(self.program, self.scale, graph)
        self.surrogate: Surrogate[Tables, StructuredPosterior] = StructuredSurrogate(structure, self.settings.surrogate)
        # the scale of a limit compresses already, and about the limit
        self.beside: Surrogate[Tables, StructuredPosterior] = StructuredSurrogate(
            structure, replace(self.settings.surrogate, warp=False)
        )

    @property
    def local_search(self) -> LocalSearchSettings:
        """Limits of the search; at most WIDE in a wide space."""
        given = self.settings.local_search or LocalSearchSettings()
        most = WIDE if self.domain.wide else ()
        return replace(given, **{name: min(getattr(given, name), limit) for name, limit in most})

    @property
    def alternation(self) -> Alternation:
        """Over the domain as it is, with its deadline."""
        settings, limit = self.settings.alternation, self.settings.solver.time_limit
        solver = replace(settings.solver, time_limit=min(settings.solver.time_limit, limit))
        return Alternation(self.domain, replace(settings, solver=solver))

    def propose(self, request: Request) -> Proposal:
        """See :meth:`mipcash.optimizers.optimizer.Optimizer.ask`."""
        return in_parts(super().propose, self.data, request, self.domain, self.settings.n_initial)

    def ranked(self, history: History, limits: Sequence[Limit] = ()) -> list[Observation]:
        """By posterior mean where evaluations are noisy (:mod:`mipcash.optimizers.noise`), else by loss."""
        usual, noise = super().ranked(history, limits), evident_noise(history)
        if not noise or len(usual) < 2:
            return usual
        data = self.data(history, limits)
        with self.threads.limit(limits=1):
            return by_posterior_mean(usual, self._loss_surrogate(data), data, noise)

    def _search(self, step: Step) -> Proposal | None:
        began, fitting = time.perf_counter(), self._for(FIT)
        awaited = partial(self.awaited, step.request) if step.request.pending else None
        fitted, state = fitting._fitted(self.learned(step.data), step.request.state, step.rng, awaited)
        step.clock.add("surrogate", began, fitting.domain.deadline)
        excluded, left = self._excluded(step), self._left(step)
        target = self._target(fitted, [*excluded, *left], step)
        if target is None and left:  # every legal configuration has that choice
            left, target = [], self._target(fitted, excluded, step)
        if target is None:
            return None
        began, origin, point = time.perf_counter(), self.settings.acquisition, target.point
        certifying = self._for(CERTIFY)
        known = step.data.border(self.settings.best).levels
        proven, bound, prover = certifying._solved(target.function, point, excluded, known)
        if proven is not None and all(e.admits(proven.levels) for e in left):
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
        value = VALUES[isinstance(target.acquisition, SampleAcquisition)]
        solution = as_solution(config, answer, 1.0, began, LOCAL_SEARCH, value)
        trace = {"certificate": UNCERTIFIED} if self.domain.wide else {}
        return self._chosen(Proposal(config, solution, origin, step.clock.seconds, state, trace=trace), fitted, step)

    def _chosen(self, proposal: Proposal, fitted: AcquisitionInputs, step: Step) -> Proposal:
        """With the outputs to evaluate, or those of a configuration that was begun. A subclass may choose by a rule of its own."""
        return chosen(proposal, fitted, step.data, step.request, self.domain)

    def _for(self, part: float) -> Hybrid:
        """The optimizer for a part of the proposal, with its share of what is left of the time."""
        return self.until(self.domain.deadline.share(part))

    # -- the models ---------------------------------------------------------------------------------------------

    def surrogate_for(self, output: str) -> Surrogate[Tables, StructuredPosterior]:
        """The surrogate of an output. A subclass may give one of its own to some, over the same tables."""
        return self.surrogate if output == LOSS else self.beside

    def _fitted(
        self, data: Data, state: Mapping[str, Any], rng: np.random.Generator, awaited: Awaited | None = None
    ) -> tuple[AcquisitionInputs, dict[str, Any]]:
        """A posterior per output that counts, and hyperparameters for the next fit.

        All outputs share what depends on the points alone. The state is that of the loss, with those of others under ``outputs``.
        """
        tables = self.surrogate.prepare(data.points)
        deadline, learns = self.domain.deadline, self.takes_limits and bool(len(data.known))
        rows = data.known if learns else np.arange(len(data.losses))
        part = tables if len(rows) == len(tables) else tables.part(rows)
        loss, after = self._loss_surrogate(data).fit(
            part, data.losses[rows], state, rng, data.noise(rows), deadline=deadline
        )
        loss = replace(loss, inflation=boldness(data, self.settings.boldest))
        before, others, limited = state.get("outputs", {}), dict[str, Any](), dict[str, Limited]()
        for name, (at, values, ends) in self.learned_beside(data).items():
            posterior, others[name] = self.surrogate_for(name).fit(
                tables.part(at), values, before.get(name, {}), rng, data.noise(at, name), deadline=deadline
            )
            low, high = posterior.scaled(np.array(ends)).tolist()
            limited[name] = Limited(posterior, low, high)
        best = float(np.min(loss.fitted[(data.feasible & data.whole)[rows]], initial=math.inf))
        if others:
            after["outputs"] = others
        found = AcquisitionInputs(loss, best, limited)
        return found if awaited is None else beside_pending(found, loss, awaited, rng), after

    def learned_beside(self, data: Data) -> dict[str, tuple[Indices, Vector, tuple[float, float]]]:
        """What is learned beside the loss, by name: rows, values there, and the ends that they are to lie between.

        Limited outputs on the scale of their limits; and whether an evaluation failed, as +-1 with a bound of 0.
        """
        learned = {}
        for output, scale in data.scales.items():
            rows, values = data.values(output)
            learned[output] = (rows, scale(values), scale.ends)
        rows = data.judged
        if self.takes_limits and data.failed.any() and not data.failed[rows].all():
            learned[FAILURE] = (rows, np.where(data.failed[rows], 1.0, -1.0), (-math.inf, 0.0))
        return learned

    def _loss_surrogate(self, data: Data) -> Surrogate[Tables, StructuredPosterior]:
        """That of the loss; under limits its warp leaves alone what the best that keeps them may be."""
        surrogate = self.surrogate_for(LOSS)
        kept = data.losses[data.known[data.feasible[data.known]]]
        if not data.limits or not len(kept) or not isinstance(surrogate, StructuredSurrogate):
            return surrogate
        return replace(surrogate, turn=float(np.median(kept)))

    # -- the acquisition step -----------------------------------------------------------------------------------

    def _target(self, fitted: AcquisitionInputs, excluded: Sequence[Exclusion], step: Step) -> Target | None:
        """What is minimised and the point found; None where nothing is left to propose."""
        settings, best, began = self.settings, step.data.border(self.settings.best), time.perf_counter()
        mean, count = fitted.loss.mean(), self._samples(fitted)
        samples = [fitted.loss.sample(step.rng, settings.inflation) for _ in range(count or 0)]
        searching, functions = self._for(SEARCH), [] if count is None else [mean, *samples]
        minima = [
            searching._for(1.0 / (len(functions) - k))._minimum(f, best, excluded, step.rng)
            for k, f in enumerate(functions)
        ]
        drawn = [Drawn(f, m, self._value(f, m)) for f, m in zip(samples, minima[1:], strict=True) if m is not None]
        step.clock.add("search", began, searching.domain.deadline)
        if settings.acquisition in DRAWN and not drawn:
            return None
        began = time.perf_counter()
        if settings.acquisition in JOINT:
            fitted = replace(fitted, joint=[self._joint(fitted, step.rng) for _ in drawn])
        acquisition = self.acquisition_of(replace(fitted, drawn=drawn), step)
        acquisition = per_cost(acquisition, fitted, step.request)
        if isinstance(acquisition, SampleAcquisition):  # it is quadratic in the binaries, and its minimiser is known
            least = min(drawn, key=lambda d: d.value)
            return Target(least.sample, acquisition, least.point)
        pool = [*(m for m in minima if m is not None), *best]
        polishing, limits = (
            self._for(POLISH),
            LEAN if count is None and settings.local_search is None else self.local_search,
        )
        if fitted.limited or self.program.tied:
            forbidden = not (fitted.limited or limits.exchanges)
            limits = replace(limits, exchanges=max(limits.exchanges, EXCHANGES), forbidden=forbidden)
        search = polishing._search_of(excluded, step.data.best(), limits)
        moves = BlockMoves(polishing.domain, self.blocks, search.near, step.data.best())
        refining = Refining(search, moves, step, settings.refine, settings.min_gain)
        calm = calm_gain(fitted, step) if self.refined else None
        found = refining.minimise(acquisition, self._batch(pool), calm)
        step.clock.add("local search", began, polishing.domain.deadline)
        return None if found is None else Target(mean, *found)

    def _samples(self, fitted: AcquisitionInputs) -> int | None:
        """How many samples are drawn and minimised, beside the posterior mean; None: not even that is."""
        settings, drawn = self.settings, self.settings.acquisition in DRAWN
        if self.domain.wide and not drawn:
            return 0
        if settings.samples is None and not drawn and len(self.scale) and not fitted.limited:
            return None
        return 1 if settings.samples is None else settings.samples

    def _joint(self, fitted: AcquisitionInputs, rng: np.random.Generator) -> dict[str, MixedFunction]:
        """A sample of every limited output."""
        return {name: l.posterior.sample(rng, self.settings.inflation) for name, l in fitted.limited.items()}

    def _search_of(self, excluded: Sequence[Exclusion], observed: Points, limits: LocalSearchSettings) -> MixedSearch:
        """The search over the legal points for one proposal; what is switched on is as in the best of some observations."""
        near = Neighbourhood.beside(self.domain, excluded, observed)
        kind = WideSearch if self.domain.wide else MixedSearch
        return kind(self.alternation.step, near, limits)

    def _left(self, step: Step) -> list[Exclusion]:
        """What is left out of this proposal by turns; see :mod:`mipcash.optimizers.turns`."""
        turns = self.settings.explore, self.settings.best
        return left_out(step, self.program, self.blocks, *turns, self.awaited(step.request))

    def _minimum(
        self, f: MixedFunction, best: Points, excluded: Sequence[Exclusion], rng: np.random.Generator
    ) -> Point | None:
        """A legal minimiser by alternation, with local search where it can tell what is legal; None: none left.

        In a wide space by moves from the best observation.
        """
        if self.domain.wide:
            alone = replace(self.local_search, walks=0, survivors=1, moved=1, finalists=1, rounds=1)
            return self._search_of(excluded, best, alone).minimise(SampleAcquisition(f), best[:1], rng)
        start, known = best[0], list(best.levels[:2])
        if not self.alternation.decides_levels(start):
            found = self.alternation.minimise(f, best[:1], excluded, rng, Clock(), known)
            return None if found is None else found.point
        point, value = self.alternation.descend(f, start, known[1:], excluded, rng, Clock())
        return point if math.isfinite(value) else None

    def _value(self, f: MixedFunction, point: Point) -> float:
        return f.value(point.one_hot(self.program), point.units)

    def _batch(self, points: Sequence[Point]) -> Points:
        return Points.of(points, len(self.program.groups), len(self.scale))

    # -- the certificate ----------------------------------------------------------------------------------------

    def _solved(
        self, f: MixedFunction, point: Point, excluded: Sequence[Exclusion], known: Indices
    ) -> tuple[Point | None, float, str]:
        """The MIP's minimiser of a function at a point's numbers, a bound below every legal configuration there, and its prover.

        The minimiser is None unless it is proven, as what a limit cut off differs between solvers. The bound is on the scale of the
        function; it is -inf in a wide space, where its form is not made.

        Args:
            known: other levels, (k, G), the best of which may be a start.
        """
        if self.domain.wide:
            return None, -math.inf, ""
        task = Task(self.program, self.program.folded(f.form_at(point.units)))
        pruned = reduced(task, [PrunedProducts(self.settings.product_columns)])
        answer = self.domain.minimise(
            pruned.task.form, self.settings.solver, units=point.units, excluded=excluded, starts=[point.levels, *known]
        )
        if answer.columns is None:
            return None, -math.inf, ""
        found = Point(self.program.levels_of(answer.columns), point.units) if answer.status == OPTIMAL else None
        return found, pruned.bound(answer.bound), answer.prover

    def _better(self, acquisition: Acquisition, *points: Point) -> Point:
        """The point of the least acquisition, the first of equals."""
        values = acquisition.values(self._batch(points))
        return points[int(np.argmin(values))]

    def _answer(self, f: MixedFunction, point: Point, bound: float, prover: str) -> Answer:
        """The certificate of the structured part (or of the sample), on the scale of the losses."""
        value = self._value(f, point)
        bound = min(bound, value)
        status = OPTIMAL if relative_gap(value, bound) <= self.settings.solver.gap else FEASIBLE
        below, by = (f.loss(bound), prover) if math.isfinite(bound) else (bound, "")
        return Answer(status, np.zeros(self.program.n), f.loss(value), below, 0.0, by)
