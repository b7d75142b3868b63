"""ADMM for algorithm selection with hyperparameters: liu2020, Algorithms 1 and 2; ram2020, appendices C and F.

    min f(z, theta)   z choices, theta = (theta^c, theta^d) hyperparameters, under rules and outcome constraints
    f~(z, theta~) = f(z, P_z(theta~))     theta~ in a box, P_z the nearest legal point with z fixed            eq. 4

1. initial design: solver-made configurations
2. theta-min, I evaluations: f~ + rho/2 ||theta~^d - b||^2 over the active set of z (eq. 10); the inactive set is projected (eq. 9)
3. delta-min: the legal integers nearest to a = theta~^d + lam / rho, with z fixed (eq. 11)
4. z-min, I evaluations: f~ over legal choices at this theta (eq. 12)
5. lam += rho (theta~^d - delta), mu += rho (g - epsilon + u); I grows by F; back to 2

The choices z are modules, plain categories, categories on which other parameters depend, and orders. The hyperparameters theta are
all integers, ordinals and reals, and the categories among an algorithm's hyperparameters. A space without modules is treated as one
of plain categories without hyperparameters. Without choices only theta-min runs, and without hyperparameters only z-min.

Rules hold in every subproblem: each proposal is legal, since theta~ is evaluated at its legal projection with z fixed, and z is the
legal choice that a solver finds. Proposals do not wait for pending trials: a phase continues beyond its I evaluations, up to 2 I,
until its trials are complete. Residuals are in ``Proposal.trace`` and do not end a run by themselves. Details that the papers leave
open: docs/decisions/050-admm-for-pipelines.md.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from mipcash.methods.admm.augmented import Limits, Measured, outputs, unit_of
from mipcash.methods.admm.legal import Projection
from mipcash.methods.admm.settings import AdmmSettings, reward
from mipcash.methods.admm.state import ELSEWHERE, THETA, AdmmState, Asked, Z
from mipcash.methods.admm.theta_min import THETA_MIN, ThetaProblem
from mipcash.methods.admm.variables import Variables
from mipcash.methods.admm.z_min import Z_MIN, ZProblem, one_hot
from mipcash.modelling.domains import Configuration
from mipcash.optimizers.data import Data
from mipcash.optimizers.in_time import solver_made
from mipcash.optimizers.model_based import ModelBased, Step
from mipcash.optimizers.optimizer import History, Limit, Proposal
from mipcash.optimizers.outcome import PENDING
from mipcash.program.forms import Booleans, Indices, Vector
from mipcash.space.domain import Domain

PHASES = 8
"""Phases without a new point after which the solver proposes one of the remaining configurations."""
FREE = 8
"""Draws of a choice, including those with a known value, after which a phase of z-min counts as having nothing new to evaluate."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """Configurations as variables.

    Attributes:
        z, theta: shape (n, Z) and (n, P).
        shown: mask of the active coordinates of theta, shape (n, P).
    """

    z: Indices
    theta: Vector
    shown: Booleans


class Admm(ModelBased):
    """ADMM as described in the module."""

    name: ClassVar[str] = "admm"
    takes_limits = True

    def __init__(self, domain: Domain, settings: AdmmSettings | None = None) -> None:
        super().__init__(domain)
        self.settings: AdmmSettings = settings or AdmmSettings()
        self.variables = Variables.of(domain)
        self.theta_min, self.z_min = THETA_MIN[self.settings.theta_min], Z_MIN[self.settings.z_min]

    def data(self, history: History, limits: Sequence[Limit] = ()) -> Data:
        """Return empty data: ADMM reads the history itself, in the order in which its trials were asked for."""
        return Data.of(self.domain, (), limits)

    def _search(self, step: Step) -> Proposal | None:
        if not any(o.legal and o.status != PENDING for o in step.request.history):
            return None
        return _Ask(self, step).proposal()

    def encoded(self, history: History) -> Encoded:
        """Encode observations."""
        points, v = self.domain.encode([o.config for o in history]), self.variables
        return Encoded(v.z(points), v.theta(points), v.shown(points))


class _Ask:
    """One proposal.

    Args:
        optimizer: with the deadline of the proposal.
        step: the request, with data of at least one trial.
    """

    def __init__(self, optimizer: Admm, step: Step) -> None:
        self.optimizer, self.step, self.settings = optimizer, step, optimizer.settings
        self.domain, self.variables = optimizer.domain, optimizer.variables
        self.request, self.rng = step.request, step.rng
        history = self.request.history
        self.numbers = np.array([k for k, o in enumerate(history) if o.status != PENDING], dtype=np.int64)
        self.settled = [history[k] for k in self.numbers]
        self.project = Projection(self.domain, self.variables)
        rows = optimizer.encoded(self.settled)
        self.z, self.theta = rows.z, rows.theta
        self.legal = np.array([o.legal for o in self.settled], dtype=bool)
        state = AdmmState.of(self.request.state)
        fits = state is not None and len(state.mu) == len(self.request.limits)
        self.state = self._absorbed(state) if state is not None and fits else self._started(rows.shown)

    def proposal(self) -> Proposal | None:
        """Return the proposal of the current subproblem, or a solver-made configuration if no subproblem finds a new one."""
        for _ in range(PHASES):
            while self._solved:
                self._finish()
            found = self._theta_step() if self.state.phase == THETA else self._z_step()
            if found is not None:
                return found
            self._finish()
        made = solver_made(self.domain, "remaining configuration", self.request)
        asked = Asked(len(self.request.history), self.state.iteration, ELSEWHERE)
        after = replace(self.state, asked=(*self.state.asked, asked))
        return replace(made, state=after.as_dict())

    # -- observations -------------------------------------------------------------------------------------------

    @property
    def limits(self) -> Limits:
        units = np.where(self.state.units > 0.0, self.state.units, 1.0)
        return Limits(self.request.limits, units, self.settings.slack_rho, self.state.mu)

    def _measured(self) -> Measured:
        return self.limits.measured(self.settled, self.state.unit or 1.0)

    def _started(self, shown: Booleans) -> AdmmState:
        """Return the initial state: z and theta are the best known, per algorithm; known evaluations count as pulls."""
        variables, m = self.variables, len(self.request.limits)
        zero, arms = np.zeros(variables.size), int(variables.sizes.sum())
        self.state = AdmmState(
            z=self.z[0], theta=zero + 0.5, delta=zero, lam=zero, u=np.zeros(m), mu=np.zeros(m), rho=self.settings.rho,
            unit=0.0, units=np.zeros(m), counts=np.zeros(arms), rewards=np.zeros(arms),
        )  # fmt: skip
        self.state = self._scaled(self.state)
        measured = self._measured()
        values = np.where(self.legal & measured.answers, self.limits.values(measured), np.inf)
        theta = self.state.theta.copy()
        order = np.argsort(-values, kind="stable")
        for row in order[self.legal[order]]:
            theta[shown[row]] = self.theta[row, shown[row]]
        best = int(np.argmin(np.where(self.legal, values, np.inf))) if np.isfinite(values).any() else int(order[-1])
        delta = np.where(variables.integral, variables.rounded(theta), 0.0)
        state = replace(self.state, z=self.z[best], theta=theta, delta=delta, u=self.limits.slack(measured.h)[best])
        for row in np.flatnonzero(self.legal):
            state = self._credited(state, int(row), measured)
        return state

    def _absorbed(self, state: AdmmState) -> AdmmState:
        """Return the state with the rewards of pulls that are now complete, and without trials that no longer count."""
        self.state = state = self._scaled(state)
        measured, row_of = self._measured(), self._row_of
        kept = list[Asked]()
        for asked in state.asked:
            row = row_of.get(asked.number)
            if row is not None and asked.phase != THETA and not asked.credited:
                state = self._credited(state, row, measured)
                asked = replace(asked, credited=True)
            if row is None or (asked.iteration == state.iteration and asked.phase == state.phase):
                kept.append(asked)
        return replace(state, asked=tuple(kept))

    def _scaled(self, state: AdmmState) -> AdmmState:
        """Return the state with the units of the loss and of the constrained outputs, as soon as their values have a range."""
        unit, units = state.unit, state.units.copy()
        if unit == 0.0:
            losses = np.array([np.nan if o.loss is None else o.loss for o in self.settled], dtype=float)
            unit = self.settings.unit or unit_of(losses)
        for m, limit in enumerate(self.request.limits):
            units[m] = units[m] or unit_of(outputs(self.settled, limit.output))
        return replace(state, unit=unit, units=units)

    def _credited(self, state: AdmmState, row: int, measured: Measured) -> AdmmState:
        """Return the state in which a row counts as a pull of the bandit: liu2020, Algorithm A1, lines 9 to 14."""
        earned = float(self.rng.random() < self._reward(row, measured))
        return state.credited(one_hot(self.variables.sizes, self.z[row][None])[0], earned)

    def _reward(self, row: int, measured: Measured) -> float:
        """Return the reward of a row, 0 for a failure."""
        if not measured.known[row]:
            return 0.0
        values = self.limits.values(measured)
        return reward(float(values[row]), values[measured.known], self.settings.f_hat, self.state.unit or 1.0)

    @cached_property
    def _row_of(self) -> dict[int, int]:
        """Number of a settled trial -> its row."""
        return {int(k): row for row, k in enumerate(self.numbers)}

    # -- progress -----------------------------------------------------------------------------------------------

    @property
    def _solved(self) -> bool:
        """True if the current subproblem has had its evaluations, or has nothing to decide."""
        state, steps = self.state, self.settings.steps(self.state.iteration)
        if state.phase == THETA and not self._active.any() and np.any(self.variables.sizes > 1):
            return True
        if state.phase == Z and not np.any(self.variables.sizes > 1):
            return True
        pending = any(a.number not in self._row_of for a in state.own)
        return state.made >= steps and (not pending or state.made >= 2 * steps)

    @property
    def _active(self) -> Booleans:
        return self.variables.active(self.state.z)

    def _finish(self) -> None:
        """Store the answer of the current subproblem in the state."""
        if self.state.phase == THETA:
            self._finish_theta()
        else:
            self._finish_z()
        own = {(self.state.iteration, self.state.phase)}
        kept = (a for a in self.state.asked if (a.iteration, a.phase) in own or a.number not in self._row_of)
        self.state = replace(self.state, asked=tuple(kept))

    def _finish_theta(self) -> None:
        """Set theta(t+1) and u(t+1): the best of the active set, the projection of b for the inactive set (eq. 9)."""
        state, variables, active = self.state, self.variables, self._active
        theta = state.theta.copy()
        idle = variables.integral & ~active
        theta[idle] = np.clip(state.b[idle], 0.0, 1.0)
        measured, u = self._measured(), state.u
        rows, x, _ = self._theta_rows(measured, answering=True)
        keep = self.legal[rows] & measured.answers[rows]
        if keep.any():
            problem = self._theta_problem(rows[keep], x[keep], measured, np.zeros(0, dtype=np.int64))
            best = int(np.argmin(problem.values))
            theta[active] = x[keep][best]
            u = self.limits.slack(measured.h)[rows[keep][best]]
        self.state = state.optimised(theta, u)

    def _finish_z(self) -> None:
        """Set delta(t+1), z(t+1) and the multipliers."""
        state, variables, measured = self.state, self.variables, self._measured()
        rows = self._z_rows()
        rows = rows[self.legal[rows] & measured.answers[rows]]
        z, u = state.z, state.u
        mu: Vector | None = None
        if len(rows):
            best = int(rows[np.argmin(self._z_values(measured)[rows])])
            z = self.z[best]
            u = self.limits.slack(measured.h)[best] if self.settings.free_slack else state.u
            mu = self.limits.multipliers(measured.h[best], u)
        delta = np.where(variables.integral, self._delta(), 0.0)
        metric = np.where(variables.integral, variables.metric, 0.0)
        self.state = state.chosen(z, delta, u, mu, metric, self.settings)

    def _delta(self) -> Vector:
        """Solve delta-min, (P,): the nearest legal integers with z(t) fixed; for algorithms not chosen, the nearest integers."""
        state, variables = self.state, self.variables
        wanted = np.where(variables.integral, state.a, state.theta)
        delta = variables.rounded(wanted)
        config = self.project(state.z, wanted)
        if config is not None:
            point = self.domain.encode([config])
            shown = variables.shown(point)[0]
            delta[shown] = variables.theta(point)[0, shown]
        return delta

    # -- theta-min ----------------------------------------------------------------------------------------------

    def _theta_rows(self, measured: Measured, answering: bool = False) -> tuple[Indices, Vector, Indices]:
        """Return the rows that theta-min is fitted to, their theta~ in the active set, and which of them are of this phase.

        Args:
            answering: whether the phase ends; its answer is then taken from all rows with its z if it has none of its own.
        """
        own = [a for a in self.state.own if a.number in self._row_of and a.phase == THETA]
        at = [self._row_of[a.number] for a in own]
        same = np.flatnonzero(np.all(self.z == self.state.z, axis=1))
        rows = same if self.settings.warm_start or (answering and not at) else np.array(at, dtype=np.int64)
        x = self.theta[rows][:, self._active]
        place = {int(row): k for k, row in enumerate(rows)}
        for asked, row in zip(own, at, strict=True):
            if row in place and len(asked.theta) == x.shape[1]:
                x[place[row]] = asked.theta
        return rows, x, np.array([place[row] for row in at if row in place], dtype=np.int64)

    def _theta_problem(self, rows: Indices, x: Vector, measured: Measured, own: Indices) -> ThetaProblem:
        state, variables, active = self.state, self.variables, self._active
        stiffness = np.where(variables.integral, state.rho * variables.metric, 0.0)[active]
        waiting = self._waiting
        return ThetaProblem(
            x=x,
            f=self.limits.values(measured)[rows],
            own=own,
            waiting=waiting.theta[np.all(waiting.z == state.z, axis=1)][:, active],
            stiffness=stiffness,
            centre=np.where(variables.integral, state.b, 0.0)[active],
            start=state.theta[active],
            rng=self.rng,
            memory=state.memory,
            deadline=self.domain.deadline,
            noise=measured.variance[rows],
        )

    def _theta_step(self) -> Proposal | None:
        """Return an evaluation of theta-min, or None if its solver has nothing new."""
        if not self._active.any():
            return None
        measured, began = self._measured(), time.perf_counter()
        rows, x, own = self._theta_rows(measured)
        x, memory = self.optimizer.theta_min(self._theta_problem(rows, x, measured, own))
        self.step.clock.add("theta-min", began, self.domain.deadline)
        began, tried = time.perf_counter(), set[bytes]()
        for candidate in x:
            theta = self.state.theta.copy()
            theta[self._active] = candidate
            rounded = self.variables.rounded(theta).tobytes()
            if rounded in tried:
                continue
            tried.add(rounded)
            config = self.project(self.state.z, theta)
            if config is None:
                break
            if self._new(config):
                self.step.clock.add("projection", began, self.domain.deadline)
                number, t = len(self.request.history), self.state.iteration
                asked = Asked(number, t, THETA, tuple(candidate.tolist()))
                return self._made(config, self.state.counted(asked, memory))
        return None

    # -- z-min --------------------------------------------------------------------------------------------------

    def _z_rows(self) -> Indices:
        """Return the rows at this theta: the answer of theta-min and the pulls, including those of known value."""
        at = [self._row_of[a.number] for a in self.state.own if a.number in self._row_of]
        known = self._row_at(self.project(self.state.z, self.state.theta))
        return np.array(list(dict.fromkeys([*([] if known is None else [known]), *at])), dtype=np.int64)

    def _z_values(self, measured: Measured) -> Vector:
        return self.limits.values(measured, None if self.settings.free_slack else self.state.u)

    def _z_step(self) -> Proposal | None:
        """Return an evaluation of z-min, or None if the draws yield nothing new."""
        began, state = time.perf_counter(), self.state
        measured, waiting = self._measured(), self._waiting_here()
        found: Configuration | None = None
        for _ in range(FREE):
            rows = self._z_rows()
            problem = ZProblem(
                sizes=self.variables.sizes, z=self.z[rows], values=self._z_values(measured)[rows],
                waiting=waiting, counts=self.state.counts, rewards=self.state.rewards,
                prior=self.settings.prior, argmax=lambda weights: self.project.argmax(weights, state.theta),
                rng=self.rng, memory=self.state.memory,
                deadline=self.domain.deadline, noise=measured.variance[rows],
            )  # fmt: skip
            z, memory = self.optimizer.z_min(problem)
            self.state = replace(self.state, memory=dict(memory))
            config = self.project(z, state.theta)
            if config is None:
                break
            if self._new(config):
                found = config
                break
            row = self._row_at(config)
            if row is not None:
                self._count_known_pull(row, measured)
        self.step.clock.add("z-min", began, self.domain.deadline)
        if found is None:
            return None
        return self._made(found, self.state.counted(Asked(len(self.request.history), state.iteration, Z)))

    def _waiting_here(self) -> Indices:
        """Return the choices, (p, Z), that are under evaluation at the theta of this phase."""
        z, theta = self._waiting.z, self.state.theta
        at = [self.project(choice, theta) for choice in z]
        here = [
            c is not None and self.domain.repeats(o.config, [c]) for o, c in zip(self.request.pending, at, strict=True)
        ]
        found: Indices = z[np.array(here, dtype=bool)]
        return found

    def _count_known_pull(self, row: int, measured: Measured) -> None:
        """Count a pull whose value is known already."""
        asked = Asked(int(self.numbers[row]), self.state.iteration, Z, (), True)
        own = {a.number for a in self.state.own}
        state = self._credited(self.state, row, measured)
        self.state = state if asked.number in own else replace(state, asked=(*state.asked, asked))

    def _row_at(self, config: Configuration | None) -> int | None:
        """Return the first settled row of a configuration, or None."""
        if config is None:
            return None
        same = (row for row, o in enumerate(self.settled) if self.domain.repeats(config, [o.config]))
        return next(same, None)

    # -- proposals ----------------------------------------------------------------------------------------------

    @cached_property
    def _waiting(self) -> Encoded:
        """Configurations under evaluation."""
        return self.optimizer.encoded(self.request.pending)

    def _new(self, config: Configuration) -> bool:
        if self.domain.repeats(config, self.step.before):
            return False
        apart = self.domain.exclusions([], self.request.min_distance)
        return not apart or all(e.admits(self.domain.program.encode(config)) for e in apart)

    def _made(self, config: Configuration, after: AdmmState) -> Proposal:
        """Return a proposal with the state after it, its trace for reports, and a stop request if the residuals are small."""
        state = self.state
        shown = {"subproblem": state.phase, "iteration": state.iteration, "rho": state.rho}
        norms = {name: getattr(state, name) for name in ("primal", "dual", "outside")}
        finite = {name: value for name, value in norms.items() if np.isfinite(value)}
        stop, within = "", self.settings.tolerance
        # without integers and constraints nothing is split, and residuals say nothing
        split = self.variables.integral.any() or len(self.request.limits)
        if within is not None and split and max(norms.values()) <= within:
            stop = f"residuals {state.primal:.2g} and {state.dual:.2g} after {state.iteration} iterations"
        origin = f"{state.phase}-min"
        seconds = self.step.clock.seconds
        return Proposal(config, None, origin, seconds, after.as_dict(), trace={**shown, **finite}, stop=stop)
