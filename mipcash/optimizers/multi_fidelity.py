"""Multi-fidelity search: the optimizer chooses a configuration at full fidelity, and the gain per cost chooses its fidelity.

Notation
    x           a configuration without its fidelity;   s its fidelity;   S full fidelity
    f(x, s)     the loss, of which only f(x, S) counts
    c(s)        cost of an evaluation, in evaluations at full fidelity
    rho(s)      posterior correlation of f(x, s) and f(x, S)

Evaluations below full fidelity are observations that the surrogate learns from, but no incumbents. The optimizer searches the
sub-space s = S. Its proposal x is evaluated at the fidelity with the largest gain per cost,

    EI(x, S) rho(s) / c(s),

the augmented expected improvement of Huang, Allen, Notz and Miller (2006) without its factor for noise. EI(x, S) does not depend
on s. In rho the variance of f(x, s) includes the fitted noise, so that 1 - rho(s)^2 is the share of the variance of f(x, S) that
remains after the evaluation. A fidelity at which x was evaluated, or a point within NEAR of x, is not chosen again: a promising x
is evaluated at higher and higher ones.

The first evaluation is at full fidelity, so that there is an incumbent. As long as it failed or violated an outcome constraint, low
fidelities may cost as much as one evaluation before the next one at full fidelity. Before a surrogate can be fitted, fidelities
take turns, the lowest first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from mipcash.errors import InfeasibleSpaceError
from mipcash.modelling.domains import Configuration, Value
from mipcash.modelling.fidelity import Fidelity
from mipcash.optimizers.loss_model import LossModel
from mipcash.optimizers.optimizer import History, Limit, Observation, Optimizer, Proposal, Request
from mipcash.optimizers.outcome import FAILED
from mipcash.space.domain import Domain

RATIO = 3.0
"""Ratio of the costs of successive fidelities among which one is chosen."""
NEAR = 0.01
"""Largest difference on the unit scale of points with the same levels of which one is enough at a low fidelity."""
STATE = "fidelity"
"""Key of the hyperparameters of the model that chooses the fidelity, in the state of the optimizer."""


class MultiFidelity(Optimizer):
    """An optimizer that chooses the fidelity of its proposals; see the module's description.

    Args:
        whole: the optimizer of the space; it searches sub-spaces (``restricted``).
        domain: the space.
        fidelity: its fidelity.

    Raises:
        InfeasibleSpaceError: no legal configuration has full fidelity.
        MipcashError: the optimizer cannot search sub-spaces.
    """

    def __init__(self, whole: Optimizer, domain: Domain, fidelity: Fidelity) -> None:
        self.name = whole.name  # type: ignore[misc]  # that of the optimizer it extends
        self.takes_limits, self.settings = whole.takes_limits, getattr(whole, "settings", None)
        self.whole, self.domain, self.fidelity = whole, domain, fidelity
        parameter = domain.declaration.parameters[fidelity.label].domain
        self.full: Value = parameter.canonical(parameter.high)  # type: ignore[union-attr]  # a Real or an Integer
        try:
            self.at_full = whole.restricted({fidelity.label: self.full})
        except InfeasibleSpaceError as error:
            raise InfeasibleSpaceError(
                f"{error}. Answers are at full fidelity, {fidelity.label} = {self.full!r}: lower its upper end, or relax the rule"
            ) from error

    def restricted(self, fixed: Mapping[str, Value]) -> Optimizer:
        """See ``Optimizer``; a fixed fidelity is not chosen."""
        part = self.whole.restricted(fixed)
        if self.fidelity.label in fixed:
            return part
        return MultiFidelity(part, self.domain.restricted(fixed), self.fidelity)

    def propose(self, request: Request) -> Proposal:
        """See ``mipcash.optimizers.optimizer.Optimizer.ask``."""
        found = self.at_full.propose(request)
        kept = {name: fit for name, fit in request.state.items() if name == STATE}
        found = replace(found, state={**found.state, **kept})
        if self._lacks_answer(request):
            return found
        ladder = self._ladder(found.config, request.before)
        if len(ladder) == 1 or not any(o.legal and o.status != FAILED for o in request.history):
            return found
        model = LossModel.of(self.domain, request.history, request.limits, request.state.get(STATE))
        if model is None:
            return _at(found, ladder[-1 - len(request.history) % len(ladder)])
        gains = self._gains(model, ladder)
        trace = {
            **found.trace,
            "log gain per cost": dict(zip((str(c[self.fidelity.label]) for c in ladder), gains, strict=True)),
        }
        state = {**found.state, STATE: model.state}
        return replace(_at(found, ladder[int(np.argmax(gains))]), trace=trace, state=state)

    def ranked(self, history: History, limits: Sequence[Limit] = ()) -> list[Observation]:
        return self.at_full.ranked(history, limits)

    def recommend(self, history: History, limits: Sequence[Limit] = ()) -> Observation | None:
        return self.at_full.recommend(history, limits)

    def finalists(self, history: History, limits: Sequence[Limit], count: int) -> list[Observation]:
        return self.at_full.finalists(history, limits, count)

    @cached_property
    def values(self) -> list[Value]:
        """Fidelities from the full one down, each of a cost lower by ``RATIO``; the last one is the lowest possible."""
        parameter: Any = self.domain.declaration.parameters[self.fidelity.label].domain
        low, high = float(parameter.low), float(parameter.high)
        steps = int(np.floor(np.log(high / low) * self.fidelity.power / np.log(RATIO) + 1e-9))
        wanted = [high * RATIO ** (-k / self.fidelity.power) for k in range(steps + 1)] + [low]
        return list(dict.fromkeys(parameter.from_unit(parameter.to_unit(value)) for value in wanted))

    def _lacks_answer(self, request: Request) -> bool:
        """Return True if no answer is known, and low fidelities have cost as much as one evaluation since the latest full one."""
        spent = 0.0
        for o in reversed(request.history):
            cost = self.fidelity.cost(o.config)
            if cost >= 1.0:
                break
            spent += cost
        return spent >= 1.0 and self.recommend(request.history, request.limits) is None

    def _ladder(self, config: Configuration, before: Sequence[Configuration]) -> list[Configuration]:
        """Return the configuration at full fidelity, then at lower ones, as far as these are legal and new."""
        lower = [{**config, self.fidelity.label: value} for value in self.values if value != self.full]
        known, tried = self.domain.encode(before), self.domain.encode(lower)
        same = (tried.levels[:, None] == known.levels).all(axis=2)
        near = same & (np.abs(tried.units[:, None] - known.units) <= NEAR).all(axis=2)
        new = (c for c, there in zip(lower, near.any(axis=1).tolist(), strict=True) if not there)
        return [config, *(c for c in new if self.domain.space.is_legal(c))]

    def _gains(self, model: LossModel, ladder: Sequence[Configuration]) -> list[float]:
        """Return log rho(s) - log c(s) of a configuration at each fidelity."""
        covariance = model.posterior.beside(self.domain.encode(ladder)).between
        observed = np.diag(covariance) + model.posterior.fitted_noise
        rho = np.sqrt(np.maximum(1e-12, covariance[0] ** 2 / (covariance[0, 0] * observed)))
        return [float(np.log(r) - np.log(self.fidelity.cost(c))) for r, c in zip(rho, ladder, strict=True)]


def _at(found: Proposal, config: Configuration) -> Proposal:
    """Return the proposal at another fidelity, which a solution of the full one does not prove anything about."""
    return replace(found, config=config, solution=found.solution if config == found.config else None)
