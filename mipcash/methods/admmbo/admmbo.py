"""ADMMBO (ariafar2019): the loss and each outcome constraint have a copy of the configuration; ADMM makes the copies agree.

    min f(x) + sum_i M 1(c_i(z_i) > 0)    where x = z_i, i = 1..N                                         eq. 7

1. initial design: solver-made configurations, all outputs of each
2. OPT, Algorithm 3.2: a few steps of expected improvement of f(x) + sum_i rho/2 ||x - z_i + y_i/rho||^2 (eq. 10, 11);
   x is the best observation of it
3. FEAS, Algorithm 3.3, for each constraint: the same of 1(c_i(z) > 0) + rho/2M ||x - z + y_i/rho||^2 (eq. 12 to 14);
   z_i is the best observation of it
4. y_i += rho (x - z_i); if both residuals are small, the optimizer asks to stop; else rho is balanced (eq. 15), and back to 2

Every subproblem's improvement is maximised over legal configurations by the mixed search of the default optimizer, so a proposal is
legal whatever x and z are. With decoupled evaluations (``Request.costs``), a step of OPT evaluates the loss alone and a step of
FEAS its own output. Otherwise an evaluation returns all outputs, and all models are fitted to it.

Proposals of the feasibility subproblems of one iteration do not wait for each other (``AdmmState.next``). Details that the
paper leaves open: docs/decisions/042-admmbo-as-written.md.

The recommendation of ADMMBO is Algorithm 3.1, line 17.

    argmin over all evaluated points of E[f(x)]   where p(c_i(x) <= 0) >= 1 - delta for every constraint i

The evaluated points are those of the loss and of every constrained output, which may differ with decoupled evaluations. The paper
recommends x if ADMM has converged; x is one of these points, and the same test applies to it here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from mipcash.acquisition.acquisition import Acquisition, SumAcquisition
from mipcash.acquisition.constrained import LogFeasibility
from mipcash.acquisition.continuous_step import ContinuousStep
from mipcash.acquisition.mixed_search import LocalSearchSettings, MixedSearch
from mipcash.acquisition.neighbourhood import Neighbourhood
from mipcash.acquisition.wide_search import WideSearch
from mipcash.errors import SpaceExhaustedError
from mipcash.methods.admmbo.coordinates import Coordinates, Quadratic
from mipcash.methods.admmbo.models import Augmented, FeasibilityEI, Models, OneSided, augmented_ei, one_sided, slope
from mipcash.methods.admmbo.settings import AdmmboSettings
from mipcash.methods.admmbo.state import OPT, AdmmState
from mipcash.optimizers.hybrid import WIDE
from mipcash.optimizers.in_time import solver_made
from mipcash.optimizers.model_based import ModelBased, Step
from mipcash.optimizers.optimizer import History, Limit, Observation, Proposal
from mipcash.optimizers.outcome import LOSS, MISSING, PENDING
from mipcash.program.forms import Booleans, Indices, Vector
from mipcash.program.points import Point, Points
from mipcash.space.domain import Domain
from mipcash.surrogates.structured.structure import Structure
from mipcash.surrogates.structured.surrogate import StructuredSurrogate


def recommended(models: Models, history: History, limits: Sequence[OneSided], delta: float) -> Observation | None:
    """Return an observation of the recommended configuration, one with a loss if there is any.

    Return None if no configuration is feasible with enough probability, or the recommended one is still pending.

    Args:
        models: of the known outputs.
        history: contains the returned observation.
        limits: c_i <= 0.
        delta: see the module's formula.
    """
    data = models.data
    if any(not len(models.known(name)[0]) for name in (LOSS, *(limit.output for limit in limits))):
        return None
    sure = data.legal & ~data.failed & data.complete
    for limit in limits:
        kept = models.limit(limit)
        mean, deviation = kept.posterior.predict(data.points)
        sure &= kept.interval.log_probability(mean, deviation) >= math.log1p(-delta)
    if not sure.any():
        return None
    means = np.where(sure, models.fitted(LOSS).predict(data.points)[0], math.inf)
    config = data.observations[int(np.argmin(means))].config
    same = [o for o in history if o.config == config and o.legal and not o.outcome.pruned and o.status != PENDING]
    return next((o for o in same if o.loss is not None), same[0] if same else None)


FIT, SEARCH = 0.35, 0.75
"""Shares of the remaining time for the fits and for the search."""
BEST = 6
"""Number of observations from which the search starts, by the subproblem's function and by its expected improvement each."""
STEP_TOLERANCE = 1e-3
ANSWER = -1
"""In place of a subproblem: the evaluation of outputs that are unknown at x."""


