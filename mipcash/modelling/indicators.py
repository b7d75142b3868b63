"""Levels of a discrete parameter as users hold them: ``act["relu"]`` is 1 where ``act`` takes ``"relu"``, else 0.

An indicator *is* the Pyomo binary of its level, so it may stand wherever a variable may. That of a module's algorithm leads
on to the hyperparameters of the algorithm: ``estimator["forest"]["n_trees"]``.
"""

from __future__ import annotations

from typing import Any

from pyomo.core.base.var import IndexedVar, VarData

from mipcash.errors import SpaceError
from mipcash.modelling.operators import Operators


class Indicator(Operators, VarData):  # type: ignore[misc]
    """The binary of one level. Its Pyomo name is ``parameters[act].z[0]``; people read ``act['relu']``."""

    __slots__ = ()
    __hash__ = Operators.__hash__

    @property
    def handle(self) -> Any:
        """The parameter whose level this is."""
        return self.parent_component().handle

    def __getitem__(self, name: str) -> Any:
        """The hyperparameter ``name`` of the algorithm that this indicator stands for.

        Raises:
            SpaceError: no algorithm of a module, or one without such a hyperparameter.
        """
        algorithm = self.handle.level_of(self)
        hyperparameters = getattr(self.handle, "hyperparameters", None)
        if hyperparameters is None:
            raise SpaceError(
                f"{self} is 1 where parameter {self.handle.label!r} takes {algorithm!r}, else 0, and holds nothing to look up "
                f"by {name!r}; only an algorithm of a module has hyperparameters"
            )
        return self.handle.parameter(algorithm, name)

    def to_string(
        self, verbose: object = None, labeler: object = None, smap: Any = None, compute_values: object = 0
    ) -> str:
        """In Pyomo's texts, which journals compare, it keeps its Pyomo name."""
        return str(self.name) if smap is None else str(smap.getSymbol(self))

    def __str__(self) -> str:
        owner = self.parent_component()
        return str(self.name) if owner is None or owner.handle is None else str(owner.handle.level_text(self))

    def __repr__(self) -> str:
        return f"<indicator {self}>"


class Activity(Operators, VarData):  # type: ignore[misc]
    """The binary that is 1 where a number is active, of which no single indicator tells."""

    __slots__ = ()
    __hash__ = Operators.__hash__


class Activities(IndexedVar):  # type: ignore[misc]
    """The binary of a number's activity."""

    _ComponentDataClass = Activity


class Indicators(IndexedVar):  # type: ignore[misc]
    """The binaries of a parameter's levels."""

    _ComponentDataClass = Indicator
    handle: Any = None
    """The parameter, once it is declared."""


def as_pyomo(variable: Any) -> None:
    """Make the indicator of a clone a variable like any other: Pyomo's transformations tell the types of what they calculate."""
    if type(variable) in (Indicator, Activity):
        variable.__class__ = VarData
