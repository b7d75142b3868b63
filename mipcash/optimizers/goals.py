"""What is optimised: outputs by name, each to be minimised or to be maximised.

Users see the values that their objective gave, everywhere: in trials, results, journals and limits. Optimizers minimise, and
whatever compares losses compares what an optimizer sees: the loss with its sign turned where it is to be maximised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mipcash.optimizers.outcome import FAILED, LOSS, PRESENT, Limit, Outcome, Output
from mipcash.space.direction import DIRECTIONS, MAXIMIZE, MINIMIZE


@dataclass(frozen=True)
class Goal:
    """An output and where it is to go.

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
        """What turns its values into such that are to be minimised."""
        return -1.0 if self.direction == MAXIMIZE else 1.0


@dataclass(frozen=True)
class Goals:
    """The goals of a study.

    Attributes:
        goals: one for the loss alone, or several.
    """

    goals: tuple[Goal, ...] = (Goal(),)

    @property
    def several(self) -> bool:
        """Whether there is more than one."""
        return len(self.goals) > 1

    @property
    def names(self) -> tuple[str, ...]:
        """Of the outputs."""
        return tuple(goal.output for goal in self.goals)

    def completed(self, outcome: Outcome) -> Outcome:
        """An outcome of several objectives with its loss: that of this name, or the first; failed where one is no number."""
        told = [outcome[name] for name in self.names]
        problem = next((k for k, output in enumerate(told) if output.status != PRESENT), None)
        if problem is not None:
            message = told[problem].message or f"{self.names[problem]!r} was not told"
            return Outcome({**outcome.outputs, LOSS: Output(FAILED, message=message, cost=told[problem].cost)})
        if LOSS in self.names or outcome[LOSS].status == PRESENT:
            return outcome
        return Outcome({LOSS: told[0], **outcome.outputs})

    @property
    def maximised(self) -> bool:
        """Whether the loss is to be maximised; of several goals, none of which is called so, it is the first."""
        found = next((goal for goal in self.goals if goal.output == LOSS), self.goals[0])
        return found.direction == MAXIMIZE

    @property
    def sign(self) -> float:
        """What turns losses into such that are to be minimised."""
        return -1.0 if self.maximised else 1.0

    @property
    def word(self) -> str:
        """What the loss is called where it is shown: one that is to be maximised is no loss, one of several has its name."""
        if self.several:
            return LOSS if LOSS in self.names else self.names[0]
        return "value" if self.maximised else "loss"

    @property
    def best(self) -> str:
        """``lowest loss`` or ``highest value``."""
        return "highest value" if self.maximised else "lowest loss"

    @property
    def better(self) -> str:
        """``lower loss`` or ``higher value``."""
        return "higher value" if self.maximised else "lower loss"

    def turned(self, limits: Sequence[Limit]) -> tuple[Limit, ...]:
        """Limits on outputs as they were told, or on what an optimizer sees of them: each gives the other."""
        if not self.maximised:
            return tuple(limits)
        return tuple(Limit(LOSS, -l.high, -l.low) if l.output == LOSS else l for l in limits)


MINIMISED = Goals()
"""A loss to be minimised, which holds where nothing else is said."""