class Admmbo(ModelBased):
    """ADMMBO as described in the module."""

    name: ClassVar[str] = "admmbo"
    takes_limits = True

    def __init__(self, domain: Domain, settings: AdmmboSettings | None = None) -> None:
        super().__init__(domain)
        self.settings: AdmmboSettings = settings or AdmmboSettings()
        self.space = Coordinates.of(domain, self.settings.coordinates)
        structure, s = Structure(self.program, self.scale), self.settings
        # the quadratic of eq. 10 is on the scale of the losses, so there is no warp
        self.surrogate = StructuredSurrogate(structure, s.refit, s.restart_every, warped=False)

    def recommend(self, history: History, limits: Sequence[Limit] = ()) -> Observation | None:
        """See Algorithm 3.1, line 17, and ``mipcash.methods.admmbo.admmbo.recommended``.

        Return the default recommendation if there is no constraint, or if no configuration is feasible with enough probability.
        """
        best = super().recommend(history, limits)
        if not limits:
            return best
        models = Models(self.surrogate, self.data(history, limits), self.domain.deadline)
        with threadpool_limits(1):
            found = recommended(models, history, one_sided(models.data, self.settings.equality), self.settings.delta)
        return best if found is None else found

    def _search(self, step: Step) -> Proposal | None:
        return _Ask(self, step).proposal()

    @property
    def local_search(self) -> LocalSearchSettings:
        """Limits of the search; at most WIDE in a wide space."""
        given, most = self.settings.local_search, WIDE if self.domain.wide else ()
        return replace(given, **{name: min(getattr(given, name), limit) for name, limit in most})

    def search(self, acquisition: Acquisition, starts: Points, step: Step) -> Point | None:
        """Return the best legal point that is new to the step's history, or None if the search finds none."""
        near = Neighbourhood.beside(self.domain, self._excluded(step), starts)
        numbers = ContinuousStep(self.domain, 1, STEP_TOLERANCE)
        kind = WideSearch if self.domain.wide else MixedSearch
        found = kind(numbers, near, self.local_search).minimise(acquisition, starts, step.rng)
        if found is None or not self.domain.repeats(self.domain.decode(found), step.before):
            return found
        return self._moved(numbers, found, step)


