"""The parts of a declaration, and the interface for modules that write some of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from mipcash.modelling.domains import Integer, Real, Value, level_among
from mipcash.modelling.quadratic import Condition, Quadratic, Variable


@dataclass(frozen=True)
class OneHot:
    """A one-hot group of the model.

    Attributes:
        label: the parameter's label, or ``ordering:module`` for the position of a module.
        parameter: label of the parameter it belongs to.
        variables: L binaries.
        values: L values (positions 1..T for an ordering).
        on: activity of the group, as an affine polynomial; None: always active.
        kind: ``categorical``, ``ordinal`` (also of reals with a step), ``integer`` or ``ordering``.
    """

    label: str
    parameter: str
    variables: tuple[Variable, ...]
    values: tuple[Value, ...]
    on: Quadratic | None
    kind: str

    def level(self, value: Value) -> int:
        """Return the level of a canonical value; for an ordering, the position of the group's module."""
        if self.kind == "ordering":
            return list(value).index(self.label[len(self.parameter) + 1 :])
        return level_among(self.values, value)


@dataclass(frozen=True)
class Number:
    """A numerical variable of the model: a parameter that is not expanded into one-hot binaries, or an auxiliary variable.

    Attributes:
        variable: its Pyomo variable, in natural units; 0 if inactive.
        on: activity as an affine polynomial; None: always active.
    """

    label: str
    variable: Variable
    domain: Real | Integer
    on: Quadratic | None
    tuned: bool

    def columns(self) -> tuple[Variable, ...]:
        """Return the variable, and its own activity binary if it has one."""
        block = self.variable.parent_block()
        return (self.variable, block.on) if block.component("activity") is not None else (self.variable,)

    def restriction(self) -> tuple[float, float] | None:
        """Return the variable's bounds if the live model fixes it or narrows its domain, else None."""
        low, high = float(self.domain.low), float(self.domain.high)
        if self.on is not None:
            low, high = min(0.0, low), max(0.0, high)
        now_low, now_high = self.variable.bounds
        if self.variable.fixed:
            now_low = now_high = self.variable.value
        now_low, now_high = (
            (low if now_low is None else float(now_low)),
            (high if now_high is None else float(now_high)),
        )
        return (now_low, now_high) if now_low > low or now_high < high or self.variable.fixed else None


@dataclass(frozen=True)
class Link:
    """An integer variable of an adopted Pyomo model, with its value as a sum of one-hot binaries."""

    variable: Variable
    value: Quadratic


class Declared(Protocol):
    """Interface of a declaration in progress (``mipcash.modelling.declaration.Declaration``).

    Attributes:
        model: the live Pyomo model.
        groups, numbers, conditions: as in the declaration.
    """

    model: Any
    groups: list[OneHot]
    numbers: list[Number]
    conditions: dict[str, tuple[Condition, ...]]

    def interval(self, body: Quadratic) -> tuple[float, float]:
        """Return bounds of a polynomial over the declared domains, without rules."""

    def refuse_foreign(self, what: str, polynomial: Quadratic) -> None:
        """Refuse variables of another space."""
