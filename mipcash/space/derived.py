"""Rules that the live model states in other ways than by constraints, written as constraints so that everything reads them.

A special ordered set, a domain with holes, a ``BooleanVar`` that is fixed, bounds that are narrowed on the live model: each
becomes rows of ``model.rules`` under the name that the user knows, with helper variables of its own where it needs some.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mipcash.errors import RuleError
from mipcash.space.domains import is_bool
from mipcash.space.quadratic import Variable
from mipcash.space.rules import Rule, make_rule

if TYPE_CHECKING:
    from mipcash.space.declaration import Declaration


@dataclass(frozen=True)
class Derived:
    """What was made of one part of the live model.

    Attributes:
        key: changes whenever the part does.
        rules: as written into ``model.rules[name, k]``.
    """

    key: object
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Known:
    """A user's variable as it was when the space took it over.

    Attributes:
        domain: its Pyomo set.
        low, high: the extent of its values.
        bounds: on the model; they may reach further, from 0.5 to 3.5 for the integers from 1 to 3.
    """

    variable: Variable
    domain: Any
    low: float
    high: float
    bounds: tuple[float, float]

    def widened(self) -> bool:
        """Whether the bounds are wider than they were."""
        low, high = bounds_of(self.variable)
        return not self.variable.fixed and (low < self.bounds[0] or high > self.bounds[1])

    def narrowed(self) -> tuple[float, float] | None:
        """The bounds, where they leave less than they did; else None."""
        low, high = bounds_of(self.variable)
        less = low > max(self.low, self.bounds[0]) or high < min(self.high, self.bounds[1])
        return (low, high) if less and not self.variable.fixed else None


def bounds_of(variable: Variable) -> tuple[float, float]:
    """Bounds of a variable, infinite where there are none."""
    low, high = variable.bounds
    return (-math.inf if low is None else float(low)), (math.inf if high is None else float(high))


@dataclass
class LiveParts:
    """What a declaration remembers of its live model.

    Attributes:
        derived: name -> rules that were derived.
        known: id of a variable -> how it was taken over.
        left_out: id of a variable that is no parameter -> the variable and why.
    """

    derived: dict[str, Derived] = field(default_factory=dict)
    known: dict[int, Known] = field(default_factory=dict)
    left_out: dict[int, tuple[Variable, str]] = field(default_factory=dict)

    def remember(self, variable: Variable, low: float, high: float) -> None:
        now_low, now_high = bounds_of(variable)
        self.known[id(variable)] = Known(variable, variable.domain, low, high, (min(low, now_low), max(high, now_high)))


def helper_block(declaration: Declaration, name: str) -> Any:
    """A fresh block for the helper variables of derived rules."""
    parameters: Any = declaration.model.parameters
    index = f"{name} (helper)"
    if index in parameters:
        del parameters[index]
    return parameters[index]


def write(declaration: Declaration, name: str, key: object, relations: Sequence[Any]) -> None:
    """Make ``relations`` the rules derived under ``name``, in place of what there was.

    Raises:
        RuleError: a relation that no value satisfies.
    """
    helpers, rules = f"{name} (helper)" in declaration.model.parameters, declaration.model.rules
    erase(declaration, name, keep_helpers=helpers)
    made = []
    for k, relation in enumerate(relations):
        if is_bool(relation):
            if not relation:
                erase(declaration, name)
                raise RuleError(f"{name!r} cannot hold with the bounds and fixed values of its variables; widen them")
            continue
        rules[name, k] = relation
        made.append(make_rule(name, relation, constant=True))
    declaration.parts.derived[name] = Derived(key, tuple(made))


def erase(declaration: Declaration, name: str, *, keep_helpers: bool = False) -> None:
    """Take back the rules derived under a name, and their helper variables."""
    declaration.parts.derived.pop(name, None)
    rules, parameters = declaration.model.rules, declaration.model.parameters
    for index in [i for i in rules if isinstance(i, tuple) and i[0] == name and isinstance(i[1], int)]:
        del rules[index]
    helpers = f"{name} (helper)"
    if not keep_helpers and helpers in parameters:
        del parameters[helpers]
