"""Constrained max-value entropy search (Perrone et al. 2019): the evaluation that tells most of the constrained minimum.

1. models, design and search over legal points are those of :mod:`mipcash.optimizers.hybrid`; a limit of which only an answer is
   told (kept or broken) is learned by regression on -1 and 1
2. y_*, the least loss that keeps all limits, is drawn from the posteriors of the loss and of all limits at many legal points:
   a fixed sample of the space, what was observed, walks from the best of it, the minimiser of the mean by alternation, and
   minimisers of samples of the loss under samples of the limits
3. the information of an evaluation on y_* is maximised over the legal points, per unit of cost where outputs may be
   evaluated apart

An output is *answered* where all that was told of it is +1 or -1, or 0 or 1 (True or False): kept or broken by its limit, no
matter by how much. Whether an evaluation fails is always an answer. A limit hides the loss where the loss failed in all
observations that break it.

The paper's sigma(delta) is ``tolerated``: a point counts for y_* where an answered limit is broken with no more than that
probability. Of limits with values the bound itself is delta.

Draws of the constrained minimum y_*, which is what max-value entropy search learns (Perrone et al. 2019, Section 3 and A.4).

Notation
    M points, all of them legal under the rules;   K draws
    y (K, M)    draws of the loss;   l (K, M)    whether all limits hold in the same draw
    y_*         min over x of y(x) where l(x); inf in a draw in which no point keeps the limits

*Joint* draws are of the posteriors over all M points at once. *Marginal* ones take the points for independent of each other, as
Wang and Jegelka (2017) do, so that y_* falls without end as M grows:

    P(y_* > t) = prod_x (1 - P_x Phi((t - mu_x) / sd_x)),   P_x the probability that the limits hold at x

from which y_* is drawn by inversion.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr

from mipcash.acquisition.acquisition import Acquisition
from mipcash.acquisition.constrained import Interval, Kept
from mipcash.acquisition.feasible_first import FeasibleFirst
from mipcash.acquisition.ingredients import Ingredients
from mipcash.acquisition.mixed_search import PolishSettings
from mipcash.errors import SpaceError, at_least
from mipcash.methods.cmes.constrained_entropy import ConstrainedEntropy
from mipcash.methods.cmes.entropy_search import EntropySearch, Option
from mipcash.modelling.domains import Configuration
from mipcash.optimizers.data import Data
from mipcash.optimizers.hybrid import FAILURE, POLISH, SEARCH, Hybrid, HybridSettings, Target
from mipcash.optimizers.in_time import sampled
from mipcash.optimizers.model_based import Step
from mipcash.optimizers.optimizer import History, Limit, Observation, Proposal, joined
from mipcash.optimizers.outcome import DONE, FAILED, LOSS, MISSING, PENDING, PRESENT
from mipcash.optimizers.safety import probabilities
from mipcash.program.forms import Booleans, Indices, Vector
from mipcash.program.points import Points
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Exclusion
from mipcash.surrogates.protocols import Posterior
from mipcash.surrogates.structured.posterior import StructuredPosterior

REACH = 12.0
"""Deviations about the means within which a marginal draw is looked for."""
HALVINGS = 60


def least(losses: Vector, legal: Booleans) -> tuple[Vector, Indices]:
    """y_* of each draw, (K,), and the point where it is, -1 where there is none: (K, M), (K, M) -> (K,), (K,)."""
    allowed = np.where(legal, losses, np.inf)
    at = np.argmin(allowed, axis=1)
    values = allowed[np.arange(len(allowed)), at]
    return values, np.where(np.isfinite(values), at, -1)


def marginal(mean: Vector, sd: Vector, log_kept: Vector, count: int, rng: np.random.Generator) -> Vector:
    """Draws of y_* that take points for independent: (M,), (M,), log P_x (M,) -> (count,)."""

    def survival(t: Vector) -> Vector:
        """log P(y_* > t): (count,) -> (count,)."""
        inside = log_kept + log_ndtr((t[:, None] - mean) / sd)
        return np.asarray(np.sum(np.log1p(-np.exp(np.minimum(inside, -1e-16))), axis=1))

    log_u = np.log(rng.random(count))
    low = np.full(count, float(np.min(mean - REACH * sd)))
    high = np.full(count, float(np.max(mean + REACH * sd)))
    none = survival(high) > log_u  # with that much probability no point keeps the limits
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        above = survival(middle) > log_u
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(none, np.inf, 0.5 * (low + high))


JOINT, MARGINAL = "joint", "marginal"
AUTO, REAL, BINARY = "auto", "real", "binary"
ANSWERS = ({-1.0, 1.0}, {0.0, 1.0})
"""Values that an answered output has."""
OBSERVED, OPEN = 60, 5
"""Observations among the points for y_* at most, and starts of the search of which the loss is not known yet."""
ROUGHLY = PolishSettings(walks=30, survivors=2, moved=1, finalists=1, rounds=1, sweeps=6, pairs=0)
"""Limits of the search for the constrained minimiser of a sample."""


@dataclass(frozen=True)
class CmesSettings(HybridSettings):
    """Settings of constrained max-value entropy search: those of ``hybrid``, but for its ``acquisition`` and ``samples``.

    Deviations do not grow while the incumbent stays (``boldest``): draws of y_* would fall, and proposals explore without end.

    Attributes:
        minima: draws of y_*.
        sampling: ``joint``, or ``marginal``, which takes points for independent and is there for comparison.
        candidates: points drawn from the space, and as many walks from the best, for y_*.
        optimised: draws whose constrained minimiser is looked for, and joins them.
        noise: whether what an evaluation tells has the fitted noise (A.2), or is the value itself (A.1).
        feedback: ``auto`` (outputs that only ever are -1, 1 or 0, 1 are answers), ``real`` (no output is), or ``binary`` (of all
            limits only whether they are kept counts).
        tolerated: sigma(delta) of answered limits, in (0, 1).
        delta: what is recommended keeps all limits that have values with a posterior probability of 1 - delta at least, if
            any observation does; None: it is the best that was observed to keep them, as with every optimizer.
    """

    minima: int = 10
    sampling: str = JOINT
    candidates: int = 120
    optimised: int = 2
    noise: bool = True
    feedback: str = AUTO
    tolerated: float = 0.5
    delta: float | None = None
    boldest: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        choices = {"sampling": (JOINT, MARGINAL), "feedback": (AUTO, REAL, BINARY)}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise SpaceError(f"{name} must be {' or '.join(map(repr, known))}, got {getattr(self, name)!r}")
        for name in ("tolerated", "delta"):
            given = getattr(self, name)
            if given is not None and not 0.0 < given < 1.0:
                raise SpaceError(f"{name} is a probability inside (0, 1), got {given}")
        at_least(self, minima=1, candidates=0, optimised=0)

    @property
    def bound(self) -> float:
        """delta on the scale of what is learned of answers: the mean of -1 and 1."""
        return 2.0 * self.tolerated - 1.0


class PartStep(Step):
    """An ask where outputs may be evaluated apart: a configuration may be proposed again for what is not known there."""

    @cached_property
    def left(self) -> dict[str, list[str]]:
        """By configuration, the outputs that nothing tells and no pending evaluation is asked for."""
        costs, taken = self.request.costs, dict[str, set[str]]()
        for o in self.request.history:
            there = {name for name in costs if o.outcome[name].status != MISSING}
            asked = set(o.asked or costs) if o.status == PENDING else set[str]()
            taken.setdefault(repr(o.config), set()).update(there | asked)
        return {config: [name for name in costs if name not in known] for config, known in taken.items()}

    @property
    def before(self) -> list[Configuration]:
        """Configurations of which nothing is left to evaluate."""
        return [o.config for o in self.request.history if not self.left[repr(o.config)]]


class Cmes(Hybrid):
    """See the module's description."""

    name: ClassVar[str] = "cmes"

    settings: CmesSettings

    def __init__(self, domain: Domain, settings: CmesSettings | None = None) -> None:
        super().__init__(domain, settings or CmesSettings())
        self._space: list[Points] = []  # a sample of the space, which does not depend on what was observed
        self._made: list[Acquisition] = []

    def recommend(self, history: History, limits: Sequence[Limit] = ()) -> Observation | None:
        """The lowest loss of what was observed to keep all limits, with a posterior probability of 1 - delta where one is set.

        Where nothing is so sure, it is the lowest loss of all of it.
        """
        usual, delta = super().recommend(history, limits), self.settings.delta
        if usual is None or not limits or delta is None:
            return usual
        sure = probabilities(self.domain, history, limits)
        rows = joined(history, (LOSS, *(limit.output for limit in limits)))
        safe = []
        for row, p in zip(rows, sure.tolist(), strict=True):
            values = (limit.violation(row.whole.outcome[limit.output].value) for limit in limits)
            if p >= 1.0 - delta and row.whole.legal and not (any(values) or row.whole.outcome.stopped):
                safe += [history[k] for k in row.parts if history[k].loss is not None and history[k].status == DONE]
        return min(safe, key=lambda o: o.loss or 0.0, default=usual)

    # -- the models ---------------------------------------------------------------------------------------------

    def _answered(self, data: Data) -> frozenset[str]:
        """Outputs of which only an answer is told."""
        names = {FAILURE}
        for output in data.scales:
            told = set(data.values(output)[1].tolist())
            if self.settings.feedback == BINARY or (
                self.settings.feedback == AUTO and any(told <= each for each in ANSWERS)
            ):
                names.add(output)
        return frozenset(names)

    def learned_beside(self, data: Data) -> dict[str, tuple[Indices, Vector, tuple[float, float]]]:
        learned = super().learned_beside(data)
        broken = (data.violations > 0.0) & np.isfinite(data.violations)
        if np.all(broken[data.failed]):  # limits say already where evaluations fail
            learned.pop(FAILURE, None)
        for name in self._answered(data) & learned.keys():
            rows, values, _ = learned[name]
            if name != FAILURE:
                values = np.where(data.scales[name].violation(data.values(name)[1]) > 0.0, 1.0, -1.0)
            learned[name] = (rows, values, (-math.inf, self.settings.bound))
        return learned

    def _hiding(self, data: Data, fitted: Ingredients) -> frozenset[str]:
        """Limits without which the loss was never seen: where they are broken, it fails."""
        losses = np.array([o.outcome[LOSS].status for o in data.observations])
        names = {FAILURE} & fitted.limited.keys()
        for name, scale in data.scales.items():
            rows, values = data.values(name)
            there = losses[rows[scale.violation(values) > 0.0]]
            if np.any(there == FAILED) and not np.any(there == PRESENT):
                names.add(name)
        return frozenset(names)

    # -- the acquisition step -----------------------------------------------------------------------------------

    def _search(self, step: Step) -> Proposal | None:
        twin = copy.copy(self)
        twin._made = []
        if step.request.costs:
            step = PartStep(step.request, step.data, step.clock)
        found = super(Cmes, twin)._search(step)
        named = found is not None and found.origin == self.settings.acquisition
        return replace(found, origin=self.name) if found is not None and named else found

    def _chosen(self, proposal: Proposal, fitted: Ingredients, step: Step) -> Proposal:
        """With the outputs that tell most per unit of cost, of those that are not known there.

        As long as no loss is known that keeps the limits, the default's rule, which completes what was begun: pieces of different
        configurations are no answer, however much they tell.
        """
        made = self._made[-1]
        if not step.data.feasible[step.data.known].any():
            return super()._chosen(proposal, fitted, step)
        if not isinstance(step, PartStep) or not isinstance(made, EntropySearch):
            return proposal
        left = step.left.get(repr(proposal.config), list(step.request.costs))
        for k in made.ranked(self.domain.encode([proposal.config])):
            option = made.options[int(k)]
            if option.together:
                return replace(proposal, outputs=tuple(left))
            names = [n for n in step.request.costs if n in option.outputs or (option.loss and n not in fitted.limited)]
            if set(names) <= set(left):
                return replace(proposal, outputs=tuple(names))
        return replace(proposal, outputs=tuple(left))

    def _target(self, fitted: Ingredients, excluded: Sequence[Exclusion], step: Step) -> Target | None:
        """What is minimised and the point found; None where nothing is left to propose."""
        best, began = step.data.border(self.settings.best), time.perf_counter()
        searching, mean = self._for(SEARCH), fitted.loss.mean()
        lowest = searching._for(0.5)._minimum(mean, best, excluded, step.rng)
        starts = [best] if lowest is None else [self._batch([lowest]), best]
        minima, places = self._minima(searching, fitted, Points.joined(*starts), step)
        step.clock.add("search", began, searching.domain.deadline)
        began = time.perf_counter()
        acquisition = self._acquisition(fitted, minima, step)
        self._made.append(acquisition)
        polishing = self._for(POLISH)
        search = polishing._search_of(excluded, step.data.best(), self.polish)
        found = search.minimise(acquisition, Points.joined(*starts, places, self._half_known(step)), step.rng)
        step.clock.add("polish", began, polishing.domain.deadline)
        return None if found is None else Target(mean, acquisition, found)

    def _half_known(self, step: Step) -> Points:
        """The latest legal points that keep all limits that are known, and whose loss is not."""
        data = step.data
        rows = np.setdiff1d(np.flatnonzero(data.feasible & ~data.failed), data.known)
        return data.points[rows[-OPEN:] if step.request.costs else rows[:0]]

    def _acquisition(self, fitted: Ingredients, minima: Vector, step: Step) -> Acquisition:
        limits = {name: Kept(limit.posterior, Interval.of(limit)) for name, limit in fitted.limited.items()}
        hiding, costs = self._hiding(step.data, fitted), step.request.costs
        if not hiding and not costs:
            return ConstrainedEntropy(fitted.loss, minima, list(limits.values()), self.settings.noise)
        together = Option(frozenset(limits), True, math.log(sum(costs.values())) if costs else 0.0, True)
        options = [together]
        if costs:  # outputs without a limit are evaluated with the loss
            with_loss = sum(cost for name, cost in costs.items() if name not in limits)
            options.append(Option(frozenset(), True, math.log(with_loss)))
            alone = ((name, cost) for name, cost in costs.items() if name in limits)
            options += [Option(frozenset({name}), False, math.log(cost)) for name, cost in alone]
        return EntropySearch(fitted.loss, minima, limits, options, hiding, self.settings.noise)

    # -- the constrained minimum --------------------------------------------------------------------------------

    def _minima(self, searching: Hybrid, fitted: Ingredients, starts: Points, step: Step) -> tuple[Vector, Points]:
        """Draws of y_*, (K,), and the points where joint ones are."""
        points, count = self._candidates(searching, fitted, starts, step), self.settings.minima
        ends = {name: Interval.of(limit) for name, limit in fitted.limited.items()}
        if self.settings.sampling == MARGINAL:
            log_kept = np.zeros(len(points))
            for name, limit in fitted.limited.items():
                log_kept += ends[name].log_probability(*limit.posterior.predict(points))
            minima, places = marginal(*fitted.loss.predict(points), log_kept, count, step.rng), points[:0]
        else:
            losses, legal = _draws(fitted.loss, points, count, step), np.ones((count, len(points)), dtype=bool)
            for name, limit in fitted.limited.items():
                drawn = _draws(limit.posterior, points, count, step)
                legal &= (drawn >= ends[name].low) & (drawn <= ends[name].high)
            minima, at = least(losses, legal)
            places = points[np.unique(at[at >= 0])]
        # what was observed to keep all limits is no secret: the minimum does not lie above it
        return np.minimum(minima, fitted.best), places

    def _candidates(self, searching: Hybrid, fitted: Ingredients, starts: Points, step: Step) -> Points:
        """Legal points over which y_* is the least."""
        data, wanted = step.data, replace(ROUGHLY, walks=self.settings.candidates)
        rows = np.flatnonzero(data.legal)[-OBSERVED:]
        walks = searching._search_of([], data.best(), wanted).walks(starts, step.rng)
        found = [starts, data.points[rows], walks, self._sampled_space(searching)]
        search = searching._search_of([], data.best(), ROUGHLY)
        for _ in range(self.settings.optimised):
            if searching.domain.deadline.passed or self.domain.wide:
                break
            outputs = {name: l.posterior.sample(step.rng) for name, l in fitted.limited.items()}
            drawn = FeasibleFirst.sampled(fitted.loss.sample(step.rng), outputs, fitted.limited)
            least_of = search.minimise(drawn, starts, step.rng)
            if least_of is not None:
                found.append(self._batch([least_of]))
        return Points.joined(*found)

    def _sampled_space(self, searching: Hybrid) -> Points:
        """A sample of the space that is the same in every ask; none in a wide one, whose walks must do."""
        if not self._space and not self.domain.wide:
            configs = sampled(searching.domain, self.settings.candidates, np.random.default_rng(0))
            self._space.append(self.domain.encode(configs))
        return self._space[0] if self._space else self.domain.encode([])


def _draws(posterior: Posterior, points: Points, count: int, step: Step) -> Vector:
    assert isinstance(posterior, StructuredPosterior)
    return posterior.draws(points, count, step.rng)
