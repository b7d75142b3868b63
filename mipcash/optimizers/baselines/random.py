"""Random legal search: the baseline that every optimizer must beat."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mipcash.backends.base import Backend
from mipcash.modelling.domains import Configuration
from mipcash.optimizers.base import History, Optimizer, Proposal, solver_made
from mipcash.space.compiled import Apart
from mipcash.space.space import Space


@dataclass(frozen=True)
class RandomSettings:
    """Settings of random search.

    Attributes:
        attempts: samples drawn one by one; the first that is new is proposed.
    """

    attempts: int = 8


class RandomSearch(Optimizer):
    """Proposes legal, well-spread samples; never the same configuration twice."""

    name: ClassVar[str] = "random"

    def __init__(self, space: Space, backend: Backend, settings: RandomSettings | None = None) -> None:
        self.space, self.backend = space, backend
        self.settings = settings or RandomSettings()

    def ask(
        self, history: History, rng: np.random.Generator, state: Mapping[str, Any], apart: Apart | None = None
    ) -> Proposal:
        """See :meth:`mipcash.optimizers.base.Optimizer.ask`."""
        began = time.perf_counter()
        before = [o.config for o in history]
        for _ in range(self.settings.attempts):
            (config,) = self.space.sample(1, rng)
            if not self.space.repeats(config, before) and self._far(config, apart):
                return Proposal(config, None, "random", {"sample": time.perf_counter() - began})
        # a space nearly used up: the solver finds what is left, or proves that nothing is
        return solver_made(self.space, self.backend, "what is left", history, rng, state, apart)

    def _far(self, config: Configuration, apart: Apart | None) -> bool:
        levels = self.space.oracle(self.backend).program.encode(config)
        return all(e.admits(levels) for e in self.space.exclusions([], apart))
