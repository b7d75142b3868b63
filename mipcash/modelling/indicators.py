"""Indicators of a discrete parameter's levels: ``act["relu"]`` is 1 if ``act`` takes ``"relu"``, else 0.

An indicator *is* the Pyomo binary of its level, so it may stand wherever a variable may. The indicator of a module's algorithm
gives access to the hyperparameters of the algorithm: ``estimator["forest"]["n_trees"]``.
"""

from __future__ import annotations

from typing import Any

from pyomo.core.base.var import IndexedVar, VarData

from mipcash.errors import SpaceError
from mipcash.modelling.operators import Operators


class Indicator(Operators, VarData):  # type: ignore[misc]
    """The binary of one level. Its Pyomo name is ``parameters[act].z[0]``; users read ``act['relu']``."""

    __slots__ = ()
    __hash__ = Operators.__hash__

    @property
    def handle(self) -> Any:
        """The parameter that the level belongs to."""
        return self.parent_component().handle

    def __getitem__(self, name: str) -> Any:
        """Return the hyperparameter ``name`` of the algorithm that this indicator stands for.

        Raises:
            SpaceError: not an algorithm of a module, or an algorithm without such a hyperparameter.
        """
        algorithm = self.handle.level_of(self)
        hyperparameters = getattr(self.handle, "hyperparameters", None)
        if hyperparameters is None:
            raise SpaceError(
                f"{self} is a 0/1 indicator and has no item {name!r}; only an algorithm of a module has hyperparameters"
            )
        return self.handle.parameter(algorithm, name)

    def to_string(
        self, verbose: object = None, labeler: object = None, smap: Any = None, compute_values: object = 0
    ) -> str:
        """Return the Pyomo name, which Pyomo's texts keep because journals compare them."""
        return str(self.name) if smap is None else str(smap.getSymbol(self))

    def __str__(self) -> str:
        owner = self.parent_component()
        return str(self.name) if owner is None or owner.handle is None else str(owner.handle.level_text(self))

    def __repr__(self) -> str:
        return f"<indicator {self}>"


class Activity(Operators, VarData):  # type: ignore[misc]
    """The binary that is 1 if a numerical parameter is active, if its condition is not a single indicator."""

    __slots__ = ()
    __hash__ = Operators.__hash__


class Activities(IndexedVar):  # type: ignore[misc]
    """Pyomo variable that holds an ``Activity``."""

    _ComponentDataClass = Activity


class Indicators(IndexedVar):  # type: ignore[misc]
    """Pyomo variable that holds the ``Indicator`` of each level of a parameter."""

    _ComponentDataClass = Indicator
    handle: Any = None
    """The parameter, once it is declared."""


def as_pyomo(variable: Any) -> None:
    """Turn the indicator of a clone into a plain variable, since Pyomo's transformations dispatch on exact types."""
    if type(variable) in (Indicator, Activity):
        variable.__class__ = VarData