class _Ask:
    """One proposal.

    Args:
        optimizer: with the deadline of the proposal.
        step: the request, with data of at least one legal observation.
    """

    def __init__(self, optimizer: Admmbo, step: Step) -> None:
        self.optimizer, self.step, self.settings = optimizer, step, optimizer.settings
        self.request, self.data, self.space = step.request, step.data, optimizer.space
        self.limits = one_sided(self.data, self.settings.equality)
        self.vectors = self.space(self.data.points)
        self.legal = np.flatnonzero(self.data.legal)
        deadline = optimizer.domain.deadline.share(FIT)
        self.models = Models(optimizer.surrogate, self.data, deadline, dict(step.request.state.get("models", {})))
        self.state = self._started()
        self.loss_scale = 1.0  # a unit of the loss on the scale of its posterior, once that is fitted

    def proposal(self) -> Proposal | None:
        """Return the proposal of the current subproblem, or None if no subproblem has one.

        A subproblem without a new point, or whose answer no point improves, counts as having had its steps. If this holds for all
        subproblems, points without an expected improvement are accepted.
        """
        for accept_no_improvement in (False, True):
            for _ in range(2 * len(self.state.made)):
                self._advance()
                found = self._next(accept_no_improvement)
                if found is not None:
                    return self._answer() or found
        return None

    # -- progress -----------------------------------------------------------------------------------------------

    def _started(self) -> AdmmState:
        """Return the state, without proposals that are no longer pending."""
        state = AdmmState.of(self.request.state)
        if state is None or len(state.made) != 1 + len(self.limits):
            state = AdmmState.started(len(self.limits), self.space.size, self.settings.rho)
        if state.unit == 0.0:
            losses = self.data.losses[self.data.known]
            spread = float(np.ptp(losses / 2.0)) * 2.0 if len(losses) else 0.0
            state = replace(state, unit=self.settings.unit or (spread if spread < np.inf else 0.0))
        waiting = (a for a in state.asked if self.request.history[a.number].status == PENDING)
        return replace(state, asked=tuple(waiting))

    @property
    def _steps(self) -> int:
        """alpha^k = beta_i^k; an evaluation of all outputs is one step of each subproblem."""
        steps = self.settings.first if self.state.iteration == 1 else self.settings.later
        return steps if self.request.costs else -(-steps // len(self.state.made))

    def _advance(self) -> None:
        """Take the answers of subproblems that have had their steps."""
        while self.state.solved(self._steps):
            if not self.limits:
                self.state = replace(self.state, made=(0,))
            elif self.state.feasibility:
                self._restore()
            else:
                self.state = self.state.optimised(self.vectors[self._best(OPT)])

    def _restore(self) -> None:
        """Update every z_i whose output is known at a legal observation."""
        z, kept = self.state.z.copy(), True
        for i, limit in enumerate(self.limits):
            rows, values = self.data.values(limit.output)
            if len(np.intersect1d(rows, self.legal)):
                best = self._best(i + 1)
                z[i] = self.vectors[best]
                kept &= bool(limit.kept(values[rows == best]).all())
            else:
                kept = False
        self.state = self.state.restored(z, kept, self.settings)

    def _best(self, j: int) -> int:
        """Return the legal row of a subproblem's answer: Algorithm 3.2, line 10, and 3.3, line 10."""
        rows, objective = self._objective(j)
        return int(rows[np.argmin(np.where(self._whole(rows), objective, np.inf) if j == OPT else objective)])

    def _whole(self, rows: Indices) -> Booleans:
        """Return which rows were not pruned, whose losses are no estimates; all, if all were."""
        whole = self.data.complete[rows]
        return whole if whole.any() else ~whole

    def _objective(self, j: int) -> tuple[Indices, Vector]:
        """Return the legal rows where a subproblem's function is known, and u / unit or h_i there.

        If it is known nowhere, return all legal rows, with a loss or output of 0.
        """
        rows, values = self.models.known(self._output(j))
        legal = np.isin(rows, self.legal)
        rows, values = (rows[legal], values[legal]) if legal.any() else (self.legal, np.zeros(len(self.legal)))
        q = self._quadratic(j).at(self.vectors[rows])
        if j == OPT:
            return rows, values / self._unit + q
        return rows, (~self.limits[j - 1].kept(values)).astype(float) + q

    @property
    def _unit(self) -> float:
        """Scale of the loss; 1 until two losses differ."""
        return self.state.unit or 1.0

    def _quadratic(self, j: int, scale: float = 1.0) -> Quadratic:
        """Return q of eq. 10 in units of the loss, times a scale; or of eq. 12."""
        rho, s = self.state.rho, self.state
        if j == OPT:
            return Quadratic(self.space, rho * scale, s.z - s.y / rho)
        return Quadratic(self.space, rho / self.settings.penalty, (s.x + s.y[j - 1] / rho)[None])

    def _output(self, j: int) -> str:
        return LOSS if j == OPT else self.limits[j - 1].output

    # -- proposals ----------------------------------------------------------------------------------------------

    def _next(self, accept_no_improvement: bool) -> Proposal | None:
        """Return a step of the current subproblem, or None if it has nothing to propose; its steps then end.

        Args:
            accept_no_improvement: whether a point without an expected improvement is accepted.
        """
        j = self.state.next(self._steps)
        output = self._output(j)
        outputs = (output,) if self.request.costs else ()
        own = self._about(output)
        found = self._improving(j, own, accept_no_improvement)
        if found is not None:
            config, origin = found
            return self._made(Proposal(config, None, origin, self.step.clock.seconds, {}, outputs), j)
        made = [2 * self._steps if i == j else m for i, m in enumerate(self.state.made)]
        self.state = replace(self.state, made=tuple(made))
        return None

    def _improving(self, j: int, own: Step, accept_no_improvement: bool) -> tuple[dict[str, object], str] | None:
        """Return a configuration that is new to a subproblem's history and its origin, or None."""
        domain, output = self.optimizer.domain, self._output(j)
        if len(self.models.known(output)[0]):
            began = time.perf_counter()
            improvement, acquisition = self._acquisition(j, own)
            self.step.clock.add("surrogate", began, self.models.deadline)
            began, searching = time.perf_counter(), self.optimizer.until(domain.deadline.share(SEARCH))
            point = searching.search(acquisition, self._starts(j, acquisition), own)
            self.step.clock.add("local search", began, searching.domain.deadline)
            if point is not None:
                if j == OPT:
                    self._revoke_convergence(improvement, point)
                idle = isinstance(improvement, FeasibilityEI) and not improvement.improves(_alone(point))
                if idle and not accept_no_improvement:
                    return None
                return domain.decode(point), "optimality" if j == OPT else f"feasibility of {self.limits[j - 1]}"
        try:
            made = solver_made(domain, "remaining configuration", own.request)
        except SpaceExhaustedError:
            if not self.request.costs:  # no subproblem has a new configuration
                raise
            return None
        return made.config, made.origin

    def _revoke_convergence(self, improvement: Acquisition, point: Point) -> None:
        """Revoke convergence if the optimality subproblem is far from solved, since x is only the best point tried."""
        if not self.state.converged or self.settings.improvement is None:
            return
        gain = math.exp(-float(improvement.values(_alone(point))[0])) / self.loss_scale
        self.state = replace(self.state, converged=gain <= self.settings.improvement)

    def _acquisition(self, j: int, own: Step) -> tuple[Acquisition, Acquisition]:
        """Return minus the logarithm of a subproblem's expected improvement, without and with the probability of success."""
        waiting = self.optimizer.awaited(own.request, self._output(j))
        rows, objective = self._objective(j)
        improvement: Acquisition
        if j == OPT:
            posterior = self.models.fitted(LOSS, waiting)
            self.loss_scale = slope(posterior) * self._unit
            known = self._quadratic(OPT, self.loss_scale)
            losses = self.data.losses[rows]
            objective = posterior.scaled(losses) + known.at(self.vectors[rows])
            best = float(objective[self._whole(rows)].min())
            improvement = augmented_ei(Augmented(posterior, known), best)
        else:
            kept = self.models.limit(self.limits[j - 1], waiting)
            improvement = FeasibilityEI(kept.posterior, kept.interval, self._quadratic(j), float(objective.min()))
        success = self.models.success()
        if success is None:
            return improvement, improvement
        return improvement, SumAcquisition(improvement, LogFeasibility([success]))

    def _starts(self, j: int, acquisition: Acquisition) -> Points:
        """Return legal observations: the best by the subproblem's function, and by the expected improvement."""
        rows, objective = self._objective(j)
        by_function = rows[np.argsort(objective, kind="stable")[:BEST]]
        by_improvement = self.legal[np.argsort(acquisition.values(self.data.points[self.legal]), kind="stable")[:BEST]]
        both = list(dict.fromkeys([*by_function.tolist(), *by_improvement.tolist()]))
        return self.data.points[both]

    def _about(self, output: str) -> Step:
        """Return the step with the part of the history in which an output is known or may be pending."""
        if not self.request.costs:
            return self.step
        asked = {a.number: a.subproblem for a in self.state.asked if a.subproblem != ANSWER}
        history = [
            o
            for k, o in enumerate(self.request.history)
            if o.outcome[output].status != MISSING
            or (o.status == PENDING and (k not in asked or self._output(asked[k]) == output))
        ]
        return Step(replace(self.request, history=history), self.data, self.step.clock)

    def _answer(self) -> Proposal | None:
        """Return a decoupled evaluation of the loss and constrained outputs that are unknown at x, if ADMM has converged.

        Return None in all other cases.
        """
        if not self.state.converged or not self.request.costs or any(self.state.made):
            return None
        (rows,) = np.nonzero(np.all(self.vectors == self.state.x, axis=1))
        for row in rows.tolist():
            config, outcome = self.data.observations[row].config, self.data.observations[row].outcome
            names = dict.fromkeys([LOSS, *(limit.output for limit in self.limits)])
            missing = outcome.missing(names)
            if missing and not any(o.config == config for o in self.request.pending):
                proposal = Proposal(config, None, "answer", self.step.clock.seconds, {}, missing)
                return self._made(proposal, ANSWER)
        return None

    def _made(self, proposal: Proposal, j: int) -> Proposal:
        """Return a proposal with the state after it, its trace for reports, and a stop request where one is due."""
        state = self.state
        shown = {"subproblem": proposal.origin, "iteration": state.iteration, "rho": state.rho}
        finite = {n: v for n, v in (("primal", state.primal), ("dual", state.dual)) if np.isfinite(v)}
        after = state.counted(j, len(self.request.history)).as_dict() | {"models": self.models.states}
        return replace(proposal, state=after, trace={**shown, **finite}, stop=self._stop_reason())

    def _stop_reason(self) -> str:
        if self.state.converged:
            return f"residuals {self.state.primal:.2g} and {self.state.dual:.2g} after {self.state.iteration - 1} iterations"
        if self.state.iteration > self.settings.iterations:
            return f"{self.settings.iterations} iterations"
        return ""


def _alone(point: Point) -> Points:
    return Points(point.levels[None], point.units[None])
