"""Random legal search: the baseline that every optimizer must beat."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mipcash.deadline import Deadline
from mipcash.errors import UndecidedError, check_settings
from mipcash.modelling.domains import Configuration, Value
from mipcash.optimizers.in_time import solver_made
from mipcash.optimizers.optimizer import Optimizer, Proposal, Request
from mipcash.space.domain import Domain
from mipcash.space.exclusion import MinimumDistance


@dataclass(frozen=True)
class RandomSettings:
    """Settings of the optimizer ``random``.

    Args:
        attempts: number of samples drawn one by one; the first new one is proposed.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> method = mc.Method("random", settings=mc.settings.RandomSettings(attempts=4))
        >>> mc.minimize(lambda c: c["a"], space, 4, optimizer=method, progress=False).n_done
        4
    """

    attempts: int = 8

    def __post_init__(self) -> None:
        check_settings(self, attempts=0)


class RandomSearch(Optimizer):
    """Proposes legal, well-spread samples, and never the same configuration twice.

    It ignores losses and outcome constraints when it proposes, but recommends a feasible observation.
    """

    name: ClassVar[str] = "random"
    takes_limits = True
    reads_losses = False

    def __init__(self, domain: Domain, settings: RandomSettings | None = None) -> None:
        self.domain = domain
        self.settings = settings or RandomSettings()

    def restricted(self, fixed: Mapping[str, Value]) -> Optimizer:
        return RandomSearch(self.domain.restricted(fixed), self.settings)

    def propose(self, request: Request) -> Proposal:
        """See ``mipcash.optimizers.optimizer.Optimizer.ask``."""
        began, domain = time.perf_counter(), self.domain.until(Deadline.after(request.seconds))
        for _ in range(self.settings.attempts):
            try:
                (config,) = domain.sample(1, request.rng)
            except UndecidedError:
                if request.seconds is None:
                    raise
                break
            if not self.domain.repeats(config, request.before) and self._far(config, request.min_distance):
                return Proposal(config, None, "random", {"sample": time.perf_counter() - began})
        # The space is nearly exhausted: the solver finds a new configuration, or proves that there is none.
        return solver_made(domain, "remaining configuration", request)

    def _far(self, config: Configuration, min_distance: MinimumDistance | None) -> bool:
        levels = self.domain.program.encode(config)
        return all(e.admits(levels) for e in self.domain.exclusions([], min_distance))
