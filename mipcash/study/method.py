"""``optimizer=``: the method that proposes, with its settings and its solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mipcash.optimizers.optimizer import Optimizer
from mipcash.study.arguments import seconds_of
from mipcash.study.text import shown

if TYPE_CHECKING:
    from mipcash.backends.task import Backend
    from mipcash.space.space import Space

SECONDS_PER_PROPOSAL = 5.0
"""What a proposal may take where nothing else is said."""


@dataclass(frozen=True)
class Method:
    """A method that proposes: ``mc.minimize(..., optimizer=mc.Method("hybrid", solver="scip", settings={"n_initial": 8}))``.

    Attributes:
        optimizer: a name of ``mipcash.optimizers.registry``, or an :class:`~mipcash.optimizers.optimizer.Optimizer`, which brings
            its own settings and solver.
        settings: of a named optimizer, those that differ from its defaults as a dict, or an object of :mod:`mipcash.settings`.
        solver: a name of ``mipcash solvers``, or a backend, which proves the proposals; ``auto``: the fastest that is installed.
        seconds_per_proposal: wall-clock seconds that a proposal may take at most; None: no limit but those of the settings. The
            best found by then is proposed. It is a matter of the machine, and may be another one when a journal is resumed.

    Raises:
        TypeError: no name and no optimizer.
        ValueError: settings beside an optimizer, or no number of seconds above 0.
    """

    optimizer: str | Optimizer = "hybrid"
    settings: Any = None
    solver: str | Backend = "auto"
    seconds_per_proposal: float | None = SECONDS_PER_PROPOSAL

    def __post_init__(self) -> None:
        if isinstance(self.optimizer, Optimizer) and self.settings is not None:
            raise ValueError("settings= belong to a named optimizer; build them into the optimizer object instead")
        if not isinstance(self.optimizer, (str, Optimizer)):
            raise TypeError(
                f"optimizer must be a name, mc.Method(...), or an object of a class derived from "
                f"mipcash.optimizers.optimizer.Optimizer; got {shown(self.optimizer)}"
            )
        seconds_of("seconds_per_proposal", self.seconds_per_proposal)

    @classmethod
    def of(cls, given: Any) -> Method:
        """Return the method that ``optimizer=`` says."""
        return given if isinstance(given, Method) else cls(given)

    @property
    def name(self) -> str:
        """What it is called; a name says more than the object made from it: a preset may share its class with another name."""
        return self.optimizer if isinstance(self.optimizer, str) else self.optimizer.name

    @property
    def seconds(self) -> float | None:
        """What a proposal may take; None: there is no limit."""
        return seconds_of("seconds_per_proposal", self.seconds_per_proposal)

    def made(self, space: Space) -> Optimizer:
        """Return the optimizer for a space."""
        if isinstance(self.optimizer, Optimizer):
            return self.optimizer
        from mipcash.optimizers.registry import make_optimizer  # brings surrogates and solvers along

        return make_optimizer(self.optimizer, space, solver=self.solver, settings=self.settings)


OptimizerGiven = str | Optimizer | Method
"""What ``optimizer=`` takes."""
