"""What optimizers with a model share: the data, the loop around a search of their own, and the solver for the rest.

1. initial design: solver-made configurations that cover the values a legal configuration can take
2. the subclass's proposal, made from the data
3. where it finds none, the solver says what is left, or proves that nothing is
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from mipcash.acquisition.alternating import Clock
from mipcash.acquisition.continuous_step import ContinuousStep
from mipcash.acquisition.mixed_search import LevelsAndUnits
from mipcash.backends.base import Backend
from mipcash.modelling.domains import Configuration
from mipcash.optimizers.base import History, Optimizer, Proposal, Request, solver_made
from mipcash.optimizers.outcome import FAILED, LOSS, MISSING
from mipcash.program.forms import Indices, Vector
from mipcash.program.unit_scale import UnitScale
from mipcash.space.exclusion import Exclusion
from mipcash.space.space import Space
from mipcash.surrogates.linear.blocks import imputed

MOVES = 10
"""Other numbers that are tried where a proposal repeats an earlier one."""


class Settings(Protocol):
    """What the settings of every optimizer with a model have."""

    @property
    def n_initial(self) -> int:
        """Size of the initial design."""
        ...


@dataclass(frozen=True)
class Data:
    """What a model learns from: t settled observations, encoded once per proposal.

    Attributes:
        levels: shape (t, G).
        z: their binaries, shape (t, n_z).
        u: unit values, shape (t, D).
        losses: failures at the worst loss, shape (t,).
        order: rows of the done observations, best first.
    """

    levels: Indices
    z: Vector
    u: Vector
    losses: Vector
    order: Indices

    def stalled(self) -> int:
        """Observations since the incumbent was found."""
        return len(self.losses) - 1 - (int(self.order[0]) if len(self.order) else 0)

    def best(self, count: int | None = None) -> list[LevelsAndUnits]:
        """The best observations; None: all that are done."""
        return [(self.levels[k], self.u[k]) for k in self.order[:count]]


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

    def __init__(self, space: Space, backend: Backend) -> None:
        self.space, self.backend = space, backend
        self.oracle = space.oracle(backend)
        self.program = self.oracle.program
        self.scale = UnitScale.of(space, self.program)

    @abstractmethod
    def _search(self, step: Step) -> Proposal | None:
        """A proposal that is new; None where the search found none."""

    def propose(self, request: Request) -> Proposal:
        """See :meth:`mipcash.optimizers.base.Optimizer.ask`."""
        done = any(o.loss is not None for o in request.history)
        if len(request.history) < self.settings.n_initial or not done:
            return solver_made(self.space, self.backend, "initial design", request)
        # matrices of a few hundred rows gain nothing from more threads, and one thread gives the same sums everywhere
        with threadpool_limits(1):
            proposal = self._search(Step(request, self.data(request.history), Clock()))
        return proposal or solver_made(self.space, self.backend, "what is left", request)

    # -- for searches -------------------------------------------------------------------------------------------

    def data(self, history: History) -> Data:
        """What a history says of the loss: observations that have one, and failures."""
        known = [o for o in history if o.outcome[LOSS].status != MISSING]
        levels, u = self._points([o.config for o in known])
        losses = np.array([np.nan if o.loss is None else o.loss for o in known])
        failed = np.array([k for k, o in enumerate(known) if o.outcome[LOSS].status == FAILED], dtype=np.int64)
        done = np.flatnonzero(np.isfinite(losses))
        order = done[np.argsort(losses[done], kind="stable")]
        return Data(levels, self.program.one_hot(levels).astype(float), u, imputed(losses, failed), order)

    def _points(self, configs: Sequence[Configuration]) -> tuple[Indices, Vector]:
        """Levels (B, G) and unit values (B, D) of configurations."""
        levels = np.array([self.program.encode(c) for c in configs], dtype=np.int64)
        return levels.reshape(len(configs), len(self.program.groups)), self.scale.units(configs)

    def _excluded(self, step: Step) -> list[Exclusion]:
        """Levels that may not be proposed."""
        return self.space.exclusions(step.before, step.request.apart)

    def _configuration(self, levels: Indices, u: Vector) -> Configuration:
        """Effective levels and unit values as a configuration, made whole and checked by the space."""
        natural = self.scale.natural(u)
        return self.space.configuration(self.oracle.unproven(levels, natural, math.nan), natural)

    def _moved(self, numbers: ContinuousStep, found: LevelsAndUnits, step: Step) -> Vector | None:
        """Other numbers beside the same levels, where a proposal repeats an earlier one; None: none is new."""
        levels, u = found
        before = step.before
        for _ in range(MOVES):
            moved = numbers.wander(levels, u, step.rng)
            if not self.space.repeats(self._configuration(levels, moved), before):
                return moved
        return None
