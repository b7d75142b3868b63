"""The search of a space by the trials of a study: the optimizer, restricted if values are fixed, and its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mipcash.errors import IllegalProposalError, InfeasibleSpaceError, SpaceError
from mipcash.integrations.optuna import notes
from mipcash.integrations.optuna.history import Reader, limits_from
from mipcash.integrations.optuna.notes import Note
from mipcash.integrations.optuna.ranges import as_declared
from mipcash.modelling.domains import Value
from mipcash.optimizers.objectives import Objectives
from mipcash.optimizers.optimizer import Limit, Optimizer, Request
from mipcash.optimizers.registry import make_optimizer
from mipcash.optimizers.scalarising import scalarised, weights_of
from mipcash.space.compiled import CompiledSpace, compiled
from mipcash.space.space import Space

HELD = 16
"""Maximum number of cached optimizers of sub-spaces."""


class Search:
    """A sampler's cached objects for a space; they can be made again at any time.

    Attributes:
        space: the searched space.
        inferred: the parameters of an inferred space; empty if the space was given.
        reader: of trials.
    """

    def __init__(
        self,
        space: Space,
        optimizer: str,
        settings: Any,
        solver: str,
        limits: Sequence[Limit],
        inferred: Mapping[str, Any] | None = None,
    ) -> None:
        self.space, self.inferred = space, dict(inferred or {})
        self._name, self._settings, self._solver, self._limits = optimizer, settings, solver, tuple(limits)
        self._n_reported = 0
        self._held: list[str] = []
        self._made: tuple[CompiledSpace, Optimizer, dict[str, Optimizer]] | None = None
        self.reader = Reader(space, tuple(limit.output for limit in limits))
        self._optimizer()[0].check_limits(self._limits)

    def proposal(
        self,
        trials: Sequence[Any],
        objectives: Objectives,
        rng: np.random.Generator,
        seconds: float | None,
        fixed: Mapping[str, Any],
    ) -> Note:
        """Return the next proposal, given all other trials of the study.

        Args:
            fixed: parameters with fixed values; those that the space does not have are ignored.

        Raises:
            SpaceExhaustedError: every legal configuration has been proposed.
            IllegalProposalError: the optimizer proposed an illegal configuration, which is a bug.
        """
        held = self._wanted(fixed)
        if held and (placed := self.reader.placed(held, {})).config is not None:
            if broken := self.space.validate(placed.config):
                self._held.append(
                    f"fixed and enqueued values are evaluated unchanged, and these violate the rules: {broken[0]}"
                )
            return Note(placed.config, self._state(trials), {"origin": "enqueued"})
        history = self.reader.history(trials, objectives)
        optimizer, held = self._restricted({n: v for n, v in held.items() if self._may_hold(n, held)})
        if held:
            history = [o.within(held) for o in history]
        limits, state = limits_from(trials, self._limits), self._state(trials)
        if objectives.several:  # each proposal minimises a random weighting
            history, limits = scalarised(history, limits, objectives, weights_of(rng, objectives))
        found = optimizer.ask(Request(history, rng, state, limits=limits, seconds=seconds))
        if broken := self.space.validate(found.config):
            raise IllegalProposalError(
                f"optimizer {self._name!r} proposed an illegal configuration: {'; '.join(map(str, broken))}. This is a bug, please "
                f"report it with the space and this configuration: {found.config!r}"
            )
        proof: dict[str, Any] = {"origin": found.origin}
        if found.solution is not None:
            proof |= {"solver": found.solution.solver, "value": found.solution.value, "bound": found.solution.bound}
        return Note(found.config, found.state, proof)

    def again(self, trials: Sequence[Any], objectives: Objectives, rng: np.random.Generator) -> Note:
        """Return the best configuration again, or a sampled legal one if no trial has succeeded or the space was inferred."""
        if self.inferred:
            return Note(self.space.sample(1, rng)[0], self._state(trials), {"origin": "again"})
        history = self.reader.history(trials, objectives)
        best = self._optimizer()[0].recommend(history, limits_from(trials, self._limits))
        config = self.space.sample(1, rng)[0] if best is None else best.config
        return Note(config, self._state(trials), {"origin": "again"})

    def write(self, storage: Any, trial_id: int, note: Note) -> None:
        """Store a proposal as a note on its trial."""
        notes.write(storage, trial_id, self.space, note)

    def warnings(self) -> list[str]:
        """Return the warnings since the last call."""
        found, self._held = self._held, []
        misfits = self.reader.misfits
        if misfits and not self.inferred and not self._n_reported:
            number, problem = next(iter(misfits.items()))
            found.append(
                f"trials of the study have no place in space {self.space.name!r} and are not learned from: trial {number}: "
                f"{problem}"
            )
        self._n_reported = len(misfits)
        return found

    # -- optimizers ---------------------------------------------------------------------------------------------

    def _optimizer(self) -> tuple[Optimizer, dict[str, Optimizer]]:
        """Return the optimizer of the present space, and those of its sub-spaces."""
        now = compiled(self.space)
        if self._made is None or self._made[0] is not now:
            self._made = (now, make_optimizer(self._name, self.space, self._solver, self._settings), {})
            self.reader = Reader(self.space, self.reader.limited)  # legality changes with the rules
        return self._made[1:]

    def _restricted(self, held: dict[str, Value]) -> tuple[Optimizer, dict[str, Value]]:
        """Return the optimizer with some values fixed, and these values; none are fixed if no legal configuration has them."""
        whole, of_parts = self._optimizer()
        if not held:
            return whole, held
        key = repr(sorted(held.items()))
        if key not in of_parts:
            try:
                made = whole.restricted(held)
            except InfeasibleSpaceError as error:
                self._held.append(
                    f"fixed and enqueued values are evaluated unchanged, and these violate the rules: {error}"
                )
                return whole, {}
            if len(of_parts) >= HELD:
                del of_parts[next(iter(of_parts))]
            of_parts[key] = made
        return of_parts[key], held

    def _wanted(self, fixed: Mapping[str, Any]) -> dict[str, Value]:
        """Return the fixed values of parameters of the space; values that are not in their domains are left out."""
        found = {}
        for name, value in fixed.items():
            if name in self.space.parameters:
                try:
                    found[name] = as_declared(self.space.parameters[name].domain, value)
                except ValueError as error:  # Optuna evaluates the value anyway, and warns if it is out of range
                    self._held.append(f"the value of {name!r} that is fixed or enqueued is outside the space: {error}")
        return found

    def _may_hold(self, name: str, held: Mapping[str, Value]) -> bool:
        """Return True if a parameter can be active in a legal configuration with the other fixed values."""
        if name not in compiled(self.space).declaration.conditions:
            return True
        others = {n: v for n, v in held.items() if n not in compiled(self.space).declaration.conditions}
        whole, _ = self._optimizer()
        try:
            whole.restricted({**others, name: held[name]})
        except (InfeasibleSpaceError, SpaceError):
            return False
        return True

    def _state(self, trials: Sequence[Any]) -> Mapping[str, Any]:
        """Return the optimizer's state after the latest proposal."""
        for trial in sorted(trials, key=lambda t: -t.number):
            note = self.reader.note(trial)
            if note is not None:
                return note.state
        return {}
