"""What the baselines share: the loop around a model of theirs, and the solver for what the model has no part in.

1. initial design: solver-made configurations that cover the values a legal configuration can take
2. the baseline's own search for a configuration that is new
3. where it finds none, the solver says what is left, or proves that nothing is
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from mipcash.acquisition.alternating import Clock
from mipcash.backends.base import Backend
from mipcash.errors import SpaceExhaustedError
from mipcash.features.numbers import NumberScale
from mipcash.optimizers.base import DONE, FAILED, PENDING, History, Observation, Optimizer, Proposal
from mipcash.oracle.core import Apart
from mipcash.oracle.space import Space
from mipcash.program.forms import Indices, Vector
from mipcash.space.domains import Configuration
from mipcash.surrogates.models import imputed


class BaselineSettings(Protocol):
    """What the settings of every baseline have."""

    @property
    def n_initial(self) -> int:
        """Size of the initial design."""
        ...


class Baseline(Optimizer):
    """A search of its own inside the usual loop; subclasses give ``_search``."""

    settings: BaselineSettings

    def __init__(self, space: Space, backend: Backend) -> None:
        self.space, self.backend = space, backend
        self.oracle = space.oracle(backend)
        self.program = self.oracle.program
        self.scale = NumberScale.of(space, self.program)

    @abstractmethod
    def _search(
        self,
        settled: Sequence[Observation],
        history: History,
        rng: np.random.Generator,
        apart: Apart | None,
        clock: Clock,
    ) -> Configuration | None:
        """A new configuration; None where the search found none."""

    def ask(
        self, history: History, rng: np.random.Generator, state: Mapping[str, Any], apart: Apart | None = None
    ) -> Proposal:
        """See :meth:`mipcash.optimizers.base.Optimizer.ask`."""
        settled = [o for o in history if o.status != PENDING]
        if len(history) < self.settings.n_initial or not any(o.status == DONE for o in settled):
            return self._solver_made("initial design", history, rng, apart)
        clock = Clock()
        with threadpool_limits(1):  # one thread gives the same sums everywhere
            config = self._search(settled, history, rng, apart, clock)
        if config is None:
            return self._solver_made("what is left", history, rng, apart)
        return Proposal(config, None, self.name, clock.seconds)

    def _solver_made(self, origin: str, history: History, rng: np.random.Generator, apart: Apart | None) -> Proposal:
        began = time.perf_counter()
        before = [o.config for o in history]
        ((config, solution),) = self.space.design(1, rng, self.backend, before, apart)
        if self.space.repeats(config, before):
            raise SpaceExhaustedError(
                f"no configuration of space {self.space.name!r} is left that was not proposed before"
            )
        return Proposal(config, solution, origin, {"mip": time.perf_counter() - began})

    # -- for searches -------------------------------------------------------------------------------------------

    def _points(self, configs: Sequence[Configuration]) -> tuple[Indices, Vector]:
        """Levels (B, G) and unit values (B, D) of configurations."""
        levels = np.array([self.program.encode(c) for c in configs], dtype=np.int64)
        return levels.reshape(len(configs), -1), self.scale.units(configs)

    def _losses(self, settled: Sequence[Observation]) -> Vector:
        """Losses, failures at the worst one, shape (t,)."""
        losses = np.array([np.nan if o.loss is None else o.loss for o in settled])
        return imputed(losses, np.array([k for k, o in enumerate(settled) if o.status == FAILED], dtype=np.int64))

    def _configuration(self, levels: Indices, u: Vector) -> Configuration:
        """Effective levels and unit values as a configuration, which may be illegal."""
        on = self.scale.active(self.program.one_hot(levels)[None])[0]
        natural = self.scale.natural(u)
        active = {label: natural[label] for label, a in zip(self.scale.labels, on, strict=True) if a}
        return self.program.decode(levels, active)
