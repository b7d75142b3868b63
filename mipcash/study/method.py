"""``optimizer=``: the method that makes proposals, with its settings and its solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mipcash.optimizers.optimizer import Optimizer
from mipcash.study.arguments import positive
from mipcash.study.calls import explained
from mipcash.text import shown

if TYPE_CHECKING:
    from mipcash.backends.task import Backend
    from mipcash.space.space import Space

SECONDS_PER_PROPOSAL = 5.0
"""Default limit on the seconds of a proposal."""


@dataclass(frozen=True)
class Method:
    """A method that makes proposals: ``optimizer=mc.Method("hybrid", solver="scip", settings={"n_initial": 8})``.

    Args:
        optimizer: a name of ``mipcash.optimizers.registry``, or an [`Optimizer`][mipcash.optimizers.optimizer.Optimizer],
            which has its own settings and solver.
        settings: settings of a named optimizer: a dict of those that differ from the defaults, or an object of
            ``mipcash.settings``.
        solver: a name of ``mipcash solvers``, or a backend, which certifies the proposals; ``auto``: the fastest that is installed.
        seconds_per_proposal: limit on the wall-clock seconds of a proposal; the best configuration found by then is proposed. None:
            no limit but those of the settings. It depends on the machine, and may change when a journal is resumed.

    Raises:
        TypeError: ``optimizer`` is neither a name nor an optimizer.
        ValueError: settings are combined with an optimizer object, or the seconds are no number above 0.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> method = mc.Method("random", settings={"attempts": 4}, seconds_per_proposal=1.0)
        >>> mc.minimize(lambda config: config["a"], space, 3, optimizer=method, progress=False).n_done
        3
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
        if isinstance(self.optimizer, Optimizer) and not isinstance(getattr(self.optimizer, "name", None), str):
            raise TypeError(
                f"class {type(self.optimizer).__name__} needs a name for journals and messages: name = 'mine'"
            )
        positive("seconds_per_proposal", self.seconds_per_proposal)

    @classmethod
    def of(cls, given: Any) -> Method:
        """Return the method given as ``optimizer=``.

        Args:
            given: a method, a name or an optimizer.

        Returns:
            The method.
        """
        return given if isinstance(given, Method) else cls(given)

    @property
    def name(self) -> str:
        """Name of the method. The name that the user gave comes first, since presets with different names may share a class."""
        return self.optimizer if isinstance(self.optimizer, str) else self.optimizer.name

    @property
    def seconds(self) -> float | None:
        """Limit on the seconds of a proposal; None if there is no limit."""
        return positive("seconds_per_proposal", self.seconds_per_proposal)

    def made(self, space: Space) -> Optimizer:
        """Return the optimizer for a space.

        Args:
            space: the space to search.

        Returns:
            The optimizer.

        Raises:
            MipcashError: there is no optimizer or solver of that name, or no such setting.
        """
        from mipcash.optimizers.registry import make_optimizer, with_fidelity  # imports surrogates and solvers

        if isinstance(self.optimizer, Optimizer):
            return with_fidelity(self.optimizer, space)
        return make_optimizer(self.optimizer, space, solver=self.solver, settings=self.settings)


OptimizerGiven = str | Optimizer | Method
"""Type of ``optimizer=``."""


Method.__init__ = explained(Method.__init__)  # type: ignore[method-assign]  # an unknown argument names the cure
