"""Questions to the optimizer, and the check of what it answers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mipcash.optimizers.goals import MINIMISED, Goals
from mipcash.optimizers.optimizer import History, Limit, Optimizer, Proposal, Request
from mipcash.optimizers.scalarising import scalarised, weights_of
from mipcash.study.finalists import answer
from mipcash.study.records.trials import proposal_row
from mipcash.study.text import listed, shown
from mipcash.study.trial import IllegalProposalError

if TYPE_CHECKING:
    from mipcash.space.exclusion import Apart
    from mipcash.space.space import Space
    from mipcash.study.storage.protocol import TrialRow


WEIGHTS = 1
"""The stream of random numbers, beside that of a proposal, that its weights of several objectives come from."""


@dataclass(frozen=True)
class Asking:
    """What stays the same from one ask of a study to the next.

    Attributes:
        goals: of several objectives each proposal minimises one weighting.
    """

    space: Space
    optimizer: Optimizer
    seed: int
    limits: tuple[Limit, ...]
    costs: Mapping[str, float] = field(default_factory=dict)
    goals: Goals = MINIMISED

    def proposal(
        self, history: History, state: Mapping[str, Any], apart: Apart | None, seconds: float | None
    ) -> TrialRow:
        """The row of the trial that follows a history, no attempt begun.

        Raises:
            SpaceExhaustedError: nothing is left.
            IllegalProposalError: the proposal is illegal.
            TypeError: the optimizer returned what is no proposal, or wants outputs that there are not.
        """
        began, number = time.perf_counter(), len(history)
        rng = np.random.default_rng(np.random.SeedSequence([self.seed, number]))
        kept = apart if apart and apart.configs and apart.distance else None
        limits = self.limits
        if self.goals.several:  # by a generator of its own, so that what the optimizer draws stays what it is for one
            drawn = np.random.default_rng(np.random.SeedSequence([self.seed, number, WEIGHTS]))
            history, limits = scalarised(history, limits, self.goals, weights_of(drawn, self.goals))
        proposal = self.optimizer.ask(Request(history, rng, state, kept, limits, self.costs, seconds))
        if not isinstance(proposal, Proposal):
            raise TypeError(f"optimizer {self.optimizer.name!r} must return a Proposal, and returned {shown(proposal)}")
        self._check(number, proposal)
        if self.costs and not proposal.outputs:
            proposal = replace(proposal, outputs=tuple(self.costs))
        return proposal_row(self.space, self.optimizer, number, proposal, began)

    def recommended(self, history: History) -> int | None:
        """The number of the trial that the optimizer recommends; None: it recommends none."""
        found = None if self.goals.several else answer(self.optimizer, history, self.limits)
        if found is None:
            return None
        for number, observation in enumerate(history):
            if observation is found:
                return number
        raise TypeError(
            f"optimizer {self.optimizer.name!r} recommended {found!r}, which is none of the observations that it was given"
        )

    def finalists(self, history: History, count: int) -> list[int]:
        """Numbers of the trials that are best by the search alone, best first."""
        searched = [o for o in history if not o.repeat]
        found = self.optimizer.finalists(searched, self.limits, count)
        return [next(k for k, o in enumerate(history) if o is one) for one in found]

    def _check(self, number: int, proposal: Proposal) -> None:
        violations = self.space.validate(proposal.config)
        if violations:
            reasons = "; ".join(v.message for v in violations)
            raise IllegalProposalError(
                f"optimizer {self.optimizer.name!r} proposed an illegal configuration as trial {number}: {reasons}. "
                f"This is a bug, please report it with the space and this configuration: {proposal.config!r}"
            )
        unknown = [name for name in proposal.outputs if self.costs and name not in self.costs]
        if unknown:
            raise TypeError(
                f"optimizer {self.optimizer.name!r} wants the outputs {listed(unknown)} evaluated, and there are "
                f"{listed(self.costs)}"
            )
