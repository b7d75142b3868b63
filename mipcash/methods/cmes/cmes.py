"""Constrained max-value entropy search (Perrone et al. 2019): evaluate what gives most information on the constrained minimum.

1. Models, design and search over legal points are those of ``mipcash.optimizers.hybrid``. An outcome constraint with binary
   feedback (satisfied or violated) is modelled by regression on -1 and 1.
2. y_*, the least feasible loss, is drawn from the posteriors of the loss and of all constraints at many legal points.
   These are a fixed sample of the space, the observations, walks from the best of them, the minimiser of the mean by alternation,
   and minimisers of samples of the loss under samples of the constraints.
3. The information of an evaluation on y_* is maximised over the legal points, per unit of cost with decoupled evaluations.

An output has *binary feedback* if all its values are +1 or -1, or 0 or 1 (True or False): it satisfies or violates its constraint,
and the size of the violation is unknown. Failures are always binary feedback. A constraint hides the loss if the loss failed in all
observations that violate it.

The paper's sigma(delta) is ``violation_probability``: a point counts for y_* if a constraint with binary feedback is violated
with no more than that probability. For constraints with values the bound itself is delta.

Draws of the constrained minimum y_*, on which max-value entropy search gains information (Perrone et al. 2019, Section 3 and A.4).

Notation
    M points, all of them legal under the rules;   K draws.
    y (K, M)    draws of the loss;   l (K, M)    whether all constraints hold in the same draw.
    y_*         min over x of y(x) where l(x); inf in a draw in which no point is feasible

*Joint* draws are of the posteriors over all M points at once. *Marginal* draws treat the points as independent, as in Wang and
Jegelka (2017), so that y_* falls without bound as M grows:

    P(y_* > t) = prod_x (1 - P_x Phi((t - mu_x) / sd_x)),   P_x the probability that the constraints hold at x

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

from mipcash.acquisition.acquisition import Acquisition, rounded
from mipcash.acquisition.catalogue import AcquisitionInputs
from mipcash.acquisition.feasible_first import FeasibleFirst
from mipcash.acquisition.mixed_search import LocalSearchSettings
from mipcash.errors import SpaceError, check_settings
from mipcash.methods.cmes.entropy_search import EntropySearch, Option
from mipcash.modelling.domains import Configuration
from mipcash.optimizers.data import Data
from mipcash.optimizers.hybrid import FAILURE, POOL, SEARCH, Hybrid, HybridSettings, Target
from mipcash.optimizers.in_time import sampled
from mipcash.optimizers.model_based import Step
from mipcash.optimizers.optimizer import History, Limit, Observation, Proposal, averaged, joined
from mipcash.optimizers.outcome import FAILED, LOSS, MISSING, PENDING, PRESENT
from mipcash.optimizers.safety import probabilities
from mipcash.program.forms import Booleans, Indices, Vector
from mipcash.program.points import Points
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Exclusion

REACH = 12.0
"""Deviations about the means within which a marginal draw is searched for."""
HALVINGS = 60


def least(losses: Vector, legal: Booleans) -> tuple[Vector, Indices]:
    """Return y_* of each draw, (K,), and the index of its point, -1 if no point is feasible: (K, M), (K, M) -> (K,), (K,)."""
    allowed = np.where(legal, losses, np.inf)
    at = np.argmin(allowed, axis=1)
    values = allowed[np.arange(len(allowed)), at]
    return values, np.where(np.isfinite(values), at, -1)


def marginal(mean: Vector, sd: Vector, log_kept: Vector, count: int, rng: np.random.Generator) -> Vector:
    """Draw y_* with points treated as independent: (M,), (M,), log P_x (M,) -> (count,)."""

    def survival(t: Vector) -> Vector:
        """Return log P(y_* > t): (count,) -> (count,)."""
        inside = log_kept + log_ndtr((t[:, None] - mean) / sd)
        return np.asarray(np.sum(np.log1p(-np.exp(np.minimum(inside, -1e-16))), axis=1))

    log_u = np.log(rng.random(count))
    low = np.full(count, float(np.min(mean - REACH * sd)))
    high = np.full(count, float(np.max(mean + REACH * sd)))
    none = survival(high) > log_u  # in these draws no point is feasible
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        above = survival(middle) > log_u
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(none, np.inf, 0.5 * (low + high))


def _child(rng: np.random.Generator) -> np.random.Generator:
    """Return a generator for a search whose number of draws depends on last digits, so that later draws do not."""
    return np.random.default_rng(rng.integers(2**63))


JOINT, MARGINAL = "joint", "marginal"
AUTO, REAL, BINARY = "auto", "real", "binary"
ANSWERS = ({-1.0, 1.0}, {0.0, 1.0})
"""Values of an output with binary feedback."""
OBSERVED, OPEN = 60, 5
"""Maximum number of observations among the points for y_*, and of starts of the search whose loss is not known yet."""
ROUGHLY = LocalSearchSettings(walks=30, survivors=2, moved=1, finalists=1, rounds=1, sweeps=6, pairs=0)
"""Limits of the search for the constrained minimiser of a sample."""


@dataclass(frozen=True)
class CmesSettings(HybridSettings):
    """Settings of constrained max-value entropy search, the optimizer ``cmes``.

    Args:
        minima: draws of y_*.
        sampling: ``joint``, or ``marginal``, which treats points as independent and serves for comparison.
        candidates: points drawn from the space, and as many walks from the best, for y_*.
        optimised: draws whose constrained minimiser is searched for and added to the points.
        noise: True: an observation includes the fitted noise (A.2); False: it is noise-free (A.1).
        feedback: kind of outcome constraints. ``auto``: binary if all values are -1, 1 or 0, 1. ``real``: none is binary.
            ``binary``: all are; only whether they are satisfied counts.
        violation_probability: sigma(delta) of constraints with binary feedback, in (0, 1).
        delta: the recommendation satisfies all constraints with a posterior probability of at least 1 - delta, if this holds for
            any feasible observation. None: it is the best feasible observation, as with every optimizer.
        n_initial, refit, restart_every, best, warp: as in
            [`HybridSettings`][mipcash.optimizers.hybrid.HybridSettings].
        product_columns, cover, alternation, local_search, solver: as in ``HybridSettings``.
        acquisition, samples: leave the defaults; ``cmes`` has an acquisition function and samples of its own.

    Raises:
        SpaceError: a setting is out of range.

    Examples:
        >>> from mipcash.methods.cmes import CmesSettings
        >>> import mipcash as mc
        >>> method = mc.Method("cmes", settings=CmesSettings(minima=5, delta=0.05))
        >>> method.name
        'cmes'
    """

    minima: int = 10
    sampling: str = JOINT
    candidates: int = 120
    optimised: int = 2
    noise: bool = True
    feedback: str = AUTO
    violation_probability: float = 0.5
    delta: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_settings(self, choices={"sampling": (JOINT, MARGINAL), "feedback": (AUTO, REAL, BINARY)})
        check_settings(self, inside_0_1=("violation_probability", "delta"), minima=1, candidates=0, optimised=0)
        for name in ("acquisition", "samples"):
            if getattr(self, name) != getattr(HybridSettings, name):
                raise SpaceError(f"{name} has no effect on cmes, which draws minima; leave it out, or take 'hybrid'")

    @property
    def bound(self) -> float:
        """``violation_probability`` on the scale of binary feedback: with probability p of 1, the mean of -1 and 1 is 2 p - 1."""
        return 2.0 * self.violation_probability - 1.0


class PartStep(Step):
    """An ask with decoupled evaluations: a configuration may be proposed again for outputs that are unknown there."""

    @cached_property
    def left(self) -> dict[str, list[str]]:
        """Configuration -> outputs that are neither known nor asked for by a pending evaluation."""
        costs, taken = self.request.costs, dict[str, set[str]]()
        for o in self.request.history:
            there = {name for name in costs if o.outcome[name].status != MISSING}
            asked = set(o.asked or costs) if o.status == PENDING else set[str]()
            taken.setdefault(repr(o.config), set()).update(there | asked)
        return {config: [name for name in costs if name not in known] for config, known in taken.items()}

    @property
    def before(self) -> list[Configuration]:
        """Configurations without outputs left to evaluate."""
        return [o.config for o in self.request.history if not self.left[repr(o.config)]]


class Cmes(Hybrid):
    """Constrained max-value entropy search as described in the module."""

    name: ClassVar[str] = "cmes"

    settings: CmesSettings

    def __init__(self, domain: Domain, settings: CmesSettings | None = None) -> None:
        super().__init__(domain, settings or CmesSettings())
        self._space: list[Points] = []  # a sample of the space, which does not depend on observations
        self._made: list[Acquisition] = []

    def recommend(self, history: History, limits: Sequence[Limit] = ()) -> Observation | None:
        """Return the feasible observation with the lowest loss; if delta is set, among those with a probability of 1 - delta.

        If no observation has that posterior probability, all feasible observations count.
        """
        usual, delta = super().recommend(history, limits), self.settings.delta
        if usual is None or not limits or delta is None:
            return usual
        rows = averaged(joined(history, (LOSS, *(limit.output for limit in limits))))
        sure = probabilities(self.domain, history, limits, [row.merged.config for row in rows])
        safe = {repr(row.merged.config) for row, p in zip(rows, sure.tolist(), strict=True) if p >= 1.0 - delta}
        return next((o for o in self.ranked(history, limits) if repr(o.config) in safe), usual)

    # -- the models ---------------------------------------------------------------------------------------------

    def _answered(self, data: Data) -> frozenset[str]:
        """Return the outputs with binary feedback."""
        names = {FAILURE}
        for output in data.scales:
            reported = set(data.values(output)[1].tolist())
            if self.settings.feedback == BINARY or (
                self.settings.feedback == AUTO and any(reported <= each for each in ANSWERS)
            ):
                names.add(output)
        return frozenset(names)

    def learned_beside(self, data: Data) -> dict[str, tuple[Indices, Vector, tuple[float, float]]]:
        learned = super().learned_beside(data)
        broken = (data.violations > 0.0) & np.isfinite(data.violations)
        if np.all(broken[data.failed]):  # the constraints already explain all failures
            learned.pop(FAILURE, None)
        for name in self._answered(data) & learned.keys():
            rows, values, _ = learned[name]
            if name != FAILURE:
                values = np.where(data.scales[name].violation(data.values(name)[1]) > 0.0, 1.0, -1.0)
            learned[name] = (rows, values, (-math.inf, self.settings.bound))
        return learned

    def _hiding(self, data: Data, fitted: AcquisitionInputs) -> frozenset[str]:
        """Return the constraints that hide the loss: it failed in some observations that violate them and is known in none."""
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

    def _chosen(self, proposal: Proposal, fitted: AcquisitionInputs, step: Step) -> Proposal:
        """Return the proposal with the unknown outputs that give most information per unit of cost.

        Until a feasible loss is known, the default's rule applies, which completes partially evaluated configurations: a feasible
        incumbent needs all outputs of one configuration.
        """
        made = self._made[-1]
        if not step.data.feasible[step.data.known].any():
            found = super()._chosen(proposal, fitted, step)
            open_ = step.left.get(repr(found.config), []) if isinstance(step, PartStep) else []
            return replace(found, outputs=tuple(open_)) if open_ else found  # known outputs are not evaluated again
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

    def _target(self, fitted: AcquisitionInputs, excluded: Sequence[Exclusion], step: Step) -> Target | None:
        """Return the acquisition and the point found, or None if no new point is left."""
        best, began = step.data.best_and_near_feasible(self.settings.best), time.perf_counter()
        searching, mean = self._for(POOL), fitted.loss.mean()
        stuck = self._stuck(best.levels[0], excluded, step.rng)
        lowest = searching._for(0.5)._minimum(mean, best, excluded, _child(step.rng), stuck)
        starts = [best] if lowest is None else [self._batch([lowest]), best]
        minima, places = self._minima(searching, fitted, Points.joined(*starts), step)
        step.clock.add("search", began, searching.domain.deadline)
        began = time.perf_counter()
        acquisition = self._acquisition(fitted, minima, step)
        self._made.append(acquisition)
        local = self._for(SEARCH)
        search = local._search_of(excluded, step.data.best(), self.local_search)
        found = search.minimise(acquisition, Points.joined(*starts, places, self._half_known(step)), step.rng)
        step.clock.add("local search", began, local.domain.deadline)
        return None if found is None else Target(mean, acquisition, found)

    def _half_known(self, step: Step) -> Points:
        """Return the latest legal points that satisfy all known constraints, and whose loss is not known."""
        data = step.data
        rows = np.setdiff1d(np.flatnonzero(data.feasible & ~data.failed), data.known)
        return data.points[rows[-OPEN:] if step.request.costs else rows[:0]]

    def _acquisition(self, fitted: AcquisitionInputs, minima: Vector, step: Step) -> Acquisition:
        limits, hiding, costs = fitted.limited, self._hiding(step.data, fitted), step.request.costs
        together = Option(frozenset(limits), True, math.log(sum(costs.values())) if costs else 0.0, True)
        options = [together]
        if costs:  # unconstrained outputs are evaluated with the loss
            with_loss = sum(cost for name, cost in costs.items() if name not in limits)
            options.append(Option(frozenset(), True, math.log(with_loss)))
            alone = ((name, cost) for name, cost in costs.items() if name in limits)
            options += [Option(frozenset({name}), False, math.log(cost)) for name, cost in alone]
        return EntropySearch(fitted.loss, minima, limits, options, hiding, self.settings.noise)

    # -- the constrained minimum --------------------------------------------------------------------------------

    def _minima(
        self, searching: Hybrid, fitted: AcquisitionInputs, starts: Points, step: Step
    ) -> tuple[Vector, Points]:
        """Return draws of y_*, (K,), and the points that attain them if the draws are joint."""
        points, count = self._candidates(searching, fitted, starts, step), self.settings.minima
        if self.settings.sampling == MARGINAL:
            log_kept = np.zeros(len(points))
            for limit in fitted.limited.values():
                log_kept += limit.interval.log_probability(*limit.posterior.predict(points))
            minima, places = marginal(*fitted.loss.predict(points), log_kept, count, step.rng), points[:0]
        else:
            losses, legal = fitted.loss.draws(points, count, step.rng), np.ones((count, len(points)), dtype=bool)
            for limit in fitted.limited.values():
                drawn = limit.posterior.draws(points, count, step.rng)
                legal &= (drawn >= limit.interval.low) & (drawn <= limit.interval.high)
            minima, at = least(losses, legal)
            places = points[np.unique(at[at >= 0])]
        # the minimum is at most the best feasible observation
        return np.minimum(rounded(minima), fitted.best), places

    def _candidates(self, searching: Hybrid, fitted: AcquisitionInputs, starts: Points, step: Step) -> Points:
        """Return the legal points over which y_* is the minimum."""
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
            least_of = search.minimise(drawn, starts, _child(step.rng))
            if least_of is not None:
                found.append(self._batch([least_of]))
        return Points.joined(*found)

    def _sampled_space(self, searching: Hybrid) -> Points:
        """Return a sample of the space that is the same in every ask; in a wide space it is empty, and walks have to suffice."""
        if not self._space and not self.domain.wide:
            configs = sampled(searching.domain, self.settings.candidates, np.random.default_rng(0))
            if configs:  # none if the time is up; the next ask may have more
                self._space.append(self.domain.encode(configs))
        return self._space[0] if self._space else self.domain.encode([])
