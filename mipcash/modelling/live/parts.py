"""State that a declaration keeps of its live model: how variables were adopted, and rules derived from its components."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from mipcash.modelling.live.value_sets import ROUNDING
from mipcash.modelling.quadratic import Variable, bounds_of
from mipcash.modelling.rules import Rule


@dataclass(frozen=True)
class Derived:
    """Rules derived from one component of the live model.

    Attributes:
        key: changes whenever the component does.
        rules: as written into ``model.rules[name, k]``.
    """

    key: Hashable
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Known:
    """A user's variable at the time when the space adopted it.

    Attributes:
        domain: its Pyomo set.
        low, high: its least and greatest value.
        bounds: on the model; they may be wider, such as 0.5 to 3.5 for the integers from 1 to 3.
    """

    variable: Variable
    domain: Any
    low: float
    high: float
    bounds: tuple[float, float]

    def widened(self) -> bool:
        """Return True if the bounds are wider than at adoption."""
        low, high = bounds_of(self.variable)
        return not self.variable.fixed and (low < self.bounds[0] or high > self.bounds[1])

    def impossible(self) -> bool:
        """Return True if the fixed value is none of the variable's, or the bounds leave none."""
        variable = self.variable
        low, high = (variable.value, variable.value) if variable.fixed else bounds_of(variable)
        if low is None:
            return True
        low, high = max(low, self.low) - ROUNDING, min(high, self.high) + ROUNDING
        return bool(math.floor(high) < math.ceil(low) if variable.is_integer() else high < low)

    def narrowed(self) -> tuple[float, float] | None:
        """Return the bounds if they are narrower than at adoption and the variable is not fixed; else None."""
        low, high = bounds_of(self.variable)
        less = low > max(self.low, self.bounds[0]) or high < min(self.high, self.bounds[1])
        return (low, high) if less and not self.variable.fixed else None


@dataclass
class LiveParts:
    """State that a declaration keeps of its live model.

    Attributes:
        derived: name -> derived rules.
        known: id of a variable -> the variable at adoption.
        left_out: id of a variable that is no parameter -> the variable and why.
    """

    derived: dict[str, Derived] = field(default_factory=dict)
    known: dict[int, Known] = field(default_factory=dict)
    left_out: dict[int, tuple[Variable, str]] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the state for copies and pickles, whose variables have other ids."""
        return _gathered, (self.derived, list(self.known.values()), list(self.left_out.values()))

    def remember(self, variable: Variable, low: float, high: float) -> None:
        now_low, now_high = bounds_of(variable)
        self.known[id(variable)] = Known(variable, variable.domain, low, high, (min(low, now_low), max(high, now_high)))


def _gathered(derived: dict[str, Derived], known: list[Known], left_out: list[tuple[Variable, str]]) -> LiveParts:
    return LiveParts(derived, {id(k.variable): k for k in known}, {id(entry[0]): entry for entry in left_out})
