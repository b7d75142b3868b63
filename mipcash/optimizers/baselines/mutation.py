"""Mutation of the best: legal random changes of one of the best observations, without a model.

1. the solver's design
2. a parent among the best, each half as likely as the one before it; under limits the best are what keeps them, by loss, then what
   violates them by the least (Deb 2000)
3. one or two legal moves of :mod:`annealing`'s walk from it, more and more where all of them lead to what was proposed before
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mipcash.errors import at_least
from mipcash.optimizers.base import Proposal
from mipcash.optimizers.baselines.annealing import CoolingSettings, Walk
from mipcash.optimizers.model_based import ModelBased, Step
from mipcash.program.points import Point
from mipcash.space.domain import Domain

MORE = 30
"""Tries after which one more move is made at once."""


@dataclass(frozen=True)
class MutationSettings:
    """Settings of the search by mutation.

    Attributes:
        n_initial: size of the initial design.
        parents: best observations that are changed.
        tries: draws after which the solver says what is left.
    """

    n_initial: int = 10
    parents: int = 5
    tries: int = 120

    def __post_init__(self) -> None:
        at_least(self, n_initial=1, parents=1, tries=0)


class Mutation(ModelBased):
    """See the module's description."""

    name: ClassVar[str] = "mutation"
    takes_limits = True

    def __init__(self, domain: Domain, settings: MutationSettings | None = None) -> None:
        super().__init__(domain)
        self.settings: MutationSettings = settings or MutationSettings()

    def _search(self, step: Step) -> Proposal | None:
        began, rng = time.perf_counter(), step.rng
        best, excluded = step.data.best(self.settings.parents), self._excluded(step)
        chances = 0.5 ** np.arange(len(best))
        memory = np.minimum(best.levels[0], [len(g.values) - 1 for g in self.program.groups])
        walk, found = Walk(self.domain, CoolingSettings(), memory), None
        for attempt in range(self.settings.tries):
            if self.domain.deadline.passed:
                break
            parent = best[int(rng.choice(len(best), p=chances / chances.sum()))]
            point = self._changed(walk, parent, 1 + int(rng.integers(2)) + attempt // MORE, rng)
            admitted = all(e.admits(point.levels) for e in excluded)
            if admitted and not self.domain.repeats(self.domain.raw(point), step.before):
                found = point
                break
        step.clock.add("mutation", began, self.domain.deadline)
        # the space itself has the last word, as for every proposal
        return None if found is None else Proposal(self.domain.decode(found), None, self.name, step.clock.seconds)

    def _changed(self, walk: Walk, point: Point, moves: int, rng: np.random.Generator) -> Point:
        """After so many legal moves; moves that lead nowhere are left out."""
        for _ in range(moves):
            point = walk.neighbour(point, rng) or point
        return point
