"""What optimizers with a model share: the data, the loop around a search of their own, and the solver for the rest.

1. initial design: solver-made configurations that cover the values a legal configuration can take; what is known already counts
   as a part of it
2. the subclass's proposal, made from the data
3. where it finds none, the solver says what is left, or proves that nothing is

All of it keeps the seconds of the request: the solver and every search over the domain end with its deadline.

The initial design goes on until every algorithm that a legal configuration can have was proposed.
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

from mipcash.acquisition.clock import CUT, Clock
from mipcash.acquisition.continuous_step import ContinuousStep
from mipcash.deadline import Deadline
from mipcash.errors import UndecidedError
from mipcash.modelling.domains import Configuration, Value
from mipcash.optimizers.data import Data
from mipcash.optimizers.in_time import solver_made
from mipcash.optimizers.optimizer import History, Limit, Optimizer, Proposal, Request
from mipcash.optimizers.outcome import FAILED, LOSS, MISSING, PRESENT
from mipcash.program.points import Point, Points
from mipcash.space.counting import left, points_needed, shows
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Exclusion

ORIGIN = "initial design"


def covering(domain: Domain, request: Request, limit: int) -> Proposal | None:
    """A configuration with an algorithm that none before has; None where there is none, or enough were proposed.

    Args:
        domain: with the deadline of the proposal.
        limit: proposals from which on the design has ended, whatever is left.
    """
    program, before = domain.program, request.before
    if len(before) >= min(limit, points_needed(program)):
        return None
    shown = domain.encode(before).levels
    if not left(program, shown):
        return None
    proposal = solver_made(domain, ORIGIN, request)
    return proposal if shows(program, shown, domain.encode([proposal.config]).levels[0]) else None


MOVES = 10
"""Other numbers that are tried where a proposal repeats an earlier one."""


class Settings(Protocol):
    """What the settings of every optimizer with a model have."""

    @property
    def n_initial(self) -> int:
        """Size of the initial design."""
        ...


@dataclass(frozen=True)
class Step:
    """One ask: what it was given, the data, and the clock of its parts.

    Attributes:
        request: what was asked.
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
    """A search with a model inside the usual loop; subclasses give ``_search``."""

    settings: Settings
    cover: int = 0
    """Proposals that the initial design may go on for until every algorithm was shown."""

    def __init__(self, domain: Domain) -> None:
        self.domain, self.program, self.scale = domain, domain.program, domain.scale

    def restricted(self, fixed: Mapping[str, Value]) -> Optimizer:
        made: Optimizer = type(self)(self.domain.restricted(fixed), self.settings)  # type: ignore[call-arg]  # as of every optimizer
        return made

    @abstractmethod
    def _search(self, step: Step) -> Proposal | None:
        """A proposal that is new; None where the search found none."""

    def propose(self, request: Request) -> Proposal:
        """See :meth:`mipcash.optimizers.optimizer.Optimizer.ask`."""
        within = self.until(Deadline.after(request.seconds))
        if shown(request.history) < self.settings.n_initial or not told(request):
            return solver_made(within.domain, "initial design", request)
        if (further := covering(within.domain, request, self.cover)) is not None:
            return further
        step = Step(request, self.data(request.history, request.limits), Clock())
        # matrices of a few hundred rows gain nothing from more threads, and one thread gives the same sums everywhere
        with self.threads.limit(limits=1):
            found = within._searched(step)
        proposal = found or solver_made(within.domain, "what is left", request)
        cut = [*step.clock.cut, *proposal.trace.get(CUT, ())]
        return replace(proposal, trace={**proposal.trace, CUT: cut}) if cut else proposal

    @cached_property
    def threads(self) -> ThreadpoolController:
        """Of the libraries of matrices; to look for these takes longer than to limit them."""
        return ThreadpoolController()

    def until(self, deadline: Deadline) -> Self:
        """The same optimizer, whose searches and solver end then."""
        twin = copy.copy(self)
        twin.domain = self.domain.until(deadline)
        return twin

    def _searched(self, step: Step) -> Proposal | None:
        """What the search finds; None also where the time was up before it had anything."""
        try:
            return self._search(step)
        except UndecidedError:
            if self.domain.deadline.endless:
                raise
            step.clock.cut.append("search")
            return None

    # -- for searches -------------------------------------------------------------------------------------------

    def data(self, history: History, limits: Sequence[Limit] = ()) -> Data:
        """What a history says of the loss and of limited outputs."""
        return Data.of(self.domain, history, limits)

    def awaited(self, request: Request, output: str = LOSS) -> Points:
        """Where an output is being evaluated: the points of pending trials that do not tell it yet."""
        asked = (o for o in request.pending if not o.asked or output in o.asked)
        waiting = [o.config for o in asked if o.outcome[output].status == MISSING]
        return self.domain.encode(waiting)

    def _excluded(self, step: Step) -> list[Exclusion]:
        """Levels that may not be proposed."""
        return self.domain.exclusions(step.before, step.request.apart)

    def _moved(self, numbers: ContinuousStep, found: Point, step: Step) -> Point | None:
        """Other numbers beside the same levels, where a proposal repeats an earlier one; None: none is new."""
        for _ in range(MOVES):
            moved = Point(found.levels, numbers.wander(found, step.rng))
            if not self.domain.repeats(self.domain.decode(moved), step.before):
                return moved
        return None


def told(request: Request) -> bool:
    """Whether there is anything to learn from: an evaluation that worked.

    It has a loss and no limited output that failed, or, where losses are known of what keeps the limits alone, all limits.
    """
    return any(
        (o.loss is not None and all(o.outcome[l.output].status != FAILED for l in request.limits))
        or (request.limits and all(o.outcome[l.output].status == PRESENT for l in request.limits))
        for o in request.history
        if o.legal
    )


def shown(history: History) -> int:
    """How much of an initial design a history makes up: what was proposed, and what is known, each configuration once."""
    if any(o.asked for o in history):  # a configuration may be proposed again for other outputs
        return len({repr(o.config) for o in history})
    elsewhere = {repr(o.config) for o in history if o.known}
    return sum(not o.known for o in history) + len(elsewhere)
