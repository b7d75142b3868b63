"""Calls of a study's optimizer, and checks of the results.

Trial k is proposed with a generator derived from (seed, k), so that a resumed study gives the same proposals as an uninterrupted
one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mipcash.errors import IllegalProposalError, SpaceError
from mipcash.modelling.domains import Configuration, Value, same_value
from mipcash.optimizers.objectives import Objectives
from mipcash.optimizers.optimizer import History, Limit, Optimizer, Proposal, Request
from mipcash.optimizers.scalarising import scalarised, weights_of
from mipcash.space.compiled import compiled
from mipcash.space.novelty import exclusions, repeats
from mipcash.study.finalists import answer
from mipcash.study.records.trials import outputs_of, proposal_row
from mipcash.text import listed, shown

if TYPE_CHECKING:
    from mipcash.space.exclusion import MinimumDistance
    from mipcash.space.space import Space
    from mipcash.study.storage.protocol import TrialRow

WEIGHTS = 1
"""Key of the random stream for the weights of several objectives, separate from the stream of the proposal itself."""


class Proposer:
    """An optimizer with the data that all proposals of a study share.

    Args:
        limits: outcome constraints in minimisation form.
        costs: of one evaluation of each output, by name; empty: evaluations are not decoupled.
        objectives: the objectives. With several, each proposal minimises a random weighting of them.

    Attributes:
        lock: held around calls of the optimizer, which take seconds and need not be thread-safe. Code that also needs the lock of
            the trial table acquires this lock first.
    """

    def __init__(
        self,
        space: Space,
        optimizer: Optimizer,
        seed: int,
        limits: tuple[Limit, ...],
        costs: Mapping[str, float],
        objectives: Objectives,
    ) -> None:
        self.space, self.optimizer, self.seed = space, optimizer, seed
        self.limits, self.costs, self.objectives = limits, costs, objectives
        self.lock = threading.RLock()
        self._searched = compiled(space)
        self._latest: tuple[History, int | None] = ((), None)
        self._part: tuple[str, Optimizer] | None = None

    def proposal(
        self,
        history: History,
        state: Mapping[str, Any],
        min_distance: MinimumDistance | None,
        seconds: float | None,
        fixed: Mapping[str, Value] | None = None,
    ) -> TrialRow:
        """Return the row of the trial that follows a history, without an attempt.

        Args:
            fixed: values that the proposal has; the optimizer's state then stays as it is.

        Raises:
            SpaceError: the space was changed after the study was made.
            MipcashError: the optimizer cannot search with fixed values, or no legal configuration has them.
            SpaceExhaustedError: no legal configuration is left.
            IllegalProposalError: the proposal is illegal, lacks a fixed value, or is too near to another of its batch.
            TypeError: the optimizer returned no proposal, or requested outputs that do not exist.
        """
        began, number = time.perf_counter(), len(history)
        self.check_space()
        rng = np.random.default_rng(np.random.SeedSequence([self.seed, number]))
        kept = min_distance if min_distance and min_distance.configs and min_distance.distance else None
        limits = self.limits
        # a separate generator, so that the optimizer's draws are those of a single objective
        if self.objectives.several and self.optimizer.reads_losses:
            drawn = np.random.default_rng(np.random.SeedSequence([self.seed, number, WEIGHTS]))
            history, limits = scalarised(history, limits, self.objectives, weights_of(drawn, self.objectives))
        request = Request(history, rng, state, kept, limits, self.costs, seconds)
        if fixed:
            part = replace(request, history=[o.within(fixed) for o in history])
            proposal = replace(self._with(fixed).ask(part), state=state)
        else:
            proposal = self._default(history, state) or self.optimizer.ask(request)
        if isinstance(proposal, Proposal) and self.objectives.several and self.optimizer.reads_losses:
            proposal = replace(proposal, stop="")  # a reason that concerns the scalarised loss of one proposal
        if not isinstance(proposal, Proposal):
            raise TypeError(f"optimizer {self.optimizer.name!r} must return a Proposal, and returned {shown(proposal)}")
        proposal = self._checked(number, proposal, min_distance, fixed or {})
        if self.costs and not proposal.outputs:
            proposal = replace(proposal, outputs=tuple(self.costs))
        return proposal_row(self.space, self.optimizer, number, proposal, began)

    def _with(self, fixed: Mapping[str, Value]) -> Optimizer:
        """Return the optimizer of the sub-space with fixed values. The latest one is kept."""
        key = repr(sorted(fixed.items()))
        if self._part is None or self._part[0] != key:
            self._part = key, self.optimizer.restricted(fixed)
        return self._part[1]

    def _default(self, history: History, state: Mapping[str, Any]) -> Proposal | None:
        """Return the default configuration as the first proposal, unless it is known; None if no parameter has a default."""
        if not all(o.known for o in history):
            return None
        if not any(e.default for e in self._searched.declaration.expectations.values()):
            return None
        config = self.space.default()
        known = repeats(self._searched, config, (o.config for o in history))
        return None if known else Proposal(config, origin="default", state=state)

    def check_space(self) -> None:
        """Check that the space is the one that the study was made with.

        Raises:
            SpaceError: it was changed.
        """
        if compiled(self.space) is not self._searched:
            raise SpaceError(
                f"space {self.space.name!r} was changed after the study was made, also if it was set back since, and a "
                "study searches the space as it was then; make a new study, which keeps the legal evaluations by "
                "known=mc.read_trials(study.result.to_rows(), space, illegal='skip')"
            )

    def recommended(self, history: History) -> int | None:
        """Return the number of the trial that the optimizer recommends; None if it recommends none.

        The result is cached until the history changes.

        Raises:
            TypeError: the optimizer recommended something that is not in the history.
        """
        before, found = self._latest
        if before and len(before) == len(history) and all(a is b for a, b in zip(before, history, strict=True)):
            return found
        chosen = None if self.objectives.several else answer(self.optimizer.recommend, history, self.limits)
        found = None if chosen is None else next((k for k, o in enumerate(history) if o is chosen), None)
        if chosen is not None and found is None:
            raise TypeError(
                f"optimizer {self.optimizer.name!r} recommended {chosen!r}, which is none of the observations that it was given"
            )
        self._latest = (history, found)
        return found

    def finalists(self, history: History, count: int) -> list[int]:
        """Return the numbers of the best trials of the search, best first, each of a different configuration."""
        searched = [o for o in history if not o.repeat]
        found = self.optimizer.finalists(searched, self.limits, count)
        return [next(k for k, o in enumerate(history) if o is one) for one in found]

    @property
    def _whose(self) -> str:
        """Sentence that says who has to correct an illegal proposal."""
        if type(self.optimizer).__module__.startswith("mipcash."):
            return "This is a bug, please report it with the space."
        return f"Its class {type(self.optimizer).__name__} must propose legal configurations only; space.is_legal() checks one."

    def _checked(
        self, number: int, proposal: Proposal, batch: MinimumDistance | None, fixed: Mapping[str, Value]
    ) -> Proposal:
        """Return the proposal with its parameters in the order of declaration, by which configurations are compared."""
        config = proposal.config
        problems = [v.message for v in self._searched.violations(config)]  # the space was seen to be still this one
        if not problems:
            config = {name: config[name] for name in self._searched.declaration.parameters if name in config}
            problems = self._lacking(config, fixed) + self._too_near(proposal, batch)
        if problems:
            raise IllegalProposalError(
                f"optimizer {self.optimizer.name!r} proposed an illegal configuration as trial {number}: {'; '.join(problems)}. "
                f"{self._whose} The configuration: {config!r}"
            )
        unknown = [name for name in outputs_of(self.optimizer, proposal) if self.costs and name not in self.costs]
        if unknown:
            raise TypeError(
                f"optimizer {self.optimizer.name!r} wants the outputs {listed(unknown)} evaluated, and there are "
                f"{listed(self.costs)}"
            )
        return replace(proposal, config=config)

    def _lacking(self, config: Configuration, fixed: Mapping[str, Value]) -> list[str]:
        """Return which fixed values a configuration does not have."""
        domains = {name: self._searched.declaration.parameters[name].domain for name in fixed}
        return [
            f"{name!r} is {config.get(name)!r}, and {value!r} is fixed"
            for name, value in fixed.items()
            if name not in config or not same_value(config[name], domains[name].canonical(value))
        ]

    def _too_near(self, proposal: Proposal, batch: MinimumDistance | None) -> list[str]:
        """Return why a proposal may not join its batch; decoupled evaluations may share a configuration."""
        if batch is None or not batch.configs:
            return []
        encode = self._searched.program.encode
        excluded = exclusions(self._searched, encode, (), batch)
        if not all(e.admits(encode(proposal.config)) for e in excluded):
            return [f"it differs from another proposal of its batch in fewer than {batch.distance} discrete parameters"]
        if not self.costs and repeats(self._searched, proposal.config, batch.configs):
            return ["its batch has this configuration already"]
        return []
