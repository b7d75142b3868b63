"""Base class of optimizers with a model: data, initial design, the subclass's search, and the solver as fallback.

1. Initial design: solver-made configurations that cover the values that legal configurations can take. Known results count as
   part of it.
2. The subclass's proposal, made from the data.
3. If the subclass makes none, the solver finds a configuration that was not proposed yet, or proves that there is none.

The solver and every search over the domain end with the deadline of the request.

The initial design may go on until every algorithm that a legal configuration can have was proposed.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, Self

import numpy as np
from threadpoolctl import ThreadpoolController

from mipcash.acquisition.continuous_step import ContinuousStep
from mipcash.deadline import CUT, Clock, Deadline
from mipcash.errors import UndecidedError
from mipcash.modelling.domains import Configuration, Value
from mipcash.optimizers.data import Data
from mipcash.optimizers.in_time import solver_made
from mipcash.optimizers.optimizer import History, Limit, Optimizer, Proposal, Request
from mipcash.optimizers.outcome import FAILED, LOSS, MISSING, PRESENT
from mipcash.optimizers.prior import Prior
from mipcash.program.forms import Indices
from mipcash.program.points import Point, Points
from mipcash.space.counting import least_shown, left, modules_of, points_needed, shows
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Exclusion

ORIGIN = "initial design"
COVERING = "covering"
"""Origin of a proposal for an algorithm that was proposed least."""


def covering(domain: Domain, request: Request, limit: int) -> Proposal | None:
    """Return a configuration with an algorithm that was not proposed before; None if there is none or the design has ended.

    Args:
        domain: with the deadline of the proposal.
        limit: number of proposals after which the design ends even if algorithms are left.
    """
    program, before = domain.program, request.before
    if len(before) >= min(limit, points_needed(program)):
        return None
    shown = domain.encode(before).levels
    return _showing(domain, request, shown, 0, ORIGIN) if left(program, shown) else None


def covering_again(domain: Domain, request: Request) -> Proposal | None:
    """Return a configuration with an algorithm that was proposed least, in its turn; None if it is not its turn or there is none.

    A model knows little of an algorithm whose hyperparameters were tried once. After c proposals of each algorithm every
    2^c-th proposal may go to those with no more than c: half of the proposals at first, then a quarter, an eighth.
    """
    if not modules_of(domain.program):
        return None
    shown = domain.encode(request.before).levels
    times = least_shown(domain.program, shown)
    return None if len(shown) % 2**times else _showing(domain, request, shown, times, COVERING)


def _showing(domain: Domain, request: Request, shown: Indices, times: int, origin: str) -> Proposal | None:
    """Return a point of the design if it has an algorithm that at most ``times`` of the levels shown, (t, G), have, else None."""
    proposal = solver_made(domain, origin, request)
    return proposal if shows(domain.program, shown, domain.encode([proposal.config]).levels[0], times) else None


MOVES = 10
"""Tries of other numerical values if a proposal repeats an earlier one."""


class Settings(Protocol):
    """The settings that every optimizer with a model has."""

    @property
    def n_initial(self) -> int:
        """Size of the initial design."""
        ...


@dataclass(frozen=True)
class Step:
    """Context of one ask: the request, the data, and a clock of its parts.

    Attributes:
        request: the request.
        data: the settled observations.
        clock: seconds by part.
    """

    request: Request
    data: Data
    clock: Clock

    @property
    def rng(self) -> np.random.Generator:
        return self.request.rng

    @property
    def before(self) -> list[Configuration]:
        """Every configuration proposed so far."""
        return self.request.before


class ModelBased(Optimizer):
    """An optimizer with a model; subclasses implement ``_search``."""

    settings: Settings
    cover: int = 0
    """Number of proposals up to which the initial design may go on until every algorithm was proposed."""

    def __init__(self, domain: Domain) -> None:
        self.domain, self.program, self.scale = domain, domain.program, domain.scale
        self.prior = Prior.of(domain)

    def restricted(self, fixed: Mapping[str, Value]) -> Optimizer:
        made = type(self)(self.domain.restricted(fixed), self.settings)  # type: ignore[call-arg]  # see ``Optimizer``
        made.cover = 0  # the model chooses the rest
        return made

    @abstractmethod
    def _search(self, step: Step) -> Proposal | None:
        """Return a new proposal; None if the search found none."""

    def propose(self, request: Request) -> Proposal:
        """See ``mipcash.optimizers.optimizer.Optimizer.ask``."""
        within = self.until(Deadline.after(request.seconds))
        if (place := shown(request.history)) < self.settings.n_initial or not any_success(request):
            if self.prior is not None and place % 2 and (config := self._expected(within, request)) is not None:
                return Proposal(config, None, "prior", state=request.state)
            return solver_made(within.domain, ORIGIN, request)
        if (further := covering(within.domain, request, self.cover)) is not None:
            return further
        step = Step(request, self.data(request.history, request.limits), Clock())
        # Threads do not speed up matrices of a few hundred rows, and with one thread sums are the same on all machines.
        with self.threads.limit(limits=1):
            found = within._searched(step)
        proposal = found or solver_made(within.domain, "remaining configuration", request)
        cut = [*step.clock.cut, *proposal.trace.get(CUT, ())]
        return replace(proposal, trace={**proposal.trace, CUT: cut}) if cut else proposal

    @cached_property
    def threads(self) -> ThreadpoolController:
        """Controller of the thread pools of numerical libraries; cached, as creating it takes longer than setting a limit."""
        return ThreadpoolController()

    def _expected(self, within: Self, request: Request) -> Configuration | None:
        """Return a new legal configuration drawn by its prior weight; None if the draw is a repeat or too near to others."""
        assert self.prior is not None
        try:
            config = self.prior.drawn(within.domain, request.rng)
        except UndecidedError:
            return None
        levels = within.domain.encode([config])[0].levels
        excluded = within.domain.exclusions(request.before, request.min_distance)
        new = not self.domain.repeats(config, request.before) and all(e.admits(levels) for e in excluded)
        return config if new else None

    def until(self, deadline: Deadline) -> Self:
        """Return a copy of the optimizer whose searches and solver end at the deadline."""
        twin = copy.copy(self)
        twin.domain = self.domain.until(deadline)
        return twin

    def _searched(self, step: Step) -> Proposal | None:
        """Return the proposal of the search; None if it found none, or none before the deadline."""
        try:
            return self._search(step)
        except UndecidedError:
            if self.domain.deadline.endless:
                raise
            step.clock.cut.append("search")
            return None

    # -- for searches -------------------------------------------------------------------------------------------

    def data(self, history: History, limits: Sequence[Limit] = ()) -> Data:
        """Return the data of a history, for the loss and the constrained outputs."""
        return Data.of(self.domain, history, limits)

    def awaited(self, request: Request, output: str = LOSS) -> Points:
        """Return the points of pending trials whose value of this output is still missing."""
        asked = (o for o in request.pending if not o.asked or output in o.asked)
        waiting = [o.config for o in asked if o.outcome[output].status == MISSING]
        return self.domain.encode(waiting)

    def _excluded(self, step: Step) -> list[Exclusion]:
        """Return the levels that may not be proposed."""
        return self.domain.exclusions(step.before, step.request.min_distance)

    def _moved(self, numbers: ContinuousStep, found: Point, step: Step) -> Point | None:
        """Return a point with other numerical values for a point whose configuration was proposed before.

        Such a repeat means that the model expects no improvement beyond its noise. The new values are near those of the best
        observation, if it has the same levels, or near the given ones. Return None if every try is a repeat too.
        """
        best = step.data.best(1)[0]
        starts = [best, found] if np.array_equal(best.levels, found.levels) else [found]
        for k in range(MOVES):
            if k and self.domain.deadline.passed:
                break
            start = starts[k % len(starts)]
            moved = Point(start.levels, numbers.perturbed(start, step.rng))
            if np.array_equal(moved.units, start.units):  # nothing can move in this part of the legal set
                units = numbers.beside(start, step.rng)
                if units is None:
                    continue
                moved = Point(start.levels, units)
            if not self.domain.repeats(self.domain.decode(moved), step.before):
                return moved
        return None


def any_success(request: Request) -> bool:
    """Return True if at least one legal evaluation succeeded, so that a model can be fitted.

    An evaluation succeeded if it has a loss and no constrained output failed, or if all constrained outputs are known.
    """
    return any(
        (o.loss is not None and all(o.outcome[l.output].status != FAILED for l in request.limits))
        or (request.limits and all(o.outcome[l.output].status == PRESENT for l in request.limits))
        for o in request.history
        if o.legal
    )


def shown(history: History) -> int:
    """Return the number of proposals and known results that count for the initial design, each configuration once."""
    if any(o.asked for o in history):  # with decoupled evaluation a configuration may be proposed several times
        return len({repr(o.config) for o in history})
    known = {repr(o.config) for o in history if o.known}
    return sum(not o.known for o in history) + len(known)
