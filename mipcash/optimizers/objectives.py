"""Objectives: outputs by name, each to be minimised or maximised.

Users always see the values that their objective function returned: in trials, results, journals and outcome constraints.
Optimizers minimise, so they work with the negated loss if it is to be maximised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mipcash.modelling.fidelity import Fidelity
from mipcash.optimizers.outcome import FAILED, LOSS, PRESENT, Limit, Outcome, Output
from mipcash.space.direction import DIRECTIONS, MAXIMIZE, MINIMIZE


@dataclass(frozen=True)
class Objective:
    """An objective: an output and its direction.

    Attributes:
        output: its name.
        direction: ``minimize`` or ``maximize``.
    """

    output: str = LOSS
    direction: str = MINIMIZE

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            raise ValueError(f"a direction is {MINIMIZE!r} or {MAXIMIZE!r}, and not {self.direction!r}")

    @property
    def sign(self) -> float:
        """Factor that converts its values to minimisation form: -1 if they are to be maximised, else 1."""
        return -1.0 if self.direction == MAXIMIZE else 1.0


@dataclass(frozen=True)
class Objectives:
    """The objectives of a study.

    Attributes:
        each: the loss alone, or several objectives.
        fidelity: the parameter at whose highest value they count; None: they count at all configurations.
    """

    each: tuple[Objective, ...] = (Objective(),)
    fidelity: Fidelity | None = None

    @property
    def several(self) -> bool:
        """True if there is more than one objective."""
        return len(self.each) > 1

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return tuple(objective.output for objective in self.each)

    @property
    def directions(self) -> dict[str, str]:
        """Direction of each objective, and of the loss, by name."""
        return {LOSS: MAXIMIZE if self.maximised else MINIMIZE, **{o.output: o.direction for o in self.each}}

    def completed(self, outcome: Outcome) -> Outcome:
        """Return an outcome of several objectives with its loss added: the objective named loss, or else the first objective.

        The loss is failed if an objective has no finite value.
        """
        reported = [outcome[name] for name in self.names]
        problem = next((k for k, output in enumerate(reported) if output.status != PRESENT), None)
        if problem is not None:
            message = reported[problem].message or f"{self.names[problem]!r} was not reported"
            return Outcome({**outcome.outputs, LOSS: Output(FAILED, message=message, cost=reported[problem].cost)})
        return outcome if LOSS in self.names else Outcome({**outcome.outputs, LOSS: reported[0]})

    @property
    def maximised(self) -> bool:
        """True if the loss is to be maximised; if no objective is named loss, True if the first objective is to be maximised."""
        found = next((objective for objective in self.each if objective.output == LOSS), self.each[0])
        return found.direction == MAXIMIZE

    @property
    def sign(self) -> float:
        """Factor that converts losses to minimisation form: -1 if the loss is to be maximised, else 1."""
        return -1.0 if self.maximised else 1.0

    @property
    def word(self) -> str:
        """Name of the loss for display: "value" if it is maximised; with several objectives, the name of the output."""
        if self.several:
            return LOSS if LOSS in self.names else self.names[0]
        return "value" if self.maximised else "loss"

    @property
    def best(self) -> str:
        """``lowest loss`` or ``highest value``."""
        return f"{'highest' if self.maximised else 'lowest'} {self.word}"

    @property
    def better(self) -> str:
        """``lower loss`` or ``higher value``."""
        return f"{'higher' if self.maximised else 'lower'} {self.word}"

    def in_minimisation_form(self, limits: Sequence[Limit]) -> tuple[Limit, ...]:
        """Return outcome constraints with those on the loss negated if it is maximised; the function is its own inverse."""
        if not self.maximised:
            return tuple(limits)
        return tuple(Limit(LOSS, -l.high, -l.low) if l.output == LOSS else l for l in limits)


MINIMISED = Objectives()
"""A loss to be minimised, the default."""
